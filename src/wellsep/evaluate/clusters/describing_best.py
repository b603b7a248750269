"""What is in the clusters of the best partitions: a short description of each, for the page."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import UndefinedIndex, is_frame, open_frame
from wellsep._files.records import freeze
from wellsep._text.sentences import count
from wellsep.distances.base import PairSpace
from wellsep.evaluate.clusters.describing import describe_partition, found_again
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.features import Columns, compare, read_columns
from wellsep.evaluate.clusters.objects import PartitionDetails
from wellsep.indices import local_connectivity
from wellsep.partitions import Partitions
from wellsep.spaces.classical_scaling import has_columns, take_objects
from wellsep.spaces.drawing_planes import drawn_objects

MOST_DESCRIBED = 5  # distinct partitions
MOST_OBJECTS = 600  # that one is described by; the pairs of these take most of the time
LEAST_OBJECTS = 5  # of each cluster, where it has so many
MOST_FEATURES = 200  # that are kept: those that differ most


def describe_best(
    spaces: Any,
    partitions: Partitions,
    chosen: Sequence[tuple[str, str]],
    *,
    X: Any = None,
    feature_names: Any = None,
    ids: Any = None,
    details: PartitionDetails | None = None,
    stability: Any = None,
) -> dict[str, ClusterDescription]:
    """Describe some partitions, each in its own space, without rules and without DBCV.

    The features are the columns of ``X``, the data that the runs were made from, else those of the
    space. Of many objects a sample is described; sizes are those of all objects. Where ``details``
    are of one of the partitions, its silhouette widths are taken from them.

    ``chosen`` are pairs of partition and space; partitions without any cluster are left out.
    ``feature_names`` are those of the columns of X, ``stability`` is that of the one partition.

    Examples
    --------
    >>> import numpy as np
    >>> spaces = {"flat": np.array([[0.0, 7], [1, 8], [5, 8], [6, 7]])}
    >>> partitions = Partitions.from_labels({"good": [0, 0, 1, 1]})
    >>> describe_best(spaces, partitions, [("good", "flat")])["good"].features
    ('column 0', 'column 1')
    """
    names = np.arange(partitions.n_objects) if ids is None else np.asarray(ids)
    found = {}
    for name, space in chosen[:MOST_DESCRIBED]:
        partition = partitions[partitions.names.index(name)]
        if len(partition.classes[0]) == 0:
            continue
        objects = described_objects(partition.codes[0])
        described = _describe(spaces[space], partition, objects, X, feature_names, names)
        if stability is not None:
            again: dict[str, Any] = found_again(stability, partition, described.clusters)
            described = replace(described, **again)
        known = "sizes"
        if details is not None and (details.partition, details.space) == (name, space):
            whole = _with_widths(described, details)
            known = known if whole is described else "sizes and widths"
            described = whole
        if len(objects) < partition.n_objects:
            drawn = f"{len(objects):,} of {count(partition.n_objects, 'object')}"
            note = f"All but the {known} comes from {drawn}, drawn at random."
            described = replace(described, notes=(*described.notes, note))
        found[name] = described
    return found


def _disagreements(rows: Any, partition: Partitions) -> np.ndarray | None:
    """(K,) the highest local connectivity disagreement of each cluster; None where undefined."""
    if sp.issparse(rows):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of small clusters: sizes are shown
            return freeze(local_connectivity(rows, partition).clusters)
    except UndefinedIndex:
        return None


def _describe(
    space: Any,
    partition: Partitions,
    objects: np.ndarray,
    X: Any,
    feature_names: Any,
    ids: np.ndarray,
) -> ClusterDescription:
    """What some objects tell; sizes are those of all."""
    codes, n = partition.codes[0], partition.n_objects
    rows = take_objects(space, objects)
    if has_columns(space):
        rows = np.asarray(rows, dtype=np.float64)
    part = partition.take(objects)
    columns = _strongest(_columns(space, rows, X, feature_names, objects), part)
    found = describe_partition(rows, part, columns, ids=ids, thorough=False)
    found = replace(found, lcd=_disagreements(rows, part))
    notes = found.notes[len(columns.notes) :]  # constant columns are no news here
    if len(objects) == n:
        return replace(found, notes=notes)
    full = np.append(objects, -1)  # the last: none
    return replace(
        found,
        n_objects=n,
        sizes=freeze(np.bincount(codes[codes >= 0], minlength=len(found.clusters))),
        medoid=freeze(full[found.medoid]),
        typical=freeze(full[found.typical]),
        doubtful=freeze(full[found.doubtful]),
        notes=notes,
    )


def described_objects(codes: np.ndarray) -> np.ndarray:
    """Positions of some objects in order: a sample, and a few more of each small cluster.

    Examples
    --------
    >>> codes = np.repeat([0, 1], [5000, 3])
    >>> len(described_objects(codes)), described_objects(codes)[-3:].tolist()
    (603, [5000, 5001, 5002])
    """
    drawn = drawn_objects(len(codes), MOST_OBJECTS)
    if len(drawn) == len(codes):
        return drawn
    here = np.bincount(codes[drawn][codes[drawn] >= 0], minlength=codes.max() + 1)
    scarce = np.flatnonzero(here < LEAST_OBJECTS)
    more = [np.flatnonzero(codes == code)[:LEAST_OBJECTS] for code in scarce]
    return np.unique(np.concatenate([drawn, *more]))


def _columns(space: Any, rows: Any, X: Any, feature_names: Any, objects: np.ndarray) -> Columns:
    """The features of some objects: of the input, else of the space; none of distances."""
    if isinstance(X, PairSpace) or not (is_frame(X) or sp.issparse(X) or np.ndim(X) == 2):
        if not has_columns(space):
            return Columns(np.empty((len(objects), 0)), (), np.empty(0, dtype=bool), ())
        names = [f"column {i}" for i in range(rows.shape[1])]
        return read_columns(rows, names, len(objects), "space")
    if is_frame(X):
        table = open_frame(X)[objects.tolist()].to_native()
    elif sp.issparse(X):
        table = X.tocsr()[objects].toarray()
    else:
        table = np.asarray(X[objects] if hasattr(X, "shape") else np.asarray(X)[objects])
    return read_columns(table, feature_names, len(objects), "X")


def _strongest(columns: Columns, partition: Partitions) -> Columns:
    """The features that differ most between the clusters, in their order."""
    if len(columns.names) <= MOST_FEATURES:
        return columns
    codes, k = partition.codes[0], len(partition.classes[0])
    size = np.nan_to_num(np.abs(compare(columns, codes, k, pairs=False).difference)).max(axis=0)
    kept = np.sort(np.argsort(-size, kind="stable")[:MOST_FEATURES])
    return columns._replace(
        values=columns.values[:, kept],
        names=tuple(columns.names[at] for at in kept),
        shares=columns.shares[kept],
    )


def _with_widths(found: ClusterDescription, details: PartitionDetails) -> ClusterDescription:
    """The same with the widths of all objects, where they are defined."""
    own = [details.widths[details.codes == code] for code in range(len(details.clusters))]
    if details.clusters != found.clusters or any(np.isnan(widths).any() for widths in own):
        return found
    return replace(
        found,
        silhouette=freeze([widths.mean() for widths in own]),
        negative=freeze([(widths < 0).mean() for widths in own]),
    )
