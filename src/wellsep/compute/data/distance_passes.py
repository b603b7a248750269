"""Passes over a space of distances that coordinates would serve better: sizes, scatter, noise.

The scatter about a mean follows from squared distances alone: over n objects the squared
distances to their mean add up to those of all pairs i < j over n. A space of distances has no
mean to name, but its clusters have this scatter; for Euclidean distances it is the usual one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from wellsep.compute.kmeans.nearest_centres import row_blocks
from wellsep.compute.metrics.gower_sums import column_strips, columns_usable
from wellsep.compute.metrics.table import Metric, squared
from wellsep.compute.requests import Task, Want, want
from wellsep.compute.statistics import centre_distances as clusters
from wellsep.compute.statistics import neighbour_graph as neighbours
from wellsep.compute.statistics import noise_scatter as noise
from wellsep.compute.statistics.centre_distances import Clusters, cluster_masses
from wellsep.compute.statistics.distance_sums import plain_strips, reduce_sums
from wellsep.compute.statistics.neighbour_graph import NeighbourGraph, smallest
from wellsep.compute.statistics.noise_scatter import Noise
from wellsep.distances.base import PairSpace
from wellsep.partitions import Partitions

READ = 1 << 21  # distances that are read at once: 16 MiB of float64
NOWHERE = np.zeros(0)  # the place of a centre that has no coordinates


def clusters_of_distances(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Sizes of clusters, without centres, and squared distances to their means, summed."""
    mass, count = cluster_masses(task)
    edges = list(zip(task.partitions.offsets[:-1], task.partitions.offsets[1:], strict=True))
    found: dict[Want, list[Any]] = {}
    for w in wants:
        if w.name == "clusters":
            empty = np.zeros((0, 0))
            found[w] = [Clusters(count[a:b], mass[a:b], empty, NOWHERE, NOWHERE) for a, b in edges]
        elif w.name == "within":
            sums = square_sums(task)
            found[w] = [
                np.diagonal(table) / (2 * mass[a:b])
                for table, (a, b) in zip(sums, edges, strict=True)
            ]
        else:
            raise ValueError(f"X must have coordinates for {w.name!r}, got distances.")
    return found


def square_sums(task: Task) -> list[np.ndarray]:
    """(K, K) squared distances of the objects of two clusters, by weight; each pair both ways."""
    entry = squared(task.space.own_metric)
    wanted = want("between_distances", metric=entry)
    found: list[np.ndarray] = reduce_sums(task, entry, [wanted])[wanted]
    return found


def noise_of_distances(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """Noise, and its squared distances to the mean of the counted objects, summed."""
    plain = noise.noise_of(task, None)
    if not any(w.get("scatter") for w in wants):
        return {w: plain for w in wants}
    # Two clusters: the counted objects and the others.
    codes = np.where(task.partitions.codes < 0, 1, 0).astype(np.int32)
    both = np.array([0, 1])
    parts = Partitions(codes, (both,) * len(codes), task.partitions.names, np.ones(len(codes)))
    sums = square_sums(task._replace(partitions=replace(parts)))
    scattered = [
        Noise(
            one.mass,
            one.counted,
            float(table[0, 1] / one.counted - one.mass * table[0, 0] / (2 * one.counted**2)),
        )
        for one, table in zip(plain, sums, strict=True)
    ]
    return {w: scattered if w.get("scatter") else plain for w in wants}


def strips_of_distances(task: Task, metric: Metric) -> Any:
    """Sums from sorted columns where a table has Gower's distance, else from pairs of blocks."""
    if columns_usable(task, metric):
        return column_strips(task, metric)
    return plain_strips(task, metric)


def graph_of_distances(
    X: PairSpace, n_neighbors: int, rows: np.ndarray | None, method: str, n_jobs: int | None
) -> NeighbourGraph:
    """The nearest other objects of some objects: distances are read, nothing is searched."""
    every = np.arange(X.n)
    wanted = every if rows is None else np.asarray(rows)
    indices = np.empty((len(wanted), n_neighbors), dtype=np.intp)
    distances = np.empty(indices.shape)
    for part in row_blocks(len(wanted), X.n, READ):
        table = X.block(wanted[part], every).astype(np.float64, copy=False)
        table[np.arange(len(table)), wanted[part]] = np.inf
        indices[part] = smallest(table, n_neighbors)
        distances[part] = np.take_along_axis(table, indices[part], axis=1)
    return NeighbourGraph(indices, distances, "given")


PASSES: dict[Callable[..., Any], Callable[..., Any]] = {
    clusters.provide_clusters: clusters_of_distances,
    neighbours.find_graph: graph_of_distances,
    noise.provide_noise: noise_of_distances,
    plain_strips: strips_of_distances,
}
