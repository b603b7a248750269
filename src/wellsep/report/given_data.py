"""The data a result was made from, as a page draws it: rows, distances or the only space."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from wellsep._checks.arrays import check_data, to_numpy
from wellsep.distances.base import PairSpace
from wellsep.runs import Runs

DATA = "the data"


def given_data(runs: Any, least: int, which: str, *, more: bool = False) -> tuple[Any, Any]:
    """The data and the names of the objects.

    ``runs`` are a matrix, a sparse one, a frame, distances, or runs of one space. With ``more``
    there may be further objects.

    Examples
    --------
    >>> X, ids = given_data([[0.0], [1.0]], 2, "that were clustered")
    >>> X.shape, ids
    ((2, 1), None)
    """
    X: Any
    ids: Any = None
    if isinstance(runs, Runs):
        spaces = list(runs.spaces)
        if len(spaces) != 1:
            raise ValueError(f"runs must hold one space for this result, got {len(spaces)}.")
        X, ids = runs.spaces[spaces[0]], runs.ids
    elif isinstance(runs, PairSpace):
        X, ids = runs, runs.names
    else:
        if hasattr(runs, "iloc"):
            ids = [str(name) for name in runs.index]
        X = check_data(runs, name="runs", sparse=True)
    n = X.shape[0]
    if n < least or (n > least and not more):
        raise ValueError(f"runs must hold the {least} objects {which}, got {n}.")
    if sp.issparse(X):
        return sp.csr_array(X), ids
    return X if isinstance(X, PairSpace) else to_numpy(X), ids
