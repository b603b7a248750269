"""The page of a stability: how often each cluster is found again, how sure that is, its objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._text.sentences import printable
from wellsep.evaluate.truth import shown_classes
from wellsep.partitions import Partitions
from wellsep.report.pack import pack
from wellsep.report.parts import (
    Column,
    Page,
    RankingTable,
    Section,
    fact,
)
from wellsep.report.sections.one_space import WHOLE, about_clusters, data_sections
from wellsep.report.source import given_data

MOST_DOTS = 6000  # draws times clusters


def build_stability_page(
    found: Any, *, runs: Any, truth: Any, title: str | None, layout: str, features: Any = None
) -> Page:
    """Everything the template and the script need for a stability."""
    lines, drawn = found.explain().splitlines(), _drawn(found)
    names = drawn["clusters"]
    return Page(
        kind="stability",
        title=title or f"Stability of {len(names)} clusters",
        lead=(("text", lines[0]),),
        sure=_sure(found),
        facts=_facts(found),
        table=stability_table(found),
        paragraphs=tuple(lines),
        sections=(
            Section("stability", {"stability": drawn}, drawn),
            *_pictures(found, runs, truth, layout, features),
            Section("method"),
        ),
        about=about_clusters(names, len(found.labels)),
    )


def _pictures(found: Any, runs: Any, truth: Any, layout: str, features: Any) -> list[Section]:
    """The map, the clusters and the objects, or why they cannot be shown."""
    n = len(found.labels)
    partition = Partitions.from_labels({WHOLE: found.labels})
    data = None
    if runs is not None:
        data = given_data(runs, n, "that were clustered", features=features)
    elif truth is not None:
        raise ValueError("truth must come with runs, got none; add the data as runs.")
    if truth is not None and len(truth) != n:
        raise ValueError(f"truth must have one class per object ({n}), got {len(truth)}.")
    classes = None if truth is None else shown_classes(truth)
    return data_sections(data, partition, [WHOLE], classes, layout, stability=found)


def _drawn(found: Any) -> dict[str, Any]:
    """Each cluster in every sample, its mean with the interval, and what the samples found."""
    # Of very many draws the first ones are drawn.
    most = max(10, MOST_DOTS // max(len(found.clusters), 1))
    half = np.nan_to_num(found.half_width)
    return {
        "clusters": [str(label) for label in found.clusters],
        "sizes": found.sizes,
        "values": [pack(row[:most], "f4") for row in found.values],
        "mean": found.jaccard,
        "low": np.maximum(found.jaccard - half, 0.0),
        "high": np.minimum(found.jaccard + half, 1.0),
        "dissolved": found.dissolved,
        "recovered": found.recovered,
        "draws": found.n_draws,
        "words": found.words,
        "n_found": [] if found.stand_in else found.n_found[found.n_found > 0],
        "strengths": found.prediction_strengths,
        "scheme": found.scheme,
    }


def stability_table(found: Any) -> RankingTable:
    """A row per cluster, the least stable first."""
    columns = found.columns()
    order = np.argsort(np.nan_to_num(found.jaccard, nan=-1.0), kind="stable")
    of = len(set(columns["draws"])) == 1
    said = {
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
    made = []
    for key, (label, kind, help_, direction) in said.items():
        if key == "draws" and of:
            continue
        values = [columns[key][i] for i in order]
        if kind == "name":
            values = [str(value) for value in values]
        cells = tuple(None if isinstance(v, float) and np.isnan(v) else v for v in values)
        made.append(Column(key, label, kind, cells, help_, direction))
    return RankingTable(order, tuple(made))


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


def _facts(found: Any) -> tuple[tuple[str, str], ...]:
    doubts = ("doubtful", "not to be trusted", "not judged")
    stable = sum(not any(doubt in word for doubt in doubts) for word in found.words)
    facts = [
        fact(len(found.clusters), "cluster"),
        (str(stable), "stable"),
        fact(found.values.shape[1], found.scheme),
        fact(len(found.labels), "object"),
    ]
    if len(found.prediction_strengths):
        facts.append((f"{found.prediction_strength:.2f}", "prediction strength"))
    return tuple(facts)
