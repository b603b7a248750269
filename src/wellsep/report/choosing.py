"""The part of a page about one partition's objects: profiles, strips, and the worst cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .figures import Silhouettes, Strips
from .looking import names_of
from .packing import pack
from .people import lcd_figure, margin_figure, silhouette_figure, tried
from .planes import encoded

PROFILE = 120  # points of a silhouette profile
STRIP = 2400  # marks of a strip plot, over all clusters


@dataclass(frozen=True, eq=False)
class Chosen:
    """One partition seen from one space, object by object."""

    partition: str
    space: str
    codes: np.ndarray  # (n,)
    clusters: tuple[str, ...]
    rivals: np.ndarray | None  # (n,) the nearest other cluster, by the means
    silhouettes: Silhouettes | None
    margins: Strips | None
    lcd: Strips | None
    values: dict[str, np.ndarray]  # (n,) each
    notes: tuple[str, ...]


def chosen_figure(
    partition: str, space: str, X: Any, labels: Any, *, widths: Any = None, margins: Any = None
) -> Chosen:
    """Silhouette widths, margins and LCD of a partition; what is undefined is said in the notes.

    X may be None: then only widths and margins that are given are shown.
    """
    codes, clusters = encoded(labels)
    silhouettes = strip = lcd = rivals = None
    notes: list[str] = []
    if X is not None or widths is not None:
        silhouettes, why = tried(silhouette_figure, X, labels, widths=widths)
        notes += [f"Silhouette widths are undefined: {why}."] if why else []
    if X is not None or margins is not None:
        strip, why = tried(margin_figure, X, labels, values=margins)
        notes += [f"Margins are undefined: {why}."] if why else []
    if X is not None:
        lcd, why = tried(lcd_figure, X, labels)
        notes += [f"Local connectivity is undefined: {why}."] if why else []
        rivals = nearest_rival(np.asarray(X, dtype=float), codes, len(clusters))
    else:
        notes.append("Local connectivity is not shown: the page was made without the runs.")
    values = {}
    for key, figure in (("width", silhouettes), ("margin", strip), ("lcd", lcd)):
        if figure is not None:
            values[key] = _per_object(figure, len(codes))
    return Chosen(
        partition, space, codes, clusters, rivals, silhouettes, strip, lcd, values, tuple(notes)
    )


def nearest_rival(X: np.ndarray, codes: np.ndarray, k: int) -> np.ndarray | None:
    """Of each object the other cluster whose separating plane is nearest; None for one cluster.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_rival(np.array([[0.0], [1.0], [4.0], [9.0]]), np.array([0, 0, 1, 2]), 3).tolist()
    [1, 1, 0, 1]
    """
    if k < 2:
        return None
    means = np.array([X[codes == cluster].mean(axis=0) for cluster in range(k)])
    apart = np.sqrt(((means[:, None] - means[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.nan)
    apart[apart == 0] = np.nan
    near = (means**2).sum(axis=1) - 2 * X @ means.T
    own = np.maximum(codes, 0)
    ways = (near - near[np.arange(len(X)), own][:, None]) / (2 * apart[own])
    return np.where(codes < 0, -1, np.where(np.isnan(ways), np.inf, ways).argmin(axis=1))


def worst_table(chosen: Chosen, ids: Any) -> dict[str, list[Any]]:
    """The objects to look at: on the fence, unsupported, or with the lowest widths."""
    why: dict[int, list[str]] = {}
    for figure, said in ((chosen.margins, "on the fence"), (chosen.lcd, "unsupported")):
        for i in [] if figure is None else figure.worst:
            why.setdefault(int(i), []).append(said)
    if "width" in chosen.values:
        widths = chosen.values["width"]
        known = np.flatnonzero(np.isfinite(widths))
        for i in known[np.argsort(widths[known], kind="stable")][:12]:
            if widths[i] < 0:
                why.setdefault(int(i), []).append("nearer to another cluster")
    margins = chosen.values.get("margin")
    if margins is not None:
        for i, reasons in why.items():
            if margins[i] < 0 and "on the fence" in reasons:
                reasons[reasons.index("on the fence")] = "on the wrong side"
    rows = sorted(why, key=lambda i: (-len(why[i]), i))
    table: dict[str, list[Any]] = {
        "object": names_of(ids, np.array(rows, dtype=np.intp)),
        "cluster": [chosen.clusters[chosen.codes[i]] for i in rows],
    }
    if chosen.rivals is not None:
        table["rival"] = [chosen.clusters[chosen.rivals[i]] for i in rows]
    for key, values in chosen.values.items():
        table[key] = [float(values[i]) for i in rows]
    table["why"] = [", ".join(why[i]) for i in rows]
    table["position"] = rows
    return table


def chosen_payload(chosen: Chosen, drawn: np.ndarray, ids: Any) -> dict[str, Any]:
    """What the page's script draws of the chosen partition."""
    found: dict[str, Any] = {
        "partition": chosen.partition,
        "space": chosen.space,
        "clusters": list(chosen.clusters),
        "sizes": np.bincount(chosen.codes[chosen.codes >= 0], minlength=len(chosen.clusters)),
        "notes": list(chosen.notes),
    }
    if chosen.silhouettes is not None:
        widths = chosen.silhouettes.widths
        found["silhouettes"] = {
            "mean": chosen.silhouettes.mean,
            "means": chosen.silhouettes.means,
            "profiles": [pack(_profile(w), "f4") for w in widths],
        }
    for key, strips in (("margin", chosen.margins), ("lcd", chosen.lcd)):
        if strips is not None:
            found[key] = strip_payload(strips, drawn, ids)
    return found


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
        "worst_names": names_of(ids, strips.worst),
        "worse": strips.worse,
    }


def _profile(widths: np.ndarray) -> np.ndarray:
    """The sorted widths at evenly spaced shares of the cluster."""
    if len(widths) <= PROFILE:
        return widths
    return widths[np.linspace(0, len(widths) - 1, PROFILE).round().astype(np.intp)]


def _per_object(figure: Silhouettes | Strips, n: int) -> np.ndarray:
    values = np.full(n, np.nan)
    columns = figure.widths if isinstance(figure, Silhouettes) else figure.values
    for objects, column in zip(figure.objects, columns, strict=True):
        values[objects] = column
    return values
