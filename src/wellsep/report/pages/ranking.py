"""The page of a ranking: which figures it shows, in which words, and what it leaves out and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._text.sentences import listing
from wellsep.evaluate import Judgement, PartitionDetails, agreement
from wellsep.evaluate.clusters.agreed import AgreedGroups
from wellsep.evaluate.scores import Coordinates
from wellsep.evaluate.truth import shown_classes
from wellsep.report.figures.ace import ace_payload, space_order, steps_figure
from wellsep.report.figures.runs import agreement_payload, runs_tree, score_grid
from wellsep.report.parts import Page, Section, fact
from wellsep.report.sections.answer import answer_section
from wellsep.report.sections.clusters import clusters_section
from wellsep.report.sections.objects import Members, objects_section
from wellsep.report.sections.scatter import (
    Part,
    Scatters,
    draw_objects,
    label_parts,
    map_section,
    object_names,
    object_values,
    one_part,
)
from wellsep.report.sections.tables import judge_picks, ranking_table, truth_section
from wellsep.report.source import Evidence, collect_evidence
from wellsep.runs.folder_names import best_first
from wellsep.spaces.drawing_planes import place_others, plane, spread_colours
from wellsep.spaces.projections import has_columns

MOST_WHOLE = 100_000  # objects that are all drawn


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
    chosen = evidence.details
    scatters, colours = _scatters(evidence, chosen, layout)
    agreed = judgement.agreed
    members = Members(evidence.ids, evidence.known)
    sections = [
        _answer(evidence, agreed, chosen, scatters, colours, members),
        _embeddings(judgement),
        _map(evidence, scatters),
        _clusters(evidence),
        _structure(evidence),
        _objects(evidence, chosen, scatters, members),
        _method(evidence),
    ]
    if evidence.truth is not None:
        sections.append(truth_section(agreement(ranking, evidence.runs, evidence.truth)))
    return Page(
        kind="ranking",
        title=title or f"{len(ranking.names)} runs ranked by {ranking.title}",
        lead=_lead(judgement),
        sure=_sure(judgement),
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
            "sheet": members.sheet(np.arange(0) if scatters is None else scatters.objects),
        },
        chip=judgement.verdict.label.capitalize(),
        picks=_picks(evidence),
    )


def _embeddings(judgement: Judgement) -> Section | None:
    found = judgement.embeddings
    if found is None:
        return None
    told = {k: v for k, v in found.columns().items() if any(x is not None and x == x for x in v)}
    return Section("embeddings", {}, told if len(found.embeddings) > 1 else None)


def _map(evidence: Evidence, scatters: Scatters | None) -> Section:
    if not evidence.spaces:
        return Section("plots", absent="There is no embedding to draw.")
    if scatters is None:
        why = "The embeddings are not drawn: the page was made without the runs, "
        return Section("plots", absent=why + "and no coordinates were kept.")
    return map_section(scatters, _sides(evidence))


def _clusters(evidence: Evidence) -> Section | None:
    if not evidence.described:
        return None
    return clusters_section(evidence.described, evidence.labels)


def _structure(evidence: Evidence) -> Section:
    """Scores by embedding, agreement of the clusterings, and their tree."""
    ranking, vote, data = evidence.judgement.ranking, evidence.judgement.vote, {}
    if evidence.ace is not None:
        data["grid"] = score_grid(ranking, evidence.judgement.scores, evidence.ace)
    if vote is not None and vote.n_distinct > 2:
        data["votes_of_runs"] = agreement_payload(vote)
    tree = runs_tree(ranking, evidence.labels)
    if tree is not None:
        data["tree"] = tree
    why = "" if data else "There is one clustering or one embedding only: nothing to compare."
    return Section("structure", data, absent=why)


def _objects(
    evidence: Evidence,
    chosen: PartitionDetails | None,
    scatters: Scatters | None,
    members: Members,
) -> Section:
    if chosen is not None:
        drawn = np.arange(0) if scatters is None else scatters.objects
        return objects_section(chosen, drawn, members)
    if evidence.ace is None:
        why = "Without an embedding nothing is known about single objects."
        return Section("objects", absent=why)
    why = "The objects of the chosen clustering are not shown: the page was made without the runs."
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


def _answer(
    evidence: Evidence,
    agreed: AgreedGroups | None,
    chosen: PartitionDetails | None,
    scatters: Scatters | None,
    colours: np.ndarray,
    members: Members,
) -> Section:
    """The first screen; where there is nothing to cluster, without groups and questions."""
    said = ""
    if scatters is not None and chosen is not None:
        own = evidence.spaces.index(chosen.space) if chosen.space in evidence.spaces else 0
        drawn = f"{scatters.axes[own]} of {chosen.space}"
        said = f"{drawn if scatters.layout is None else scatters.layout[1]}."
        laid_out, n = len(scatters.objects), evidence.n_objects
        if scatters.whole is not None:
            said += f" {laid_out:,} objects are laid out, the others put between their neighbours."
        elif laid_out < n:
            said += f" {laid_out:,} of {n:,} objects are drawn."
    ranking, nothing = evidence.judgement.ranking, _is_null(evidence.judgement)
    return answer_section(
        None if nothing else chosen,
        colours,
        members,
        said,
        evidence.n_objects,
        agreed=None if nothing else agreed,
        clusters=evidence.judgement.clusters,
        bar=ranking.first_places,
        n_draws=0 if ranking.confidence is None else ranking.confidence.n_draws,
    )


def _scatters(
    evidence: Evidence, chosen: PartitionDetails | None, layout: str | None
) -> tuple[Scatters | None, np.ndarray]:
    """The objects in every embedding, and the colours of the best partition's clusters."""
    runs, n_spaces = evidence.runs, len(evidence.spaces)
    kept = evidence.judgement.scores.plot_coordinates
    laid_out = evidence.judgement.layout if layout is None else None
    k = 0 if chosen is None else len(chosen.clusters)
    if not evidence.spaces or (runs is None and (kept is None or not kept.planes)):
        return None, np.arange(k)
    given = laid_out.objects if laid_out is not None else None if kept is None else kept.objects
    if given is None and len(evidence.drawn):
        given = evidence.drawn
    objects = draw_objects(evidence.n_objects, n_spaces, len(evidence.labels), given)
    if kept is not None and kept.planes and (layout in (None, "pca") or runs is None):
        rows = np.searchsorted(kept.objects, objects)
        planes, axes = tuple(plane[rows] for plane in kept.planes), tuple(kept.axes)
    elif layout is not None and runs is not None and layout in runs.layouts:
        xy = plane(runs.open_layout(layout), objects)[0]
        planes, axes = (xy,) * n_spaces, (layout,) * n_spaces
    else:
        spaces = {} if runs is None else runs.spaces
        made = [plane(spaces[name], objects, layout or "pca") for name in evidence.spaces]
        planes, axes = tuple(xy for xy, _ in made), tuple(what for _, what in made)
    shared = None if laid_out is None else _shared(laid_out, objects)
    reference = None if chosen is None else chosen.codes
    colours = np.arange(k)
    if chosen is not None:
        own = evidence.spaces.index(chosen.space) if chosen.space in evidence.spaces else 0
        xy = planes[own] if shared is None else shared[0]
        colours = spread_colours(xy, chosen.codes[objects], k)
    labels: dict[str, Part] = {}
    if evidence.labels:
        rows = np.searchsorted(evidence.drawn, objects)
        known = None if reference is None else reference[evidence.drawn]
        labels = label_parts(evidence.labels, rows, known, colours)
    elif chosen is not None:
        sizes = np.bincount(chosen.codes[chosen.codes >= 0], minlength=k)
        labels = {chosen.partition: Part(chosen.codes[objects], chosen.clusters, colours, sizes)}
    truth = None
    if evidence.truth is not None:
        truth = one_part(shown_classes(evidence.truth), objects, reference, colours)
    values = {} if chosen is None else {k: v[objects] for k, v in object_values(chosen).items()}
    scatters = Scatters(
        objects=objects,
        names=object_names(evidence.ids, objects),
        n_objects=evidence.n_objects,
        spaces=evidence.spaces,
        planes=planes,
        axes=axes,
        labels=labels,
        truth=truth,
        values=values,
        layout=shared,
        known={name: values[objects] for name, values in evidence.known.items()},
        whole=_whole(evidence, chosen, objects, shared),
    )
    return scatters, colours


