"""PartitionScores: what score_partitions returns, a value per partition and index."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_count
from wellsep._text.sentences import (
    LONGEST,
    MOST_FACTS,
    Shown,
    cell,
    count,
    html_box,
    html_table,
    printable,
)


@dataclass(frozen=True, eq=False)
class PartitionScores(Shown):
    """Scores of M partitions by I indices, with the sign that each index is defined with.

    Attributes
    ----------
    values : ndarray of shape (M, I)
        NaN where an index is undefined; ``why`` says the reason.
    names : tuple of str
        Partitions.
    indices : tuple of str
        Indices, with the parameters that differ from the default.
    directions : ndarray of shape (I,)
        1 where greater is better, -1 where smaller is.
    coverage : ndarray of shape (M,)
        Share of the objects that count in each partition.
    n_clusters : ndarray of shape (M,)
    """

    values: np.ndarray
    names: tuple[str, ...]
    indices: tuple[str, ...]
    directions: np.ndarray
    coverage: np.ndarray
    n_clusters: np.ndarray
    reasons: Mapping[tuple[str, str], str]

    def why(self, name: str | int, index: str) -> str | None:
        """Why a value is NaN; None if it is defined. A partition is named or numbered."""
        check_choice("index", index, self.indices)
        if isinstance(name, numbers.Integral):
            name = self.names[check_count("name", name, -len(self.names), len(self.names) - 1)]
        known: str = check_choice("name", name, self.names)
        return self.reasons.get((known, index))

    def column(self, index: str) -> np.ndarray:
        """The values of one index, one per partition."""
        check_choice("index", index, self.indices)
        return self.values[:, self.indices.index(index)]

    def best(self, index: str | None = None) -> str:
        """Name of the best partition by one index (the first if not named)."""
        index = self.indices[0] if index is None else index
        signed = self.column(index) * self.directions[self.indices.index(index)]
        if np.isnan(signed).all():
            raise UndefinedIndex(f"{index} is undefined for every partition")
        return self.names[int(np.nanargmax(signed))]

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per partition, a column per index, coverage and K."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas; install it, or read .values, .names and .indices."
            ) from None
        frame = pd.DataFrame(self.values, index=pd.Index(self.names, name="partition"))
        frame.columns = list(self.indices)
        return frame.assign(n_clusters=self.n_clusters, coverage=self.coverage)

    def table(self) -> dict[str, list[Any]]:
        """Columns: partition, number of clusters, coverage where some have noise, every index."""
        columns: dict[str, list[Any]] = {
            "partition": list(self.names),
            "clusters": self.n_clusters.tolist(),
        }
        if (self.coverage < 1).any():
            columns["coverage"] = self.coverage.tolist()
        return columns | {name: self.column(name).tolist() for name in self.indices}

    def __repr__(self) -> str:
        head = f"{count(len(self.names), 'partition')} × {', '.join(self.indices)}"
        rows = [
            f"  {printable(name, 40)}: " + ", ".join(map(cell, values))
            for name, values in zip(self.names[:MOST_FACTS], self.values, strict=False)
        ]
        more = len(self.names) - len(rows)
        lines = [_cut(line) for line in (f"PartitionScores({head}", *rows)]
        return "\n".join([*lines, f"  … and {more} more"] if more else lines) + ")"

    def _repr_html_(self) -> str:
        turned = dict(zip(self.indices, self.directions, strict=True))
        arrow = {name: f"{name} {'↑' if sign > 0 else '↓'}" for name, sign in turned.items()}
        table = {arrow.get(name, name): values for name, values in self.table().items()}
        return html_box(f"Scores of {count(len(self.names), 'partition')}", table=html_table(table))


def _cut(line: str) -> str:
    return line if len(line) < LONGEST else line[: LONGEST - 2] + "…"
