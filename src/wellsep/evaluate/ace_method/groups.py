"""Groups of spaces on a small distance matrix, and how much each space of a group counts.

HDBSCAN that depends on no order, DBSCAN, PageRank and HITS.

Mutual reachability with ``min_samples = 2`` gives many edges the same weight, and a hierarchy built
from sorted edges then depends on the sort. Here all edges of one weight (up to a relative
tolerance) merge at once, so a node of the hierarchy may have more than two children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from wellsep.evaluate.ranks import TIE


class Density(NamedTuple):
    """What the condensed hierarchy says about every point."""

    labels: np.ndarray  # (L,) group of each point, -1 = in no group
    outlier_scores: np.ndarray  # (L,) GLOSH, 0 = inside, near 1 = far out


def mutual_reachability(distance: np.ndarray, min_samples: int) -> np.ndarray:
    """Largest of the distance and the two core distances; the point itself is not counted."""
    rank = min(min_samples, len(distance) - 1)
    core = np.sort(distance, axis=1)[:, rank]
    return np.maximum(distance, np.maximum.outer(core, core))


class _Node(NamedTuple):
    density: float  # lambda = 1 / distance of the merge
    children: tuple[int, ...]
    size: int


def _merge_tree(distance: np.ndarray, tolerance: float) -> list[_Node]:
    """Single linkage with equal weights merged together; the points come first, the root last."""
    merges = linkage(squareform(distance, checks=False), "single")
    weights = merges[:, 2]
    # The last weight of each run of equal ones is that of all.
    last = np.append(weights[1:] > weights[:-1] * (1 + tolerance), True)
    level = weights[last][np.append(0, np.cumsum(last[:-1]))]
    with np.errstate(divide="ignore"):
        density = (1.0 / level).tolist()
    nodes = [_Node(np.inf, (), 1)] * len(distance)
    for pair, size, here in zip(merges[:, :2].astype(int), merges[:, 3], density, strict=True):
        children: list[int] = []
        for child in pair.tolist():
            together = nodes[child].children and nodes[child].density == here
            children += nodes[child].children if together else [child]
        nodes.append(_Node(here, tuple(children), int(size)))
    return nodes


def _leaves(nodes: list[_Node], top: int) -> list[int]:
    found, stack = [], [top]
    while stack:
        node = stack.pop()
        if nodes[node].children:
            stack.extend(nodes[node].children)
        else:
            found.append(node)
    return found


def hdbscan(
    distance: np.ndarray,
    *,
    min_cluster_size: int = 2,
    min_samples: int = 2,
    tolerance: float = TIE,
) -> Density:
    """HDBSCAN (excess of mass, the root is never a group) with GLOSH outlier scores.

    Campello, Moulavi, Zimek, Sander (2015), ACM TKDD 10(1). Departs from the usual algorithm in
    one point: edges of equal weight are merged together, so that neither the order of the points
    nor the sort decides. A single point between two groups often reaches both at the same weight,
    its own core distance, and joins neither here.
    """
    n = len(distance)
    if n < 2:
        return Density(np.full(n, -1), np.zeros(n))
    nodes = _merge_tree(mutual_reachability(distance, min_samples), tolerance)

    birth, parent = [0.0], [-1]
    own: list[list[float]] = [[]]  # terms of each group's excess of mass
    death = [0.0]  # largest density inside the group
    group_of = np.zeros(n, dtype=np.intp)  # group a point falls out of
    falls_at = np.zeros(n)
    stack = [(len(nodes) - 1, 0)]
    while stack:
        node, group = stack.pop()
        density, children, _ = nodes[node]
        large = [c for c in children if nodes[c].size >= min_cluster_size]
        death[group] = max(death[group], density)
        for child in children:
            if nodes[child].size < min_cluster_size:
                points = _leaves(nodes, child)
                group_of[points], falls_at[points] = group, density
                own[group].append(len(points) * (density - birth[group]))
        if len(large) == 1:
            stack.append((large[0], group))
        elif len(large) > 1:
            for child in large:
                own[group].append(nodes[child].size * (density - birth[group]))
                birth.append(density)
                parent.append(group)
                own.append([])
                death.append(0.0)
                stack.append((child, len(birth) - 1))

    labels = _excess_of_mass(np.array(parent), own, group_of, tolerance)
    for group in range(len(birth) - 1, 0, -1):
        death[parent[group]] = max(death[parent[group]], death[group])
    deepest = np.array(death)[group_of]
    with np.errstate(invalid="ignore"):
        outlier_scores = np.nan_to_num((deepest - falls_at) / deepest, nan=0.0)
    return Density(labels, outlier_scores)


def _excess_of_mass(
    parent: np.ndarray, own: list[list[float]], group_of: np.ndarray, tolerance: float
) -> np.ndarray:
    """Labels of the groups with the largest total stability; groups come after their parents."""
    below: list[list[float]] = [[] for _ in own]
    best = np.zeros(len(own))
    chosen = np.zeros(len(own), dtype=bool)
    for group in range(len(own) - 1, 0, -1):
        stability, children = sum(sorted(own[group])), sum(sorted(below[group]))
        chosen[group] = not children > stability * (1 + tolerance)
        best[group] = stability if chosen[group] else children
        below[parent[group]].append(best[group])
    top = np.full(len(own), -1)  # highest chosen group at or above each group
    for group in range(1, len(own)):
        inherited = top[parent[group]]
        top[group] = inherited if inherited >= 0 else (group if chosen[group] else -1)
    return renumber(top[group_of])


def dbscan(distance: np.ndarray, eps: float, *, tolerance: float = TIE) -> np.ndarray:
    """DBSCAN, ``min_samples = 2`` (the point counts): connected points within `eps`, -1 alone."""
    _, labels = connected_components(distance <= eps * (1 + tolerance), directed=False)
    alone = np.bincount(labels)[labels] == 1
    return renumber(np.where(alone, -1, labels))


def renumber(labels: np.ndarray) -> np.ndarray:
    """Number groups 0, 1, ... by their first member; -1 stays."""
    labels = np.asarray(labels)
    seen: dict[int, int] = {}
    for label in labels[labels >= 0].tolist():
        seen.setdefault(label, len(seen))
    return np.array([seen.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def density_groups(distance: np.ndarray, *, tolerance: float = TIE) -> tuple[np.ndarray, bool]:
    """Groups of HDBSCAN; if there are none, the points that are no outliers form one (True)."""
    labels, scores = hdbscan(distance, tolerance=tolerance)
    if (labels >= 0).any():
        return labels, False
    low, high = np.quantile(scores, [0.25, 0.75])
    # A point is an outlier when its GLOSH score exceeds Q3 + 1.5 IQR of all scores.
    inside = scores <= high + 1.5 * (high - low) + tolerance
    return np.where(inside, 0, -1), True


def row_distances(rows: np.ndarray, *, tolerance: float = TIE) -> np.ndarray:
    """Euclidean distances between score rows; what is only rounding is 0."""
    difference = rows[:, None, :] - rows[None, :, :]
    distance: np.ndarray = np.sqrt((difference**2).sum(axis=2))
    norm = np.sqrt((rows**2).sum(axis=1))
    distance[distance <= tolerance * np.maximum.outer(norm, norm)] = 0.0
    return distance


def pagerank(weights: np.ndarray, *, damping: float = 0.9) -> np.ndarray:
    """PageRank of a weighted graph (Brin, Page 1998), from its linear system.

    p = (1 - damping) / L + damping (P' p), P = weights with unit row sums; a node without edges
    links to all nodes alike.
    """
    n = len(weights)
    out = weights.sum(axis=1, keepdims=True)
    steps = np.divide(weights, out, out=np.full((n, n), 1.0 / n), where=out > 0)
    rank = np.linalg.solve(np.eye(n) - damping * steps.T, np.full(n, (1.0 - damping) / n))
    return rank / rank.sum()


def hits(weights: np.ndarray) -> np.ndarray:
    """HITS authorities (Kleinberg 1999): where power iteration from equal weights ends."""
    n = len(weights)
    if not (weights > 0).any():
        return np.full(n, 1.0 / n)
    values, vectors = np.linalg.eigh(weights.T @ weights)
    # A repeated top eigenvalue (a pair, a ring) leaves nothing to chance: the start is projected.
    top = vectors[:, values >= values[-1] * (1 - 1e-10)]
    authority = np.clip(top @ top.sum(axis=0), 0.0, None)
    return authority / authority.sum()


LINKS = {"pagerank": pagerank, "hits": hits}
