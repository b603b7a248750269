"""Figures of a partition's objects: silhouette widths, margins, local connectivity, worst cases."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wellsep.indices import local_connectivity, margins, silhouette_samples
from wellsep.report.figures import Silhouettes, Strips
from wellsep.report.planes import encoded

N_WORST = 12


def silhouette_figure(X: Any, labels: Any, **options: Any) -> Silhouettes:
    """Silhouette widths cluster by cluster, the greatest first.

    Examples
    --------
    >>> found = silhouette_figure([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    >>> found.clusters, found.widths[0].round(2).tolist(), round(found.mean, 2)
    (('0', '1'), [0.78, 0.71], 0.75)
    """
    widths = np.asarray(silhouette_samples(X, labels, **options), dtype=float)
    return silhouettes_of(*encoded(labels), widths)


def silhouettes_of(codes: np.ndarray, clusters: tuple[str, ...], widths: np.ndarray) -> Silhouettes:
    """The same figure from widths (n,) that are known."""
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


def margin_figure(X: Any, labels: Any, **options: Any) -> Strips:
    """Distance of every object to the nearest plane between clusters; negative is the wrong side.

    Examples
    --------
    >>> margin_figure([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]).values[0].tolist()
    [2.5, 1.5]
    """
    values = np.asarray(margins(X, labels, **options), dtype=float)
    return margins_of(*encoded(labels), values)


def margins_of(codes: np.ndarray, clusters: tuple[str, ...], values: np.ndarray) -> Strips:
    """The same figure from margins (n,) that are known."""
    return _strips("margin", "margin", values, codes, clusters, -1)


def lcd_figure(X: Any, labels: Any, *, n_neighbors: int = 5) -> Strips:
    """Local connectivity disagreement of every object: how far its neighbours pull aside.

    Examples
    --------
    >>> lcd_figure([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]).kind
    'lcd'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of small clusters: the page shows sizes
        values = local_connectivity(X, labels, n_neighbors=n_neighbors).objects
    return disagreements_of(*encoded(labels), np.asarray(values, dtype=float))


def disagreements_of(codes: np.ndarray, clusters: tuple[str, ...], values: np.ndarray) -> Strips:
    """The same figure from disagreements (n,) that are known."""
    return _strips("lcd", "local connectivity disagreement", values, codes, clusters, 1)


def _strips(
    kind: str, title: str, values: np.ndarray, codes: np.ndarray, clusters: tuple, worse: int
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
