"""ACE, adaptive clustering evaluation: rank partitions by the spaces that agree on them.

Wang, Ye (2024), "Deep clustering evaluation: how to validate internal clustering validation
measures", arXiv:2403.14830, algorithms 1 and 2. The steps below follow the paper's order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.spatial.distance import squareform

from wellsep._checks.values import check_flag
from wellsep._files.records import freeze
from wellsep._text.sentences import count, listing
from wellsep.evaluate.ace_method.answer import AceResult, Dropped, Groups, Screen, Subgroup, Winner
from wellsep.evaluate.ace_method.groups import (
    LINKS,
    dbscan,
    density_groups,
    renumber,
    row_distances,
)
from wellsep.evaluate.options import Ace, Settings
from wellsep.evaluate.ranks import TIE, RankAgreement, rank_agreement, tied_classes, tied_rows
from wellsep.evaluate.scores import NothingToRank, Scores
from wellsep.partitions import Classes
from wellsep.spaces import holm

SPLIT_ABOVE = 5  # groups with more spaces than this are split further (phase 2)
OUTLIER_LEVEL = 0.05  # of the t-test that lets an outlying space win


def ace(
    scores: Scores,
    *,
    index: str | None = None,
    dip: bool = True,
    dip_alpha: float = 0.05,
    alpha: float | None = 0.10,
    correlation: str = "spearman",
    grouping: str = "hdbscan",
    eps: float = 0.1,
    links: str = "pagerank",
    outliers: str = "drop",
    undefined: str = "worst",
    tie_tolerance: float = TIE,
) -> AceResult:
    """Rank M partitions by the spaces that agree on them (adaptive clustering evaluation).

    Spaces in which the dip test finds one mode only (Holm) are left out. The others are grouped by
    the rank agreement of their scores. Within a group each space is weighted by its links. The
    group with the largest mean score ranks the partitions. The answer is the same for any order
    and names of the runs: tied edges merge together, and scores that differ only by rounding are
    tied.

    Parameters
    ----------
    scores : Scores
        From :func:`wellsep.score_runs`, or :meth:`Scores.from_matrix`.
    index : str, optional
        Which index of the scores decides; the first by default.
    dip : bool
        Leave out spaces the dip test finds unimodal. A space whose test is undefined (p is NaN)
        is kept. If no test finds more than one mode, all are kept. The explanation says which.
    dip_alpha, alpha, correlation, grouping, eps, links, outliers, undefined, tie_tolerance
        The switches of ACE, see :class:`wellsep.Ace`.

    Returns
    -------
    AceResult

    Raises
    ------
    NothingToRank
        With fewer than two partitions, or if no space tells them apart.

    References
    ----------
    Wang, Ye (2024), "Deep clustering evaluation: how to validate internal clustering validation
    measures", arXiv:2403.14830. Departs from the authors' code, whose answer depends on the order
    of the runs and on the CPU's sort wherever edges tie.

    Examples
    --------
    >>> import wellsep as ws
    >>> scores = ws.Scores.from_matrix([
    ...     [0.1, 0.5, 0.3, 0.4, 0.2], [0.2, 0.6, 0.3, 0.5, 0.1], [0.1, 0.7, 0.4, 0.5, 0.3],
    ...     [0.4, 0.1, 0.2, 0.0, 0.3], [0.5, 0.2, 0.3, 0.1, 0.3], [0.5, 0.2, 0.1, 0.0, 0.4]],
    ...     paired=False)
    >>> result = ws.ace(scores, dip=False)
    >>> result.winner.spaces
    (0, 1, 2)
    >>> result.scores.argmax()
    np.int64(1)
    """
    if not isinstance(scores, Scores):
        raise TypeError(f"scores must be a Scores record, got {type(scores).__name__}.")
    check_flag("dip", dip)
    made_by = Settings() if scores.settings is None else scores.settings
    options = Ace(
        dip_alpha=dip_alpha,
        alpha=alpha,
        correlation=correlation,
        grouping=grouping,
        eps=eps,
        links=links,
        outliers=outliers,
        undefined=undefined,
        tie_tolerance=tie_tolerance,
        projection=made_by.projection,
        convention=made_by.convention,
    )
    return judge_by_ace(scores, options, index, dip=dip)


def judge_by_ace(
    scores: Scores,
    options: Ace,
    index: str | None = None,
    *,
    dip: bool,
    classes: Classes | None = None,
) -> AceResult:
    """ACE's answer, step by step as in the paper; partitions equal by ``classes`` are one."""
    index = scores.check_index(index)
    classes = Classes.all_differ(scores.partitions) if classes is None else classes
    if len(scores.partitions) < 2:
        raise NothingToRank(
            f"There must be at least 2 clusterings to rank, got 1 ({scores.partitions[0]!r}); "
            "add runs."
        )

    # step 1: scores, larger is better, without gaps
    whole, gaps = fill_undefined(scores, index, options.undefined)
    matrix = np.take(whole, classes.first, axis=1)  # (L, D)
    # step 2: multimodality
    screen = Screen(tuple(range(len(scores.spaces))))
    if dip:
        if scores.dip is None:
            raise ValueError(
                "scores must carry dip p-values for dip=True, got none; "
                "score the runs with dip=True or choose dip=False."
            )
        screen = admit(scores.dip.pvalue, options.dip_alpha)
    # steps 3 to 7: rank agreement, grouping, link analysis, winner
    varying, groups, winner, answer = answer_of(matrix, screen.retained, options, index)
    dropped = _dropped_spaces(scores, screen, varying)
    if winner.won_by == "group":
        why = "its ranking agrees with no group of embeddings"
        if options.grouping == "dbscan":
            why = f"no other embedding's ranking is within {options.eps:g} of its own"
        dropped += tuple(Dropped(scores.spaces[i], "grouping", why) for i in groups.outliers)
    means = mean_scores(scores, matrix, screen.retained, classes)
    return AceResult(
        classes=classes,
        distinct_scores=freeze(answer),
        options=options,
        index=index,
        direction=int(scores.directions[index]),
        dip=dip,
        spaces=scores.spaces,
        screen=replace(screen, retained=tuple(varying)),
        groups=groups,
        winner=winner,
        dropped=dropped,
        baselines={name: freeze(values[classes.of]) for name, values in means.items()},
        n_clusters=scores.n_clusters,
        coverage=scores.coverage,
        noise=None if scores.settings is None else scores.settings.noise,
        undefined=gaps,
        undefined_value=float(whole.min()) if gaps else None,
        notes=_notes(scores, dip),
    )


