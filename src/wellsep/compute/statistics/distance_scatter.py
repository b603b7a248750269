"""Scatter and noise of objects that are known by distances alone.

The scatter about a mean follows from squared distances alone: over n objects the squared
distances to their mean add up to those of all pairs i < j over n. A space of distances has no
mean to name, but its clusters have this scatter; for Euclidean distances it is the usual one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from wellsep.compute.metrics.table import squared
from wellsep.compute.requests import Pass, Steps, Task, Want, run, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.cluster_moments import masses
from wellsep.compute.statistics.distance_sums import reduce_sums
from wellsep.compute.statistics.noise_scatter import noise_of
from wellsep.partitions import Partitions

NOWHERE = np.zeros(0)  # the place of a centre that has no coordinates


def rows_of_distances(task: Task, wants: list[Want]) -> Steps:
    """Sizes of clusters without centres, squared distances to their means summed, and noise."""
    found: dict[Want, list[Any]] = {}
    size = yield Pass(masses)
    edges = list(pairwise(task.partitions.offsets))
    for w in wants:
        if w.name == "clusters":
            found[w] = [
                Clusters(size.counts[a:b], size.mass[a:b], np.zeros((0, 0)), NOWHERE, NOWHERE)
                for a, b in edges
            ]
        elif w.name == "within":
            sums = zip(square_sums(task), edges, strict=True)
            found[w] = [np.diagonal(table) / (2 * size.mass[a:b]) for table, (a, b) in sums]
        elif w.name == "noise":
            scatter = _noise_scatter(task) if w.get("scatter") else None
            found[w] = noise_of(size, task.partitions.offsets, scatter)
        else:
            raise ValueError(f"X must have coordinates for {w.name!r}, got distances.")
    return found


def square_sums(task: Task) -> list[np.ndarray]:
    """(K, K) squared distances of the objects of two clusters, by weight; each pair both ways."""
    entry = squared(task.space.own_metric)
    wanted = want("between_distances", metric=entry)
    found: list[np.ndarray] = run(task, reduce_sums(task, entry, [wanted]))[wanted]
    return found


def _noise_scatter(task: Task) -> list[float]:
    """Squared distances of noise to the mean of the counted objects, summed."""
    codes = np.where(task.partitions.codes < 0, 1, 0).astype(np.int32)
    both = np.array([0, 1])  # two clusters: the counted objects and the others
    apart = Partitions(codes, (both,) * len(codes), task.partitions.names, np.ones(len(codes)))
    task = task._replace(partitions=apart)
    sizes = task.fold([Pass(masses)])[0].mass.reshape(-1, 2)
    return [
        float(table[0, 1] / counted - noise * table[0, 0] / (2 * counted**2))
        for table, (counted, noise) in zip(square_sums(task), sizes, strict=True)
    ]
