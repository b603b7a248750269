"""Is there anything to cluster: partitions against k-means on a cloud without structure.

The cloud is Gaussian and has the covariance of the space. Its silhouette is what k-means finds
where there is nothing to find.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._files.records import Result, freeze
from wellsep._text.sentences import count
from wellsep.compute.engine.dask.client import open_client
from wellsep.compute.engine.threads import effective_jobs, in_threads
from wellsep.compute.kmeans.lloyd import run
from wellsep.compute.kmeans.prepared_points import prepare
from wellsep.compute.kmeans.starts import plus_plus
from wellsep.evaluate.options import Calling, Computing
from wellsep.evaluate.problem import Problem
from wellsep.evaluate.scores import Scores
from wellsep.evaluate.scoring.workers import Team, over_spaces
from wellsep.indices import INDICES, score_partitions
from wellsep.partitions import Partitions
from wellsep.runs.folder_names import natural_key
from wellsep.spaces.projections import coordinates, has_columns

# The thresholds of the verdict were chosen with these sizes.
OBJECTS = 500  # of a cloud at most
COVARIANCE = 2000  # objects that the covariance is estimated from at most
SPACES = 30  # that are looked at at most
DRAWS, MANY = 2, 10  # clouds per space; one where there are many spaces
KS = 5  # numbers of clusters that are tried; between them the silhouette is interpolated
SMALL = 1e-3  # share of the variance that the smallest directions of a cloud may lose
ITERATIONS = 30


@dataclass(frozen=True, eq=False)
class Structure(Result, row_names="space"):
    """How much clearer the clusterings are than k-means on clouds without structure.

    Attributes
    ----------
    spaces : tuple of str
        The distinct spaces that were looked at.
    gains : ndarray of shape (L,)
        For each space the largest silhouette among the partitions made there, minus that of
        k-means with as many clusters on a Gaussian cloud with the covariance of the space.
    best : tuple of str
        The partition that has it.
    gain : float
        The median of the gains.
    n_objects : int
        Objects of a cloud.
    """

    spaces: tuple[str, ...]
    gains: np.ndarray
    best: tuple[str, ...]
    gain: float
    n_objects: int

    def columns(self) -> dict[str, list[Any]]:
        """Return the gain of each space and the partition that has it."""
        return {
            "space": list(self.spaces),
            "gain": self.gains.tolist(),
            "best": list(self.best),
        }

    def sentences(self) -> Iterator[str]:
        """Say how much clearer the clusterings are."""
        yield (
            f"The best silhouette in a space is {self.gain:.2f} above that of k-means on a cloud "
            f"without structure (median of {count(len(self.spaces), 'space')})."
        )


def structure_of(problem: Problem, scores: Scores) -> Structure | None:
    """Compare the best silhouette in each distinct space with that of clouds; None if undefined.

    The partitions of a space are those made there; where no partition was made in any space, all.
    """
    partitions, options, made = problem.partitions, problem.options, scores.made_in
    per_space = {
        space: np.flatnonzero(made == i) if (made >= 0).any() else np.arange(len(made))
        for i, space in enumerate(scores.spaces)
    }
    filled = [space for space, which in per_space.items() if len(which)]
    # Those with the first names, whatever the order of the runs.
    chosen = tuple(sorted(filled, key=natural_key)[:SPACES])
    own = {space: (per_space[space], _known(scores, space, per_space[space])) for space in chosen}
    quiet = replace(options.part(Calling), progress=None)
    draws = DRAWS if len(chosen) < MANY else 1
    with open_client(options.scheduler) as client:
        team = Team(client, problem.runs, partitions, quiet)
        found = dict(over_spaces(team, chosen, _gain, partitions, draws, own=own))
    kept = [space for space in chosen if found[space] is not None]
    if not kept:
        return None
    gains = np.array([found[space].value for space in kept])
    return Structure(
        tuple(kept),
        freeze(gains),
        tuple(partitions.names[found[space].partition] for space in kept),
        float(np.median(gains)),
        min(OBJECTS, partitions.n_objects),
    )


class _Gain(NamedTuple):
    value: float
    partition: int


def _known(scores: Scores, space: str, which: np.ndarray) -> np.ndarray | None:
    """The silhouettes of some partitions in a space, where they are among the scores."""
    row = scores.spaces.index(space)
    default = dict(INDICES["silhouette"].params)
    for label, (name, params) in scores.index_specs.items():
        if name == "silhouette" and dict(params) == default:
            found: np.ndarray = scores.values[label][row, which]
            return found
    return None


def _gain(
    X: Any,
    computing: Computing,
    partitions: Partitions,
    draws: int,
    which: np.ndarray,
    known: np.ndarray | None,
) -> _Gain | None:
    """The largest silhouette above the cloud's among some partitions of one space."""
    n, n_jobs = partitions.n_objects, computing.n_jobs
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(n)[:COVARIANCE])
    if has_columns(X):
        sample = to_numpy(X[rows] if n > COVARIANCE else X).astype(np.float64)
    else:
        sample = coordinates(X, rows)
    if known is None:
        few = np.sort(rng.permutation(len(rows))[:OBJECTS])
        part = partitions.subset(which.tolist()).take(rows[few])
        known = score_partitions(sample[few], part, ("silhouette",), n_jobs=n_jobs).values[:, 0]
    ks = partitions.n_clusters[which]
    usable = np.isfinite(known) & (ks >= 2)
    if not usable.any():
        return None
    which, known, ks = which[usable], known[usable], ks[usable]
    tried, expected = cloud_silhouettes(sample, ks, min(n, OBJECTS), draws, n_jobs)
    gains = known - np.interp(ks, tried, expected)
    best = int(np.argmax(gains))
    return _Gain(float(gains[best]), int(which[best]))


