"""One partition, object by object: which objects fit their cluster and which do not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import UndefinedIndex, check_data
from wellsep._files.records import Result, freeze
from wellsep._text.sentences import count
from wellsep.compute.data.opening import open_space
from wellsep.compute.statistics.centre_distances import NearestPlanes
from wellsep.distances.base import PairSpace
from wellsep.indices import local_connectivity, silhouette_samples
from wellsep.indices.lcd import open_around
from wellsep.partitions import Partitions


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


def object_details(
    X: Any, partition: Partitions, space: str, *, device: Any = None, connectivity: bool = True
) -> PartitionDetails:
    """The details of one partition of X, called ``space``; LCD only with ``connectivity``."""
    if not isinstance(X, PairSpace):  # distances stay on the host: a tensor would pass for rows
        X = open_space(check_data(X, sparse=True), device=device).given
    notes: list[str] = []
    unknown = freeze(np.full(partition.n_objects, np.nan))
    planes = planes_between(X, partition)

    def values_of(what: str, function: Callable[[], Any], *, dense: bool = True) -> np.ndarray:
        try:
            if dense and sp.issparse(X):  # centring would fill it in
                raise UndefinedIndex("the space is sparse.")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of small clusters: sizes are shown
                return freeze(function(), float)
        except UndefinedIndex as reason:
            notes.append(f"{what} undefined: {str(reason).rstrip('.')}.")
            return unknown

    def margins() -> np.ndarray:
        if (k := len(partition.classes[0])) < 2:
            raise UndefinedIndex(f"margins need at least 2 clusters, got {k}.")
        return planes.distances

    widths = values_of(
        "Silhouette widths are", lambda: silhouette_samples(X, partition), dense=False
    )
    margin, disagreements = values_of("Margins are", margins), unknown
    if connectivity:
        disagreements = values_of(
            "Local connectivity is", lambda: local_connectivity(X, partition).objects
        )
    return PartitionDetails(
        partition.names[0],
        space,
        codes=freeze(partition.codes[0]),
        clusters=tuple(str(label) for label in partition.classes[0]),
        widths=widths,
        margins=margin,
        nearest=freeze(planes.rivals),
        disagreements=disagreements,
        notes=tuple(notes),
    )


def planes_between(X: Any, partition: Partitions) -> NearestPlanes:
    """Of each object the nearest plane between its cluster's mean and another; none if sparse."""
    n = partition.n_objects
    if sp.issparse(X) or not len(partition.classes[0]):
        return NearestPlanes(np.full(n, np.nan), np.full(n, np.nan), np.full(n, -1))
    around, unit = open_around(X, partition.classes[0], partition.codes[0], None)
    planes = around.planes(np.arange(n), partition.codes[0])
    return NearestPlanes(planes.distances * unit, planes.gaps * unit, planes.rivals)
