"""The page of a ranking: what it rests on, which figures it shows, what it leaves out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._text.sentences import listing
from wellsep.evaluate import (
    ClusterDescription,
    EmbeddingRanking,
    Judgement,
    PartitionDetails,
    Ranking,
    agreement,
)
from wellsep.evaluate.clusters.describing import describe_best
from wellsep.evaluate.clusters.judged import KeptCodes
from wellsep.evaluate.clusters.objects import object_details
from wellsep.evaluate.truth import shown_classes
from wellsep.partitions import Partitions, encode
from wellsep.report.figures.ace import ace_payload, space_order, steps_figure
from wellsep.report.figures.runs import agreement_payload, runs_tree, score_grid
from wellsep.report.pack import Page, Section, fact
from wellsep.report.sections.answer import answer_section
from wellsep.report.sections.clusters import clusters_section
from wellsep.report.sections.objects import Members, known_columns, objects_section
from wellsep.report.sections.scatter import (
    MOST_DRAWN,
    Labels,
    Part,
    Scatters,
    affordable,
    label_parts,
    map_section,
    object_names,
    object_values,
    one_part,
    thinned,
)
from wellsep.report.sections.tables import judge_picks, ranking_table, truth_section
from wellsep.runs import Runs
from wellsep.runs.folder_names import best_first
from wellsep.spaces.drawing_planes import drawn_objects, place_others, plane, spread_colours
from wellsep.spaces.projections import has_columns

MOST_WHOLE = 100_000  # objects that are all drawn


@dataclass(frozen=True, eq=False)
class Evidence:
    """A judgement and what else the page knows; None where it was not given."""

    judgement: Judgement
    drawn: np.ndarray  # (s,) positions of the objects whose clusters are known
    labels: Mapping[str, Labels]  # of the first run of each distinct partition, best first
    details: PartitionDetails | None
    described: Mapping[str, ClusterDescription]  # best first
    runs: Runs | None
    n_objects: int
    ids: np.ndarray | None
    params: Mapping[str, Mapping[str, Any]]
    truth: np.ndarray | None
    known: Mapping[str, Any]  # columns about the objects


def collect_evidence(
    judgement: Judgement, *, runs: Any, truth: Any, objects: Any = None
) -> Evidence:
    """Bring together what was given, and refuse what does not fit together."""
    ranking, scores, ace = judgement.ranking, judgement.scores, judgement.by_ace
    details, codes = judgement.details, judgement.codes
    described = {} if judgement.clusters is None else judgement.clusters.descriptions
    n, ids, params = scores.n_objects, scores.ids, scores.params
    if runs is not None:
        _check_runs(ranking, runs)
        n, params = runs.n_objects, runs.params
        ids = ids if runs.ids is None else runs.ids
        if codes is None:  # the judgement kept none
            first = [ranking.names[i] for i in ranking.classes.first]
            distinct = Partitions.from_labels({name: runs.partitions[name] for name in first})
            planes = scores.plot_coordinates
            drawn = drawn_objects(n, MOST_DRAWN) if planes is None else planes.objects
            codes = KeptCodes.keep(distinct, drawn, [])
        if details is None and ace is not None:
            noise = "exclude" if scores.settings is None else scores.settings.noise  # as judged
            space = ace.heaviest_spaces[0][0]
            best = encode(runs.partitions[ranking.best], noise=noise, name=ranking.best)
            details = object_details(runs.spaces[space], best, space)
            pair = [(ranking.best, space)]
            described = describe_best(
                runs.spaces, best, pair, X=runs.features, ids=runs.ids, details=details
            )
    if truth is not None:
        if runs is None:
            raise ValueError("truth must come with runs, got none; pass runs=load_runs(folder).")
        truth = to_numpy(truth, "truth").reshape(-1)
        if len(truth) != n:
            raise ValueError(f"truth must have one class per object ({n}), got {len(truth)}.")
    if objects is None:  # what came with the runs
        objects = {} if runs is None else runs.objects
    classes = ranking.classes.of[ranking.first_of_each].tolist()
    return Evidence(
        judgement=judgement,
        drawn=np.arange(0) if codes is None else codes.objects,
        labels={}
        if codes is None
        else {
            ranking.names[i]: Labels(codes.drawn[m], codes.labels_of(m), codes.sizes_of(m))
            for i, m in zip(ranking.first_of_each, classes, strict=True)
        },
        details=details,
        described=described,
        runs=runs,
        n_objects=n,
        ids=ids,
        params=params,
        truth=truth,
        known=known_columns(objects, n, ids),
    )


def _check_runs(ranking: Ranking, runs: Any) -> None:
    if not isinstance(runs, Runs):
        raise TypeError(
            f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
        )
    for what, names, there in (
        ("partition", ranking.names, runs.partitions),
        ("space", () if ranking.by_ace is None else ranking.by_ace.spaces, runs.spaces),
    ):
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(
                f"runs must hold every {what} that was ranked, got none called {missing[0]!r}."
            )


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
    ranking, scores, verdict = judgement.ranking, judgement.scores, judgement.verdict
    scatters, colours = _scatters(evidence, layout)
    members = Members(evidence.ids, evidence.known)
    sections = [
        _answer(evidence, scatters, colours, members),
        _embeddings(judgement.embeddings),
        _map(judgement, scatters),
    ]
    if evidence.described:
        sections.append(clusters_section(evidence.described, evidence.labels))
    sections += [
        _structure(evidence),
        _objects(evidence, scatters, members),
        _method(judgement),
    ]
    if evidence.truth is not None:
        sections.append(truth_section(agreement(ranking, runs, evidence.truth)))
    lead = _lead(judgement)
    return Page(
        kind="ranking",
        title=title or f"{len(ranking.names)} runs ranked by {ranking.title}",
        lead=lead,
        sure=tuple(s for s in verdict.sentences() if s != "".join(words for _, words in lead)),
        facts=_facts(evidence),
        table=ranking_table(ranking, scores=scores, params=evidence.params),
        paragraphs=judgement.explanation,
        sections=tuple(sections),
        about={
            "partitions": list(ranking.names),
            "spaces": list(scores.spaces),
            "made_in": np.asarray(scores.made_in),
            "best": int(ranking.order[0]),
            "n_objects": evidence.n_objects,
            "sheet": members.sheet(np.arange(0) if scatters is None else scatters.objects),
        },
        chip=verdict.label.capitalize(),
        picks=_picks(ranking),
    )


def _answer(
    evidence: Evidence, scatters: Scatters | None, colours: np.ndarray, members: Members
) -> Section:
    """The first screen; where there is nothing to cluster, without groups and questions."""
    judgement, chosen, said = evidence.judgement, evidence.details, ""
    if scatters is not None and chosen is not None:
        own = _own_space(judgement, chosen)
        drawn = f"{scatters.axes[own]} of {chosen.space}"
        said = f"{drawn if scatters.layout is None else scatters.layout[1]}."
        laid_out, n = len(scatters.objects), evidence.n_objects
        if scatters.whole is not None:
            said += f" {laid_out:,} objects are laid out, the others put between their neighbours."
        elif laid_out < n:
            said += f" {laid_out:,} of {n:,} objects are drawn."
    ranking, nothing = judgement.ranking, _is_null(judgement)
    return answer_section(
        None if nothing else chosen,
        colours,
        members,
        said,
        evidence.n_objects,
        agreed=None if nothing else judgement.agreed,
        clusters=judgement.clusters,
        bar=ranking.first_places,
        n_draws=0 if ranking.confidence is None else ranking.confidence.n_draws,
    )


def _embeddings(found: EmbeddingRanking | None) -> Section:
    """The table of the embeddings without its empty columns; nothing of one embedding alone."""
    if found is None or len(found.embeddings) < 2:
        return Section("embeddings")
    table = found.columns().items()
    told = {name: v for name, v in table if any(x is not None and x == x for x in v)}
    return Section("embeddings", shown=told)


def _map(judgement: Judgement, scatters: Scatters | None) -> Section:
    if scatters is not None:
        return map_section(scatters, _sides(judgement))
    if not judgement.scores.spaces:
        return Section("plots", absent="There is no embedding to draw.")
    why = "The embeddings are not drawn: the page was made without the runs, "
    return Section("plots", absent=why + "and no coordinates were kept.")


def _structure(evidence: Evidence) -> Section:
    """Scores by embedding, agreement of the clusterings, and their tree."""
    judgement, data = evidence.judgement, {}
    if judgement.by_ace is not None:
        data["grid"] = score_grid(judgement.ranking, judgement.scores, judgement.by_ace)
    if judgement.vote is not None and judgement.vote.n_distinct > 2:
        data["votes_of_runs"] = agreement_payload(judgement.vote)
    tree = runs_tree(judgement.ranking, evidence.labels)
    if tree is not None:
        data["tree"] = tree
    why = "" if data else "There is one clustering or one embedding only: nothing to compare."
    return Section("structure", data, absent=why)


def _objects(evidence: Evidence, scatters: Scatters | None, members: Members) -> Section:
    if evidence.details is not None:
        drawn = np.arange(0) if scatters is None else scatters.objects
        return objects_section(evidence.details, drawn, members)
    why = "The objects of the chosen clustering are not shown: the page was made without the runs."
    if evidence.judgement.by_ace is None:
        why = "Without an embedding nothing is known about single objects."
    return Section("objects", absent=why)


def _method(judgement: Judgement) -> Section:
    """The steps of ACE, the agreement of the embeddings, and their dip tests."""
    if len(judgement.ranking.classes) == 1:
        why = "No judge had to decide: all runs are the same clustering."
        return Section("method", absent=why)
    if judgement.by_ace is None:
        why = "The clusterings alone voted for each other: there is no embedding."
        return Section("method", absent=why)
    steps = steps_figure(judgement.by_ace)
    return Section("method", ace_payload(judgement.by_ace, judgement.scores, steps), steps)


def _picks(ranking: Ranking) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What each judge picks, most judges first; empty where one judge alone has a say."""
    pairs = sorted(judge_picks(ranking).items(), key=lambda one: -len(one[1]))
    if len({judge for _, judges in pairs for judge in judges}) < 2:
        return ()
    return tuple((ranking.names[i], tuple(judges)) for i, judges in pairs)


