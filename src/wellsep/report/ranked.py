"""The page of a ranking: which figures it shows, in which words, and what it leaves out and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._display import listing
from wellsep.evaluate import agreement
from wellsep.report.choosing import Chosen, chosen_figure, chosen_payload, worst_table
from wellsep.report.evidence import Evidence
from wellsep.report.figures import Steps, TruthPanels
from wellsep.report.looking import Look, draw_objects, label_parts, look_payload, names_of
from wellsep.report.packing import pack, pack_bits, upper
from wellsep.report.planes import coordinates
from wellsep.report.sections import Page, panels_payload, table_payload
from wellsep.report.tabling import ranking_table
from wellsep.report.why import agreement_graph, dip_figure, heat_map, space_order, steps_figure

SURE = ((0.9, "Quite sure"), (0.6, "Fairly sure"), (0.0, "Not sure"))


def ranking_page(evidence: Evidence, *, title: str | None, layout: str) -> Page:
    """Everything the template and the script need for a ranking."""
    ranking, result = evidence.ranking, evidence.result
    table = ranking_table(ranking, scores=evidence.scores, params=evidence.params)
    missing: dict[str, str] = {}
    data: dict[str, Any] = {
        "kind": "ranking",
        "index": ranking.index,
        "partitions": list(ranking.names),
        "spaces": list(evidence.spaces),
        "made_in": evidence.made_in,
        "best": int(ranking.order[0]),
        "table": table_payload(table),
        "explanation": list(ranking.explanation),
    }
    steps = steps_figure(result)
    data |= why_payload(evidence, steps)
    if result.agreement is None:
        missing["agreement"] = "There is no agreement to show: one space alone is left."
    if "dips" not in data:
        missing["dips"] = "The dip test was not asked for."
    chosen = None if evidence.details is None else chosen_figure(evidence.details)
    look = _look(evidence, chosen, layout)
    if look is None:
        missing["look"] = (
            "The spaces are not drawn: the page was made without the runs, "
            "and no coordinates were kept."
        )
    else:
        data["look"] = look_payload(look)
        data["sides"] = _sides(evidence)
        if not look.labels:
            missing["labels"] = "Without the runs there are no labels to colour the objects by."
    worst = None
    if chosen is None:
        missing["people"] = (
            "The objects of the chosen partition are not shown: the page was made without the runs."
        )
    else:
        drawn = np.arange(0) if look is None else look.objects
        data["people"] = chosen_payload(chosen, drawn, evidence.ids)
        worst = worst_table(chosen, evidence.ids)
        data["people"]["worst"] = worst
    truth = None
    if evidence.truth is not None:
        truth = truth_panels(evidence)
        data["truth"] = panels_payload(truth)
    return Page(
        kind="ranking",
        title=title or f"{len(ranking.names)} runs ranked by {ranking.index}",
        lead=_lead(evidence),
        sure=_sure(evidence),
        facts=_facts(evidence),
        table=table,
        paragraphs=tuple(ranking.explanation),
        steps=steps,
        worst=worst,
        chosen=chosen,
        truth=truth,
        missing=missing,
        data=data,
    )


def why_payload(evidence: Evidence, steps: Steps) -> dict[str, Any]:
    """Steps, heat map, graph and dip tests as the page's script reads them."""
    result = evidence.result
    found: dict[str, Any] = {
        "steps": {
            "order": steps.order,
            "fate": steps.fate,
            "group": steps.group,
            "weight": steps.weight,
            "dropped": steps.dropped,
            "steps": [
                {"title": s.title, "count": s.count, "sentence": s.sentence, "kept": s.kept}
                for s in steps.steps
            ],
        }
    }
    heat, graph = heat_map(result), agreement_graph(result)
    if heat is not None and graph is not None:
        found["heat"] = {
            "places": heat.places,
            "values": pack(upper(heat.values), "f4"),
            "linked": pack_bits(upper(heat.linked)),
            "adjusted": None if heat.adjusted is None else pack(upper(heat.adjusted), "f4"),
            "correlation": heat.correlation,
            "floor": heat.floor,
        }
        found["graph"] = {"xy": np.round(graph.xy, 4), "weight": graph.weight}
    dips = dip_figure(result, evidence.scores)
    if dips is not None:
        found["dips"] = {
            "statistic": dips.statistic,
            "pvalue": dips.pvalue,
            "adjusted": dips.adjusted,
            "passed": dips.passed,
            "notes": dips.notes,
            "alpha": dips.alpha,
        }
    return found


def truth_panels(evidence: Evidence) -> TruthPanels:
    """Every way of ranking held against the truth."""
    ranking = evidence.ranking
    found = agreement(ranking, evidence.runs, evidence.truth)
    scores = {"ace": ranking.score, **ranking.baselines}
    scores |= {f"ace_by_{name}": values for name, values in ranking.by_other_index.items()}
    names = tuple(found.correlations)
    return TruthPanels(
        names=names,
        partitions=ranking.names,
        scores=np.array([scores[name] for name in names]),
        external=found.external,
        table=found.table(),
        picks=tuple(found.picks[name] for name in names),
    )


