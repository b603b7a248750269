"""Figures that say how ACE came to its answer: steps, heat map, graph, dip tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._text.sentences import count
from wellsep.evaluate import AceResult, Scores
from wellsep.report.pack import NOT_SENT, pack, pack_bits, to_payload, upper
from wellsep.runs.folder_names import best_first
from wellsep.spaces.projections import scaled_components

MANY_SPACES = 300  # beyond, correlations have two digits and p-values are left out
MOST_SPACES = 400  # of the heat map and the graph: more cannot be told apart on a screen
_STEPS = 200  # of placing the nodes of the graph


@dataclass(frozen=True)
class Step:
    """One step of ACE: how many spaces are left, and what it did."""

    title: str
    count: int
    sentence: str = field(metadata=NOT_SENT)
    kept: tuple[bool, ...]  # per space


@dataclass(frozen=True, eq=False)
class Steps:
    """Spaces in → multimodal → groups → winner."""

    order: np.ndarray  # the spaces as they are drawn: by group, the winner first
    fate: tuple[str, ...]  # "wins", "group", "outlier", "constant" or "dip"
    group: np.ndarray  # phase-1 group of each space, -1 = none
    weight: np.ndarray  # in the answer, 0 for others
    steps: tuple[Step, ...]
    dropped: tuple[tuple[str, str, str], ...] = field(metadata=NOT_SENT)  # (space, step, sentence)


@dataclass(frozen=True, eq=False)
class SpaceAgreement:
    """Rank agreement of the retained spaces, ordered by group, and their graph."""

    names: tuple[str, ...]
    places: np.ndarray  # (R,) position of each among all spaces
    values: np.ndarray  # (R, R) rank correlation
    adjusted: np.ndarray | None  # (R, R) Holm-adjusted p
    linked: np.ndarray  # (R, R) bool, significant and positive
    group: np.ndarray  # (R,)
    weight: np.ndarray  # (R,) PageRank (or HITS) within its subgroup
    wins: np.ndarray  # (R,) bool
    correlation: str
    xy: np.ndarray  # (R, 2) where the graph puts each, in the unit square

    @property
    def floor(self) -> float:
        """Where the colours start."""
        return colour_floor(self.values)

    @property
    def edges(self) -> np.ndarray:
        """(E, 2) the links of the graph."""
        return np.argwhere(np.triu(self.linked, 1))


@dataclass(frozen=True, eq=False)
class Dips:
    """Dip tests of all spaces."""

    names: tuple[str, ...] = field(metadata=NOT_SENT)
    statistic: np.ndarray
    pvalue: np.ndarray
    adjusted: np.ndarray
    passed: np.ndarray
    notes: tuple[str, ...]
    alpha: float


def steps_figure(result: AceResult) -> Steps:
    """The steps of ACE with what each leaves.

    Examples
    --------
    >>> import wellsep as ws
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> [(step.title, step.count) for step in steps_figure(ws.ace(scores, dip=False)).steps]
    [('spaces', 2), ('in a group', 2), ('give the answer', 2)]
    """
    n = len(result.spaces)
    fate, group = fates(result), result.group_of - 1
    weight = np.zeros(n)
    weight[list(result.winner.spaces)] = result.winner.weights
    steps = [Step("spaces", n, f"{count(n, 'embedding')} judge the clusterings.", (True,) * n)]
    modal = tuple(f != "dip" for f in fate)
    if result.dip:
        if result.screen.none_passed:
            sentence = "No embedding passes the dip test, so all stay; read the answer with care."
            steps.append(Step("have more than one mode", 0, sentence, modal))
        else:
            several = sum(modal) - len(result.untested)
            sentence = (
                f"The dip test finds more than one mode in {several} of them "
                f"(Holm, level {result.options.dip_alpha:g})."
            )
            title = "have more than one mode"
            if result.untested:
                sentence += f" It is undefined in {len(result.untested)} more, which stay."
                title = "stay after the dip test"
            steps.append(Step(title, sum(modal), sentence, modal))
    telling = tuple(f not in ("dip", "constant") for f in fate)
    if telling != modal:
        sentence = "The others give every clustering the same score."
        steps.append(Step("tell clusterings apart", sum(telling), sentence, telling))
    if result.groups.agreement is not None:
        inside = tuple((group >= 0).tolist())
        found = count(len(result.groups.members), "group") if result.groups.members else "no group"
        by = " by the outlier rule" if result.groups.fallback else ""
        sentence = f"By how alike they rank the clusterings they form {found}{by}."
        steps.append(Step("in a group", sum(inside), sentence, inside))
    winning = tuple(f == "wins" for f in fate)
    title = "gives the answer" if sum(winning) == 1 else "give the answer"
    steps.append(Step(title, sum(winning), _winning(result), winning))
    return Steps(
        order=space_order(result),
        fate=fate,
        group=group,
        weight=weight,
        steps=tuple(steps),
        dropped=tuple((d.space, d.step, d.reason) for d in result.dropped),
    )


def space_agreement(result: AceResult) -> SpaceAgreement | None:
    """Rank agreement of the retained spaces, ordered by group; None with fewer than two."""
    if result.groups.agreement is None or result.groups.edges is None:
        return None
    local = {space: i for i, space in enumerate(result.screen.retained)}
    places = np.array([space for space in space_order(result) if space in local])
    rows = np.array([local[space] for space in places])
    ours = np.ix_(rows, rows)
    values, linked = result.groups.agreement[ours], result.groups.edges[ours] > 0
    fate, weight = fates(result), np.zeros(len(result.spaces))
    for subgroup in result.groups.subgroups:
        weight[list(subgroup.members)] = subgroup.weights
    return SpaceAgreement(
        names=tuple(result.spaces[i] for i in places),
        places=places,
        values=values,
        adjusted=None if result.groups.adjusted is None else result.groups.adjusted[ours],
        linked=linked,
        group=result.group_of[places] - 1,
        weight=weight[places],
        wins=np.array([fate[i] == "wins" for i in places]),
        correlation=result.options.correlation,
        xy=place_nodes(values, np.where(linked, values, 0.0)),
    )


def place_nodes(correlation: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """Coordinates in the unit square: linked nodes near each other, all nodes apart.

    Classical scaling of 1 − r gives the start, springs along the edges and a push between all
    nodes do the rest (Fruchterman and Reingold 1991). Nothing is drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> r = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]])
    >>> xy = place_nodes(r, np.where(r == 0.9, r, 0))
    >>> bool(np.linalg.norm(xy[0] - xy[1]) < np.linalg.norm(xy[0] - xy[2]))
    True
    """
    n = len(correlation)
    centring = np.eye(n) - 1.0 / n
    axes = scaled_components(-centring @ np.maximum(1 - correlation, 0.0) @ centring, 2).scores
    xy = np.column_stack([axes, np.zeros((n, 2 - axes.shape[1]))])
    turn = 2 * np.pi * np.arange(n) / n * 7.3  # parts nodes that coincide
    xy = xy / max(float(np.abs(xy).max()), 1e-9)
    xy = xy + 0.02 * np.column_stack([np.cos(turn), np.sin(turn)])
    ideal = 1.6 / np.sqrt(n)
    steps = max(20, round(_STEPS * min(1.0, (300 / n) ** 2)))  # a step takes n²
    for step in range(steps):
        gap = xy[:, None] - xy[None]
        far = np.sqrt((gap**2).sum(axis=2)) + 1e-9
        push = ideal**2 / far**2
        np.fill_diagonal(push, 0.0)
        pull = strength**2 * far / ideal / np.maximum(strength.sum(axis=1), 1.0)[:, None] * 4
        force = ((push - pull)[:, :, None] * gap).sum(axis=1) - 0.6 * xy
        size = np.sqrt((force**2).sum(axis=1))[:, None] + 1e-9
        heat = 0.12 * (1 - step / steps)
        xy = xy + force / size * np.minimum(size, heat)
    low, high = xy.min(axis=0), xy.max(axis=0)
    span = max(float((high - low).max()), 1e-9)
    return 0.5 + (xy - (low + high) / 2) / span * 0.9


def dip_figure(result: AceResult, scores: Scores | None = None) -> Dips | None:
    """Dip tests of all spaces; None where the test was not run."""
    if result.screen.pvalue is None or result.screen.adjusted is None:
        return None
    n = len(result.spaces)
    dip = None if scores is None else scores.dip
    notes = dip.notes if dip is not None and len(dip.notes) == n else ("",) * n
    return Dips(
        names=result.spaces,
        statistic=np.full(n, np.nan) if dip is None else np.asarray(dip.statistic),
        pvalue=np.asarray(result.screen.pvalue, float),
        adjusted=np.asarray(result.screen.adjusted, float),
        passed=np.array([f != "dip" for f in fates(result)]) & (not result.screen.none_passed),
        notes=tuple(notes),
        alpha=float(result.options.dip_alpha),
    )


def ace_payload(result: AceResult, scores: Scores, steps: Steps) -> dict[str, Any]:
    """Steps, heat map, graph and dip tests as the page's script reads them."""
    found: dict[str, Any] = {"steps": to_payload(steps)}
    heat = space_agreement(result)
    if heat is not None:
        many = len(heat.names) > MANY_SPACES
        most = slice(MOST_SPACES)  # in the order of the figure: those that give the answer first
        values = upper(heat.values[most, most])
        adjusted = None if many or heat.adjusted is None else upper(heat.adjusted)
        found["heat"] = {
            "places": heat.places[most],
            "values": pack(np.rint((values + 1) * 127), "u1") if many else pack(values, "f4"),
            "linked": pack_bits(upper(heat.linked[most, most])),
            "adjusted": None if adjusted is None else pack(adjusted, "f4"),
            "floor": heat.floor,
            "of": len(heat.names),
        }
        found["graph"] = {"xy": np.round(heat.xy[most], 4), "weight": heat.weight[most]}
    dips = dip_figure(result, scores)
    if dips is not None:
        found["dips"] = to_payload(dips)
    return found


