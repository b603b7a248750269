"""Variants of ACE: one of its parts exchanged, by family; the first variant is ACE as published."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import stats

import wellsep as ws
from experiments.ace.paper import INDICES, MAIN
from wellsep.records import AceResult
from wellsep.spaces import holm


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One experiment: index -> Scores (with its column), and the partitions' NMI."""

    kind: str
    name: str
    set: str
    scores: dict[str, tuple[ws.Scores, str]]
    screens: dict[str, np.ndarray]
    nmi: np.ndarray


def matrix_of(scores: ws.Scores, label: str) -> np.ndarray:
    """Oriented scores; undefined ones take the smallest."""
    values = scores.oriented(label)
    return np.where(np.isnan(values), np.nanmin(values), values)


def ranks_of(rows: np.ndarray) -> np.ndarray:
    """Every space's ranking of the partitions, between 0 and 1."""
    return stats.rankdata(rows, axis=-1) / rows.shape[-1]


def uniform(weights: np.ndarray) -> np.ndarray:
    return np.full(len(weights), 1 / len(weights))


def degree(weights: np.ndarray) -> np.ndarray:
    total = weights.sum(axis=1)
    return total / total.sum() if total.sum() > 0 else uniform(weights)


def eigenvector(weights: np.ndarray) -> np.ndarray:
    """The leading eigenvector of the graph; for undirected graphs what HITS finds."""
    values, vectors = np.linalg.eigh(weights)
    top = vectors[:, values >= values[-1] - 1e-10 * max(abs(values[-1]), 1e-300)]
    weight = np.abs(top @ top.sum(axis=0))
    return weight / weight.sum() if values[-1] > 0 else uniform(weights)


