"""Row passes: cluster means, scatter around them, and distances to every centre."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep.compute.data.opening import Space, host
from wellsep.compute.engine.kernel_choice import choose
from wellsep.compute.metrics.table import ROUNDING, Metric, Sums
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics import centre_pairs
from wellsep.compute.statistics.centre_pairs import (
    lowest_rival,
    own_distances,
    rival_sums,
    same_place,
)
from wellsep.compute.statistics.silhouette_widths import WidthTotals, widths_from_sums
from wellsep.partitions import Partitions


class Clusters(NamedTuple):
    """The clusters of one partition; centres are relative to ``Space.shift``."""

    counts: np.ndarray  # (K,) objects
    mass: np.ndarray  # (K,) summed weights
    centers: np.ndarray  # (K, d) float64, given or the weighted means
    mean: np.ndarray  # (d,) of all counted objects
    shift: np.ndarray  # (d,) add it to get the user's coordinates


def one_hot(codes: np.ndarray, n_clusters: np.ndarray, weights: np.ndarray | None) -> sp.csr_array:
    """(n, ΣK) memberships of all partitions side by side; ``codes`` (M, n)."""
    n = codes.shape[1]
    offsets = np.concatenate([[0], np.cumsum(n_clusters)])
    columns = (codes + offsets[:-1, None]).T  # (n, M)
    counted = (codes >= 0).T
    values = np.ones(n) if weights is None else weights
    data = np.broadcast_to(values[:, None], counted.shape)[counted]
    pointer = np.concatenate([[0], np.cumsum(counted.sum(axis=1))])
    return sp.csr_array((data, columns[counted], pointer), shape=(n, int(offsets[-1])))


def cluster_sums(space: Space, rows_of: Callable[[slice], Any], task: Task) -> np.ndarray:
    """(ΣK, e) float64: weighted sums over every cluster of the rows that ``rows_of`` gives."""
    return host(space.own_pass(sum_members)(task, rows_of))


def sum_members(task: Task, rows_of: Callable[[slice], Any]) -> np.ndarray:
    space, partitions, weights = task.space, task.partitions, task.weights
    total: Any = 0.0
    for rows in space.row_blocks(space.d + int(partitions.offsets[-1])):
        codes = partitions.codes[:, rows]
        part = None if weights is None else weights[rows]
        table = one_hot(codes, partitions.n_clusters, part)
        total = total + space.member_sums(table, rows_of(rows))
    return total


def cluster_masses(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """(ΣK,) summed weights and (ΣK,) numbers of objects of every cluster."""
    mass, count = [], []
    for codes, k in zip(task.partitions.codes, task.partitions.n_clusters, strict=True):
        counted = codes >= 0
        every = bool(counted.all())
        kept = codes if every else codes[counted]
        count.append(np.bincount(kept, minlength=k).astype(np.float64))
        if task.weights is not None:
            weights = task.weights if every else task.weights[counted]
            mass.append(np.bincount(kept, weights, k))
    return np.concatenate(mass or count), np.concatenate(count)


def describe_clusters(task: Task) -> list[Clusters]:
    partitions, space = task.partitions, task.space
    sums = cluster_sums(space, space.about_mean, task)
    mass, count = cluster_masses(task)
    found = []
    for m, (a, b) in enumerate(zip(partitions.offsets[:-1], partitions.offsets[1:], strict=True)):
        own = mass[a:b]
        means = sums[a:b] / own[:, None]
        centers = means if task.centers is None else task.centers[m] - space.shift
        mean = sums[a:b].sum(axis=0) / own.sum()
        found.append(Clusters(count[a:b], own, centers, mean, space.shift))
    return found


TABLES = ("separation", "margins", "simplified", "to_centres")
NAMES = ("clusters", "within", "radii", *TABLES)


def provide_clusters(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    clusters = describe_clusters(task)
    found: dict[Want, list[Any]] = {w: clusters for w in wants if w.name == "clusters"}
    rest = [w for w in wants if w.name != "clusters"]
    most = task.partitions.n_clusters.max(initial=0)
    many = most > centre_pairs.MANY and not task.space.on_device
    for w in [w for w in rest if w.name == "separation" and many]:
        found[w] = [_separate(task, m, c, w) for m, c in enumerate(clusters)]
    rest = [w for w in rest if w not in found]
    if rest:
        found.update(finish_separation(centre_pass(task, clusters, rest)))
    return found


def finish_separation(found: dict[Want, list[Any]]) -> dict[Want, list[Any]]:
    """``separation`` from its (K, K) sums: (K,) those to the nearest rival; NaN: there is none."""
    return {
        w: list(map(lowest_rival, v)) if w.name == "separation" else v for w, v in found.items()
    }


def _separate(task: Task, m: int, cluster: Clusters, w: Want) -> np.ndarray:
    """The same without a (K, K) table."""
    space, codes = task.space, task.partitions.codes[m]
    order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
    zero = w.get("wrong_side") == "zero"
    return rival_sums(
        space.rows_about_mean, order, codes[order], task.weights, cluster.centers, zero,
        space.host_jobs,
    )  # fmt: skip


def centre_pass(task: Task, clusters: list[Clusters], wants: list[Want]) -> dict[Want, list[Any]]:
    """One sweep over the rows with the centres known; all partitions ride along."""
    found = task.space.own_pass(sweep_rows)(task, clusters, wants)
    for w in wants:
        if w.name == "simplified":
            found[w] = join_widths(task, w, [[width] for width in found[w]])
    return found


def sweep_rows(task: Task, clusters: list[Clusters], wants: list[Want]) -> dict[Want, list[Any]]:
    space, partitions = task.space, task.partitions
    found: dict[Want, list[Any]] = {w: [_empty(w, c, space.n) for c in clusters] for w in wants}
    tables = any(w.name in TABLES for w in wants)
    stacked = np.vstack([c.centers for c in clusters])  # (ΣK, d)
    for rows in space.row_blocks(len(stacked) + 2 * space.d, 8 if tables else 3):
        block = _Block(space, rows, stacked if tables or space.own_from_products else None)
        weight = task.weights_or_ones()[rows]
        for m, cluster in enumerate(clusters):
            codes = partitions.codes[m, rows]
            counted = codes >= 0
            view = block.of(m, partitions, cluster, codes, weight, counted)
            for w in wants:
                _REDUCE[w.name](found[w][m], view, cluster, w, rows)
    return found


class _Block:
    """Some rows in float64 and, if wanted, their squared distances to all centres."""

    def __init__(self, space: Space, rows: slice, stacked: np.ndarray | None) -> None:
        self.space, self.X = space, space.about_mean(rows)
        self.squares = None if stacked is None else space.squares_to(self.X, stacked)  # (b, ΣK)

    def of(
        self,
        m: int,
        partitions: Partitions,
        cluster: Clusters,
        codes: np.ndarray,
        weight: np.ndarray,
        counted: np.ndarray,
    ) -> _View:
        part = slice(*partitions.offsets[m : m + 2])
        keep = slice(None) if counted.all() else counted
        squares = None if self.squares is None else self.squares[:, part][keep]
        return _View(self, squares, codes[keep], weight[keep], keep, cluster)


class _View:
    """The counted rows of a block, as one partition sees them."""

    def __init__(
        self,
        block: _Block,
        squares: Any,
        codes: np.ndarray,
        weight: np.ndarray,
        keep: Any,
        cluster: Clusters,
    ) -> None:
        self.block, self.codes, self.weight, self.keep = block, codes, weight, keep
        self.cluster, self.at = cluster, (np.arange(len(codes)), codes)
        self.squares = squares  # (b, K) to every centre, or None

    @cached_property
    def own_square(self) -> np.ndarray:
        """(b,) squared distance to the own centre, from differences where X is dense."""
        block, centers = self.block, self.cluster.centers
        if block.space.own_from_products:
            return self.squares[self.at]
        return block.space.squares_to_own(block.X, self.keep, centers, self.codes)

    @cached_property
    def signed(self) -> np.ndarray:
        """(b, K) distance to the plane between the own centre and each other; own: +inf."""
        apart = own_distances(self.cluster.centers, self.codes)
        signed = plane_distances(self.squares, self.own_square, apart)
        signed[self.at] = np.inf
        return signed


def plane_distances(squares: np.ndarray, own: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """(b, K) signed distance of rows to the planes between their own centre and each other.

    (‖x − μ_l‖² − ‖x − μ_j‖²)/2‖μ_j − μ_l‖ from ``squares`` (b, K), ``own`` (b,) and the distances
    ``apart`` (b, K) of centres. NaN where these coincide: there is no plane.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(apart > 0, (squares - own[:, None]) / (2 * apart), np.nan)


