"""Consensus: rank partitions by how far the others agree with them; no embedding is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_numbers
from wellsep._files.records import freeze
from wellsep._text.sentences import count, shown
from wellsep.compute.statistics.contingency import Counted, count_labels
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.groups import TIE
from wellsep.evaluate.options import Computing, VoteOptions
from wellsep.evaluate.scores import NothingToRank
from wellsep.evaluate.vote import answer as weighing
from wellsep.evaluate.vote.answer import Consensus, mean_agreement, vote_weights
from wellsep.indices.external import AGREEMENTS
from wellsep.partitions import Classes, Partitions
from wellsep.runs import Runs

# Plain consensus beside other judges: name → agreement.
VOTES = {"plain_consensus": "ari", "plain_consensus_nmi": "nmi"}


def consensus(
    runs: Any,
    *,
    first_judge: Any = None,
    agreement: str = "ari",
    noise: str = "cluster",
    tie_tolerance: float = TIE,
    device: Any = None,
    n_jobs: int | None = None,
) -> Consensus:
    """Rank partitions by how far the others agree with them; labels alone suffice.

    The score of a partition is its mean agreement with the other distinct partitions, weighted by
    what a first judge thinks of them. No partition votes for itself, equal partitions have one
    vote, and near copies (an agreement of at least .9) share one. All can be wrong together, and
    agreement sees no number of clusters beyond those that were tried.

    Parameters
    ----------
    runs : Runs, mapping of names to label vectors, data frame, or array of shape (M, n)
        Each column of a frame and each row of an array is a partition. Vectors may be on a GPU or
        on Dask, where they are counted without being gathered.
    first_judge : mapping of names to scores, or array of shape (M,), optional
        Whose favourites weigh more: a vote weighs by the squared rank of its partition (worst 1,
        best D², ties share). Larger scores are better, an array has them in the order of the
        runs. By default all weigh the same. The scores of :func:`wellsep.ace` or of another
        consensus are its ``scores``.
    agreement : {"ari", "ami", "nmi"}
        How two partitions are compared. "nmi" favours many clusters: use it beside the others.
    noise : {"cluster", "singletons"}
        What the label -1 means: one more cluster, or each such object a cluster of its own (not
        with "nmi", which would reward it).
    tie_tolerance : float
        Relative difference under which two scores are equal.
    device : str, optional
        "cuda" counts on the GPU through PyTorch, as labels that are CUDA tensors are.
    n_jobs : int, optional
        Threads that count; by default as many as BLAS would use. The result does not depend on it.

    Returns
    -------
    Consensus

    Raises
    ------
    NothingToRank
        With fewer than two distinct partitions.

    References
    ----------
    Hubert, Arabie (1985), "Comparing partitions", Journal of Classification 2.
    Vinh, Epps, Bailey (2010), "Information theoretic measures for clusterings comparison",
    Journal of Machine Learning Research 11. Strehl, Ghosh (2002), "Cluster ensembles", same
    journal 3, rank partitions by their mean NMI with the others.

    Examples
    --------
    >>> import wellsep as ws
    >>> found = ws.consensus({"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 1, 1, 2, 2],
    ...                       "c": [0, 0, 0, 0, 1, 1], "copy of a": [5, 5, 5, 2, 2, 2]})
    >>> found.best, found.scores.round(4).tolist()
    ('c', [0.2834, 0.3434, 0.3844, 0.2834])
    >>> found.classes.members
    (('a', 'copy of a'), ('b',), ('c',))
    """
    options = VoteOptions(agreement=agreement, noise=noise, tie_tolerance=tie_tolerance)
    computing = Computing(device=device, n_jobs=n_jobs)
    counted = count_labels(
        labels_of(runs), noise=noise, device=computing.device, n_jobs=computing.n_jobs
    )
    classes = counted.distinct
    refuse_too_few(classes)
    if first_judge is None:
        return hold_vote(counted, classes, options)
    given = _first_scores(first_judge, counted.names)
    return hold_vote(counted, classes, options, "given", given)


def plain_votes(counted: Counted, classes: Classes) -> dict[str, Consensus]:
    """Consensus without a first judge, by agreement; none if there is one partition only.

    Equal partitions count once, and near copies share a vote.
    """
    if len(classes) == 1:
        return {}
    return {m: hold_vote(counted, classes, VoteOptions(agreement=m)) for m in VOTES.values()}


def vote_by_ace(counted: Counted, by_ace: AceResult) -> Consensus:
    """The vote that ACE weighs: agreement by ARI, squared ranks, near copies share a vote."""
    options = VoteOptions(tie_tolerance=by_ace.options.tie_tolerance)
    return hold_vote(counted, by_ace.classes, options, "ace", by_ace.scores)


def hold_vote(
    counted: Counted,
    classes: Classes,
    options: VoteOptions,
    first_judge: str = "none",
    first_scores: np.ndarray | None = None,
) -> Consensus:
    """Let counted partitions vote; a single distinct one agrees wholly with itself."""
    agreement = AGREEMENTS[options.agreement](counted.counts.subset(classes.first))
    liked = None
    if first_scores is not None:
        liked = np.bincount(classes.of, first_scores) / classes.sizes
    weights = vote_weights(liked, agreement, options.tie_tolerance)
    several = len(classes) > 1
    return Consensus(
        classes=classes,
        distinct_scores=freeze(mean_agreement(agreement, weights) if several else np.ones(1)),
        options=options,
        agreement=freeze(agreement),
        weights=freeze(weights),
        first_judge=first_judge,
        first_scores=first_scores,
        n_objects=counted.counts.n,
        n_clusters=freeze(counted.n_clusters),
        coverage=freeze(counted.coverage),
        reasons=_reasons(counted, classes, weights) if several else {},
        notes=tuple(_notes(classes, agreement)) if several else (),
    )


def labels_of(runs: Any) -> Any:
    """Labels of runs, or what holds labels already; refuses arrays that lie the wrong way."""
    if isinstance(runs, Runs):
        labels = dict(runs.partitions)
        if not labels:
            raise NothingToRank("There must be at least 2 partitions (labels), got none.")
        return labels
    shape = getattr(runs, "shape", ())
    shape = shape if isinstance(shape, tuple) else ()
    frame = hasattr(runs, "columns")
    if not isinstance(runs, Mapping | list | tuple | Partitions) and len(shape) != 2:
        raise TypeError(
            "runs must be Runs, label vectors by name, a data frame, or an array with a row per "
            f"partition, got {shown(runs)}."
        )
    if len(shape) == 2 and not frame and shape[0] > 1000 and shape[0] > shape[1]:
        raise ValueError(
            f"runs must have one row per partition, got {shape[0]:,} rows of {shape[1]:,} objects; "
            "transpose the array, or pass a data frame with a column per partition."
        )
    return dict(runs) if isinstance(runs, Mapping) else runs


def refuse_too_few(classes: Classes) -> None:
    """Refuse one partition, also if there are copies of it."""
    n = len(classes.names)
    if n == 1:
        raise NothingToRank(
            "There must be at least 2 partitions to compare, got 1 "
            f"({classes.names[0]!r}); add runs."
        )
    if len(classes) == 1:
        raise NothingToRank(
            f"The partitions are identical: all {n} runs are the same partition, "
            "whatever their clusters are called; add runs that differ."
        )


def _first_scores(given: Any, names: tuple[str, ...]) -> np.ndarray:
    """(M,) the scores that weigh the votes, checked; by name or in the order of the partitions."""
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(
                f"first_judge must have a score for every partition, got none for {missing[0]!r}."
            )
        given = [given[name] for name in names]
    scores = check_numbers("first_judge", given)
    if scores.shape != (len(names),):
        raise ValueError(
            f"first_judge must have one score per partition ({len(names)}), "
            f"got shape {scores.shape}."
        )
    if not np.isfinite(scores).all():
        where = names[int(np.flatnonzero(~np.isfinite(scores))[0])]
        raise ValueError(f"first_judge must have finite scores, got none for {where!r}.")
    return freeze(scores, float)


def _reasons(counted: Counted, classes: Classes, weights: np.ndarray) -> dict[str, str]:
    found = {}
    for m, name in enumerate(counted.names):
        if counted.coverage[m] == 0:
            found[name] = "It calls every object noise, so it tells no objects apart."
        elif len(counted.counts.sizes[m]) == 1:
            found[name] = "It has one cluster, so it tells no objects apart."
        elif not np.delete(weights, classes.of[m]).any():
            found[name] = "No other partition has a vote."
    return found


def _notes(classes: Classes, agreement: np.ndarray) -> Iterator[str]:
    n, distinct = len(classes.names), len(classes)
    if distinct < n:
        yield (
            f"{count(n - distinct, 'run')} of {n} "
            f"{'equals' if n - distinct == 1 else 'equal'} another one; equal partitions "
            f"have one vote, so {distinct} vote."
        )
    if distinct == 2:
        yield (
            "There are two different partitions only. Each is compared with the other, "
            "so both have the same score: no ranking is possible."
        )
    close = int(((agreement >= weighing.NEAR).sum(axis=1) > 1).sum())
    if close:
        yield (
            f"{close} of {distinct} partitions agree with another one by at least "
            f"{weighing.NEAR:g}; such near copies share a vote."
        )
