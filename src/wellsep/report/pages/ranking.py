"""The page of a ranking: which figures it shows, in which words, and what it leaves out and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._text.sentences import listing
from wellsep.evaluate import AceResult, Judgement, agreement
from wellsep.evaluate.scores import Coordinates
from wellsep.evaluate.truth import shown_classes
from wellsep.report.figures.ace import ace_payload, space_order, steps_figure
from wellsep.report.figures.records import ClusterTable, ObjectFigures, Page, TruthPanels, fact
from wellsep.report.figures.runs import (
    agreement_payload,
    grid_payload,
    runs_tree_payload,
    score_grid,
)
from wellsep.report.sections.clusters import clusters_payload, described_in_words
from wellsep.report.sections.objects import objects_figure, objects_payload, worst_table
from wellsep.report.sections.scatter import (
    Scatters,
    draw_objects,
    label_parts,
    object_names,
    scatters_payload,
)
from wellsep.report.sections.tables import (
    judge_picks,
    ranking_table,
    table_payload,
    truth_panels,
    truth_payload,
)
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
    return _page(evidence, title=title, layout=layout)


def _page(evidence: Evidence, *, title: str | None, layout: str | None) -> Page:
    judgement, ranking, ace = evidence.judgement, evidence.judgement.ranking, evidence.ace
    table = ranking_table(ranking, scores=evidence.judgement.scores, params=evidence.params)
    missing: dict[str, str] = {}
    data: dict[str, Any] = {
        "kind": "ranking",
        "index": ranking.index,
        "partitions": list(ranking.names),
        "spaces": list(evidence.spaces),
        "made_in": evidence.made_in,
        "best": int(ranking.order[0]),
        "n_objects": evidence.n_objects,
        "table": table_payload(table),
        "explanation": list(judgement.explanation),
        "verdict": list(judgement.verdict.sentences()),
    }
    if judgement.embeddings is not None:
        data["embeddings"] = judgement.embeddings.to_rows()
    steps = None
    if len(ranking.classes) == 1:
        missing["why"] = "No judge had to decide: all runs are the same clustering."
    elif ace is None:
        missing["why"] = "The clusterings alone voted for each other: there is no embedding."
    else:
        steps = steps_figure(ace)
        data |= ace_payload(ace, evidence.judgement.scores, steps)
        if ace.groups.agreement is None:
            missing["agreement"] = "There is no agreement to show: one space alone is left."
        if "dips" not in data:
            missing["dips"] = "The dip test was not run."
    chosen = None if evidence.details is None else objects_figure(evidence.details)
    scatters = _scatters(evidence, chosen, layout)
    if ace is None:
        missing["scatters"] = (
            "The embeddings are not drawn: no judge chose among them."
            if evidence.judgement.scores.spaces
            else "There is no embedding to draw."
        )
    elif scatters is None:
        missing["scatters"] = (
            "The spaces are not drawn: the page was made without the runs, "
            "and no coordinates were kept."
        )
    else:
        data["scatters"] = scatters_payload(scatters)
        data["sides"] = _sides(evidence, ace)
        if not scatters.labels:
            missing["labels"] = "Without the runs there are no labels to colour the objects by."
    worst = None
    if ace is None and chosen is None:
        missing["objects"] = "Without an embedding nothing is known about single objects."
    elif chosen is None:
        missing["objects"] = (
            "The objects of the chosen partition are not shown: the page was made without the runs."
        )
    else:
        drawn = np.arange(0) if scatters is None else scatters.objects
        data["objects"] = objects_payload(chosen, drawn, evidence.ids)
        worst = worst_table(chosen, evidence.ids)
        data["objects"]["worst"] = worst
    _structure(evidence, data)
    clusters = _clusters(evidence, data)
    if not any(name in data for name in ("grid", "votes_of_runs", "tree")):
        missing["structure"] = "There is one clustering or one embedding only: nothing to compare."
    truth = None
    if evidence.truth is not None:
        truth = _truth(evidence)
        data["truth"] = truth_payload(truth)
    return Page(
        kind="ranking",
        title=title or f"{len(ranking.names)} runs ranked by {ranking.title}",
        lead=_lead(evidence),
        sure=(*judgement.verdict.second, judgement.verdict.next),
        facts=_facts(evidence),
        table=table,
        paragraphs=judgement.explanation,
        embeddings=_embeddings(evidence),
        steps=steps,
        worst=worst,
        objects=chosen,
        truth=truth,
        missing=missing,
        data=data,
        chip=judgement.verdict.kind.capitalize(),
        picks=_picks(evidence),
        clusters=clusters,
    )


def _structure(evidence: Evidence, data: dict[str, Any]) -> None:
    """Put the figures of the structure into the data."""
    ranking, ace, runs = evidence.judgement.ranking, evidence.ace, evidence.runs
    vote = evidence.judgement.vote
    if ace is not None:
        data["grid"] = grid_payload(score_grid(ranking, evidence.judgement.scores, ace))
    if vote is not None and vote.n_distinct > 2:
        data["votes_of_runs"] = agreement_payload(vote)
    if runs is not None:
        tree = runs_tree_payload(ranking, runs.partitions)
        if tree is not None:
            data["tree"] = tree


def _clusters(evidence: Evidence, data: dict[str, Any]) -> ClusterTable | None:
    """Put the tables of clusters into the data; return that of the best partition."""
    ranking, described = evidence.judgement.ranking, evidence.described
    if not described:
        return None
    partitions = {} if evidence.runs is None else evidence.runs.partitions
    distinct = [ranking.names[at] for at in ranking.first_of_each]
    found = clusters_payload(described, partitions, distinct)
    said = described_in_words(list(described)) if len(distinct) > len(described) else ""
    data["clusters"] = found | {"said": said}
    first = next(iter(described))
    one = found["described"][first]
    return ClusterTable(first, one["table"], tuple(one["notes"]), said)


def _picks(evidence: Evidence) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What each judge picks, most judges first; empty where one judge alone has a say."""
    found = judge_picks(evidence.judgement.ranking)
    names = evidence.judgement.ranking.names
    pairs = sorted(found.items(), key=lambda one: -len(one[1]))
    if len({judge for _, judges in pairs for judge in judges}) < 2:
        return ()
    return tuple((names[i], tuple(judges)) for i, judges in pairs)


def _embeddings(evidence: Evidence) -> dict[str, list[Any]] | None:
    found = evidence.judgement.embeddings
    return None if found is None or len(found.embeddings) < 2 else found.columns()


def _truth(evidence: Evidence) -> TruthPanels:
    return truth_panels(agreement(evidence.judgement.ranking, evidence.runs, evidence.truth))


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
    if runs is not None:
        partitions = runs.partitions
        labels = label_parts({n: partitions[n] for n in ranking.names}, objects, reference)
    elif chosen is not None:
        codes = chosen.codes[objects]
        labels = {chosen.partition: (codes, chosen.clusters, np.arange(len(chosen.clusters)))}
    truth = None
    if evidence.truth is not None:
        truth = label_parts({"truth": shown_classes(evidence.truth)}, objects, reference)["truth"]
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
