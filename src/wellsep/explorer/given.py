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
from wellsep._checks.values import check_path
from wellsep._files.limits import is_anndata
from wellsep._text.sentences import listing
from wellsep.adapters.anndata import layouts_of, opened_anndata
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.distances.base import PairSpace
from wellsep.runs import Runs

MOST_ROWS, MOST_PAIRS = 20_000, 4_000  # objects that candidates are made of
APART, DOMINATES = 2.0, 10.0  # ratios of the ranges of columns from which on units differ
SCALED = "The units of the columns differ, so each was scaled to mean 0 and standard deviation 1."


class Given(NamedTuple):
    """The data as candidates take them."""

    spaces: dict[str, Any]  # dense rows, sparse rows of unit length, or distances
    units: dict[str, tuple[np.ndarray, np.ndarray]]  # mean and factor of each column of dense rows
    ids: np.ndarray | None
    table: Any  # a frame of numbers, to describe clusters by; or None
    objects: np.ndarray  # rows of what was given that the spaces consist of
    n_objects: int
    notes: list[str]


def open_given(X: Any, rng: np.random.Generator) -> Given:
    """Open data of any kind; of many objects a sample, and the notes say so."""
    named, ids, notes = by_name(X)
    first, n = next((name, int(space.shape[0])) for name, space in named.items())
    for name, space in named.items():
        if space.shape[0] != n:
            raise ValueError(
                f"X must hold embeddings of the same objects, got {space.shape[0]} in {name!r} and "
                f"{n} in {first!r}."
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
    units = {}
    for name, space in named.items():
        rows = _take(space, objects)
        if not (isinstance(rows, PairSpace) or sp.issparse(rows)):
            rows = _dense(rows, warned=isinstance(space, np.ndarray))
            units[name] = _units(rows, scale=len(named) == 1)
            if units[name][0].any():
                notes.append(SCALED)
        spaces[name] = comparable(rows, units.get(name))
        if sp.issparse(rows) and len(named) == 1:
            notes.append("Sparse rows were compared by their cosine.")
    table = _take(X, objects) if is_frame(X) and not pairs else None
    return Given(spaces, units, None if ids is None else np.asarray(ids), table, objects, n, notes)


def comparable(rows: Any, units: tuple[np.ndarray, np.ndarray] | None) -> Any:
    """Rows as they are compared: in the units of their columns, or of unit length if sparse."""
    if isinstance(rows, PairSpace):
        return rows
    if sp.issparse(rows):
        return normalize(check_data(rows, sparse=True))
    rows = _dense(rows, warned=True)
    if units is None:
        return rows
    mean, factor = (part[units[1] > 0] for part in units)
    return (rows[:, units[1] > 0] - mean) * factor


def by_name(X: Any) -> tuple[dict[str, Any], Any, list[str]]:
    """Spaces by name, names of the objects, and what was left out or taken for what."""
    if isinstance(X, Runs):
        return dict(X.spaces), X.ids, []
    if isinstance(X, str | os.PathLike):
        X = check_path("X", X)
        if not is_anndata(X):
            raise ValueError(
                f"X must be a table, or the path of an .h5ad file or .zarr folder, got {X}. Read "
                "a table first, for instance with pandas.read_csv; wellsep explore reads files."
            )
    if isinstance(X, os.PathLike) or (hasattr(X, "obsm") and hasattr(X, "obs_names")):
        with opened_anndata(X) as parts:
            opened = {key: parts.open_space(key) for key in parts.keys}
            drawings = layouts_of(opened)
            used = [key for key in opened if key not in drawings] or ["X"]
            spaces = {key: parts.open_space(key) for key in used}
            left_out = f"{listing(map(repr, drawings))} of obsm: two columns are a drawing."
            notes = [f"Left out was {left_out}"] if drawings else []
            read = {k: v.open() if hasattr(v, "open") else v for k, v in spaces.items()}
            return read, parts.ids, notes
    if isinstance(X, Mapping):
        if not X:
            raise ValueError("X must hold at least one embedding, got none.")
        return {str(name): _single(value)[0] for name, value in X.items()}, None, []
    space, notes = _single(X)
    return {"data": space}, getattr(space, "names", None), notes


def _single(X: Any) -> tuple[Any, list[str]]:
    """One table as it will be cut into rows; words and gaps in it are compared by Gower."""
    if isinstance(X, PairSpace) and not X.complete:
        raise ValueError(X.refusal("X"))  # type: ignore[attr-defined]
    if is_dask(X) and not hasattr(X, "chunks"):
        return X.to_dask_array(lengths=True), []
    if not is_frame(X):
        kept = is_dask(X) or sp.issparse(X) or isinstance(X, PairSpace)
        return X if kept else check_data(X, minimum=0), []
    frame = open_frame(X)
    kinds = frame.schema.items()
    words = [name for name, kind in kinds if not (kind.is_numeric() or kind == nw.Boolean)]
    gaps = [
        name for name in frame.columns if name not in words and _has_gaps(frame.get_column(name))
    ]
    if not words and not gaps:
        return X, []
    why = f"{listing(map(repr, words or gaps), 4)} {'holds words' if words else 'has gaps'}"
    return MixedTable(X), [f"Gower's distance was used, for numbers, words and gaps: {why}."]


def _has_gaps(column: Any) -> bool:
    return bool(column.is_null().any() or (column.dtype.is_float() and column.is_nan().any()))


def _dense(rows: Any, *, warned: bool = False) -> np.ndarray:
    """Rows as NumPy has them; a warning of distances is not said twice."""
    return np.asarray(to_numpy(check_data(rows, distances=warned)), dtype=np.float64)


def _take(X: Any, objects: np.ndarray) -> Any:
    """Some objects of data of any kind; chunks are computed."""
    if isinstance(X, PairSpace):
        return X.take(objects)
    if is_frame(X):
        return open_frame(X)[objects].to_native()
    return np.asarray(X[objects]) if is_dask(X) else X[objects]


def _units(X: np.ndarray, *, scale: bool) -> tuple[np.ndarray, np.ndarray]:
    """Mean and factor of each column: a row is compared as (row − mean) · factor.

    A constant column has the factor 0. The ranges are compared, not the deviations: the edge of a
    picture hardly varies and yet has the unit of its middle.
    """
    ranges = np.ptp(X, axis=0)
    varies = ranges > 0
    mean, factor = np.zeros(X.shape[1]), np.where(varies | ~varies.any(), 1.0, 0.0)
    if scale and varies.any():
        low, middle, high = np.quantile(ranges[varies], [0.25, 0.5, 0.75])
        if high > APART * low or ranges.max() > DOMINATES * middle:
            mean = X.mean(axis=0)
            factor[varies] = 1 / X.std(axis=0)[varies]
    return mean, factor
