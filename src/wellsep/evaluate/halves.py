"""Index values on many half-samples of the objects, from statistics of one pass over a space.

The objects are split at random into G groups, and what an index needs is summed group by group:
distances to every cluster (silhouette), cluster means and products with them (Calinski-Harabasz,
Davies-Bouldin). A half-sample is a choice of G/2 groups; its statistics are sums over them, so no
distance is computed twice. Values equal those of the index on the half-sample itself.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._checks import UndefinedIndex, check_data
from ..compute.clusters import Clusters, one_hot
from ..compute.engines import Space, budget_bytes, host, open_space, share_out
from ..compute.pairs import distance_sums
from ..compute.statistics import Task
from ..indices import INDICES, score_partitions
from ..partitions import Partitions

_BLOCK = 1 << 20  # numbers worked on at once: 8 MB stay near the core


class Halves(NamedTuple):
    """Half-samples as choices of groups of objects."""

    group: np.ndarray  # (n,) group of each object
    chosen: np.ndarray  # (B, G) bool

    def objects(self, draw: int) -> np.ndarray:
        """Positions of the objects of one half-sample."""
        return np.flatnonzero(self.chosen[draw][self.group])


def draw_halves(n: int, n_draws: int, n_groups: int, rng: np.random.Generator) -> Halves:
    """Random groups of equal size; draws come as halves and their complements."""
    group = rng.permutation(np.arange(n) % n_groups)
    chosen = np.zeros((n_draws, n_groups), dtype=bool)
    for draw in range(0, n_draws, 2):
        chosen[draw, rng.permutation(n_groups)[: n_groups // 2]] = True
        if draw + 1 < n_draws:
            chosen[draw + 1] = ~chosen[draw]
    return Halves(group, chosen)


def score_halves(
    X: Any,
    partitions: Partitions,
    index: str,
    params: dict[str, Any],
    halves: Halves,
    *,
    n_jobs: int | None = None,
    device: Any = None,
) -> np.ndarray:
    """(B, M) values of one index with its own sign; NaN where undefined on a half-sample."""
    wanted = {w.name for w in INDICES[index].wants(**params).values()}
    if index in ("silhouette", "silhouette_cosine") and _sums_known(index, params):
        space = open_space(check_data(X), device=device, n_jobs=n_jobs)
        metric = params.get("metric", "cosine")
        return np.hstack(
            [_silhouettes(space, p, metric, params, halves) for p in _batches(partitions, halves)]
        )
    if wanted <= {"clusters", "within", "radii"}:
        space = open_space(check_data(X), device=device, n_jobs=n_jobs)
        return _centroid_values(space, partitions, index, params, halves)
    return np.stack(
        [
            _recomputed(X[objects], partitions.take(objects), (index, params), n_jobs, device)
            for objects in map(halves.objects, range(len(halves.chosen)))
        ]
    )


def _sums_known(index: str, params: dict[str, Any]) -> bool:
    metric = params.get("metric", "cosine")
    return isinstance(metric, str) and metric in ("euclidean", "sqeuclidean", "cosine")


def _recomputed(X: Any, part: Partitions, spec: Any, n_jobs: Any, device: Any) -> np.ndarray:
    return score_partitions(X, part, (spec,), n_jobs=n_jobs, device=device).values[:, 0]


def _batches(partitions: Partitions, halves: Halves) -> list[Partitions]:
    """Partitions in portions whose sums, kept apart by group, fit the memory budget."""
    n, n_groups = partitions.n_objects, halves.chosen.shape[1]
    most = max(1, int(budget_bytes() / (8 * n * n_groups)))
    batches: list[list[int]] = [[]]
    width = 0
    for m, k in enumerate(partitions.n_clusters.tolist()):
        if batches[-1] and width + k > most:
            batches.append([])
            width = 0
        batches[-1].append(m)
        width += k
    return [
        Partitions(
            partitions.codes[b],
            tuple(partitions.classes[m] for m in b),
            tuple(partitions.names[m] for m in b),
            partitions.coverage[b],
        )
        for b in batches
    ]


def _counts(partitions: Partitions, halves: Halves) -> np.ndarray:
    """(B, ΣK) members of every cluster in every half-sample."""
    table = one_hot(partitions.codes, partitions.n_clusters, None)
    groups = one_hot(halves.group[None], np.array([halves.chosen.shape[1]]), None)
    return halves.chosen.astype(float) @ (groups.T @ table).toarray()


def _silhouettes(
    space: Space, partitions: Partitions, metric: str, params: dict[str, Any], halves: Halves
) -> np.ndarray:
    order = np.argsort(halves.group, kind="stable")
    if metric == "cosine":
        sums = _cosine_sums(space, partitions, halves, order)
    else:
        sums = host(distance_sums(Task(space, partitions, None), metric, halves.group).sums)
    counts = _counts(partitions, halves)
    codes = partitions.codes[:, order]
    offsets = partitions.offsets
    singleton = params.get("singleton", 0)
    pieces = list(_pieces(halves, int(offsets[-1])))
    found: list[Any] = [None] * len(pieces)

    dtype = np.float32 if sums_are_single(space) else np.float64

    def work(i: int, rows: slice, draws: np.ndarray) -> None:
        part = np.ascontiguousarray(sums[:, :, rows], dtype=dtype)  # (G, ΣK, b)
        pick = halves.chosen[draws].astype(dtype)
        widths = _widths(part, pick, codes[:, rows], counts[draws], offsets, singleton)
        found[i] = _sum_by_cluster(widths, codes[:, rows], partitions)

    share_out(space.n_jobs, work, iter([[(i, *piece) for i, piece in enumerate(pieces)]]))
    totals = np.zeros(counts.shape)  # (B, ΣK) widths summed over each cluster's members
    for (_, draws), part in zip(pieces, found, strict=True):
        totals[draws] += part
    return _average(totals, counts, offsets, params.get("average", "point"))


def _pieces(halves: Halves, width: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows sorted by group, in small pieces, each with the draws that contain its group."""
    stop = 0
    for g, size in enumerate(np.bincount(halves.group, minlength=halves.chosen.shape[1])):
        start, stop = stop, stop + int(size)
        draws = np.flatnonzero(halves.chosen[:, g])
        if len(draws) == 0:
            continue
        step = max(8, _BLOCK // (len(draws) * width))
        for row in range(start, stop, step):
            yield slice(row, min(row + step, stop)), draws


def _sum_by_cluster(values: np.ndarray, codes: np.ndarray, partitions: Partitions) -> np.ndarray:
    """(draws, ΣK) sums of (draws, M, b) values over the members of every cluster."""
    members = one_hot(codes, partitions.n_clusters, None).toarray()
    parts = enumerate(itertools.pairwise(partitions.offsets))
    return np.hstack([values[:, m] @ members[:, a:b] for m, (a, b) in parts])


def sums_are_single(space: Space) -> bool:
    """Whether the distances behind the sums carry single precision only."""
    return str(space.X.dtype).endswith("float32")


def _widths(
    part: np.ndarray, pick: np.ndarray, codes: np.ndarray, counts: np.ndarray, offsets: np.ndarray,
    singleton: float,
) -> np.ndarray:  # fmt: skip
    """(draws, M, b) silhouette widths; 0 where not counted.

    ``part`` (G, ΣK, b) distance sums per group, ``pick`` (draws, G), ``counts`` (draws, ΣK).
    """
    far = np.finfo(part.dtype).max / (8 * len(part))  # stands for no distance, and may be summed
    at = np.arange(codes.shape[1])
    own = offsets[:-1, None] + np.maximum(codes, 0)  # (M, b)
    mine = part[:, own, at]  # (G, M, b)
    part[:, own, at] = far
    a = (pick @ mine.reshape(len(part), -1)).reshape(len(pick), *own.shape)
    a *= (1 / np.maximum(counts - 1, 1)).astype(part.dtype)[:, own]
    others = (pick @ part.reshape(len(part), -1)).reshape(len(pick), *part.shape[1:])
    others *= (1 / np.maximum(counts, 1)).astype(part.dtype)[:, :, None]
    empty = counts == 0
    if empty.any():
        others[empty] = far
    b = np.empty_like(a)
    for m, (start, stop) in enumerate(itertools.pairwise(offsets)):  # reduceat takes 3 times longer
        others[:, start:stop].min(axis=1, out=b[:, m])
    top = np.maximum(a, b)
    widths = np.divide(b - a, top, out=np.zeros_like(top), where=top > 0)
    if (counts == 1).any():
        widths = np.where(counts[:, own] <= 1, part.dtype.type(singleton), widths)
    return np.where(codes >= 0, widths, 0).astype(np.float64, copy=False)


def _cosine_sums(
    space: Space, partitions: Partitions, halves: Halves, order: np.ndarray
) -> np.ndarray:
    """(G, ΣK, n) sums of 1 - cos: a cluster's size minus the product with the sum of its rows."""
    unit = host(space.unit_rows(slice(None)))
    n_groups = halves.chosen.shape[1]
    sums = np.empty((n_groups, int(partitions.offsets[-1]), space.n))
    empty = 1 - np.einsum("ij,ij->i", unit, unit)  # 1 where a row is zero, else rounding
    for g in range(n_groups):
        inside = halves.group == g
        members = one_hot(partitions.codes[:, inside], partitions.n_clusters, None)
        size = np.asarray(members.sum(axis=0))[:, None]
        sums[g] = size - (members.T @ unit[inside]) @ unit[order].T
        sums[g][sums[g] <= 1e-14 * size] = 0.0  # equal directions, up to rounding
    # an object is at distance 0 from itself, also where its row is zero
    for codes, start in zip(partitions.codes, partitions.offsets[:-1], strict=True):
        counted = np.flatnonzero(codes[order] >= 0)
        objects = order[counted]
        sums[halves.group[objects], start + codes[objects], counted] -= empty[objects]
    return np.maximum(sums, 0, out=sums)


def _average(
    totals: np.ndarray, counts: np.ndarray, offsets: np.ndarray, average: str
) -> np.ndarray:
    values = np.full((len(totals), len(offsets) - 1), np.nan)
    for m in range(values.shape[1]):
        part = slice(offsets[m], offsets[m + 1])
        total, size = totals[:, part], counts[:, part]
        present = (size > 0).sum(axis=1)
        usable = (present >= 2) & (present < size.sum(axis=1))
        if average == "point":
            value = total.sum(axis=1) / np.maximum(size.sum(axis=1), 1)
        else:
            value = (total / np.maximum(size, 1)).sum(axis=1) / np.maximum(present, 1)
        values[usable, m] = value[usable]
    return values


def _centroid_values(
    space: Space, partitions: Partitions, index: str, params: dict[str, Any], halves: Halves
) -> np.ndarray:
    """Indices of cluster means and scatter around them, per half-sample."""
    wants = INDICES[index].wants(**params)
    power = next((w.get("q", 1) for w in wants.values() if w.name == "radii"), None)
    order = np.argsort(halves.group, kind="stable")
    X = host(space.centred).astype(np.float64)[order]
    square = np.einsum("ij,ij->i", X, X)
    codes, offsets = partitions.codes[:, order], partitions.offsets
    chosen = halves.chosen.astype(float)
    edges = np.concatenate([[0], np.cumsum(np.bincount(halves.group, minlength=chosen.shape[1]))])
    rows = [slice(a, b) for a, b in itertools.pairwise(edges)]
    members = [one_hot(codes[:, r], partitions.n_clusters, None) for r in rows]
    sums = np.stack([t.T @ X[r] for t, r in zip(members, rows, strict=True)])  # (G, ΣK, d)
    squares = np.stack([t.T @ square[r] for t, r in zip(members, rows, strict=True)])  # (G, ΣK)
    counts = _counts(partitions, halves)
    total = np.tensordot(chosen, sums, axes=1)  # (B, ΣK, d)
    length = np.einsum("bkd,bkd->bk", total, total)
    within = np.maximum(chosen @ squares - length / np.maximum(counts, 1), 0)
    radii = None
    if power is not None:
        radii = _radii(space, X, square, codes, sums, length, counts, partitions, halves, power)
    values = np.full((len(chosen), len(partitions)), np.nan)
    for draw in range(len(chosen)):
        for m, (a, b) in enumerate(itertools.pairwise(offsets)):
            keep = a + np.flatnonzero(counts[draw, a:b])
            mass = counts[draw, keep]
            if not 2 <= len(mass) < mass.sum():
                continue
            centers, mean = total[draw, keep] / mass[:, None], total[draw, a:b].sum(axis=0)
            clusters = Clusters(mass, mass, centers, mean / mass.sum(), space.shift)
            known: dict[str, Any] = {"clusters": clusters, "within": within[draw, keep]}
            if radii is not None:
                known["radii"] = radii[draw, keep]
            statistics = {name: known[w.name] for name, w in wants.items()}
            with contextlib.suppress(UndefinedIndex):
                values[draw, m] = INDICES[index].formula(**statistics, **params)
    return values


def _radii(space, X, square, codes, sums, length, counts, partitions, halves, power) -> np.ndarray:
    """(B, ΣK) mean of ‖x − v‖^q: x·v is a sum over groups, as v itself is."""
    own = partitions.offsets[:-1, None] + np.maximum(codes, 0)  # (M, n)
    counted = codes >= 0
    safe = np.maximum(counts, 1)
    lengths = length / safe**2
    pieces = list(_pieces(halves, max(len(partitions), int(partitions.offsets[-1]) // 4)))
    found: list[Any] = [None] * len(pieces)

    def work(i: int, rows: slice, draws: np.ndarray) -> None:
        mine, at = own[:, rows], np.arange(rows.stop - rows.start)
        products = np.stack([(table @ X[rows].T)[mine, at] for table in sums])  # (G, M, b)
        pick = halves.chosen[draws].astype(float)
        dot = (pick @ products.reshape(len(products), -1)).reshape(len(draws), *mine.shape)
        gap = square[rows] - 2 * dot / safe[draws][:, mine] + lengths[draws][:, mine]
        away = np.where(counted[:, rows], np.maximum(gap, 0) ** (power / 2), 0.0)
        found[i] = _sum_by_cluster(away, codes[:, rows], partitions)

    share_out(space.n_jobs, work, iter([[(i, *piece) for i, piece in enumerate(pieces)]]))
    total = np.zeros(counts.shape)
    for (_, draws), part in zip(pieces, found, strict=True):
        total[draws] += part
    return np.where(counts > 1, total / safe, 0.0)  # one object lies on its own mean
