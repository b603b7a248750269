"""From data alone to a clustering: make candidates, judge them, try more K at the edge.

`ClusterExplorer` is `explore` as an estimator, so that it stands in a pipeline.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from wellsep._checks.arrays import check_count, check_number, is_frame, name_x
from wellsep._checks.values import check_function, check_generator, check_jobs, check_path
from wellsep._files.arrays import digest, read_npz, write_npz
from wellsep._files.replace import replace_file
from wellsep._text.sentences import count, listing
from wellsep.cluster.fitting import all_equal
from wellsep.cluster.k_choice.choose import choose_k
from wellsep.cluster.worker_processes import Progress
from wellsep.distances.base import PairSpace
from wellsep.evaluate.judgement import Judgement
from wellsep.evaluate.judging import judge
from wellsep.evaluate.scoring.spaces import tell
from wellsep.evaluate.structure import structure_of
from wellsep.explorer import candidates
from wellsep.explorer.candidates import Job
from wellsep.explorer.given import Given, open_given
from wellsep.explorer.result import Exploration
from wellsep.partitions import Partitions
from wellsep.runs import Run, Runs
from wellsep.runs.space_files import digest_space

FEWEST = 4  # objects
ROUNDS = 4  # of making candidates
GATE_KS = range(2, 9)  # numbers of clusters that the gap statistic is asked about
Labels = Sequence[np.ndarray | str]  # of each candidate of a job, or why there are none


def explore(
    X: Any,
    *,
    methods: Any = None,
    embeddings: Iterable[str] | None = None,
    k: Iterable[int] | None = None,
    budget: float | None = None,
    n_draws: int = 100,
    random_state: Any = 0,
    n_jobs: int | None = None,
    scheduler: Any = None,
    cache: str | os.PathLike[str] | None = None,
    device: Any = None,
    progress: Progress | None = None,
) -> Exploration:
    """Cluster data of which nothing is known: make many clusterings, and let them be judged.

    Candidates are made in several embeddings of the data, by several methods, with numbers of
    clusters in equal ratios. :func:`wellsep.judge` ranks them without labels. The answer is one
    cluster where the judge finds nothing to cluster, or the gap statistic no K better than one.
    Ctrl-C ends the making of candidates, and those that are made are judged.

    Parameters
    ----------
    X : array-like, frame, sparse matrix, Distances, MixedTable, AnnData, Runs or mapping
        Objects, one per row. Columns are scaled where their units differ. Frames with words or
        gaps are compared by Gower's distance, sparse rows by their cosine. A mapping of names to
        arrays, or the ``obsm`` of AnnData (also the path of an .h5ad file), are several embeddings
        of the same objects. Of more than 20,000 objects (4,000 with distances) a sample is
        explored, and the others follow their neighbours.
    methods : iterable of str, or mapping of str to clusterer, optional
        By default "k-means", "mixture" (Gaussian), "ward" and "hdbscan"; with distances
        "k-medoids", "average" (linkage) and "hdbscan". Also "spectral". Or estimators of
        scikit-learn by name that have ``n_clusters``.
    embeddings : iterable of str, optional
        Made besides the data: "pca", "umap" (with umap-learn), "tsne". By default components, and
        UMAP where it is installed, else t-SNE.
    k : iterable of int, optional
        Numbers of clusters. By default in equal ratios from 2 to √n. They are extended as long as
        the best has one of the two largest, to n / 10 or 2√n at most, and ``notes`` says so.
    budget : float, optional
        Seconds after which no more candidates are begun; those that are made are judged.
    n_draws : int
        Half-samples for the certainty of the answer; 0 for none.
    random_state : int, Generator or None
        Seeds all that is drawn.
    n_jobs : int, optional
        Fits at a time, through joblib, and threads of the judge.
    scheduler : str or distributed.Client, optional
        A Dask cluster that makes the candidates and their scores.
    cache : path, optional
        Folder that keeps finished candidates and scores: the same call goes on from there.
    device : str, optional
        "cuda" computes the scores on the GPU through PyTorch.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step and after the last.

    Returns
    -------
    Exploration
        ``labels_``, ``best``, ``judgement``, ``runs``, ``predict()``, ``explain()``, ``save()``.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(120, 3, centers=4, random_state=1)
    >>> found = ws.explore(X, methods=["k-means", "ward"], k=range(2, 7), n_draws=0)
    >>> found.n_clusters, found.predict(X[:3]).tolist() == found.labels_[:3].tolist()
    (4, True)
    """
    start = time.monotonic()
    wanted = candidates.check_methods(methods)
    end = np.inf if budget is None else start + check_number("budget", budget, 0.0)
    check_count("n_draws", n_draws, 0)
    check_jobs(n_jobs)
    check_function("progress", progress)
    folder = None if cache is None else check_path("cache", cache)
    rng = check_generator(random_state)
    seed = int(rng.integers(2**31 - 1))
    given = open_given(X, rng)
    n = len(given.objects)
    if n < FEWEST:
        raise ValueError(f"X must have at least {FEWEST} objects to explore, got n_samples = {n}.")
    if all(all_equal(space) for space in given.spaces.values()):
        raise ValueError("X must have objects that differ, got equal ones only.")
    asked = candidates.check_k(k, n)
    computing = {"n_jobs": n_jobs, "scheduler": scheduler}
    spaces = _embeddings(given, embeddings, seed, progress)
    making = _Making(spaces, seed, folder, end, computing, progress)
    tried: list[int] = []
    more = asked or candidates.first_grid(n)
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        # `open_given` has said so once; without this every step would say it again.
        warnings.filterwarnings("ignore", ".* looks like a matrix of distances", UserWarning)
        scores = Path(scratch if folder is None else folder) / "scores"
        options = {"device": device, "cache": scores, "progress": progress, "random_state": seed}
        for _ in range(ROUNDS):
            jobs = candidates.list_jobs(spaces, wanted, more, first=not tried)
            if not (jobs or tried):
                raise ValueError(
                    f"methods must suit X, got {listing(wanted or ())}: k-medoids and average take "
                    "distances, the others rows."
                )
            making.make(jobs)
            tried += more
            runs = making.runs(given)
            judgement = judge(runs, X=given.table, n_draws=n_draws, **computing, **options)
            more = [] if asked or making.stopped else _beyond(judgement, tried, n)
            if not more:
                break
        if len(given.spaces) == 1:  # the test is made in the units in which the data were compared
            space = next(iter(given.spaces.values()))
            partitions = Partitions.from_labels(dict(runs.partitions), noise="penalize")
            judgement = replace(judgement, structure=structure_of(space, partitions, n_jobs))
        one = _one_cluster(given, judgement, seed, n_jobs, progress)
    notes = [*dict.fromkeys(given.notes), f"Embeddings: {listing(spaces)}.", *making.notes()]
    if not asked and tried != candidates.first_grid(n):
        notes.append(
            f"K was extended to {tried[-1]}, since the best K was at the end of the grid; "
            f"{n:,} objects allow K up to {candidates.most_clusters(n)}."
        )
    best = judgement.ranking.best
    place = str(runs[best].space)
    of_space = [name for name in given.spaces if name == place or place.startswith(f"{name} ")]
    found = Exploration(
        labels_=np.zeros(given.n_objects, dtype=np.int32),
        best=best,
        judgement=judgement,
        one_cluster=one,
        origin=(of_space or list(given.spaces))[0],
        objects=given.objects,
        notes=tuple(notes),
        units=given.units,
        ids=given.ids,
        seconds=time.monotonic() - start,
        runs=runs,
    )
    if not one and n < given.n_objects:
        found.labels_[:] = found.predict(X)
    if not one:
        found.labels_[given.objects] = runs.partitions[best]
    return found


def _embeddings(
    given: Given, asked: Iterable[str] | None, seed: int, progress: Progress | None
) -> dict[str, Any]:
    """The given spaces and those made of them, by name."""
    spaces, kinds = dict(given.spaces), candidates.embedding_kinds(asked, len(given.spaces))
    pairs = [(name, kind) for name in given.spaces for kind in kinds]
    for done, (name, kind) in enumerate(pairs):
        tell(progress, done, len(pairs), "embeddings")
        made = candidates.embed(given.spaces[name], kind, seed)
        if made is not None and np.isfinite(made).all():
            spaces[kind if len(given.spaces) == 1 else f"{name} {kind}"] = made
    tell(progress, len(pairs), len(pairs), "embeddings")
    return spaces


@dataclass
class _Making:
    """Makes candidates until the time is spent or Ctrl-C, and keeps those that are done."""

    spaces: dict[str, Any]
    seed: int
    folder: Path | None
    end: float
    computing: dict[str, Any]
    progress: Progress | None
    made: dict[str, Run] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str = ""

    def make(self, jobs: list[Job]) -> None:
        """Fit the jobs that are not kept yet."""
        missing = [job for job in jobs if not self._read(job)]
        results = candidates.fit_jobs(missing, self.spaces, self.seed, **self.computing)
        done = len(jobs) - len(missing)
        try:
            for job in missing:
                tell(self.progress, done, len(jobs), "candidates")
                if time.monotonic() > self.end and len(self.made) > 1:
                    self.stopped = "The time was spent"
                    break
                labels = next(results)
                self._write(job, labels)
                self._keep(job, labels)
                done += 1
        except KeyboardInterrupt:
            if len(self.made) < 2:
                raise
            self.stopped = "Interrupted"
        finally:
            results.close()  # type: ignore[attr-defined]
        if self.stopped:
            self.stopped += f": {len(jobs) - done} of {len(jobs)} fits were not made"
        tell(self.progress, len(jobs), len(jobs), "candidates")

    def _keep(self, job: Job, labels: Labels) -> None:
        for value, one in zip(job.values, labels, strict=True):
            name = f"{job.space} {job.method} {value}"
            if isinstance(one, str):
                self.failed[name] = one
            elif len(np.unique(one[one >= 0])) > 1:
                params = {"embedding": job.space, "method": job.method, job.parameter: value}
                self.made[name] = Run(name, labels=one, params=params, space=job.space)

    def _path(self, job: Job) -> Path | None:
        if self.folder is None:
            return None
        parts = (" ".join(repr(job.model).split()), job.parameter, str(job.values), str(self.seed))
        return self.folder / f"{digest(digest_space(self.spaces[job.space]), *parts)[:32]}.npz"

    def _read(self, job: Job) -> bool:
        """Whether the labels of a job were in the folder, and are kept."""
        path = self._path(job)
        if path is not None and path.is_file():
            with contextlib.suppress(ValueError, OSError):  # what is damaged is made again
                self._keep(job, list(read_npz(path, path.name)["labels"]))
                return True
        return False

    def _write(self, job: Job, labels: Labels) -> None:
        path = self._path(job)
        if path is not None and not any(isinstance(one, str) for one in labels):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as temporary:
                write_npz(temporary, iter([("labels", np.stack(labels))]), compress=True)

    def runs(self, given: Given) -> Runs:
        """The candidates and their embeddings, in an order that does not depend on time."""
        if not self.made:
            why = f"; {next(iter(self.failed.values()))}" if self.failed else ""
            raise ValueError(f"methods must find two clusters or more, got no such candidate{why}.")
        ids = None if given.ids is None else given.ids[given.objects]
        spaces = [Run(name, embedding=space, ids=ids) for name, space in self.spaces.items()]
        return Runs((*spaces, *(self.made[name] for name in sorted(self.made))))

    def notes(self) -> list[str]:
        """What was not made, and why."""
        on = "with a cache it" if self.folder is None else "the same call"
        notes = [f"{self.stopped}; {on} goes on."] if self.stopped else []
        for name, why in list(self.failed.items())[:1]:
            lost = count(len(self.failed), "candidate")
            notes.append(f"{lost} could not be made, {name!r} since: {why}")
        return notes


def _beyond(judgement: Judgement, tried: list[int], n: int) -> list[int]:
    """More numbers of clusters, where the best has one of the two largest, or more."""
    ranking = judgement.ranking
    if ranking.n_clusters is None or len(tried) < 2:
        return []
    best = int(ranking.n_clusters[ranking.names.index(ranking.best)])
    return candidates.next_grid(tried, n) if best >= tried[-2] else []


def _one_cluster(
    given: Given, judgement: Judgement, seed: int, n_jobs: int | None, progress: Progress | None
) -> str:
    """Why there is one cluster only, or nothing: by the judge, or by the gap statistic of rows."""
    if judgement.verdict.kind == "nothing to cluster":
        return "no candidate is clearer than k-means in clouds without clusters."
    space = next(iter(given.spaces.values()))
    if len(given.spaces) > 1 or isinstance(space, PairSpace) or space.shape[0] <= GATE_KS[-1]:
        return ""
    chosen = choose_k(
        space, GATE_KS, indices=["silhouette"], random_state=seed, n_jobs=n_jobs, progress=progress
    )
    no_gain = "no number of clusters beats one by more than 3 standard errors of the gap statistic."
    return no_gain if chosen.structure is False else ""


class ClusterExplorer(ClusterMixin, BaseEstimator):
    """Cluster data of which nothing is known, see :func:`wellsep.explore`.

    Parameters
    ----------
    methods : iterable of str, or mapping of str to clusterer, optional
        By default "k-means", "mixture", "ward" and "hdbscan"; also "spectral"; or estimators.
    embeddings : iterable of str, optional
        Made besides the data: "pca", "umap", "tsne".
    k : iterable of int, optional
        Numbers of clusters; by default in equal ratios from 2 to √n and beyond.
    budget : float, optional
        Seconds after which no more candidates are begun.
    n_draws : int
        Half-samples for the certainty of the answer; 0 for none.
    random_state : int, Generator or None
        Seeds all that is drawn.
    n_jobs : int, optional
        Fits at a time.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The cluster of every object; -1 is noise.
    n_clusters_ : int
        Clusters without noise.
    exploration_ : Exploration
        The judgement, the candidates and what was done.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X had names.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, 3, centers=3, random_state=0)
    >>> model = ws.ClusterExplorer(methods=["k-means"], k=range(2, 6), n_draws=0).fit(X)
    >>> model.n_clusters_
    3
    """

    def __init__(
        self,
        *,
        methods: Any = None,
        embeddings: Any = None,
        k: Any = None,
        budget: float | None = None,
        n_draws: int = 100,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.methods = methods
        self.embeddings = embeddings
        self.k = k
        self.budget = budget
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> ClusterExplorer:
        """Make candidates and keep the best.

        Parameters
        ----------
        X : array-like or frame of shape (n, d), sparse matrix, Distances, MixedTable or mapping
            Objects, or several embeddings of them by name.
        y : ignored
            Present by convention.

        Returns
        -------
        ClusterExplorer
            The fitted estimator.
        """
        self.exploration_ = explore(self._checked(X, reset=True), **self.get_params(deep=False))
        self.labels_ = self.exploration_.labels_
        self.n_clusters_ = self.exploration_.n_clusters
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters of new objects, given as in fit, by votes of their neighbours."""
        check_is_fitted(self)
        return self.exploration_.predict(self._checked(X, reset=False))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Rows as scikit-learn checks them; other kinds of data are left to `explore`."""
        if is_frame(X):
            name_x(validate_data, self, X, reset=reset, skip_check_array=True)
        elif sp.issparse(X) or isinstance(X, np.ndarray | list | tuple):
            rule = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
            least = 2 if reset else 1
            return name_x(validate_data, self, X, reset=reset, ensure_min_samples=least, **rule)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
