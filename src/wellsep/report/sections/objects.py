"""Figures of one partition's objects, from what was judged: widths, margins, LCD, worst cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep.evaluate import PartitionDetails
from wellsep.report.pack import pack
from wellsep.report.parts import Section
from wellsep.report.sections.members import Members
from wellsep.report.sections.scatter import object_names, object_values

N_WORST = 12
PROFILE = 120  # points of a silhouette profile
STRIP = 2400  # marks of a strip plot, over all clusters


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Silhouette widths of a partition, cluster by cluster, the greatest first."""

    clusters: tuple[str, ...]
    codes: np.ndarray  # (K,) number of each cluster, for its colour
    widths: tuple[np.ndarray, ...]
    objects: tuple[np.ndarray, ...]
    means: np.ndarray  # (K,)
    mean: float


@dataclass(frozen=True, eq=False)
class Strips:
    """One value per object, cluster by cluster, and the objects to check."""

    kind: str  # "margin" or "lcd"
    title: str
    clusters: tuple[str, ...]
    codes: np.ndarray
    values: tuple[np.ndarray, ...]
    objects: tuple[np.ndarray, ...]
    worst: np.ndarray  # positions of objects, the worst first
    worse: int  # 1: large values are bad, -1: small ones


def silhouette_figure(
    codes: np.ndarray, clusters: tuple[str, ...], widths: np.ndarray
) -> Silhouettes:
    """Silhouette widths (n,) cluster by cluster, the greatest first.

    Examples
    --------
    >>> widths = np.array([0.71, 0.78, 0.78, 0.71])
    >>> found = silhouette_figure(np.array([0, 0, 1, 1]), ("a", "b"), widths)
    >>> found.widths[0].tolist(), found.objects[0].tolist()
    ([0.78, 0.71], [1, 0])
    """
    kept = _sorted_by_cluster(widths, codes, len(clusters))
    values = tuple(widths[objects] for objects in kept)
    return Silhouettes(
        clusters=clusters,
        codes=np.arange(len(clusters)),
        widths=values,
        objects=kept,
        means=np.array([_mean(v) for v in values]),
        mean=_mean(np.concatenate(values)) if values else float("nan"),
    )


def margin_figure(codes: np.ndarray, clusters: tuple[str, ...], values: np.ndarray) -> Strips:
    """Margins (n,) cluster by cluster: negative is the wrong side of a separating plane."""
    return _strips("margin", "margin", values, codes, clusters, -1)


def lcd_figure(codes: np.ndarray, clusters: tuple[str, ...], values: np.ndarray) -> Strips:
    """Local connectivity disagreements (n,) cluster by cluster."""
    return _strips("lcd", "local connectivity disagreement", values, codes, clusters, 1)


def _strips(
    kind: str,
    title: str,
    values: np.ndarray,
    codes: np.ndarray,
    clusters: tuple[str, ...],
    worse: int,
) -> Strips:
    kept = _sorted_by_cluster(values, codes, len(clusters))
    known = np.flatnonzero(np.isfinite(values) & (codes >= 0))
    worst = known[np.argsort(-worse * values[known], kind="stable")][:N_WORST]
    if worse > 0:
        worst = worst[values[worst] > 0]
    return Strips(
        kind=kind,
        title=title,
        clusters=clusters,
        codes=np.arange(len(clusters)),
        values=tuple(values[objects] for objects in kept),
        objects=kept,
        worst=worst,
        worse=worse,
    )


