"""The page of a ranking: which figures it shows, in which words, and what it leaves out and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._text.sentences import listing
from wellsep.evaluate import AceResult, Judgement, agreement
from wellsep.evaluate.scores import Coordinates
from wellsep.evaluate.truth import shown_classes
from wellsep.report.figures.ace import ace_payload, space_order, steps_figure
from wellsep.report.figures.records import ObjectFigures, Page, Section, fact
from wellsep.report.figures.runs import agreement_payload, runs_tree, score_grid
from wellsep.report.sections.clusters import clusters_section
from wellsep.report.sections.objects import objects_figure, objects_section
from wellsep.report.sections.scatter import (
    Scatters,
    draw_objects,
    label_parts,
    map_section,
    object_names,
    truth_part,
)
from wellsep.report.sections.tables import judge_picks, ranking_table, truth_section
from wellsep.report.source import Evidence, collect_evidence
from wellsep.runs.folder_names import best_first
from wellsep.spaces.drawing_planes import plane


def build_ranking_page(
    judgement: Judgement,
    *,
    runs: Any,
    truth: Any,
    title: str | None,
    layout: str | None,
    objects: Any = None,
) -> Page:
    """Everything the template and the script need for a ranking."""
    evidence = collect_evidence(judgement, runs=runs, truth=truth, objects=objects)
    ranking = judgement.ranking
    chosen = None if evidence.details is None else objects_figure(evidence.details)
    scatters = _scatters(evidence, chosen, layout)
    sections = [
        _embeddings(judgement),
        _map(evidence, scatters),
        _clusters(evidence),
        _structure(evidence),
        _objects(evidence, chosen, scatters),
        _method(evidence),
    ]
    if evidence.truth is not None:
        sections.append(truth_section(agreement(ranking, evidence.runs, evidence.truth)))
    return Page(
        kind="ranking",
        title=title or f"{len(ranking.names)} runs ranked by {ranking.title}",
        lead=_lead(evidence),
        sure=tuple(s for s in judgement.verdict.sentences() if s != judgement.verdict.headline),
        facts=_facts(evidence),
        table=ranking_table(ranking, scores=judgement.scores, params=evidence.params),
        paragraphs=judgement.explanation,
        sections=tuple(section for section in sections if section is not None),
        about={
            "index": ranking.index,
            "partitions": list(ranking.names),
            "spaces": list(evidence.spaces),
            "made_in": evidence.made_in,
            "best": int(ranking.order[0]),
            "n_objects": evidence.n_objects,
            "verdict": list(judgement.verdict.sentences()),
        },
        chip=judgement.verdict.kind.capitalize(),
        picks=_picks(evidence),
    )


def _embeddings(judgement: Judgement) -> Section | None:
    found = judgement.embeddings
    if found is None:
        return None
    shown = found.columns() if len(found.embeddings) > 1 else None
    return Section("embeddings", {"embeddings": found.to_rows()}, shown)


def _map(evidence: Evidence, scatters: Scatters | None) -> Section:
    if evidence.ace is None:
        drawn = evidence.judgement.scores.spaces
        why = "The embeddings are not drawn: no judge chose among them."
        return Section("plots", absent=why if drawn else "There is no embedding to draw.")
    if scatters is None:
        why = "The spaces are not drawn: the page was made without the runs, "
        return Section("plots", absent=why + "and no coordinates were kept.")
    return map_section(scatters, _sides(evidence, evidence.ace))


def _clusters(evidence: Evidence) -> Section | None:
    ranking = evidence.judgement.ranking
    if not evidence.described:
        return None
    distinct = [ranking.names[at] for at in ranking.first_of_each]
    return clusters_section(evidence.described, evidence.partitions, distinct)


def _structure(evidence: Evidence) -> Section:
    """Scores by embedding, agreement of the clusterings, and their tree."""
    ranking, vote, data = evidence.judgement.ranking, evidence.judgement.vote, {}
    if evidence.ace is not None:
        data["grid"] = score_grid(ranking, evidence.judgement.scores, evidence.ace)
    if vote is not None and vote.n_distinct > 2:
        data["votes_of_runs"] = agreement_payload(vote)
    tree = None if evidence.partitions is None else runs_tree(ranking, evidence.partitions)
    if tree is not None:
        data["tree"] = tree
    why = "" if data else "There is one clustering or one embedding only: nothing to compare."
    return Section("structure", data, absent=why)


def _objects(
    evidence: Evidence, chosen: ObjectFigures | None, scatters: Scatters | None
) -> Section:
    if chosen is not None:
        drawn = np.arange(0) if scatters is None else scatters.objects
        return objects_section(chosen, drawn, evidence.ids)
    if evidence.ace is None:
        why = "Without an embedding nothing is known about single objects."
        return Section("objects", absent=why)
    why = "The objects of the chosen partition are not shown: the page was made without the runs."
    return Section("objects", absent=why)


def _method(evidence: Evidence) -> Section:
    """The steps of ACE, the agreement of the embeddings, and their dip tests."""
    if len(evidence.judgement.ranking.classes) == 1:
        why = "No judge had to decide: all runs are the same clustering."
        return Section("method", absent=why)
    if evidence.ace is None:
        why = "The clusterings alone voted for each other: there is no embedding."
        return Section("method", absent=why)
    steps = steps_figure(evidence.ace)
    return Section("method", ace_payload(evidence.ace, evidence.judgement.scores, steps), steps)


def _picks(evidence: Evidence) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What each judge picks, most judges first; empty where one judge alone has a say."""
    found = judge_picks(evidence.judgement.ranking)
    names = evidence.judgement.ranking.names
    pairs = sorted(found.items(), key=lambda one: -len(one[1]))
    if len({judge for _, judges in pairs for judge in judges}) < 2:
        return ()
    return tuple((names[i], tuple(judges)) for i, judges in pairs)


