"""Nearest centres: the nearest one or two of k centres for each row.

Data stay on their device and in their library; the k centres are a small float64 NumPy array on
the host. No table of distances is ever larger than one block of rows. ``Space`` has these as its
methods: arrays and sparse matrices take the functions here, tensors on a card have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import SAFE, kernels_wanted
from wellsep._threads import effective_jobs, row_blocks, share_blocks
from wellsep.compute.engine.kernel_choice import compiled_pays
from wellsep.compute.kernels import load

# Entries of one block of the table of products: about a second-level cache, or what keeps a
# graphics card busy.
HOST_BLOCK = 1 << 17
DEVICE_BLOCK = 1 << 25
THREADED = 1 << 23  # products that are worth several threads
SHARES = 8  # blocks at least, so that a few threads get equal shares
MANY_ROWS, MOST_BYTES = 512, 1 << 21  # rows worth a larger block, and how large it may be
WIDE = 40  # centres up to which a block has a row per centre: argmax is slow on short rows


class Nearest(NamedTuple):
    """The nearest centre of each row and the squared distance to it."""

    first: Any  # (n,) integer
    near: Any  # (n,)


class NearestTwo(NamedTuple):
    """The nearest and the second nearest centre of each row, with both squared distances."""

    first: Any  # (n,) integer
    second: Any  # (n,) integer
    near: Any  # (n,)
    far: Any  # (n,)


def host_nearest(
    space: Any, centers: np.ndarray, norms: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """(count, n) codes and squared distances of the nearest centres of each row, nearest first.

    argmin_k ‖x − μ_k‖² = argmax_k xᵀμ_k − ½‖μ_k‖²; needs at least ``count`` centres.
    """
    codes = np.empty((count, space.n), dtype=np.int32)
    best = np.empty((count, space.n))

    def scan(blocks: Iterable[slice]) -> None:
        bias = (-0.5 * np.einsum("ij,ij->i", centers, centers)).astype(space.X.dtype)
        for rows, products in space.centre_products(space.X, centers, blocks, bias):
            for place in range(count):
                codes[place, rows], best[place, rows] = products.largest()
                if place + 1 < count:
                    products.strike(codes[place, rows])

    _share_out(space.X, centers, scan)
    # ‖x − μ‖² = ‖x‖² − 2(xᵀμ − ½‖μ‖²); rounding may leave a negative zero.
    best *= -2.0
    best += norms
    return codes, np.maximum(best, 0.0, out=best)


class _Tall:
    """Products with a row per point; NumPy's own argmax is the faster way for many centres."""

    def __init__(self, table: np.ndarray):
        self.flat = table.reshape(-1)
        self.table = table
        self.starts = np.arange(0, table.size, table.shape[1])

    def places(self) -> np.ndarray:
        return self.table.argmax(axis=1)

    def largest(self) -> tuple[np.ndarray, np.ndarray]:
        index = self.places()
        return index, self.flat.take(self.starts + index)

    def strike(self, index: np.ndarray) -> None:
        self.flat[self.starts + index] = -np.inf


class _Wide:
    """Products with a row per centre: for few centres, whole-row operations beat argmax."""

    def __init__(self, table: np.ndarray):
        self.table = table
        self.columns = np.arange(table.shape[1], dtype=np.int32)
        self.codes = np.arange(len(table), 0, -1, dtype=np.uint8)[:, None]

    def largest(self) -> tuple[np.ndarray, np.ndarray]:
        best = self.table.max(axis=0)
        # Descending codes, so that the first of several equal centres wins, as with argmax.
        code = ((self.table == best).view(np.uint8) * self.codes).max(axis=0)
        return len(self.table) - code.astype(np.int32), best

    def places(self) -> np.ndarray:
        return self.largest()[0]

    def strike(self, index: np.ndarray) -> None:
        self.table.reshape(-1)[index * len(self.columns) + self.columns] = -np.inf


