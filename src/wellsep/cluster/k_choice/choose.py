"""Choosing the number of clusters: is there more than one, and which K do indices vote for?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from wellsep._checks.arrays import (
    check_count,
    check_data,
    check_weights,
    column_names,
    spreads_apart,
)
from wellsep._checks.values import (
    check_estimator,
    check_flag,
    check_function,
    check_items,
    check_jobs,
    check_random_state,
)
from wellsep._text.sentences import count, shown
from wellsep.cluster.fitting import (
    Fitted,
    all_equal,
    count_parameter,
    cut_rows,
    fit_each,
    given_to,
    is_pairwise,
    is_tree,
    of_distances,
    scoring_space,
    takes_distances,
    weight_params,
)
from wellsep.cluster.k_choice.evidence import (
    NO_GAP,
    InWorkers,
    Sample,
    draw_sample,
    gap_curve,
    mixture_bics,
    strengths,
)
from wellsep.cluster.k_choice.result import CRITERIA, GATE, UNTESTED, ChosenK, Curve
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.kmedoids import KMedoids
from wellsep.cluster.worker_processes import Progress, in_workers
from wellsep.distances.base import PRECOMPUTED, PairSpace
from wellsep.indices.external import ari_score
from wellsep.indices.gap import gain_over_one, within_sums
from wellsep.indices.index_names import IndexSpec, is_pair, parse_indices
from wellsep.indices.scoring import score_partitions
from wellsep.partitions import Partitions

RANGE = range(2, 16)  # tried by default, and extended once
STARTS = 10  # of the default k-means, for the partitions
HALF_STARTS, GAP_STARTS = 3, 2  # for the halves of the prediction strength, for the gap statistic
VOTERS: tuple[str, ...] = ("silhouette", "prediction_strength", "mixture_bic")


class Voter(NamedTuple):
    """What was asked to vote: a validity index with its parameters, or a criterion by name."""

    name: str
    direction: int
    spec: IndexSpec | None = None  # the index as `score_partitions` takes it; None: a criterion


def parse_voters(indices: Any, *, distances: bool = False) -> list[Voter]:
    """Voters by name, each once; where X holds distances, indices without parameters take them."""
    specs = [indices]
    if not (isinstance(indices, str) or is_pair(indices)):
        specs = check_items("indices", indices, "names or (name, parameters) pairs")
    voters: dict[str, Voter] = {}
    for spec in specs:
        name, given = spec if is_pair(spec) else (spec, {})
        if isinstance(name, str) and name in CRITERIA:
            if given:
                raise ValueError(
                    f"parameters of {name!r} must be left out, got {next(iter(given))!r}."
                )
            voters[name] = Voter(name, CRITERIA[name].direction)
            continue
        ((index, params),) = parse_indices([spec], besides=tuple(CRITERIA))
        if distances and not given and "metric" in params:
            params = index.with_params({"metric": PRECOMPUTED})
        label = index.label(params)
        voters[label] = Voter(label, index.direction, (index.name, params))
    scored = [voter.spec for voter in voters.values() if voter.spec is not None]
    if scored or not voters:
        parse_indices(scored)  # refuses none, and distances for one index, coordinates for another
    return list(voters.values())


def choose_k(
    X: Any,
    k_range: Iterable[int] | None = None,
    *,
    estimator: Any = None,
    indices: Sequence[Any] | str | None = None,
    gate: bool = True,
    n_repeats: int = 1,
    subsample: int | float | None = None,
    space: Any = None,
    parameter: str | None = None,
    sample_weight: Any = None,
    noise: str = "penalize",
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> ChosenK:
    """Find the number of clusters: is there more than one, and which K do the indices vote for?

    First the gap statistic decides whether any K is better than one cluster. If none beats
    one cluster by more than 3 standard errors, the answer is 1. Otherwise every index votes for a
    K, and the median of the votes is the answer. If an index peaks at the largest K tried, its vote
    is set aside and the default range is extended once. Distances cannot be tested by the gap
    statistic: there the answer is 1 only where three indices vote.

    Parameters
    ----------
    X : array-like of shape (n, d), Distances, or distances of shape (n, n)
        Objects; distances for `KMedoids` or an estimator with ``metric="precomputed"``.
    k_range : iterable of int, optional
        The numbers of clusters to try; (2, 10) are two numbers, range(2, 11) are nine. By default
        2 to 15, extended to 25 if an index picks 15, and never beyond n − 1, when extended
        n / 5. A range that is given is not extended.
    estimator : clusterer, optional
        Any scikit-learn clusterer or mixture, or a pipeline that ends in one; by default
        ``KMeans(n_init=10)``. An agglomerative clustering is fitted once and its tree is cut.
    indices : sequence of str or (str, dict), optional
        What votes: names from ``wellsep.INDICES``, with parameters where needed, such as
        ``("davies_bouldin", {"q": 2})``. Other names are "elbow" (inertia and its knee),
        "log_elbow" (the knee of its logarithm), "gap" (gap statistic), "prediction_strength" and
        "mixture_bic" (least BIC of Gaussian mixtures with full, tied, diagonal and spherical
        covariances). By default "silhouette", "prediction_strength" and "mixture_bic".
    gate : bool
        Whether to test for one cluster. If False, the answer is the vote alone.
    n_repeats : int
        Fits per K, each with another seed or subsample; their scores give a spread, their
        partitions a stability.
    subsample : float or int, optional
        Share or number of objects drawn for each repeat, without replacement.
    space : array-like of shape (n, d'), transformer or None
        Where partitions are scored; X by default. A pipeline that scales X is judged on unscaled
        X unless this says otherwise: ``space=StandardScaler()``.
    parameter : str, optional
        The estimator's parameter that holds K; "n_clusters" or "n_components" are found.
    sample_weight : array-like of shape (n,), optional
        Used in fitting and in scoring. Gap statistic and mixture have no weights.
    noise : {"penalize", "exclude", "cluster", "singletons", "error"}
        Objects labelled -1, -2 or -3 are left out and counted against the score ("penalize"; an
        index without a rule for them is refused), left out ("exclude"), one cluster ("cluster"), a
        cluster each ("singletons"), or refused ("error").
    random_state : int, RandomState instance or None
        Seeds the estimator, unless it is None and there is one repeat, and all that is drawn.
    n_jobs : int, optional
        Fits at a time, through joblib.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each task and after the last.

    Returns
    -------
    ChosenK
        ``best``, ``clusterer``, ``structure``, ``picks``, ``votes``, ``to_frame()``,
        ``explain()``, ``curves()``, ``save()``. ``stability(chosen.clusterer, X)`` judges the
        clustering that was chosen.

    Notes
    -----
    The gate asks for some K with (Gap(K) − Gap(1)) / s(K) > 3, with 20 references: for the K of
    the best value of the first index, and for all K where that one gains too little. Prediction
    strength is a mean over 5 splits; a K that cannot come above .8 any more is split no further.
    Gap statistic, prediction strength and mixture are computed on at most 2,000 objects. Sparse X
    is never made dense: gap statistic and mixture use its first 50 principal axes.

    References
    ----------
    Tibshirani, Walther & Hastie (2001), Journal of the Royal Statistical Society B 63, 411-423
    (gap statistic). Tibshirani & Walther (2005), Journal of Computational and Graphical
    Statistics 14, 511-528 (prediction strength).

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(200, 3, centers=4, random_state=1)
    >>> chosen = ws.choose_k(X, range(2, 8), random_state=0)
    >>> chosen.best, chosen.picks
    (4, {'silhouette': 4, 'prediction_strength': 4, 'mixture_bic': 4})
    """
    apart = isinstance(X, PairSpace)  # distances in place of coordinates
    default = KMedoids(metric=PRECOMPUTED, n_init=STARTS) if apart else KMeans(n_init=STARTS)
    model = default if estimator is None else clone(check_estimator(estimator))
    if apart:
        model = of_distances(model)
        X = given_to(model, X)
    pairwise = is_pairwise(model)
    if not apart:
        names = column_names(X)
        X = check_data(X, sparse=True, distances=pairwise)
        warning = spreads_apart(X, names)
        if warning is not None:
            warnings.warn(warning, stacklevel=2)
    n = X.shape[0]
    if n < 3:
        raise ValueError(
            f"X must have at least 3 objects to choose a number of clusters, got {n}; "
            "with fewer there is nothing to choose."
        )
    size = sample_size(subsample, n)
    ks = _check_range(k_range, size or n)
    n_repeats = check_count("n_repeats", n_repeats)
    weights = check_weights(sample_weight, n)
    check_jobs(n_jobs)
    check_flag("gate", gate)
    check_function("progress", progress)
    parameter = count_parameter(model, parameter)
    weight_params(model, weights)
    if pairwise and X.shape[1] != n:
        raise ValueError(f"X must be square for a clusterer of distances, got shape {X.shape}.")
    scored = scoring_space(space, X)
    voters = parse_voters(
        VOTERS if indices is None else indices, distances=takes_distances(model) and space is None
    )
    if scored is not X:
        scored = check_data(scored, name="space", sparse=True)
    if scored.shape[0] != n:
        raise ValueError(f"space must have one row per object ({n}), got {scored.shape[0]}.")

    rng = check_random_state(random_state)
    reseed = random_state is not None or n_repeats > 1
    rows: list[np.ndarray | None] = [None] * n_repeats
    if size is not None:
        rows = [np.sort(rng.choice(n, size, replace=False)) for _ in rows]
    seeds = rng.randint(2**31 - 1, size=n_repeats) if reseed else [None] * n_repeats
    seed = int(rng.randint(2**31 - 1))
    default_kmeans = estimator is None and not apart
    halved = KMeans(n_init=HALF_STARTS) if default_kmeans else model
    rough = KMeans(n_init=GAP_STARTS) if default_kmeans else None
    sample = draw_sample(X, halved, parameter, weights, pairwise, rng, rough=rough)
    job = Job(
        X=X,
        scored=scored,
        model=model,
        parameter=parameter,
        voters=voters,
        repeats=list(zip(rows, seeds, strict=True)),
        weights=weights,
        noise=noise,
        by_distances=pairwise and space is None,
        sample=sample,
        seed=seed,
        n_jobs=n_jobs,
        in_workers=partial(in_workers, n_jobs=n_jobs, progress=progress),
        not_tested=sample.untestable if gate else UNTESTED,
    )
    if (apart or not pairwise) and all_equal(X):  # equal similarities say nothing
        same = Fitted(None, np.zeros(size or n, dtype=np.int32), 0.0)
        return judge_fits(job, ks, [[same] * len(ks)] * n_repeats, NO_GAP, all_equal=True)
    gap_votes = any(voter.name == "gap" for voter in voters)
    testable = (gate or gap_votes) and not sample.untestable and ks[-1] > 1
    gap = NO_GAP
    if testable and gap_votes:
        gap = gap_curve(sample, ks, seed, job.in_workers)
    fits = fit_numbers(job, ks)
    chosen = judge_fits(job, ks, fits, gap)
    if not len(chosen.k):
        raise next(fit for run in fits for fit in run if isinstance(fit, Exception))
    if testable and not gap_votes:
        first = np.nan_to_num(chosen.values[0, :, 0] * chosen.directions[0], nan=-np.inf).argmax()
        for asked in ([int(chosen.k[first])], ks):  # all, if the best of the first index fails
            gap = gap_curve(sample, asked, seed, job.in_workers)
            if (gain_over_one(gap.values, gap.error) > GATE).any():
                break
        chosen = replace(chosen, gap_k=gap.k, gap=gap.values, gap_error=gap.error)
    last = min(math.ceil(5 * ks[-1] / 3), (size or n) // 5)
    more = list(range(ks[-1] + 1, last + 1)) if k_range is None else []
    if more and chosen.structure is not False and chosen.wants_more:
        if testable and gap_votes:
            gap = gap_curve(sample, [*ks, *more], seed, job.in_workers)
        chosen = _joined(chosen, judge_fits(job, more, fit_numbers(job, more), gap))
    if chosen.failures:
        warnings.warn(
            f"K = {', '.join(map(str, chosen.failures))} could not be fitted. The other "
            f"{count(len(chosen.k), 'number')} of clusters are kept. See failures for the reasons.",
            FitFailedWarning,
            stacklevel=2,
        )
    return chosen


def _joined(first: ChosenK, more: ChosenK) -> ChosenK:
    """What was found on a range and on its extension."""
    fields: dict[str, Any] = {name: getattr(more, name) for name in ("gap_k", "gap", "gap_error")}
    axes = {"k": 0, "labels": 0, "stability": 0}
    axes |= {"values": 1, "n_clusters": 1, "coverage": 1, "seconds": 1}  # repeats come first
    for name, axis in axes.items():
        fields[name] = np.concatenate([getattr(first, name), getattr(more, name)], axis=axis)
    for name in ("reasons", "failures", "clusterers"):
        fields[name] = {**getattr(first, name), **getattr(more, name)}
    return replace(first, **fields)


def _stability(rows, runs) -> np.ndarray:
    """Mean adjusted Rand index of every two repeats, on the objects both have drawn."""
    agreement = []
    for a, b in combinations(range(len(runs)), 2):
        i: Any = slice(None)
        j: Any = i
        if rows[a] is not None:
            _, i, j = np.intersect1d(rows[a], rows[b], assume_unique=True, return_indices=True)
        both = zip(runs[a], runs[b], strict=True)
        agreement.append([ari_score(first.labels[i], second.labels[j]) for first, second in both])
    return np.mean(agreement, axis=0)


def _check_range(k_range: Iterable[int] | None, n: int) -> list[int]:
    if k_range is None:
        return [k for k in RANGE if k < n]
    given = check_items("k_range", k_range, "integers, such as range(2, 11)")
    counts = [check_count("k_range", k, -1) for k in given]  # labels may be -1
    if len(counts) == n and len(set(counts)) < n:
        raise ValueError(
            f"k_range must hold numbers of clusters, got a value for each of the {n} objects; "
            "choose_k takes no labels."
        )
    ks = sorted({check_count("k_range", k, 1) for k in counts})
    if not ks or ks[-1] < 2:
        raise ValueError(f"k_range must hold a number from 2 on, got {shown(ks)}.")
    if ks[-1] > n:
        raise ValueError(f"k_range must not exceed the number of objects ({n}), got {ks[-1]}.")
    return ks


def sample_size(subsample: Any, n: int) -> int | None:
    """Objects of a subsample, from a share or a number."""
    if subsample is None:
        return None
    if isinstance(subsample, float):
        if not 0 < subsample <= 1:
            raise ValueError(f"subsample must be a share in (0, 1] or a count, got {subsample}.")
        return max(2, round(subsample * n))
    return check_count("subsample", subsample, 2, n)


# ------------------------------------------------------------------- fits and scores


class Job(NamedTuple):
    """What one call asks for, checked."""

    X: Any
    scored: Any  # where partitions are scored
    by_distances: bool  # whether these are X, and distances
    model: Any
    parameter: str
    voters: list[Voter]
    repeats: list[tuple[np.ndarray | None, Any]]  # the rows drawn, None for all, and the seed
    weights: np.ndarray | None
    noise: str
    sample: Sample
    seed: int
    n_jobs: int | None
    in_workers: InWorkers
    not_tested: str


def fit_numbers(job: Job, ks: list[int]) -> list[list[Fitted | Exception]]:
    """Fit some numbers of clusters in every repeat."""
    groups = [ks] if is_tree(job.model) else [[k] for k in ks]
    tasks: list[tuple[Any, ...]] = []
    for rows, seed in job.repeats:
        X, weights = cut_rows(job.X, rows, job.sample.pairwise), cut_rows(job.weights, rows)
        tasks += [(job.model, job.parameter, group, X, weights, seed) for group in groups]
    flat = [fitted for group in job.in_workers(fit_each, tasks, what="fits") for fitted in group]
    return [flat[start : start + len(ks)] for start in range(0, len(flat), len(ks))]


def judge_fits(
    job: Job,
    ks: list[int],
    fits: list[list[Fitted | Exception]],
    gap: Curve,
    *,
    all_equal: bool = False,
) -> ChosenK:
    """What the voters say on some numbers of clusters; one that failed in a repeat is left out."""
    first_end = ks[-1]
    failures: dict[int, str] = {}
    for k, *of_repeats in zip(ks, *fits, strict=True):
        for fit in of_repeats:
            if isinstance(fit, Exception):
                failures.setdefault(k, f"{type(fit).__name__}: {fit}")
    fitted = [i for i, k in enumerate(ks) if k not in failures]
    ks, runs = [ks[i] for i in fitted], [[cast(Fitted, run[i]) for i in fitted] for run in fits]
    rows = [rows for rows, _ in job.repeats]
    shape = (len(runs), len(ks))
    values = np.full((*shape, len(job.voters)), np.nan)
    at_one = np.full(len(job.voters), np.nan)
    n_clusters, coverage = np.ones(shape, dtype=int), np.ones(shape)
    reasons: dict[tuple[int, str], str] = {}
    if all_equal:
        reasons = {(k, voter.name): "all objects are equal" for k in ks for voter in job.voters}
    elif ks:
        n_clusters, coverage, reasons = _score(job, ks, runs, values)
        for i, (name, _, spec) in enumerate(job.voters):
            if spec is None:
                at_one[i], of_repeats, why = _criterion(name, job, ks, runs, gap)
                values[: len(of_repeats), :, i] = of_repeats
                reasons |= {(k, name): text for k, text in why.items()}
    n = job.X.shape[0] if rows[0] is None else len(rows[0])
    estimators = {k: fit.estimator for k, fit in zip(ks, runs[0], strict=True)}
    return ChosenK(
        k=np.array(ks, dtype=int),
        indices=tuple(voter.name for voter in job.voters),
        directions=np.array([voter.direction for voter in job.voters]),
        values=values,
        at_one=at_one,
        n_clusters=n_clusters,
        coverage=coverage,
        seconds=np.array([[fit.seconds for fit in run] for run in runs]),
        stability=_stability(rows, runs) if len(runs) > 1 else np.full(len(ks), np.nan),
        labels=np.array([fit.labels for fit in runs[0]] or np.empty((0, n), dtype=np.int32)),
        objects=np.arange(n) if rows[0] is None else rows[0],
        estimator=" ".join(repr(job.model).split()),
        parameter=job.parameter,
        gap_k=gap.k,
        gap=gap.values,
        gap_error=gap.error,
        not_tested=job.not_tested,
        first_end=first_end,
        n_sampled=job.sample.X.shape[0],
        skewness=job.sample.skewness,
        all_equal=all_equal,
        reasons=reasons,
        failures=failures,
        clusterers={k: model for k, model in estimators.items() if model is not None},
    )


def _score(
    job: Job, ks: list[int], runs: list[list[Fitted]], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, str], str]]:
    """Put the scores of validity indices into the table: one pass, or one per subsample."""
    asked = {i: voter.spec for i, voter in enumerate(job.voters) if voter.spec is not None}
    repeats = range(len(runs))
    groups = [list(repeats)] if job.repeats[0][0] is None else [[r] for r in repeats]
    n_clusters, coverage = np.zeros(values.shape[:2], dtype=int), np.zeros(values.shape[:2])
    reasons: dict[tuple[int, str], str] = {}
    for group in groups:
        rows, _ = job.repeats[group[0]]
        labels = {f"{r}/{k}": fit.labels for r in group for k, fit in zip(ks, runs[r], strict=True)}
        partitions = Partitions.from_labels(labels, noise=job.noise)
        n_clusters[group] = partitions.n_clusters.reshape(len(group), -1)
        coverage[group] = partitions.coverage.reshape(len(group), -1)
        if not asked:
            continue
        scores = score_partitions(
            cut_rows(job.scored, rows, job.by_distances),
            partitions,
            list(asked.values()),
            sample_weight=cut_rows(job.weights, rows),
            noise=job.noise,
            n_jobs=job.n_jobs,
        )
        place = np.ix_(group, range(len(ks)), list(asked))
        values[place] = scores.values.reshape(len(group), len(ks), -1)
        for (name, index), why in scores.reasons.items():
            reasons.setdefault((int(name.partition("/")[2]), index), why)
    return n_clusters, coverage, reasons


def _criterion(
    name: str, job: Job, ks: list[int], runs: list[list[Fitted]], gap: Curve
) -> tuple[float, np.ndarray, dict[int, str]]:
    """A criterion's value for one cluster, (1 or R, nK) its values, and why some K have none."""
    if name == "prediction_strength":
        values, why = strengths(job.sample, ks, job.seed, job.in_workers)
        return 1.0, values[None], why
    if name == "mixture_bic":
        values, why = mixture_bics(job.sample, [1, *ks], job.seed, job.in_workers)
        return values[0], values[None, 1:], why
    if name == "gap":
        by_k = dict(zip(gap.k.tolist(), gap.values.tolist(), strict=True))
        why = {k: job.sample.untestable or "too few objects" for k in ks if k not in by_k}
        return by_k.get(1, np.nan), np.array([[by_k.get(k, np.nan) for k in ks]]), why
    values = np.full((len(runs), len(ks)), np.nan)  # of the elbow
    if job.by_distances:
        return np.nan, values, dict.fromkeys(ks, "X holds distances, not coordinates")
    totals, why = [], {}
    for r, run in enumerate(runs):
        rows, _ = job.repeats[r]
        X = cut_rows(job.scored, rows)
        labels = [np.zeros(X.shape[0], dtype=int), *(fit.labels for fit in run)]
        noisy = [i for i, fit in enumerate(run) if (np.asarray(fit.labels) < 0).any()]
        why |= {ks[i]: "noise has no inertia" for i in noisy}
        sums = within_sums(X, labels, cut_rows(job.weights, rows))
        totals.append(sums[0])
        values[r] = sums[1:]
        values[r, noisy] = np.nan
    return float(np.mean(totals)), values, why
