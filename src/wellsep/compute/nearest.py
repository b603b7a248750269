"""Nearest centres: the nearest one or two of k centres for each row, and sums of rows by code.

Data stay on their device and in their library; the k centres are a small float64 NumPy array on
the host. No table of distances is ever larger than one block of rows. ``Space`` has these as its
methods: arrays and sparse matrices take the functions for the host, others those for tensors.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks import to_numpy
from wellsep.compute.engine import effective_jobs, ending_threads, one_blas_thread
from wellsep.compute.triton.fused import fused_usable
from wellsep.compute.twins import TWINS, Twin
from wellsep.compute.units import SAFE

# Entries of one block of the table of products: about a second-level cache, or what keeps a
# graphics card busy.
HOST_BLOCK = 1 << 16
DEVICE_BLOCK = 1 << 25
THREADED = 1 << 23  # products that are worth several threads
LABEL_BLOCK = 1 << 17  # the same where only the nearest centre is asked for
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


def host_nearest(space: Any, centers: np.ndarray, norms: np.ndarray) -> Nearest:
    """Nearest centre of each row: argmin_k ‖x − μ_k‖² = argmax_k xᵀμ_k − ½‖μ_k‖²."""
    first = np.empty(space.n, dtype=np.int32)
    best = np.empty(space.n)

    def scan(blocks: Iterable[slice]) -> None:
        for rows, products in space.centre_products(space.X, centers, blocks):
            first[rows], best[rows] = products.largest()

    _share_out(space.X, centers, scan)
    return Nearest(first, _squared_on_host(norms, best))


def host_nearest_two(space: Any, centers: np.ndarray, norms: np.ndarray) -> NearestTwo:
    """Nearest and second nearest centre of each row in one pass; needs at least two centres."""
    n = space.n
    first, second = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    best, runner = np.empty(n), np.empty(n)

    def scan(blocks: Iterable[slice]) -> None:
        for rows, products in space.centre_products(space.X, centers, blocks):
            first[rows], best[rows] = products.largest()
            products.strike(first[rows])
            second[rows], runner[rows] = products.largest()

    _share_out(space.X, centers, scan)
    near, far = _squared_on_host(norms, best), _squared_on_host(norms, runner)
    return NearestTwo(first, second, near, far)


def row_blocks(n: int, width: int, budget: int) -> Iterator[slice]:
    """Slices over n rows whose blocks hold about ``budget`` entries at ``width`` per row."""
    step = max(64, budget // max(width, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


class _Tall:
    """Products with a row per point; NumPy's own argmax is the faster way for many centres."""

    def __init__(self, table: np.ndarray):
        self.flat = table.reshape(-1)
        self.table = table
        self.starts = np.arange(0, table.size, table.shape[1])

    def largest(self) -> tuple[np.ndarray, np.ndarray]:
        index = self.table.argmax(axis=1)
        return index, self.flat.take(self.starts + index)

    def strike(self, index: np.ndarray) -> None:
        self.flat[self.starts + index] = -np.inf


class _Wide:
    """Products with a row per centre: for few centres, whole-row operations beat argmax."""

    def __init__(self, table: np.ndarray):
        self.table = table
        self.places = np.arange(table.shape[1], dtype=np.int32)
        self.codes = np.arange(len(table), 0, -1, dtype=np.uint8)[:, None]

    def largest(self) -> tuple[np.ndarray, np.ndarray]:
        best = self.table.max(axis=0)
        # Descending codes, so that the first of several equal centres wins, as with argmax.
        code = ((self.table == best).view(np.uint8) * self.codes).max(axis=0)
        return len(self.table) - code.astype(np.int32), best

    def strike(self, index: np.ndarray) -> None:
        self.table.reshape(-1)[index * len(self.places) + self.places] = -np.inf


def _share_out(
    X: Any,
    centers: np.ndarray,
    scan: Callable[[Iterable[slice]], None],
    budget: int = HOST_BLOCK,
) -> None:
    """Scan all rows, in threads where there is work for them; blocks are the same either way."""
    blocks = list(row_blocks(X.shape[0], max(len(centers), X.shape[1]), budget))
    worth = X.shape[0] * X.shape[1] * len(centers) >= THREADED
    jobs = min(effective_jobs(None), len(blocks)) if worth else 1
    if jobs == 1:
        scan(blocks)
        return
    stopped = threading.Event()

    def until_stopped(blocks: list[slice]) -> Iterator[slice]:
        return itertools.takewhile(lambda block: not stopped.is_set(), blocks)

    with one_blas_thread(), ending_threads(jobs) as pool:
        try:
            scans = [pool.submit(scan, until_stopped(blocks[job::jobs])) for job in range(jobs)]
            for done in scans:
                done.result()
        finally:
            stopped.set()


