"""How do k-means iterations and centroid indices on Dask grow with the data and the workers?

A float32 array on disk (50,000 × 128, times 1, 4 and 16), 1 and 2 worker processes of one thread
on loopback, chunks of 12,500 rows, K = 16. One iteration is the difference between fits of 6 and
of 1. Exponents are slopes of log processor seconds of the workers against log rows, which other
work on the machine leaves alone. The same start in memory is the check. Measured once, with two
workers: what a distance costs in the silhouette (the smallest data) and in its estimate (the next
larger), and what a task that does nothing costs. ``WELLSEP_BENCH_ROWS=5000`` makes it small.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import wellsep as ws
from benchmarks.harness import report, seconds

ROWS = int(os.environ.get("WELLSEP_BENCH_ROWS", 50_000))
TIMES, D, K = (1, 4, 16), 128, 16
ITERATIONS = (1, 6)
SAMPLED, EMPTY_TASKS = 2000, 1000
INDICES = (
    "cfq",
    "calinski_harabasz",
    "davies_bouldin",
    "simplified_silhouette",
    "silhouette_cosine",
    "ccc",
)


def write(folder: str, times: int) -> str:
    """Blobs, written piece by piece."""
    path = f"{folder}/x{times}.npy"
    rng = np.random.default_rng(times)
    centres = 3 * rng.normal(size=(K, D))
    array = np.lib.format.open_memmap(path, "w+", np.float32, (times * ROWS, D))
    for start in range(0, len(array), ROWS):
        rows = slice(start, start + ROWS)
        array[rows] = rng.normal(size=(ROWS, D)) + centres[rng.integers(0, K, ROWS)]
    array.flush()
    return path


class Cost(NamedTuple):
    """What some work took."""

    seconds: float
    processor: float  # seconds of all workers together; who else uses the machine hardly matters
    busiest: float  # processor seconds of the busiest worker
    traffic: float  # bytes that workers sent to each other and back


def used(client: Client) -> np.ndarray:
    def facts(dask_worker):
        import time

        return time.process_time(), dask_worker.transfer_outgoing_bytes_total

    found = client.run(facts)
    return np.array([found[address] for address in sorted(found)])  # (workers, 2)


def cost(client: Client, work: Callable[[], object], repeats: int = 2) -> Cost:
    """The best of a few calls, each figure for itself."""
    found = []
    for _ in range(repeats):
        before = used(client)
        wall = seconds(work)
        processor, traffic = (used(client) - before).T
        found.append((wall, processor.sum(), processor.max(), traffic.sum()))
    return Cost(*np.min(found, axis=0).tolist())


def one_iteration(client: Client, X: object, start: np.ndarray) -> Cost:
    """The difference of a longer and a shorter fit."""

    def fit(max_iter: int) -> ws.KMeans:
        return ws.KMeans(K, init=start, max_iter=max_iter, tol=0).fit(X)

    few, many = (np.array(cost(client, partial(fit, i))) for i in ITERATIONS)
    return Cost(*((many - few) / (ITERATIONS[1] - ITERATIONS[0])).tolist())


def measure(client: Client, path: str) -> dict[str, Cost]:
    X = ws.open_chunked(path, chunk_rows=max(1, ROWS // 4))
    start = np.asarray(X[:K])
    labels = ws.KMeans(K, init=start, max_iter=1).fit(X).labels_.persist()
    return {
        "iteration": one_iteration(client, X, start),
        "indices": cost(client, lambda: ws.score_partitions(X, labels, INDICES)),
    }


def do_nothing(turn: int) -> None:
    """Many empty tasks; other ones at each turn, or they would be found done."""
    wait(da.full(EMPTY_TASKS, turn, chunks=1).persist())


def measure_once(client: Client, paths: dict[int, str]) -> dict[str, Any]:
    """Processor seconds and number of distances of both silhouettes; seconds of an empty task."""
    small, large = (ws.open_chunked(paths[t], chunk_rows=max(1, ROWS // 4)) for t in TIMES[:2])
    near, far = (
        ws.KMeans(K, init=np.asarray(X[:K]), max_iter=1).fit(X).labels_.persist()
        for X in (small, large)
    )
    m = min(SAMPLED, ROWS)
    estimate = cost(client, lambda: ws.silhouette_estimate(large, far, n_sampled=m, random_state=0))
    exact = cost(client, lambda: ws.silhouette_score(small, near), repeats=1)
    return {
        "estimate": {**estimate._asdict(), "distances": m * len(large)},
        "exact": {**exact._asdict(), "distances": ROWS * (ROWS - 1) // 2},
        "seconds_a_task": min(seconds(partial(do_nothing, i)) for i in range(3)) / EMPTY_TASKS,
    }


def check(path: str) -> float:
    """Largest difference from memory of centres and indices, on the smallest data."""
    X = np.load(path).astype(np.float64)
    there = ws.open_chunked(path, chunk_rows=max(1, ROWS // 4)).astype(np.float64)
    here = ws.KMeans(K, init=X[:K], max_iter=4, tol=0).fit(X)
    model = ws.KMeans(K, init=X[:K], max_iter=4, tol=0).fit(there)
    centres = np.abs(model.cluster_centers_ - here.cluster_centers_).max()
    values = [
        ws.score_partitions(data, labels, INDICES).values
        for data, labels in ((X, here.labels_), (there, model.labels_))
    ]
    return float(max(centres, np.abs(values[1] / values[0] - 1).max()))


def main() -> int:
    times: dict[tuple[int, int], dict[str, Cost]] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {t: write(folder, t) for t in TIMES}
        for workers in (1, 2):
            with (
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=":0",
                ) as cluster,
                Client(cluster) as client,
            ):
                if workers == 2 and (difference := check(paths[1])) > 1e-9:
                    raise SystemExit(f"results must be those in memory, got {difference} off")
                for t in TIMES:
                    times[workers, t] = measure(client, paths[t])
                if workers == 2:
                    once = measure_once(client, paths)
    rows = ROWS * np.array(TIMES)
    facts = {
        "rows": rows.tolist(),
        "features": D,
        "clusters": K,
        "seed": list(TIMES),
        "once": once,
        "costs": {
            f"{what}, {w} worker(s), × {t}": cost._asdict()
            for (w, t), found in times.items()
            for what, cost in found.items()
        },
    }
    met = []
    for what in ("iteration", "indices"):
        for workers in (1, 2):
            spent = [times[workers, t][what].processor for t in TIMES]
            slope = float(np.polyfit(np.log(rows), np.log(spent), 1)[0])
            met.append(
                report(
                    f"exponent of a k-means iteration in n, {workers} worker(s)"
                    if what == "iteration"
                    else f"exponent of {len(INDICES)} centroid indices in n, {workers} worker(s)",
                    slope,
                    baseline="none",
                    unit="",
                    target=1.15,
                    smaller_is_better=True,
                    what=what,
                    workers=workers,
                    **facts,
                )
            )
        report(
            f"2 workers against 1, {what} of {rows[-1]:,} × {D}, by the busiest one's processor",
            times[1, TIMES[-1]][what].processor / times[2, TIMES[-1]][what].busiest,
            baseline="1 worker",
            target=1.5,
            what=what,
            workers=2,
            **facts,
        )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