def _empty(w: Want, cluster: Clusters, n: int) -> np.ndarray:
    k = len(cluster.mass)
    if w.name in ("separation", "to_centres"):
        return np.zeros((k, k))
    if w.name in ("margins", "simplified"):
        return np.full(n, np.nan)
    return np.zeros(k)


def _within(total: np.ndarray, view: _View, cluster: Clusters, w: Want, rows: slice) -> None:
    weight = view.weight * view.own_square
    total += np.bincount(view.codes, weights=weight, minlength=len(total))


def _radii(total: np.ndarray, view: _View, cluster: Clusters, w: Want, rows: slice) -> None:
    """Mean of ‖x − v‖^q over a cluster."""
    power = view.own_square ** (w.get("q", 1) / 2)
    total += np.bincount(view.codes, view.weight * power, len(total)) / cluster.mass


def _separation(total: np.ndarray, view: _View, cluster: Clusters, w: Want, rows: slice) -> None:
    """Sep(j, l): squared counterfactual distances of the members of j to l, summed."""
    zero = w.get("wrong_side") == "zero"
    signed = np.maximum(view.signed, 0) if zero else view.signed.copy()
    signed[view.at] = 0
    table = one_hot(view.codes[None], np.array([len(total)]), view.weight)
    total += table.T @ signed**2


