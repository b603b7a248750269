"""Every input check and its message; what an array is, where it lies, and its unit."""

from __future__ import annotations

import math
import numbers
import os
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from wellsep._files.maps import in_memory
from wellsep._text.sentences import meant, quoted, shown
from wellsep.distances.base import PairSpace, looks_like_distances

MOST = 2**63 - 1  # of a count
SPREADS_APART = 100  # standard deviations of columns from which a few decide the distances
_EXACT = 2**53  # the largest integer of which a float knows every digit
# Exponents of two between which the largest number of X may lie: products of four numbers of
# such data, and of their differences, neither overflow nor vanish. Beyond, X is divided by a
# power of two, which changes no digit.
SAFE = {"float32": 32, "float64": 128}
FACTORS = {"float32": 120, "float64": 1000}  # exponents of the powers that the type itself holds
# Names that ids often have: they hold ids if no value comes twice.
_ID_LIKE = re.compile(
    r"(?i:(.*[_ .-])?(ids?|barcodes?|uuid|names?)|row[_ .]?names?)|.*[a-z](ID|Id)s?"
)


class UndefinedIndex(ValueError):
    """An index has no value for this partition; the message says why."""

    exit_code = 1  # of the command line: no answer, rather than bad input


def check_choice(name: str, value: Any, options: Iterable[Any]) -> Any:
    options = tuple(options)
    plain = value is None or isinstance(value, str | numbers.Real | np.bool_)
    if not plain or value not in options:
        near = meant(value, options)
        raise ValueError(f"{name} must be one of {quoted(options, 40)}, got {shown(value)}{near}")
    return value


def check_count(name: str, value: Any, minimum: int = 1, maximum: int = MOST) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {shown(value)}.")
    count = int(value)
    if count < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {shown(count)}.")
    if count > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {shown(count)}.")
    return count


def check_number(
    name: str,
    value: Any,
    minimum: float | None = None,
    maximum: float | None = None,
    open_left: bool = False,
    infinite: bool = False,
) -> float:
    """A float or an integer of Python's or NumPy's; infinity only where it has a meaning."""
    plain = isinstance(value, float | int | np.floating | np.integer)
    if isinstance(value, bool) or not plain:
        raise TypeError(f"{name} must be a number, got {shown(value)}.")
    if isinstance(value, int) and abs(value) > _EXACT:
        raise ValueError(f"{name} must be a float where it is so large, got {shown(value)}.")
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got NaN.")
    if math.isinf(number) and not infinite:
        raise ValueError(f"{name} must be finite, got {number}.")
    if minimum is not None and (number < minimum or (open_left and number == minimum)):
        rule = "greater than" if open_left else "at least"
        raise ValueError(f"{name} must be {rule} {minimum}, got {number}.")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {number}.")
    return number


def check_fraction(name: str, value: Any) -> float:
    return check_number(name, value, 0.0, 1.0, open_left=True)