def host_labels(X: np.ndarray, centers: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
    """(n,) the nearest of centres about ``offset`` for rows of X, which are shifted in cache.

    Neither a copy of X nor a length of a row is needed: argmax_k xᵀμ_k − ½‖μ_k‖². Returns None
    where entries of X are so large that products might overflow.
    """
    k, d = centers.shape
    first = np.empty(len(X), dtype=np.int32)
    shift, limit = offset.astype(X.dtype), 4.0 ** SAFE[X.dtype.name]
    folded = _folded(centers, X.dtype)
    few, half = np.ascontiguousarray(folded[:d].T), -folded[d][:, None]
    width = d if k <= WIDE else d + 1
    safe = []

    def scan(blocks: Iterable[slice]) -> None:
        memory, table, largest = np.empty(0, X.dtype), np.empty(0, X.dtype), 0.0
        for rows in blocks:
            size = rows.stop - rows.start
            if memory.size < size * width:
                memory, table = np.ones(size * width, X.dtype), np.empty(size * k, X.dtype)
            flat = memory[: size * width]
            block = flat.reshape(size, width)
            np.subtract(X[rows], shift, out=block[:, :d])
            largest = max(largest, float(flat @ flat))
            if k <= WIDE:
                found = np.matmul(few, block.T, out=table[: size * k].reshape(k, size))
                found -= half
                first[rows] = _Wide(found).largest()[0]
            else:
                found = np.matmul(block, folded, out=table[: size * k].reshape(size, k))
                first[rows] = found.argmax(axis=1)
        safe.append(largest < limit)

    with np.errstate(over="ignore", invalid="ignore"):
        _share_out(X, centers, scan, LABEL_BLOCK)
    return first if all(safe) else None


def _folded(centers: np.ndarray, dtype: Any) -> np.ndarray:
    """(d + 1, k) what rows with a further one are multiplied with: μ and −½‖μ‖²."""
    half = 0.5 * np.einsum("ij,ij->i", centers, centers)
    return np.ascontiguousarray(np.column_stack([centers, -half]).T, dtype=dtype)


def dense_products(
    X: np.ndarray, centers: np.ndarray, blocks: Iterable[slice]
) -> Iterator[tuple[slice, _Tall | _Wide]]:
    """Blocks of xᵀμ_k − ½‖μ_k‖², each in the same reused memory."""
    half = (0.5 * np.einsum("ij,ij->i", centers, centers)).astype(X.dtype)
    few = np.ascontiguousarray(centers, dtype=X.dtype)
    k, d = centers.shape
    # A column of ones takes a pass over the table; copying rows beside it must cost less.
    folded = _folded(centers, X.dtype) if k > max(WIDE, d) else None
    memory, beside = np.empty(0, X.dtype), np.empty((0, d + 1), X.dtype)
    for rows in blocks:
        size = rows.stop - rows.start
        memory = np.empty(size * k, X.dtype) if memory.size == 0 else memory
        block = memory[: size * k]
        if folded is not None:
            beside = np.ones((size, d + 1), X.dtype) if len(beside) < size else beside
            beside[:size, :d] = X[rows]
            yield rows, _Tall(np.matmul(beside[:size], folded, out=block.reshape(size, k)))
        elif k <= WIDE:
            table = np.matmul(few, X[rows].T, out=block.reshape(k, size))
            table -= half[:, None]
            yield rows, _Wide(table)
        else:
            table = np.matmul(X[rows], few.T, out=block.reshape(size, k))
            table -= half
            yield rows, _Tall(table)


def sparse_products(
    X: Any, centers: np.ndarray, blocks: list[slice]
) -> Iterator[tuple[slice, _Tall]]:
    """The same of a sparse matrix."""
    half = (0.5 * np.einsum("ij,ij->i", centers, centers)).astype(X.dtype)
    few = np.ascontiguousarray(centers, dtype=X.dtype)
    for rows in blocks:
        yield rows, _Tall(X[rows] @ few.T - half)


def _squared_on_host(norms: np.ndarray, products: np.ndarray) -> np.ndarray:
    # ‖x − μ‖² = ‖x‖² − 2(xᵀμ − ½‖μ‖²); rounding may leave a negative zero.
    products *= -2.0
    products += norms
    return np.maximum(products, 0.0, out=products)


def positive(squares: Any, xp: Any) -> Any:
    """Squares that rounding left below zero as zeros."""
    return xp.where(squares > 0.0, squares, xp.zeros_like(squares))


def _tensor_products(space: Any, centers: np.ndarray) -> Iterator[Any]:
    columns = space.beside(np.ascontiguousarray(centers.T))
    half = space.beside(0.5 * np.einsum("ij,ij->i", centers, centers))
    for rows in row_blocks(space.n, len(centers), DEVICE_BLOCK):
        yield space.X[rows, :] @ columns - half


def tensor_nearest(space: Any, centers: np.ndarray, norms: Any) -> Nearest:
    """``host_nearest`` in the words of the array standard."""
    xp = space.xp
    first, best = [], []
    for products in _tensor_products(space, centers):
        first.append(xp.argmax(products, axis=1))
        best.append(xp.max(products, axis=1))
    return Nearest(xp.concat(first), positive(norms - 2.0 * xp.concat(best), xp))


def tensor_nearest_two(space: Any, centers: np.ndarray, norms: Any) -> NearestTwo:
    """``host_nearest_two`` in the words of the array standard."""
    xp = space.xp
    codes = xp.arange(len(centers), device=space.device)[None, :]
    parts: list[tuple[Any, ...]] = []
    for products in _tensor_products(space, centers):
        index = xp.argmax(products, axis=1)
        best = xp.max(products, axis=1)
        rest = xp.where(codes == index[:, None], xp.full_like(products, -float("inf")), products)
        parts.append((index, xp.argmax(rest, axis=1), best, xp.max(rest, axis=1)))
    first, second, *both = (xp.concat(part) for part in zip(*parts, strict=True))
    near, far = (positive(norms - 2.0 * best, xp) for best in both)
    return NearestTwo(first, second, near, far)


def host_code_sums(
    space: Any, codes: np.ndarray, weights: np.ndarray | None, n_codes: int
) -> np.ndarray:
    """A row's codes are the columns of its row of a sparse indicator matrix: one sparse product."""
    n, m = codes.shape
    sums = np.zeros((n_codes, space.d))
    flat = np.ones(n * m) if weights is None else np.ascontiguousarray(weights).reshape(-1)
    # Float32 is widened block by block, so that sums are always accumulated in float64.
    for rows in row_blocks(n, space.d, n * space.d if space.X.dtype == np.float64 else 1 << 18):
        size = rows.stop - rows.start
        entries = slice(rows.start * m, rows.stop * m)
        indicator = sp.csr_array(
            (flat[entries], codes[rows].reshape(-1), np.arange(size + 1, dtype=np.int32) * m),
            shape=(size, n_codes),
        )
        sums += space.member_sums(indicator, space.X[rows])
    return sums


def tensor_code_sums(space: Any, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
    """The array standard has no scatter-add: weighted one-hot products, block by block."""
    xp, X = space.xp, space.X
    sums = np.zeros((n_codes, space.d))
    columns = xp.arange(n_codes, device=space.device)[None, :]
    for rows in row_blocks(space.n, n_codes, DEVICE_BLOCK):
        onehot = xp.zeros((rows.stop - rows.start, n_codes), dtype=X.dtype, device=space.device)
        for column in range(codes.shape[1]):
            hit = xp.astype(columns == codes[rows, column][:, None], X.dtype)
            onehot = onehot + (hit if weights is None else hit * weights[rows, column][:, None])
        sums += to_numpy(onehot.T @ X[rows, :])
    return sums


def _two_fused(space: Any, centers: np.ndarray, norms: Any) -> NearestTwo:
    from wellsep.compute.triton.nearest import nearest_two

    return NearestTwo(*nearest_two(space.X, space.beside(centers)))


def _one_fused(space: Any, centers: np.ndarray, norms: Any) -> Nearest:
    found = _two_fused(space, centers, norms)
    return Nearest(found.first, found.near)


def _one_usable(X: Any, n_centers: int) -> bool:
    return n_centers > 1 and fused_usable(X)


def _code_sums_fused(space: Any, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
    from wellsep.compute.triton.nearest import code_sums

    parts = [
        code_sums(space.X, codes[:, m], None if weights is None else weights[:, m], n_codes)
        for m in range(codes.shape[1])
    ]
    return to_numpy(sum(parts[1:], parts[0]))


TWINS[tensor_nearest] = (Twin(_one_fused, _one_usable),)
TWINS[tensor_nearest_two] = (Twin(_two_fused, fused_usable),)
TWINS[tensor_code_sums] = (Twin(_code_sums_fused, fused_usable),)
