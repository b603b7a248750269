"""How long, and with how much memory, is one partition made from 30 runs of 100,000 objects?"""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

import wellsep as ws
from benchmarks.harness import report, run_child, time_ratio

MADE = """
import numpy as np, time
import wellsep as ws
rng = np.random.default_rng(0)
n = 100_000
truth = rng.integers(0, 10, n)
# "few": runs cut one hidden line at other places; "many": each run is wrong at other objects.
place = np.sort(rng.random(n)) * 10
truth = place.astype(int) if {few} else truth
runs = np.stack([
    np.clip(np.floor(place + rng.normal(0, 0.1)), 0, 9).astype(int) if {few}
    else np.where(rng.random(n) < 0.3, rng.integers(0, 10, n), truth)
    for _ in range(30)
])
"""
COMBINED = """
ws.consensus_partition(runs[:, ::500])  # imports what is needed
start = time.process_time()
found = ws.consensus_partition(runs)
taken = time.process_time() - start
middle = np.median([ws.ari_score(truth, one) for one in runs])
print(taken, found.n_profiles, found.n_compared, ws.ari_score(truth, found.labels), middle)
"""


def bench_large(kind: str, *, limit: float, memory: float) -> None:
    made = MADE.format(few=kind == "few")
    alone = run_child(made)
    child = run_child(made + COMBINED)
    taken, profiles, compared, ours, middle = map(float, child.output.split())
    if ours < middle:
        raise SystemExit(f"ARI must reach that of the median run, {middle:.3f}, got {ours:.3f}")
    facts = {
        "n_profiles": int(profiles),
        "n_compared": int(compared),
        "ari": ours,
        "median_run": middle,
    }
    question = f"consensus partition of 30 runs × 100,000 objects, {kind} profiles"
    report(
        f"{question}: processor time", taken, unit="s", target=limit, smaller_is_better=True,
        baseline="the limit that was set", **facts,
    )  # fmt: skip
    report(
        f"{question}: peak memory above that of the labels",
        child.peak_mb - alone.peak_mb, unit=" MiB", target=memory, smaller_is_better=True,
        baseline="working memory of 1 GiB, and a half", **facts,
    )  # fmt: skip


def bench_against_scipy(n: int = 3000, n_runs: int = 30, k: int = 10) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, k, n)
    shares = rng.uniform(0.05, 0.3, n_runs)
    runs = np.stack([np.where(rng.random(n) < s, rng.integers(0, k, n), truth) for s in shares])

    def theirs() -> np.ndarray:
        apart = np.zeros((n, n))
        for one in runs:
            apart += one[:, None] != one
        return fcluster(linkage(squareform(apart / n_runs), "average"), k, "maxclust")

    def ours() -> np.ndarray:
        return ws.consensus_partition(runs, k).labels

    difference = 1 - ws.ari_score(theirs(), ours())
    if difference > 0.02:  # ties may be broken otherwise
        raise SystemExit(f"the partition must be SciPy's, got a difference in ARI of {difference}")
    report(
        f"consensus partition of {n_runs} runs × {n:,} objects",
        time_ratio(theirs, ours, repeats=3),
        baseline="SciPy's average linkage of the dense co-association",
        target=1,
        difference=difference,
    )


def main() -> None:
    bench_against_scipy()
    bench_large("few", limit=2, memory=512)
    bench_large("many", limit=30, memory=1536)


if __name__ == "__main__":
    main()
