"""The parts of a page about clusterings of one data set: the map, the clusters, the objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wellsep._checks.arrays import is_frame, open_frame
from wellsep.evaluate import ClusterDescription
from wellsep.evaluate.clusters.describing import describe_best
from wellsep.evaluate.clusters.objects import object_details
from wellsep.partitions import Partitions
from wellsep.report.parts import Section
from wellsep.report.sections.answer import answer_section
from wellsep.report.sections.clusters import clusters_section
from wellsep.report.sections.objects import Members, objects_section
from wellsep.report.sections.scatter import draw_one_space, labels_of, map_section
from wellsep.report.source import DATA, Given
from wellsep.spaces.projections import take_objects

WHOLE = "the clustering"  # of pages whose rows are clusters


def data_sections(
    data: Given | None,
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

    ``described`` says what is in its clusters, where that is known already. With ``answer`` the
    first screen shows its clusters and a map.
    """
    if data is None:
        why = "The objects are not drawn: the page was made without the data (runs=X)."
        also = "The objects are not shown one by one: that needs the data."
        return [Section("plots", absent=why), Section("objects", absent=also)]
    X, ids, table = data
    details = object_details(X, partitions[partitions.names.index(names[0])], DATA)
    scatters = draw_one_space(X, ids, partitions, details, classes, layout)
    labels, members = labels_of(partitions), Members(ids, {})
    if described is None:
        described = describe_best(
            {DATA: X},
            partitions,
            [(name, DATA) for name in names],
            X=table,
            ids=ids,
            details=details,
            stability=stability,
        )
    sections = [
        map_section(scatters),
        clusters_section(described, {name: labels[name] for name in names}),
        objects_section(details, scatters.objects, members),
    ]
    if answer:
        colours = np.asarray(scatters.labels[names[0]].colours)
        said = f"{scatters.axes[0]}."
        sections.append(answer_section(details, colours, members, said, len(details.codes)))
    return sections


def some_rows(data: Given, positions: np.ndarray) -> Given:
    """The objects at some positions."""
    X, ids, table = data
    if is_frame(table):
        table = open_frame(table)[positions.tolist()].to_native()
    else:
        table = take_objects(table, positions)
    return Given(
        take_objects(X, positions), None if ids is None else np.asarray(ids)[positions], table
    )


def about_clusters(names: Sequence[str], n_objects: int) -> dict[str, Any]:
    """What the script needs where each row of the table is a cluster."""
    return {
        "whole": WHOLE,
        "partitions": list(names),
        "spaces": [DATA],
        "made_in": [0] * len(names),
        "best": -1,
        "n_objects": n_objects,
    }