def cloud_silhouettes(
    sample: np.ndarray, ks: np.ndarray, n: int, draws: int = DRAWS, n_jobs: int | None = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Mean silhouettes of k-means on Gaussian clouds with the covariance of a sample.

    Returns the numbers of clusters that were tried, at most five between the smallest and the
    largest of ``ks``, and their silhouettes. Clusters hold at least four objects on average.
    """
    tried = np.unique(np.clip(ks, 2, max(2, n // 4)))
    if len(tried) > KS:
        tried = np.unique(np.geomspace(tried[0], tried[-1], KS).round().astype(np.intp))
    scales = np.sqrt(_variances(sample))
    clouds = [np.random.default_rng(d).normal(size=(n, len(scales))) * scales for d in range(draws)]
    labels = np.zeros((draws, len(tried), n), dtype=np.int32)

    def fit(draw: int, at: int) -> None:
        labels[draw, at] = _kmeans_labels(clouds[draw], int(tried[at]), draw)

    each = [(draw, at) for draw in range(draws) for at in range(len(tried))]
    in_threads(min(effective_jobs(n_jobs), len(each)), fit, iter([each]))
    classes, names = tuple(np.arange(k) for k in tried), tuple(map(str, tried))
    found = []
    for cloud, own in zip(clouds, labels, strict=True):
        parts = Partitions(own, classes, names, np.ones(len(tried))).take(np.arange(n))
        found.append(score_partitions(cloud, parts, ("silhouette",), n_jobs=n_jobs).values[:, 0])
    return tried, np.nan_to_num(found).mean(axis=0)


def _variances(sample: np.ndarray) -> np.ndarray:
    """Variances along the principal directions; the smallest, a thousandth together, are left out.

    Distances do not change when a cloud is turned, so its directions are not needed.
    """
    centred = sample - sample.mean(axis=0)
    if centred.shape[0] < centred.shape[1]:
        gram = centred @ centred.T
    else:
        gram = centred.T @ centred
    values = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0) / max(1, len(sample) - 1)
    total = values.sum()
    if not total > 0:
        return np.ones(1)
    kept = int(np.searchsorted(np.cumsum(values), (1 - SMALL) * total)) + 1
    found: np.ndarray = values[:kept]
    return found


def _kmeans_labels(cloud: np.ndarray, k: int, seed: int) -> Any:
    points = prepare(cloud)
    start = points.take(plus_plus(points, k, np.random.RandomState(seed), n_trials=1))
    return points.publish(run(points, start, max_iter=ITERATIONS).labels, np.int32)
