"""The candidates: which embeddings are made, which methods are fitted there, with which K, when."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.manifold import TSNE
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize

from wellsep._checks.arrays import check_choice, check_count
from wellsep._checks.values import check_estimator, check_items, check_names
from wellsep.cluster.cf_means.estimator import CFMeans
from wellsep.cluster.fitting import (
    count_parameter,
    cut_rows,
    fit_each,
    given_to,
    is_tree,
    takes_distances,
)
from wellsep.cluster.kmedoids import KMedoids
from wellsep.cluster.worker_processes import ending_with_parent
from wellsep.compute.engine.dask.client import open_client
from wellsep.distances.base import PairSpace
from wellsep.spaces.drawing_planes import umap
from wellsep.spaces.projections import centred_gram, scaled_components

RATIO = 1.25  # of neighbours in the grid of K, where they differ by more than one
PER_CLUSTER, USUAL = 4, 10  # objects per cluster: the fewest, and where a grid of K ends
FULL, DIAGONAL = 10, 50  # columns up to which a mixture has full, or any, covariances
RIDGE = 1e-4  # of the mean variance, added to the variances of a mixture
NEIGHBOURS = 15  # of each object in the graphs of spectral clustering and of UMAP
VOTERS = 5  # nearest neighbours that an object follows
# Objects that are fitted at most; the others follow their neighbours.
FITTED = {"ward": 5_000, "hdbscan": 10_000, "spectral": 2_000}
OF_ROWS = ("k-means", "mixture", "ward", "hdbscan")
OF_PAIRS = ("k-medoids", "average", "hdbscan")
# Made where it is asked for: on open sets it found nothing that the others do not.
SPECTRAL = "spectral"
COMPONENTS, VARIANCE = 50, 0.9  # of a table: the first that hold this share of the variance
AXES = 10  # of distances
WIDTH = 5  # columns of UMAP's embedding
FEWEST = 20  # objects that neighbours are found among
MOST_GIVEN = 3  # given embeddings up to which each gets a neighbour embedding by default
KINDS = ("pca", "umap", "tsne")


class Job(NamedTuple):
    """One fit, or one tree: the values of a parameter, each of which gives a candidate."""

    space: str
    method: str
    model: Any
    parameter: str
    values: tuple[int, ...]


def embedding_kinds(asked: Iterable[str] | None, n_given: int) -> tuple[str, ...]:
    """The kinds of embeddings to make: those asked for, or what suits the data."""
    if asked is not None:
        kinds = [asked] if isinstance(asked, str) else check_names("embeddings", asked)
        return tuple(check_choice("embeddings", kind, KINDS) for kind in dict.fromkeys(kinds))
    graph = "tsne" if importlib.util.find_spec("umap") is None else "umap"
    return ("pca", graph) if n_given == 1 else (graph,) if n_given <= MOST_GIVEN else ()


def embed(space: Any, kind: str, seed: int) -> np.ndarray | None:
    """One embedding of a space; None where it would be the space itself, or objects are too few."""
    if kind == "pca":
        return _components(space, seed)
    if space.shape[0] < FEWEST:
        return None
    pairs = isinstance(space, PairSpace)
    table, metric = _rows_or_pairs(space, seed), "precomputed" if pairs else "euclidean"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of UMAP: one thread, distances instead of rows
        if kind == "umap":
            n, width = len(table), min(WIDTH, max(2, table.shape[1]), len(table) - 2)
            graph = {"n_neighbors": min(NEIGHBOURS, n - 1), "n_components": width, "min_dist": 0.0}
            return umap(table, metric, seed, **graph).astype(np.float64)
        near = min(30.0, (len(table) - 1) / 4)
        start = "random" if pairs or table.shape[1] < 2 else "pca"
        model = TSNE(2, perplexity=near, init=start, metric=metric, random_state=seed)
        return np.asarray(model.fit_transform(table), dtype=np.float64)


def _components(space: Any, seed: int, share: float = VARIANCE) -> np.ndarray | None:
    """Principal components; of sparse rows singular vectors, of distances classical scaling."""
    n, d = space.shape
    if isinstance(space, PairSpace):
        return scaled_components(centred_gram(space, np.arange(n)), min(AXES, n - 1)).scores
    most = min(COMPONENTS, d - sp.issparse(space), n - 1)
    if most < 2 or d <= 3:
        return None
    if sp.issparse(space):
        vectors = TruncatedSVD(most, random_state=seed).fit_transform(sp.csr_matrix(space))
        return np.asarray(normalize(vectors))
    model = PCA(most, random_state=seed).fit(space)
    variance = np.cumsum(model.explained_variance_ratio_)
    used = min(most, max(2, int(np.searchsorted(variance, share)) + 1))
    return None if used >= d else model.transform(space)[:, :used]


def _rows_or_pairs(space: Any, seed: int) -> np.ndarray:
    """Rows of at most 50 columns, or distances, that neighbours are found in."""
    if isinstance(space, PairSpace):
        return space.matrix()
    if min(space.shape[0] - 1, COMPONENTS) < space.shape[1]:
        space = _components(space, seed, 1.0)
    return np.asarray(space.toarray() if sp.issparse(space) else space)


def first_grid(n: int) -> list[int]:
    """Numbers of clusters in equal ratios from 2 to √n."""
    return _ratios(2, max(2, math.isqrt(n)))


def next_grid(ks: Sequence[int], n: int) -> list[int]:
    """Numbers of clusters beyond a grid: as far as twice its end, and what n allows at most."""
    return _ratios(ks[-1], min(2 * ks[-1], most_clusters(n)))[1:]


def most_clusters(n: int) -> int:
    """The largest K that a grid is extended to: n / 10, or 2√n if that is more; never above n / 4.

    Chosen on open sets: up to n / 4 the mean ARI is the same and wrong answers run to the end.
    """
    return min(n // PER_CLUSTER, max(n // USUAL, 2 * math.isqrt(n)))


def _ratios(first: int, last: int) -> list[int]:
    ks = [first]
    while (k := max(ks[-1] + 1, round(ks[-1] * RATIO))) <= last:
        ks.append(k)
    return ks


def check_k(k: Iterable[int] | None, n: int) -> list[int]:
    """The numbers of clusters that were asked for; none if none were."""
    asked = [] if k is None else check_items("k", k, "integers")
    if k is not None and not asked:
        raise ValueError("k must hold at least one number of clusters, got none.")
    return sorted({check_count("k", one, 2, n - 1) for one in asked})


def check_methods(methods: Any) -> dict[str, Any] | None:
    """Names of methods, or estimators by name; None for what suits each embedding."""
    if methods is None:
        return None
    if isinstance(methods, Mapping):
        for name, model in methods.items():
            check_estimator(model, f"methods[{name!r}]")
            if not isinstance(model, HDBSCAN):
                count_parameter(model, name=f"methods[{name!r}]")
        return {str(name): clone(model) for name, model in methods.items()}
    names = [methods] if isinstance(methods, str) else check_names("methods", methods)
    if not names:
        raise ValueError("methods must hold at least one method, got none.")
    return {check_choice("methods", n, {*OF_ROWS, *OF_PAIRS, SPECTRAL}): None for n in names}


def list_jobs(
    spaces: Mapping[str, Any], methods: Mapping[str, Any] | None, ks: Sequence[int], first: bool
) -> list[Job]:
    """The fits, in an order that covers all of K early; HDBSCAN has sizes in place of K, once."""
    jobs = []
    for name, space in spaces.items():
        default = OF_PAIRS if isinstance(space, PairSpace) else OF_ROWS
        for method, model in (dict.fromkeys(default) if methods is None else methods).items():
            model = _model(method, space) if model is None else model
            if isinstance(model, HDBSCAN):
                sizes = cluster_sizes(space.shape[0]) if first else []
                jobs += [Job(name, method, model, "min_cluster_size", (size,)) for size in sizes]
            elif model is not None:
                values = [tuple(ks)] if is_tree(model) else [(k,) for k in ks]
                parameter = count_parameter(model)
                jobs += [Job(name, method, model, parameter, one) for one in values]
    turn = {k: f"{at:010b}"[::-1] for at, k in enumerate(sorted({j.values[0] for j in jobs}))}
    return sorted(jobs, key=lambda job: (len(job.values) == 1, turn[job.values[0]]))


def cluster_sizes(n: int) -> list[int]:
    """Smallest sizes of a cluster for HDBSCAN, three in equal ratios from 5 to n / 20."""
    return np.unique(np.geomspace(5, max(5, n // 20), 3).round().astype(int)).tolist()


def _model(method: str, space: Any) -> Any:
    """The estimator of a method for a space; None where it does not suit."""
    n, d = space.shape
    if isinstance(space, PairSpace):
        near = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": min(NEIGHBOURS, n - 1)}
        return {
            "k-medoids": KMedoids(metric="precomputed"),
            "average": AgglomerativeClustering(metric="precomputed", linkage="average"),
            "hdbscan": HDBSCAN(metric="precomputed", copy=True) if n > PER_CLUSTER else None,
            SPECTRAL: SpectralClustering(assign_labels="cluster_qr", **near),
        }.get(method)
    if method == "k-means":
        return CFMeans()
    if sp.issparse(space):
        return None
    near = {"affinity": "nearest_neighbors", "n_neighbors": min(NEIGHBOURS, n - 1)}
    form = {"covariance_type": "full" if d <= FULL else "diag"}
    ridge = RIDGE * max(float(space.var(axis=0).mean()), 1e-12)
    return {
        "mixture": GaussianMixture(reg_covar=ridge, **form) if d <= DIAGONAL else None,
        "ward": AgglomerativeClustering(),
        "hdbscan": HDBSCAN(copy=True) if n > PER_CLUSTER else None,
        SPECTRAL: SpectralClustering(assign_labels="cluster_qr", **near),
    }.get(method)


def fit_job(job: Job, space: Any, seed: int) -> list[np.ndarray | str]:
    """The labels of each candidate of a job, or why there are none."""
    n, pairs, model = space.shape[0], isinstance(space, PairSpace), job.model
    most = FITTED.get(job.method, n)
    rows = np.sort(np.random.default_rng(seed).choice(n, most, replace=False)) if n > most else None
    if isinstance(model, HDBSCAN):
        model = clone(model).set_params(min_samples=min(job.values[0], 10))
    part = cut_rows(space, rows, pairs)
    if pairs:
        part = given_to(model, part) if takes_distances(model) else part.matrix()
    found: list[np.ndarray | str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single fits; what failed is told
        for fitted in fit_each(model, job.parameter, job.values, part, None, seed):
            if isinstance(fitted, Exception):
                found.append(" ".join(str(fitted).split()))
                continue
            labels = np.asarray(fitted.labels, dtype=np.int32)
            if rows is not None:
                everyone = space.block(slice(0, n), rows) if pairs else space
                labels = follow(None if pairs else part, labels, everyone)
            found.append(labels)
    return found


def follow(reference: Any, labels: np.ndarray, objects: Any) -> np.ndarray:
    """Labels of objects by the votes of the nearest labelled ones, which weigh by 1 / distance.

    ``reference`` has the rows of the labelled objects, and ``objects`` has rows like them. If it is
    None, ``objects`` has distances to the labelled objects, (m, r).
    """
    r = len(labels)
    metric = "precomputed" if reference is None else "minkowski"
    model = KNeighborsClassifier(min(VOTERS, r), weights="distance", metric=metric)
    model.fit(np.zeros((r, r)) if reference is None else reference, labels)
    return np.asarray(model.predict(objects), dtype=np.int32)


def fit_jobs(
    jobs: Sequence[Job], spaces: Mapping[str, Any], seed: int, n_jobs: Any, scheduler: Any
) -> Iterator[list[np.ndarray | str]]:
    """The labels of one job after the other, here or on the workers of a Dask cluster."""
    with open_client(scheduler) as client:
        if client is None:
            fit = delayed(ending_with_parent(fit_job))
            tasks = (fit(job, spaces[job.space], seed) for job in jobs)
            yield from Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
            return
        there = {name: client.scatter(space, hash=False) for name, space in spaces.items()}
        futures = [client.submit(fit_job, j, there[j.space], seed, pure=False) for j in jobs]
        try:
            for future in futures:
                yield future.result()
        finally:
            client.cancel(futures)
