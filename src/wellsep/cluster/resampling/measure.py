"""Stability of one clustering: draw objects anew, cluster them, see which clusters come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_data,
    check_weights,
    is_frame,
    is_torch,
    to_numpy,
)
from wellsep._checks.labels import NOISE, in_order_of
from wellsep._checks.values import (
    check_estimator,
    check_function,
    check_jobs,
    check_random_state,
    check_text,
)
from wellsep._text.sentences import count
from wellsep.cluster.fitting import (
    all_equal,
    fit_labels,
    given_to,
    is_pairwise,
    last_step,
    metric_of,
    of_distances,
    prefix_of,
    seeded,
    takes_distances,
    weight_params,
)
from wellsep.cluster.k_choice.choose import STARTS, sample_size
from wellsep.cluster.k_choice.prediction_strength import draw_halves
from wellsep.cluster.resampling.one_draw import (
    Refit,
    draw_rows,
    judge_draw,
    judge_stand_in,
    strengths_of,
)
from wellsep.cluster.resampling.result import Stability
from wellsep.cluster.worker_processes import Progress, in_workers
from wellsep.distances.base import PRECOMPUTED, PairSpace
from wellsep.partitions import Partitions, encode

STAND_INS = ("nearest-neighbours", "nearest-mean")
_ORDER = "; the clusterer goes first, and finished labels third: stability(None, X, labels)"


def stability(
    clusterer: Any,
    X: Any,
    labels: Any = None,
    *,
    n_draws: int = 50,
    subsample: int | float | None = None,
    n_splits: int = 10,
    stand_in: str = "nearest-neighbours",
    n_neighbors: int = 5,
    metric: str | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Stability:
    """Measure how often each cluster is found again in random samples of the objects.

    For a cluster A and a sample S with the clusters B, its value is the largest Jaccard similarity
    ``|A∩S ∩ B| / |A∩S ∪ B|``, 0 if A∩S is empty. The mean over the samples is the stability of the
    cluster, from 0 to 1, greater is better. A cluster *dissolves* in a sample where its value is at
    most .5 and is *recovered* where it is above .75. These are the definitions of ``clusterboot``
    in R's fpc.

    Parameters
    ----------
    clusterer : clusterer or None
        Any scikit-learn clusterer or mixture, or a pipeline that ends in one. With None the
        ``labels`` are judged by a stand-in. Of a k-means with ``n_init="auto"`` ten starts are
        made, as `choose_k` does.
    X : array-like or sparse matrix of shape (n, d), or distances of shape (n, n)
        Objects. Distances are cut by rows and columns; the clusterer's own "precomputed" or
        ``metric="precomputed"`` says that X holds them. So are similarities, without prediction
        strength. `Distances` and `MixedTable` go with ``KMedoids``, with a clusterer of distances,
        or with finished labels.
    labels : array-like of shape (n,), optional
        The clustering to judge; by default what the clusterer finds in all of X. Noise (-1, -2,
        -3) is no cluster.
    n_draws : int
        Samples. The mean of a cluster is known to about ±.05 with 50 at worst, ±.04 with 100.
    subsample : float or int, optional
        Draw this share or number of the objects, without replacement. By default a bootstrap: n
        draws with replacement, repeats dropped, which leaves about 63 % of the objects.
    n_splits : int
        Splits into halves for the prediction strength, two fits each; 0 leaves it out.
    stand_in : {"nearest-neighbours", "nearest-mean"}
        Without a clusterer: the drawn objects keep their labels, and each of the *other* objects
        gets the label that most of its nearest drawn neighbours have, or that of the nearest mean.
        The value of a cluster is the Jaccard similarity, among these other objects, of those in
        it and those that got its label.
    n_neighbors : int
        Number of nearest neighbours that the classifier uses.
    metric : str, optional
        How nearest neighbours and means are found; by default the clusterer's metric where it is
        "cosine" or "precomputed", else "euclidean". Means take "euclidean", "cosine" and
        "precomputed" (there the least mean distance).
    sample_weight : array-like of shape (n,), optional
        Used in fitting; an object of weight 2 counts twice in the similarities.
    random_state : int, RandomState instance or None
        Draws the objects and seeds the clusterer where its own ``random_state`` is None.
    n_jobs : int, optional
        Fits at a time, through joblib.
    progress : callable, optional
        Called with the number of finished samples, that of all, and "samples".

    Returns
    -------
    Stability
        ``jaccard``, ``dissolved``, ``recovered``, ``prediction_strength``, ``to_frame()``,
        ``explain()``, ``save()``.

    Notes
    -----
    A sample whose fit fails is left out and reported; the others count.

    References
    ----------
    .. [1] Hennig (2007), Cluster-wise assessment of cluster stability, Computational Statistics
       and Data Analysis 52, 258-271.
    .. [2] Tibshirani and Walther (2005), Cluster validation by prediction strength, Journal of
       Computational and Graphical Statistics 14, 511-528.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(150, 2, centers=[[0, 0], [9, 0], [9, 9]], random_state=0)
    >>> model = ws.KMeans(4, n_init=5, random_state=0)
    >>> found = ws.stability(model, X, n_draws=20, random_state=0)
    >>> found.sizes.tolist(), found.dissolved.tolist()
    ([50, 23, 50, 27], [0, 9, 0, 6])
    """
    check_jobs(n_jobs)
    check_function("progress", progress)
    n_draws, n_splits = check_count("n_draws", n_draws), check_count("n_splits", n_splits, 0)
    model = None
    if clusterer is not None:
        check_estimator(clusterer, "clusterer", _ORDER)
        model = _more_starts(clone(clusterer, safe=False))
        model = of_distances(model) if isinstance(X, PairSpace) else model
    pairwise, metric = _how_compared(model, metric, isinstance(X, PairSpace))
    labels = in_order_of(X, labels)
    X = _check_objects(X, pairwise, model)
    n = X.shape[0]
    weights = check_weights(sample_weight, n)
    size = sample_size(subsample, n)
    rng = check_random_state(random_state)
    seeds = rng.randint(2**31 - 1, size=1 + n_draws + 2 * n_splits)
    draws = [draw_rows(n, size, rng) for _ in range(n_draws)]
    strengths, notes = np.empty(0), tuple[str, ...]()
    partition = _clustering(model, X, labels, weights, int(seeds[0]))
    codes, clusters = partition.codes[0], partition.classes[0]
    if model is None:
        check_choice("stand_in", stand_in, STAND_INS)
        n_neighbors = check_count("n_neighbors", n_neighbors)
        X = to_numpy(X) if is_torch(X) else X
        if stand_in == "nearest-mean":
            check_choice("metric", metric, ("euclidean", "cosine", PRECOMPUTED))
        if metric == PRECOMPUTED and sp.issparse(X):
            raise TypeError(
                "X must be dense for a stand-in, which needs all distances, got a sparse matrix."
            )
        asked = n_neighbors if stand_in == STAND_INS[0] else 0
        others = [(X, codes, rows, asked, metric, weights) for rows in draws]
        judged = in_workers(judge_stand_in, others, n_jobs, progress, "samples")
    else:
        refit = Refit(model, X, pairwise, weights)
        fits = [(refit, codes, rows, int(seeds[i])) for i, rows in enumerate(draws, 1)]
        judged = in_workers(judge_draw, fits, n_jobs, progress, "samples")
        if n_splits:
            halves = [draw_halves(n, rng) for _ in range(n_splits)]
            strengths, notes = strengths_of(refit, metric, halves, seeds[1 + n_draws :], n_jobs)
    failures = {i: draw.error for i, draw in enumerate(judged) if draw.values is None}
    if len(failures) == len(judged):
        raise ValueError(
            f"clusterer must fit at least one of {count(len(judged), 'sample')}, got only failures"
            f"; the first: {failures[0]}"
        )
    none, counted = np.full(len(clusters), np.nan), codes >= 0
    return Stability(
        clusters=clusters,
        labels=clusters[codes] if counted.all() else np.where(counted, clusters[codes], NOISE),
        values=np.stack([none if d.values is None else d.values for d in judged], axis=1),
        n_found=np.array([draw.n_found for draw in judged], dtype=np.intp),
        noise_again=np.array([draw.noise_again for draw in judged]),
        scheme="bootstrap" if size is None else "subsample",
        n_drawn=n if size is None else size,
        clusterer="" if model is None else " ".join(repr(model).split()),
        stand_in="" if model is not None else stand_in,
        prediction_strengths=strengths,
        failures=failures,
        notes=notes,
    )


def _clustering(model: Any, X: Any, labels: Any, weights: Any, seed: int) -> Partitions:
    """The clustering to judge: as given, or of a fit to all objects."""
    n, given = X.shape[0], labels is not None
    wanted = getattr(last_step(model), "n_clusters", None)
    if isinstance(wanted, int) and wanted > n:  # the fit may say so less plainly
        raise ValueError(f"n_clusters must not exceed the number of objects ({n}), got {wanted}.")
    if not given:
        if model is None:
            raise ValueError("labels must be given where clusterer is None, got None.")
        fresh = seeded(clone(model, safe=False), seed, where_free=True)
        labels = fit_labels(fresh, X, weight_params(fresh, weights)).labels
    partition = encode(labels, n_objects=n)
    if not len(partition.classes[0]):
        noise = f"got noise for all {count(n, 'object')}"
        if given:
            raise ValueError(f"labels must hold at least one cluster, {noise}.")
        raise ValueError(f"clusterer must find a cluster in X, {noise}; change its parameters.")
    return partition


def _more_starts(model: Any) -> Any:
    """The clusterer with several starts where it leaves their number open.

    A single start of k-means may end far from the best, in the clustering as in its samples.
    """
    name = f"{prefix_of(model)}n_init"
    if isinstance(model.get_params().get(name), str):
        return model.set_params(**{name: STARTS})
    return model


def _how_compared(model: Any, metric: str | None, distances: bool) -> tuple[bool, str]:
    """Whether X compares all pairs of objects, and by which metric: as said or as fitted."""
    if distances:
        check_choice("metric", metric, (None, PRECOMPUTED))
        return True, PRECOMPUTED
    if metric is not None:
        return check_text("metric", metric) == PRECOMPUTED, metric
    if model is None:
        return False, "euclidean"
    if takes_distances(model):
        return True, PRECOMPUTED
    return is_pairwise(model), "cosine" if metric_of(model) == "cosine" else "euclidean"


def _check_objects(X: Any, pairwise: bool, model: Any) -> Any:
    if isinstance(X, PairSpace):
        X = given_to(model, X)
    else:
        X = check_data(X, sparse=True, minimum=2, distances=pairwise)
    X = to_numpy(X) if is_frame(X) else X
    if pairwise and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must have a row and a column for each object, got shape {tuple(X.shape)}; the "
            "metric is 'precomputed'."
        )
    if all_equal(X):
        raise ValueError(
            f"X must hold at least two different objects, got {X.shape[0]} equal ones; there is "
            "nothing to cluster."
        )
    return X
