"""The first screen of a ranking: who comes first, what is agreed, and what is open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wellsep._text.sentences import count
from wellsep.evaluate import PartitionDetails
from wellsep.evaluate.clusters.agreed import AgreedGroups
from wellsep.evaluate.clusters.judged import JudgedClusters
from wellsep.report.pack import pack, pack_codes
from wellsep.report.parts import Section
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
        names = agreed.clusters
        colours = np.array([hue.get(name, c) for c, name in enumerate(names)], dtype=int)
        data = _payload(agreed, colours, members.ids, clusters)
        shown |= _agreed_groups(agreed, chosen, colours, members, support)
        shown["questions"] = [
            _question(q, agreed, chosen, colours, members) for q in agreed.questions
        ]
    elif chosen is not None:
        sizes = np.bincount(chosen.codes[chosen.codes >= 0], minlength=len(chosen.clusters))
        order = np.argsort(-sizes, kind="stable")
        rows = _rows(order[:MOST_GROUPS], chosen, chosen, colours, members, N_MEMBERS)
        shown["groups"] = [{**row, "support": support.get(row["name"])} for row in rows]
        shown["groups_title"] = f"Clusters of {chosen.partition}"
        more = len(order) - MOST_GROUPS
        shown["groups_note"] = f"{count(more, 'smaller cluster')} below." if more > 0 else ""
        codes = pack_codes(chosen.codes, len(chosen.clusters))
        data = {"answer": {"codes": codes, "clusters": chosen.clusters, "colours": colours}}
    elif map_said:  # nothing to cluster: the objects, without colours
        codes = pack_codes(np.full(n_objects, -1), 0)
        data = {"answer": {"codes": codes, "clusters": (), "colours": ()}}
    return Section("answer", data, shown)


def _rows(
    shown: Iterable[int],
    groups: AgreedGroups | PartitionDetails,
    chosen: PartitionDetails | None,
    colours: np.ndarray,
    members: Members,
    most: int,
) -> list[dict[str, Any]]:
    """Some groups with their colours, sizes and members, the largest silhouette widths first."""
    rows = []
    for c in shown:
        own = np.flatnonzero(groups.codes == c)
        if chosen is not None:
            widths = np.nan_to_num(chosen.widths[own], nan=-1.0)
            own = own[np.argsort(-widths, kind="stable")]
        row = {"name": groups.clusters[c], "colour": int(colours[c]), "objects": len(own)}
        rows.append({**row, "members": members.of(own[:most])})
    return rows


def _agreed_groups(
    agreed: AgreedGroups,
    chosen: PartitionDetails | None,
    colours: np.ndarray,
    members: Members,
    support: dict[str, float],
) -> dict[str, Any]:
    """The panel of the agreed groups, the largest overlap first."""
    rows = _rows(agreed.rows[:MOST_GROUPS], agreed, chosen, colours, members, N_MEMBERS)
    groups = [{**row, "support": support.get(row["name"])} for row in rows]
    many = len(agreed.contenders) > 1
    title = "Agreed: the same in all contenders" if many else "Agreed: one run alone comes first"
    note = "Support: how far the better runs find the group again, 1 = exactly."
    if len(agreed.rows) > MOST_GROUPS:
        note = f"{count(len(agreed.rows) - MOST_GROUPS, 'more group')} in the part Map. {note}"
    return {"groups": groups, "groups_title": title, "groups_note": note}


def _question(
    question: Any,
    agreed: AgreedGroups,
    chosen: PartitionDetails | None,
    colours: np.ndarray,
    members: Members,
) -> dict[str, Any]:
    """A question with members of its clusters, and the objects that its sides put elsewhere."""
    positions = [agreed.clusters.index(name) for name in (*question.clusters, *question.beside)]
    moved = np.unique(np.concatenate([side.moved for side in question.sides]))
    if chosen is not None:  # the least typical are between most
        moved = moved[np.argsort(np.nan_to_num(chosen.widths[moved]), kind="stable")]
    return {
        "id": question.id,
        "text": question.text,
        "rows": _rows(positions, agreed, chosen, colours, members, N_BESIDE),
        "sides": [{"words": side.words, "share": side.share} for side in question.sides],
        "between": members.of(moved[:N_BETWEEN]),
    }


def _payload(
    agreed: AgreedGroups, colours: np.ndarray, ids: Any, clusters: JudgedClusters | None
) -> dict[str, Any]:
    """What the script needs to answer questions and to export labels."""
    n = len(agreed.codes)
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
    return {
        "answer": {
            "clusters": agreed.clusters,
            "colours": colours,
            "run": agreed.run,
            "agreed": agreed.is_agreed,
            "codes": pack_codes(agreed.codes, len(agreed.clusters)),
            "ids": None if ids is None or n > MOST_IDS else [str(one) for one in ids],
            "support": None if clusters is None else pack(clusters.object_support, "f4"),
            "questions": questions,
        }
    }
