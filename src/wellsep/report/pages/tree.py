"""The page of a resolution tree: which cluster of each clustering goes where in the next one."""

from __future__ import annotations

import numpy as np

from wellsep.evaluate import ResolutionTree
from wellsep.report.figures.runs import tree_figure
from wellsep.report.pack import to_payload
from wellsep.report.parts import Column, Page, RankingTable, Section, fact


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