def _scatters(evidence: Evidence, layout: str | None) -> tuple[Scatters | None, np.ndarray]:
    """The objects in every embedding, and the colours of the best partition's clusters."""
    judgement, runs, chosen = evidence.judgement, evidence.runs, evidence.details
    names, kept = tuple(judgement.scores.spaces), judgement.scores.plot_coordinates
    n, k = evidence.n_objects, 0 if chosen is None else len(chosen.clusters)
    colours = np.arange(k)
    if not names or (runs is None and (kept is None or not kept.planes)):
        return None, colours
    laid_out = judgement.layout if layout is None else None
    source, given = laid_out or kept, evidence.drawn if len(evidence.drawn) else None
    if source is not None:
        given = source.objects
    most = affordable(len(names), len(evidence.labels))
    objects = drawn_objects(n, most) if given is None else thinned(given, most)
    if kept is not None and kept.planes and (layout in (None, "pca") or runs is None):
        rows = np.searchsorted(kept.objects, objects)
        planes, axes = tuple(plane[rows] for plane in kept.planes), tuple(kept.axes)
    elif layout is not None and runs is not None and layout in runs.layouts:
        xy = plane(runs.open_layout(layout), objects)[0]
        planes, axes = (xy,) * len(names), (layout,) * len(names)
    else:
        spaces = {} if runs is None else runs.spaces
        made = [plane(spaces[name], objects, layout or "pca") for name in names]
        planes, axes = tuple(xy for xy, _ in made), tuple(what for _, what in made)
    shared = None
    if laid_out is not None:
        rows = np.searchsorted(laid_out.objects, objects)
        shared = laid_out.planes[0][rows], laid_out.axes[0]
    reference = np.full(n, -1) if chosen is None else chosen.codes
    if chosen is not None:
        xy = planes[_own_space(judgement, chosen)] if shared is None else shared[0]
        colours = spread_colours(xy, chosen.codes[objects], k)
    labels: dict[str, Part] = {}
    if evidence.labels:
        rows = np.searchsorted(evidence.drawn, objects)
        labels = label_parts(evidence.labels, rows, reference[evidence.drawn], colours)
    elif chosen is not None:
        part = Part(chosen.codes[objects], chosen.clusters, colours, chosen.sizes)
        labels = {chosen.partition: part}
    truth = None
    if evidence.truth is not None:
        truth = one_part(shown_classes(evidence.truth), objects, reference, colours)
    values = {} if chosen is None else {k: v[objects] for k, v in object_values(chosen).items()}
    scatters = Scatters(
        objects=objects,
        names=object_names(evidence.ids, objects),
        n_objects=n,
        spaces=names,
        planes=planes,
        axes=axes,
        labels=labels,
        truth=truth,
        values=values,
        layout=shared,
        known={name: values[objects] for name, values in evidence.known.items()},
        whole=_whole(evidence, objects, shared),
    )
    return scatters, colours


