"""Distances of rows to centres, and to the planes halfway between two centres, block by block."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wellsep._threads import row_blocks
from wellsep.compute.data.rows import host
from wellsep.compute.metrics.row_preparation import square_lengths
from wellsep.compute.metrics.squares import numpy_squares, rows_of
from wellsep.compute.requests import Block, Want
from wellsep.compute.statistics.centre_pairs import own_distances, same_place, worst_partners

BLOCK = 1 << 22  # entries of a table of distances to all planes


class Clusters(NamedTuple):
    """The clusters of one partition; centres are relative to ``shift``."""

    counts: np.ndarray  # (K,) objects
    mass: np.ndarray  # (K,) summed weights
    centers: np.ndarray  # (K, d) float64, given or the weighted means
    mean: np.ndarray  # (d,) of all counted objects
    shift: np.ndarray  # (d,) add it to get the user's coordinates

    def worst_partners(self, sizes: np.ndarray) -> np.ndarray | None:
        """(K,) max over l of (S_k + S_l)/‖μ_k − μ_l‖; None if all centres coincide."""
        return worst_partners(sizes, self.centers)


class View:
    """The rows of a block about the centres of g partitions that have equally many clusters.

    ``codes`` (g, b) lie beside X, ``centers`` (g, K, d) on the host. ``table`` (b, g K) has the
    squared distances of the rows to the centres, if known, and ``apart`` (g, K, K) the distances
    of the centres. Arrays lie beside X; what they say of rows that are not counted is no result.
    """

    def __init__(
        self, block: Block, codes: Any, centers: np.ndarray, table: Any = None, apart: Any = None
    ) -> None:
        self.block, self.space, self.codes, self.centers = block, block.space, codes, centers
        self._table, self._apart = table, apart
        space, (g, k), b = block.space, centers.shape[:2], codes.shape[1]
        cluster = space.xp.where(codes < 0, 0, codes)
        partition, row = space.index(np.arange(g))[:, None], space.index(np.arange(b))[None, :]
        self._own_of_all = cluster if g == 1 else cluster + partition * k  # (g, b) below g K
        self.own_places = partition, row, cluster  # in a table (g, b, K)

    def of_own(self, values: Any) -> Any:
        """(g, b, ...) what ``values`` (g, K, ...) say of the own cluster of each row."""
        return values.reshape(-1, *values.shape[2:])[self._own_of_all]

    @cached_property
    def gap(self) -> Any:
        """(g, b, d) rows minus their own centre."""
        if self.space.own_from_products:  # differences would fill the matrix
            self.space.refuse_sparse()
        return self.block.X - self.of_own(self.space.asarray(self.centers))

    @cached_property
    def squares(self) -> Any:
        """(g, b, K) squared distances to every centre, not to be changed."""
        (g, k, d), flat = self.centers.shape, self._table
        if flat is None:
            flat = self.space.squares_to(self.block.X, self.centers.reshape(g * k, d))
        return self.space.xp.moveaxis(flat.reshape(-1, g, k), 1, 0)

    @cached_property
    def own_square(self) -> Any:
        """(g, b) squared distance to the own centre, from differences where X is dense."""
        if self.space.own_from_products:
            return self.squares[self.own_places]
        flat = self.gap.reshape(-1, self.gap.shape[-1])
        return square_lengths(flat, None, self.space.xp).reshape(self.codes.shape)

    def changed(self, table: Any, own: Any) -> Any:
        """A copy of ``table`` (g, b, K) with other values for the own clusters."""
        table = table + 0.0
        table[self.own_places] = own
        return table

    @cached_property
    def signed(self) -> Any:
        """(g, b, K) distance to the plane between the own centre and each other; own: +inf."""
        if self._apart is None:
            each = zip(self.centers, host(self.own_places[2]), strict=True)
            apart = self.space.asarray(np.stack([own_distances(c, own) for c, own in each]))
        else:
            apart = self.of_own(self._apart)
        signed = plane_distances(self.squares, self.own_square, apart, self.space.xp)
        signed[self.own_places] = np.inf
        return signed

    def sums(self, values: Any) -> Any:
        """``values`` (g, b) or (g, b, e) summed over clusters by weight: (g, K) or (g, K, e)."""
        g, k = self.centers.shape[:2]
        sums = self.space.partition_sums(values, self.codes, np.full(g, k), self.block.weights)
        return sums.reshape(g, k, *values.shape[2:])

    def objects(self, w: Want) -> np.ndarray:
        """(g, b) a statistic of each row on the host; NaN for rows that are not counted."""
        return host(self.space.xp.where(self.codes < 0, np.nan, OBJECTS[w.name](self, w)))


def plane_distances(squares: Any, own: Any, apart: Any, xp: Any = np) -> Any:
    """(..., b, K) signed distance of rows to the planes between their own centre and each other.

    (‖x − μ_l‖² − ‖x − μ_j‖²)/2‖μ_j − μ_l‖ from ``squares`` (..., b, K), ``own`` (..., b) and the
    distances ``apart`` (..., b, K) of centres. NaN where these coincide: there is no plane.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        signed = (squares - own[..., None]) / (2 * apart)
    return xp.where(apart > 0, signed, xp.full_like(signed, xp.nan))


def within(view: View, w: Want) -> Any:
    """(g, K) squared distances to the own centre, summed."""
    return view.sums(view.own_square)


