"""The page of a chosen K: curves, votes, the partitions of every K, and the best one's objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep.evaluate.clusters.tree import resolution_tree
from wellsep.evaluate.truth import compare_with_truth, shown_classes
from wellsep.partitions import Partitions
from wellsep.report.figures.runs import tree_figure
from wellsep.report.pack import to_payload
from wellsep.report.parts import Column, Page, RankingTable, Section, fact
from wellsep.report.sections.one_space import data_sections, some_rows
from wellsep.report.sections.tables import truth_section
from wellsep.report.source import DATA, given_data


def build_k_page(
    chosen: Any, *, runs: Any, truth: Any, title: str | None, layout: str, features: Any = None
) -> Page:
    """Everything the template and the script need for a chosen K."""
    curves, table = _curves(chosen), k_table(chosen)
    labels = dict(zip((f"K = {k}" for k in chosen.k), chosen.labels, strict=True))
    partitions = Partitions.from_labels(labels)
    names = [f"K = {k}" for k in curves["k"]]
    tree = {}
    if len(labels) > 1:
        tree["tree"] = to_payload(tree_figure(resolution_tree(partitions)))
    sections = [Section("curves", {"curves": curves}), Section("method", tree)]
    if truth is not None:
        known = _of_objects(to_numpy(truth, "truth").reshape(-1), chosen)
        signed = np.asarray(chosen.mean, dtype=float) * np.asarray(chosen.directions)
        scores = dict(zip(chosen.indices, signed.T, strict=True))
        sections.append(truth_section(compare_with_truth(scores, labels, known)))
    order = [names[at] for at in table.rows if names[at] in labels]
    shown = _pictures(chosen, partitions, order, runs, truth, layout, features)
    for section in shown:
        if section.name == "clusters" and len(names) > len(labels):
            section.data["clusters"]["sizes"]["K = 1"] = [["all"], [chosen.labels.shape[1]]]
    return Page(
        kind="choice of k",
        title=title or "The number of clusters",
        lead=_lead(chosen),
        sure=_sure(chosen),
        facts=_facts(chosen),
        table=table,
        paragraphs=tuple(chosen.explain().splitlines()),
        chip=_chip(chosen),
        sections=(*shown, *sections),
        about={
            "partitions": names,
            "spaces": [DATA],
            "made_in": [0] * len(names),
            "best": curves["k"].index(curves["best"]),
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


def _curves(chosen: Any) -> dict[str, Any]:
    """Every index over K with its spread, the votes and the stability, with K = 1 if it has one."""
    votes, names = chosen.votes, chosen.curves()
    one = [1] if votes.get(1) else []
    gap = [None] * len(one)
    return {
        "curves": [
            {"name": name, "pick": curve["pick"], "direction": curve["direction"]}
            | {key: [*gap, *curve[key]] for key in ("mean", "low", "high")}
            for name, curve in names.items()
        ],
        "k": [*one, *np.asarray(chosen.k).tolist()],
        "votes": [votes[k] for k in (*one, *np.asarray(chosen.k).tolist())],
        "stability": [*gap, *np.asarray(chosen.stability, dtype=float).tolist()],
        "best": shown_k(chosen),
        "n_repeats": len(chosen.values),
    }


def shown_k(chosen: Any) -> int:
    """The K whose partition is shown: the best, and if that is 1 the best above."""
    return int(chosen.best_above_one if chosen.best == 1 else chosen.best)


def k_table(chosen: Any) -> RankingTable:
    """A row per K: the answer first, then by votes, with every index, its spread and stability."""
    columns = chosen.columns()
    for name in ("n_clusters", "coverage"):
        if columns.get(name) in (columns["k"], [1.0] * len(columns["k"])):
            columns.pop(name)  # as asked for, and without noise
    columns.pop("seconds", None)
    if chosen.votes.get(1):
        known = {"k": 1, "votes": chosen.votes[1]}
        columns = {name: [known.get(name), *values] for name, values in columns.items()}
    votes, k = columns["votes"], columns["k"]
    first = (chosen.best, shown_k(chosen))
    order = np.array(
        sorted(range(len(k)), key=lambda i: (k[i] != first[0], k[i] != first[1], -votes[i], k[i]))
    )
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
        cells = _cells(values, order)
        if any(cell is not None for cell in cells):  # an index that is fitted once has no spread
            found.append(Column(name, name, kind, cells, said, direction))
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
    }.get(name, ("", 0, "float"))


def _spread(spread: float | None, mean: float) -> float | None:
    """A spread that is rounding alone is none."""
    if spread is None:
        return None
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


def _sure(chosen: Any) -> tuple[str, ...]:
    best, repeats = shown_k(chosen), len(chosen.values)
    found = list(chosen.answer()[1:])
    for_one = chosen.votes.get(1, 0)
    if for_one:
        total = sum(chosen.votes.values())
        found.append(f"{for_one:g} of {total:g} votes are for K = 1, which no index scores.")
    if repeats > 1:
        stable = np.asarray(chosen.stability)[np.asarray(chosen.k) == best][0]
        found.append(
            f"Over {repeats} repeats the clusterings with K = {best} agree with an adjusted Rand "
            f"index of {stable:.2f}."
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


def _facts(chosen: Any) -> tuple[tuple[str, str], ...]:
    return (
        (f"{chosen.k[0]}–{chosen.k[-1]}", "clusters tried"),
        fact(len(chosen.indices), "index", "indices"),
        fact(len(chosen.values), "repeat"),
        fact(chosen.labels.shape[1], "object"),
    )