def _look(evidence: Evidence, chosen: Chosen | None, layout: str) -> Look | None:
    runs, scores, ranking = evidence.runs, evidence.scores, evidence.ranking
    kept = None if scores is None else scores.plot_coordinates
    if runs is None and (kept is None or not kept.planes):
        return None
    n_spaces, n_partitions = len(evidence.spaces), len(ranking.names)
    if kept is not None and kept.planes and (layout == "pca" or runs is None):
        objects = draw_objects(evidence.n_objects, n_spaces, n_partitions, kept.objects)
        rows = np.searchsorted(kept.objects, objects)
        planes, axes = tuple(plane[rows] for plane in kept.planes), kept.axes
    else:
        objects = draw_objects(runs.n_objects, n_spaces, n_partitions, None)  # type: ignore[union-attr]
        made = [coordinates(runs.spaces[name], objects, layout) for name in evidence.spaces]  # type: ignore[union-attr]
        planes, axes = tuple(xy for xy, _ in made), tuple(what for _, what in made)
    reference = None if chosen is None else chosen.codes
    labels: dict[str, Any] = {}
    if runs is not None:
        labels = label_parts({n: runs.partitions[n] for n in ranking.names}, objects, reference)
    elif chosen is not None:
        codes = chosen.codes[objects]
        labels = {chosen.partition: (codes, chosen.clusters, np.arange(len(chosen.clusters)))}
    truth = None
    if evidence.truth is not None:
        truth = label_parts({"truth": evidence.truth}, objects, reference)["truth"]
    values = {} if chosen is None else {k: v[objects] for k, v in chosen.values.items()}
    return Look(
        objects=objects,
        names=names_of(evidence.ids, objects),
        n_objects=evidence.n_objects,
        spaces=evidence.spaces,
        planes=planes,
        axes=tuple(axes),
        labels=labels,
        truth=truth,
        values=values,
    )


def _sides(evidence: Evidence) -> dict[str, list[int]]:
    """Spaces that give the answer, heaviest first; the others, those that fell out first."""
    result = evidence.result
    own = evidence.made_in[evidence.ranking.order[0]]
    weight = dict(zip(result.winning_spaces, np.asarray(result.weights).tolist(), strict=True))
    # Of equal weights the space that the best run was made in.
    selected = sorted(weight, key=lambda s: (-round(weight[s], 9), s != own, s))
    others = [int(i) for i in space_order(result)[::-1] if i not in set(selected)]
    return {"selected": selected, "excluded": others}


def _lead(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    ranking = evidence.ranking
    winners = sorted(ranking.winners)
    rest = f" of {len(ranking.names)} runs by {ranking.index}."
    if len(winners) == 1:
        return (("name", winners[0]), ("text", f" is the best{rest}"))
    if len(winners) > 4:
        return (("name", winners[0]), ("text", f" and {len(winners) - 1} others tie as best{rest}"))
    parts: list[tuple[str, str]] = []
    for i, name in enumerate(winners):
        joint = "" if i == 0 else " and " if i == len(winners) - 1 else ", "
        parts += [("text", joint), ("name", name)]
    return (*parts, ("text", f" tie as the best{rest}"))


def _sure(evidence: Evidence) -> tuple[str, ...]:
    ranking, result = evidence.ranking, evidence.result
    found = []
    sure = ranking.confidence
    if sure is not None:
        first = ranking.names.index(ranking.best)
        share = float(sure.probability_best[first])
        word = next(word for least, word in SURE if share >= least)
        low, high = sure.interval[first]
        found.append(
            f"{word}: it comes first in {share:.0%} of {sure.n_draws} half-samples of the objects, "
            f"and its rank is {_from_to(low, high)} in {sure.level:.0%} of them."
        )
        order = [i for i in np.argsort(-sure.probability_best, kind="stable") if i != first]
        if order and sure.probability_best[order[0]] >= 0.05:
            second = order[0]
            found.append(
                f"Next is {ranking.names[second]!r} with {sure.probability_best[second]:.0%}."
            )
    else:
        found.append("Certainty was not computed. Run again with --draws 100.")
    if len(result.winning_spaces) == 1 and len(result.spaces) > 1:
        found.append("One space alone gives the answer, and no other confirms it.")
    if result.untested:
        found.append(
            f"The dip test is undefined in {listing(map(repr, result.untested), most=3)}; "
            "no space was left out for that."
        )
    if result.no_space_admitted:
        found.append(
            "No space passes the dip test for more than one mode: "
            "there may be no clusters at all, so read the answer with care."
        )
    if ranking.coverage is not None:
        low = min(float(ranking.coverage[ranking.names.index(name)]) for name in ranking.winners)
        if low < 1:
            found.append(
                f"It puts {low:.0%} of the objects into clusters and calls the other {1 - low:.0%} "
                "noise; noise is not scored."
            )
    return tuple(found)


def _from_to(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _facts(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    ranking, result = evidence.ranking, evidence.result
    found = [(f"{len(ranking.names):,}", "runs")]
    found.append((f"{len(result.spaces):,}", "spaces"))
    winning = len(result.winning_spaces)
    found.append((f"{winning:,}", f"winning space{'' if winning == 1 else 's'}"))
    if evidence.n_objects:
        found.append((f"{evidence.n_objects:,}", "objects"))
    if ranking.n_clusters is not None:
        ks = sorted({int(ranking.n_clusters[ranking.names.index(n)]) for n in ranking.winners})
        found.append((listing(map(str, ks), most=3), "clusters in the best"))
    return tuple(found)
