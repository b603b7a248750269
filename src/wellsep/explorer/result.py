"""Exploration: a clustering of the data, its judgement, and the runs it was chosen from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._checks.arrays import is_dask
from wellsep._files.records import Result
from wellsep._text.sentences import count, listing
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.distances.base import PairSpace
from wellsep.evaluate.judgement import Judgement
from wellsep.explorer.candidates import follow
from wellsep.explorer.given import by_name, comparable
from wellsep.runs import load_runs
from wellsep.tables.writing import write_table

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
    units : mapping of str to (mean, factor)
        Of each given table: a row is compared as (row − mean) · factor.
    ids : ndarray or None
        Names of all objects, where they have any.
    seconds : float
        Time it took.
    runs : Runs
        The candidates and their embeddings; ``save`` keeps them in the folder ``runs``.
    """

    labels_: np.ndarray
    best: str
    judgement: Judgement
    one_cluster: str
    origin: str
    objects: np.ndarray
    notes: tuple[str, ...] = ()
    units: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    ids: np.ndarray | None = None
    seconds: float = 0.0
    runs: Any = field(default=None, repr=False, metadata={"saved": False})

    @property
    def n_clusters(self) -> int:
        """Clusters of the answer, without noise."""
        return len(np.unique(self.labels_[self.labels_ >= 0]))

    @property
    def remarks(self) -> tuple[str, ...]:
        """The answer, and what was scaled, drawn or left out; the page and the shell show them."""
        return (self._answer(), *self.notes)

    def columns(self) -> dict[str, list[Any]]:
        """Return the ranking of the candidates as named columns, best first."""
        return self.judgement.columns()

    def sentences(self) -> Iterator[str]:
        """Say the answer, how certain it is, and what was done."""
        yield from (*self._printed(), *self.judgement.explanation)

    def _printed(self) -> tuple[str, ...]:
        judged = self.judgement
        first = (*self.remarks, *judged.verdict.sentences())
        if self.one_cluster or judged.clusters is None:
            return first
        return (*first, *judged.clusters.sentences())

    def _answer(self) -> str:
        if self.one_cluster:
            more = f"The best clustering with more is {self.best!r}."
            return f"One cluster: {self.one_cluster} {more}"
        labels, sizes = np.unique(self.labels_, return_counts=True)
        largest = listing((f"{size:,}" for size in np.sort(sizes[labels >= 0])[::-1]), most=10)
        noise = int(sizes[labels < 0].sum())
        of = count(len(self.labels_), "object") + (f", {noise:,} of them in none" if noise else "")
        return (
            f"{count(self.n_clusters, 'cluster')} of {of}: {self.best!r}, chosen from "
            f"{count(len(self.runs.partitions), 'candidate')}. Sizes: {largest}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as nested data, as ``--json`` prints them."""
        plain = ("n_clusters", "best", "one_cluster", "notes", "seconds")
        found = {name: getattr(self, name) for name in plain}
        return found | {"labels": self.labels_, "judgement": self.judgement.to_dict()}

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
        pairs = isinstance(space, PairSpace)
        if isinstance(space, MixedTable):
            joined = space.followed_by(X)
            new = joined.block(slice(space.n, joined.n), slice(0, space.n))
        else:
            named = by_name(X)[0]
            new = named[self.origin] if self.origin in named else next(iter(named.values()))
        units = self.units.get(self.origin)
        width = space.shape[1] if units is None else len(units[0])
        if len(new.shape) != 2 or new.shape[1] != width:
            what = f"distances to the {width} objects" if pairs else f"the {width} features"
            raise ValueError(f"X must have {what} that were explored, got shape {new.shape}.")
        labels = np.asarray(self.runs.partitions[self.best], dtype=np.int32)
        found = np.zeros(new.shape[0], dtype=np.int32)
        for start in range(0, 0 if self.one_cluster else len(found), BLOCK):
            block = new[start : start + BLOCK]
            block = comparable(np.asarray(block) if is_dask(block) else block, units)
            found[start : start + BLOCK] = follow(None if pairs else space, labels, block)
        return found

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the record, ``labels.csv``, and the candidates in ``runs``; return the folder."""
        path = super().save(folder)
        named = {} if self.ids is None else {"id": self.ids.tolist()}
        write_table(path / "labels.csv", {**named, "label": self.labels_.tolist()})
        self.runs.save(path / "runs", overwrite=True)
        return path

    def _opened(self, folder: Path) -> Exploration:
        return replace(self, runs=load_runs(folder / "runs"))
