"""Gower's distance of tables with numbers, categories, booleans and missing values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from wellsep._checks.arrays import check_number, check_positions
from wellsep._checks.values import check_items, check_mapping
from wellsep._text.sentences import quoted, shown
from wellsep.compute.data.mixed_columns import MISSING, Columns, Reading, read_columns
from wellsep.distances.base import PairSpace


class MixedTable(PairSpace):
    """A table of numbers, categories and missing values, with Gower's distance between its rows.

    .. math:: d(i,j)=\\frac{\\sum_c w_c\\,\\delta_c(i,j)\\,d_c(i,j)}{\\sum_c w_c\\,\\delta_c(i,j)}

    :math:`d_c` is the difference over the range of the column for numbers and ordered categories,
    and 0 or 1 for others. :math:`\\delta_c` is 0 where either value is missing, and for an
    asymmetric binary where both are absent. Otherwise it is 1. The distance is between 0 and 1.
    Every function that takes a space takes a table in place of X. ``metric="gower"`` makes it from
    a frame with the defaults.

    Parameters
    ----------
    frame : pandas, polars or pyarrow frame, or array of numbers
        Whole numbers and floats are numbers; text, booleans and categories are categories, ordered
        where a pandas categorical is. A missing value is None, NaN or null.
    asymmetric : iterable of str, optional
        Columns of booleans or of 0 and 1 in which both absent says nothing. (R's ``daisy`` takes
        logical columns so; here a boolean is symmetric unless it is named.)
    ordered : mapping of str to sequence, optional
        Columns of ordered categories with their levels, the lowest first; levels that do not occur
        count as well.
    weights : mapping of str to float, optional
        Weights of columns; 1 by default.

    Notes
    -----
    Ranges are those of all objects given, and stay so in subsets. A constant column counts as
    agreement of all, and so draws every distance towards 0, as in ``daisy``. A column without
    any value counts nowhere. Missing values break the triangle inequality.

    References
    ----------
    Gower (1971), "A general coefficient of similarity and some of its properties", Biometrics 27.

    Examples
    --------
    >>> import pandas as pd, wellsep as ws
    >>> frame = pd.DataFrame({"age": [20, 30, 40, None], "colour": ["red", "red", "blue", "blue"]})
    >>> table = ws.MixedTable(frame)
    >>> table.block([0], [1, 2, 3]).tolist()
    [[0.25, 1.0, 1.0]]
    >>> round(ws.silhouette_score(frame, [0, 0, 1, 1], metric="gower"), 3)
    0.866
    """

    metric = "gower"

    def __init__(
        self,
        frame: Any,
        *,
        asymmetric: Iterable[str] = (),
        ordered: Mapping[str, Sequence[Any]] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        columns = read_columns(frame)
        n = len(next(iter(columns.values()))) if columns else 0
        if n < 1:
            raise ValueError("frame must have at least one row and one column, got none.")
        several = [asymmetric] if isinstance(asymmetric, str) else asymmetric
        asymmetric = tuple(map(str, check_items("asymmetric", several, "names")))
        ordered, given = _by_text("ordered", ordered), _by_text("weights", weights)
        for what, names in (("asymmetric", asymmetric), ("ordered", ordered), ("weights", given)):
            for name in names:
                if name not in columns:
                    raise ValueError(
                        f"{what} must name columns, got {shown(name)}; there are {quoted(columns)}."
                    )
        weight = {c: check_number(f"weights[{c!r}]", given.get(c, 1.0), 0.0) for c in columns}
        if not any(weight.values()):
            raise ValueError("weights must have at least one positive value, got zeros only.")
        self.n, self.names = n, None
        self.columns = tuple(columns)
        self._reading = Reading.of(columns, asymmetric, ordered, weight)
        self._columns, self._unit = self._reading.read(columns), 1.0

    @property
    def dtype(self) -> np.dtype:
        """float64."""
        return np.dtype(np.float64)

    @property
    def largest(self) -> float:
        """1: no distance exceeds it."""
        return self._unit

    def __repr__(self) -> str:
        return f"MixedTable({self.n} objects, {len(self.columns)} columns)"

    def block(self, i: Any, j: Any) -> np.ndarray:
        """Gower's distances of some objects to some others."""
        objects = np.arange(self.n)
        rows, columns = objects[i], objects[j]
        a, b = self._columns.take(rows), self._columns.take(columns)
        total = _weighed(a, b)
        table = _differences(a, b)
        itself = rows[:, None] == columns
        nothing = (total <= 0) & ~itself
        if nothing.any():
            r, c = (int(k) for k in np.argwhere(nothing)[0])
            raise ValueError(
                f"rows {rows[r]} and {columns[c]} have no column in common; leave one out or fill "
                "a column."
            )
        total[itself] = 1.0
        table /= total
        table[itself] = 0.0
        return table if self._unit == 1 else table * self._unit

    def take(self, rows: Any) -> MixedTable:
        """The same table with some of its rows; ranges stay those of all."""
        positions = check_positions("rows", rows, self.n)
        table = copy(self)
        table.n, table._columns = len(positions), self._columns.take(positions)
        return table

    def values(self) -> dict[str, Any]:
        """Return the columns by name: arrays of numbers with NaN, or lists of words with None.

        An ordered category is the number of its level.
        """
        return self._reading.values(self._columns)

    def followed_by(self, frame: Any) -> MixedTable:
        """The same table with rows of another frame after its own, read as its own are.

        Ranges stay those of the objects given first, so that a new number outside of them may be
        farther than 1 from others. A category that was not seen before differs from all others.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, or array of numbers
            Rows with the same columns, in any order.

        Examples
        --------
        >>> import pandas as pd, wellsep as ws
        >>> table = ws.MixedTable(pd.DataFrame({"age": [20, 40], "colour": ["red", "blue"]}))
        >>> new = pd.DataFrame({"age": [25, 50], "colour": ["red", "green"]})
        >>> table.followed_by(new).block([2, 3], [0, 1]).tolist()
        [[0.125, 0.875], [1.25, 0.75]]
        """
        columns = read_columns(frame)
        self._reading.check(columns)
        table = copy(self)
        table._reading = self._reading.knowing(columns)
        table._columns = self._columns.followed_by(table._reading.read(columns))
        table.n = len(table._columns.known)
        return table

    def scaled(self, factor: float) -> MixedTable:
        """The same table with its distances in another unit."""
        table = copy(self)
        table._unit = self._unit * factor
        return table

    def contents(self) -> list[Any]:
        """What tells this table from others, for a digest."""
        c = self._columns
        arrays = [c.numbers, c.known, c.codes, c.asymmetric, c.number_weights, c.code_weights]
        return [f"gower {self._unit}", *arrays]


