"""What is explored: a table, sparse rows, distances, a mixed table, or several embeddings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from wellsep._checks.arrays import check_data, is_dask, is_frame, open_frame, to_numpy
from wellsep._checks.values import check_mapping
from wellsep._files.arrays import Stored
from wellsep._text.sentences import listing
from wellsep.adapters.anndata import layouts_of, opened_anndata
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.distances.base import PairSpace
from wellsep.runs import Runs

DATA = "data"  # name of the only space
MOST_ROWS, MOST_PAIRS = 20_000, 4_000  # objects that candidates are made of
APART, DOMINATES = 2.0, 10.0  # ratios of the ranges of columns from which on units differ


class Units(NamedTuple):
    """How rows are brought into the units of a space: (row − mean) · factor, where factor > 0."""

    mean: np.ndarray
    factor: np.ndarray

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Rows in these units."""
        used = self.factor > 0
        return np.asarray((X[:, used] - self.mean[used]) * self.factor[used])


class Given(NamedTuple):
    """The data as candidates take them."""

    spaces: dict[str, Any]  # dense rows, sparse rows of unit length, or distances
    units: dict[str, Units]  # of the dense ones
    ids: np.ndarray | None
    table: Any  # numbers with names of columns, to describe clusters by; or None
    objects: np.ndarray  # rows of what was given that the spaces consist of
    n_objects: int
    notes: tuple[str, ...]


def open_given(X: Any, rng: np.random.Generator) -> Given:
    """Open data of any kind; of many objects a sample, and the notes say so."""
    named, ids, notes = by_name(X)
    sizes = {name: int(space.shape[0]) for name, space in named.items()}
    n = next(iter(sizes.values()))
    for name, size in sizes.items():
        if size != n:
            raise ValueError(
                f"X must hold embeddings of the same objects, got {size} in {name!r} and {n} in "
                f"{next(iter(sizes))!r}."
            )
    pairs = any(isinstance(space, PairSpace) for space in named.values())
    most = MOST_PAIRS if pairs else MOST_ROWS
    objects = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    if n > most:
        notes.append(
            f"The candidates were made of {most:,} of {n:,} objects, drawn at random. The others "
            "have the label that their nearest neighbours have."
        )
    spaces: dict[str, Any] = {}
    units: dict[str, Units] = {}
    for name, space in named.items():
        rows = take(space, objects, n)
        if isinstance(rows, PairSpace):
            spaces[name] = rows
        elif sp.issparse(rows):
            spaces[name] = normalize(check_data(rows, sparse=True))
            notes.append("Sparse rows were compared by their cosine.")
        else:
            dense = np.asarray(to_numpy(check_data(rows)), dtype=np.float64)
            units[name] = _units(dense, one=len(named) == 1)
            spaces[name] = units[name].rows(dense)
            if (units[name].factor[units[name].factor > 0] != 1).any():
                notes.append(
                    "The units of the columns differ, so each was scaled to mean 0 and standard "
                    "deviation 1."
                )
    table = take(X, objects, n) if is_frame(X) and not pairs else None
    ids = None if ids is None else np.asarray(ids)
    return Given(spaces, units, ids, table, objects, n, tuple(dict.fromkeys(notes)))


def by_name(X: Any) -> tuple[dict[str, Any], Any, list[str]]:
    """Spaces by name, names of the objects, and what was left out or taken for what."""
    if isinstance(X, Runs):
        return dict(X.spaces), X.ids, []
    if isinstance(X, str | os.PathLike) or (hasattr(X, "obsm") and hasattr(X, "obs_names")):
        return _of_anndata(X)
    if isinstance(X, Mapping):
        check_mapping("X", X)
        if not X:
            raise ValueError("X must hold at least one embedding, got none.")
        return {str(name): _single(value)[0] for name, value in X.items()}, None, []
    space, notes = _single(X)
    return {DATA: space}, getattr(space, "names", None), notes


def _of_anndata(X: Any) -> tuple[dict[str, Any], Any, list[str]]:
    with opened_anndata(X) as parts:
        opened = {key: parts.open_space(key) for key in parts.keys}
        drawings = layouts_of(opened)
        spaces = {key: value for key, value in opened.items() if key not in drawings}
        notes = []
        if drawings:
            notes.append(
                f"{listing(map(repr, drawings))} of obsm was left out: two columns are a drawing."
            )
        spaces = spaces or {"X": parts.open_space("X")}
        return {key: _read(value) for key, value in spaces.items()}, parts.ids, notes


def _read(value: Any) -> Any:
    """An embedding of AnnData, read where it lies in a file."""
    return value.open() if isinstance(value, Stored) else value


def _single(X: Any) -> tuple[Any, list[str]]:
    """One table as it will be cut into rows; words and gaps in it are compared by Gower."""
    if isinstance(X, PairSpace):
        if not X.complete:
            raise ValueError(X.refusal("X"))  # type: ignore[attr-defined]
        return X, []
    if is_dask(X):
        return X if hasattr(X, "chunks") else X.to_dask_array(lengths=True), []
    if is_frame(X):
        frame = open_frame(X)
        words = [
            n for n, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)
        ]
        gaps = [n for n in frame.columns if n not in words and _has_gaps(frame[n])]
        if words or gaps:
            why = f"{listing(map(repr, words or gaps), 4)} {'holds words' if words else 'has gaps'}"
            return MixedTable(X), [
                f"Gower's distance was used, for numbers, words and gaps: {why}."
            ]
        return X, []
    if sp.issparse(X) or hasattr(X, "shape"):
        return X, []
    return check_data(X), []


def _has_gaps(column: Any) -> bool:
    return bool(column.is_null().any() or (column.dtype.is_float() and column.is_nan().any()))


def take(X: Any, objects: np.ndarray, n: int) -> Any:
    """Some objects of data of any kind."""
    if len(objects) == n:
        return np.asarray(X) if is_dask(X) else X
    if isinstance(X, PairSpace):
        return X.take(objects)
    if is_frame(X):
        return open_frame(X)[objects].to_native()
    return to_numpy(X[objects]) if is_dask(X) else X[objects]


def _units(X: np.ndarray, *, one: bool) -> Units:
    """The units of a table's columns; those of an embedding, one of several, are left as they are.

    The ranges are compared, not the deviations: the edge of a picture hardly varies and yet has
    the unit of its middle.
    """
    ranges = np.ptp(X, axis=0)
    varies = ranges > 0
    factor = varies.astype(np.float64) if varies.any() else np.ones(X.shape[1])
    mean = np.zeros(X.shape[1])
    low, middle, high = (
        np.quantile(ranges[varies], [0.25, 0.5, 0.75]) if varies.any() else (1, 1, 1)
    )
    if one and (high > APART * low or ranges.max() > DOMINATES * middle):
        mean = X.mean(axis=0)
        factor[varies] = 1 / X.std(axis=0)[varies]
    return Units(mean, factor)
