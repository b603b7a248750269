"""The cubic clustering criterion: R² against what uniform data in a box would give."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.cluster_moments import Spectrum
from wellsep.indices.registry import index
from wellsep.indices.scoring import score_one

VARIANTS = ("sarle", "fastclus", "nbclust")


class Cubic(NamedTuple):
    """The criterion and its parts."""

    value: float
    r2: float
    expected_r2: float
    dimensions: int  # p*, along which the box is cut into cubes


def _wants_ccc(variant: str = "sarle") -> dict[str, Want]:
    check_choice("variant", variant, VARIANTS)
    return {
        "clusters": want("clusters"),
        "within": want("within"),
        "spectrum": want("spectrum", centred=variant != "nbclust"),
    }


@index(
    name="ccc",
    title="Cubic clustering criterion",
    words="The logarithm of (1 − R² expected of uniform data in a box) over (1 − R² of the "
    "clusters), times a factor that grows with the root of n.",
    wants=_wants_ccc,
    direction=1,
    range=(-np.inf, np.inf),
    cost="n·d",
    minimum_clusters=1,
    citation="Sarle, Cubic clustering criterion, SAS Technical Report A-108 (1983)",
    caution="Unreliable below 10 objects a cluster on average; elongated or correlated data give "
    "large negative values, and outliers small ones.",
)
def _ccc(
    clusters: Clusters, within: np.ndarray, spectrum: Spectrum, *, variant: str = "sarle"
) -> float:
    q = len(clusters.mass)
    return 0.0 if q == 1 else cubic(spectrum, float(within.sum()), q, variant).value


def cubic(spectrum: Spectrum, within: float, q: int, variant: str) -> Cubic:
    """``within`` is the trace of W; Sarle's formulas 34 to 36 as restored from SAS's output."""
    n = spectrum.mass
    if n <= q:
        raise UndefinedIndex("every object is a cluster of its own")
    squares = (spectrum.columns if variant == "fastclus" else spectrum.roots) / (n - 1)
    if variant == "nbclust":
        squares = np.where(squares > 0, squares, 1)  # NbClust replaces zeros
    total = float(spectrum.roots.sum())
    if total == 0:
        raise UndefinedIndex("all objects coincide, so that the variance is zero")
    edges = 0.5 * np.log(squares[squares > 0])  # ln s_j, largest first; s_j = 0 adds nothing
    rule = _cubes_nbclust if variant == "nbclust" else _cubes
    p, u = rule(edges, q)
    cut, whole = u[:p], u[p:]
    left = ((1 / (n + cut)).sum() + (whole**2 / (n + whole)).sum()) / (u**2).sum()
    expected = float(1 - left * (n - q) ** 2 / n * (1 + 4 / n))
    r2 = 1 - within / total
    if within <= 1e-24 * total:
        return Cubic(np.inf, r2, expected, p)
    scale = np.sqrt(n * p / 2) / (0.001 + expected) ** 1.2
    return Cubic(float(np.log((1 - expected) * total / within) * scale), r2, expected, p)


def _cubes(edges: np.ndarray, q: int) -> tuple[int, np.ndarray]:
    """p*, the largest p < q with u_p ≥ 1 when c is that of p dimensions, and u.

    u_p ≥ 1 is Π_{j≤p} s_j/s_p ≤ q, which holds up to p* and not beyond.
    """
    p = np.arange(1, len(edges) + 1)
    fits = (np.cumsum(edges) - p * edges <= np.log(q)) & (p < q)
    last = int(np.flatnonzero(fits)[-1]) + 1
    return last, _in_cubes(edges, last, q)


def _cubes_nbclust(edges: np.ndarray, q: int) -> tuple[int, np.ndarray]:
    """NbClust counts u_j ≥ 1 with the c of all dimensions; if none or all do, it takes all."""
    u = _in_cubes(edges, len(edges), q)
    p = min(int((u >= 1).sum()), q - 1)
    if 0 < p < len(edges):
        return p, _in_cubes(edges, p, q)
    return len(edges), u


def _in_cubes(edges: np.ndarray, p: int, q: int) -> np.ndarray:
    """u_j = s_j / c with c the edge of the q cubes that fill the box of the first p dimensions."""
    return np.exp(edges - (edges[:p].sum() - np.log(q)) / p)


def ccc_score(
    X: Any,
    labels: Any,
    *,
    variant: str = "sarle",
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
) -> float:
    r"""Return the cubic clustering criterion: R² of the clusters against that of uniform data.

    .. math:: \ln\frac{1-E(R^2)}{1-R^2}\cdot\frac{\sqrt{np^*/2}}{(0.001+E(R^2))^{1.2}}

    with :math:`E(R^2)` from the edges :math:`s_j` of a box as wide as the data, cut into K cubes
    along its :math:`p^*` longest edges. Greater is better; above 2 or 3 speaks for clusters,
    below 0 for outliers or none. One cluster has 0; clusters without extent have ∞. Undefined for
    n clusters, or no variance. Unreliable below 10 objects a cluster on average.

    Parameters
    ----------
    X : array-like or tensor of shape (n, d)
        Eigenvalues are computed on the host in float64.
    labels : array-like of shape (n,)
        The cluster of each object; -1, -2 and -3 are noise.
    variant : {"sarle", "fastclus", "nbclust"}
        :math:`s_j^2` are the eigenvalues of the covariance (Sarle, SAS PROC CLUSTER), the
        variances of the columns (PROC FASTCLUS), or the eigenvalues of second moments of data
        not centred (NbClust, which also cuts along other dimensions; +18 for uniform noise).
    sample_weight : array-like of shape (n,), optional
        Weights of the objects; integer weights count as repetitions.
    noise : {"exclude", "cluster", "singletons", "error"}
        Noise is left out, is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" computes on the GPU.

    References
    ----------
    Sarle (1983), Cubic Clustering Criterion, SAS Technical Report A-108.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import load_iris
    >>> X, species = load_iris(return_X_y=True)
    >>> round(ws.ccc_score(X, species), 3)
    3.038
    """
    return score_one("ccc", X, labels, {"variant": variant}, sample_weight, noise, device)
