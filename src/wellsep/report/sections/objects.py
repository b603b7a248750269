"""Figures of one partition's objects, from what was judged: widths, margins, LCD, worst cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wellsep.evaluate import PartitionDetails
from wellsep.report.figures.records import ObjectFigures, Section, Silhouettes, Strips
from wellsep.report.pack import pack
from wellsep.report.sections.members import Members
from wellsep.report.sections.scatter import object_names

N_WORST = 12
PROFILE = 120  # points of a silhouette profile
STRIP = 2400  # marks of a strip plot, over all clusters


def objects_figure(details: PartitionDetails) -> ObjectFigures:
    """Figures of silhouette widths, margins and LCD, from what was judged."""
    codes, clusters = details.codes, details.clusters
    figures: list[tuple[str, Callable[..., Any], np.ndarray]] = [
        ("width", silhouette_figure, details.widths),
        ("margin", margin_figure, details.margins),
        ("lcd", lcd_figure, details.disagreements),
    ]
    known = {
        key: (draw(codes, clusters, values), values)
        for key, draw, values in figures
        if np.isfinite(values).any()
    }
    silhouettes, strip, lcd = (known.get(key, (None,))[0] for key, _, _ in figures)
    return ObjectFigures(
        details.partition,
        details.space,
        codes,
        clusters,
        details.nearest if (details.nearest >= 0).any() else None,
        silhouettes,
        strip,
        lcd,
        {key: np.where(codes < 0, np.nan, values) for key, (_, values) in known.items()},
        details.notes,
    )


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


def worst_table(figures: ObjectFigures, ids: Any) -> dict[str, list[Any]]:
    """The objects to check: borderline, isolated, or with the lowest widths."""
    why: dict[int, list[str]] = {}
    for figure, said in ((figures.margins, "borderline"), (figures.lcd, "isolated")):
        for i in [] if figure is None else figure.worst:
            why.setdefault(int(i), []).append(said)
    if "width" in figures.values:
        widths = figures.values["width"]
        known = np.flatnonzero(np.isfinite(widths))
        for i in known[np.argsort(widths[known], kind="stable")][:N_WORST]:
            if widths[i] < 0:
                why.setdefault(int(i), []).append("nearer to another cluster")
    margins = figures.values.get("margin")
    if margins is not None:
        for i, reasons in why.items():
            if margins[i] < 0 and "borderline" in reasons:
                reasons[reasons.index("borderline")] = "on the wrong side"
    rows = sorted(why, key=lambda i: (-len(why[i]), i))
    table: dict[str, list[Any]] = {
        "object": object_names(ids, np.array(rows, dtype=np.intp)),
        "cluster": [figures.clusters[figures.codes[i]] for i in rows],
    }
    if figures.rivals is not None:
        table["rival"] = [
            figures.clusters[r] if (r := int(figures.rivals[i])) >= 0 else "" for i in rows
        ]
    for key, values in figures.values.items():
        table[key] = [float(values[i]) for i in rows]
    table["why"] = [", ".join(why[i]) for i in rows]
    table["position"] = rows
    return table


def objects_section(figures: ObjectFigures, drawn: np.ndarray, members: Members) -> Section:
    """Widths, margins and local connectivity of the objects, and those to check."""
    ids = members.ids
    worst = worst_table(figures, ids)
    found: dict[str, Any] = {
        "partition": figures.partition,
        "space": figures.space,
        "clusters": list(figures.clusters),
        "sizes": np.bincount(figures.codes[figures.codes >= 0], minlength=len(figures.clusters)),
        "notes": list(figures.notes),
        "worst": worst,
    }
    if figures.silhouettes is not None:
        widths = figures.silhouettes.widths
        found["silhouettes"] = {
            "mean": figures.silhouettes.mean,
            "means": figures.silhouettes.means,
            "profiles": [pack(_profile(w), "f4") for w in widths],
        }
    for key, strips in (("margin", figures.margins), ("lcd", figures.lcd)):
        if strips is not None:
            found[key] = strip_payload(strips, drawn, ids)
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
