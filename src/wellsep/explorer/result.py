"""Exploration: a clustering of the data, its judgement, and the runs it was chosen from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from wellsep._checks.arrays import check_data, is_dask, is_frame, to_numpy
from wellsep._files.records import Result
from wellsep._text.sentences import count, listing
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.distances.base import PairSpace
from wellsep.evaluate.judgement import Judgement
from wellsep.explorer.given import Units, by_name
from wellsep.explorer.placing import follow
from wellsep.runs import Runs, load_runs
from wellsep.tables.writing import write_table

RUNS, LABELS = "runs", "labels.csv"  # beside the record in its folder
BLOCK = 5_000  # objects that are placed at a time


@dataclass(frozen=True, eq=False)
class Exploration(Result):
    """A clustering that was chosen from candidates over embeddings, methods and K.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The cluster of every object; -1 is noise. All are 0 where the answer is one cluster.
    best : str
        The run that was chosen; where the answer is one cluster, the best with more.
    judgement : Judgement
        The ranking of all candidates, its certainty, and what is in the clusters of the best.
    one_cluster : str
        Why the answer is one cluster; empty where it is more.
    origin : str
        The given data that new objects are compared in.
    objects : ndarray
        The rows of the data that candidates were made of; all, or a sample of many.
    notes : tuple of str
        What was scaled, drawn, left out or not finished.
    means, factors : mapping of str to ndarray
        Units of each given table: a new row is compared as (row − mean) · factor.
    ids : ndarray or None
        Names of all objects, where they have any.
    seconds : float
        Time it took.
    runs : Runs
        The candidates and their embeddings; ``save`` keeps them in the folder ``runs``, which
        ``wellsep rank`` takes.
    """

    labels_: np.ndarray
    best: str
    judgement: Judgement
    one_cluster: str
    origin: str
    objects: np.ndarray
    notes: tuple[str, ...] = ()
    means: Mapping[str, np.ndarray] = field(default_factory=dict)
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    ids: np.ndarray | None = None
    seconds: float = 0.0

    @property
    def runs(self) -> Runs:
        """The candidates: spaces, and the partitions made in them."""
        runs: Runs = self.__dict__["_runs"]
        return runs

    def _with_runs(self, runs: Runs) -> Exploration:
        self.__dict__["_runs"] = runs
        return self

    @property
    def n_clusters(self) -> int:
        """Clusters of the answer, without noise."""
        return len(np.unique(self.labels_[self.labels_ >= 0]))

    def columns(self) -> dict[str, list[Any]]:
        """Return the ranking of the candidates as named columns, best first."""
        return self.judgement.columns()

    def sentences(self) -> Iterator[str]:
        """Say the answer, how certain it is, and what was done."""
        yield from (*self.remarks, *self.judgement.verdict.sentences())
        yield from self.judgement.explanation

    def _printed(self) -> tuple[str, ...]:
        return (*self.remarks, *self.judgement.verdict.sentences())

    @property
    def remarks(self) -> tuple[str, ...]:
        """The answer, and what was scaled, drawn or left out; the page and the shell show them."""
        return (self._answer(), *self.notes)

    def _answer(self) -> str:
        n = count(len(self.labels_), "object")
        if self.one_cluster:
            return (
                f"One cluster: {self.one_cluster} The best clustering with more is {self.best!r}."
            )
        labels, sizes = np.unique(self.labels_, return_counts=True)
        largest = listing((f"{size:,}" for size in np.sort(sizes[labels >= 0])[::-1]), most=10)
        noise = int(sizes[labels < 0].sum())
        rest = f", {noise:,} of them in none" if noise else ""
        made = len(self.runs.partitions)
        return (
            f"{count(self.n_clusters, 'cluster')} of {n}{rest}: {self.best!r}, chosen from "
            f"{count(made, 'candidate')}. Sizes: {largest}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as nested data, as ``--json`` prints them."""
        return {
            "n_clusters": self.n_clusters,
            "best": self.best,
            "one_cluster": self.one_cluster or None,
            "labels": self.labels_,
            "notes": list(self.notes),
            "seconds": self.seconds,
            "judgement": self.judgement.to_dict(),
        }

    def to_frame(self) -> Any:
        """Return the ranking as a pandas frame, best first."""
        return self.judgement.to_frame()

    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters of new objects, by votes of their nearest neighbours.

        Parameters
        ----------
        X : as given to `explore`
            New rows of the same columns. Of distances, those of m new objects to the objects that
            candidates were made of, (m, n). Of several embeddings, all or the one that ``origin``
            names.

        Returns
        -------
        ndarray of shape (m,)
            Labels. An object that equals one of those that were clustered has its label.
        """
        space = self.runs.spaces[self.origin]
        new, m = self._comparable(X, space)
        if self.one_cluster:
            return np.zeros(m, dtype=np.int32)
        labels = np.asarray(self.runs.partitions[self.best], dtype=np.int32)
        reference = None if isinstance(space, PairSpace) else space
        found = [np.empty(0, dtype=np.int32)]
        for start in range(0, m, BLOCK):
            found.append(follow(reference, labels, new(start, min(start + BLOCK, m))))
        return np.concatenate(found)

    def _comparable(self, X: Any, space: Any) -> tuple[Any, int]:
        """A function that gives new objects from start to end as they are compared; how many."""
        several = isinstance(X, Mapping | Runs) or hasattr(X, "obsm")
        if several:
            X = by_name(X)[0][self.origin]
        if isinstance(space, MixedTable):
            joined = space.followed_by(X)
            everyone = np.arange(space.n)
            return lambda a, b: joined.block(
                slice(space.n + a, space.n + b), everyone
            ), joined.n - space.n
        width = space.n if isinstance(space, PairSpace) else None
        if width is None and self.origin in self.factors:
            width = len(self.factors[self.origin])
        elif width is None:
            width = space.shape[1]
        if not (is_dask(X) or (hasattr(X, "shape") and not is_frame(X))):
            X = check_data(X, distances=True)
        X = to_numpy(X) if is_frame(X) else X
        if len(X.shape) != 2 or X.shape[1] != width:
            pairs = isinstance(space, PairSpace)
            what = f"distances to the {width} objects" if pairs else f"the {width} features"
            raise ValueError(f"X must have {what} that were explored, got shape {tuple(X.shape)}.")

        def rows(start: int, end: int) -> Any:
            block = X[start:end]
            block = np.asarray(block) if is_dask(X) else block
            block = check_data(block, sparse=True, distances=True)
            if sp.issparse(block):
                return normalize(block)
            if self.origin not in self.factors:
                return block
            return Units(self.means[self.origin], self.factors[self.origin]).rows(to_numpy(block))

        return rows, X.shape[0]

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the record, ``labels.csv``, and the candidates in ``runs``; return the folder."""
        path = super().save(folder)
        named = {} if self.ids is None else {"id": np.asarray(self.ids).tolist()}
        write_table(path / LABELS, {**named, "label": self.labels_.tolist()})
        self.runs.save(path / RUNS, overwrite=True)
        return path

    def _opened(self, folder: Path) -> Exploration:
        return self._with_runs(load_runs(folder / RUNS))
