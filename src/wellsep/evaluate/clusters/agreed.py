"""Agreed groups of the best run, open questions about the others, and labels that settle them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from wellsep._checks.labels import NOISE
from wellsep._checks.values import check_path
from wellsep._files.arrays import read_json
from wellsep._files.limits import read_bytes
from wellsep._files.records import Record, Result, freeze
from wellsep._text.sentences import count, listing, shown
from wellsep.partitions import best_matches, cluster_sizes, shared_sizes

AGREED = 0.75  # smallest Jaccard similarity with a cluster of every contender
LINKED = 0.25  # share of the smaller of two clusters from which on they overlap
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, eq=False)
class Side(Record):
    """One answer to a question."""

    words: str  # such as "one group"; no two sides of a question have the same
    share: float  # of the draws whose first run says so
    runs: tuple[str, ...]  # the contenders that say so, the one with the largest share first
    groups: tuple[str, ...]  # names of the groups that the objects are in
    codes: np.ndarray  # (objects of the question,) the group of each; -1 for noise
    moved: np.ndarray  # positions of the objects that leave their group of the best run


@dataclass(frozen=True, eq=False)
class Question(Record):
    """Clusters of the best run that some contenders join, split or cut in another way.

    Attributes
    ----------
    id : str
        The labels of its clusters, joined by "+". A cluster is in one question at most.
    text : str
        Such as "6 and 13: one group or two?".
    clusters : tuple of str
        Labels of the clusters of the best run that it is about.
    beside : tuple of str
        Agreed groups that they may belong to.
    objects : ndarray of positions
        The members of these clusters.
    sides : tuple of Side
        Two or more, the one with the largest share of the half-samples first.
    """

    id: str
    text: str
    clusters: tuple[str, ...]
    beside: tuple[str, ...]
    objects: np.ndarray
    sides: tuple[Side, ...]

    def to_plain(self) -> dict[str, Any]:
        """The question as plain data, with numbers of objects."""
        sides = [
            {k: v for k, v in vars(side).items() if k != "codes"} | {"moved": len(side.moved)}
            for side in self.sides
        ]
        return vars(self) | {"objects": len(self.objects), "sides": sides}

    def side(self, answer: Any) -> Side:
        """The side that an answer names, by its number from 0 or by its words."""
        given = None if isinstance(answer, bool) else answer
        chosen = [side for i, side in enumerate(self.sides) if given in (i, side.words)]
        if not chosen:
            choices = listing((repr(side.words) for side in self.sides), most=8)
            raise ValueError(
                f"the answer to question {self.id!r} must be one of {choices}, or its number "
                f"from 0 to {len(self.sides) - 1}, got {shown(answer)}."
            )
        return chosen[0]


@dataclass(frozen=True, eq=False)
class AgreedGroups(Result):
    """Which clusters of the best run every contender finds, and what is open about the others.

    Attributes
    ----------
    run : str
        The best run.
    contenders : tuple of str
        The runs that come first in some half-sample, and the best one.
    shares : ndarray
        The share of the half-samples in which each of them comes first.
    clusters : tuple of str
        The labels of the clusters of the best run.
    codes : ndarray of shape (n,)
        The cluster of each object in the best run, -1 for noise.
    overlap : ndarray of shape (K,)
        Smallest Jaccard similarity of each cluster with a cluster of every contender.
    is_agreed : ndarray of shape (K,), bool
    questions : tuple of Question
    why : str
        Why there are no agreed groups, where they cannot be told; else empty.
    """

    run: str
    contenders: tuple[str, ...]
    shares: np.ndarray
    clusters: tuple[str, ...]
    codes: np.ndarray
    overlap: np.ndarray
    is_agreed: np.ndarray
    questions: tuple[Question, ...] = ()
    why: str = ""

    @classmethod
    def none(cls, run: str, why: str) -> AgreedGroups:
        """No agreed group, for a reason."""
        empty = np.empty(0)
        codes = empty.astype(np.intp)
        return cls(run, (), empty, (), codes, empty, empty.astype(bool), why=why)

    @property
    def rows(self) -> np.ndarray:
        """Positions of the agreed clusters, the largest overlap first."""
        rows = np.flatnonzero(self.is_agreed)
        return rows[np.argsort(-self.overlap[rows], kind="stable")]

    @property
    def sizes(self) -> np.ndarray:
        """(K,) objects of each cluster of the best run."""
        return cluster_sizes(self.codes, len(self.clusters))

    @property
    def n_objects_agreed(self) -> int:
        """Objects in agreed groups."""
        return int(self.sizes[self.is_agreed].sum())

    def to_facts(self) -> dict[str, Any]:
        """The numbers that a verdict tells; None where there are none."""
        facts = {
            "contenders": list(self.contenders),
            "agreed_groups": int(self.is_agreed.sum()),
            "agreed_objects": self.n_objects_agreed,
            "questions": len(self.questions),
        }
        return dict.fromkeys(facts) if self.why else facts

    def columns(self) -> dict[str, list[Any]]:
        """Return the clusters of the best run, agreed ones first."""
        asked = {label: question.id for question in self.questions for label in question.clusters}
        order = np.lexsort((-self.overlap, ~self.is_agreed))
        labels = [self.clusters[at] for at in order]
        return {
            "cluster": labels,
            "size": self.sizes[order].tolist(),
            "overlap": self.overlap[order].tolist(),
            "agreed": self.is_agreed[order].tolist(),
            "question": [asked.get(label) for label in labels],
        }

    def sentences(self) -> Iterator[str]:
        """Say how many groups are agreed, and what is open."""
        if self.why:
            yield self.why
            return
        if len(self.contenders) == 1:
            yield f"{self.run!r} is first in all half-samples, so no other run contests its groups."
            return
        n, n_open = int(self.is_agreed.sum()), len(self.questions)
        objects = f"({self.n_objects_agreed:,} of {count(len(self.codes), 'object')}) "
        groups = f"{count(n, 'group')} {objects}" if n else "No group "
        still_open = count(n_open, "question is", "questions are")
        yield f"{groups}{'are' if n > 1 else 'is'} found by every contender; {still_open} open."
        other = len(self.clusters) - n - sum(len(question.clusters) for question in self.questions)
        if other:
            yield f"{count(other, 'group has', 'groups have')} other borders in some contenders."

    def settle(self, answers: Mapping[str, Any] | None = None) -> np.ndarray:
        """(n,) a group name per object; answers by question id, the words or number of a side.

        An open question follows the largest share of the half-samples. Noise stays noise.
        """
        given = dict(answers or {})
        unknown = [key for key in given if key not in {q.id for q in self.questions}]
        if unknown:
            ids = listing((repr(q.id) for q in self.questions), most=8) or "none"
            raise ValueError(f"answers must be to open questions ({ids}), got {shown(unknown[0])}.")
        labels = np.array([*self.clusters, str(NOISE)], dtype=object)[self.codes]  # the last: noise
        for question in self.questions:
            side = question.side(given[question.id]) if question.id in given else question.sides[0]
            groups = np.array([*side.groups, str(NOISE)], dtype=object)
            labels[question.objects] = groups[side.codes]
        return labels.astype(str)


def read_answers(answers: Any, run: str) -> Mapping[str, Any]:
    """Answers by question, from a mapping or from a JSON file of answers about this best run."""
    if answers is None or isinstance(answers, Mapping):
        return answers or {}
    if not isinstance(answers, str | os.PathLike):
        raise TypeError(
            f"answers must be a mapping of questions to answers or a file, got {shown(answers)}."
        )
    path = check_path("answers", answers)
    content = read_json(read_bytes(path, str(path)), str(path))
    given = content.get("answers") if isinstance(content, dict) else None
    if not isinstance(given, dict) or content.get("wellsep") != "answers":
        raise ValueError(
            f"{path} must hold answers, such as "
            '{"wellsep": "answers", "answers": {"6+13": "one group"}}, got another JSON file.'
        )
    if content.get("run", run) != run:
        raise ValueError(
            f"{path} must hold answers about the groups of {run!r}, got some about "
            f"{shown(content['run'])}; export them from the page of this result."
        )
    return given


class _Cut(NamedTuple):
    """How one contender cuts the clusters of the best run."""

    run: str
    share: float  # of the half-samples in which it comes first
    codes: np.ndarray  # (n,)
    links: dict[int, list[int]]  # cluster of the best run -> clusters here, see `overlaps`
    agreed: dict[int, int]  # cluster here -> the agreed cluster that it is


def find_agreed(
    codes: np.ndarray, shares: np.ndarray, clusters: tuple[str, ...], contenders: tuple[str, ...]
) -> AgreedGroups:
    """Compare the clusters of the best run with those of all contenders.

    ``codes`` (C, n) has the best run first: whole numbers from 0 without gaps, noise below 0;
    ``clusters`` are the labels of its codes. ``shares`` (C,) are those of the half-samples in which
    each of the ``contenders`` comes first. A match is unique, since ``AGREED`` is above .5.

    >>> codes = np.array([[0, 0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1, 1]])
    >>> found = find_agreed(codes, np.array([0.6, 0.4]), ("a", "b", "c"), ("three", "two"))
    >>> found.is_agreed.tolist(), found.questions[0].text
    ([True, False, False], 'b and c: one group or two?')
    >>> found.settle({"b+c": "one group"}).tolist()
    ['a', 'a', 'a', 'b+c', 'b+c', 'b+c', 'b+c']
    """
    codes = codes.astype(np.intp)
    best = codes[0]
    similarity, match = best_matches(best, codes[1:])
    overlap = similarity.min(axis=1, initial=1.0)
    is_agreed = overlap >= AGREED
    settled = np.flatnonzero(is_agreed).tolist()
    matched = [settled, *match[settled].T.tolist()]
    cuts = [
        _Cut(run, share, own, overlaps(best, own, settled), dict(zip(same, settled, strict=True)))
        for run, share, own, same in zip(contenders, shares, codes, matched, strict=True)
    ]
    unsettled = _connected(np.flatnonzero(~is_agreed).tolist(), cuts)
    questions = (_ask(members, cuts, clusters) for members in unsettled)
    return AgreedGroups(
        run=contenders[0],
        contenders=contenders,
        shares=freeze(shares, float),
        clusters=clusters,
        codes=freeze(best),
        overlap=freeze(overlap),
        is_agreed=freeze(is_agreed),
        questions=tuple(question for question in questions if len(question.sides) > 1),
    )


def overlaps(
    first: np.ndarray, second: np.ndarray, but: Iterable[int] = ()
) -> dict[int, list[int]]:
    """The clusters of a second run that each cluster of the first overlaps with, largest first.

    They have a quarter of the objects of the smaller one in common; one that is scattered over
    many is linked with its largest part. Clusters ``but`` of the first are left out.

    >>> overlaps(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1, 1]))
    {0: [0, 1], 1: [1]}
    """
    table = shared_sizes(first, second)
    smaller = np.minimum.outer(table.sum(axis=1), table.sum(axis=0))[1:, 1:]
    table = table[1:, 1:]  # without noise
    linked = (table >= LINKED * smaller) & (table > 0)
    links: dict[int, list[int]] = {}
    for cluster in sorted(set(range(len(table))) - set(but)):
        order = np.argsort(-table[cluster], kind="stable")
        overlapping = order[linked[cluster, order]].tolist()
        links[cluster] = overlapping or order[:1][table[cluster, order[:1]] > 0].tolist()
    return links


def _connected(clusters: list[int], cuts: Iterable[_Cut]) -> list[list[int]]:
    """Clusters of the best run in groups that some contender connects, but by agreed groups."""
    joined = np.eye(len(clusters), dtype=bool)
    for cut in cuts:
        for other in {g for held in cut.links.values() for g in held} - set(cut.agreed):
            members = [at for at, c in enumerate(clusters) if other in cut.links[c]]
            joined[np.ix_(members, members)] = True
    n_groups, group = connected_components(joined, directed=False)
    return [[clusters[at] for at in np.flatnonzero(group == g)] for g in range(n_groups)]


# The groups of a side: (agreed cluster or -1, clusters that have a part in it).
Groups = tuple[tuple[int, tuple[int, ...]], ...]


def _ask(members: list[int], cuts: list[_Cut], clusters: tuple[str, ...]) -> Question:
    """One question: contenders that put the clusters together alike are on one side."""
    sides: dict[Groups, list[_Cut]] = defaultdict(list)
    for cut in cuts:
        parts = defaultdict(list)
        for cluster in members:
            for other in cut.links[cluster]:
                parts[other].append(cluster)
        groups = sorted((cut.agreed.get(g, -1), tuple(c)) for g, c in parts.items())
        sides[tuple(groups)].append(cut)
    best = cuts[0].codes
    objects = np.flatnonzero(np.isin(best, members))
    share = {key: float(np.sum([cut.share for cut in alike])) for key, alike in sides.items()}
    order = sorted(sides, key=lambda key: -share[key])  # of equal ones the first to appear
    beside = sorted({agreed for key in order for agreed, _ in key if agreed >= 0})
    words = [_say(members, key, clusters, bool(beside)) for key in order]
    answers = []
    for key, text in zip(order, words, strict=True):
        alike = sorted(sides[key], key=lambda cut: -cut.share)
        own = cuts[0] if any(cut is cuts[0] for cut in alike) else alike[0]
        names, codes, is_agreed = _groups(members, own, objects, best, clusters)
        moved = objects[_moved(best[objects], codes, is_agreed)]
        if words.count(text) > 1:  # no two sides of a question have the same words
            text = f"{text}: {_how(key, codes, alike[0].run, clusters)}"
        runs = tuple(cut.run for cut in alike)
        answers.append(Side(text, share[key], runs, names, freeze(codes), freeze(moved)))
    return Question(
        id="+".join(clusters[c] for c in members),
        text=_text(members, order, clusters, beside),
        clusters=tuple(clusters[c] for c in members),
        beside=tuple(clusters[a] for a in beside),
        objects=freeze(objects),
        sides=tuple(answers),
    )


def _groups(
    members: list[int], cut: _Cut, objects: np.ndarray, best: np.ndarray, clusters: tuple[str, ...]
) -> tuple[tuple[str, ...], np.ndarray, list[bool]]:
    """Names of the groups of a side, the group of each object, and which groups are agreed ones.

    The objects of a cluster that are in none of these groups go where most of it goes.
    """
    others = sorted({g for c in members for g in cut.links[c]})
    is_agreed = [g in cut.agreed for g in others]
    names = [
        clusters[cut.agreed[g]] if g in cut.agreed
        else "+".join(clusters[c] for c in members if g in cut.links[c])
        for g in others
    ]  # fmt: skip
    for name in {name for name in names if names.count(name) > 1}:
        for i, at in enumerate([at for at, one in enumerate(names) if one == name], 1):
            names[at] = f"{name}.{i}"
    codes = np.full(len(objects), -1)
    for c in members:
        own = best[objects] == c
        for g in reversed(cut.links[c]):  # the largest last: it also takes the rest
            rest = (codes < 0) & (g == cut.links[c][0])
            codes[own & ((cut.codes[objects] == g) | rest)] = others.index(g)
    return tuple(names), codes, is_agreed


def _moved(best: np.ndarray, codes: np.ndarray, is_agreed: list[bool]) -> np.ndarray:
    """(objects,) whether each leaves the largest part of its cluster, or joins a larger one."""
    moved = codes < 0
    for c in np.unique(best):
        own = cluster_sizes(codes[best == c], 1)
        moved |= (best == c) & (codes != own.argmax())
    for group, agreed in enumerate(is_agreed):
        inside = codes == group
        largest = -1 if agreed or not inside.any() else np.bincount(best[inside]).argmax()
        moved |= inside & (best != largest)
    return moved


def _say(members: list[int], side: Groups, clusters: tuple[str, ...], joins: bool) -> str:
    homes = [clusters[agreed] for agreed, _ in side if agreed >= 0]
    n_free = len(side) - len(homes)
    groups = f"{_number(n_free)} {'group' if n_free < 2 else 'groups'}"
    if not homes:
        return "stays apart" if joins and len(members) == n_free == 1 else groups
    if len(members) == len(side) == 1:
        return f"belongs to {homes[0]}"
    into = " and ".join(homes)
    return f"divided between {into}" if not n_free else f"{groups}, and a part in {into}"


def _how(side: Groups, codes: np.ndarray, run: str, clusters: tuple[str, ...]) -> str:
    """Which clusters make up the groups of a side; their sizes and a run if it cuts clusters."""
    placed = [c for _, members in side for c in members]
    if len(set(placed)) < len(placed):
        sizes = cluster_sizes(codes)
        least = f"{sizes.min():,} to " if sizes.min() < sizes.max() else ""
        return f"{least}{count(int(sizes.max()), 'object')} each, as in {run!r}"
    texts = []
    for agreed, members in side:
        names = [*(clusters[c] for c in members), *([clusters[agreed]] if agreed >= 0 else [])]
        texts.append(" with ".join(names))
    return "; ".join(texts) if len(placed) > len(side) else listing(texts)


def _text(
    members: list[int], sides: list[Groups], clusters: tuple[str, ...], homes: list[int]
) -> str:
    names = listing((clusters[c] for c in members), most=6)
    numbers = sorted({len(side) for side in sides})
    if len(members) == 1:
        if homes:
            return f"Does {names} belong to {' or '.join(clusters[a] for a in homes)}?"
        if numbers == [0, 1]:
            return f"Is {names} a group?"
        return f"Is {names} {_ways(numbers)}?"
    return f"{names}: {_ways(numbers) if len(numbers) > 1 else 'where is the border'}?"


def _ways(numbers: list[int]) -> str:
    """Such as "one group or three"; "how many groups" if there are too many ways."""
    if len(numbers) > 3:
        return "how many groups"
    first = "one group" if numbers[0] == 1 else f"{_number(numbers[0])} groups"
    rest = [_number(n) for n in numbers[1:]]
    return " or ".join([", ".join([first, *rest[:-1]]), *rest[-1:]])


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else str(n)
