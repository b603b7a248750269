"""Choosing the number of clusters: is there more than one, and which K do indices vote for?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

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
    check_flag,
    check_function,
    check_items,
    check_jobs,
    check_random_state,
)
from wellsep._text.sentences import count, shown
from wellsep.cluster.fitting import (
    check_estimator,
    count_parameter,
    last_step,
    prefix_of,
    scoring_space,
    weight_params,
)
from wellsep.cluster.k_choice.criteria import VOTERS, parse_voters
from wellsep.cluster.k_choice.evidence import (
    NO_GAP,
    GapCurve,
    all_equal,
    draw_sample,
    given_to,
    is_pairwise,
    of_distances,
    takes_distances,
)
from wellsep.cluster.k_choice.fits_and_scores import Job, Tried, equal_objects, gap_of, try_numbers
from wellsep.cluster.k_choice.result import ChosenK
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.kmedoids import KMedoids
from wellsep.cluster.worker_processes import Progress
from wellsep.compute.metrics.table import PRECOMPUTED
from wellsep.distances.base import PairSpace
from wellsep.indices.external import ari_score

RANGE = range(2, 16)  # tried by default, and extended once
STARTS = 10  # of the default k-means, for the partitions
HALF_STARTS, GAP_STARTS = 3, 2  # for the halves of the prediction strength, for the gap statistic


def choose_k(
    X: Any,
    k_range: Iterable[int] | None = None,
    *,
    estimator: Any = None,
    indices: Sequence[Any] | str | None = None,
    gate: bool = True,
    n_repeats: int = 1,
    subsample: int | float | None = None,
    warm_start: bool = False,
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
    K, and the median of the votes is the answer. An index that picks the largest K tried has no
    vote, but wants more: the default range is then extended once.

    Parameters
    ----------
    X : array-like of shape (n, d), Distances, or distances of shape (n, n)
        Objects; distances for `KMedoids` or an estimator with ``metric="precomputed"``.
    k_range : iterable of int, optional
        The numbers of clusters to try. By default 2 to 15, extended to 25 if an index wants more,
        and never beyond n − 1, when extended n / 5. A range that is given is not extended.
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
        Used in fitting and in scoring. Gap statistic and mixture have no weights.
    noise : {"penalize", "exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. "penalize": such objects are not counted and lower
        the score; an index that has no price for them is refused. "exclude": they are not
        counted. "cluster": they are one cluster. "singletons": each is a cluster. "error": they
        are refused.
    random_state : int, RandomState instance or None
        Seeds the estimator, unless it is None and there is one repeat, and all that is drawn.
    n_jobs : int, optional
        Fits at a time, through joblib.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each task and after the last.

    Returns
    -------
    ChosenK
        ``best``, ``structure``, ``picks``, ``votes``, ``to_frame()``, ``explain()``, ``curves()``,
        ``save()``.

    Notes
    -----
    The gate asks for max over K of (Gap(K) − Gap(1)) / s(K) > 3, with 20 references. Gap
    statistic, prediction strength and mixture are computed on at most 2,000 objects. Sparse X is
    never made dense: gap statistic and mixture see its first 50 principal axes.

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
    X = given_to(model, X) if apart else _checked(X, distances=is_pairwise(model))
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
    check_flag("warm_start", warm_start)
    check_function("progress", progress)
    parameter = count_parameter(model, parameter)
    weight_params(model, weights)
    if warm_start:
        _check_warm(model)
    pairwise = is_pairwise(model)
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
    rows = [_draw(n, size, rng) for _ in range(n_repeats)]
    seeds = rng.randint(2**31 - 1, size=n_repeats) if reseed else [None] * n_repeats
    seed = int(rng.randint(2**31 - 1))
    own = estimator is None and not apart
    halved = KMeans(n_init=HALF_STARTS) if own else model
    rough = KMeans(n_init=GAP_STARTS) if own else None
    job = Job(
        X=X,
        scored=scored,
        model=model,
        parameter=parameter,
        voters=voters,
        rows=rows,
        seeds=list(seeds),
        weights=weights,
        noise=noise,
        warm=warm_start,
        pairwise=pairwise,
        square_space=space is None and X.shape[0] == X.shape[1],
        sample=draw_sample(X, halved, parameter, weights, pairwise, rng, rough=rough),
        gate=gate,
        seed=seed,
        n_jobs=n_jobs,
        progress=progress,
    )
    if (apart or not pairwise) and all_equal(X):  # equal similarities say nothing
        return _record(job, [equal_objects(job, ks)], NO_GAP, ks[-1], all_equal=True)
    gap = gap_of(job, ks)
    parts = [try_numbers(job, ks, gap)]
    if not parts[0].ks:
        raise parts[0].errors[0]
    chosen = _record(job, parts, gap, ks[-1])
    more = _more(ks[-1], n if size is None else size) if k_range is None else []
    if more and chosen.structure is not False and chosen.wants_more:
        wider = gap_of(job, [*ks, *more]) if "gap" in chosen.indices else gap
        parts.append(try_numbers(job, more, wider))
        chosen = _record(job, parts, wider, ks[-1])
    if chosen.failures:
        warnings.warn(
            f"K = {', '.join(map(str, chosen.failures))} could not be fitted. The other "
            f"{count(len(chosen.k), 'number')} of clusters are kept. See failures for the reasons.",
            FitFailedWarning,
            stacklevel=2,
        )
    return chosen


def _more(end: int, n: int) -> list[int]:
    """The numbers of clusters by which a range is extended."""
    return list(range(end + 1, min(math.ceil(5 * end / 3), n // 5) + 1))


def _record(
    job: Job, parts: list[Tried], gap: GapCurve, first_end: int, *, all_equal: bool = False
) -> ChosenK:
    runs = [[one for part in parts for one in part.runs[r]] for r in range(len(job.rows))]
    untested = "" if job.gate else "gate=False"
    return ChosenK(
        k=np.array([k for part in parts for k in part.ks]),
        indices=tuple(voter.name for voter in job.voters),
        directions=np.array([voter.direction for voter in job.voters]),
        values=np.concatenate([part.values for part in parts], axis=1),
        at_one=parts[0].at_one,
        n_clusters=np.concatenate([part.n_clusters for part in parts], axis=1),
        coverage=np.concatenate([part.coverage for part in parts], axis=1),
        seconds=np.array([[fitted.seconds for fitted in run] for run in runs]),
        stability=_stability(job.rows, runs),
        labels=np.stack([fitted.labels for fitted in runs[0]]),
        objects=np.arange(job.X.shape[0]) if job.rows[0] is None else job.rows[0],
        estimator=" ".join(repr(job.model).split()),
        parameter=job.parameter,
        gap_k=gap.k,
        gap=gap.gap,
        gap_error=gap.error,
        not_tested=untested or job.sample.untestable,
        first_end=first_end,
        n_sampled=job.sample.n,
        skewness=job.sample.skewness,
        all_equal=all_equal,
        reasons={key: why for part in parts for key, why in part.reasons.items()},
        failures={k: why for part in parts for k, why in part.failures.items()},
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


def _checked(X: Any, *, distances: bool) -> Any:
    """X as an array that rows can be taken from; frames keep no names here."""
    names = column_names(X)
    X = check_data(X, sparse=True, distances=distances)
    warning = spreads_apart(X, names)
    if warning is not None:
        warnings.warn(warning, stacklevel=3)
    return X


def _check_range(k_range: Iterable[int] | None, n: int) -> list[int]:
    if k_range is None:
        return [k for k in RANGE if k < n]
    given = check_items("k_range", k_range, "integers")
    if len(given) == n and len(set(given)) < n:
        raise ValueError(
            f"k_range must hold numbers of clusters, got a value for each of the {n} objects; "
            "choose_k takes no labels."
        )
    ks = sorted({check_count("k_range", k, 1) for k in given})
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


def _draw(n: int, size: int | None, rng: np.random.RandomState) -> np.ndarray | None:
    return None if size is None else np.sort(rng.choice(n, size, replace=False))


def _check_warm(model: Any) -> None:
    if f"{prefix_of(model)}init" not in model.get_params():
        raise ValueError(
            "warm_start must be False for an estimator without init, "
            f"got {type(last_step(model)).__name__}."
        )