def _by_text(what: str, options: Any) -> dict[str, Any]:
    """Options of columns by the text of their names, which may be numbers."""
    if options is None:
        return {}
    check_mapping(what, options)
    return {str(name): value for name, value in options.items()}


def _weighed(a: Columns, b: Columns) -> np.ndarray:
    """Σ wδ: columns known in both, less asymmetric binaries absent in both; one product."""

    def sides(c: Columns) -> tuple[np.ndarray, np.ndarray]:
        absent = ((c.codes == 0) & c.asymmetric)[:, c.asymmetric].astype(float)
        present = np.hstack([c.known, c.codes != MISSING]).astype(float)
        weights = np.concatenate([c.number_weights, c.code_weights])
        weighed = np.hstack([present * weights, -absent * c.code_weights[c.asymmetric]])
        return np.hstack([present, absent]), weighed

    return sides(a)[0] @ sides(b)[1].T


def _differences(a: Columns, b: Columns) -> np.ndarray:
    """Σ wδd: categories by a product of what is known and what is equal; numbers by columns."""
    known_a, known_b = a.codes != MISSING, b.codes != MISSING
    left = np.hstack([known_a, _one_hot(a)]).astype(float)
    w = a.code_weights
    right = np.hstack([known_b * w, -_one_hot(b) * np.repeat(w, a.levels)])
    table: np.ndarray = left @ right.T
    np.maximum(table, 0.0, out=table)
    table[table < 1e-12] = 0.0  # what products leave where all agree
    w = a.number_weights
    if a.known.all() and b.known.all():
        if len(w):
            table += cdist(a.numbers * w, b.numbers * w, "cityblock")
        return table
    gap = np.empty_like(table)
    for c in range(len(w)):
        np.subtract(a.numbers[:, c, None], b.numbers[:, c], out=gap)
        np.abs(gap, out=gap)
        gap *= w[c]
        gap[~a.known[:, c]] = 0.0
        gap[:, ~b.known[:, c]] = 0.0
        table += gap
    return table


def _one_hot(c: Columns) -> np.ndarray:
    """(b, Σ levels) which level of each category a row has; none where it is missing."""
    starts = np.concatenate([[0], np.cumsum(c.levels)])
    table = np.zeros((len(c.codes), int(starts[-1])))
    r, k = np.nonzero(c.codes != MISSING)
    table[r, starts[k] + c.codes[r, k]] = 1.0
    return table
