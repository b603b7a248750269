"""One space made ready for work: what X is, and its rows as a metric wants them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from wellsep._checks import is_torch, to_numpy
from wellsep.compute.engine import ROWS, TENSOR_ROWS, budget_bytes, effective_jobs
from wellsep.compute.metrics import Prepared, find, unit_rows

# Exponents of two between which the largest number of X may lie: products of four numbers of
# such data, and of their differences, neither overflow nor vanish. Beyond, X is divided by a
# power of two, which changes no digit.
TABLES = 256 << 20  # bytes of the tables of one block of rows, where memory is not scarcer
SAFE = {"float32": 32, "float64": 128}
AXIS_ROWS = 64  # looked at to see whether all rows point the same way
ALIKE = 1e-2  # squared differences of unit rows up to which they do
FACTORS = {"float32": 120, "float64": 1000}  # exponents of the powers that the type itself holds


@dataclass(frozen=True, eq=False)
class Space:
    """The n × d data of one space: a NumPy array. Other libraries have subclasses.

    Attributes
    ----------
    X : array of shape (n, d)
        As given, or moved to ``device``.
    n_jobs : int
    origin : array of shape (d,), optional
        Takes the place of the mean in ``shift``.
    unit : float
        Power of two that X was divided by; lengths times ``unit`` are those of the user.
    """

    X: Any
    n_jobs: int
    origin: np.ndarray | None = None
    unit: float = 1.0
    _views: dict = field(default_factory=dict)

    on_device: ClassVar[bool] = False  # what follows from X stays on its accelerator
    one_caller: ClassVar[bool] = False  # the library has threads of its own: few, large pieces
    block_rows: ClassVar[int] = ROWS  # of one side of a block of distances
    most_rows: ClassVar[int] = 1 << 16  # of a block of rows
    own_from_products: ClassVar[bool] = False  # differences from centres would fill the matrix

    @cached_property
    def xp(self) -> Any:
        """The array-API namespace of X; NumPy for sparse matrices."""
        return np

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @property
    def host_jobs(self) -> int:
        """Threads for work that is done on the host whatever X is."""
        return self.n_jobs

    @cached_property
    def shift(self) -> np.ndarray:
        """What was subtracted before Euclidean work: the mean in float64; 0 for sparse data."""
        return self.X.mean(axis=0, dtype=np.float64) if self.origin is None else self.origin

    @cached_property
    def centred(self) -> Any:
        """X minus its mean: dot products of data far from the origin would cancel."""
        return (self.X - self.shift).astype(self.X.dtype, copy=False)

    @cached_property
    def axis(self) -> np.ndarray | None:
        """(d,) a direction near those of most rows, where these lie close together; else None.

        It is subtracted from rows of length one: data far from the origin differ in digits that
        dot products would cancel. Blocks of one space share the direction of their ``origin``.
        """
        if self.origin is not None:
            return unit_rows(self.origin[None]).X[0] if self.origin.any() else None
        sample = host(self.X[:: max(1, self.n // AXIS_ROWS), :])[:AXIS_ROWS]
        unit, zero = unit_rows(sample)
        unit = unit if zero is None else unit[~zero]
        middle = np.median(unit, axis=0) if len(unit) else np.zeros(self.d)
        apart = ((unit - middle) ** 2).sum(axis=1)
        return middle if len(unit) and np.median(apart) < ALIKE else None

    def about_mean(self, rows: slice) -> Any:
        """Rows minus ``shift`` in float64: means of rounded rows would miss equal objects."""
        if self.X.dtype == self.xp.float64:
            return self.centred_rows(rows)
        return self.xp.astype(self.X[rows, :], self.xp.float64) - self.asarray(self.shift)

    @property
    def given(self) -> Any:
        """X in the unit of the user, for functions of the user."""
        return self.X if self.unit == 1 else self.X * self.unit

    def centred_rows(self, rows: slice) -> Any:
        """Some rows of ``centred``, without a copy of all."""
        small = self.X.nbytes <= TABLES and not isinstance(self.X, np.memmap)
        if small or "centred" in self.__dict__:
            return self.centred[rows, :]
        return (self.X[rows, :] - self.shift).astype(self.X.dtype, copy=False)

    def rows_about_mean(self, at: np.ndarray) -> Any:
        """Rows by number minus ``shift``, in float64 on the host."""
        return host(self.X[self.asarray(at), :]).astype(np.float64, copy=False) - self.shift

    def with_rows(self, X: Any) -> Space:
        """Other rows beside X, worked on in the same way."""
        return replace(self, X=X, origin=None, _views={})

    def prepared(self, metric: Any, *, wide: bool = False) -> Prepared:
        """The rows as a metric wants them, made once; in float64 with ``wide``."""
        entry = find(metric)
        key = (entry.name, wide or self.X.dtype == self.xp.float64)
        if key not in self._views:
            self._views[key] = entry.prepare(self, wide)
        return self._views[key]

    def on_host(self, metric: Any = "euclidean") -> Prepared:
        """The prepared rows in float64 on the host, for exact work on single distances."""
        return self.prepared(metric, wide=True)

    def refuse_sparse(self) -> None:
        """Raise where single distances decide and X is sparse."""

    def asarray(self, values: np.ndarray, dtype: Any = None) -> Any:
        """Host values as an array beside X."""
        return np.asarray(values, dtype=dtype)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Zeros in float64 beside X."""
        return np.zeros(shape)

    def add(self, total: Any, part: Any) -> None:
        """Add to float64 sums in place."""
        total += part

    def member_sums(self, members: sp.csr_array, rows: Any) -> np.ndarray:
        """(ΣK, e) float64 sums of rows (b, e) over the clusters that they are ``members`` of."""
        return members.T @ rows.astype(np.float64, copy=False)

    def products(self, rows: Any, points: np.ndarray) -> np.ndarray:
        """(b, p) inner products of some rows with points, on the host."""
        return np.asarray(rows @ points.T.astype(rows.dtype))

    def square_lengths(self, rows: Any) -> np.ndarray:
        """(b,) float64 on the host."""
        return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)

    def squares_to_own(
        self, rows: Any, keep: Any, points: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """(b,) squared distances of the rows to ``keep`` from their own point, by differences."""
        gap = rows[keep] - points.astype(rows.dtype)[codes]
        return np.einsum("ij,ij->i", gap, gap).astype(np.float64)

    def row_blocks(self, width: int, copies: int = 3) -> Iterator[slice]:
        """Consecutive rows; ``copies`` float64 tables of ``width`` columns fit the budget."""
        rows = int(min(budget_bytes(), TABLES) / (8 * max(width, 1) * copies))
        rows = max(16, min(rows, self.n, self.most_rows))
        return (slice(i, min(i + rows, self.n)) for i in range(0, self.n, rows))


class SparseSpace(Space):
    """A sparse matrix: never centred, so that it stays sparse."""

    own_from_products = True
    axis = None  # type: ignore[assignment]

    @cached_property
    def shift(self) -> np.ndarray:
        return np.zeros(self.d) if self.origin is None else self.origin

    @cached_property
    def centred(self) -> Any:
        return self.X

    def about_mean(self, rows: slice) -> Any:
        return self.X[rows, :]

    def centred_rows(self, rows: slice) -> Any:
        return self.X[rows, :]

    def rows_about_mean(self, at: np.ndarray) -> Any:
        return self.X[at].astype(np.float64)

    def on_host(self, metric: Any = "euclidean") -> Prepared:
        self.refuse_sparse()
        return super().on_host(metric)

    def refuse_sparse(self) -> None:
        raise TypeError(
            "X must be dense where single distances decide, got a sparse matrix; "
            "pass X.toarray() if it fits in memory."
        )

    def member_sums(self, members: sp.csr_array, rows: Any) -> np.ndarray:
        sums: Any = super().member_sums(members, rows)
        return sums.toarray()

    def square_lengths(self, rows: Any) -> np.ndarray:
        return np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)


