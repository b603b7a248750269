"""How far apart two clusters are when one pair of members decides: farthest pairs, Hausdorff."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.compute.engines import ROWS, cut, share_out, tournament
from wellsep.compute.metrics import rows_of
from wellsep.compute.statistics import Task, Want, provides


class Linkage(NamedTuple):
    """(K, K) tables of distances between clusters; their diagonals mean nothing."""

    complete: np.ndarray  # the farthest pair
    hausdorff: np.ndarray  # the farthest that a member of either lies from all of the other


@provides("linkage")
def provide_linkage(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    X = task.space.on_host().X
    entries = [_link(X, codes, task.space.host_jobs) for codes in task.partitions.codes]
    return {w: entries for w in wants}


def _link(X: np.ndarray, codes: np.ndarray, jobs: int) -> Linkage:
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    groups = codes[order]
    k = int(groups[-1]) + 1
    rows = rows_of(X[order])
    blocks = cut(len(order), ROWS, groups)
    owner = [int(groups[b.start]) for b in blocks]
    farthest = np.zeros((len(blocks), len(blocks)))
    nearest = np.full((len(order), k), np.inf)  # of each object to each cluster

    def visit(i: int, j: int) -> None:
        if owner[i] == owner[j]:
            return
        a, b = blocks[i], blocks[j]
        table = rows.left[a] @ rows.right[b].T
        r, c = divmod(int(table.argmax()), table.shape[1])
        gap = rows.X[a][r] - rows.X[b][c]
        farthest[i, j] = farthest[j, i] = gap @ gap
        nearest[a, owner[j]] = np.minimum(nearest[a, owner[j]], table.min(axis=1))
        nearest[b, owner[i]] = np.minimum(nearest[b, owner[i]], table.min(axis=0))

    share_out(jobs, visit, tournament(len(blocks)))
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    complete = np.maximum.reduceat(np.maximum.reduceat(farthest, starts, axis=0), starts, axis=1)
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    directed = np.maximum.reduceat(np.where(np.isinf(nearest), 0, nearest), first, axis=0)
    mutual = np.maximum(directed, directed.T)
    return Linkage(np.sqrt(complete), np.sqrt(np.maximum(mutual, 0)))
