"""What is measured of a partition, and of k-means and LOFKM from the same starts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import wellsep as ws
from experiments.local_connectivity.protocols import (
    NEIGHBOURS,
    Protocol,
    Settled,
    first_centers,
    lof_weights,
    scale,
    settle,
)

KEYS = ("set", "scaling", "starts", "t", "seed")
METHODS = {"km": "KM", "lof": "LOFKM"}
MEASURES = {
    "avg_lcd": "AvgLCD",
    "max_lcd": "MaxLCD",
    "large_lcd": "AvgLCD of clusters > t",
    "object_lcd": "mean LCD of objects",
    "silhouette": "silhouette",
    "purity": "purity",
    "nmi": "NMI",
    "sse": "SSE",
    "clusters": "clusters",
    "small": "clusters of at most t",
}

LCDS = ("avg_lcd", "max_lcd", "large_lcd", "object_lcd")


class Connectivity(NamedTuple):
    """AvgLCD, MaxLCD, and two means that clusters too small to have t neighbours cannot lower."""

    average: float
    maximum: float
    large: float  # AvgLCD over clusters of more than t objects
    objects: float  # the mean over all objects


def connectivity(X: np.ndarray, found: Settled, t: int) -> Connectivity:
    """LCD about the method's own prototypes, cluster by cluster.

    One cluster at a time, `local_connectivity` need not look for better clusters, its dearer half.
    """
    worst, sizes, total = [], [], 0.0
    for code, center in enumerate(found.centers):
        members = X[found.labels == code]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # clusters of at most t members; they are counted
            lcd = ws.local_connectivity(
                members, np.zeros(len(members), int), centers=center[None], n_neighbors=t
            )
        worst.append(lcd.maximum)
        sizes.append(len(members))
        total += lcd.objects.sum()
    large = [value for value, size in zip(worst, sizes, strict=True) if size > t]
    return Connectivity(
        float(np.mean(worst)),
        float(np.max(worst)),
        float(np.mean(large)) if large else float("nan"),
        float(total / len(X)),
    )


def about_means(X: np.ndarray, found: Settled) -> Settled:
    """The same memberships with their means as prototypes."""
    sizes = np.bincount(found.labels)
    return Settled(
        found.labels, np.column_stack([np.bincount(found.labels, f) / sizes for f in X.T])
    )


def measure_block(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    protocol: Protocol,
    seeds: Sequence[int],
    *,
    neighbours: tuple[int, ...] = NEIGHBOURS,
    means: bool = False,
    weights: dict[int, np.ndarray] | None = None,
) -> list[dict[str, Any]]:
    """One row per t and start: all measures of k-means and LOFKM.

    Parameters
    ----------
    means : bool
        Also LOFKM's LCD about the means of its clusters.
    weights : dict, optional
        LOF weights of the scaled objects for each t, where they are known.
    """
    Z = scale(X, protocol.scaling)
    k = len(np.unique(y[y >= 0]))
    weights = weights or {t: lof_weights(Z, k, t) for t in neighbours}
    drop = protocol.starts == "box"
    found: dict[tuple[str, int, int], Settled] = {}
    for seed in seeds:
        centers = first_centers(Z, k, protocol.starts, seed)
        plain = settle(Z, centers, drop=drop)
        for t in neighbours:
            found["km", t, seed] = plain
            found["lof", t, seed] = settle(Z, centers, weights[t], drop=drop)
    distinct = {key: _canonical(settled.labels) for key, settled in found.items()}
    shared = _of_memberships(Z, y, {one: found[key].labels for key, one in distinct.items()})

    known: dict[Any, Connectivity] = {}

    def lcd(key: tuple[str, int, int], t: int, *, at_means: bool = False) -> Connectivity:
        # Many starts end in the same partition; its prototypes are then the same too.
        method = "km" if at_means else key[0]
        case = (distinct[key], method, t)
        if case not in known:
            settled = about_means(Z, found[key]) if at_means else found[key]
            known[case] = connectivity(Z, settled, t)
        return known[case]

    rows = []
    for t in neighbours:
        for seed in seeds:
            row: dict[str, Any] = dict(
                zip(KEYS, (name, protocol.scaling, protocol.starts, t, seed), strict=True)
            )
            for method in METHODS:
                key = (method, t, seed)
                values = {
                    **dict(zip(LCDS, lcd(key, t), strict=True)),
                    **shared[distinct[key]],
                    "small": int((np.bincount(found[key].labels) <= t).sum()),
                }
                row |= {f"{method}_{measure}": _short(values[measure]) for measure in MEASURES}
            at_means = lcd(("lof", t, seed), t, at_means=True) if means else None
            row["lof_avg_lcd_means"] = _short(at_means.average) if at_means else None
            row["lof_max_lcd_means"] = _short(at_means.maximum) if at_means else None
            rows.append(row)
    return rows


def measure_weights(
    name: str, X: np.ndarray, y: np.ndarray, scaling: str, neighbours: tuple[int, ...] = NEIGHBOURS
) -> list[dict[str, Any]]:
    """One row per t: the size of a set, and how far LOF weights are from those of k-means."""
    k = len(np.unique(y[y >= 0]))
    found = {t: lof_weights(scale(X, scaling), k, t) for t in neighbours}
    return [
        {
            "set": name,
            "scaling": scaling,
            "t": t,
            "objects": X.shape[0],
            "features": X.shape[1],
            "classes": k,
            "largest_weight": _short(weights.max()),
            "above_two": _short((weights > 2.0).mean()),
        }
        for t, weights in found.items()
    ]


def _of_memberships(
    X: np.ndarray, y: np.ndarray, partitions: dict[bytes, np.ndarray]
) -> dict[bytes, dict[str, Any]]:
    """Measures that depend on memberships alone; silhouettes of all partitions in one pass."""
    labels = list(partitions.values())
    silhouettes = ws.score_partitions(X, labels, ["silhouette"]).values[:, 0]
    known = {}
    for one, codes, silhouette in zip(partitions, labels, silhouettes, strict=True):
        centers = about_means(X, Settled(codes, X)).centers
        known[one] = {
            "silhouette": silhouette,
            "purity": ws.purity_score(y, codes),
            "nmi": ws.nmi_score(y, codes),
            "sse": ((X - centers[codes]) ** 2).sum(),
            "clusters": len(centers),
        }
    return known


def _canonical(labels: np.ndarray) -> bytes:
    """The partition whatever its clusters are called: codes in order of first appearance."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes].astype(np.int16).tobytes()


def _short(value: Any) -> Any:
    return value if isinstance(value, int) else float(f"{value:.6g}")
