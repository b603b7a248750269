"""Distances of objects to all centres of a partition, on the device; (K, K) or (n,) leave it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from wellsep.compute.clusters import Clusters, centre_distances
from wellsep.compute.engines import host
from wellsep.compute.statistics import Task, Want
from wellsep.compute.tensor_batches import (
    codes_there,
    member_table,
    on_device,
    row_parts,
    weights_there,
)

COPIES = 8  # float64 tables of (rows, K) at a time


def table_pass(task: Task, clusters: list[Clusters], wants: list[Want]) -> dict[Want, list[Any]]:
    """``separation``, ``to_centres``, ``margins`` and ``simplified`` of all partitions."""
    codes, weights = codes_there(task), weights_there(task)
    found: dict[Want, list[Any]] = {w: [] for w in wants}
    for m, cluster in enumerate(clusters):
        for w, values in _of_one(task, cluster, codes[m].to(torch.int64), weights, wants).items():
            found[w].append(host(values))
    return found


def _of_one(
    task: Task, cluster: Clusters, codes: torch.Tensor, weights: torch.Tensor, wants: list[Want]
) -> dict[Want, torch.Tensor]:
    space, k = task.space, len(cluster.mass)
    centers = on_device(cluster.centers, weights)
    apart = on_device(centre_distances(cluster.centers), weights)
    shift = on_device(space.shift, weights)
    found = {w: _empty(w, k, weights) for w in wants}
    for rows in row_parts(space.n, 8.0 * (COPIES * k + 3 * space.d)):
        kept = (codes[rows] >= 0).nonzero()[:, 0] + rows.start
        X = space.X[kept].to(torch.float64) - shift
        table = _Table(X, codes[kept], centers, apart)
        for w in wants:
            values = _VALUES[w.name](table, w)
            if w.name in _OBJECTS:
                found[w][kept] = values
            else:
                members = member_table(codes[kept][None], np.array([k]), len(X), torch.float64)
                found[w] += (members * weights[kept]) @ values
    return found


class _Table:
    """Some counted rows of one partition, and their products with its centres."""

    def __init__(
        self, X: torch.Tensor, codes: torch.Tensor, centers: torch.Tensor, apart: torch.Tensor
    ) -> None:
        self.X, self.own, self.centers = X, codes[:, None], centers
        self.apart = apart
        self.lengths = (centers * centers).sum(dim=1)
        self.products = X @ centers.T  # (b, K)

    @cached_property
    def signed(self) -> torch.Tensor:
        """(b, K) distance to the plane between the own centre and each other; own: +inf.

        Coinciding centres have no plane: NaN.
        """
        score = self.products - 0.5 * self.lengths
        signed = score.gather(1, self.own) - score
        apart = self.apart[self.own[:, 0]]
        signed /= apart.masked_fill_(apart == 0, torch.nan)
        return signed.scatter_(1, self.own, torch.inf)

    @cached_property
    def distances(self) -> torch.Tensor:
        """(b, K) distances to every centre; the own one from differences."""
        squares = (self.X * self.X).sum(dim=1)[:, None] - 2 * self.products + self.lengths
        gap = self.X - self.centers[self.own[:, 0]]
        squares.scatter_(1, self.own, (gap * gap).sum(dim=1)[:, None])
        return squares.clamp_(min=0).sqrt_()


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
    return torch.where(top > 0, (b - a) / top, 0.0)


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