def fill_undefined(
    scores: Scores, index: str, undefined: str
) -> tuple[np.ndarray, tuple[tuple[str, str, str], ...]]:
    """(L, M) oriented scores, the worst of all in gaps; (space, partition, why) of each gap."""
    matrix = scores.oriented(index)
    cells = ((scores.spaces[i], scores.partitions[j]) for i, j in np.argwhere(np.isnan(matrix)))
    gaps = tuple((*cell, scores.why(*cell, index) or "") for cell in cells)
    return fill_worst(matrix, undefined, index, gaps), gaps


def fill_worst(
    matrix: np.ndarray, undefined: str, index: str, gaps: tuple[tuple[str, str, str], ...] = ()
) -> np.ndarray:
    """The scores, the smallest of all where one is undefined; ``gaps`` are not known in a draw."""
    missing = np.isnan(matrix)
    if not missing.any():
        return matrix
    if missing.all():
        why = "".join(f"; {name!r} in {space!r}: {reason}" for space, name, reason in gaps[:1])
        raise NothingToRank(f"{index} is undefined for every clustering in every embedding{why}")
    if undefined == "error":
        cases = [f"for {name!r} in {space!r} ({reason})" for space, name, reason in gaps[:1]]
        raise ValueError(
            f"scores must be defined with undefined='error', got no {index} "
            f"{''.join(cases) or 'in a half-sample'}; choose undefined='worst'."
        )
    return np.where(missing, np.nanmin(matrix), matrix)


def admit(pvalue: np.ndarray, alpha: float) -> Screen:
    """The spaces that these (L,) p-values of the dip test leave: modes, or an undefined test."""
    tested = ~np.isnan(pvalue)
    adjusted, stays, none_passed = np.full(len(pvalue), np.nan), ~tested, False
    if tested.any():
        outcome = holm(pvalue[tested], alpha)
        adjusted[tested], stays[tested] = outcome.adjusted, outcome.reject
        none_passed = not outcome.reject.any()
    retained = np.arange(len(pvalue)) if none_passed else np.flatnonzero(stays)
    return Screen(tuple(retained.tolist()), freeze(pvalue), freeze(adjusted), none_passed)


