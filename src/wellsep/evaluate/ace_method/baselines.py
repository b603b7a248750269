"""Simple baselines: own-space, mean and input scores, and the two steps they share with ACE.

All scores here are turned so that larger is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.values import check_flag, check_kind
from wellsep._text.sentences import shown
from wellsep.evaluate.options import Ace
from wellsep.evaluate.scores import NothingToRank, Scores
from wellsep.indices import score_partitions
from wellsep.indices.index_names import parse_indices
from wellsep.partitions import Classes, Partitions
from wellsep.runs import Runs
from wellsep.spaces import holm


class Passed(NamedTuple):
    """Outcome of the dip test over all spaces."""

    kept: np.ndarray  # positions of the spaces that stay
    adjusted: np.ndarray | None  # (L,) Holm-adjusted p-values, NaN where the test is undefined
    none_passed: bool


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


def passing_spaces(scores: Scores, *, dip: bool, alpha: float) -> Passed:
    """Spaces that Holm rejects as unimodal at `alpha`, and those whose test is undefined."""
    if not dip:
        return Passed(np.arange(len(scores.spaces)), None, False)
    if scores.dip is None:
        raise ValueError(
            "scores must carry dip p-values for dip=True, got none; "
            "score the runs with dip=True or choose dip=False."
        )
    return admit(np.asarray(scores.dip.pvalue, dtype=float), alpha)


def admit(pvalue: np.ndarray, alpha: float) -> Passed:
    """The spaces that these (L,) p-values of the dip test leave."""
    everything = np.arange(len(pvalue))
    tested = ~np.isnan(pvalue)
    adjusted = np.full(len(pvalue), np.nan)
    if not tested.any():
        return Passed(everything, adjusted, False)
    outcome = holm(pvalue[tested], alpha)
    adjusted[tested] = outcome.adjusted
    if not outcome.reject.any():
        return Passed(everything, adjusted, True)
    stays = ~tested
    stays[tested] = outcome.reject
    return Passed(np.flatnonzero(stays), adjusted, False)


def own_space_scores(scores: Scores, *, index: str | None = None) -> np.ndarray:
    """Return the score of every partition in the space it was made in, larger is better.

    An undefined score counts as the smallest of all scores.

    Parameters
    ----------
    scores : Scores
        From :func:`wellsep.score_runs`.
    index : str, optional
        The first of `scores` by default.

    Returns
    -------
    ndarray of shape (M,)

    Examples
    --------
    >>> from wellsep.evaluate import Scores, own_space_scores
    >>> own_space_scores(Scores.from_matrix([[0.2, 0.5], [0.1, 0.4]]))
    array([0.2, 0.4])
    """
    check_kind("scores", scores, Scores, "make them with score_runs")
    if not scores.is_paired:
        alone = scores.partitions[int(np.flatnonzero(scores.made_in < 0)[0])]
        raise ValueError(
            f"Clustering {alone!r} has no embedding of its own, so it has no own-space score. "
            "Use mean_scores or ace."
        )
    matrix, _ = fill_undefined(scores, scores.check_index(index), "worst")
    return own_space_means(matrix, scores.made_in, Classes.all_differ(scores.partitions))


def own_space_means(matrix: np.ndarray, made_in: np.ndarray, classes: Classes) -> np.ndarray:
    """(D,) mean of the (L, D) scores over the spaces that each partition was made in."""
    of, spaces = np.unique(np.stack([classes.of, made_in]), axis=1)
    means: np.ndarray = np.bincount(of, matrix[spaces, of]) / np.bincount(of)
    return means


def mean_scores(scores: Scores, *, index: str | None = None, dip: bool = True) -> np.ndarray:
    """Return the mean score of every partition over the spaces that the dip test admits.

    The level of the test over all spaces is .05, corrected by Holm. An undefined score counts as
    the smallest of all scores.

    Parameters
    ----------
    scores : Scores
        From :func:`wellsep.score_runs`.
    index : str, optional
        The first of `scores` by default.
    dip : bool
        False: the mean over all spaces.

    Returns
    -------
    ndarray of shape (M,), larger is better

    Examples
    --------
    >>> from wellsep.evaluate import Scores, mean_scores
    >>> mean_scores(Scores.from_matrix([[0.25, 0.5], [0.75, 1.0]]), dip=False)
    array([0.5 , 0.75])
    """
    check_kind("scores", scores, Scores, "make them with score_runs")
    matrix, _ = fill_undefined(scores, scores.check_index(index), "worst")
    passed = passing_spaces(scores, dip=check_flag("dip", dip), alpha=Ace().dip_alpha)
    means: np.ndarray = matrix[passed.kept].mean(axis=0)
    return means


def input_scores(
    X: Any, runs: Any, *, index: Any = "silhouette", noise: str = "penalize"
) -> np.ndarray:
    """Return the score of every partition in the data that the runs were made from.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The data that the runs were made from.
    runs : Runs, or a mapping of names to label vectors
        The runs that were scored.
    index : str or (str, dict)
        A name from ``wellsep.INDICES``, alone or with options.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. "exclude": such objects are not counted.
        "penalize": they are not counted and lower the score. "cluster": they are one cluster.
        "singletons": each is a cluster. "error": they are refused.

    Returns
    -------
    ndarray of shape (M,), larger is better, NaN where undefined

    Examples
    --------
    >>> from wellsep.evaluate import input_scores
    >>> X = [[0.0, 0], [0, 1], [5, 0], [5, 1]]
    >>> input_scores(X, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]}).round(3)
    array([ 0.802, -0.39 ])
    """
    partitions = Partitions.from_labels(dict(partitions_of(runs)), noise=noise)
    parse_indices((index,), what="index")
    return oriented_scores(X, partitions, index)


def partitions_of(runs: Any) -> Mapping[str, Any]:
    """The labels of some runs by name, or a mapping that holds them already."""
    labels = runs.partitions if isinstance(runs, Runs) else runs
    if not isinstance(labels, Mapping):
        raise TypeError(f"runs must be Runs or labels by name, got {shown(runs)}.")
    return labels


def oriented_scores(X: Any, partitions: Partitions, index: Any, **options: Any) -> np.ndarray:
    """(M,) scores of encoded partitions in one space, larger is better."""
    result = score_partitions(X, partitions, (index,), **options)
    turned: np.ndarray = np.asarray(result.values[:, 0], dtype=float) * result.directions[0]
    return turned
