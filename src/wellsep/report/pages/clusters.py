"""The page of one clustering: its clusters with their features and rules, its objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.labels import as_vector
from wellsep.evaluate import ClusterDescription
from wellsep.evaluate.truth import shown_classes
from wellsep.partitions import Partitions
from wellsep.report.parts import Column, Page, RankingTable, Section, fact
from wellsep.report.sections.one_space import WHOLE, about_clusters, data_sections
from wellsep.report.source import given_data

# Heading of each column, whether larger is better, what it says.
COLUMNS = {
    "size": ("objects", 0, "Objects in the cluster."),
    "share": ("share", 0, "Share of the objects that are in a cluster."),
    "silhouette": ("mean width", 1, "Mean silhouette width."),
    "nearest": ("nearest cluster", 0, "The cluster that most of its objects are nearest to."),
    "rule": ("rule", 0, "The shortest rule that tells the cluster from the others."),
    "precision": ("precision", 1, "Share of the objects under the rule that are in the cluster."),
    "recall": ("recall", 1, "Share of the cluster's objects that the rule finds."),
}


def build_clusters_page(
    found: ClusterDescription,
    *,
    runs: Any,
    labels: Any,
    truth: Any,
    title: str | None,
    layout: str,
    features: Any = None,
) -> Page:
    """Everything the template and the script need for the clusters of one clustering."""
    headline, *others = found.sentences()
    names, n = list(found.clusters), found.n_objects
    data, partition = None, Partitions.from_labels({WHOLE: np.zeros(n, dtype=int)})
    if runs is not None and labels is not None:
        data = given_data(runs, n, "that were described", features=features)
        partition = Partitions.from_labels({WHOLE: as_vector(labels, "labels")})
        _check_described(found, partition)
    classes = None if truth is None else shown_classes(truth)
    pictures = data_sections(
        data, partition, [WHOLE], classes, layout, described={WHOLE: found}, answer=True
    )
    return Page(
        kind="clusters",
        title=title or f"{len(names)} clusters",
        lead=(("text", headline),),
        sure=(),
        facts=(fact(len(names), "cluster"), fact(n, "object")),
        table=_table(found),
        paragraphs=(headline, *others),
        sections=(*pictures, Section("method")),
        about=about_clusters(names, n),
    )


def _check_described(found: ClusterDescription, partition: Partitions) -> None:
    """Refuse labels of other clusters; those of noise may be described as clusters, or not."""
    if partition.n_objects != found.n_objects:
        raise ValueError(
            f"labels must have one entry per object ({found.n_objects}), got {partition.n_objects}."
        )
    sizes = dict(zip(found.clusters, found.sizes.tolist(), strict=True))
    codes, classes = partition.codes[0], partition.classes[0]
    for label, size in zip(classes, np.bincount(codes[codes >= 0]).tolist(), strict=True):
        if sizes.get(str(label)) != size:
            raise ValueError(
                f"labels must be those that were described, got {size} objects in cluster {label}, "
                f"which has {sizes.get(str(label), 0)} in the description."
            )


def _table(found: ClusterDescription) -> RankingTable:
    """A row per cluster, the largest first."""
    columns, order = found.columns(), np.argsort(-found.sizes, kind="stable")
    made = [Column("cluster", "cluster", "name", tuple(found.clusters[k] for k in order))]
    for key, (label, direction, said) in COLUMNS.items():
        values = [columns[key][k] for k in order]
        cells = tuple(None if v is None or v != v else v for v in values)
        if any(cell not in (None, "") for cell in cells):
            number = all(isinstance(cell, int | float | None) for cell in cells)
            kind = {"size": "int", "share": "share"}.get(key, "float" if number else "text")
            made.append(Column(key, label, kind, cells, said, direction))
    return RankingTable(order, tuple(made))
