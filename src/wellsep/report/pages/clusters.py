"""The pages of one clustering: what is in its clusters, and how often they are found again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wellsep._checks.labels import as_vector
from wellsep._text.sentences import count, printable
from wellsep.evaluate import ClusterDescription
from wellsep.evaluate.truth import shown_classes
from wellsep.partitions import Partitions
from wellsep.report.pack import Page, RankingTable, Section, fact, pack
from wellsep.report.sections.one_space import DATA, data_sections, given_data
from wellsep.report.sections.tables import told_columns

WHOLE = "the clustering"
MOST_DOTS = 6000  # draws times clusters
# Column → heading, kind, what it says, 1 if larger is better.
DESCRIBED = {
    "cluster": ("cluster", "name", "", 0),
    "size": ("objects", "int", "Objects in the cluster.", 0),
    "share": ("share", "share", "Share of the objects that are in a cluster.", 0),
    "silhouette": ("mean width", "float", "Mean silhouette width.", 1),
    "nearest": (
        "nearest cluster",
        "text",
        "The cluster that most of its objects are nearest to.",
        0,
    ),
    "rule": ("rule", "text", "The shortest rule that tells the cluster from the others.", 0),
    "precision": (
        "precision",
        "float",
        "Share of the objects under the rule that are in the cluster.",
        1,
    ),
    "recall": ("recall", "float", "Share of the cluster's objects that the rule finds.", 1),
}
STABLE = {
    "cluster": ("cluster", "name", "", 0),
    "size": ("objects", "int", "Objects in the cluster.", 0),
    "jaccard": ("mean Jaccard", "float", "Mean Jaccard similarity over the samples.", 1),
    "low": ("from", "float", "Lower end of the 95 % interval of the mean.", 1),
    "high": ("to", "float", "Upper end of the 95 % interval of the mean.", 1),
    "dissolved": ("dissolved", "int", "Samples with a similarity of at most 0.5.", -1),
    "recovered": ("recovered", "int", "Samples with a similarity above 0.75.", 1),
    "draws": ("samples", "int", "Samples in which the cluster was judged.", 0),
    "verdict": ("verdict", "text", "Hennig's words for the mean and its interval.", 0),
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
    if runs is None or labels is None:
        runs, labels = None, np.zeros(n, dtype=int)
    partition = Partitions.from_labels({WHOLE: as_vector(labels, "labels")})
    if runs is not None:
        _check_described(found, partition)
    data = given_data(runs, n, "that were described", features=features)
    classes = None if truth is None else shown_classes(truth)
    pictures = data_sections(
        data, partition, [WHOLE], classes, layout, described={WHOLE: found}, answer=True
    )
    order = np.argsort(-found.sizes, kind="stable")
    return Page(
        kind="clusters",
        title=title or count(len(names), "cluster"),
        lead=(("text", headline),),
        sure=(),
        facts=(fact(len(names), "cluster"), fact(n, "object")),
        table=RankingTable(order, told_columns(found.columns(), order, DESCRIBED)),
        paragraphs=(headline, *others),
        sections=(*pictures, Section("method")),
        about=_about(names, n),
    )


def _check_described(found: ClusterDescription, partition: Partitions) -> None:
    """Refuse labels of other clusters; those of noise may be described as clusters, or not."""
    if partition.n_objects != found.n_objects:
        raise ValueError(
            f"labels must have one entry per object ({found.n_objects}), got {partition.n_objects}."
        )
    sizes = dict(zip(found.clusters, found.sizes.tolist(), strict=True))
    for label, size in zip(partition.classes[0], partition.sizes[0].tolist(), strict=True):
        if sizes.get(str(label)) != size:
            raise ValueError(
                f"labels must be those that were described, got {size} objects in cluster {label}, "
                f"which has {sizes.get(str(label), 0)} in the description."
            )


def _about(names: Sequence[str], n_objects: int) -> dict[str, Any]:
    """What the script needs where each row of the table is a cluster."""
    return {
        "whole": WHOLE,
        "partitions": list(names),
        "spaces": [DATA],
        "made_in": [0] * len(names),
        "best": -1,
        "n_objects": n_objects,
    }


def build_stability_page(
    found: Any, *, runs: Any, truth: Any, title: str | None, layout: str, features: Any = None
) -> Page:
    """Everything the template and the script need for a stability."""
    lines, n = found.explain().splitlines(), len(found.labels)
    if truth is not None and runs is None:
        raise ValueError("truth must come with runs, got none; add the data as runs.")
    data = given_data(runs, n, "that were clustered", features=features)
    partition = Partitions.from_labels({WHOLE: found.labels})
    classes = None if truth is None else shown_classes(truth)
    pictures = data_sections(data, partition, [WHOLE], classes, layout, stability=found)
    table, drawn = found.columns(), _drawn(found)
    table["cluster"] = drawn["clusters"]
    if len(set(table["draws"])) == 1:
        del table["draws"]
    order = np.argsort(np.nan_to_num(found.jaccard, nan=-1.0), kind="stable")
    doubts = ("doubtful", "not to be trusted", "not judged")
    stable = sum(not any(doubt in word for doubt in doubts) for word in found.words)
    facts = [
        fact(len(found.clusters), "cluster"),
        (str(stable), "stable"),
        fact(found.values.shape[1], found.scheme),
        fact(n, "object"),
    ]
    if len(found.prediction_strengths):
        facts.append((f"{found.prediction_strength:.2f}", "prediction strength"))
    return Page(
        kind="stability",
        title=title or f"Stability of {count(len(found.clusters), 'cluster')}",
        lead=(("text", lines[0]),),
        sure=_sure(found),
        facts=tuple(facts),
        table=RankingTable(order, told_columns(table, order, STABLE)),
        paragraphs=tuple(lines),
        sections=(
            Section("stability", {"stability": drawn}, drawn),
            *pictures,
            Section("method"),
        ),
        about=_about(drawn["clusters"], n),
    )


def _drawn(found: Any) -> dict[str, Any]:
    """Each cluster in every sample, its mean with the interval, and what the samples found."""
    # Of very many draws the first ones are drawn.
    most = max(10, MOST_DOTS // max(len(found.clusters), 1))
    table = found.columns()
    return {
        "clusters": [str(label) for label in found.clusters],
        "sizes": table["size"],
        "values": [pack(row[:most], "f4") for row in found.values],
        "mean": table["jaccard"],
        **{name: table[name] for name in ("low", "high", "dissolved", "recovered", "draws")},
        "words": table["verdict"],
        "n_found": [] if found.stand_in else found.n_found[found.n_found > 0],
        "strengths": found.prediction_strengths,
        "scheme": found.scheme,
    }


def _sure(found: Any) -> tuple[str, ...]:
    """How certain the means are, what may change with more samples, and what stability is not."""
    half = found.half_width[np.isfinite(found.half_width)]
    judged = found.values.shape[1] - len(found.failures)
    said = []
    if len(half):
        said.append(
            f"With {judged} {found.scheme}s the mean similarity of a cluster is known to within "
            f"±{half.max():.2f} at worst (95 % interval)."
        )
    between = [
        printable(str(label), 40)
        for label, word in zip(found.clusters, found.words, strict=True)
        if word.startswith("between")
    ]
    if between:
        names = ", ".join(between[:6]) + (", …" if len(between) > 6 else "")
        said.append(f"More samples would say more of {names}: the interval touches two categories.")
    elif len(half):
        said.append("More samples would change no verdict: each interval lies in one category.")
    told = min(len(found.clusters), 10) + (len(found.clusters) > 10)
    return (*said, *found.explain().splitlines()[1 + told :])
