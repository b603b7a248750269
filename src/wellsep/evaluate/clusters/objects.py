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
from wellsep.compute.statistics.cluster_prototypes import open_around
from wellsep.distances.base import PairSpace
from wellsep.indices import local_connectivity, silhouette_samples
from wellsep.indices.lcd import LocalConnectivity
from wellsep.partitions import Partitions, cluster_sizes


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

    @property
    def sizes(self) -> np.ndarray:
        """(K,) objects of each cluster."""
        return cluster_sizes(self.codes, len(self.clusters))

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
    unknown = np.full(partition.n_objects, np.nan)
    widths = computed("Silhouette widths are", notes, silhouette_samples, X, partition)
    planes = computed("Margins are", notes, planes_between, X, partition)
    margins, rivals = (unknown, np.full(len(unknown), -1)) if planes is None else planes
    lcd = computed("Local connectivity is", notes, lcd_of, X, partition) if connectivity else None
    return PartitionDetails(
        partition.names[0],
        space,
        codes=freeze(partition.codes[0]),
        clusters=tuple(str(label) for label in partition.classes[0]),
        widths=freeze(unknown if widths is None else widths, float),
        margins=freeze(margins, float),
        nearest=freeze(rivals),
        disagreements=freeze(unknown if lcd is None else lcd.objects, float),
        notes=tuple(notes),
    )


def computed(what: str, notes: list[str], function: Callable[..., Any], *given: Any) -> Any:
    """What a function returns; None where that is undefined, and a note on why."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of small clusters: sizes are shown
            return function(*given)
    except UndefinedIndex as reason:
        notes.append(f"{what} undefined: {str(reason).rstrip('.')}.")
        return None


def planes_between(X: Any, partition: Partitions) -> tuple[np.ndarray, np.ndarray]:
    """Of each object the distance to the nearest plane between means, and the code behind it."""
    if sp.issparse(X):  # centring would fill it in
        raise UndefinedIndex("the space is sparse.")
    if (k := len(partition.classes[0])) < 2:
        raise UndefinedIndex(f"margins need at least 2 clusters, got {k}.")
    around, unit = open_around(X, partition.classes[0], partition.codes[0], None)
    planes = around.planes(np.arange(partition.n_objects), partition.codes[0])
    return planes.distances * unit, planes.rivals


def lcd_of(X: Any, partition: Partitions) -> LocalConnectivity:
    """Local connectivity of a partition in a space that is not sparse."""
    if sp.issparse(X):
        raise UndefinedIndex("the space is sparse.")
    return local_connectivity(X, partition)
