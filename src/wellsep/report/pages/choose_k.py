"""The pages of a chosen K (curves, votes, the partitions of every K) and of a resolution tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep.evaluate import ResolutionTree
from wellsep.evaluate.clusters.tree import resolution_tree
from wellsep.evaluate.truth import compare_with_truth, shown_classes
from wellsep.partitions import Partitions
from wellsep.report.figures.runs import tree_figure
from wellsep.report.pack import Column, Page, RankingTable, Section, fact, to_payload
from wellsep.report.sections.one_space import DATA, data_sections, given_data
from wellsep.report.sections.tables import told_columns, truth_section


def build_k_page(
    chosen: Any, *, runs: Any, truth: Any, title: str | None, layout: str, features: Any = None
) -> Page:
    """Everything the template and the script need for a chosen K."""
    curves, table = _curves(chosen), k_table(chosen)
    labels = dict(zip((f"K = {k}" for k in chosen.k), chosen.labels, strict=True))
    partitions = Partitions.from_labels(labels)
    names, n = [f"K = {k}" for k in curves["k"]], chosen.labels.shape[1]
    tree = {}
    if len(labels) > 1:
        tree["tree"] = to_payload(tree_figure(resolution_tree(partitions)))
    sections = [Section("curves", {"curves": curves}), Section("method", tree)]
    if truth is not None:
        known = _of_objects(to_numpy(truth, "truth").reshape(-1), chosen)
        signed = np.asarray(chosen.mean, dtype=float) * np.asarray(chosen.directions)
        scores = dict(zip(chosen.indices, signed.T, strict=True))
        sections.append(truth_section(compare_with_truth(scores, labels, known)))
    if chosen.all_equal:
        why = "All objects are equal; there is nothing to draw."
        shown = [Section("plots", absent=why), Section("objects", absent=why)]
    else:
        positions = np.asarray(chosen.objects)
        data = given_data(runs, n, "K was chosen on", features=features, positions=positions)
        order = [names[at] for at in table.rows if names[at] in labels]
        classes = None if truth is None else _of_objects(shown_classes(truth), chosen)
        shown = data_sections(data, partitions, order, classes, layout)
    for section in shown:
        if section.name == "clusters" and len(names) > len(labels):
            section.data["clusters"]["sizes"]["K = 1"] = [["all"], [n]]
    return Page(
        kind="choice of k",
        title=title or "The number of clusters",
        lead=_lead(chosen),
        sure=_sure(chosen),
        facts=(
            (f"{chosen.k[0]}–{chosen.k[-1]}", "clusters tried"),
            fact(len(chosen.indices), "index", "indices"),
            fact(len(chosen.values), "repeat"),
            fact(n, "object"),
        ),
        table=table,
        paragraphs=tuple(chosen.explain().splitlines()),
        chip=_chip(chosen),
        sections=(*shown, *sections),
        about={
            "partitions": names,
            "spaces": [DATA],
            "made_in": [0] * len(names),
            "best": curves["k"].index(curves["best"]),
            "n_objects": n,
        },
    )


def _curves(chosen: Any) -> dict[str, Any]:
    """Every index over K with its spread, the votes and the stability, with K = 1 if it has one."""
    votes, k = chosen.votes, np.asarray(chosen.k).tolist()
    one = [1] if votes.get(1) else []
    gap = [None] * len(one)
    return {
        "curves": [
            {"name": name, "pick": curve["pick"], "direction": curve["direction"]}
            | {key: [*gap, *curve[key]] for key in ("mean", "low", "high")}
            for name, curve in chosen.curves().items()
        ],
        "k": [*one, *k],
        "votes": [votes[k] for k in (*one, *k)],
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
        if columns[name] in (columns["k"], [1.0] * len(columns["k"])):
            del columns[name]  # as asked for, and without noise
    del columns["seconds"]
    if chosen.votes.get(1):
        known = {"k": 1, "votes": chosen.votes[1]}
        columns = {name: [known.get(name), *values] for name, values in columns.items()}
    said = "One vote per index; an index that picks the largest K has none."
    told = {"k": ("K", "name", "", 0), "votes": ("votes", "float", said, 1)}
    for name, sign in zip(chosen.indices, np.asarray(chosen.directions).tolist(), strict=True):
        way = "larger" if sign > 0 else "smaller"
        told[name] = (name, "float", f"Mean over the repeats; {way} is better.", sign)
        if spread := columns.get(f"{name} ±"):  # empty for an index that is fitted once
            said = f"Standard deviation of {name} over the repeats."
            told[f"{name} ±"] = (f"{name} ±", "float", said, 0)
            # A spread that is rounding alone is none.
            columns[f"{name} ±"] = [
                0.0 if v is not None and v <= 1e-12 * abs(mean) else v
                for v, mean in zip(spread, columns[name], strict=True)
            ]
    told |= {
        "stability": ("stability", "float", "Mean adjusted Rand index between repeats.", 1),
        "n_clusters": ("n_clusters", "float", "Clusters found, mean over the repeats.", 0),
        "coverage": ("coverage", "share", "Share of the objects that are not noise.", 0),
    }
    votes, k = columns["votes"], columns["k"]
    first = (chosen.best, shown_k(chosen))
    order = np.array(
        sorted(range(len(k)), key=lambda i: (k[i] != first[0], k[i] != first[1], -votes[i], k[i]))
    )
    columns["k"] = [f"K = {one}" for one in k]
    return RankingTable(order, told_columns(columns, order, told))


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


def build_tree_page(tree: ResolutionTree, *, title: str | None) -> Page:
    """Everything the template and the script need for a resolution tree."""
    sentences, levels = tuple(tree.sentences()), len(tree.levels)
    summary = sentences[levels - 1 :]  # after one sentence for each step
    counted = tree.level[~tree.is_noise]
    objects = np.bincount(counted, tree.sizes[~tree.is_noise], levels).astype(int)
    columns = (
        Column("partition", "clustering", "name", tree.levels),
        Column("k", "K", "int", tuple(tree.n_clusters.tolist()), "Number of clusters."),
        Column("objects", "objects", "int", tuple(objects.tolist()), "Objects in its clusters."),
    )
    figure = Section("tree", {"tree": to_payload(tree_figure(tree))}, tree.columns())
    return Page(
        kind="resolutions",
        title=title or f"{levels} clusterings, from coarse to fine",
        lead=(("text", summary[0]),),
        sure=summary[1:],
        facts=(fact(levels, "clustering"), fact(len(counted), "cluster")),
        table=RankingTable(np.arange(levels), columns),
        paragraphs=sentences,
        sections=(figure,),
        about={
            "partitions": list(tree.levels),
            "spaces": [],
            "made_in": [-1] * levels,
            "best": 0,
            "n_objects": int(objects.max(initial=0)),
        },
    )