def mean_scores(
    scores: Scores, matrix: np.ndarray, kept: Sequence[int], classes: Classes
) -> dict[str, np.ndarray]:
    """(D,) means of the (L, D) scores: in the spaces a partition was made in, admitted, of all."""
    means = {"mean_admitted": matrix[list(kept)].mean(axis=0), "mean_all": matrix.mean(axis=0)}
    if not scores.is_paired:
        return means
    of, spaces = np.unique(np.stack([classes.of, scores.made_in]), axis=1)
    return {"own_space": np.bincount(of, matrix[spaces, of]) / np.bincount(of), **means}


def answer_of(
    matrix: np.ndarray, kept: Sequence[int], options: Ace, index: str
) -> tuple[list[int], Groups, Winner, np.ndarray]:
    """Steps 3 to 7 on (L, D) scores: rows that tell clusterings apart, groups, winner, answer."""
    tolerance, admitted = options.tie_tolerance, np.asarray(kept)
    varying = admitted[tied_rows(matrix[admitted], tolerance).any(axis=1)].tolist()
    if not varying:
        raise NothingToRank(
            f"No embedding tells the {matrix.shape[1]} clusterings apart: each gives all of them "
            f"the same {index}; are the clusterings identical?"
        )
    if len(varying) == 1:
        winner = Winner("single space", tuple(varying), freeze([1.0]))
        return varying, Groups(), winner, matrix[varying[0]]
    # step 3: rank agreement
    rows = matrix[varying]
    agreement = rank_agreement(options.correlation, rows, tolerance=tolerance)
    edges, adjusted = edge_weights(agreement, options.alpha)
    # steps 4 and 5: grouping
    fallback = False
    if options.grouping == "dbscan":
        coarse = dbscan(agreement.distance, options.eps, tolerance=tolerance)
    else:
        coarse, fallback = density_groups(agreement.distance, tolerance=tolerance)
    labels = split_groups(rows, coarse, tolerance=tolerance)
    # steps 6 and 7: link analysis and winner
    subgroups = tuple(
        _weigh(np.flatnonzero(labels == label), rows, edges, coarse, LINKS[options.links])
        for label in range(labels.max(initial=-1) + 1)
    )
    outside = np.flatnonzero(coarse < 0)
    winner, answer = _choose(subgroups, outside, rows, options.outliers == "compete", tolerance)

    def positions(local: Iterable[int]) -> tuple[int, ...]:
        return tuple(varying[i] for i in local)

    groups = Groups(
        agreement=freeze(agreement.correlation),
        pvalue=freeze(agreement.pvalue),
        adjusted=None if adjusted is None else freeze(adjusted),
        edges=freeze(edges),
        members=tuple(
            positions(np.flatnonzero(coarse == g)) for g in range(coarse.max(initial=-1) + 1)
        ),
        outliers=positions(outside),
        subgroups=tuple(replace(s, members=positions(s.members)) for s in subgroups),
        fallback=fallback,
    )
    winner = replace(winner, spaces=positions(winner.spaces))
    return varying, groups, winner, answer


