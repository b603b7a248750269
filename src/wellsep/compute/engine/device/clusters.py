"""Row passes on the device: sums over clusters, products of columns, distances to centres.

What leaves the device is (K,), (K, K), or one value per object where that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp

from wellsep.compute.data.opening import host
from wellsep.compute.engine.device.batches import (
    batches,
    centred,
    codes_on_device,
    member_table,
    own_squares,
    row_parts,
    to_device,
    totals,
    weights_on_device,
)
from wellsep.compute.metrics.table import rows_of, squares
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.centre_distances import TABLES, Clusters
from wellsep.compute.statistics.centre_pairs import centre_distances, same_place
from wellsep.compute.statistics.cluster_moments import SpectrumOf, spectra, spectrum_of

COPIES = 8  # float64 tables of (rows, K) at a time


def sum_members(task: Task, rows_of: Callable[[slice], Any]) -> torch.Tensor:
    """(ΣK, e) float64: weighted sums over every cluster of the rows that ``rows_of`` gives."""
    space, partitions = task.space, task.partitions
    codes, weights = codes_on_device(task).to(torch.int64), weights_on_device(task)
    width = int(partitions.offsets[-1])
    total: Any = 0.0
    for rows in row_parts(space.n, 16.0 * (width + space.d)):
        n = rows.stop - rows.start
        table = member_table(codes[:, rows], partitions.n_clusters, n, torch.float64)
        if task.weights is not None:
            table *= weights[rows]
        total = total + table @ rows_of(rows).to(torch.float64)
    return total


def sweep_rows(task: Task, clusters: list[Clusters], wants: list[Want]) -> dict[Want, list[Any]]:
    tables = [w for w in wants if w.name in TABLES]
    rest = [w for w in wants if w.name not in TABLES]
    spread = spread_pass(task, [c.centers for c in clusters], rest) if rest else {}
    return spread | (table_pass(task, clusters, tables) if tables else {})


def spread_pass(task: Task, centers: list[np.ndarray], wants: list[Want]) -> dict[Want, list[Any]]:
    """``within`` and ``radii``: powers of the distances to the own centre, summed by cluster."""
    space, codes, weights = task.space, codes_on_device(task), weights_on_device(task)
    found: dict[Want, list[Any]] = {w: [None] * len(task.partitions) for w in wants}
    for batch in batches(task.partitions, codes, 16.0 * space.n):
        points = to_device(np.stack([centers[m] for m in batch.which]), weights)
        sums: dict[Want, Any] = dict.fromkeys(wants, 0.0)
        for rows in row_parts(space.n, 24.0 * len(points) * space.d):
            part = batch.part(rows)
            squares = own_squares(centred(space, rows), points, part)
            for w in wants:
                power = squares if w.name == "within" else squares ** (w.get("q", 1) / 2)
                sums[w] = sums[w] + totals(weights[rows] * power, part)
        for w in wants:
            if w.name == "radii":
                sums[w] /= totals(weights.expand(len(batch.which), -1), batch)
            for m, values in zip(batch.which, host(sums[w]), strict=True):
                found[w][m] = values
    return found


def spectrum_on_device(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    def rows_of(centred: bool) -> SpectrumOf:
        return lambda rows, weights: spectrum_of(
            *products(task, rows, weights, centred), float(weights.sum())
        )

    return spectra(task, wants, rows_of)


def products(
    task: Task, rows: np.ndarray, weights: np.ndarray, about_mean: bool
) -> tuple[np.ndarray, np.ndarray]:
    """XᵀX (XXᵀ where that is smaller) of some rows, and its diagonal, on the host."""
    X = centred(task.space) if about_mean else task.space.X.to(torch.float64)
    if len(rows) < len(X):
        X = X[torch.as_tensor(rows, device=X.device)]
    given = to_device(weights, X)
    if about_mean:
        X = X - (given @ X) / given.sum()
    X = X * given.sqrt()[:, None]
    small = X.T @ X if X.shape[1] <= len(X) else X @ X.T
    return host(small), host((X * X).sum(dim=0))


def table_pass(task: Task, clusters: list[Clusters], wants: list[Want]) -> dict[Want, list[Any]]:
    """``separation``, ``to_centres``, ``margins`` and ``simplified`` of all partitions."""
    codes, weights = codes_on_device(task), weights_on_device(task)
    found: dict[Want, list[Any]] = {w: [] for w in wants}
    for m, cluster in enumerate(clusters):
        for w, values in _of_one(task, cluster, codes[m].to(torch.int64), weights, wants).items():
            found[w].append(host(values))
    return found


def _of_one(
    task: Task, cluster: Clusters, codes: torch.Tensor, weights: torch.Tensor, wants: list[Want]
) -> dict[Want, torch.Tensor]:
    space, k = task.space, len(cluster.mass)
    centers = to_device(cluster.centers, weights)
    apart = to_device(centre_distances(cluster.centers), weights)
    shift = to_device(space.shift, weights)
    found = {w: _empty(w, k, weights) for w in wants}
    for rows in row_parts(space.n, 8.0 * (COPIES * k + 3 * space.d)):
        kept = (codes[rows] >= 0).nonzero()[:, 0] + rows.start
        X = space.X[kept].to(torch.float64) - shift
        table = _Table(X, codes[kept], centers, apart, same_place(cluster.centers))
        for w in wants:
            values = _VALUES[w.name](table, w)
            if w.name in _OBJECTS:
                found[w][kept] = values
            else:
                members = member_table(codes[kept][None], np.array([k]), len(X), torch.float64)
                found[w] += (members * weights[kept]) @ values
    return found


class _Table:
    """Some counted rows of one partition, and their squared distances to its centres."""

    def __init__(
        self,
        X: torch.Tensor,
        codes: torch.Tensor,
        centers: torch.Tensor,
        apart: torch.Tensor,
        least: float,
    ) -> None:
        self.own, self.apart, self.least = codes[:, None], apart, least
        gap = X - centers[codes]
        self.squares = squares(rows_of(X, xp=xp), rows_of(centers, xp=xp), xp)  # (b, K)
        self.squares.scatter_(1, self.own, (gap * gap).sum(dim=1)[:, None])

    @cached_property
    def signed(self) -> torch.Tensor:
        """(b, K) distance to the plane between the own centre and each other; own: +inf.

        Coinciding centres have no plane: NaN.
        """
        signed = self.squares - self.squares.gather(1, self.own)
        apart = self.apart[self.own[:, 0]]
        signed /= 2 * apart.masked_fill_(apart == 0, torch.nan)
        return signed.scatter_(1, self.own, torch.inf)

    @cached_property
    def distances(self) -> torch.Tensor:
        """(b, K) distances to every centre; the own one from differences."""
        return self.squares.sqrt()


def _separation(table: _Table, w: Want) -> torch.Tensor:
    signed = table.signed.scatter(1, table.own, 0.0)
    if w.get("wrong_side") == "zero":
        signed.clamp_(min=0)
    return signed.square_()


def _to_centres(table: _Table, w: Want) -> torch.Tensor:
    return table.distances


def _margins(table: _Table, w: Want) -> torch.Tensor:
    return table.signed.nan_to_num(nan=torch.inf, posinf=torch.inf).amin(dim=1)


def _simplified(table: _Table, w: Want) -> torch.Tensor:
    a = table.distances.gather(1, table.own)[:, 0]
    b = table.distances.scatter(1, table.own, torch.inf).amin(dim=1)
    top = torch.maximum(a, b)
    return torch.where(top > table.least, (b - a) / top, 0.0)


_VALUES = {
    "separation": _separation,
    "to_centres": _to_centres,
    "margins": _margins,
    "simplified": _simplified,
}
_OBJECTS = ("margins", "simplified")  # one value per object instead of a (K, K) table


def _empty(w: Want, k: int, like: torch.Tensor) -> torch.Tensor:
    if w.name in _OBJECTS:
        return torch.full_like(like, torch.nan)
    return torch.zeros((k, k), dtype=torch.float64, device=like.device)
