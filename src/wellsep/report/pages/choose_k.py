"""The page of a chosen K: curves, votes, the partitions of every K, and the best one's objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep.evaluate.clusters.tree import resolution_tree
from wellsep.evaluate.truth import compare_with_truth, shown_classes
from wellsep.partitions import Partitions
from wellsep.report.figures.records import (
    Column,
    Curve,
    Curves,
    Page,
    RankingTable,
    Section,
    fact,
)
from wellsep.report.figures.runs import tree_figure
from wellsep.report.pack import to_payload
from wellsep.report.sections.one_space import data_sections, some_rows
from wellsep.report.sections.tables import truth_section
from wellsep.report.source import DATA, given_data


def build_k_page(
    chosen: Any, *, runs: Any, truth: Any, title: str | None, layout: str, features: Any = None
) -> Page:
    """Everything the template and the script need for a chosen K."""
    curves, table = curves_figure(chosen), k_table(chosen)
    names = [f"K = {k}" for k in curves.k]
    best = int(np.flatnonzero(curves.k == curves.best)[0])
    partitions = Partitions.from_labels(dict(zip(names, chosen.labels, strict=True)))
    tree = {}
    if len(names) > 1:
        tree["tree"] = to_payload(tree_figure(resolution_tree(partitions)))
    sections = [Section("curves", {"curves": to_payload(curves)}), Section("method", tree)]
    if truth is not None:
        known = _of_objects(to_numpy(truth, "truth").reshape(-1), chosen)
        signed = np.asarray(chosen.mean, dtype=float) * np.asarray(chosen.directions)
        scores = dict(zip(chosen.indices, signed.T, strict=True))
        labels = dict(zip(names, chosen.labels, strict=True))
        sections.append(truth_section(compare_with_truth(scores, labels, known)))
    order = [names[at] for at in table.rows]
    shown = _pictures(chosen, partitions, order, runs, truth, layout, features)
    return Page(
        kind="choice of k",
        title=title or "The number of clusters",
        lead=_lead(chosen),
        sure=_sure(chosen, curves),
        facts=_facts(chosen, curves),
        table=table,
        paragraphs=tuple(chosen.explain().splitlines()),
        chip=_chip(chosen),
        sections=(*shown, *sections),
        about={
            "partitions": names,
            "spaces": [DATA],
            "made_in": [0] * len(names),
            "best": best,
            "one_cluster": chosen.best == 1,
            "n_objects": chosen.labels.shape[1],
        },
    )


def _pictures(
    chosen: Any,
    partitions: Partitions,
    order: list[str],
    runs: Any,
    truth: Any,
    layout: str,
    features: Any,
) -> list[Section]:
    """The map, the clusters and the objects, or why they cannot be shown."""
    data, positions = None, np.asarray(chosen.objects)
    if runs is not None:
        least = int(positions.max()) + 1
        data = given_data(runs, least, "K was chosen on", features=features, more=True)
        data = some_rows(data, positions)
    if chosen.all_equal:
        why = "All objects are equal; there is nothing to draw."
        return [Section("plots", absent=why), Section("objects", absent=why)]
    classes = None if truth is None else _of_objects(shown_classes(truth), chosen)
    return data_sections(data, partitions, order, classes, layout)


def curves_figure(chosen: Any) -> Curves:
    """Every index over K with its spread, the votes and the stability of a ``ChosenK``."""
    found = tuple(
        Curve(
            name=name,
            k=np.asarray(curve["k"]),
            mean=np.asarray(curve["mean"], dtype=float),
            low=np.asarray(curve["low"], dtype=float),
            high=np.asarray(curve["high"], dtype=float),
            pick=curve["pick"],
            direction=int(curve["direction"]),
        )
        for name, curve in chosen.curves().items()
    )
    votes = chosen.votes
    return Curves(
        curves=found,
        k=np.asarray(chosen.k),
        votes=np.array([votes[int(k)] for k in chosen.k]),
        stability=np.asarray(chosen.stability, dtype=float),
        best=_shown_k(chosen),
        n_repeats=len(chosen.values),
    )


def _shown_k(chosen: Any) -> int:
    """The K whose partition is shown: the best, and if that is 1 the best above."""
    return int(chosen.best_above_one if chosen.best == 1 else chosen.best)


def k_table(chosen: Any) -> RankingTable:
    """A row per K: votes first, then every index with its spread, stability, clusters, seconds."""
    columns = chosen.columns()
    votes, k = columns["votes"], columns["k"]
    best = _shown_k(chosen)
    order = np.array(sorted(range(len(k)), key=lambda i: (k[i] != best, -votes[i], k[i])))
    directions = dict(zip(chosen.indices, np.asarray(chosen.directions).tolist(), strict=True))
    found = [Column("k", "K", "name", tuple(f"K = {k[i]}" for i in order))]
    said = "One vote per index; an index that picks the largest K has none."
    found.append(Column("votes", "votes", "float", _cells(votes, order), said, 1))
    for name, values in columns.items():
        if name in ("k", "votes"):
            continue
        said, direction, kind = _said(name, directions)
        if name.endswith(" ±"):
            values = [_spread(v, columns[name[:-2]][i]) for i, v in enumerate(values)]
        found.append(Column(name, name, kind, _cells(values, order), said, direction))
    return RankingTable(order, tuple(found))


def _said(name: str, directions: Mapping[str, int]) -> tuple[str, int, str]:
    if name in directions:
        way = "larger" if directions[name] > 0 else "smaller"
        return f"Mean over the repeats; {way} is better.", int(directions[name]), "float"
    if name.endswith(" ±"):
        return f"Standard deviation of {name[:-2]} over the repeats.", 0, "float"
    return {
        "stability": ("Mean adjusted Rand index between repeats.", 1, "float"),
        "n_clusters": ("Clusters found, mean over the repeats.", 0, "float"),
        "coverage": ("Share of the objects that are not noise.", 0, "share"),
        "seconds": ("Time of a fit.", 0, "float"),
    }.get(name, ("", 0, "float"))


def _spread(spread: float, mean: float) -> float:
    """A spread that is rounding alone is none."""
    return 0.0 if spread <= 1e-12 * abs(mean) else spread


def _cells(values: list[Any], order: np.ndarray) -> tuple[Any, ...]:
    taken = [values[i] for i in order]
    return tuple(None if isinstance(v, float) and not np.isfinite(v) else v for v in taken)


def _of_objects(classes: np.ndarray, chosen: Any) -> np.ndarray:
    most = int(np.max(chosen.objects)) + 1
    if len(classes) < most:
        raise ValueError(f"truth must have one class per object ({most}), got {len(classes)}.")
    return classes[np.asarray(chosen.objects)]


def _lead(chosen: Any) -> tuple[tuple[str, str], ...]:
    first = chosen.answer()[0]
    name, said, rest = first.partition(f"K = {chosen.best}")
    if chosen.best == 1 or name or not said:
        return (("text", first),)
    return (("name", said), ("text", rest))


def _sure(chosen: Any, curves: Curves) -> tuple[str, ...]:
    at = int(np.flatnonzero(curves.k == curves.best)[0])
    found = list(chosen.answer()[1:])
    for_one = chosen.votes.get(1, 0)
    if for_one:
        total = sum(chosen.votes.values())
        found.append(
            f"{for_one:g} of {total:g} votes are for K = 1, which has no row and no score."
        )
    if curves.n_repeats > 1:
        found.append(
            f"Over {curves.n_repeats} repeats the clusterings with K = {curves.best} agree with an "
            f"adjusted Rand index of {curves.stability[at]:.2f}."
        )
    else:
        found.append("Stability was not computed: each K was fitted once.")
    return (*found, *chosen.cautions())


def _chip(chosen: Any) -> str:
    """Whether there is structure, and whether the indices agree on K."""
    if chosen.best == 1:
        return "Nothing to cluster"
    picks = {curve["pick"] for curve in chosen.curves().values() if curve["pick"] is not None}
    return "Clear" if len(picks) == 1 else "Votes differ"


def _facts(chosen: Any, curves: Curves) -> tuple[tuple[str, str], ...]:
    return (
        (f"{curves.k[0]}–{curves.k[-1]}", "clusters tried"),
        fact(len(curves.curves), "index", "indices"),
        fact(curves.n_repeats, "repeat"),
        fact(chosen.labels.shape[1], "object"),
    )