def edge_weights(
    agreement: RankAgreement, alpha: float | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Correlations that are positive and significant after Holm over all pairs; else 0."""
    positive = np.where(agreement.correlation > 0, agreement.correlation, 0.0)
    np.fill_diagonal(positive, 0.0)
    pvalues = squareform(agreement.pvalue, checks=False)
    if alpha is None or np.isnan(pvalues).all():
        return positive, None
    tested = holm(pvalues, alpha)
    adjusted = squareform(tested.adjusted)
    np.fill_diagonal(adjusted, np.nan)
    return np.where(squareform(tested.reject), positive, 0.0), adjusted


def split_groups(rows: np.ndarray, labels: np.ndarray, *, tolerance: float = TIE) -> np.ndarray:
    """Phase 2: HDBSCAN on the score rows inside each large group; its noise become singletons."""
    fine = np.full(len(labels), -1)
    following = 0
    for group in range(labels.max(initial=-1) + 1):
        members = np.flatnonzero(labels == group)
        inner = np.zeros(len(members), dtype=np.intp)
        if len(members) > SPLIT_ABOVE:
            distance = row_distances(rows[members], tolerance=tolerance)
            inner, _ = density_groups(distance, tolerance=tolerance)
            alone = inner < 0
            inner[alone] = inner.max() + 1 + np.arange(alone.sum())
        fine[members] = following + inner
        following = int(fine.max()) + 1
    return renumber(fine)


def _weigh(
    members: np.ndarray,
    rows: np.ndarray,
    edges: np.ndarray,
    groups: np.ndarray,
    link: Callable[[np.ndarray], np.ndarray],
) -> Subgroup:
    inside = edges[np.ix_(members, members)]
    weights = link(inside) if len(members) > 1 else np.ones(1)
    answer = weights @ rows[members]
    return Subgroup(
        tuple(members.tolist()),
        int(groups[members[0]]),
        freeze(weights),
        int(np.count_nonzero(np.triu(inside, 1))),
        float(answer.mean()),
        freeze(answer),
    )


def _choose(
    subgroups: tuple[Subgroup, ...],
    outside: np.ndarray,
    rows: np.ndarray,
    compete: bool,
    tolerance: float,
) -> tuple[Winner, np.ndarray]:
    """The subgroup with the largest mean; those that tie share the win. No group: best outlier."""
    test = None
    if subgroups:
        best = _largest([s.mean for s in subgroups], tolerance)
        members = np.concatenate([subgroups[i].members for i in best])
        weights = np.concatenate([subgroups[i].weights for i in best]) / len(best)
        of_group = np.mean([subgroups[i].scores for i in best], axis=0)
        group = Winner("group", _sorted(members), freeze(weights[np.argsort(members)]), best)
        if not compete or len(outside) == 0:
            return group, of_group
    alone = outside[list(_largest(rows[outside].mean(axis=1), tolerance))]
    answer = rows[alone].mean(axis=0)
    if subgroups:
        gain = answer.mean() - of_group.mean()
        if gain < -tolerance * np.abs([answer.mean(), of_group.mean()]).max():
            return group, of_group
        with np.errstate(divide="ignore", invalid="ignore"):
            outcome = stats.ttest_rel(answer, of_group, alternative="greater")
        test = {"statistic": float(outcome.statistic), "pvalue": float(outcome.pvalue)}
        if not outcome.pvalue < OUTLIER_LEVEL:
            return replace(group, test=test), of_group
    weights = freeze(np.full(len(alone), 1.0 / len(alone)))
    return Winner("outlier", _sorted(alone), weights, test=test), answer


def _largest(values: npt.ArrayLike, tolerance: float) -> tuple[int, ...]:
    classes = tied_classes(values, tolerance=tolerance)
    return tuple(np.flatnonzero(classes == classes.max()).tolist())


def _sorted(positions: np.ndarray) -> tuple[int, ...]:
    return tuple(np.sort(positions).tolist())


def _dropped_spaces(
    scores: Scores, screen: Screen, varying: Collection[int]
) -> tuple[Dropped, ...]:
    kept = set(screen.retained)
    found = []
    for i, name in enumerate(scores.spaces):
        if screen.adjusted is not None and i not in kept:
            p = screen.adjusted[i]
            reason = f"the dip test cannot rule out a single mode (adjusted p = {p:.3g})"
            found.append(Dropped(name, "dip", reason))
        elif i not in varying:
            found.append(Dropped(name, "constant", "it gives every clustering the same score"))
    return tuple(found)


def _notes(scores: Scores, dip: bool) -> tuple[str, ...]:
    copies: tuple[str, ...] = ()
    if scores.copies:
        n, pairs = len(scores.copies), (f"{a!r} of {b!r}" for a, b in scores.copies.items())
        copies = (f"{count(n, 'embedding')} {'is a copy' if n == 1 else 'are copies'} of another "
                  f"one and count once: {listing(pairs, most=3)}.",)  # fmt: skip
    if not dip or scores.dip is None:
        return copies
    told: dict[str, list[str]] = {}
    for name, note in zip(scores.spaces, scores.dip.notes, strict=False):
        if note:
            told.setdefault(note, []).append(repr(name))
    return copies + tuple(
        f"Dip test of {listing(names)}: {note[:1].lower()}{note[1:]}"
        for note, names in told.items()
    )
