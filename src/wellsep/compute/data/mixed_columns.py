"""Columns of a mixed table made ready for Gower's distance: numbers over a range, and codes.

How a value is read is fixed once, on all objects of a table: the range of a number, the code of a
category. Rows that come later are read in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from wellsep._checks.arrays import is_frame, open_frame, to_numpy
from wellsep._text.sentences import quoted, shown
from wellsep.distances.base import PairSpace

MISSING = -1  # the code of a category that is not known


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns made ready: numbers in [0, 1], categories as codes, what is missing."""

    numbers: np.ndarray  # (n, p) over the range of all objects; 0 where missing
    known: np.ndarray  # (n, p) bool
    codes: np.ndarray  # (n, q) of categories and binaries
    levels: np.ndarray  # (q,) codes of each
    asymmetric: np.ndarray  # (q,) bool
    number_weights: np.ndarray  # (p,)
    code_weights: np.ndarray  # (q,)

    def take(self, rows: np.ndarray) -> Columns:
        return replace(
            self, numbers=self.numbers[rows], known=self.known[rows], codes=self.codes[rows]
        )

    def followed_by(self, other: Columns) -> Columns:
        """These rows and, after them, those of another table that was read in the same way."""
        return replace(
            self,
            numbers=np.concatenate([self.numbers, other.numbers]),
            known=np.concatenate([self.known, other.known]),
            codes=np.concatenate([self.codes, other.codes]),
            levels=np.maximum(self.levels, other.levels),
        )


@dataclass(frozen=True, eq=False)
class Reading:
    """How the columns of a table are read."""

    names: tuple[str, ...]
    ordered: Mapping[str, Sequence[Any]]  # column → levels, the lowest first
    asymmetric: tuple[str, ...]
    places: Mapping[str, Mapping[Any, int]]  # column of categories or a binary → code of each
    low: np.ndarray  # (p,) smallest value of each column of numbers
    span: np.ndarray  # (p,) range of its values; 1 where all are equal
    weights: Mapping[str, float]

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Any],
        asymmetric: tuple[str, ...],
        ordered: Mapping[str, Sequence[Any]],
        weights: Mapping[str, float],
    ) -> Reading:
        """Ranges and codes of a table, which stay those of all its objects."""
        levels = {
            name: list(ranks)
            for name, column in columns.items()
            if (ranks := ordered.get(name, getattr(column, "levels", None))) is not None
            and name not in asymmetric
        }
        places: dict[str, Mapping[Any, int]] = {name: {False: 0, True: 1} for name in asymmetric}
        low, span = [], []
        for name, column in columns.items():
            if name in asymmetric:
                continue
            if name not in levels and not isinstance(column, np.ndarray):
                places[name] = _extended({}, column)
                continue
            values = _number(column, name, levels)
            some = values[~np.isnan(values)]
            low.append(float(some.min()) if len(some) else 0.0)
            wide = float(some.max()) - low[-1] if len(some) else 0.0
            span.append(wide if wide > 0 else 1.0)
        names = tuple(columns)
        return cls(names, levels, asymmetric, places, np.array(low), np.array(span), weights)

    def check(self, columns: Mapping[str, Any]) -> None:
        """Refuse a table whose columns are not those of this reading, or are of another kind."""
        missing = [name for name in self.names if name not in columns]
        unknown = [name for name in columns if name not in self.names]
        if missing or unknown:
            wrong = f"without {quoted(missing)}" if missing else f"with {quoted(unknown)}"
            raise ValueError(
                f"the new rows must have the columns {quoted(self.names)}, got a table {wrong}."
            )
        for name, column in columns.items():
            if name in self.asymmetric or name in self.ordered:
                continue
            numbers, before = isinstance(column, np.ndarray), name not in self.places
            if numbers != before and not all(_is_missing(v) for v in column):
                kinds = ("numbers", "categories")
                raise TypeError(
                    f"column {name!r} of the new rows must hold {kinds[not before]} as in the "
                    f"first, got {kinds[not numbers]}."
                )

    def knowing(self, columns: Mapping[str, Any]) -> Reading:
        """The same reading with codes for the categories that are new in these columns."""
        new = {
            name: _extended(place, columns[name])
            for name, place in self.places.items()
            if name not in self.asymmetric
        }
        return replace(self, places={**self.places, **new})

    def read(self, columns: Mapping[str, Any]) -> Columns:
        """Numbers, codes and what is missing.

        ``columns`` as `read_columns` gives them, with the names and categories of this reading.
        """
        for name in self.asymmetric:
            wrong = [v for v in columns[name] if not _is_missing(v) and v not in (0, 1)]
            if wrong:
                raise ValueError(
                    "asymmetric must name columns of booleans or of 0 and 1, got "
                    f"{name!r} with {wrong[0]}."
                )
        of_codes = [name for name in self.names if name in self.places]
        of_numbers = [name for name in self.names if name not in self.places]
        numbers = [_number(columns[name], name, self.ordered) for name in of_numbers]
        codes = [_coded(columns[name], self.places[name]) for name in of_codes]
        n = len(columns[self.names[0]])
        table = np.column_stack(numbers) if numbers else np.zeros((n, 0))
        known = ~np.isnan(table)
        return Columns(
            # The smallest value is taken off first: data far from 0 would lose their digits.
            np.where(known, (table - self.low) / self.span, 0.0),
            known,
            np.column_stack(codes) if codes else np.zeros((n, 0), np.int32),
            np.array([max(1, len(self.places[name])) for name in of_codes], dtype=np.intp),
            np.array([name in self.asymmetric for name in of_codes], dtype=bool),
            np.array([self.weights[name] for name in of_numbers], dtype=float),
            np.array([self.weights[name] for name in of_codes], dtype=float),
        )

    def values(self, columns: Columns) -> dict[str, Any]:
        """Name → values as they were read: numbers, or words; NaN or None where one is missing."""
        values: dict[str, Any] = {}
        codes = iter(columns.codes.T)
        numbers = iter(np.where(columns.known, columns.numbers * self.span + self.low, np.nan).T)
        for name in self.names:
            if name in self.places:
                words = [*self.places[name], None]  # MISSING is -1
                values[name] = [words[code] for code in next(codes)]
            else:
                values[name] = next(numbers)
        return values