class TensorSpace(Space):
    """An array of any library of the array standard; its library shares out the work."""

    one_caller = True
    block_rows = TENSOR_ROWS
    most_rows = 1 << 20

    @cached_property
    def xp(self) -> Any:
        from array_api_compat import array_namespace

        return array_namespace(self.X)

    @property
    def device(self) -> Any:
        from array_api_compat import device

        return device(self.X)

    @property
    def host_jobs(self) -> int:
        return effective_jobs(None)

    @cached_property
    def shift(self) -> np.ndarray:
        if self.origin is not None:
            return self.origin
        return host(self.xp.mean(self.xp.astype(self.X, self.xp.float64), axis=0))

    @cached_property
    def centred(self) -> Any:
        wide = self.xp.astype(self.X, self.xp.float64) - self.asarray(self.shift)
        return self.xp.astype(wide, self.X.dtype)

    def centred_rows(self, rows: slice) -> Any:
        return self.centred[rows, :]

    def on_host(self, metric: Any = "euclidean") -> Prepared:
        key = (find(metric).name, "host")
        if key not in self._views:
            copy = Space(host(self.X), self.n_jobs, origin=self.shift, unit=self.unit)
            self._views[key] = copy.prepared(metric, wide=True)
        return self._views[key]

    def asarray(self, values: np.ndarray, dtype: Any = None) -> Any:
        return self.xp.asarray(np.ascontiguousarray(values), dtype=dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def add(self, total: Any, part: Any) -> None:
        total += self.xp.astype(part, self.xp.float64)

    def member_sums(self, members: sp.csr_array, rows: Any) -> np.ndarray:
        xp = self.xp
        dense = self.asarray(members.toarray(), dtype=xp.float64)
        return host(dense.T @ xp.astype(rows, xp.float64))

    def products(self, rows: Any, points: np.ndarray) -> np.ndarray:
        right = self.asarray(points.T.copy(), dtype=rows.dtype)
        return host(rows @ right).astype(np.float64)

    def square_lengths(self, rows: Any) -> np.ndarray:
        wide = self.xp.astype(rows, self.xp.float64)
        return host(self.xp.sum(wide * wide, axis=1))

    def squares_to_own(
        self, rows: Any, keep: Any, points: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        xp = self.xp
        if not isinstance(keep, slice):
            rows = xp.take(rows, self.asarray(np.flatnonzero(keep)), axis=0)
        near = xp.astype(self.asarray(points.astype(np.float64)), rows.dtype)
        gap = rows - xp.take(near, self.asarray(codes.astype(np.int64)), axis=0)
        return host(xp.sum(gap * gap, axis=1)).astype(np.float64)


class DeviceSpace(TensorSpace):
    """A torch tensor on an accelerator, with the passes of ``compute/device``."""

    on_device = True


def on_device(X: Any) -> bool:
    """Whether X is a torch tensor on an accelerator."""
    return is_torch(X) and X.device.type != "cpu"


def open_space(X: Any, *, device: Any = None, n_jobs: int | None = None) -> Space:
    """Wrap checked data; the only place that asks what X is."""
    if (device is not None and str(device) != "cpu") or (device is not None and is_torch(X)):
        X = _to_torch(X, device)
    X, unit = in_safe_units(X)
    if sp.issparse(X):
        return SparseSpace(X, effective_jobs(n_jobs), unit=unit)
    if isinstance(X, np.ndarray):
        return Space(X, effective_jobs(n_jobs), unit=unit)
    return DeviceSpace(X, 1, unit=unit) if on_device(X) else TensorSpace(X, 1, unit=unit)


def in_safe_units(X: Any) -> tuple[Any, float]:
    """X divided by a power of two where squares would overflow or vanish, and that power.

    >>> in_safe_units(np.array([[1.0, -3.0]]))[1], in_safe_units(np.array([[0.0, 2.0**-200]]))
    (1.0, (array([[0., 1.]]), 6.223015277861142e-61))
    """
    unit = unit_of(X)
    return (X, unit) if unit == 1 else (X * (1 / unit), unit)


def unit_of(X: Any) -> float:
    """Power of two by which X is divided; 1 for all ordinary data."""
    return 1.0 if _surely_safe(X) else safe_unit(largest_entry(X), X.dtype)


def _surely_safe(X: Any) -> bool:
    """Whether the root mean square says so, which takes half the time of the largest entry."""
    if not isinstance(X, np.ndarray) or not X.size or not X.flags.c_contiguous:
        return False
    flat = X.reshape(-1)
    with np.errstate(over="ignore"):
        square = float(flat @ flat)
    limit = 4.0 ** SAFE[X.dtype.name]
    return X.size / limit < square < limit


def safe_unit(largest: float, dtype: Any) -> float:
    """Power of two by which data of such entries are divided; 1 for all ordinary data."""
    name = "float32" if "float32" in str(dtype) else "float64"
    exponent = int(np.frexp(largest)[1]) - 1
    if largest == 0 or abs(exponent) <= SAFE[name]:
        return 1.0
    return float(2.0 ** np.clip(exponent, -FACTORS[name], FACTORS[name]))


def largest_entry(X: Any) -> float:
    """Largest absolute value of X."""
    if sp.issparse(X):
        X = X.data
    if 0 in X.shape:
        return 0.0
    if isinstance(X, np.ndarray):
        return max(abs(float(X.max())), abs(float(X.min())))
    from array_api_compat import array_namespace

    xp = array_namespace(X)
    return max(abs(float(xp.max(X))), abs(float(xp.min(X))))


def _to_torch(X: Any, device: Any) -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"device must be None or 'cpu' without PyTorch, got {device!r}; "
            "install it with: pip install 'wellsep[deep]'."
        ) from None
    if str(device).startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device must be available, got {device!r} and PyTorch sees no CUDA GPU.")
    if sp.issparse(X):
        raise TypeError(f"X must be dense on device {device!r}, got a sparse matrix.")
    return torch.as_tensor(X, device=device)


def host(array: Any) -> np.ndarray:
    """A small result, back as NumPy."""
    return to_numpy(array)
