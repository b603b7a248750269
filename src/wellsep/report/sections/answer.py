"""The first screen of a ranking: who comes first, what is agreed, and what is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wellsep._text.sentences import count
from wellsep.evaluate import AgreedGroups, JudgedClusters, PartitionDetails, Question
from wellsep.report.pack import Section, pack, pack_codes
from wellsep.report.sections.objects import Members

N_MEMBERS = 10  # of a group
N_BESIDE = 8  # of a cluster in a question
N_BETWEEN = 24  # objects that the sides of a question put elsewhere
MOST_GROUPS = 14  # rows of a panel
MOST_IDS = 20_000  # objects whose names the page keeps for an export


def answer_section(
    chosen: PartitionDetails | None,
    colours: np.ndarray,
    members: Members,
    map_said: str,
    n_objects: int,
    *,
    agreed: AgreedGroups | None = None,
    clusters: JudgedClusters | None = None,
    bar: Sequence[tuple[str, float]] = (),
    n_draws: int = 0,
) -> Section:
    """Who comes first in how many half-samples; agreed groups, or all clusters; open questions."""
    shown: dict[str, Any] = {
        "bar": bar,
        "bar_said": f"First place in {count(n_draws, 'half-sample')}:",
        "groups": [],
        "questions": [],
        "map": map_said,
    }
    data: dict[str, Any] = {}
    support = {} if clusters is None else clusters.best_support
    if agreed is not None and not agreed.why:
        hue = {} if chosen is None else dict(zip(chosen.clusters, colours.tolist(), strict=True))
        colours = np.array([hue.get(name, c) for c, name in enumerate(agreed.clusters)], dtype=int)
        rows = partial(_rows, agreed, chosen, colours, members, support)
        many = len(agreed.contenders) > 1
        which = "the same in all contenders" if many else "one run alone comes first"
        note = "Support: how far the better runs find the group again, 1 = exactly."
        more = len(agreed.rows) - MOST_GROUPS
        if more > 0:
            note = f"{count(more, 'more group')} in the part Map. {note}"
        shown |= {"groups": rows(agreed.rows[:MOST_GROUPS], N_MEMBERS)}
        shown |= {"groups_title": f"Agreed: {which}", "groups_note": note}
        shown["questions"] = [_question(q, agreed, chosen, members, rows) for q in agreed.questions]
        data = _settling(agreed, colours, members.ids, clusters)
    elif chosen is not None:
        some = np.argsort(-chosen.sizes, kind="stable")[:MOST_GROUPS]
        more = len(chosen.clusters) - MOST_GROUPS
        shown |= {
            "groups": _rows(chosen, chosen, colours, members, support, some, N_MEMBERS),
            "groups_title": f"Clusters of {chosen.partition}",
            "groups_note": f"{count(more, 'smaller cluster')} below." if more > 0 else "",
        }
        codes = pack_codes(chosen.codes, len(chosen.clusters))
        data = {"codes": codes, "clusters": chosen.clusters, "colours": colours}
    elif map_said:  # nothing to cluster: the objects, without colours
        data = {"codes": pack_codes(np.full(n_objects, -1), 0), "clusters": (), "colours": ()}
    return Section("answer", {"answer": data} if data else {}, shown)


def _rows(
    groups: AgreedGroups | PartitionDetails,
    chosen: PartitionDetails | None,
    colours: np.ndarray,
    members: Members,
    support: dict[str, float],
    some: Iterable[int],
    most: int,
) -> list[dict[str, Any]]:
    """Some groups with their colours, sizes and members, the largest silhouette widths first."""
    rows = []
    for c in some:
        own, name = np.flatnonzero(groups.codes == c), groups.clusters[c]
        if chosen is not None:
            widths = np.nan_to_num(chosen.widths[own], nan=-1.0)
            own = own[np.argsort(-widths, kind="stable")]
        row = {"name": name, "colour": int(colours[c]), "objects": len(own)}
        rows.append({**row, "support": support.get(name), "members": members.of(own[:most])})
    return rows


def _question(
    question: Question,
    agreed: AgreedGroups,
    chosen: PartitionDetails | None,
    members: Members,
    rows: Callable[..., list[dict[str, Any]]],
) -> dict[str, Any]:
    """A question with members of its clusters, and the objects that its sides put elsewhere."""
    positions = [agreed.clusters.index(name) for name in (*question.clusters, *question.beside)]
    moved = np.unique(np.concatenate([side.moved for side in question.sides]))
    if chosen is not None:  # the least typical are between most
        moved = moved[np.argsort(np.nan_to_num(chosen.widths[moved]), kind="stable")]
    return {
        "id": question.id,
        "text": question.text,
        "rows": rows(positions, N_BESIDE),
        "sides": [{"words": side.words, "share": side.share} for side in question.sides],
        "between": members.of(moved[:N_BETWEEN]),
    }


def _settling(
    agreed: AgreedGroups, colours: np.ndarray, ids: Any, clusters: JudgedClusters | None
) -> dict[str, Any]:
    """What the script needs to answer questions and to export labels."""
    questions = [
        {
            "id": question.id,
            "objects": pack(question.objects, "i4"),
            "clusters": [agreed.clusters.index(name) for name in question.clusters],
            "sides": [
                {
                    "words": side.words,
                    "groups": side.groups,
                    "codes": pack_codes(side.codes, len(side.groups)),
                }
                for side in question.sides
            ],
        }
        for question in agreed.questions
    ]
    kept = ids is not None and len(agreed.codes) <= MOST_IDS
    return {
        "clusters": agreed.clusters,
        "colours": colours,
        "run": agreed.run,
        "codes": pack_codes(agreed.codes, len(agreed.clusters)),
        "ids": [str(one) for one in ids] if kept else None,
        "support": None if clusters is None else pack(clusters.object_support, "f4"),
        "questions": questions,
    }
