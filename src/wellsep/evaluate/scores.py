"""Scores: every partition scored in every space, as one frozen record."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._checks.arrays import (
    check_choice,
    check_numbers,
)
from wellsep._checks.values import check_flag, check_items, check_text
from wellsep._files.records import Record, Result, freeze
from wellsep._text.sentences import count, listing, need_pandas, shown
from wellsep.evaluate.options import Settings


class NothingToRank(ValueError):
    """There is nothing to rank, although the input is well formed; the message says why."""

    exit_code = 1  # of the command line: no answer, rather than bad input


@dataclass(frozen=True, eq=False)
class Dip(Record):
    """Test of every space for more than one mode."""

    statistic: np.ndarray  # (L,)
    pvalue: np.ndarray  # (L,), NaN where the test is undefined
    notes: tuple[str, ...] = ()  # one per space, "" = nothing to say
    projection: str = "pca"


@dataclass(frozen=True, eq=False)
class Spectrum(Record):
    """How many directions each space uses, see :mod:`wellsep.spaces.effective_rank`."""

    rankme: np.ndarray  # (L,), NaN where nothing varies
    alpha_req: np.ndarray  # (L,), NaN with fewer than two directions


@dataclass(frozen=True, eq=False)
class Coordinates(Record):
    """A plane to draw each space in, for a sample of the objects."""

    objects: np.ndarray  # (s,) positions of the sampled objects
    planes: tuple[np.ndarray, ...] = ()  # one (s, 2) array per space
    axes: tuple[str, ...] = ()  # what the two axes of each space are


@dataclass(frozen=True, eq=False)
class Scores(Result):
    """Index values of M partitions in L spaces.

    Attributes
    ----------
    values : dict of str to ndarray of shape (L, M)
        Raw values with the index's own sign; NaN where undefined.
    directions : dict of str to int
        +1 if larger is better, -1 if smaller is better.
    spaces, partitions : tuple of str
    made_in : ndarray of shape (M,)
        For each partition the space it was made in, -1 where there is none.
    reasons : dict of str to dict
        ``reasons[index]["'partition' in 'space'"]``: why a value is undefined.
    coverage : ndarray of shape (M,)
        Share of the objects a partition counts (less than 1: it calls some noise).
    n_clusters : ndarray of shape (M,)
    dip : Dip or None
    params : dict of run name to its hyper-parameters
    ids : ndarray of shape (n,) or None
        Names of the objects.
    n_objects : int
    dims : ndarray of shape (L,)
        Columns of each space; 0 where it is given by distances.
    plot_coordinates : Coordinates or None
    spectrum : Spectrum or None
        RankMe and α-ReQ of each space.
    index_specs : dict of str to (str, dict)
        Name and parameters of each index; none where the values were computed elsewhere.
    settings : Settings or None
        The options that the values depend on; None where they were computed elsewhere.
    version : str
        The version of wellsep that computed them.
    copies : dict of str to str
        Spaces that were left out because they equal another one, and which.
    """

    values: Mapping[str, np.ndarray]
    directions: Mapping[str, int]
    spaces: tuple[str, ...]
    partitions: tuple[str, ...]
    made_in: np.ndarray
    reasons: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    coverage: np.ndarray | None = None
    n_clusters: np.ndarray | None = None
    dip: Dip | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    ids: np.ndarray | None = None
    n_objects: int = 0
    dims: np.ndarray | None = None
    plot_coordinates: Coordinates | None = None
    index_specs: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    settings: Settings | None = None
    version: str = ""
    copies: Mapping[str, str] = field(default_factory=dict)
    spectrum: Spectrum | None = None

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        index: str = "score",
        direction: int = 1,
        spaces: Any = None,
        partitions: Any = None,
        dip_pvalues: Any = None,
        paired: bool | None = None,
    ) -> Scores:
        """Wrap a score matrix that was computed elsewhere.

        Parameters
        ----------
        matrix : array-like of shape (L, M)
            Value of every partition (column) in every space (row), with the index's own sign.
            NaN: the value is undefined; ``why`` says that it was given so.
        index : its name
        direction : {1, -1}
            -1 if smaller values are better.
        spaces, partitions : names; ``run 0``, ``run 1`` … by default
        dip_pvalues : array-like of shape (L,), optional
            NaN: the test is undefined, and the space is kept.
        paired : whether partition m was made in space m; by default if L = M

        Examples
        --------
        >>> scores = Scores.from_matrix([[0.2, 0.5], [0.1, 0.4]], index="silhouette")
        >>> scores.partitions
        ('run 0', 'run 1')
        """
        matrix = freeze(check_numbers("matrix", matrix))
        index = check_text("index", index)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(
                f"matrix must have spaces as rows and partitions as columns, got {matrix.shape}."
            )
        check_choice("direction", direction, (1, -1))
        n_spaces, n_partitions = matrix.shape
        if paired is not None:
            check_flag("paired", paired)
        else:
            paired = n_spaces == n_partitions
        dip = None
        if dip_pvalues is not None:
            pvalue = freeze(check_numbers("dip_pvalues", dip_pvalues))
            if pvalue.shape != (n_spaces,):
                raise ValueError(
                    f"dip_pvalues must have one value per space ({n_spaces}), got shape "
                    f"{pvalue.shape}."
                )
            outside = (pvalue < 0) | (pvalue > 1)
            if outside.any():
                where = int(np.flatnonzero(outside)[0])
                raise ValueError(
                    f"dip_pvalues must lie between 0 and 1, got {pvalue[where]} at {where}."
                )
            dip = Dip(freeze(np.full(n_spaces, np.nan)), pvalue, ("",) * n_spaces, "given")
        space_names = _names("spaces", spaces, n_spaces, "space" if not paired else "run")
        partition_names = _names(
            "partitions", partitions, n_partitions, "partition" if not paired else "run"
        )
        missing = {
            reason_key(space_names[row], partition_names[column]): "the value was given as NaN"
            for row, column in np.argwhere(np.isnan(matrix))
        }
        return cls(
            values={index: matrix},
            directions={index: direction},
            spaces=space_names,
            partitions=partition_names,
            reasons={index: missing} if missing else {},
            made_in=freeze(np.arange(n_partitions) if paired else np.full(n_partitions, -1)),
            dip=dip,
        )

    def __post_init__(self) -> None:
        shape = (len(self.spaces), len(self.partitions))
        for name, matrix in self.values.items():
            if matrix.shape != shape:
                raise ValueError(
                    f"values[{name!r}] must have shape {shape} (spaces, partitions), "
                    f"got {matrix.shape}."
                )
        if self.dip is not None and self.dip.pvalue.shape != shape[:1]:
            raise ValueError(
                f"dip must have one p-value per space ({shape[0]}), got {self.dip.pvalue.shape}."
            )

    @property
    def indices(self) -> tuple[str, ...]:
        """Names of the indices; the first decides the ranking."""
        return tuple(self.values)

    @property
    def is_paired(self) -> bool:
        """Whether every partition was made in one of the spaces."""
        return bool((self.made_in >= 0).all())

    def check_index(self, index: str | None) -> str:
        """The index to use: the named one, or the first."""
        if index is None:
            return self.indices[0]
        check_choice("index", index, self.indices)
        return index

    def oriented(self, index: str | None = None) -> np.ndarray:
        """Scores of one index turned so that larger is better; ±inf counts as undefined (NaN)."""
        index = self.check_index(index)
        matrix = self.values[index] * self.directions[index]
        return np.where(np.isfinite(matrix), matrix, np.nan)

    def why(self, space: str, partition: str, index: str | None = None) -> str | None:
        """Why the index is undefined; None where it has a value."""
        index = self.check_index(index)
        check_choice("space", space, self.spaces)
        check_choice("partition", partition, self.partitions)
        value = self.values[index][self.spaces.index(space), self.partitions.index(partition)]
        if np.isfinite(value):
            return None
        stored = self.reasons.get(index, {}).get(reason_key(space, partition))
        return stored or ("the value is infinite" if np.isinf(value) else "the value is undefined")

    def columns(self) -> dict[str, list[Any]]:
        """Return the values of all indices, a row for each space and partition."""
        pairs = list(itertools.product(self.spaces, self.partitions))
        return {
            "space": [space for space, _ in pairs],
            "partition": [partition for _, partition in pairs],
        } | {index: values.ravel().tolist() for index, values in self.values.items()}

    def sentences(self) -> Iterator[str]:
        """Say what was scored, and how many values are undefined."""
        yield (
            f"{count(len(self.partitions), 'clustering')} scored in "
            f"{count(len(self.spaces), 'embedding')} by {listing(self.indices)}."
        )
        for index, values in self.values.items():
            if undefined := int(np.isnan(values).sum()):
                yield f"{index} is undefined in {undefined} of {values.size} cases; see why()."

    def _tables(self) -> tuple[dict[str, list[Any]], ...]:
        """Of each index a table, partitions as rows and spaces as columns."""
        return tuple(
            {f"{index} in": list(self.partitions)}
            | dict(zip(self.spaces, values.tolist(), strict=True))
            for index, values in self.values.items()
        )

    def to_frame(self, index: str | None = None) -> Any:
        """Return one index as a pandas frame: spaces as rows, partitions as columns, own sign."""
        index = self.check_index(index)
        return need_pandas().DataFrame(
            self.values[index], index=self.spaces, columns=self.partitions
        )


def reason_key(space: str, partition: str) -> str:
    """Key of a cell in `Scores.reasons`; quoted, so that no two cells share one."""
    return f"{partition!r} in {space!r}"


def _names(what: str, names: Any, count: int, word: str) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{word} {i}" for i in range(count))
    listed = check_items(what, names, "names")
    texts = tuple(name if isinstance(name, str) else shown(name) for name in listed)
    if len(texts) != count:
        raise ValueError(f"{what} must have {count} names, one per {word}, got {len(texts)}.")
    if len(set(texts)) != count:
        double = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"{what} must have names that differ, got {double!r} twice.")
    return texts