def check_numbers(name: str, value: Any) -> np.ndarray:
    """An array of numbers of any shape, in float64."""
    array = to_numpy(value, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got an array of type {array.dtype}.")
    return array.astype(np.float64)


def check_positions(name: str, value: Any, n: int) -> np.ndarray:
    """Whole numbers below n, from the end where negative; a mask of n values counts as well."""
    array = to_numpy(value, name)
    if array.ndim == 1 and not len(array):
        return np.zeros(0, dtype=np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iub":
        raise TypeError(f"{name} must be whole numbers, got {shown(value)}.")
    if array.dtype.kind == "b":
        if len(array) != n:
            raise ValueError(f"{name} must have {n} values as a mask, got {len(array)}.")
        return np.flatnonzero(array)
    outside = array[(array >= n) | (array < -n)]
    if len(outside):
        raise ValueError(f"{name} must be below {n}, got {outside[0]}.")
    return array.astype(np.intp)


def kernels_wanted() -> bool:
    """Whether faster twins may be used; ``WELLSEP_KERNELS=0`` turns all of them off."""
    return os.environ.get("WELLSEP_KERNELS", "1") != "0"


def is_torch(array: Any) -> bool:
    """Whether this is a PyTorch tensor; never imports PyTorch."""
    return type(array).__module__.partition(".")[0] == "torch" and hasattr(array, "detach")


def is_host(X: Any) -> bool:
    """Whether X is a NumPy array or a SciPy sparse matrix."""
    return sp.issparse(X) or isinstance(X, np.ndarray)


def on_device(X: Any) -> bool:
    """Whether X is a torch tensor on an accelerator."""
    return is_torch(X) and X.device.type != "cpu"


def device_of(X: Any) -> Any:
    """The accelerator that a tensor lies on; None for anything on the host."""
    return X.device if on_device(X) else None


def host_view(X: Any) -> Any:
    """X as NumPy, without a copy where it lies in host memory; a tensor on a card stays."""
    if isinstance(X, np.ndarray) or sp.issparse(X) or on_device(X):
        return X
    return to_numpy(X)


def in_library_of(given: Any, values: Any) -> Any:
    """Results on the host in the array library of the given data."""
    if isinstance(given, np.ndarray) or sp.issparse(given) or not isinstance(values, np.ndarray):
        return values
    xp = array_namespace(given)
    return xp.asarray(values.astype(np.int64) if values.dtype.kind == "i" else values)


def is_dask(data: Any) -> bool:
    """Whether this is a dask array or dataframe; never imports dask."""
    package = type(data).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(data, "__dask_graph__")


def is_frame(data: Any) -> bool:
    """Whether narwhals reads this as a dataframe (pandas, polars, pyarrow …)."""
    if isinstance(data, np.ndarray | list | tuple) or sp.issparse(data):
        return False
    return nw.dependencies.is_into_dataframe(data)


def is_series(data: Any) -> bool:
    if isinstance(data, np.ndarray | list | tuple) or sp.issparse(data):
        return False
    return nw.dependencies.is_into_series(data)


def to_numpy(array: Any, name: str = "the array") -> np.ndarray:
    """A NumPy view or copy of any array kind: torch, CuPy, array-API, frame, list."""
    if isinstance(array, np.ndarray):
        return array if type(array) is np.ndarray else _plain(array, name)
    if is_torch(array):
        _refuse_sparse_tensor(array, name)
        return np.asarray(array.detach().cpu().numpy())
    if is_frame(array) or is_series(array):
        return np.asarray(array.to_numpy())
    if hasattr(array, "get") and type(array).__module__.startswith("cupy"):
        return np.asarray(array.get())
    if sp.issparse(array):
        return np.asarray(array.toarray())
    if hasattr(array, "__array_namespace__") and not hasattr(array, "__array__"):
        return np.from_dlpack(array)
    return _as_array(array, name)


def _plain(array: np.ndarray, name: str) -> np.ndarray:
    """Without the subclasses whose arithmetic differs: np.matrix and arrays with masked values."""
    if isinstance(array, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(array)
        if masked.any():
            where = tuple(int(i) for i in np.argwhere(masked)[0])
            place = where[0] if len(where) == 1 else where
            raise ValueError(
                f"{name} must not have masked values, got {int(masked.sum())}, first at {place}; "
                "fill them with .filled(value), or leave such objects out."
            )
        return np.asarray(array.data)
    return np.asarray(array) if isinstance(array, np.matrix) else array


def _refuse_sparse_tensor(array: Any, name: str) -> None:
    layout = str(getattr(array, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise TypeError(
            f"{name} must be a dense tensor, got one of layout {layout}; "
            "pass .to_dense(), or a SciPy sparse matrix."
        )


def open_frame(X: Any, name: str = "X") -> Any:
    """A frame as narwhals reads it, which wants names of columns that differ."""
    try:
        return nw.from_native(X, eager_only=True)
    except ValueError as error:
        text = " ".join(str(error).split())
        raise ValueError(f"{name} must have columns of different names. {text}.") from None


def column_names(X: Any) -> list[str] | None:
    return [str(c) for c in open_frame(X).columns] if is_frame(X) else None


def may_name_ids(name: str) -> bool:
    """Tell whether a column holds ids by its name if no value comes twice: barcode, sample_id."""
    return _ID_LIKE.fullmatch(name.strip()) is not None


def warn_of_ids(X: Any, name: str = "X") -> None:
    """Say that a column of whole numbers in a frame looks like ids, and is read as a feature."""
    frame = open_frame(X, name)
    for column, dtype in frame.schema.items():
        named = dtype.is_integer() and may_name_ids(str(column)) and len(frame) > 1
        if named and frame.get_column(column).n_unique() == len(frame):
            warnings.warn(
                f"{name} has a column {column!r} that looks like ids (no value comes twice), and "
                "is read as a feature. Drop it if it names the objects.",
                stacklevel=4,
            )


def _frame_to_numpy(X: Any, name: str) -> np.ndarray:
    warn_of_ids(X, name)
    frame = open_frame(X, name)
    for column, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise TypeError(
                f"{name} must have numeric columns, got column {column!r} of type {dtype}; "
                f"drop it, or pass wellsep.MixedTable({name}), which takes words and gaps."
            )
    array: np.ndarray = frame.to_numpy()
    return array.astype(np.float64) if array.dtype.kind in "Ob" else array


def check_data(
    X: Any,
    *,
    name: str = "X",
    minimum: int = 1,
    sparse: bool = False,
    distances: bool = False,
) -> Any:
    """X as a two-dimensional, finite float array of its own kind; float32 stays."""
    names = None
    if not isinstance(X, np.ndarray):
        refuse_distances(X, name)
        if is_dask(X):
            raise TypeError(
                f"{name} must be in memory here, got a dask {type(X).__name__}; "
                f"pass {name}.compute() if it fits."
            )
        if sp.issparse(X):
            return _check_sparse(X, name, minimum, sparse)
        if is_frame(X):
            names = column_names(X)
            X = _frame_to_numpy(X, name)
        elif is_torch(X) or hasattr(X, "__array_namespace__"):
            return _check_foreign(X, name, minimum)
        else:
            X = _as_array(X, name)
    if type(X) is not np.ndarray:
        X = in_memory(_plain(X, name))
    if X.dtype.kind not in "fiub":
        X = _numeric(X, name)
    _check_shape(X, name, minimum)
    X = X.astype(np.float64, copy=False) if X.dtype not in (np.float32, np.float64) else X
    _check_finite(X, name, names)
    if not distances and X.shape[0] == X.shape[1]:
        warn_of_distances(X, name)
    return X


def _check_sparse(X: Any, name: str, minimum: int, allowed: bool) -> Any:
    if not allowed:
        raise TypeError(
            f"{name} must be dense here, got a sparse matrix; "
            "use a centroid index, or pass X.toarray() if it fits in memory."
        )
    X = narrow_indices(sp.csr_array(X))
    if X.dtype.kind == "c":
        raise TypeError(f"{name} must be real, got complex numbers.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    _check_shape(X, name, minimum)
    if not np.isfinite(X.data).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity among its entries.")
    return X


def narrow_indices(X: Any) -> Any:
    """A sparse matrix with 32-bit indices where they suffice, which is all that many codes take."""
    if X.format != "csr" or X.indices.dtype == np.int32 or max(X.nnz, *X.shape) >= 2**31:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(parts, shape=X.shape)


def warn_of_distances(X: np.ndarray, name: str = "X") -> None:
    """Say that a square table looks like distances, and is read as coordinates."""
    if looks_like_distances(X):
        warnings.warn(
            f"{name} looks like a matrix of distances (square, symmetric, zero diagonal), and is "
            f"read as {len(X)} objects with {len(X)} features. Pass wellsep.Distances({name}) if "
            "it holds distances.",
            stacklevel=3,
        )


def refuse_distances(X: Any, name: str = "X") -> None:
    """Raise where coordinates are needed and X is a space without them."""
    if isinstance(X, PairSpace):
        raise TypeError(
            f"{name} must have coordinates here, got {type(X).__name__}; pass the table that the "
            "distances were computed from."
        )


def to_table(X: Any, name: str = "X") -> np.ndarray:
    """X as an array of at least one dimension; scikit-learn's checks follow."""
    refuse_distances(X, name)
    array: np.ndarray = to_numpy(X, name)
    if array.ndim == 0:
        raise ValueError(
            f"{name} must be a table of objects and features, got {shown(X)}. "
            "Reshape your data: Expected 2D array, got scalar array instead."
        )
    return array


def name_x(check: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a check of scikit-learn's returns; its sentences do not all name X."""
    if options.get("reset") and is_frame(args[1]):
        warn_of_ids(args[1])
    try:
        return check(*args, **options)
    except OverflowError:
        raise ValueError("X must fit float64 (about 1e308), got larger numbers.") from None
    except (TypeError, ValueError) as error:
        if re.search(r"\bX\b", str(error)):
            raise
        rule = "be a table of finite numbers"
        if "feature names should match" in str(error):
            rule = "have the columns of fit in their order; pass X[clusterer.feature_names_in_]"
        elif "could not convert string" in str(error):
            rule = "hold numbers; wellsep.KMedoids clusters words too, as wellsep.MixedTable(X)"
        raise type(error)(f"X must {rule}. {error}") from None


def _as_array(values: Any, name: str) -> np.ndarray:
    """What NumPy makes of a list or another object that it can read."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"{name} must be a table of numbers or a vector, got {shown(values)}: "
            f"{shown(str(error))}."
        ) from None


def _numeric(X: np.ndarray, name: str) -> np.ndarray:
    if X.dtype.kind == "c":
        raise TypeError(f"{name} must be real, got complex numbers.")
    if X.dtype.kind == "O":
        try:
            return X.astype(np.float64)
        except (TypeError, ValueError):
            pass
        except OverflowError:
            raise ValueError(
                f"{name} must fit float64 (about 1e308), got a larger whole number; rescale it."
            ) from None
    raise TypeError(
        f"{name} must be numeric, got an array of type {X.dtype}; convert its columns to numbers."
    )


def _check_shape(X: Any, name: str, minimum: int) -> None:
    if X.ndim != 2:
        remedy = (
            f"; reshape it with {name}.reshape(len({name}), -1)"
            if X.ndim != 1
            else f"; labels come after the data, and a single feature is {name}.reshape(-1, 1)"
        )
        raise ValueError(f"{name} must be two-dimensional, got {X.ndim} dimension(s){remedy}.")
    n, d = X.shape
    if d == 0:
        raise ValueError(f"{name} must have at least 1 column, got shape {tuple(X.shape)}.")
    if n < minimum:
        raise ValueError(f"{name} must have at least {minimum} row(s), got {n}.")


def _check_finite(X: np.ndarray, name: str, names: list[str] | None) -> None:
    # If the sum is finite, all values are; else each value is checked, which is slower.
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(X.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    column = int(np.flatnonzero(bad.any(axis=0))[0])
    row = int(np.flatnonzero(bad[:, column])[0])
    label = f"column {names[column]!r}" if names else f"column {column}"
    raise ValueError(
        f"{name} must be finite, got {X[row, column]} in {label} (row {row}); "
        "drop or impute such rows first."
    )


def check_finite_objects(X: np.ndarray, name: str = "X") -> None:
    """Refuse NaN and infinity in data of any number of dimensions, such as images."""
    if X.dtype.kind != "f":
        return
    finite = np.isfinite(X).reshape(len(X), -1).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in object {int(np.argmin(finite))}; "
            "drop or impute such objects first."
        )


def _check_foreign(X: Any, name: str, minimum: int) -> Any:
    xp = array_namespace(X)
    _refuse_sparse_tensor(X, name)
    if X.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got {X.ndim} dimension(s).")
    _check_shape(X, name, minimum)
    if xp.isdtype(X.dtype, "complex floating"):
        raise TypeError(f"{name} must be real, got complex numbers.")
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    if isinstance(view := host_view(X), np.ndarray):  # threads of torch would wait beside ours
        _check_finite(view, name, None)
    # The sum needs no table; it may overflow where all entries are finite.
    elif not bool(xp.isfinite(xp.sum(X))) and not bool(xp.all(xp.isfinite(X))):
        bad = xp.any(~xp.isfinite(X), axis=0)
        column = int(np.flatnonzero(to_numpy(bad))[0])
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in column {column}; "
            "drop or impute such rows first."
        )
    return X


def spreads_apart(X: np.ndarray, names: Sequence[str] | None) -> str | None:
    """A sentence where a few named columns are so much wider that they decide the distances."""
    if names is None or not isinstance(X, np.ndarray) or X.shape[1] != len(names):
        return None
    spread = X.std(axis=0)
    known = np.flatnonzero(spread > 0)
    if not len(known):
        return None
    low, high = (int(known[place(spread[known])]) for place in (np.argmin, np.argmax))
    factor = float(spread[high] / spread[low])
    if factor < SPREADS_APART:
        return None
    return (
        f"Columns differ in spread by a factor of {float(f'{factor:.2g}'):,.0f}: {names[high]!r} "
        f"{spread[high]:,.4g}, {names[low]!r} {spread[low]:,.4g}. The widest decide the distances; "
        "scale the columns if they have different units (in the shell: --scale)."
    )


def check_weights(sample_weight: Any, n: int, name: str = "sample_weight") -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = to_numpy(sample_weight, name)
    if weights.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numeric, got an array of type {weights.dtype}.")
    weights = weights.astype(np.float64)
    if weights.shape != (n,):
        raise ValueError(f"{name} must have one value per object ({n}), got shape {weights.shape}.")
    if not np.isfinite(weights).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    if (weights < 0).any():
        where = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"{name} must not be negative, got {weights[where]} at {where}.")
    if not weights.any():
        raise ValueError(f"{name} must have at least one positive value, got zeros only.")
    return weights


def in_safe_units(X: Any) -> tuple[Any, float]:
    """X divided by a power of two where squares would overflow or vanish, and that power."""
    unit = unit_of(X)
    return (X, unit) if unit == 1 else (X * (1 / unit), unit)


def unit_of(X: Any) -> float:
    """Power of two by which X is divided; 1 for all ordinary data."""
    # A mapped file may be larger than memory; its extremes are found in blocks.
    if type(X) is np.ndarray and X.size and X.flags.c_contiguous:
        flat = X.reshape(-1)
        with np.errstate(over="ignore"):
            square = float(flat @ flat)
        limit = 4.0 ** SAFE["float32" if X.dtype == np.float32 else "float64"]
        if X.size / limit < square < limit:  # takes half the time of the largest entry
            return 1.0
    return safe_unit(largest_entry(X), X.dtype)


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
    xp = array_namespace(X)
    return max(abs(float(xp.max(X))), abs(float(xp.min(X))))
