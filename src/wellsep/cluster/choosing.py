"""Choosing the number of clusters: fit every K, score all at once, let the indices vote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from wellsep._arguments import check_flag, check_items, check_jobs, check_random_state
from wellsep._checks import (
    check_count,
    check_data,
    check_weights,
    is_frame,
    to_numpy,
)
from wellsep.cluster.candidates import (
    Fitted,
    check_estimator,
    count_parameter,
    fit_labels,
    fit_tree,
    grown_start,
    is_tree,
    last_step,
    prefix_of,
    scoring_space,
    seeded,
    weight_params,
)
from wellsep.cluster.chosen import ChosenK
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.workers import ending_with_parent
from wellsep.indices.external import ari_score
from wellsep.indices.partition_scores import PartitionScores
from wellsep.indices.scoring import score_partitions
from wellsep.indices.specs import DEFAULT_INDICES, parse_indices


def choose_k(
    X: Any,
    k_range: Iterable[int] = range(2, 13),
    *,
    estimator: Any = None,
    indices: Sequence[Any] | str = DEFAULT_INDICES,
    n_repeats: int = 1,
    subsample: int | float | None = None,
    warm_start: bool = False,
    space: Any = None,
    parameter: str | None = None,
    sample_weight: Any = None,
    noise: str = "priced",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> ChosenK:
    """Fit a clusterer for every K, score all partitions by all indices, and let them vote.

    Each index picks the K where its mean score is best and has one vote, shared out over the
    repeats. An agglomerative clustering is fitted once and its tree is cut at every K.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Objects.
    k_range : iterable of int
        The numbers of clusters to try.
    estimator : clusterer, optional
        Any scikit-learn clusterer or mixture, or a pipeline that ends in one; by default
        ``KMeans(n_init=10)``.
    indices : sequence of str or (str, dict)
        As in ``score_partitions``.
    n_repeats : int
        Fits per K, each with another seed or subsample; their scores give a spread, their
        partitions a stability.
    subsample : float or int, optional
        Share or number of objects drawn anew, without replacement, for each repeat.
    warm_start : bool
        Start each K from the centres found for the K before and far rows added to them (greedy
        k-means++). Faster than restarts, and the sum of squares falls with K; but an early bad
        choice lives on. For estimators with ``init`` and ``cluster_centers_``.
    space : array-like of shape (n, d'), transformer or None
        Where partitions are scored; X by default. A pipeline that scales X is judged on unscaled
        X unless this says otherwise: ``space=StandardScaler()``.
    parameter : str, optional
        The estimator's parameter that holds K; "n_clusters" or "n_components" are found.
    sample_weight : array-like of shape (n,), optional
        Used in fitting and in scoring.
    noise : {"priced", "exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means, as in ``score_partitions``. By default noise
        lowers the score, and an index that has no price for it is refused where a partition has
        noise.
    random_state : int, RandomState instance or None
        Seeds the estimator, unless it is None and there is one repeat, and the subsamples.
    n_jobs : int, optional
        Fits at a time, through joblib.

    Returns
    -------
    ChosenK
        ``best``, ``picks``, ``votes``, ``to_frame()``, ``explain()``, ``curves()``, ``save()``.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(200, 3, centers=4, random_state=1)
    >>> chosen = ws.choose_k(X, range(2, 8), indices=["silhouette", "cfq"], random_state=0)
    >>> chosen.best, chosen.picks
    (4, {'silhouette': 4, 'cfq': 4})
    """
    X = _checked(X)
    n = X.shape[0]
    size = _sample_size(subsample, n)
    ks = _check_range(k_range, size or n)
    parse_indices(indices)
    n_repeats = check_count("n_repeats", n_repeats)
    weights = check_weights(sample_weight, n)
    check_jobs(n_jobs)
    check_flag("warm_start", warm_start)
    model = KMeans(n_init=10) if estimator is None else clone(check_estimator(estimator))
    parameter = count_parameter(model, parameter)
    if warm_start:
        _check_warm(model)
    scored = scoring_space(space, X)
    if scored is not X:
        scored = check_data(scored, name="space", sparse=True)
    if scored.shape[0] != n:
        raise ValueError(f"space must have one row per object ({n}), got {scored.shape[0]}.")

    rng = check_random_state(random_state)
    reseed = random_state is not None or n_repeats > 1
    rows = [_draw(n, size, rng) for _ in range(n_repeats)]
    seeds = rng.randint(2**31 - 1, size=n_repeats) if reseed else [None] * n_repeats
    together = warm_start or is_tree(model)
    jobs = [
        (repeat, group)
        for repeat in range(n_repeats)
        for group in ([ks] if together else [[k] for k in ks])
    ]
    fit = ending_with_parent(_fit)
    fits = Parallel(n_jobs=n_jobs)(
        delayed(fit)(model, parameter, group, X, rows[r], weights, seeds[r], warm_start)
        for r, group in jobs
    )
    flat = [fitted for group in fits for fitted in group]
    runs = [flat[r * len(ks) : (r + 1) * len(ks)] for r in range(n_repeats)]
    scores = _score(scored, rows, runs, ks, indices, weights, noise, n_jobs)
    return _record(model, parameter, ks, rows, runs, scores)


def _fit(model, parameter, ks, X, rows, weights, seed, warm) -> list[Fitted]:
    """Fit one repeat for some K, naming the K that fails."""
    data = X if rows is None else X[rows]
    own = weights if rows is None or weights is None else weights[rows]
    model = clone(model) if seed is None else seeded(clone(model), int(seed))
    params = weight_params(model, own)
    if is_tree(model):
        return fit_tree(model, parameter, ks, data, params)
    found: list[Fitted] = []
    before = None
    for k in ks:
        candidate = clone(model).set_params(**{parameter: k})
        if warm and before is not None:
            start = grown_start(before, k, data, check_random_state(seed))
            candidate.set_params(**{f"{prefix_of(model)}init": start})
        try:
            fitted = fit_labels(candidate, data, params)
        except Exception as error:
            error.add_note(f"while fitting {parameter} = {k}")
            raise
        before = fitted.estimator if warm else None
        found.append(fitted._replace(estimator=None))
    return found


def _score(space, rows, runs, ks, indices, weights, noise, n_jobs) -> list[PartitionScores]:
    """Scores of all partitions: one pass over the space, or one per subsample."""
    options = {"indices": indices, "noise": noise, "n_jobs": n_jobs}
    if rows[0] is None:
        labels = {
            f"{r}/{k}": fitted.labels
            for r, run in enumerate(runs)
            for k, fitted in zip(ks, run, strict=True)
        }
        return [score_partitions(space, labels, sample_weight=weights, **options)]
    return [
        score_partitions(
            space[chosen],
            {f"{r}/{k}": fitted.labels for k, fitted in zip(ks, run, strict=True)},
            sample_weight=None if weights is None else weights[chosen],
            **options,
        )
        for r, (chosen, run) in enumerate(zip(rows, runs, strict=True))
    ]


def _record(model, parameter, ks, rows, runs, scores) -> ChosenK:
    shape = (len(runs), len(ks))
    reasons: dict[tuple[int, str], str] = {}
    for one in scores:
        for (name, index), why in one.reasons.items():
            reasons.setdefault((int(name.partition("/")[2]), index), why)
    return ChosenK(
        k=np.array(ks),
        indices=scores[0].indices,
        directions=scores[0].directions,
        values=np.concatenate([one.values for one in scores]).reshape(*shape, -1),
        n_clusters=np.concatenate([one.n_clusters for one in scores]).reshape(shape),
        coverage=np.concatenate([one.coverage for one in scores]).reshape(shape),
        seconds=np.array([[fitted.seconds for fitted in run] for run in runs]),
        stability=_stability(rows, runs),
        labels=np.stack([fitted.labels for fitted in runs[0]]),
        objects=np.arange(len(runs[0][0].labels)) if rows[0] is None else rows[0],
        estimator=" ".join(repr(model).split()),
        parameter=parameter,
        reasons=reasons,
    )


def _stability(rows, runs) -> np.ndarray:
    """Mean adjusted Rand index of every two repeats, on the objects both have drawn."""
    found = np.full(len(runs[0]), np.nan)
    if len(runs) == 1:
        return found
    pairs = [(a, b, *_common(rows[a], rows[b])) for a, b in combinations(range(len(runs)), 2)]
    for position in range(len(found)):
        found[position] = np.mean(
            [
                ari_score(runs[a][position].labels[i], runs[b][position].labels[j])
                for a, b, i, j in pairs
            ]
        )
    return found


def _common(first, second):
    if first is None:
        return slice(None), slice(None)
    _, i, j = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    return i, j


def _checked(X: Any) -> Any:
    """X as an array that rows can be taken from; frames keep no names here."""
    X = check_data(X, sparse=True)
    return to_numpy(X) if is_frame(X) else X


def _check_range(k_range: Iterable[int], n: int) -> list[int]:
    ks = sorted({check_count("k_range", k, 1) for k in check_items("k_range", k_range, "integers")})
    if not ks:
        raise ValueError("k_range must hold at least one number, got none.")
    if ks[-1] > n:
        raise ValueError(f"k_range must not exceed the number of objects ({n}), got {ks[-1]}.")
    return ks


def _sample_size(subsample: Any, n: int) -> int | None:
    if subsample is None:
        return None
    if isinstance(subsample, float):
        if not 0 < subsample <= 1:
            raise ValueError(f"subsample must be a share in (0, 1] or a count, got {subsample}.")
        return max(2, round(subsample * n))
    return check_count("subsample", subsample, 2, n)


def _draw(n: int, size: int | None, rng: np.random.RandomState) -> np.ndarray | None:
    return None if size is None else np.sort(rng.choice(n, size, replace=False))


def _check_warm(model: Any) -> None:
    if f"{prefix_of(model)}init" not in model.get_params():
        raise ValueError(
            "warm_start must be False for an estimator without init, "
            f"got {type(last_step(model)).__name__}."
        )
