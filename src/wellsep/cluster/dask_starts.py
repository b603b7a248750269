"""Where centres start when the points are on Dask: k-means‖, random rows, given centres."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.cluster.dask_points import ChunkedPoints
from wellsep.cluster.loop import run
from wellsep.cluster.points import Points, assign, prepare, take_rows
from wellsep.cluster.seeding import check_centers, draw_weighted, plus_plus, start_centers
from wellsep.compute.dask_chunks import Chunks

ROUNDS = 4  # passes of k-means‖ that draw candidates, k in each
LISTED = 1 << 24  # rows up to which a permutation of all is drawn, as in memory


@start_centers.register(Chunks)
def _start_centers(
    X: Chunks,
    points: ChunkedPoints,
    n_clusters: int,
    init: Any,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """As in memory, but for "k-means++", which here is k-means‖: it would take a pass a centre."""
    if isinstance(init, str):
        if init == "k-means++":
            return parallel_start(points, n_clusters, random_state)
        return points.take(random_rows(points, n_clusters, random_state))
    centers = init(X.source, n_clusters, random_state=random_state) if callable(init) else init
    return points.frame(check_centers(centers, n_clusters, X.d))


def random_rows(
    points: ChunkedPoints, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Distinct rows, drawn in proportion to their weight."""
    n = points.chunks.n
    if points.pull is not None:
        return _by_weight(points, n_clusters, random_state)
    if n <= LISTED:
        return random_state.choice(n, n_clusters, replace=False)
    rows: dict[int, None] = {}
    while len(rows) < n_clusters:
        rows[int(random_state.randint(n, dtype=np.int64))] = None
    return np.fromiter(rows, np.int64)


def _by_weight(
    points: ChunkedPoints, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    column = Chunks(points.pull, None)
    if column.n <= LISTED:
        pull = np.concatenate(column.each(_itself))
        return draw_weighted(pull, n_clusters, points.zeros > 0, random_state)
    drawn = column.fold(_draw_weights, _key(random_state), n_clusters)
    return drawn.numbers


def parallel_start(
    points: ChunkedPoints, n_clusters: int, random_state: np.random.RandomState
) -> np.ndarray:
    """k-means‖ (Bahmani et al., 2012): candidates in a few passes, then k-means++ among them.

    Each pass draws k rows with a chance in proportion to w·D², D the distance to the nearest
    candidate so far (Departs from the paper: exactly k of them, without replacement). Candidates
    weigh what is nearest to them; greedy k-means++ and Lloyd's loop on the candidates give the
    start. A row's random number depends on its place among all rows, not on its chunk.
    """
    first = random_rows(points, 1, random_state)
    candidates = points.take(first)
    for _ in range(ROUNDS):
        drawn = points.fold(_draw_far, candidates, _key(random_state), n_clusters)
        if not len(drawn.rows):
            break  # every point lies on a candidate
        candidates = np.vstack([candidates, drawn.rows])
    if len(candidates) < n_clusters:
        spare = points.take(random_rows(points, n_clusters, random_state))
        candidates = np.vstack([candidates, spare])[: max(n_clusters, len(candidates))]
    mass = points.fold(_candidate_mass, candidates)
    few = prepare(candidates, np.maximum(mass, 1e-12 * mass.sum()), points.metric)
    chosen = take_rows(few, plus_plus(few, n_clusters, random_state))
    refined = run(few, chosen, max_iter=30).centers
    return refined if points.metric == "cosine" else few.unframe(refined)


class Drawn(NamedTuple):
    """Rows with the smallest keys: a draw without replacement, in proportion to mass."""

    keys: np.ndarray
    numbers: np.ndarray
    rows: np.ndarray
    wanted: int

    @classmethod
    def merged(cls, parts: list[Drawn]) -> Drawn:
        keys, numbers, rows = (np.concatenate(c) for c in list(zip(*parts, strict=True))[:3])
        order = np.lexsort((numbers, keys))[: parts[0].wanted]
        return cls(keys[order], numbers[order], rows[order], parts[0].wanted)


def _key(random_state: np.random.RandomState) -> int:
    return int(random_state.randint(np.iinfo(np.int64).max, dtype=np.int64))


def row_uniforms(key: int, start: int, n: int) -> np.ndarray:
    """Random numbers of rows ``start`` to ``start + n``, the same however the rows are cut."""
    bits = np.random.Philox(key=key)
    bits.advance(start // 4)  # each step of the counter makes four numbers
    skipped = start % 4
    return np.random.Generator(bits).random(n + skipped)[skipped:]


def _smallest(mass: np.ndarray, key: int, wanted: int, start: int) -> tuple[Any, Any]:
    """−ln(u)/mass, smallest first (Efraimidis and Spirakis, 2006), and where they are."""
    u = row_uniforms(key, start, len(mass))
    heavy = np.flatnonzero(mass > 0)
    keys = -np.log1p(-u[heavy]) / mass[heavy]
    order = np.argsort(keys, kind="stable")[:wanted]
    return keys[order], heavy[order]


def _draw_far(points: Points, candidates: np.ndarray, key: int, wanted: int, start: int) -> Drawn:
    near = assign(points, candidates).near.astype(np.float64)
    # What rounding leaves of a point that is itself a candidate must not be drawn again.
    near[near <= 1e-12 * points.spread] = 0.0
    mass = near if points.pull is None else near * points.pull
    keys, at = _smallest(mass, key, wanted, start)
    return Drawn(keys, start + at, take_rows(points, at), wanted)


def _draw_weights(weights: np.ndarray, key: int, wanted: int, start: int) -> Drawn:
    keys, at = _smallest(weights, key, wanted, start)
    return Drawn(keys, start + at, np.empty((len(at), 0)), wanted)


def _candidate_mass(points: Points, candidates: np.ndarray, start: int) -> np.ndarray:
    first = assign(points, candidates).first
    return np.bincount(first, weights=points.pull, minlength=len(candidates)).astype(np.float64)


def _itself(weights: np.ndarray, start: int) -> np.ndarray:
    return weights