def _to_centres(total: np.ndarray, view: _View, cluster: Clusters, w: Want, rows: slice) -> None:
    """(K, K) distances of the members of j to the centre of l, summed."""
    table = one_hot(view.codes[None], np.array([len(total)]), view.weight)
    squares = view.squares.copy()
    squares[view.at] = view.own_square
    total += table.T @ np.sqrt(squares)


def _margins(out: np.ndarray, view: _View, cluster: Clusters, w: Want, rows: slice) -> None:
    signed = view.signed
    out[rows][view.keep] = np.fmin.reduce(signed, axis=1) if signed.size else np.nan


def _simplified(out: np.ndarray, view: _View, cluster: Clusters, w: Want, rows: slice) -> None:
    """Width with distances to centres in place of mean distances to members.

    0 for an object on its own centre and on a rival's, where only their rounding is left.
    """
    rivals = view.squares.copy()
    rivals[view.at] = np.inf
    a, b = np.sqrt(view.own_square), np.sqrt(rivals.min(axis=1))
    top = np.maximum(a, b)
    apart = top > same_place(cluster.centers)
    out[rows][view.keep] = np.divide(b - a, top, out=np.zeros_like(top), where=apart)


_REDUCE = {
    "within": _within,
    "radii": _radii,
    "separation": _separation,
    "margins": _margins,
    "to_centres": _to_centres,
    "simplified": _simplified,
}


def provide_summed_widths(task: Task, metric: Metric, wants: list[Want]) -> dict[Want, list[Any]]:
    """Silhouette widths without pairwise distances, from sums of rows over clusters: O(n ΣK d)."""
    summed: Any = metric.sums
    sums = cluster_sums(task.space, partial(summed.rows, task.space), task)
    return width_pass(task, summed, sums, *cluster_masses(task), wants)


def width_pass(
    task: Task,
    summed: Sums,
    sums: np.ndarray,
    mass: np.ndarray,
    count: np.ndarray,
    wants: list[Want],
) -> dict[Want, list[Any]]:
    """Widths with the sums of rows, masses and counts of all clusters known."""
    space, partitions = task.space, task.partitions
    offsets = partitions.offsets
    found: dict[Want, list[Any]] = {w: [[] for _ in partitions.n_clusters] for w in wants}
    widths_of = choose(widths_from_sums, sums)
    sums_on_device, mass_on_device = space.asarray(sums), space.asarray(mass)
    for at in space.row_blocks(len(sums) + 2 * space.d):
        rows = summed.rows(space, at)
        lengths = summed.lengths(space, rows, sums_on_device, mass_on_device)
        table = host(summed.distances(space, rows, sums_on_device, lengths))  # (ΣK, b)
        rounding = ROUNDING * host(lengths)
        weight = task.weights_or_ones()[at]
        itself = weight * host(summed.itself(space, rows))
        for m in range(len(partitions)):
            part = slice(offsets[m], offsets[m + 1])
            codes = partitions.codes[m, at]
            counted = np.flatnonzero(codes >= 0)
            distances = table[part]
            # an object is at distance 0 from itself, also where its row is zero
            distances[codes[counted], counted] -= itself[counted]
            distances[distances < rounding[part]] = 0
            for w in wants:
                got = widths_of(
                    distances, codes, weight, mass[part], count[part], w.get("singleton", 0), np
                )
                width = np.where(codes >= 0, got, np.nan)
                found[w][m].append(width)
    return {w: join_widths(task, w, found[w]) for w in wants}


def join_widths(task: Task, w: Want, strips: list[list[np.ndarray]]) -> list[Any]:
    """Of every partition the totals of its widths, or (n,) one value each where that is asked for.

    ``strips`` has for each partition the widths of consecutive rows.
    """
    widths = [np.concatenate(parts) for parts in strips]
    if w.get("each"):
        return widths
    weights, groups = task.weights_or_ones(), task.groups
    n_groups = 0 if groups is None else int(groups.max()) + 1
    sizes = map(len, task.partitions.classes)
    return [
        WidthTotals.of(width, codes, weights, k, groups, n_groups)
        for width, codes, k in zip(widths, task.partitions.codes, sizes, strict=True)
    ]
