"""Sentences and small tables that say what ACE did and how certain the answer is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wellsep._text.sentences import cell, count, listing
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.runs.folder_names import best_first, natural_key

if TYPE_CHECKING:
    from wellsep.evaluate.certainty.confidence import RankConfidence
    from wellsep.evaluate.vote.answer import Consensus

BASELINES = {
    "own_space": "Own-space scores (each partition in the space it was made in)",
    "mean_admitted": "Mean scores over the spaces that pass",
    "mean_all": "Mean scores over all spaces",
    "input": "Input scores (the data that the runs were made from)",
    "ace": "ACE",
    "consensus": "Agreement with the other runs, weighed by ACE (consensus)",
    "plain_consensus": "Mean agreement with the other runs (plain consensus, ARI)",
    "plain_consensus_nmi": "Mean NMI with the other runs",
}


SCORED = ("own_space", "mean_admitted", "mean_all", "input")
TOGETHER = "All judges can be wrong together: runs that share a mistake agree on it."


def explain_ace(
    result: AceResult,
    confidence: RankConfidence | None = None,
    votes: Mapping[str, np.ndarray] | None = None,
) -> list[str]:
    """Explain the answer, one paragraph per step."""
    answer = (best_in_words(result), _baselines(result, votes or {}), _how_sure(result, confidence))
    return [*_spaces_chosen(result), *_paragraphs(answer)]


def _spaces_chosen(result: AceResult) -> list[str]:
    """How ACE came to the spaces that answer, one paragraph per step."""
    steps = (
        _question(result),
        _multimodality(result),
        result.notes,
        _undefined(result),
        _agreement(result),
        _groups(result),
        _winner(result),
    )
    return _paragraphs(steps)


def _paragraphs(steps: Iterable[Iterable[str]]) -> list[str]:
    return [paragraph for step in steps if (paragraph := " ".join(step))]


def explain_vote(
    vote: Consensus,
    ace: AceResult | None = None,
    confidence: RankConfidence | None = None,
    votes: Mapping[str, np.ndarray] | None = None,
) -> list[str]:
    """Explain a vote that decides, one paragraph per step, and how ACE weighed it."""
    paragraphs = list(vote.sentences())
    baselines: dict[str, np.ndarray] = {}
    if ace is not None:
        told = _spaces_chosen(ace)
        told[0] = f"ACE, the first judge: {told[0]}"
        paragraphs += told
        baselines = {"ace": ace.scores, **ace.baselines}
    if vote.n_distinct == 1:  # nothing was ranked
        return paragraphs
    paragraphs.append(" ".join(_compare(vote, {**baselines, **(votes or {})}, "the vote")))
    sure: tuple[str, ...] = ("How often each run is best was not computed (--draws).",)
    if confidence is not None:
        sure = ("How sure:", *describe_confidence(confidence, vote))
    return [*filter(None, paragraphs), " ".join(sure)]


def _named(names: Sequence[str], which: Iterable[int]) -> str:
    """Names in their own order, not in that of the runs."""
    return listing(map(repr, sorted((names[i] for i in which), key=natural_key)))


def _question(result: AceResult) -> Iterator[str]:
    turned = "" if result.direction > 0 else ", negated because smaller is better"
    different = ""
    if len(result.classes) < len(result.partitions):
        different = f" ({len(result.classes)} different ones, equal ones count once)"
    yield (
        f"{count(len(result.partitions), 'partition')}{different} were judged in "
        f"{count(len(result.spaces), 'space')} by {result.index}{turned}."
    )


def _multimodality(result: AceResult) -> Iterator[str]:
    if not result.dip:
        yield "The dip test was left out (dip=False), so every space is used."
    elif len(result.untested) == len(result.spaces):
        yield "The dip test is undefined in every space, so every space is used."
    elif result.screen.none_passed:
        yield (
            "No space passes the dip test for more than one mode "
            f"(Holm, level {result.options.dip_alpha:g}): either there are no clusters, or they "
            "do not show along the tested direction. All spaces are kept; read the answer with "
            "care, next to the mean scores."
        )
    else:
        gone = sorted(
            (d for d in result.dropped if d.step == "dip"), key=lambda d: natural_key(d.space)
        )
        untested = result.untested
        passed = len(result.spaces) - len(gone) - len(untested)
        yield (
            f"{passed} of {count(len(result.spaces), 'space')} "
            f"{'passes' if passed == 1 else 'pass'} the dip test for more than one "
            f"mode (Holm, level {result.options.dip_alpha:g})."
        )
        if untested:
            yield f"The test is undefined in {listing(map(repr, untested))}; they stay."
        if gone:
            names = listing(f"{d.space!r} ({d.reason.partition('(')[2]}" for d in gone)
            yield f"Left out, because the test cannot rule out a single mode there: {names}."
    constant = [d.space for d in result.dropped if d.step == "constant"]
    if constant:
        yield (
            f"Left out, because every partition scores the same there: "
            f"{listing(map(repr, sorted(constant, key=natural_key)))}."
        )


def _undefined(result: AceResult) -> Iterator[str]:
    if not result.undefined:
        return
    space, partition, reason = min(result.undefined)
    yield (
        f"{count(len(result.undefined), 'score')} of {len(result.spaces) * len(result.partitions)} "
        f"{'is' if len(result.undefined) == 1 else 'are'} undefined and count as the worst score "
        f"({result.undefined_value:.4g}) in means; a partition without any score is ranked last. "
        f"For instance {partition!r} in {space!r}: "
        f"{reason.rstrip('.')}."
    )


def _agreement(result: AceResult) -> Iterator[str]:
    if result.groups.agreement is None or result.groups.edges is None:
        last = result.spaces[result.screen.retained[0]]
        yield f"One space is left, {last!r}; its scores are ACE's answer."
        return
    n = len(result.screen.retained)
    edges = int(np.count_nonzero(np.triu(result.groups.edges, 1)))
    name = result.options.correlation.capitalize()
    if result.groups.adjusted is None:
        rule = "no test" if result.options.alpha is None else "two partitions allow no test"
    else:
        rule = f"one-sided, Holm, level {result.options.alpha:g}"
    yield (
        f"{edges} of {count(n * (n - 1) // 2, 'pair')} of the {n} spaces left "
        f"{'ranks' if edges == 1 else 'rank'} the partitions alike ({name}, {rule})."
    )


def _groups(result: AceResult) -> Iterator[str]:
    if result.groups.agreement is None:
        return
    if not result.groups.members:
        yield "No two spaces form a group."
        return
    sizes = sorted((len(group) for group in result.groups.members), reverse=True)
    spaces = f"{listing(map(str, sizes))} {'space' if sizes == [1] else 'spaces'}"
    how = "by the outlier rule, since density alone shows none" if result.groups.fallback else ""
    yield f"They form {count(len(sizes), 'group')} of {spaces}{', ' if how else ''}{how}."
    if len(result.groups.subgroups) > len(result.groups.members):
        fine = listing(
            map(str, sorted((len(s.members) for s in result.groups.subgroups), reverse=True))
        )
        yield f"The scores themselves split large groups further: {fine}."
    if result.groups.outliers:
        yield f"In no group: {_named(result.spaces, result.groups.outliers)}."


def _winner(result: AceResult) -> Iterator[str]:
    if result.winner.won_by == "single space":
        return
    names, weights = result.heaviest_spaces
    shown = [f"{n!r} (weight {w:.2g})" for n, w in zip(names, weights, strict=True)]
    if result.winner.won_by == "outlier":
        yield f"Space {listing(map(repr, names))} outside the groups gives the answer:"
        if result.winner.test:
            yield (
                "its mean score is larger than the best group's "
                f"(paired t-test, p = {result.winner.test['pvalue']:.3g})."
            )
        else:
            yield "there is no group, and its mean score is the largest."
        return
    mean = result.groups.subgroups[result.winner.subgroups[0]].mean
    if len(result.winner.subgroups) > 1:
        n = len(result.winner.subgroups)
        yield f"{n} groups tie with the largest mean score ({mean:.4g}) and share"
        yield f"the answer: {listing(shown)}."
    elif len(result.groups.subgroups) == 1:
        yield f"ACE's scores are the weighted mean of those in {listing(shown)}."
    else:
        others = [
            s.mean
            for i, s in enumerate(result.groups.subgroups)
            if i not in result.winner.subgroups
        ]
        yield (
            f"The group with the largest mean score ({mean:.4g}; next {max(others):.4g}) wins: "
            f"{listing(shown)}."
        )
    if result.winner.test:
        yield (
            "A space outside has a larger mean, but not significantly "
            f"(paired t-test, p = {result.winner.test['pvalue']:.3g})."
        )


def best_in_words(result: AceResult) -> Iterator[str]:
    """Say which partition is best, and which is next."""
    scores = result.defined_scores
    place = result.rank
    first = np.flatnonzero(place == 1)
    best = _named(result.partitions, first)
    top = scores[first[0]]
    if len(first) > 1 and result.classes.equal_to(first[0])[first].all():
        yield f"Best: {best}, the same partition (score {top:.4g})."
    else:
        tied = ", tied" if len(first) > 1 else ""
        yield f"Best{tied}: {best} (score {top:.4g})."
    if len(first) < len(place):
        second = np.flatnonzero(place == place[place > 1].min())
        names = _named(result.partitions, second)
        yield f"Next: {names} ({cell(scores[second].max())})."
    if result.coverage is not None:
        low = [i for i in np.flatnonzero(place == 1) if result.coverage[i] < 1]
        if low:
            yield describe_coverage(min(result.coverage[i] for i in low), result.noise)


def describe_coverage(share: float, noise: str | None) -> str:
    """Say how much of the data the best partition puts into clusters, and what the rest costs."""
    cost = "which lowers its scores" if noise == "penalize" else "which is not scored"
    return (
        f"It puts {share:.0%} of the objects into clusters and calls the other {1 - share:.0%} "
        f"noise, {cost}."
    )


def _baselines(result: AceResult, votes: Mapping[str, np.ndarray]) -> Iterator[str]:
    yield from _compare(result, {**result.baselines, **votes}, "ACE")
    if votes:
        yield TOGETHER


def _compare(
    answer: AceResult | Consensus, baselines: Mapping[str, np.ndarray], judge: str
) -> Iterator[str]:
    """Say what each baseline picks, next to the answer."""
    place = answer.rank
    for name, scores in baselines.items():
        if name == "mean_all" and np.array_equal(scores, baselines["mean_admitted"]):
            continue
        pick = np.flatnonzero(answer.ranks_by(scores) == 1)
        verb = "pick" if name in SCORED else "picks"
        if (place[pick] == 1).any():
            yield f"{BASELINES[name]} {verb} the same."
        else:
            chosen = _named(answer.partitions, pick)
            yield f"{BASELINES[name]} {verb} {chosen}, which {judge} ranks {place[pick].min()}."


def mean_correlation(result: AceResult) -> float | None:
    """Mean rank correlation of the winning spaces; None if a single space won."""
    if (
        result.winner.won_by != "group"
        or len(result.winner.spaces) < 2
        or result.groups.agreement is None
    ):
        return None
    local = [result.screen.retained.index(i) for i in result.winner.spaces]
    return float(
        result.groups.agreement[np.ix_(local, local)][np.triu_indices(len(local), 1)].mean()
    )


def _how_sure(result: AceResult, confidence: RankConfidence | None) -> Iterator[str]:
    mean = mean_correlation(result)
    if mean is not None and result.groups.edges is not None:
        local = [result.screen.retained.index(i) for i in result.winner.spaces]
        linked = int(np.count_nonzero(np.triu(result.groups.edges[np.ix_(local, local)], 1)))
        pairs = count(len(local) * (len(local) - 1) // 2, "pair")
        tested = (
            "" if result.groups.adjusted is None else f", {linked} of their {pairs} significantly"
        )
        if mean < 0:
            yield (
                "How sure: the winning spaces rank the partitions in opposite ways (mean "
                f"correlation {mean:.2f}); the answer is an average of them."
            )
        else:
            yield (
                f"How sure: the winning spaces agree with a mean correlation of {mean:.2f}{tested}."
            )
        if not linked and mean >= 0:
            yield "So they count alike, and their agreement may be chance."
    else:
        yield "How sure: one space alone gives the answer, and no other confirms it."
    if confidence is None:
        yield "How often each run is best was not computed (rank_confidence, or --draws)."
    else:
        yield from describe_confidence(confidence, result)


def describe_confidence(confidence: RankConfidence, answer: AceResult | Consensus) -> Iterator[str]:
    """Say how often the best partition stays the best, and which one is best otherwise."""
    chance = confidence.probability_best
    place = answer.rank
    often = best_first(-chance, answer.partitions)
    best = next(i for i in often if place[i] == 1)
    low, high = confidence.interval[best]
    also = " that also leave out spaces" if confidence.spaces_left_out else ""
    if confidence.runs_per_draw:
        vote = "choose the spaces" if isinstance(answer, AceResult) else "vote"
        voters = f"let {confidence.runs_per_draw} different partitions {vote}"
        also += f" and {voters}" if also else f" that {voters}"
    yield (
        f"Over {confidence.n_draws} half-samples of the objects{also}, "
        f"{answer.partitions[best]!r} is best in {chance[best]:.0%} of them "
        f"(rank {low:g} to {high:g} in {confidence.level:.0%})."
    )
    equal = answer.classes.equal_to(best)
    rival = next(i for i in often if not equal[i])
    if chance[rival] > chance[best]:
        yield f"{answer.partitions[rival]!r} is best more often, in {chance[rival]:.0%}."
    elif chance[rival] > 0:
        yield f"Next is {answer.partitions[rival]!r} with {chance[rival]:.0%}."
    outside = (place < confidence.interval[:, 0]) | (place > confidence.interval[:, 1])
    if outside.any():
        there = (answer.partitions[i] for i in np.flatnonzero(outside))
        names = listing(map(repr, sorted(there, key=natural_key)), most=4)
        few = outside.sum() == 1
        yield (
            f"The rank of {names} lies outside the interval of {'its' if few else 'their'} ranks "
            "in the draws: with other objects, spaces or runs it would be another."
        )
    yield from confidence.notes
