"""From data alone to a clustering: make candidates, judge them, try more K at the edge."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_count, check_number
from wellsep._checks.values import check_function, check_generator, check_jobs, check_path
from wellsep._text.sentences import count, listing
from wellsep.cluster.fitting import all_equal
from wellsep.cluster.k_choice.choose import choose_k
from wellsep.cluster.worker_processes import Progress
from wellsep.distances.base import PairSpace
from wellsep.evaluate.judgement import Judgement
from wellsep.evaluate.judging import judge
from wellsep.explorer.candidates import (
    Job,
    Store,
    check_k,
    check_methods,
    first_grid,
    fit_jobs,
    list_jobs,
    next_grid,
)
from wellsep.explorer.embeddings import embed, embedding_kinds
from wellsep.explorer.given import Given, open_given
from wellsep.explorer.result import Exploration
from wellsep.runs import Run, Runs

FEWEST = 4  # objects
ROUNDS = 4  # of extending the grid
GATE_KS = range(2, 9)  # numbers of clusters that the gap statistic is asked about
SCORES = "scores"  # folder of the judge in the cache


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
    clusters in equal ratios. :func:`wellsep.judge` ranks them without labels. If the best has the
    largest K, more are tried. The answer is one cluster where nothing is clearer than in a cloud
    without structure.

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
        Numbers of clusters. By default in equal ratios from 2 to √n, and beyond, to n / 4 at most,
        as long as the best has one of the two largest.
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

    Notes
    -----
    Ctrl-C while candidates are made ends that, and those that are made are judged.

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
    wanted = check_methods(methods)
    end = None if budget is None else start + check_number("budget", budget, 0.0)
    check_count("n_draws", n_draws, 0)
    check_jobs(n_jobs)
    check_function("progress", progress)
    folder = None if cache is None else check_path("cache", cache)
    rng = check_generator(random_state)
    seed = int(rng.integers(2**31 - 1))
    given = open_given(X, rng)
    n = len(given.objects)
    if n < FEWEST:
        raise ValueError(
            f"X must have at least {FEWEST} objects to explore, got n_samples = {n}; with fewer "
            "there is nothing to choose."
        )
    asked = check_k(k, n)
    kinds = embedding_kinds(embeddings, len(given.spaces))
    with tempfile.TemporaryDirectory() as scratch:
        calling = {
            "n_draws": n_draws,
            "random_state": seed,
            "n_jobs": n_jobs,
            "scheduler": scheduler,
            "device": device,
            "progress": progress,
            "cache": (Path(scratch) if folder is None else folder) / SCORES,
        }
        if all(all_equal(space) for space in given.spaces.values()):
            raise ValueError("X must have objects that differ, got equal ones only.")
        spaces = _embeddings(given, kinds, seed, progress)
        maker = _Maker(given, spaces, Store(folder, spaces, seed), end, n_jobs, scheduler, progress)
        ks: list[int] = []
        new = asked or first_grid(n)
        for _ in range(ROUNDS):
            maker.make(list_jobs(spaces, wanted, new, first=not ks))
            ks += new
            runs = maker.runs()
            judgement = judge(runs, X=given.table, **calling)
            new = [] if asked else _beyond(judgement, ks, n)
            if maker.stopped or not new:
                break
        one = _one_cluster(given, judgement, seed, n_jobs, progress)
    return _answer(X, given, runs, judgement, one, maker.notes(), time.monotonic() - start)


def _embeddings(
    given: Given, kinds: Sequence[str], seed: int, progress: Progress | None
) -> dict[str, Any]:
    """The given spaces and those made of them, by name."""
    spaces = dict(given.spaces)
    todo = [(name, kind) for name in given.spaces for kind in kinds]
    for done, (name, kind) in enumerate(todo):
        if progress is not None:
            progress(done, len(todo), "embeddings")
        made = embed(given.spaces[name], kind, seed)
        if made is not None and np.isfinite(made).all():
            spaces[kind if len(given.spaces) == 1 else f"{name} {kind}"] = made
    if progress is not None and todo:
        progress(len(todo), len(todo), "embeddings")
    return spaces


class _Maker:
    """Makes candidates until the time is spent or Ctrl-C, and keeps those that are done."""

    def __init__(
        self,
        given: Given,
        spaces: dict[str, Any],
        store: Store,
        end: float | None,
        n_jobs: int | None,
        scheduler: Any,
        progress: Progress | None,
    ) -> None:
        self.given, self.spaces, self.store, self.end = given, spaces, store, end
        self.n_jobs, self.scheduler, self.progress = n_jobs, scheduler, progress
        self.made: dict[str, Run] = {}
        self.failed: dict[str, str] = {}
        self.stopped = ""

    def make(self, jobs: list[Job]) -> None:
        """Fit the jobs that are not kept yet."""
        missing = []
        for job in jobs:
            labels = self.store.read(job)
            if labels is None:
                missing.append(job)
            else:
                self._keep(job, labels)
        results = fit_jobs(
            missing, self.spaces, self.store.seed, n_jobs=self.n_jobs, scheduler=self.scheduler
        )
        done = len(jobs) - len(missing)
        try:
            for job in missing:
                self._tell(done, len(jobs))
                if self.end is not None and time.monotonic() > self.end and len(self.made) > 1:
                    self.stopped = "The time was spent"
                    break
                labels = next(results)
                self.store.write(job, labels)
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
        self._tell(len(jobs), len(jobs))

    def _tell(self, done: int, total: int) -> None:
        if self.progress is not None and total:
            self.progress(done, total, "candidates")

    def _keep(self, job: Job, labels: Sequence[np.ndarray | str]) -> None:
        for name, value, one in zip(job.names(), job.values, labels, strict=True):
            if isinstance(one, str):
                self.failed[name] = one
            elif len(np.unique(one[one >= 0])) > 1:
                params = {"embedding": job.space, "method": job.method, job.parameter: value}
                self.made[name] = Run(name, labels=one, params=params, space=job.space)

    def runs(self) -> Runs:
        """The candidates and their embeddings, in an order that does not depend on time."""
        if not self.made:
            why = f"; {next(iter(self.failed.values()))}" if self.failed else ""
            raise ValueError(f"methods must find two clusters or more, got no such candidate{why}.")
        ids = None if self.given.ids is None else self.given.ids[self.given.objects]
        spaces = [Run(name, embedding=space, ids=ids) for name, space in self.spaces.items()]
        return Runs((*spaces, *(self.made[name] for name in sorted(self.made))))

    def notes(self) -> list[str]:
        """What was not made, and why."""
        notes = []
        if self.stopped:
            notes.append(f"{self.stopped}. The same call with the same cache goes on.")
        if self.failed:
            name, why = next(iter(self.failed.items()))
            notes.append(
                f"{count(len(self.failed), 'candidate')} could not be made, {name!r} since: {why}"
            )
        return notes


def _beyond(judgement: Judgement, ks: list[int], n: int) -> list[int]:
    """More numbers of clusters, where the best has one of the two largest."""
    found = judgement.ranking.n_clusters
    best = judgement.ranking.names.index(judgement.ranking.best)
    if found is None or len(ks) < 2 or found[best] < ks[-2]:
        return []
    return next_grid(ks, n)


def _one_cluster(
    given: Given, judgement: Judgement, seed: int, n_jobs: int | None, progress: Progress | None
) -> str:
    """Why there is one cluster only, or nothing: by the judge, or by the gap statistic of rows."""
    if judgement.verdict.kind == "nothing to cluster":
        return "no candidate is clearer than k-means in a cloud without structure."
    if len(given.spaces) > 1:
        return ""
    (space,) = given.spaces.values()
    if isinstance(space, PairSpace) or space.shape[0] < 10:
        return ""
    ks = [k for k in GATE_KS if k < space.shape[0]]
    chosen = choose_k(
        space, ks, indices=["silhouette"], random_state=seed, n_jobs=n_jobs, progress=progress
    )
    if chosen.structure is not False:
        return ""
    return "no number of clusters beats one by more than 3 standard errors of the gap statistic."


def _answer(
    X: Any,
    given: Given,
    runs: Runs,
    judgement: Judgement,
    one: str,
    notes: list[str],
    seconds: float,
) -> Exploration:
    best = judgement.ranking.best
    made_in = str(runs[best].space)
    origin = next(
        (name for name in given.spaces if made_in == name or made_in.startswith(f"{name} ")),
        next(iter(given.spaces)),
    )
    labels = np.zeros(given.n_objects, dtype=np.int32)
    found = Exploration(
        labels_=labels,
        best=best,
        judgement=judgement,
        one_cluster=one,
        origin=origin,
        objects=given.objects,
        notes=(*given.notes, f"Embeddings: {listing(runs.spaces)}.", *notes),
        means={name: units.mean for name, units in given.units.items()},
        factors={name: units.factor for name, units in given.units.items()},
        ids=given.ids,
        seconds=seconds,
    )._with_runs(runs)
    if one:
        return found
    labels[given.objects] = runs.partitions[best]
    if len(given.objects) < given.n_objects:
        labels[:] = found.predict(X)
        labels[given.objects] = runs.partitions[best]
    return found