def _whole(
    evidence: Evidence, chosen: PartitionDetails | None, objects: np.ndarray, shared: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """All objects in the layout, where they are more than those laid out and not too many."""
    runs, n = evidence.runs, evidence.n_objects
    if runs is None or chosen is None or shared is None or not len(objects) < n <= MOST_WHOLE:
        return None
    space = runs.spaces.get(chosen.space)
    if space is None or not has_columns(space):
        return None
    return place_others(space, objects, shared[0]), chosen.codes


def _shared(laid_out: Coordinates, objects: np.ndarray) -> tuple[np.ndarray, str]:
    rows = np.searchsorted(laid_out.objects, objects)
    return laid_out.planes[0][rows], laid_out.axes[0]


def _sides(evidence: Evidence) -> dict[str, list[int]]:
    """Spaces that give ACE's answer, heaviest first; the others, those that were left out first."""
    result = evidence.ace
    if result is None:
        return {"selected": list(range(len(evidence.spaces))), "excluded": []}
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


def _lead(judgement: Judgement) -> tuple[tuple[str, str], ...]:
    """What is agreed and what is open; else which run is best, its name apart."""
    verdict = judgement.verdict
    if judgement.questions and not _is_null(judgement):
        return (("text", verdict.groups),)
    before, name, after = verdict.headline.partition(repr(judgement.ranking.best))
    return (("text", before), ("name", name), ("text", after))


def _sure(judgement: Judgement) -> tuple[str, ...]:
    """The other sentences of the verdict."""
    lead = "".join(words for _, words in _lead(judgement))
    return tuple(sentence for sentence in judgement.verdict.sentences() if sentence != lead)


def _is_null(judgement: Judgement) -> bool:
    return judgement.verdict.kind == "nothing to cluster"


def _facts(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    ranking, ace = evidence.judgement.ranking, evidence.ace
    found = [fact(len(ranking.names), "run")]
    if ace is not None:
        found += [
            fact(len(ace.spaces), "space"),
            fact(len(ace.winner.spaces), "winning embedding"),
        ]
    if evidence.n_objects:
        found.append(fact(evidence.n_objects, "object"))
    if ranking.n_clusters is not None:
        ks = sorted({int(ranking.n_clusters[ranking.names.index(n)]) for n in ranking.winners})
        found.append((listing(map(str, ks), most=3), "clusters in the best"))
    return tuple(found)
