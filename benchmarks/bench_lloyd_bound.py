"""Does a bound on the distance to other centres pay in plain Lloyd iterations?

``KMeans`` makes whole products of rows and centres in every iteration. The search of ``CFMeans``
keeps the two nearest centres of each point and a lower bound on the third (Hamerly's idea), and
looks only at points whose bound is passed. Here Lloyd's loop runs both ways from the same start to
the same end, with numba, on one thread; the figure is the time of whole products over the time with
the bound. Centres at the end are compared first.

The bound pays where groups are dense against their distance and features are many (digits: 1.0 to
1.9 times), and not elsewhere: 0.8 to 1.2 with 64 to 128 features of overlapping Gaussians, 0.5 to
0.8 with 8. No rule on the numbers of features and centres tells these apart, and the compiled
state has one thread where products have several. So ``KMeans`` has no bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import wellsep as ws
from benchmarks.bench_kmeans_search import gaussians
from benchmarks.harness import report
from wellsep.compute.engine import own_threads
from wellsep.compute.loop import _loop, means
from wellsep.compute.moved import open_state
from wellsep.compute.points import Points, prepare
from wellsep.compute.seeding import start_centers

MAX_ITER, TOL, REPEATS = 300, 1e-4, 3


def with_bound(points: Points, start: np.ndarray) -> np.ndarray:
    state, every = open_state(points, start), np.arange(len(start))
    for _ in range(MAX_ITER):
        moved = means(points, state.sums, state.mass, state.centers)
        shift = float(((moved - state.centers) ** 2).sum())
        state.move(every, moved)
        if shift <= TOL * points.spread:
            break
    return state.centers


def whole(points: Points, start: np.ndarray) -> np.ndarray:
    return _loop(points, start, MAX_ITER, TOL)[1]


def least(function: Callable[[], np.ndarray]) -> float:
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


@own_threads()
def bench(name: str, X: np.ndarray, k: int) -> None:
    points = prepare(X)
    start = start_centers(points, k, "k-means++", np.random.RandomState(0))
    same = np.allclose(whole(points, start), with_bound(points, start), atol=1e-3)
    plain, bound = least(lambda: whole(points, start)), least(lambda: with_bound(points, start))
    report(
        f"Lloyd with a bound, {name} ({len(X):,} × {X.shape[1]}), K = {k}",
        plain / bound,
        baseline="whole products",
        same=bool(same),
        plain_ms=1000 * plain,
        bound_ms=1000 * bound,
    )


def main() -> None:
    digits = np.repeat(ws.load_dataset("digits").X.astype(float), 5, axis=0)
    digits += np.random.default_rng(0).normal(size=digits.shape)
    with threadpool_limits(1):
        for k in (10, 50):
            bench("digits, five noisy copies", digits, k)
            bench("Gaussians", gaussians(20_000, 8, 2 * k, 1.0), k)
            bench("Gaussians", gaussians(20_000, 64, 2 * k, 1.0), k)
            bench("Gaussians", gaussians(20_000, 128, 2 * k, 0.7), k)


if __name__ == "__main__":
    main()
