"""Nearest centres: the nearest one or two of k centres for each row, and sums of rows by code.

Data stay on their device and in their library; the k centres are a small float64 NumPy array on
the host. No table of distances is ever larger than one block of rows.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_numpy_array

from wellsep._checks import is_torch, to_numpy
from wellsep.compute.engine import effective_jobs, ending_threads, one_blas_thread
from wellsep.compute.triton.fused import fused_usable
from wellsep.compute.twins import TWINS, Twin, choose

# Entries of one block of the table of products: about a second-level cache, or what keeps a
# graphics card busy.
HOST_BLOCK = 1 << 16
DEVICE_BLOCK = 1 << 25
THREADED = 1 << 23  # products that are worth several threads
# Centres up to which a block has a row per centre; NumPy's argmax is slow on short float32 rows.
WIDE = 40
WIDE_SINGLE = 128


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


def squared_norms(X: Any) -> Any:
    """Squared Euclidean norm of each row; in float64 for NumPy and CSR."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    if is_numpy_array(X):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    xp = array_namespace(X)
    return xp.sum(X * X, axis=1)


def nearest(X: Any, centers: np.ndarray, norms: Any = None) -> Nearest:
    """Nearest centre of each row: argmin_k ‖x − μ_k‖² = argmax_k xᵀμ_k − ½‖μ_k‖².

    >>> import numpy as np
    >>> nearest(np.array([[0.0], [5.0]]), np.array([[1.0], [7.0]]))
    Nearest(first=array([0, 1], dtype=int32), near=array([1., 4.]))
    """
    if not is_host(X):
        return choose(_nearest_device, X, len(centers))(X, centers, norms)
    norms = squared_norms(X) if norms is None else norms
    first = np.empty(X.shape[0], dtype=np.int32)
    best = np.empty(X.shape[0])

    def scan(blocks: Iterable[slice]) -> None:
        for rows, products in _products(X, centers, blocks):
            first[rows], best[rows] = products.largest()

    _share_out(X, centers, scan)
    return Nearest(first, _squared(norms, best))


def nearest_two(X: Any, centers: np.ndarray, norms: Any = None) -> NearestTwo:
    """Nearest and second nearest centre of each row in one pass; needs at least two centres.

    >>> import numpy as np
    >>> nearest_two(np.array([[0.0], [6.0]]), np.array([[1.0], [7.0], [9.0]]))
    NearestTwo(first=array([0, 1], dtype=int32), second=array([1, 2], dtype=int32), \
near=array([1., 1.]), far=array([49.,  9.]))
    """
    if not is_host(X):
        return choose(_nearest_two_device, X)(X, centers, norms)
    norms = squared_norms(X) if norms is None else norms
    n = X.shape[0]
    first, second = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    best, runner = np.empty(n), np.empty(n)

    def scan(blocks: Iterable[slice]) -> None:
        for rows, products in _products(X, centers, blocks):
            first[rows], best[rows] = products.largest()
            products.strike(first[rows])
            second[rows], runner[rows] = products.largest()

    _share_out(X, centers, scan)
    return NearestTwo(first, second, _squared(norms, best), _squared(norms, runner))


