"""The page of a ranking: which figures it shows, in which words, and what it leaves out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks import to_numpy
from wellsep._display import count, listing
from wellsep.evaluate import (
    AceResult,
    Judgement,
    PartitionDetails,
    Ranking,
    Scores,
    agreement,
    partition_details,
    rank,
)
from wellsep.evaluate.explain import describe_coverage
from wellsep.report.ace_figures import ace_payload, space_order, steps_figure
from wellsep.report.figures import ObjectFigures, Page, TruthPanels, fact
from wellsep.report.objects import objects_figure, objects_payload, worst_table
from wellsep.report.scatter import (
    Scatters,
    draw_objects,
    label_parts,
    object_names,
    scatters_payload,
)
from wellsep.report.table import ranking_table, table_payload, truth_panels, truth_payload
from wellsep.runs import Runs
from wellsep.runs.names import natural_key
from wellsep.spaces.planes import plane

SURE = ((0.9, "Quite sure"), (0.6, "Fairly sure"), (0.0, "Not sure"))


@dataclass(frozen=True, eq=False)
class Evidence:
    """A ranking and what is known about it; None where it was not given."""

    ranking: Ranking
    scores: Scores | None = None
    details: PartitionDetails | None = None
    runs: Runs | None = None
    truth: np.ndarray | None = None

    @property
    def result(self) -> AceResult:
        return self.ranking.result

    @property
    def spaces(self) -> tuple[str, ...]:
        return self.result.spaces

    @property
    def ids(self) -> np.ndarray | None:
        if self.runs is not None and self.runs.ids is not None:
            return self.runs.ids
        return None if self.scores is None else self.scores.ids

    @property
    def n_objects(self) -> int:
        if self.runs is not None:
            return self.runs.n_objects
        if self.details is not None:
            return len(self.details.codes)
        return 0 if self.scores is None else self.scores.n_objects

    @property
    def params(self) -> Mapping[str, Mapping[str, Any]]:
        if self.runs is not None:
            return self.runs.params
        return {} if self.scores is None else self.scores.params

    @property
    def made_in(self) -> np.ndarray:
        """(M,) for each partition the space it was made in, -1 where none is known."""
        place = {name: i for i, name in enumerate(self.spaces)}
        if self.scores is not None and self.scores.spaces == self.spaces:
            return np.asarray(self.scores.made_in)
        if self.runs is not None:
            spaces, names = list(self.runs.spaces), list(self.runs.partitions)
            made = {n: spaces[p] for n, p in zip(names, self.runs.made_in, strict=True) if p >= 0}
            return np.array([place.get(made.get(n, ""), -1) for n in self.ranking.names])
        return np.array([place.get(name, -1) for name in self.ranking.names])


def collect_evidence(result: Judgement | Ranking | AceResult, *, runs: Any, truth: Any) -> Evidence:
    """Bring together what was given, and refuse what does not fit together."""
    scores = details = None
    if isinstance(result, Judgement):
        ranking, scores, details = result.ranking, result.scores, result.details
    else:
        ranking = rank(result) if isinstance(result, AceResult) else result
    if runs is not None:
        _check_runs(ranking, runs)
        if details is None:
            settings = None if scores is None else scores.settings
            noise = "exclude" if settings is None else settings.noise  # as it was judged
            details = partition_details(runs, ranking.result, noise=noise)
    if truth is not None:
        if runs is None:
            raise ValueError("truth must come with runs, got none; pass runs=load_runs(folder).")
        truth = to_numpy(truth, "truth").reshape(-1)
        if len(truth) != runs.n_objects:
            raise ValueError(
                f"truth must have one class per object ({runs.n_objects}), got {len(truth)}."
            )
    return Evidence(ranking, scores, details, runs, truth)


def _check_runs(ranking: Ranking, runs: Any) -> None:
    if not isinstance(runs, Runs):
        raise TypeError(
            f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
        )
    for what, names, there in (
        ("partition", ranking.names, runs.partitions),
        ("space", ranking.result.spaces, runs.spaces),
    ):
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(
                f"runs must hold every {what} that was ranked, got none called {missing[0]!r}."
            )


def build_ranking_page(
    result: Judgement | Ranking | AceResult,
    *,
    runs: Any,
    truth: Any,
    title: str | None,
    layout: str,
) -> Page:
    """Everything the template and the script need for a ranking."""
    evidence = collect_evidence(result, runs=runs, truth=truth)
    return _page(evidence, title=title, layout=layout)


def _page(evidence: Evidence, *, title: str | None, layout: str) -> Page:
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
    data |= ace_payload(result, evidence.scores, steps)
    if result.agreement is None:
        missing["agreement"] = "There is no agreement to show: one space alone is left."
    if "dips" not in data:
        missing["dips"] = "The dip test was not run."
    chosen = None if evidence.details is None else objects_figure(evidence.details)
    scatters = _scatters(evidence, chosen, layout)
    if scatters is None:
        missing["scatters"] = (
            "The spaces are not drawn: the page was made without the runs, "
            "and no coordinates were kept."
        )
    else:
        data["scatters"] = scatters_payload(scatters)
        data["sides"] = _sides(evidence)
        if not scatters.labels:
            missing["labels"] = "Without the runs there are no labels to colour the objects by."
    worst = None
    if chosen is None:
        missing["objects"] = (
            "The objects of the chosen partition are not shown: the page was made without the runs."
        )
    else:
        drawn = np.arange(0) if scatters is None else scatters.objects
        data["objects"] = objects_payload(chosen, drawn, evidence.ids)
        worst = worst_table(chosen, evidence.ids)
        data["objects"]["worst"] = worst
    truth = None
    if evidence.truth is not None:
        truth = _truth(evidence)
        data["truth"] = truth_payload(truth)
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
        objects=chosen,
        truth=truth,
        missing=missing,
        data=data,
    )


def _truth(evidence: Evidence) -> TruthPanels:
    return truth_panels(agreement(evidence.ranking, evidence.runs, evidence.truth))


def _scatters(evidence: Evidence, chosen: ObjectFigures | None, layout: str) -> Scatters | None:
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
        if layout in runs.layouts:  # type: ignore[union-attr]
            xy = runs.open_layout(layout)  # type: ignore[union-attr]
            made = [(plane(xy, objects)[0], layout)] * n_spaces
        else:
            made = [plane(runs.spaces[name], objects, layout) for name in evidence.spaces]  # type: ignore[union-attr]
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
    )


def _sides(evidence: Evidence) -> dict[str, list[int]]:
    """Spaces that give the answer, heaviest first; the others, those that were left out first."""
    result = evidence.result
    own = evidence.made_in[evidence.ranking.order[0]]
    weight = dict(zip(result.winning_spaces, np.asarray(result.weights).tolist(), strict=True))
    # Of equal weights the space that the best run was made in.
    selected = sorted(weight, key=lambda s: (-round(weight[s], 9), s != own, result.spaces[s]))
    others = [int(i) for i in space_order(result)[::-1] if i not in set(selected)]
    return {"selected": selected, "excluded": others}


def _lead(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    ranking = evidence.ranking
    winners = ranking.winners
    by = ranking.index if ranking.decided_by is None else ranking.title
    rest = f" of {len(ranking.names)} runs by {by}."
    if len(winners) == 1:
        return (("name", winners[0]), ("text", f" is the best{rest}"))
    if evidence.result.equals(ranking.names.index(winners[0])).sum() >= len(winners):
        others = f" ({count(len(winners) - 1, 'run')} more found the same partition)"
        return (("name", winners[0]), ("text", f" is the best{rest[:-1]}{others}."))
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
        chances = sure.probability_best
        others = np.flatnonzero(~result.equals(first)).tolist()
        order = sorted(others, key=lambda i: (-chances[i], natural_key(ranking.names[i])))
        if order and sure.probability_best[order[0]] >= 0.05:
            name, chance = ranking.names[order[0]], float(sure.probability_best[order[0]])
            more = f"{name!r} comes first more often, in {chance:.0%}."
            found.append(more if chance > share else f"Next is {name!r} with {chance:.0%}.")
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
            found.append(describe_coverage(low, result.noise))
    return tuple(found)


def _from_to(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _facts(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    ranking, result = evidence.ranking, evidence.result
    found = [
        fact(len(ranking.names), "run"),
        fact(len(result.spaces), "space"),
        fact(len(result.winning_spaces), "winning space"),
    ]
    if evidence.n_objects:
        found.append(fact(evidence.n_objects, "object"))
    if ranking.n_clusters is not None:
        ks = sorted({int(ranking.n_clusters[ranking.names.index(n)]) for n in ranking.winners})
        found.append((listing(map(str, ks), most=3), "clusters in the best"))
    return tuple(found)