def _own_space(judgement: Judgement, chosen: PartitionDetails) -> int:
    """Position of the space that the best partition is described in."""
    spaces = list(judgement.scores.spaces)
    return spaces.index(chosen.space) if chosen.space in spaces else 0


def _whole(
    evidence: Evidence, objects: np.ndarray, shared: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """All objects in the layout, where they are more than those laid out and not too many."""
    runs, n, chosen = evidence.runs, evidence.n_objects, evidence.details
    if runs is None or chosen is None or shared is None or not len(objects) < n <= MOST_WHOLE:
        return None
    space = runs.spaces.get(chosen.space)
    if space is None or not has_columns(space):
        return None
    return place_others(space, objects, shared[0]), chosen.codes


def _sides(judgement: Judgement) -> dict[str, list[int]]:
    """Spaces that give ACE's answer, heaviest first; the others, those that were left out first."""
    result = judgement.by_ace
    if result is None:
        return {"selected": list(range(len(judgement.scores.spaces))), "excluded": []}
    own = judgement.scores.made_in[judgement.ranking.order[0]]
    wins, weights = result.winner.spaces, np.round(result.winner.weights, 9).tolist()
    # Of equal weights the space that the best run was made in.
    keys = [(-weight, s != own) for s, weight in zip(wins, weights, strict=True)]
    selected = [wins[i] for i in best_first(keys, [result.spaces[s] for s in wins])]
    others = [int(i) for i in space_order(result)[::-1] if i not in set(selected)]
    return {"selected": selected, "excluded": others}


def _lead(judgement: Judgement) -> tuple[tuple[str, str], ...]:
    """What is agreed and what is open; else which run is best, its name apart."""
    verdict = judgement.verdict
    if judgement.questions and not _is_null(judgement):
        return (("text", verdict.groups),)
    before, name, after = verdict.headline.partition(repr(judgement.ranking.best))
    return (("text", before), ("name", name), ("text", after))


def _is_null(judgement: Judgement) -> bool:
    return judgement.verdict.kind == "nothing to cluster"


def _facts(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    ranking, ace = evidence.judgement.ranking, evidence.judgement.by_ace
    found = [fact(len(ranking.names), "run")]
    if ace is not None:
        found.append(fact(len(ace.spaces), "space"))
        found.append(fact(len(ace.winner.spaces), "winning embedding"))
    if evidence.n_objects:
        found.append(fact(evidence.n_objects, "object"))
    if ranking.n_clusters is not None:
        ks = sorted({int(ranking.n_clusters[ranking.names.index(n)]) for n in ranking.winners})
        found.append((listing(map(str, ks), most=3), "clusters in the best"))
    return tuple(found)
