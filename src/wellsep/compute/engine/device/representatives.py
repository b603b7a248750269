"""Representatives and the densities they see, on the device, for all partitions in a few calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from array_api_compat import torch as xp

from wellsep._threads import budget_bytes
from wellsep.compute.data.device_rows import row_parts, to_device
from wellsep.compute.data.rows import host
from wellsep.compute.metrics.squares import rows_of, squares
from wellsep.compute.requests import Task, Want


class Batch(NamedTuple):
    """g partitions of the same n objects into k clusters each."""

    space: Any
    which: list[int]  # (g,) their places among all partitions
    k: int
    codes: torch.Tensor  # (g, n) int64, -1 where not counted

    def members(self, rows: slice = slice(None)) -> torch.Tensor:
        """(g, K, n) whether an object belongs to a cluster."""
        clusters = torch.arange(self.k, device=self.codes.device)
        return self.codes[:, None, rows] == clusters[:, None]

    def part(self, rows: slice) -> Batch:
        """The same partitions of some of the objects."""
        return self._replace(codes=self.codes[:, rows])

    def safe(self, rows: slice = slice(None)) -> torch.Tensor:
        """(g, n) codes to index with: an object that is not counted gets the first cluster."""
        return self.codes[:, rows].clamp(min=0)

    def totals(self, values: torch.Tensor) -> torch.Tensor:
        """(g, K) sums over clusters of ``values`` (g, n)."""
        sums = self.space.partition_sums(values, self.codes, np.full(len(self.which), self.k))
        return sums.reshape(-1, self.k)

    def sums(self, rows: torch.Tensor) -> torch.Tensor:
        """(g, K, d) sums over clusters of rows (n, d)."""
        sums = self.space.cluster_sums(rows, self.codes, np.full(len(self.which), self.k))
        return sums.reshape(len(self.which), self.k, -1)


def batches(task: Task, codes: np.ndarray, bytes_per_cluster: float) -> Iterator[Batch]:
    """Partitions grouped by their number of clusters, as many at once as the budget allows."""
    counts = task.partitions.n_clusters
    for k in np.unique(counts).tolist():
        group = np.flatnonzero(counts == k)
        at_once = max(1, int(budget_bytes() / max(k * bytes_per_cluster, 1.0)))
        for start in range(0, len(group), at_once):
            which = group[start : start + at_once]
            yield Batch(task.space, which.tolist(), k, task.space.index(codes[which]))


def own_squares(
    X: torch.Tensor, points: torch.Tensor, batch: Batch, size: torch.Tensor | None = None
) -> torch.Tensor:
    """(g, n) squared distances of rows to their cluster's point (g, K, d), from differences.

    With ``size`` (g, K) points are sums of so many rows, and the distances those to their means:
    ‖nx − Σx‖²/n² is exact for whole numbers, as x − mean is not.
    """
    (n, d), g = X.shape, len(batch.which)
    square = torch.empty((g, n), dtype=X.dtype, device=X.device)
    first = torch.arange(g, device=X.device)[:, None] * batch.k
    flat = points.reshape(g * batch.k, d)
    for rows in row_parts(n, 8 * g * d * 4):
        clusters = first + batch.safe(rows)
        times: Any = 1.0 if size is None else size.reshape(-1)[clusters]
        gap = flat[clusters]  # (g, b, d)
        gap -= X[rows] if size is None else X[rows] * times[..., None]
        square[:, rows] = gap.square_().sum(dim=-1) / times**2
    return square


class _Clusters(NamedTuple):
    """All clusters of a batch, about the mean of the space."""

    batch: Batch
    size: torch.Tensor  # (g, K)
    centers: torch.Tensor  # (g, K, d)
    squares: torch.Tensor  # (g, n) squared distance of each object to its own centre
    points: torch.Tensor  # (g, K, r, d) representatives
    valid: torch.Tensor  # (g, K, r) whether there is one
    deviations: torch.Tensor  # (g, K)


def represented_on_device(
    task: Task, codes: np.ndarray, w: Want, shrink: np.ndarray
) -> list[tuple[np.ndarray, ...]]:
    """(deviations, distances, densities, shares) of each partition, its clusters in ``codes``."""
    unit = task.space.unit
    X = task.space.X.to(torch.float64) - to_device(np.round(task.space.shift), task.space.X)
    results: list[Any] = [None] * len(codes)
    each = 24.0 * (task.space.n + w.get("count") * task.space.d)  # bytes of a cluster
    for batch in batches(task, codes, each):
        clusters = _describe(X, batch, w.get("count"))
        distance, density = _between(X, clusters, w.get("rule"))
        shares = _near(X, clusters, w.get("rule"), unit, shrink)
        lengths = [host(clusters.deviations) * unit, host(distance) * unit]
        parts = zip(batch.which, *lengths, host(density), host(shares), strict=True)
        for m, *of_partition in parts:
            results[m] = tuple(of_partition)
    return results


def _describe(X: torch.Tensor, batch: Batch, count: int) -> _Clusters:
    sums, size = batch.sums(X), batch.totals(torch.ones_like(batch.codes, dtype=X.dtype))
    centers = sums / size[..., None]
    squares, members = own_squares(X, sums, batch, size), batch.members()
    reach = (X * X).sum(dim=1).max()
    extent = torch.where(members, squares[:, None], 0.0).amax(dim=-1)
    flat = extent <= 1e-24 * reach  # the rounding of the mean is no extent
    squares = torch.where(flat.gather(1, batch.safe()), 0.0, squares)
    chosen, valid = farthest_first(X, batch, members, squares, flat, count)
    points = torch.where(flat[:, :, None, None], centers[:, :, None], X[chosen])
    scatter = batch.totals(squares)
    deviations = (scatter / (size - 1).clamp(min=1)).sqrt()
    return _Clusters(batch, size, centers, squares, points, valid, deviations)


def farthest_first(
    X: torch.Tensor,
    batch: Batch,
    members: torch.Tensor,
    squares: torch.Tensor,
    flat: torch.Tensor,
    count: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(g, K, r) objects: farthest from the centre, then farthest from those chosen; of equals the
    first. Not valid from where every object of the cluster coincides with a chosen one."""

    def farthest(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.where(members, values[:, None], -torch.inf).max(dim=-1)

    _, far = farthest(squares)
    alive = torch.ones_like(flat)
    chosen, valid = [far], [alive]
    nearest = torch.full_like(squares, torch.inf)
    for _ in range(1, min(count, X.shape[0])):
        nearest = torch.minimum(nearest, own_squares(X, X[far], batch))
        top, next_far = farthest(nearest)
        alive = alive & ~flat & (top > 0)
        far = torch.where(alive, next_far, far)
        chosen.append(far)
        valid.append(alive)
    return torch.stack(chosen, dim=-1), torch.stack(valid, dim=-1)


def _between(X: torch.Tensor, clusters: _Clusters, rule: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(g, K, K) mean distance of mutually nearest representatives, and the density between them."""
    g, k, r, d = clusters.points.shape
    i, j = (torch.as_tensor(side, device=X.device) for side in np.triu_indices(k, 1))
    some = row_parts(len(i), 8.0 * g * r * (6 * d + 3 * r), least=1)
    parts = [_of_pairs(X, clusters, rule, i[pairs], j[pairs]) for pairs in some]
    mean, dense = (torch.cat(values, dim=1) for values in zip(*parts, strict=True))
    return _symmetric(mean, i, j, k), _symmetric(dense, i, j, k)


def _of_pairs(
    X: torch.Tensor, clusters: _Clusters, rule: str, i: torch.Tensor, j: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(g, P) the same of some pairs of clusters."""
    g, r = len(clusters.points), clusters.points.shape[2]
    middle, apart, mutual = _closest(clusters, i, j)
    spread = clusters.deviations
    radius = spread[:, i] if rule == "first" else (spread[:, i] + spread[:, j]) / 2  # (g, P)
    inside = torch.zeros((g, len(i), r), dtype=X.dtype, device=X.device)
    limit = radius[:, :, None, None]
    points = rows_of(middle.reshape(-1, X.shape[1]), xp=xp)
    for rows in row_parts(len(X), 8.0 * g * len(i) * (3 * r + 1)):
        reach = squares(points, rows_of(X[rows], xp=xp), xp).sqrt_().reshape(g, len(i), r, -1)
        members = clusters.batch.members(rows)
        either = (members[:, i] | members[:, j])[:, :, None]
        inside += ((reach < limit) & either).sum(dim=-1)
    both = (clusters.size[:, i] + clusters.size[:, j])[:, :, None]
    share = apart * inside / (2 * radius[:, :, None] * both)  # radius 0: undefined under "first"
    count = mutual.sum(dim=-1)
    dense = torch.where(mutual, share, 0.0).sum(dim=-1) / count
    if rule != "first":
        dense = torch.where(radius > 0, dense, 0.0)
    return torch.where(mutual, apart, 0.0).sum(dim=-1) / count, dense


def _symmetric(values: torch.Tensor, i: torch.Tensor, j: torch.Tensor, k: int) -> torch.Tensor:
    table = torch.zeros((len(values), k, k), dtype=values.dtype, device=values.device)
    table[:, i, j] = values
    table[:, j, i] = values
    return table


def _closest(
    clusters: _Clusters, i: torch.Tensor, j: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of every two clusters: midpoints (g, P, r, d) of the representatives of the first with those
    of the second nearest to them, their distances, and whether the two are mutually nearest."""
    g, _, r, d = clusters.points.shape
    pairs = g * len(i)
    left = clusters.points[:, i].reshape(pairs, r, d)
    right = clusters.points[:, j].reshape(pairs, r, d)
    left_valid = clusters.valid[:, i].reshape(pairs, r)
    right_valid = clusters.valid[:, j].reshape(pairs, r)
    table = torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")
    table = torch.where(left_valid[:, :, None] & right_valid[:, None, :], table, torch.inf)
    nearest_right, nearest_left = table.argmin(dim=2), table.argmin(dim=1)
    itself = torch.arange(r, device=left.device)
    mutual = left_valid & (nearest_left.gather(1, nearest_right) == itself)
    partner = right.gather(1, nearest_right[:, :, None].expand(-1, -1, d))
    apart = table.gather(2, nearest_right[:, :, None])[:, :, 0]
    shape = (g, len(i), r)
    middle = ((left + partner) / 2).reshape(*shape, d)
    return middle, torch.where(mutual, apart, 0.0).reshape(shape), mutual.reshape(shape)


def _near(
    X: torch.Tensor, clusters: _Clusters, rule: str, unit: float, shrink: np.ndarray
) -> torch.Tensor:
    """(g, S, K) mean share of the members near the representatives, for each shrinkage."""
    batch, centers, spread = clusters.batch, clusters.centers, clusters.deviations
    g, k, r, d = clusters.points.shape
    mean = spread.mean(dim=1, keepdim=True) ** 2
    limit = spread / unit if rule == "first" else mean.expand(-1, k)  # (g, K)
    points = clusters.points - centers[:, :, None]
    points = torch.where(clusters.valid[..., None], points, 0.0)
    lengths = (points * points).sum(dim=-1)  # (g, K, r)
    offset = (points * centers[:, :, None]).sum(dim=-1)
    counts = torch.zeros((g, len(shrink), k), dtype=X.dtype, device=X.device)
    for rows in row_parts(len(X), 8.0 * g * r * (k + 6)):
        block = batch.part(rows)
        codes = block.safe()
        products = (points.reshape(-1, d) @ X[rows].T).reshape(g, k, r, -1)
        products = products.gather(1, codes[:, None, None].expand(-1, -1, r, -1))[:, 0]  # (g, r, b)
        products -= _of_own(offset, codes)
        length, valid = _of_own(lengths, codes), _of_own(clusters.valid, codes)
        bound = limit.gather(1, codes)[:, None]
        for s, keep in enumerate((1 - shrink).tolist()):
            # about the centre a shrunk representative is a multiple of itself
            squares = clusters.squares[:, None, rows] - 2 * keep * products + keep**2 * length
            seen = ((squares.clamp_(min=0) < bound) & valid).sum(dim=1)
            counts[:, s] += block.totals(seen.to(X.dtype))
    return counts / (clusters.size * clusters.valid.sum(dim=-1))[:, None]


def _of_own(table: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """(g, r, b) entries of each object's own cluster in ``table`` (g, K, r)."""
    r = table.shape[2]
    return table.transpose(1, 2).gather(2, codes[:, None].expand(-1, r, -1))
