"""A search on few leading directions before the search on all features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep.cluster.cf_means.centre_search import Budget, Found, History, Parts, Restart, search
from wellsep.cluster.estimator import NoProgress
from wellsep.compute.kmeans.lloyd import means
from wellsep.compute.kmeans.prepared_points import Points, PointSet, prepare
from wellsep.compute.kmeans.search_state import open_state
from wellsep.compute.kmeans.starts import start_centers

SKETCH_FROM = 96  # features
FEWEST, MOST = 24, 64  # directions
SHARE = 0.6  # of the budget that goes to the sketch
ROWS = 1500  # that the directions are found on


def leading_directions(points: Points, size: int, random_state: Any) -> np.ndarray:
    """(d, size) orthonormal, near the directions of greatest variance: two power steps.

    Halko, Martinsson and Tropp (2011), Finding structure with randomness, SIAM Review 53.
    """
    rows = random_state.permutation(points.n)[:ROWS]
    some = points.take(np.sort(rows))
    some -= some.mean(axis=0)
    basis = random_state.standard_normal((some.shape[1], min(size + 8, some.shape[1])))
    for _ in range(2):
        basis, _ = np.linalg.qr(some.T @ (some @ basis))
    images = some @ basis
    _, turn = np.linalg.eigh(images.T @ images)
    return basis @ turn[:, ::-1][:, :size]


@dataclass
class _Behind(NoProgress):
    """Progress of the sketch: callbacks see the centres that the sketch began from."""

    progress: NoProgress
    points: PointSet
    centers: np.ndarray

    @property
    def stopped(self) -> bool:  # type: ignore[override]
        return self.progress.stopped

    def begin(self, name: str) -> None:
        self.progress.begin(name)

    def end(self, points: PointSet, centers: np.ndarray) -> None:
        self.progress.end(self.points, self.centers)


def search_from(
    points: Points,
    start: np.ndarray,
    *,
    restart: Restart,
    budget: Budget,
    random_state: np.random.RandomState,
    progress: NoProgress,
    history: History,
    parts: Parts | None = None,
    sketched: bool = True,
) -> Found:
    """``centre_search.search``, after a sketch where there are many features."""
    parts = Parts() if parts is None else parts
    options: dict[str, Any] = {"random_state": random_state, "history": history, "parts": parts}
    earlier, kept = 0.0, 0
    if sketched and points.X.shape[1] >= SKETCH_FROM and len(start) > 1:
        first, found = _sketch_start(points, start, budget, random_state, progress, parts)
        kept, earlier = found.n_moves, found.work
        history.earlier += earlier
        start = first
    found = search(points, start, restart=restart, budget=budget, progress=progress, **options)
    return found._replace(work=found.work + earlier, n_moves=found.n_moves + kept)


def _sketch_start(
    points: Points,
    start: np.ndarray,
    budget: Budget,
    random_state: np.random.RandomState,
    progress: NoProgress,
    parts: Parts,
) -> tuple[np.ndarray, Found]:
    """The lower of two: the given centres, and the means of what a search in a sketch found."""
    k, d = start.shape
    basis = leading_directions(points, int(np.clip(d // 8, FEWEST, MOST)), random_state)
    low = prepare(np.asarray(points.X @ basis.astype(points.X.dtype)), points.pull)
    share = Budget()
    share.begun = budget.begun
    share.max_moves, share.max_seconds = SHARE * budget.max_moves, SHARE * budget.max_seconds
    share.idle_rounds = budget.idle_rounds
    found = search(
        low,
        low.frame.enter(start @ basis),
        restart=lambda: start_centers(low, k, "k-means++", random_state),
        budget=share,
        random_state=random_state,
        progress=_Behind(progress, points, start),
        parts=parts._replace(transfers=False),
    )
    budget.moves += share.moves
    weights = np.ones(points.n) if points.pull is None else points.pull
    sums = points.space.code_sums(found.labels, weights, k)
    mass = np.bincount(found.labels, weights, k)
    lifted = open_state(points, means(points, sums, mass, start), local=parts.local)
    lifted.descend(floor=1e-3, max_iter=20)
    given = open_state(points, start)
    best = lifted if lifted.cost < given.cost else given
    return best.centers, found._replace(work=found.work + lifted.work + given.work)