def radii(view: View, w: Want) -> Any:
    """(g, K) ‖x − v‖^q summed over a cluster."""
    return view.sums(view.own_square ** (w.get("q", 1) / 2))


def separation(view: View, w: Want) -> Any:
    """(g, K, K) Sep(j, l): squared counterfactual distances of the members of j to l, summed."""
    signed = view.changed(view.signed, 0.0)
    if w.get("wrong_side") == "zero":
        signed[signed < 0] = 0.0
    signed *= signed
    return view.sums(signed)


def to_centres(view: View, w: Want) -> Any:
    """(g, K, K) distances of the members of j to the centre of l, summed."""
    xp = view.space.xp
    return view.sums(xp.sqrt(view.changed(view.squares, view.own_square)))


def margins(view: View, w: Want) -> Any:
    """(g, b) distance to the nearest plane."""
    xp = view.space.xp
    none = xp.isnan(view.signed)
    return xp.min(xp.where(none, xp.full_like(view.signed, xp.inf), view.signed), axis=-1)


def simplified(view: View, w: Want) -> Any:
    """(g, b) width with distances to centres in place of mean distances to members.

    0 for an object on its own centre and on a rival's, where only their rounding is left.
    """
    xp = view.space.xp
    a = xp.sqrt(view.own_square)
    b = xp.sqrt(xp.min(view.changed(view.squares, np.inf), axis=-1))
    top = xp.where(a > b, a, b)
    least = np.array([same_place(centers) for centers in view.centers])
    apart = top > view.space.asarray(least)[:, None]
    width = (b - a) / xp.where(apart, top, xp.ones_like(top))
    return xp.where(apart, width, xp.zeros_like(width))


TOTALS: dict[str, Callable[[View, Want], Any]] = {
    "within": within,
    "radii": radii,
    "separation": separation,
    "to_centres": to_centres,
    "simplified": lambda view, w: view.sums(simplified(view, w)),
}
OBJECTS = {"margins": margins, "simplified": simplified}  # one value for each object
TABLES = ("separation", "margins", "simplified", "to_centres")  # need distances to all centres


class NearestPlanes(NamedTuple):
    """Of each object the nearest plane; NaN and -1 where there is none."""

    distances: np.ndarray  # (n,) signed: negative where the rival's centre is nearer
    gaps: np.ndarray  # (n,) distance of the two centres
    rivals: np.ndarray  # (n,) code of the cluster behind the plane


def nearest_planes(X: np.ndarray, codes: np.ndarray, centers: np.ndarray) -> NearestPlanes:
    """Nearest plane between each object's own centre and another; code -1 is not counted.

    >>> X, centers = np.array([[0.0], [1.0], [4.0], [9.0]]), np.array([[0.5], [4.0], [9.0]])
    >>> nearest_planes(X, np.array([0, 0, 1, -1]), centers)
    NearestPlanes(distances=array([2.25, 1.25, 1.75,  nan]), gaps=array([3.5, 3.5, 3.5, nan]), \
rivals=array([ 1,  1,  0, -1]))
    """
    if len(centers) < 2:
        return _nowhere(len(X))
    origin = centers.mean(axis=0)
    centers = centers - origin

    def signed(rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        squares = numpy_squares(rows_of(X[rows] - origin), rows_of(centers))
        own_square = squares[np.arange(len(own)), own]
        return plane_distances(squares, own_square, own_distances(centers, own))

    def gap(own: np.ndarray, rival: np.ndarray) -> np.ndarray:
        return np.sqrt(((centers[own] - centers[rival]) ** 2).sum(axis=1))

    return _nearest(codes, len(centers), signed, gap)


def planes_of_squares(squares: np.ndarray, codes: np.ndarray, gaps: np.ndarray) -> NearestPlanes:
    """The same from squared distances to the centres (n, K) and distances of centres (K, K).

    >>> squares, gaps = np.array([[0.25, 16.0], [4.0, 2.25]]), np.array([[0.0, 3.5], [3.5, 0.0]])
    >>> planes_of_squares(squares, np.array([0, 0]), gaps).distances
    array([ 2.25, -0.25])
    """

    def signed(rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        return plane_distances(squares[rows], squares[rows, own], gaps[own])

    return _nearest(codes, len(gaps), signed, lambda own, rival: gaps[own, rival])


def _nearest(
    codes: np.ndarray,
    n_centers: int,
    signed: Callable[[np.ndarray, np.ndarray], np.ndarray],
    gap: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> NearestPlanes:
    """``signed(rows, own)`` gives (b, K) distances to planes, ``gap`` those of two centres."""
    distances, gaps, rivals = found = _nowhere(len(codes))
    counted = np.flatnonzero(codes >= 0)
    for at in row_blocks(len(counted), n_centers, BLOCK):
        rows, own = counted[at], codes[counted[at]]
        table = signed(rows, own)
        first = np.where(np.isnan(table), np.inf, table).argmin(axis=1)
        nearest = table[np.arange(len(rows)), first]
        some = ~np.isnan(nearest)
        distances[rows] = nearest
        gaps[rows[some]] = gap(own[some], first[some])
        rivals[rows[some]] = first[some]
    return found


def _nowhere(n: int) -> NearestPlanes:
    return NearestPlanes(np.full(n, np.nan), np.full(n, np.nan), np.full(n, -1))