def _sorted_by_cluster(values: np.ndarray, codes: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Objects of each cluster that have a value, the greatest first."""
    found = []
    for cluster in range(k):
        members = np.flatnonzero((codes == cluster) & np.isfinite(values))
        found.append(members[np.argsort(-values[members], kind="stable")])
    return tuple(found)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def worst_table(
    details: PartitionDetails, strips: Mapping[str, Strips], ids: Any
) -> dict[str, list[Any]]:
    """The objects to check: borderline, isolated, or with the lowest widths."""
    why: dict[int, list[str]] = {}
    for key, said in (("margin", "borderline"), ("lcd", "isolated")):
        for i in strips[key].worst if key in strips else ():
            why.setdefault(int(i), []).append(said)
    values = object_values(details)
    widths = values.get("width", np.empty(0))
    low = np.flatnonzero(widths < 0)
    for i in low[np.argsort(widths[low], kind="stable")][:N_WORST]:
        why.setdefault(int(i), []).append("nearer to another cluster")
    if "margin" in values:
        for i, reasons in why.items():
            if values["margin"][i] < 0 and "borderline" in reasons:
                reasons[reasons.index("borderline")] = "on the wrong side"
    rows = sorted(why, key=lambda i: (-len(why[i]), i))
    table: dict[str, list[Any]] = {
        "object": object_names(ids, np.array(rows, dtype=np.intp)),
        "cluster": [details.clusters[details.codes[i]] for i in rows],
    }
    if (details.nearest >= 0).any():
        names = [*details.clusters, ""]  # the last: none
        table["rival"] = [names[details.nearest[i]] for i in rows]
    for key, own in values.items():
        table[key] = [float(own[i]) for i in rows]
    table["why"] = [", ".join(why[i]) for i in rows]
    table["position"] = rows
    return table


def objects_section(details: PartitionDetails, drawn: np.ndarray, members: Members) -> Section:
    """Widths, margins and local connectivity of the objects, and those to check."""
    ids, codes, clusters = members.ids, details.codes, details.clusters
    strips = {
        key: draw(codes, clusters, values)
        for key, draw, values in (
            ("margin", margin_figure, details.margins),
            ("lcd", lcd_figure, details.disagreements),
        )
        if np.isfinite(values).any()
    }
    worst = worst_table(details, strips, ids)
    found: dict[str, Any] = {
        "partition": details.partition,
        "space": details.space,
        "clusters": list(clusters),
        "sizes": np.bincount(codes[codes >= 0], minlength=len(clusters)),
        "notes": list(details.notes),
        "worst": worst,
    }
    if np.isfinite(details.widths).any():
        silhouettes = silhouette_figure(codes, clusters, details.widths)
        found["silhouettes"] = {
            "mean": silhouettes.mean,
            "means": silhouettes.means,
            "profiles": [pack(_profile(w), "f4") for w in silhouettes.widths],
        }
    found |= {key: strip_payload(strip, drawn, ids) for key, strip in strips.items()}
    shown = (
        [one for i in worst["position"] for one in members.of([i])] if members.pictured else None
    )
    return Section("objects", {"objects": found}, {**found, "members": shown})


def strip_payload(strips: Strips, drawn: np.ndarray, ids: Any) -> dict[str, Any]:
    """Some objects of every cluster: drawn ones, and all that are listed as worst."""
    per = max(12, STRIP // max(len(strips.clusters), 1))
    shown, quartiles = [], []
    worst = set(strips.worst.tolist())
    for values, objects in zip(strips.values, strips.objects, strict=True):
        here = np.isin(objects, drawn)
        pick = np.flatnonzero(here)
        if len(pick) > per:
            pick = pick[np.linspace(0, len(pick) - 1, per).round().astype(np.intp)]
        listed = np.flatnonzero(np.isin(objects, list(worst)))
        pick = np.union1d(pick, listed).astype(np.intp)
        shown.append({"values": pack(values[pick], "f4"), "objects": pack(objects[pick], "i4")})
        quartiles.append(np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else [np.nan] * 3)
    return {
        "clusters": shown,
        "quartiles": quartiles,
        "worst": strips.worst,
        "worst_names": object_names(ids, strips.worst),
        "worse": strips.worse,
    }


def _profile(widths: np.ndarray) -> np.ndarray:
    """The sorted widths at evenly spaced shares of the cluster."""
    if len(widths) <= PROFILE:
        return widths
    return widths[np.linspace(0, len(widths) - 1, PROFILE).round().astype(np.intp)]
