"""Indices by brute force from their definitions, in 80-bit floats where the machine has them.

Everything is a difference, a sum or a root of long doubles: no product of far rows, no block. The
values serve as the truth where those of float64 are looked at in their last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LONG = np.longdouble


class Exact:
    """Distances, clusters and centres of one partition; weights count as repetitions."""

    def __init__(self, X: Any, labels: Any, weights: Any = None) -> None:
        self.X = np.asarray(X).astype(LONG)
        self.codes = np.unique(labels, return_inverse=True)[1].reshape(-1)
        self.w = np.ones(len(self.X), LONG) if weights is None else np.asarray(weights, LONG)
        self.member = (self.codes == np.arange(self.codes.max() + 1)[:, None]).astype(LONG)  # K, n
        self.mass = self.member @ self.w
        self.centers = (self.member * self.w) @ self.X / self.mass[:, None]
        self.pairs = gaps(self.X, self.X)
        self.to_centers = gaps(self.X, self.centers)
        self.at = (np.arange(len(self.X)), self.codes)
        self.apart = gaps(self.centers, self.centers)

    def sums(self) -> np.ndarray:
        """(K, K) distances between the members of two clusters, summed."""
        return self.member @ self.pairs @ self.member.T

    def radii(self, q: float = 1) -> np.ndarray:
        return (self.member @ (self.w * self.to_centers[self.at] ** q) / self.mass) ** LONG(1 / q)


def gaps(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Euclidean distances, by differences."""
    return np.sqrt(((X[:, None] - Y) ** 2).sum(axis=2))


def widths(a: np.ndarray, b: np.ndarray, alone: Any = False) -> np.ndarray:
    top = np.maximum(a, b)
    return np.where((top > 0) & ~np.asarray(alone), (b - a) / np.where(top > 0, top, 1), 0)


def off_diagonal(table: np.ndarray) -> np.ndarray:
    return table[~np.eye(len(table), dtype=bool)]


def silhouette(e: Exact, metric: str = "euclidean") -> Any:
    D = e.pairs
    if metric == "sqeuclidean":
        D = D**2
    if metric == "cosine":
        D = gaps(*(2 * [e.X / np.sqrt((e.X**2).sum(axis=1, keepdims=True))])) ** 2 / 2
    sums = D @ e.member.T  # (n, K)
    means = sums / e.mass
    means[e.at] = np.inf
    rest = e.mass[e.codes] - 1
    a = sums[e.at] / np.maximum(rest, 1)
    return widths(a, means.min(axis=1), rest == 0).mean()


def simplified_silhouette(e: Exact) -> Any:
    rivals = e.to_centers.copy()
    rivals[e.at] = np.inf
    return e.w @ widths(e.to_centers[e.at], rivals.min(axis=1)) / e.w.sum()


def calinski_harabasz(e: Exact) -> Any:
    n, k = e.w.sum(), len(e.mass)
    mean = e.w @ e.X / n
    between = e.mass @ ((e.centers - mean) ** 2).sum(axis=1)
    return between / (e.w @ e.to_centers[e.at] ** 2) * (n - k) / (k - 1)


def davies_bouldin(e: Exact, q: float = 1) -> Any:
    size, apart = e.radii(q), e.apart + np.diag(np.full(len(e.mass), np.inf))
    return ((size[:, None] + size) / apart).max(axis=1).mean()


def cfq(e: Exact, wrong_side: str = "zero") -> Any:
    apart = e.apart[e.codes]
    less = e.to_centers**2 - e.to_centers[e.at][:, None] ** 2
    signed = less / np.where(apart > 0, 2 * apart, 1)
    signed = np.maximum(signed, 0) if wrong_side == "zero" else signed
    table = (e.member * e.w) @ signed**2
    np.fill_diagonal(table, np.inf)
    return table.min(axis=1).sum() / (e.w @ e.to_centers[e.at] ** 2)


def dunn(e: Exact) -> Any:
    same = e.codes[:, None] == e.codes
    return e.pairs[~same].min() / e.pairs[same].max()


def c_index(e: Exact, variant: str = "hubert-levin") -> Any:
    upper = np.triu_indices(len(e.X), 1)
    D, within = e.pairs[upper], (e.codes[:, None] == e.codes)[upper]
    total, n = D[within].sum(), int(within.sum())
    if variant == "nbclust":
        low, high = D[within].min(), D[within].max()
        return (total - n * low) / (n * (high - low))
    D = np.sort(D)
    return (total - D[:n].sum()) / (D[len(D) - n :].sum() - D[:n].sum())


def generalized_dunn(e: Exact, separation: str = "average", diameter: str = "average") -> Any:
    n, same = e.mass, e.codes[:, None] == e.codes
    farthest = np.array([[_of(e, k, m).max() for m in range(len(n))] for k in range(len(n))])
    lonely = np.array(
        [[_of(e, k, m).min(axis=1).max() for m in range(len(n))] for k in range(len(n))]
    )
    to_others = e.member @ e.to_centers
    own = n * e.radii()
    apart = {
        "single": lambda: e.pairs[~same].min(),
        "complete": lambda: off_diagonal(farthest).min(),
        "average": lambda: off_diagonal(e.sums() / np.outer(n, n)).min(),
        "centroid": lambda: off_diagonal(e.apart).min(),
        "to-centroids": lambda: off_diagonal((to_others + to_others.T) / (n[:, None] + n)).min(),
        "own-centroids": lambda: off_diagonal((own[:, None] + own) / (n[:, None] + n)).min(),
        "hausdorff": lambda: off_diagonal(np.maximum(lonely, lonely.T)).min(),
    }[separation]()
    mean = np.diagonal(e.sums()) / np.maximum(n * (n - 1), 1)
    wide = {
        "complete": np.diagonal(farthest),
        "average": mean,
        "half-average": mean / 2,
        "centroid": 2 * e.radii(),
    }[diameter].max()
    return apart / wide


def _of(e: Exact, k: int, m: int) -> np.ndarray:
    return e.pairs[e.codes == k][:, e.codes == m]


def s_dbw(e: Exact) -> Any:
    variances = e.member @ (e.X - e.centers[e.codes]) ** 2 / e.mass[:, None]
    total = np.sqrt((((e.X - e.X.mean(axis=0)) ** 2).mean(axis=0) ** 2).sum())
    norms, k = np.sqrt((variances**2).sum(axis=1)), len(e.mass)
    radius = np.sqrt(norms.sum()) / k
    terms = []
    for j in range(k):
        for m in range(j):
            both = (e.codes == j) | (e.codes == m)
            near = [(e.to_centers[both][:, c] <= radius).sum() for c in (j, m)]
            middle = (e.centers[j] + e.centers[m])[None] / 2
            between = (gaps(e.X[both], middle) <= radius).sum()
            terms.append(between / max(near) if max(near) else 0)
    return norms.mean() / total + np.mean(terms)


INDICES: dict[str, Callable[..., Any]] = {
    "silhouette": silhouette,
    "silhouette_cosine": lambda e: silhouette(e, "cosine"),
    "simplified_silhouette": simplified_silhouette,
    "calinski_harabasz": calinski_harabasz,
    "davies_bouldin": davies_bouldin,
    "cfq": cfq,
    "dunn": dunn,
    "c_index": c_index,
    "generalized_dunn": generalized_dunn,
    "s_dbw": s_dbw,
}


def value(name: str, e: Exact, **options: Any) -> float:
    """One index of one partition, rounded to float64 at the end."""
    return float(INDICES[name](e, **options))
