"""What label vectors may hold: the one check of labels, and which of them mean noise."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from wellsep._checks.arrays import is_series, to_numpy
from wellsep._text.sentences import shown

NOISE = -1
NOISE_LABELS = (-1, -2, -3)  # HDBSCAN's: noise, rows with infinite values, rows with missing ones
MISSING_TEXTS = ("nan", "NaT", "<NA>")  # what a missing value becomes in an array of text
EXACT = np.float64(2**53)  # whole floats beyond it are rounded


def as_labels(values: Any, name: str, start: int = 0) -> np.ndarray:
    """One label per object; an error names the position, counted from ``start``."""
    vector = as_vector(values, name, start)
    if vector.dtype.kind == "i" and len(vector) and int(vector.min()) < NOISE_LABELS[-1]:
        where = int(np.flatnonzero(vector < NOISE_LABELS[-1])[0])
        raise ValueError(
            f"{name} must be whole numbers from 0 on, or -1, -2 or -3 for noise, got "
            f"{vector[where]} at {start + where}; number the clusters from 0 or give them names."
        )
    return vector


def fitted_labels(estimator: Any) -> np.ndarray | None:
    """The ``labels_`` of a fitted clusterer or of the last step of a pipeline; None without."""
    for holder in (estimator, *(step for _, step in getattr(estimator, "steps", ())[-1:])):
        if getattr(holder, "labels_", None) is not None:
            return to_numpy(holder.labels_)
    return None


def in_order_of(X: Any, labels: Any) -> Any:
    """Put pandas labels, also several, in the order of the index of X, with a warning."""
    if not hasattr(X, "iloc") or isinstance(labels, str):
        return labels
    if isinstance(labels, Mapping) and not hasattr(labels, "iloc"):
        return {name: in_order_of(X, one) for name, one in labels.items()}
    if isinstance(labels, list | tuple) and any(hasattr(one, "iloc") for one in labels):
        return [in_order_of(X, one) for one in labels]
    if not hasattr(labels, "iloc") or len(X) != len(labels) or X.index.equals(labels.index):
        return labels
    if not labels.index.is_unique or not X.index.isin(labels.index).all():
        return labels
    warnings.warn(
        "labels have the index of X in another order, and were put in that of X. Pass "
        "labels.to_numpy() if they belong to the rows as they stand.",
        stacklevel=4,
    )
    return labels.loc[X.index]


def merge_noise(vector: np.ndarray) -> np.ndarray:
    """Checked labels with −2 (infinite values) and −3 (missing values) written as −1."""
    if vector.dtype.kind != "i" or not len(vector) or int(vector.min()) >= NOISE:
        return vector
    return np.maximum(vector, vector.dtype.type(NOISE))


def as_vector(values: Any, name: str, start: int = 0) -> np.ndarray:
    """One entry per object, as integers or text; whole floats become integers."""
    array = values if type(values) is np.ndarray else _to_array(values, name, start)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one value per object, got shape {array.shape}; "
            f"{name} must be 1D: shape is {array.shape}."  # the second half is scikit-learn's
        )
    kind = array.dtype.kind
    if kind in "OT":
        array = _from_objects(array.astype(object), name, start)
    elif kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{name} must be UTF-8 text, got other bytes.") from None
    if array.dtype.kind == "f":
        return _whole_numbers(array, name, start)
    if array.dtype.kind == "U":
        _refuse_no_characters(array, name, start)
        _refuse_missing(np.isin(array, MISSING_TEXTS), name, start)
    elif array.dtype.kind not in "iub":
        raise TypeError(f"{name} must be integers or text, got {array.dtype}.")
    return array


def _to_array(values: Any, name: str, start: int) -> np.ndarray:
    if is_series(values):
        series = nw.from_native(values, series_only=True)
        if series.null_count():
            _refuse_missing(series.is_null().to_numpy(), name, start)
        return np.asarray(series.to_numpy())
    listed = isinstance(values, list | tuple)
    if listed and any(isinstance(v, str) for v in values):
        return _objects(values)
    try:
        array = to_numpy(values, name)
        if listed and array.dtype.kind == "f" and (np.abs(array) > EXACT).any():
            return _objects(values)  # NumPy rounds a list of large integers
        return array
    except ValueError as error:  # lists of unequal length
        if listed:
            raise ValueError(f"{name} must be one value per object, got {error}.") from None
        raise


def _objects(values: Sequence[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _from_objects(array: np.ndarray, name: str, start: int) -> np.ndarray:
    flat = array.tolist()
    _refuse_missing(np.fromiter((_is_missing(v) for v in flat), bool, len(flat)), name, start)
    if all(isinstance(v, str) for v in flat):
        for where, text in enumerate(flat):
            if text.endswith("\0"):  # NumPy would drop it, and two names would be one
                raise ValueError(
                    f"{name} must not end in NUL, got {text!r} at {start + where}; rename it."
                )
        return array.astype(np.str_)
    if all(isinstance(v, int | np.integer | np.bool_) for v in flat):
        return _from_integers([int(v) for v in flat], name, start)
    if all(isinstance(v, numbers.Real) for v in flat):
        return np.array([float(v) for v in flat])
    kinds = sorted({type(v).__name__ for v in flat})
    where = next((i for i, v in enumerate(flat) if type(v) is not type(flat[0])), 0)
    raise TypeError(
        f"{name} must be all text or all integers, got {', '.join(kinds)}, with "
        f"{shown(flat[where])} at {start + where}; convert them to one kind."
    )


def _from_integers(values: list[int], name: str, start: int) -> np.ndarray:
    low, high = min(values), max(values)
    if low >= -(2**63) and high < 2**63:
        return np.array(values, dtype=np.int64)
    if low >= 0 and high < 2**64:
        return np.array(values, dtype=np.uint64)
    where = values.index(low if low < -(2**63) else high)
    raise ValueError(
        f"{name} must fit 64 bits, got a number of {values[where].bit_length()} bits at "
        f"{start + where}; number the clusters from 0 or give them names."
    )


def _whole_numbers(array: np.ndarray, name: str, start: int) -> np.ndarray:
    _refuse_missing(~np.isfinite(array), name, start)
    parted = array != np.trunc(array)
    if parted.any():
        where = int(np.flatnonzero(parted)[0])
        raise ValueError(
            f"{name} must be whole numbers or names, got {array[where]} at {start + where}; are "
            "X and labels exchanged?"
        )
    large = np.abs(array) > EXACT
    if large.any():
        where = int(np.flatnonzero(large)[0])
        raise ValueError(
            f"{name} must be whole numbers of at most 2**53 where they are floats, got "
            f"{array[where]} at {start + where}; such floats are rounded: pass integers or text."
        )
    return array.astype(np.int64)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and not np.isfinite(value)


def _refuse_no_characters(array: np.ndarray, name: str, start: int) -> None:
    """Refuse code points beyond Unicode, which a file may hold and Python makes no text of."""
    codes = np.ascontiguousarray(array).view(f"{array.dtype.str[0]}u4").reshape(len(array), -1)
    if len(codes) and int(codes.max()) > sys.maxunicode:
        where = int(np.flatnonzero((codes > sys.maxunicode).any(axis=1))[0])
        raise ValueError(
            f"{name} must be text, got no character at {start + where}; the file is damaged."
        )


def _refuse_missing(missing: np.ndarray, name: str, start: int) -> None:
    if missing.any():
        where = int(np.flatnonzero(missing)[0])
        raise ValueError(
            f"{name} must have a value for every object, got none for {int(missing.sum())} "
            f"object(s), first at {start + where}; label such objects -1."
        )
