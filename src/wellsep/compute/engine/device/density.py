"""Variances and counts of S_Dbw on the device, for all partitions in a few calls."""

from __future__ import annotations

from typing import Any

import torch
from array_api_compat import torch as xp

from wellsep.compute.data.opening import host
from wellsep.compute.engine.device.batches import (
    Batch,
    batches,
    centred,
    cluster_means,
    codes_on_device,
    own_squares,
    row_parts,
    weights_on_device,
)
from wellsep.compute.metrics.table import rows_of, squares
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.ball_counts import Spread, balls_from, warn_of_empty


def density_on_device(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    X, codes, weights = centred(task.space), codes_on_device(task), weights_on_device(task)
    found: dict[Want, list[Any]] = {w: [None] * len(task.partitions) for w in wants}
    for batch in batches(task.partitions, codes, 16.0 * task.space.n):
        centers, mass = cluster_means(X, batch, weights)
        variances, total = _variances(X, batch, weights, centers, mass)
        spreads = [Spread(*map(host, parts)) for parts in zip(centers, variances, total)]  # noqa: B905
        for m, spread in zip(batch.which, spreads, strict=True):
            for w in wants:
                found[w][m] = spread
        for w in (w for w in wants if w.name == "balls"):
            near, between = _counts(X, batch, weights, centers, variances, w)
            for m, a, b in zip(batch.which, host(near), host(between), strict=True):
                found[w][m] = balls_from(a, b, w)
    warn_of_empty(found)
    return found


def _weighted(batch: Batch, weights: torch.Tensor, rows: slice) -> torch.Tensor:
    """(g, K, b) weights of the rows in every cluster."""
    return batch.members(rows).to(weights.dtype) * weights[rows]


def _variances(
    X: torch.Tensor,
    batch: Batch,
    weights: torch.Tensor,
    centers: torch.Tensor,
    mass: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(g, K, d) about the centres, and (g, d) of all counted objects."""
    g, k, d = centers.shape
    squares = torch.zeros_like(centers)
    first = torch.arange(g, device=X.device)[:, None] * k
    for rows in row_parts(len(X), 8.0 * g * (3 * d + 3 * k)):
        gap = centers.reshape(g * k, d)[first + batch.safe(rows)]  # (g, b, d)
        gap -= X[rows]
        squares += _weighted(batch, weights, rows) @ gap.square_()
    whole = mass.sum(dim=1, keepdim=True)
    mean = (mass[:, :, None] * centers).sum(dim=1) / whole
    between = (mass[:, :, None] * (centers - mean[:, None]) ** 2).sum(dim=1)
    return squares / mass[:, :, None], (squares.sum(dim=1) + between) / whole


def _counts(
    X: torch.Tensor,
    batch: Batch,
    weights: torch.Tensor,
    centers: torch.Tensor,
    variances: torch.Tensor,
    w: Want,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(g, K, K) mass of each cluster near each centre, and near each midpoint."""
    g, k, d = centers.shape
    # (1/K)·√Σ‖σ_k‖ with σ_k the variances of cluster k (equation 25 of the ACE paper)
    limit = variances.norm(dim=2).sum(dim=1) / k**2
    limit = limit[:, None, None]
    inside = torch.lt if w.get("strict") else torch.le
    places = rows_of(centers.reshape(g * k, d), xp=xp)
    apart = torch.cdist(centers, centers, compute_mode="donot_use_mm_for_euclid_dist").square_()
    near = torch.zeros((g, k, k), dtype=X.dtype, device=X.device)
    between = torch.zeros_like(near)
    owns = own_squares(X, centers, batch)
    for rows in row_parts(len(X), 8.0 * g * k * 5):
        part, own = X[rows], owns[:, None, rows]
        at = batch.safe(rows)[:, None]  # (g, 1, b)
        table = squares(places, rows_of(part, xp=xp), xp).reshape(g, k, -1)
        table.scatter_(1, at, own)
        weighted = _weighted(batch, weights, rows)
        near += weighted @ inside(table, limit).to(X.dtype).transpose(1, 2)
        # ‖x − ½(v + v')‖² = ½‖x − v‖² + ½‖x − v'‖² − ¼‖v − v'‖²
        table += own - apart.gather(2, at.expand(-1, k, -1)) / 2
        between += weighted @ inside(table, 2 * limit).to(X.dtype).transpose(1, 2)
    return near, between
