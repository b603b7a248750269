"""PartitionScores: what score_partitions returns, a value per partition and index."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_count
from wellsep._text.sentences import LONGEST, MOST_FACTS, Views, cell, count, printable


@dataclass(frozen=True, eq=False)
class PartitionScores(Views, row_names="partition"):
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
        partition: str = check_choice("name", name, self.names)
        return self.reasons.get((partition, index))

    def column(self, index: str) -> np.ndarray:
        """The values of one index, one per partition."""
        check_choice("index", index, self.indices)
        return self.values[:, self.indices.index(index)]

    def best(self, index: str | None = None) -> str:
        """Name of the best partition by one index (the first if not named)."""
        index = self.indices[0] if index is None else index
        signed = self.column(index) * self.directions[self.indices.index(index)]
        if np.isnan(signed).all():
            raise UndefinedIndex(f"{index} is undefined for every clustering")
        return self.names[int(np.nanargmax(signed))]

    def columns(self) -> dict[str, list[Any]]:
        """Return partition, number of clusters, coverage and the values of every index."""
        return {
            "partition": list(self.names),
            "n_clusters": self.n_clusters.tolist(),
            "coverage": self.coverage.tolist(),
        } | {name: self.column(name).tolist() for name in self.indices}

    def sentences(self) -> Iterator[str]:
        """Say which partition is best by each index, and why a score is missing."""
        if len(self.names) > 1:
            for index in self.indices:
                yield f"best by {index}: {self._best(index) or 'undefined for all'}"
        for (name, index), reason in self.reasons.items():
            yield f"{index} of {name} is undefined: {reason}"

    def _best(self, index: str) -> str | None:
        return None if np.isnan(self.column(index)).all() else self.best(index)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: a row per partition, every index, number of clusters."""
        return super().to_frame()[[*self.indices, "n_clusters", "coverage"]]

    def to_dict(self) -> dict[str, Any]:
        """Return the best by each index, then all scores, as ``--json`` prints them."""
        return {
            "indices": [
                {"name": name, "direction": int(sign), "best": self._best(name)}
                for name, sign in zip(self.indices, self.directions, strict=True)
            ],
            "partitions": [
                {
                    "name": name,
                    "n_clusters": int(self.n_clusters[m]),
                    "coverage": float(self.coverage[m]),
                    "scores": dict(zip(self.indices, self.values[m].tolist(), strict=True)),
                    "undefined": {i: why for i in self.indices if (why := self.why(name, i))},
                }
                for m, name in enumerate(self.names)
            ],
        }

    def __repr__(self) -> str:
        head = f"{count(len(self.names), 'partition')} × {', '.join(self.indices)}"
        rows = [
            f"  {printable(name, 40)}: " + ", ".join(map(cell, values))
            for name, values in zip(self.names[:MOST_FACTS], self.values, strict=False)
        ]
        more, lines = len(self.names) - len(rows), [f"PartitionScores({head}", *rows]
        lines = [line if len(line) < LONGEST else line[: LONGEST - 2] + "…" for line in lines]
        return "\n".join([*lines, f"  … and {more} more"] if more else lines) + ")"

    __str__ = __repr__  # the values are what was asked for

    def _tables(self) -> tuple[dict[str, list[Any]], ...]:
        return (self.with_arrows(self.columns()),)

    def with_arrows(self, table: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        """Return the table with an arrow beside each index: where its better values are."""
        signs = zip(self.indices, self.directions, strict=True)
        arrows = {index: " ↑" if sign > 0 else " ↓" for index, sign in signs}
        return {name + arrows.get(name, ""): values for name, values in table.items()}
