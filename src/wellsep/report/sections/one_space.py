"""The parts of a page about clusterings of one data set: the map, the clusters, the objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import check_data, is_frame, open_frame, to_numpy
from wellsep.distances.base import PairSpace
from wellsep.evaluate import ClusterDescription
from wellsep.evaluate.clusters.describing import describe_best
from wellsep.evaluate.clusters.objects import object_details
from wellsep.partitions import Partitions
from wellsep.report.pack import Section
from wellsep.report.sections.answer import answer_section
from wellsep.report.sections.clusters import clusters_section
from wellsep.report.sections.objects import Members, objects_section
from wellsep.report.sections.scatter import draw_one_space, labels_of, map_section
from wellsep.runs import Runs
from wellsep.spaces.projections import take_objects

DATA = "the data"


def given_data(
    runs: Any, n: int, which: str, *, features: Any = None, positions: np.ndarray | None = None
) -> tuple[Any, Any, Any] | None:
    """The data of a page about one data set, the names of its objects, what clusters are told by.

    ``runs`` are a matrix, a sparse one, a frame, distances, or runs of one space, else there are
    none; ``features`` other columns of the same objects. There may be more objects where the
    ``positions`` of the ``n`` that were clustered are given.

    Examples
    --------
    >>> X, ids, _ = given_data([[0.0], [1.0]], 2, "that were clustered")
    >>> X.shape, ids
    ((2, 1), None)
    """
    if runs is None:
        return None
    X: Any
    ids: Any = None
    if isinstance(runs, Runs):
        spaces = list(runs.spaces)
        if len(spaces) != 1:
            raise ValueError(f"runs must hold one space for this result, got {len(spaces)}.")
        X, ids = runs.spaces[spaces[0]], runs.ids
    elif isinstance(runs, PairSpace):
        X, ids = runs, runs.names
    else:
        if hasattr(runs, "iloc"):
            ids = [str(name) for name in runs.index]
        X = check_data(runs, name="runs", sparse=True)
    given, least = X.shape[0], n if positions is None else int(positions.max()) + 1
    if given < least or (given > least and positions is None):
        raise ValueError(f"runs must hold the {least} objects {which}, got {given}.")
    if sp.issparse(X):
        X = sp.csr_array(X)
    elif not isinstance(X, PairSpace):
        X = to_numpy(X)
    table = runs if is_frame(runs) else X
    if features is not None:
        table = features
        if not is_frame(features):
            table = check_data(features, name="features", sparse=True)
        rows = table.shape[0]
        if rows != given:
            raise ValueError(f"features must have one row per object ({given}), got {rows}.")
    if positions is not None:
        X, whole = take_objects(X, positions), table
        ids = None if ids is None else np.asarray(ids)[positions]
        if is_frame(whole):
            table = open_frame(whole)[positions.tolist()].to_native()
        else:
            table = take_objects(whole, positions)
    return X, ids, table


def data_sections(
    data: tuple[Any, Any, Any] | None,
    partitions: Partitions,
    names: Sequence[str],
    classes: np.ndarray | None,
    layout: str,
    *,
    described: Mapping[str, ClusterDescription] | None = None,
    stability: Any = None,
    answer: bool = False,
) -> list[Section]:
    """Draw the partitions and show the clusters and objects of the first of ``names``.

    ``data`` are as `given_data` returns them; ``described`` says what is in the clusters, where
    that is known already. With ``answer`` the first screen shows the clusters and a map.
    """
    if data is None:
        why = "The objects are not drawn: the page was made without the data (runs=X)."
        also = "The objects are not shown one by one: that needs the data."
        return [Section("plots", absent=why), Section("objects", absent=also)]
    (X, ids, table), n = data, partitions.n_objects
    if classes is not None and len(classes) != n:
        raise ValueError(f"truth must have one class per object ({n}), got {len(classes)}.")
    details = object_details(X, partitions[partitions.names.index(names[0])], DATA)
    scatters = draw_one_space(X, ids, partitions, details, classes, layout)
    labels, members = labels_of(partitions), Members(ids, {})
    if described is None:
        pairs = [(name, DATA) for name in names]
        described = describe_best(
            {DATA: X}, partitions, pairs, X=table, ids=ids, details=details, stability=stability
        )
    sections = [
        map_section(scatters, {"selected": [0], "excluded": []}),
        clusters_section(described, {name: labels[name] for name in names}),
        objects_section(details, scatters.objects, members),
    ]
    if answer:
        colours = np.asarray(scatters.labels[names[0]].colours)
        sections.append(answer_section(details, colours, members, f"{scatters.axes[0]}.", n))
    return sections
