"""The candidates: which methods are fitted in which embedding, with which K, and in what order."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.mixture import GaussianMixture

from wellsep._checks.arrays import check_choice, check_count
from wellsep._checks.values import check_items, check_names
from wellsep._files.arrays import digest, read_npz, write_npz
from wellsep._files.replace import replace_file
from wellsep.cluster.cf_means.estimator import CFMeans
from wellsep.cluster.fitting import (
    check_estimator,
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
from wellsep.explorer.placing import follow
from wellsep.runs.space_files import digest_space

RATIO = 1.25  # of neighbours in the grid of K, where they differ by more than one
PER_CLUSTER = 4  # objects that a cluster has on average at least
FULL, DIAGONAL = 10, 50  # columns up to which a mixture has full, or any, covariances
RIDGE = 1e-4  # of the mean variance, added to the variances of a mixture
# Objects that are fitted at most; the others follow their neighbours.
FITTED = {"ward": 5_000, "hdbscan": 10_000, "spectral": 2_000}
OF_ROWS = ("k-means", "mixture", "ward", "hdbscan")
OF_PAIRS = ("k-medoids", "average", "hdbscan")
# Spectral clustering is made where it is asked for: it found nothing that the others do not.
SPECTRAL = "spectral"


class Job(NamedTuple):
    """One fit, or one tree: the values of a parameter, each of which gives a candidate."""

    space: str
    method: str
    model: Any
    parameter: str
    values: tuple[int, ...]

    def names(self) -> list[str]:
        """Names of the candidates."""
        return [f"{self.space} {self.method} {value}" for value in self.values]


def first_grid(n: int) -> list[int]:
    """Numbers of clusters in equal ratios from 2 to √n.

    >>> first_grid(150), first_grid(10)
    ([2, 3, 4, 5, 6, 8, 10, 12], [2, 3])
    """
    return _ratios(2, max(2, math.isqrt(n)))


def next_grid(ks: Sequence[int], n: int) -> list[int]:
    """Numbers of clusters beyond a grid: as far as twice its end, and n / 4 at most.

    >>> next_grid([2, 3, 4, 5, 6, 8, 10, 12], 150), next_grid([2], 10)
    ([15, 19, 24], [])
    """
    end = min(2 * ks[-1], n // PER_CLUSTER)
    return [k for k in _ratios(ks[-1], end) if k > ks[-1]]


def _ratios(first: int, last: int) -> list[int]:
    ks, k = [first], float(first)
    while True:
        k = max(ks[-1] + 1, round(ks[-1] * RATIO))
        if k > last:
            return ks
        ks.append(int(k))


def check_k(k: Iterable[int] | None, n: int) -> list[int] | None:
    """The numbers of clusters that were asked for."""
    if k is None:
        return None
    ks = sorted({check_count("k", one, 2, n - 1) for one in check_items("k", k, "integers")})
    if not ks:
        raise ValueError("k must hold at least one number of clusters, got none.")
    return ks


def check_methods(methods: Any) -> Mapping[str, Any] | None:
    """Names of methods, or estimators by name; None for what suits each embedding."""
    if methods is None:
        return None
    if isinstance(methods, Mapping):
        return {str(name): clone(check_estimator(model)) for name, model in methods.items()}
    known = dict.fromkeys((*OF_ROWS, *OF_PAIRS, SPECTRAL))
    names = [methods] if isinstance(methods, str) else check_names("methods", methods)
    if not names:
        raise ValueError("methods must hold at least one method, got none.")
    return {check_choice("methods", name, known): None for name in names}


def list_jobs(
    spaces: Mapping[str, Any], methods: Mapping[str, Any] | None, ks: Sequence[int], first: bool
) -> list[Job]:
    """The fits, in an order that covers all of K early; HDBSCAN has sizes in place of K, once."""
    jobs = []
    for name, space in spaces.items():
        pairs = isinstance(space, PairSpace)
        asked = dict.fromkeys(OF_PAIRS if pairs else OF_ROWS) if methods is None else methods
        for method, given in asked.items():
            model = given if given is not None else _model(method, space)
            if model is None:
                continue
            if method == "hdbscan" and given is None:
                sizes = cluster_sizes(space.shape[0]) if first else []
                values: list[tuple[int, ...]] = [(size,) for size in sizes]
                parameter = "min_cluster_size"
            else:
                values = [tuple(ks)] if is_tree(model) else [(k,) for k in ks]
                parameter = count_parameter(model)
            jobs += [Job(name, method, model, parameter, one) for one in values]
    if not jobs:
        return []
    turn = {k: _reversed_bits(at) for at, k in enumerate(sorted({j.values[0] for j in jobs}))}
    return sorted(jobs, key=lambda job: (len(job.values) == 1, turn[job.values[0]]))


def cluster_sizes(n: int) -> list[int]:
    """Smallest sizes of a cluster for HDBSCAN, three in equal ratios from 5 to n / 20.

    >>> cluster_sizes(700), cluster_sizes(60)
    ([5, 13, 35], [5])
    """
    return np.unique(np.geomspace(5, max(5, n // 20), 3).round().astype(int)).tolist()


def _reversed_bits(place: int) -> int:
    return int(f"{place:010b}"[::-1], 2)


def _model(method: str, space: Any) -> Any:
    """The estimator of a method for a space; None where it does not suit."""
    pairs = isinstance(space, PairSpace)
    rows = not pairs and not sp.issparse(space)
    n, d = space.shape
    if method == "k-means" and not pairs:
        return CFMeans()
    if method == "mixture" and rows and d <= DIAGONAL:
        ridge = RIDGE * max(float(space.var(axis=0).mean()), 1e-12)
        form = "full" if d <= FULL else "diag"
        return GaussianMixture(covariance_type=form, reg_covar=ridge)
    if method == "ward" and rows:
        return AgglomerativeClustering()
    if method == "hdbscan" and not sp.issparse(space) and n > PER_CLUSTER:
        return HDBSCAN(metric="precomputed" if pairs else "euclidean", copy=True)
    if method == SPECTRAL and not sp.issparse(space):
        near = min(15, n - 1)
        affinity = "precomputed_nearest_neighbors" if pairs else "nearest_neighbors"
        return SpectralClustering(affinity=affinity, n_neighbors=near, assign_labels="cluster_qr")
    if method == "k-medoids" and pairs:
        return KMedoids(metric="precomputed")
    if method == "average" and pairs:
        return AgglomerativeClustering(metric="precomputed", linkage="average")
    return None


def fit_job(job: Job, space: Any, seed: int) -> list[np.ndarray | str]:
    """The labels of each candidate of a job, or why there are none."""
    n = space.shape[0]
    most = FITTED.get(job.method, n)
    rows = None
    if n > most:
        rows = np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
    pairs = isinstance(space, PairSpace)
    model = job.model
    if job.parameter == "min_cluster_size":
        model = clone(model).set_params(min_samples=min(job.values[0], 10))
    part = cut_rows(space, rows, pairs)
    if pairs:
        part = given_to(model, part) if takes_distances(model) else part.matrix()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single fits; what failed is told
        fits = fit_each(model, job.parameter, job.values, part, None, seed)
        found: list[np.ndarray | str] = []
        for fitted in fits:
            if isinstance(fitted, Exception):
                found.append(" ".join(str(fitted).split()))
                continue
            labels = np.asarray(fitted.labels, dtype=np.int32)
            if rows is not None:
                whole = space.block(slice(0, n), rows) if pairs else space
                labels = follow(None if pairs else space[rows], labels, whole)
            found.append(labels)
    return found


class Store:
    """Finished fits in a folder, each under the digest of what it was made from."""

    def __init__(self, folder: Path | None, spaces: Mapping[str, Any], seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.digests = {} if folder is None else {k: digest_space(v) for k, v in spaces.items()}

    def path(self, job: Job) -> Path | None:
        """The file of a job."""
        if self.folder is None:
            return None
        model = " ".join(repr(job.model).split())
        key = digest(self.digests[job.space], model, job.parameter, str(job.values), str(self.seed))
        return self.folder / f"candidate-{key[:32]}.npz"

    def read(self, job: Job) -> list[np.ndarray | str] | None:
        """What is kept of a job; None if nothing, or if it is damaged."""
        path = self.path(job)
        if path is None or not path.is_file():
            return None
        with contextlib.suppress(ValueError, OSError):
            return list(read_npz(path, path.name)["labels"])
        return None

    def write(self, job: Job, labels: Sequence[np.ndarray | str]) -> None:
        """Keep the labels of a job without failures."""
        path = self.path(job)
        if path is None or any(isinstance(one, str) for one in labels):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as temporary:
            write_npz(temporary, iter([("labels", np.stack(labels))]), compress=True)


def fit_jobs(
    jobs: Sequence[Job], spaces: Mapping[str, Any], seed: int, *, n_jobs: Any, scheduler: Any
) -> Iterator[list[np.ndarray | str]]:
    """The labels of one job after the other, here or on the workers of a Dask cluster."""
    with open_client(scheduler) as client:
        if client is None:
            workers = Parallel(n_jobs=n_jobs, return_as="generator")
            fit = delayed(ending_with_parent(fit_job))
            yield from workers(fit(job, spaces[job.space], seed) for job in jobs)
            return
        there = {name: client.scatter(space, hash=False) for name, space in spaces.items()}
        futures = [client.submit(fit_job, j, there[j.space], seed, pure=False) for j in jobs]
        try:
            for future in futures:
                yield future.result()
        finally:
            client.cancel(futures)
