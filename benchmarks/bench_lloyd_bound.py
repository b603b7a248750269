"""Does a bound on the distance to other centres pay in plain Lloyd iterations?

``KMeans`` makes whole products of rows and centres in every iteration. The search of ``CFMeans``
keeps the two nearest centres of each point and a lower bound on the third (Hamerly's idea), and
looks only at points whose bound is passed. Here Lloyd's loop runs both ways from the same start to
the same end, with numba, on one thread; the figure is the time of whole products over the time with
the bound. Centres at the end are compared first.

The bound pays where groups are dense against their distance and features are many (digits: 1.0 to
1.9 times), and not elsewhere: 0.8 to 1.2 with 64 to 128 features of overlapping Gaussians, 0.5 to
1.1 with 8. No rule on the numbers of features and centres tells these apart, and the compiled
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
from wellsep.compute.kmeans import lloyd as loop
from wellsep.compute.kmeans import prepared_points as points
from wellsep.compute.kmeans import search_state

MAX_ITER, TOL, REPEATS = 300, 1e-4, 3


def with_bound(rows: points.Points, start: np.ndarray) -> np.ndarray:
    state, every = search_state.open_state(rows, start), np.arange(len(start))
    for _ in range(MAX_ITER):
        centers = rows.frame.means(state.sums, state.mass, state.centers)
        shift = float(((centers - state.centers) ** 2).sum())
        state.move(every, centers)
        if shift <= TOL * rows.frame.spread:
            break
    return state.centers


def whole(rows: points.Points, start: np.ndarray) -> np.ndarray:
    return loop.run(rows, start, max_iter=MAX_ITER, tol=TOL).centers


def least(function: Callable[[], np.ndarray]) -> float:
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def bench(name: str, X: np.ndarray, k: int) -> None:
    rows = points.prepare(X)
    start = loop.start_centers(rows, k, "k-means++", np.random.RandomState(0))
    same = np.allclose(whole(rows, start), with_bound(rows, start), atol=1e-3)
    plain, bound = least(lambda: whole(rows, start)), least(lambda: with_bound(rows, start))
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