def colour_floor(values: np.ndarray) -> float:
    """Where the colours of agreement start: -1, or a tenth under the least where all agree."""
    least = float(np.min(values, initial=1.0))
    return -1.0 if least < 0 else min(np.floor(least * 10) / 10, 0.9)


def fates(result: AceResult) -> tuple[str, ...]:
    """What became of each space."""
    fate = dict.fromkeys(result.spaces, "group")
    fate |= {result.spaces[i]: "outlier" for i in result.groups.outliers}
    fate |= {d.space: "outlier" if d.step == "grouping" else d.step for d in result.dropped}
    fate |= {result.spaces[i]: "wins" for i in result.winner.spaces}
    return tuple(fate.values())


def space_order(result: AceResult) -> np.ndarray:
    """Spaces by group, the winner first, inside by weight; then those in none, then the rest."""
    last = len(result.groups.subgroups)
    fate, group = fates(result), result.group_of
    rank = {"wins": 0, "group": 0, "outlier": 1, "constant": 2, "dip": 3}
    subgroup, weight = np.full(len(result.spaces), last), np.zeros(len(result.spaces))
    by_mean = sorted(range(last), key=lambda i: -result.groups.subgroups[i].mean)
    for number, i in enumerate(by_mean):
        members = list(result.groups.subgroups[i].members)
        subgroup[members], weight[members] = number, result.groups.subgroups[i].weights
    keys = [
        (
            rank[fate[i]],
            group[i] or last + 1,
            subgroup[i],
            fate[i] != "wins",
            -round(float(weight[i]), 9),
        )
        for i in range(len(fate))
    ]
    return best_first(keys, result.spaces)


def _winning(result: AceResult) -> str:
    n = len(result.winner.spaces)
    if result.winner.won_by == "single space":
        return "One embedding is left; its scores are ACE's answer."
    if result.winner.won_by == "outlier":
        return "An embedding outside the groups gives the answer: its mean score is the largest."
    if len(result.groups.subgroups) == 1:
        return f"{count(n, 'embedding')} together give the answer, each by its weight."
    return f"The group with the largest mean score gives the answer: {count(n, 'embedding')}."