def reweighed(
    answer: AceResult, matrix: np.ndarray, weigh: Callable[[np.ndarray], np.ndarray],
    *, tested: bool = True, rows: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """ACE's groups with other weights; the group with the largest mean answers, as in ACE.

    With `rows` (other values of the same spaces) the winner is chosen by the scores, and its
    answer is read from the rows.
    """
    if answer.winner.won_by != "group":
        inside = list(answer.winner.spaces)
        return answer.scores if rows is None else answer.winner.weights @ rows[inside]
    place = {space: i for i, space in enumerate(answer.screen.retained)}
    graph = (
        answer.groups.edges
        if tested
        else np.clip(answer.groups.agreement, 0, None) * (1 - np.eye(len(answer.groups.agreement)))
    )
    found = []
    for group in answer.groups.subgroups:
        at = [place[space] for space in group.members]
        weights = weigh(graph[np.ix_(at, at)])
        members = list(group.members)
        score = weights @ matrix[members]
        found.append((score.mean(), score if rows is None else weights @ rows[members]))
    return max(found, key=lambda pair: pair[0])[1]


def chosen_by(answer: AceResult, merit: Callable[[Any, np.ndarray], float]) -> np.ndarray:
    """ACE's groups and weights, but another group answers: the one with the largest merit."""
    if answer.winner.won_by != "group":
        return answer.scores
    place = {space: i for i, space in enumerate(answer.screen.retained)}
    found = []
    for group in answer.groups.subgroups:
        at = [place[space] for space in group.members]
        found.append(
            (merit(group, answer.groups.agreement[np.ix_(at, at)]), group.mean, group.scores)
        )
    return max(found, key=lambda one: one[:2])[2]


def strength(group: Any, agreement: np.ndarray) -> float:
    """Mean agreement of a group's spaces with each other; a space alone has none."""
    n = len(agreement)
    return float((agreement.sum() - np.trace(agreement)) / (n * (n - 1))) if n > 1 else -1.0


def standard(values: np.ndarray) -> np.ndarray:
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


def screened(scores: ws.Scores, pvalues: np.ndarray) -> ws.Scores:
    """The same scores with the p-values of another screen."""
    return dataclasses.replace(scores, dip=dataclasses.replace(scores.dip, pvalue=pvalues))


def passing(pvalues: np.ndarray) -> np.ndarray:
    kept = holm(pvalues, 0.05).reject
    return kept if kept.any() else np.ones(len(pvalues), dtype=bool)


def variants(case: Case, index: str) -> Iterable[tuple[str, str, np.ndarray]]:
    """(family, variant, scores of the partitions) for one index."""
    scores, label = case.scores[index]
    try:
        answer = ws.ace(scores, index=label)
    except ValueError:  # undefined everywhere, or nothing to tell apart
        return
    ace = answer.scores
    matrix = matrix_of(scores, label)
    ranks = ranks_of(matrix)
    stay = passing(scores.dip.pvalue)
    pooled = answer.baselines["mean_admitted"]

    yield "weights", "PageRank", ace
    yield "weights", "HITS", ws.ace(scores, index=label, links="hits").scores
    yield "weights", "uniform", reweighed(answer, matrix, uniform)
    yield "weights", "eigenvector", reweighed(answer, matrix, eigenvector)
    yield "weights", "degree", reweighed(answer, matrix, degree)
    yield "weights", "degree, untested", reweighed(answer, matrix, degree, tested=False)

    yield "choice", "largest mean", ace
    yield "choice", "most spaces", chosen_by(answer, lambda group, _: len(group.members))
    yield "choice", "strongest agreement", chosen_by(answer, strength)

    yield "screen", "scaled component", ace
    yield "screen", "none", ws.ace(scores, index=label, dip=False).scores
    for title, name in (("component", "pca"), ("components, Holm", "components"),
                        ("distances", "distances")):  # fmt: skip
        if name in case.screens:
            seen = screened(scores, case.screens[name])
            yield "screen", title, ws.ace(seen, index=label).scores

    for share in (1.0, 0.75, 0.5, 0.25, 0.0):
        title = {1.0: "ACE", 0.0: "pooled"}.get(share, f"{share:g} ACE")
        yield "shrinkage", title, share * standard(ace) + (1 - share) * standard(pooled)

    yield "pooling", "ACE", ace
    yield "pooling", "pooled values", pooled
    yield "pooling", "paired", answer.baselines["own_space"]
    yield "pooling", "pooled ranks", ranks[stay].mean(axis=0)
    yield "pooling", "pooled ranks, no screen", ranks.mean(axis=0)
    yield "pooling", "median ranks", np.median(ranks[stay], axis=0)
    yield "pooling", "ACE's spaces, ranks", reweighed(answer, matrix, uniform, rows=ranks)
    by_agreement = ranks[stay].mean(axis=0)
    if answer.groups.agreement is not None:
        graph = np.clip(answer.groups.agreement, 0, None) * (
            1 - np.eye(len(answer.groups.agreement))
        )
        by_agreement = degree(graph) @ ranks[list(answer.screen.retained)]
    yield "pooling", "ranks by agreement", by_agreement


TOGETHER = {
    "the paper's four": MAIN,
    "silhouettes and CH": ("silhouette", "silhouette_cosine", "calinski_harabasz"),
    "the four and CFQ": (*MAIN, "cfq"),
    "all nine": tuple(INDICES)[:9],
    "all ten": tuple(INDICES),
}


def combined(case: Case) -> Iterable[tuple[str, str, np.ndarray]]:
    """Index by index and several together: ranks by ACE, or by pooled ranks, averaged."""
    by_ace, by_ranks = {}, {}
    for index, (scores, label) in case.scores.items():
        try:
            by_ace[index] = ws.ace(scores, index=label).scores
        except ValueError:
            continue
        ranks = ranks_of(matrix_of(scores, label))
        by_ranks[index] = ranks[passing(scores.dip.pvalue)].mean(axis=0)
    for index, values in by_ace.items():
        yield "index", f"ACE, {index}", values
    for title, wanted in TOGETHER.items():
        if case.kind == "simulation" and not set(wanted) <= set(by_ace):
            continue
        names = [name for name in wanted if name in by_ace]  # an index may be undefined
        values = np.mean([ranks_of(by_ace[name]) for name in names], axis=0)
        yield "index", f"ACE, {title}", values
        yield "index", f"pooled ranks, {title}", np.mean([by_ranks[n] for n in names], axis=0)


def both(case: Case) -> Iterable[tuple[str, str, np.ndarray]]:
    """Another screen and several indices at once."""
    if "distances" not in case.screens:
        return
    for screen in ("scaled component", "distances"):
        found = {}
        for index, (scores, label) in case.scores.items():
            seen = scores if screen != "distances" else screened(scores, case.screens["distances"])
            try:
                found[index] = ws.ace(seen, index=label).scores
            except ValueError:
                continue
        yield "screen and index", f"silhouette, {screen}", found["silhouette"]
        for title in ("the paper's four", "all nine", "all ten"):
            names = [name for name in TOGETHER[title] if name in found]
            values = np.mean([ranks_of(found[name]) for name in names], axis=0)
            yield "screen and index", f"{title}, {screen}", values
