"""One partition, object by object: which objects fit their cluster and which do not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_data
from wellsep._checks.values import check_kind
from wellsep._files.records import Result, freeze
from wellsep._text.sentences import count
from wellsep.compute.data.opening import open_space
from wellsep.compute.statistics.centre_distances import NearestPlanes
from wellsep.distances.base import PairSpace
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.indices import local_connectivity, silhouette_samples
from wellsep.indices.lcd import open_around
from wellsep.partitions import Partitions, encode
from wellsep.runs import Runs


@dataclass(frozen=True, eq=False)
class PartitionDetails(Result, row_names="object"):
    """One partition in one space, object by object.

    Attributes
    ----------
    partition, space : names
    codes : (n,) cluster of each object, -1 = not counted
    clusters : tuple of str, the label of each code
    widths : (n,) silhouette widths, NaN where not counted or undefined
    margins : (n,) distance to the nearest separating plane, negative on the wrong side
    nearest : (n,) code of the other cluster behind that plane, -1 where there is none
    disagreements : (n,) local connectivity disagreement (LCD), NaN where not counted or undefined
    notes : sentences on what could not be computed
    """

    partition: str
    space: str
    codes: np.ndarray
    clusters: tuple[str, ...]
    widths: np.ndarray
    margins: np.ndarray
    nearest: np.ndarray
    disagreements: np.ndarray
    notes: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """Return the label of each object's cluster and how the object fits it."""
        names = np.array([*self.clusters, None], dtype=object)  # the last: none
        return {
            "object": list(range(len(self.codes))),
            "cluster": names[self.codes].tolist(),
            "width": self.widths.tolist(),
            "margin": self.margins.tolist(),
            "nearest": names[self.nearest].tolist(),
            "disagreement": self.disagreements.tolist(),
        }

    def sentences(self) -> Iterator[str]:
        """Say how many objects fit their cluster badly."""
        objects = count(int((self.codes >= 0).sum()), "object")
        yield (
            f"{self.partition!r} in {self.space!r}: {objects} in "
            f"{count(len(self.clusters), 'cluster')}; the silhouette width of "
            f"{int((self.widths < 0).sum()):,} is negative."
        )
        yield from self.notes


def partition_details(
    runs: Runs,
    result: AceResult,
    *,
    partition: str | None = None,
    space: str | None = None,
    noise: str = "exclude",
) -> PartitionDetails:
    """Compute silhouette width, margin and LCD of every object in the best partition.

    Parameters
    ----------
    runs : Runs
        The runs that were scored.
    result : AceResult
        From :func:`wellsep.ace`.
    partition : str, optional
        The best one by default (of several that tie, the first by name).
    space : str, optional
        By default the space that counts most in the answer.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. "exclude" and "penalize": such objects have no
        values. "cluster": they are one cluster. "singletons": each is a cluster. "error": they are
        refused.

    Returns
    -------
    PartitionDetails

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> from wellsep.evaluate import partition_details
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1]])
    >>> runs = ws.Runs.from_parts({"flat": X}, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]})
    >>> result = ws.ace(ws.score_runs(runs), dip=False)
    >>> details = partition_details(runs, result)
    >>> details.partition, details.widths.round(2).tolist(), details.margins.tolist()
    ('good', [0.8, 0.8, 0.8, 0.8], [2.5, 2.5, 2.5, 2.5])
    """
    check_kind("runs", runs, Runs, "load a folder with load_runs")
    check_kind("result", result, AceResult, "make one with ace or judge")
    name = result.best if partition is None else partition
    space = result.heaviest_spaces[0][0] if space is None else space
    check_choice("partition", name, runs.partitions)
    check_choice("space", space, runs.spaces)
    encoded = encode(runs.partitions[name], noise=noise, name=name)
    return object_details(runs.spaces[space], encoded, space)


def object_details(
    X: Any, partition: Partitions, space: str, *, device: Any = None, connectivity: bool = True
) -> PartitionDetails:
    """The details of one partition of X; `space` says what X is called.

    Without ``connectivity`` there are no disagreements.
    """
    if not isinstance(X, PairSpace):  # distances stay on the host: a tensor would pass for rows
        X = open_space(check_data(X, sparse=True), device=device).given
    notes: list[str] = []
    unknown = freeze(np.full(partition.n_objects, np.nan))

    def values_of(what: str, function: Callable[[], Any]) -> np.ndarray:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of small clusters: sizes are shown
                return freeze(function(), float)
        except UndefinedIndex as reason:
            notes.append(f"{what} undefined: {str(reason).rstrip('.')}.")
            return unknown

    planes = planes_between(X, partition)
    return PartitionDetails(
        partition.names[0],
        space,
        codes=freeze(partition.codes[0]),
        clusters=tuple(str(label) for label in partition.classes[0]),
        widths=values_of("Silhouette widths are", lambda: silhouette_samples(X, partition)),
        margins=values_of("Margins are", lambda: _margins(_placed(X), partition, planes)),
        nearest=freeze(planes.rivals),
        disagreements=values_of(
            "Local connectivity is", lambda: local_connectivity(_placed(X), partition).objects
        )
        if connectivity
        else unknown,
        notes=tuple(notes),
    )


def _placed(X: Any) -> Any:
    """X, or an error where it is sparse: centring would make it dense."""
    if sp.issparse(X):
        raise UndefinedIndex("the space is sparse.")
    return X


def _margins(X: Any, partition: Partitions, planes: NearestPlanes) -> np.ndarray:
    if (k := len(partition.classes[0])) < 2:
        raise UndefinedIndex(f"margins need at least 2 clusters, got {k}.")
    return planes.distances


def planes_between(X: Any, partition: Partitions) -> NearestPlanes:
    """Of each object the nearest plane between its cluster's mean and another; none if sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from wellsep.partitions import encode
    >>> planes_between(np.array([[0.0], [1.0], [4.0], [9.0]]), encode([0, 0, 1, 2])).rivals.tolist()
    [1, 1, 0, 1]
    """
    n = partition.n_objects
    if sp.issparse(X) or not len(partition.classes[0]):
        return NearestPlanes(np.full(n, np.nan), np.full(n, np.nan), np.full(n, -1))
    around, unit = open_around(X, partition.classes[0], partition.codes[0], None)
    planes = around.planes(np.arange(n), partition.codes[0])
    return NearestPlanes(planes.distances * unit, planes.gaps * unit, planes.rivals)