def read_columns(frame: Any) -> dict[str, Any]:
    """Name → column: a float array of numbers, or a list of words that knows its levels."""
    if isinstance(frame, PairSpace):
        raise TypeError(f"frame must be a table, got {type(frame).__name__}.")
    if not is_frame(frame):
        array = to_numpy(frame, "frame")
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise TypeError(
                "frame must be a pandas, polars or pyarrow table or an array of numbers, got "
                f"{shown(frame)}."
            )
        return {str(c): array[:, c].astype(np.float64) for c in range(array.shape[1])}
    columns: dict[str, Any] = {}
    for series in open_frame(frame, "frame").iter_columns():  # by position: a name may be a number
        name = str(series.name)
        if name in columns:
            raise ValueError(f"frame must have columns of different names, got {name!r} twice.")
        columns[name] = _read_column(series, name)
    return columns


def _is_missing(value: Any) -> bool:
    """None, NaN, or pandas' NA, which equals nothing and is not false."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _read_column(series: Any, name: str) -> Any:
    dtype = series.dtype
    if dtype.is_numeric():
        if not series.is_null().any():
            return series.to_numpy().astype(np.float64)
        return np.array([np.nan if _is_missing(v) else v for v in series.to_list()], float)
    if dtype == nw.Boolean or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        native: Any = getattr(series.to_native(), "dtype", None)  # of pandas, perhaps ordered
        ordered = getattr(native, "ordered", False)
        return _Words(series.to_list(), list(native.categories) if ordered else None)
    raise TypeError(
        f"frame must have columns of numbers, booleans, text or categories, got {name!r} of type "
        f"{dtype}; turn it into numbers, or drop it."
    )


class _Words(list):
    """The values of a column of categories, and its levels where they are ordered."""

    def __init__(self, values: list[Any], levels: list[Any] | None) -> None:
        super().__init__(None if _is_missing(v) else v for v in values)
        self.levels = levels


def _extended(place: Mapping[Any, int], column: Any) -> dict[Any, int]:
    new = dict.fromkeys(v for v in column if not _is_missing(v) and v not in place)
    return {**place, **{value: len(place) + k for k, value in enumerate(new)}}


def _coded(column: Any, place: Mapping[Any, int]) -> np.ndarray:
    return np.array([MISSING if _is_missing(v) else place[v] for v in column], np.int32)


def _number(column: Any, name: str, ordered: Mapping[str, Sequence[Any]]) -> np.ndarray:
    """Values of a column of numbers, or places in the levels of an ordered one; NaN is missing."""
    if name in ordered:
        place = {level: code for code, level in enumerate(ordered[name])}
        unknown = [v for v in column if not _is_missing(v) and v not in place]
        if unknown:
            raise ValueError(
                f"ordered[{name!r}] must hold every level of the column, got none for "
                f"{shown(unknown[0])}."
            )
        codes = _coded(column, place)
        return np.where(codes == MISSING, np.nan, codes)
    values = np.asarray(column, dtype=np.float64)
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise ValueError(
            f"frame must have finite numbers, got {values[row]} in column {name!r} (row {row})."
        )
    return values