def code_sums(X: Any, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
    """Weighted sum of the rows of each code, (n_codes, d) in float64 on the host.

    ``codes`` and ``weights`` (None: all one) are (n,) or, for rows that count under several
    codes, (n, m).
    """
    if codes.ndim == 1:
        codes = codes[:, None]
        weights = None if weights is None else weights[:, None]
    if is_host(X):
        return _code_sums_host(X, codes, weights, n_codes)
    return choose(_code_sums_device, X)(X, codes, weights, n_codes)


def bins(codes: Any, weights: Any, n_codes: int) -> Any:
    """Summed weights (None: counts) of each code, in float64; tensors stay on their device.

    >>> bins(np.array([0, 2, 2]), np.array([1.0, 2.0, 4.0]), 4).tolist()
    [1.0, 0.0, 6.0, 0.0]
    """
    if is_torch(codes):
        import torch

        given = None if weights is None else weights.to(torch.float64)
        return torch.bincount(codes, given, n_codes).to(torch.float64)
    given = None if weights is None else to_numpy(weights)
    return np.bincount(to_numpy(codes), given, n_codes).astype(np.float64)


def is_host(X: Any) -> bool:
    """Whether X is a NumPy array or a SciPy sparse matrix."""
    return sp.issparse(X) or is_numpy_array(X)


def to_like(values: np.ndarray, X: Any, *, integer: bool = False) -> Any:
    """A host array in X's library, on its device, in its float type (or as int64)."""
    if is_host(X):
        return values if integer else values.astype(X.dtype, copy=False)
    xp = array_namespace(X)
    dtype = np.int64 if integer else np.float32 if X.dtype == xp.float32 else np.float64
    return xp.asarray(np.ascontiguousarray(values, dtype=dtype), device=device(X))


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


def _share_out(X: Any, centers: np.ndarray, scan: Callable[[Iterable[slice]], None]) -> None:
    """Scan all rows, in threads where there is work for them; blocks are the same either way."""
    blocks = list(row_blocks(X.shape[0], len(centers), HOST_BLOCK))
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


def _products(
    X: Any, centers: np.ndarray, blocks: Iterable[slice]
) -> Iterator[tuple[slice, _Tall | _Wide]]:
    """Blocks of xᵀμ_k − ½‖μ_k‖², each in the same reused memory."""
    half = (0.5 * np.einsum("ij,ij->i", centers, centers)).astype(X.dtype)
    few = np.ascontiguousarray(centers, dtype=X.dtype)
    k = len(centers)
    memory = np.empty(0, X.dtype)
    for rows in blocks:
        size = rows.stop - rows.start
        if sp.issparse(X):
            yield rows, _Tall(X[rows] @ few.T - half)
            continue
        memory = np.empty(size * k, X.dtype) if memory.size == 0 else memory
        block = memory[: size * k]
        if k <= (WIDE_SINGLE if X.dtype == np.float32 else WIDE):
            table = np.matmul(few, X[rows].T, out=block.reshape(k, size))
            table -= half[:, None]
            yield rows, _Wide(table)
        else:
            table = np.matmul(X[rows], few.T, out=block.reshape(size, k))
            table -= half
            yield rows, _Tall(table)


def _squared(norms: Any, products: Any) -> Any:
    # ‖x − μ‖² = ‖x‖² − 2(xᵀμ − ½‖μ‖²); rounding may leave a negative zero.
    if isinstance(products, np.ndarray):
        products *= -2.0
        products += norms
        return np.maximum(products, 0.0, out=products)
    xp = array_namespace(products)
    squared = norms - 2.0 * products
    return xp.where(squared > 0.0, squared, xp.zeros_like(squared))


def _device_products(X: Any, centers: np.ndarray) -> Iterator[tuple[slice, Any]]:
    columns = to_like(np.ascontiguousarray(centers.T), X)
    half = to_like(0.5 * np.einsum("ij,ij->i", centers, centers), X)
    for rows in row_blocks(X.shape[0], len(centers), DEVICE_BLOCK):
        yield rows, X[rows, :] @ columns - half


def _nearest_device(X: Any, centers: np.ndarray, norms: Any) -> Nearest:
    xp, norms = array_namespace(X), squared_norms(X) if norms is None else norms
    first, best = [], []
    for _, products in _device_products(X, centers):
        first.append(xp.argmax(products, axis=1))
        best.append(xp.max(products, axis=1))
    return Nearest(xp.concat(first), _squared(norms, xp.concat(best)))


def _nearest_two_device(X: Any, centers: np.ndarray, norms: Any) -> NearestTwo:
    xp, norms = array_namespace(X), squared_norms(X) if norms is None else norms
    codes = xp.arange(len(centers), device=device(X))[None, :]
    parts: list[tuple[Any, ...]] = []
    for _, products in _device_products(X, centers):
        index = xp.argmax(products, axis=1)
        best = xp.max(products, axis=1)
        rest = xp.where(codes == index[:, None], xp.full_like(products, -float("inf")), products)
        parts.append((index, xp.argmax(rest, axis=1), best, xp.max(rest, axis=1)))
    first, second, best, runner = (xp.concat(part) for part in zip(*parts, strict=True))
    return NearestTwo(first, second, _squared(norms, best), _squared(norms, runner))


def _code_sums_host(
    X: Any, codes: np.ndarray, weights: np.ndarray | None, n_codes: int
) -> np.ndarray:
    n, m = codes.shape
    sums = np.zeros((n_codes, X.shape[1]))
    flat = np.ones(n * m) if weights is None else np.ascontiguousarray(weights).reshape(-1)
    # A row's codes are the columns of its row of a sparse indicator matrix: one sparse product.
    # Float32 is widened block by block, so that sums are always accumulated in float64.
    for rows in row_blocks(n, X.shape[1], n * X.shape[1] if X.dtype == np.float64 else 1 << 18):
        size = rows.stop - rows.start
        entries = slice(rows.start * m, rows.stop * m)
        indicator = sp.csr_array(
            (flat[entries], codes[rows].reshape(-1), np.arange(size + 1, dtype=np.int32) * m),
            shape=(size, n_codes),
        )
        part = indicator.T @ X[rows].astype(np.float64, copy=False)
        sums += part.toarray() if sp.issparse(part) else part
    return sums


def _two_fused(X: Any, centers: np.ndarray, norms: Any) -> NearestTwo:
    from wellsep.compute.triton.nearest import nearest_two

    return NearestTwo(*nearest_two(X, to_like(centers, X)))


def _one_fused(X: Any, centers: np.ndarray, norms: Any) -> Nearest:
    found = _two_fused(X, centers, norms)
    return Nearest(found.first, found.near)


def _one_usable(X: Any, n_centers: int) -> bool:
    return n_centers > 1 and fused_usable(X)


def _code_sums_fused(X: Any, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
    from wellsep.compute.triton.nearest import code_sums

    parts = [
        code_sums(X, codes[:, m], None if weights is None else weights[:, m], n_codes)
        for m in range(codes.shape[1])
    ]
    return to_numpy(sum(parts[1:], parts[0]))


def _code_sums_device(X: Any, codes: Any, weights: Any, n_codes: int) -> np.ndarray:
    # The array standard has no scatter-add: weighted one-hot products, block by block.
    xp = array_namespace(X)
    sums = np.zeros((n_codes, X.shape[1]))
    columns = xp.arange(n_codes, device=device(X))[None, :]
    for rows in row_blocks(X.shape[0], n_codes, DEVICE_BLOCK):
        onehot = xp.zeros((rows.stop - rows.start, n_codes), dtype=X.dtype, device=device(X))
        for column in range(codes.shape[1]):
            hit = xp.astype(columns == codes[rows, column][:, None], X.dtype)
            onehot = onehot + (hit if weights is None else hit * weights[rows, column][:, None])
        sums += to_numpy(onehot.T @ X[rows, :])
    return sums


TWINS[_nearest_device] = (Twin(_one_fused, _one_usable),)
TWINS[_nearest_two_device] = (Twin(_two_fused, fused_usable),)
TWINS[_code_sums_device] = (Twin(_code_sums_fused, fused_usable),)