def _scatters(
    evidence: Evidence, chosen: ObjectFigures | None, layout: str | None
) -> Scatters | None:
    runs, scores, ranking = evidence.runs, evidence.judgement.scores, evidence.judgement.ranking
    kept = scores.plot_coordinates
    if not evidence.spaces or (runs is None and (kept is None or not kept.planes)):
        return None
    n_spaces, n_partitions = len(evidence.spaces), len(ranking.names)
    laid_out = evidence.judgement.layout if layout is None else None
    given = laid_out.objects if laid_out is not None else None if kept is None else kept.objects
    if kept is not None and kept.planes and (layout in (None, "pca") or runs is None):
        objects = draw_objects(evidence.n_objects, n_spaces, n_partitions, given)
        rows = np.searchsorted(kept.objects, objects)
        planes, axes = tuple(plane[rows] for plane in kept.planes), kept.axes
    else:
        objects = draw_objects(runs.n_objects, n_spaces, n_partitions, given)  # type: ignore[union-attr]
        if layout in runs.layouts:  # type: ignore[union-attr]
            xy = runs.open_layout(layout)  # type: ignore[union-attr, arg-type]
            made = [(plane(xy, objects)[0], str(layout))] * n_spaces
        else:
            spaces = runs.spaces  # type: ignore[union-attr]
            made = [plane(spaces[name], objects, layout or "pca") for name in evidence.spaces]
        planes, axes = tuple(xy for xy, _ in made), tuple(what for _, what in made)
    reference = None if chosen is None else chosen.codes
    labels: dict[str, Any] = {}
    if evidence.partitions is not None:
        labels = label_parts(evidence.partitions, objects, reference)
    elif chosen is not None:
        codes = chosen.codes[objects]
        labels = {chosen.partition: (codes, chosen.clusters, np.arange(len(chosen.clusters)))}
    truth = None
    if evidence.truth is not None:
        truth = truth_part(shown_classes(evidence.truth), objects, reference)
    values = {} if chosen is None else {k: v[objects] for k, v in chosen.values.items()}
    return Scatters(
        objects=objects,
        names=object_names(evidence.ids, objects),
        n_objects=evidence.n_objects,
        spaces=evidence.spaces,
        planes=planes,
        axes=tuple(axes),
        labels=labels,
        truth=truth,
        values=values,
        layout=None if laid_out is None else _shared(laid_out, objects),
        known={name: values[objects] for name, values in evidence.known.items()},
    )


def _shared(laid_out: Coordinates, objects: np.ndarray) -> tuple[np.ndarray, str]:
    rows = np.searchsorted(laid_out.objects, objects)
    return laid_out.planes[0][rows], laid_out.axes[0]


def _sides(evidence: Evidence, result: AceResult) -> dict[str, list[int]]:
    """Spaces that give ACE's answer, heaviest first; the others, those that were left out first."""
    own = evidence.made_in[evidence.judgement.ranking.order[0]]
    weight = dict(
        zip(result.winner.spaces, np.asarray(result.winner.weights).tolist(), strict=True)
    )
    # Of equal weights the space that the best run was made in.
    keys = [(-round(weight[s], 9), s != own) for s in weight]
    names = [result.spaces[s] for s in weight]
    selected = [list(weight)[i] for i in best_first(keys, names)]
    others = [int(i) for i in space_order(result)[::-1] if i not in set(selected)]
    return {"selected": selected, "excluded": others}


def _lead(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """The verdict's headline in pieces."""
    best = repr(evidence.judgement.ranking.best)
    before, name, after = evidence.judgement.verdict.headline.partition(best)
    return (("text", before), ("name", name), ("text", after))


def _facts(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    ranking, ace = evidence.judgement.ranking, evidence.ace
    found = [fact(len(ranking.names), "run")]
    if ace is not None:
        found += [
            fact(len(ace.spaces), "space"),
            fact(len(ace.winner.spaces), "winning space"),
        ]
    if evidence.n_objects:
        found.append(fact(evidence.n_objects, "object"))
    if ranking.n_clusters is not None:
        ks = sorted({int(ranking.n_clusters[ranking.names.index(n)]) for n in ranking.winners})
        found.append((listing(map(str, ks), most=3), "clusters in the best"))
    return tuple(found)