def _share_out(X: Any, centers: np.ndarray, scan: Callable[[Iterable[slice]], None]) -> None:
    """Scan all rows, in threads where there is work for them; blocks are the same either way."""
    n, d = X.shape
    width = max(len(centers), d)
    # A product packs all centres again for each block: many centres want many rows.
    budget = max(HOST_BLOCK, min(MANY_ROWS * width, MOST_BYTES // X.dtype.itemsize))
    if n * d * len(centers) < THREADED:
        scan(row_blocks(n, width, budget))
        return
    blocks = list(row_blocks(n, width, min(budget, -(-n // SHARES) * width)))
    share_blocks(effective_jobs(None), scan, blocks)


class _Looked:
    """Rows of X about an offset, block by block; ``safe`` if all squares are below a limit."""

    def __init__(self, X: np.ndarray, shift: np.ndarray | None, limit: float):
        self.X, self.dtype, self.shape = X, X.dtype, X.shape
        self.shift, self.limit, self.safe = shift, limit, True
        self.tiled, self.memory = np.empty(0, X.dtype), np.empty(0, X.dtype)

    def __getitem__(self, rows: slice) -> np.ndarray:
        block = self.X[rows]
        if self.shift is not None:
            # The offset is repeated for every row: one long subtraction takes a third of the time
            # of many short ones.
            if self.tiled.size < block.size:
                self.tiled = np.tile(self.shift.astype(self.dtype), len(block))
                self.memory = np.empty(block.size, self.dtype)
            shifted = self.memory[: block.size].reshape(block.shape)
            np.subtract(block.reshape(-1), self.tiled[: block.size], out=shifted.reshape(-1))
            block = shifted
        flat = block.reshape(-1)
        self.safe &= float(flat @ flat) < self.limit  # NaN is not
        return block


def host_labels(X: np.ndarray, centers: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
    """(n,) the nearest of centres about ``offset`` for rows of X, which are not.

    Neither a copy of X nor a length of a row is needed: with x about the offset argmax_k xᵀμ_k −
    ½‖μ_k‖², and for rows as they are −offsetᵀμ_k is added once for every centre. That rounds
    products as long as the offset; where it is longer than the centres about it, rows are shifted
    in cache instead. Returns None where products might overflow or vanish, and where X has NaN.
    """
    first = np.empty(len(X), dtype=np.int32)
    limit = 4.0 ** SAFE["float32" if X.dtype == np.float32 else "float64"]
    squares = np.einsum("ij,ij->i", centers, centers)
    if not centers.size / limit < float(squares.sum()) < limit:
        return None
    far = float(offset @ offset) > float(squares.max())
    bias = (-0.5 * squares - (0.0 if far else centers @ offset)).astype(X.dtype)
    find, safe = label_blocks, []
    # Only for labels of new rows: sums round otherwise here, and a fit must not depend on whether
    # numba has been loaded.
    if kernels_wanted() and compiled_pays(float(X.shape[0]) * centers.size):
        find = load("wellsep.compute.kernels.numba_nearest").swept_labels

    def scan(blocks: Iterable[slice]) -> None:
        looked = _Looked(X, offset if far else None, limit)
        with np.errstate(over="ignore", invalid="ignore"):
            find(looked, centers, blocks, bias, first)
        safe.append(looked.safe)

    _share_out(X, centers, scan)
    return first if all(safe) else None


def label_blocks(
    X: Any, centers: np.ndarray, blocks: Iterable[slice], bias: np.ndarray, first: np.ndarray
) -> None:
    """Write argmax_k xᵀμ_k + bias_k of each row into ``first``."""
    for rows, products in dense_products(X, centers, blocks, bias):
        first[rows] = products.places()


def dense_products(
    X: Any, centers: np.ndarray, blocks: Iterable[slice], bias: np.ndarray
) -> Iterator[tuple[slice, Any]]:
    """Blocks of xᵀμ_k + bias_k, each in the same reused memory."""
    few = np.ascontiguousarray(centers, dtype=X.dtype)
    k, d = centers.shape
    # A column of ones saves a pass over the table; copying rows beside it must cost less.
    folded = np.vstack([few.T, bias]) if k > max(WIDE, d) else None
    memory, beside = np.empty(0, X.dtype), np.empty((0, d + 1), X.dtype)
    for rows in blocks:
        size = rows.stop - rows.start
        memory = np.empty(size * k, X.dtype) if memory.size < size * k else memory
        block = memory[: size * k]
        if folded is not None:
            beside = np.ones((size, d + 1), X.dtype) if len(beside) < size else beside
            beside[:size, :d] = X[rows]
            yield rows, _Tall(np.matmul(beside[:size], folded, out=block.reshape(size, k)))
        elif k <= WIDE:
            table = np.matmul(few, X[rows].T, out=block.reshape(k, size))
            table += bias[:, None]
            yield rows, _Wide(table)
        else:
            table = np.matmul(X[rows], few.T, out=block.reshape(size, k))
            table += bias
            yield rows, _Tall(table)


def sparse_products(
    X: Any, centers: np.ndarray, blocks: Iterable[slice], bias: np.ndarray
) -> Iterator[tuple[slice, _Tall]]:
    """The same of a sparse matrix."""
    few = np.ascontiguousarray(centers, dtype=X.dtype)
    for rows in blocks:
        yield rows, _Tall(X[rows] @ few.T + bias)
