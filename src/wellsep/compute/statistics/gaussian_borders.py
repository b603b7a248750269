"""Distances to quadrics: how far an object must move until two Gaussian densities are equal.

The nearest point y of {g = 0}, g(y) = yᵀAy + bᵀy + c, solves (I + 2λA) y = x − λb. In the
eigenbasis of A all coordinates come apart, and g along the path of λ falls monotonically while
I + 2λA stays positive definite, where the solution is the nearest point there is: one bracketed
search in one variable per object, all objects at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import UndefinedIndex
from wellsep._threads import cut_rows
from wellsep.compute.data.rows import host
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.centre_pairs import lowest_rival
from wellsep.compute.statistics.row_statistics import describe_clusters

BLOCK = 1 << 15  # numbers in each of the tables of a search: they stay in a core's cache
DEGENERATE = 1e-14  # a variance this small beside the largest is none
FARTHEST = 80.0  # the search ends where 1 + 2λa has fallen, or λ risen, by e⁸⁰


class Quadric(NamedTuple):
    """g in the eigenbasis of its matrix: Σ a z² + β z + c."""

    a: np.ndarray  # (d,)
    beta: np.ndarray  # (d,)
    c: float
    basis: np.ndarray | None  # (d, d), or None if the coordinates themselves serve


class Mixture:
    """Gaussian components in the order of the sorted labels; hashable by identity.

    ``covariances`` is (K, d), (K, d, d), or a rule by which they are taken from the clusters.
    """

    def __init__(self, covariances: Any, weights: np.ndarray | None = None) -> None:
        self.covariances, self.weights = covariances, weights

    def in_unit(self, unit: float) -> Mixture:
        """The same for data that were divided by ``unit``."""
        if unit == 1 or isinstance(self.covariances, str):
            return self
        return Mixture(self.covariances / unit / unit, self.weights)

    def __repr__(self) -> str:
        return self.covariances if isinstance(self.covariances, str) else "given"


def signed_distances(X: np.ndarray, quadric: Quadric) -> np.ndarray:
    """(n,) distance of each row to {g = 0}, negative where g < 0; ±inf if g has no zero."""
    a, beta, c, basis = quadric
    z = X if basis is None else X @ basis
    height = (a * z**2 + beta * z).sum(axis=1) + c
    distances = np.empty(len(X))
    for side, sign in ((height >= 0, 1), (height < 0, -1)):
        rows, turned = np.flatnonzero(side), Quadric(sign * a, sign * beta, sign * c, basis)
        for block in cut_rows(len(rows), max(1, BLOCK // X.shape[1])):
            distances[rows[block]] = sign * _descend(z[rows[block]], turned)
    return distances


def _descend(xi: np.ndarray, quadric: Quadric) -> np.ndarray:
    """Distances from rows where g ≥ 0, by a safeguarded Newton search for the multiplier."""
    path = _Path(xi, quadric)
    n = len(xi)
    if not quadric.a.any():
        steepness = float(np.linalg.norm(quadric.beta))
        return path.height(np.zeros(n))[0] / steepness if steepness else np.full(n, np.inf)
    low, high = np.zeros(n), np.full(n, FARTHEST)
    at = path.first_guess()
    beyond = path.height(high)[0] > 0
    active = np.flatnonzero(~beyond)
    for _ in range(200):
        if not len(active):
            break
        g, slope = path.height(at[active], active)
        above = g > 0
        low[active] = np.where(above, at[active], low[active])
        high[active] = np.where(above, high[active], at[active])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = at[active] - g / slope
        middle = (low[active] + high[active]) / 2
        inside = (newton > low[active]) & (newton < high[active])  # False for NaN
        fresh = np.where(inside, newton, middle)
        done = np.abs(fresh - at[active]) <= 1e-14 * (1 + fresh)
        done |= (high[active] - low[active] <= 1e-15 * (1 + high[active])) | (g == 0)
        at[active] = np.where(g == 0, at[active], fresh)
        active = active[~done]
    at[beyond] = FARTHEST
    return path.distance(at, beyond)


class _Path:
    """The points y(λ), with λ written as a function of s in [0, FARTHEST].

    Where some a < 0, λ = λ_max (1 − e⁻ˢ) with 1 + 2 λ_max a_min = 0; otherwise λ = (eˢ − 1)/2a_max.
    """

    def __init__(self, xi: np.ndarray, quadric: Quadric) -> None:
        self.xi, self.quadric = xi, quadric
        self.lowest = float(quadric.a.min(initial=0))
        self.reach = -1 / (2 * self.lowest) if self.lowest < 0 else 0.0
        top = float(quadric.a.max(initial=0))
        self.unit = 1 / (2 * top) if top > 0 else 1.0
        self.gradient = 2 * quadric.a * xi + quadric.beta

    def _moved(self, s: np.ndarray, rows: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """y − x, dλ/ds and the divisors 1 + 2λa, without cancellation near λ_max."""
        a = self.quadric.a
        if self.lowest < 0:
            rest = np.exp(-s)
            share = a / self.lowest
            divisor = np.maximum((1 - share) + share * rest[:, None], np.finfo(float).tiny)
            multiplier, rate = self.reach * -np.expm1(-s), self.reach * rest
        else:
            multiplier, rate = self.unit * np.expm1(s), self.unit * np.exp(s)
            divisor = 1 + 2 * multiplier[:, None] * a
        return -multiplier[:, None] * self.gradient[rows] / divisor, rate, divisor

    def height(self, s: np.ndarray, rows: Any = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """g(y(s)) and its derivative −Σ(2az + β)²/(1 + 2λa) · dλ/ds."""
        a, beta, c, _ = self.quadric
        with np.errstate(over="ignore", invalid="ignore"):
            move, rate, divisor = self._moved(s, rows)
            z = self.xi[rows] + move
            g = (a * z**2 + beta * z).sum(axis=1) + c
            slope = -(((2 * a * z + beta) ** 2) / divisor).sum(axis=1) * rate
        return np.where(np.isnan(g), -np.inf, g), slope

    def first_guess(self) -> np.ndarray:
        """Newton's first step from λ = 0."""
        g, slope = self.height(np.zeros(len(self.xi)))
        with np.errstate(divide="ignore", invalid="ignore"):
            guess = -g / slope
        return np.where(np.isfinite(guess), np.clip(guess, 0, FARTHEST / 2), FARTHEST / 2)

    def distance(self, s: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """‖y − x‖. Rows ``beyond`` the end: no point at all, or one off an axis of symmetry,
        where a way along the steepest fall, of any direction, leads on."""
        move, _, _ = self._moved(s, slice(None))
        square = np.einsum("ij,ij->i", move, move)
        if beyond.any():
            left = self.height(s)[0][beyond]
            square[beyond] += left / -self.lowest if self.lowest < 0 else np.inf
        return np.sqrt(square)


def equal_density(
    gap: np.ndarray, inverses: tuple[np.ndarray, np.ndarray], log_ratio: float
) -> Quadric:
    """{log density of j = log density of l} about the mean of j; ``gap`` leads to the mean of l.

    ``inverses`` are the precisions of j and l, (d,) or (d, d); ``log_ratio`` is what is left at
    equal quadratic forms: ln π_j/π_l − ½ ln |Σ_j|/|Σ_l|.
    """
    own, other = inverses
    scale = max(float(np.abs(own).max()), float(np.abs(other).max()))
    pull = other * gap if other.ndim == 1 else other @ gap
    roots, c = (other - own) / 2, float(gap @ pull) / 2 + log_ratio
    basis, least = None, 1e-14 * scale
    if own.ndim == 2:
        roots, basis = np.linalg.eigh(roots)
        pull, least = basis.T @ pull, 1e-13 * scale
    return Quadric(np.where(np.abs(roots) <= least, 0, roots), -pull, c, basis)


class _Cluster(NamedTuple):
    center: np.ndarray  # (d,)
    members: np.ndarray  # (n_k, d) about the centre
    weights: np.ndarray  # (n_k,)
    mass: float  # their sum
    rounding: np.ndarray  # (d,) how far values may lie from those rounded to X's own type


def provide_quadric_separation(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """(K,) squared distances of members to where another density takes over, summed, the least;
    a sentence instead where the clusters give no densities."""
    X, weights = task.space.on_host().X, task.weights_or_ones()
    rounding = np.finfo(host(task.space.X[:1, :]).dtype).eps * np.abs(X + task.space.shift)
    sums: dict[Want, list[Any]] = {w: [] for w in wants}
    for codes, described in zip(task.partitions.codes, describe_clusters(task), strict=True):
        clusters = []
        for k, (center, mass) in enumerate(zip(described.centers, described.mass, strict=True)):
            rows = np.flatnonzero(codes == k)
            about = X[rows] - center, weights[rows], mass, rounding[rows].max(axis=0)
            clusters.append(_Cluster(center, *about))
        for w in wants:
            mixture = w.get("mixture")
            mixture = Mixture(mixture) if isinstance(mixture, str) else mixture
            try:
                table = _separate(clusters, mixture.in_unit(task.space.unit), w.get("wrong_side"))
            except UndefinedIndex as reason:
                sums[w].append(str(reason))
                continue
            sums[w].append(lowest_rival(table))
    return sums


def _separate(clusters: list[_Cluster], mixture: Mixture, wrong_side: str) -> np.ndarray:
    """NaN where densities are nowhere equal, or everywhere: such a rival sets no boundary."""
    inverses, volumes, weights = _components(clusters, mixture)
    table = np.full((len(clusters),) * 2, np.nan)
    for j, own in enumerate(clusters):
        for rival, other in enumerate(clusters):
            if rival != j:
                ratio = float(weights[j] - weights[rival] - (volumes[j] - volumes[rival]) / 2)
                gap = other.center - own.center
                border = equal_density(gap, (inverses[j], inverses[rival]), ratio)
                far = signed_distances(own.members, border)
                if np.isfinite(far).all():
                    far = np.maximum(far, 0) if wrong_side == "zero" else far
                    table[j, rival] = (own.weights * far**2).sum()
    return table


def _components(
    clusters: list[_Cluster], mixture: Mixture
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Inverse covariances, and the logarithms (K,) of determinants and of weights."""
    k, d, given = len(clusters), len(clusters[0].center), mixture.covariances
    estimated = isinstance(given, str)
    tables = [_covariance(cluster, given) for cluster in clusters] if estimated else list(given)
    if len(tables) != k:
        raise ValueError(
            f"covariances must have one entry per cluster ({k}), got {len(tables)}; "
            "entries follow the sorted labels."
        )
    if tables[0].shape[0] != d:
        raise ValueError(f"covariances must have X's {d} columns, got {tables[0].shape[0]}.")
    inverses, volumes = zip(*(_invert(t, i, estimated) for i, t in enumerate(tables)), strict=True)
    shares = mixture.weights
    if shares is None and estimated and given != "authors":
        shares = np.array([cluster.mass for cluster in clusters])
    weights = np.zeros(k) if shares is None else np.log(shares / shares.sum())
    return list(inverses), np.array(volumes), weights


def _covariance(cluster: _Cluster, rule: str) -> np.ndarray:
    members, weight = cluster.members, cluster.weights
    # Neither what the data were rounded by nor what their mean was is an extent.
    least = cluster.rounding + len(members) * np.finfo(np.float64).eps * np.abs(cluster.center)
    members = members * (np.abs(members).max(axis=0) > least)
    if rule == "full":
        table: np.ndarray = (members.T * weight) @ members / weight.sum()
        units = np.where(least > 0, least, 1)
        # Some direction, in units of each column's rounding, has no more extent than that.
        flat = np.linalg.eigvalsh(table / np.outer(units, units)).min() <= 1
        return np.zeros_like(table) if flat else table
    variances: np.ndarray = weight @ members**2 / weight.sum()
    if rule == "authors" and not variances.min() > DEGENERATE * variances.max():
        return np.ones_like(variances)
    return variances


def _invert(covariance: np.ndarray, k: int, estimated: bool) -> tuple[np.ndarray, float]:
    roots = covariance if covariance.ndim == 1 else np.linalg.eigvalsh(covariance)
    if not roots.min() > DEGENERATE * max(float(roots.max()), 0.0):
        if estimated:
            raise UndefinedIndex(f"cluster {k} has no extent in some direction, hence no density")
        kind = "a variance" if covariance.ndim == 1 else "an eigenvalue"
        raise ValueError(
            f"covariances must be positive definite, got {kind} of {roots.min():.3g} in component "
            f"{k}; add a little to its diagonal."
        )
    inverse = 1 / covariance if covariance.ndim == 1 else np.linalg.inv(covariance)
    return inverse, float(np.log(roots).sum())
