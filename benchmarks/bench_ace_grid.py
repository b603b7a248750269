"""How much faster is the whole grid of an ACE study than a double loop over scikit-learn?

42 spaces × 42 partitions, n = 10,000, d = 160, float32, both silhouettes, Calinski-Harabasz and
Davies-Bouldin. The loop is timed on a few cells and multiplied; ours runs in full, in a process of
its own whose memory is read at the end. ``WELLSEP_BENCH_SPACES=4`` shortens ours to four spaces.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import numpy as np
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_score

import wellsep as ws
from benchmarks.harness import report, run_child, seconds

N, D, M = 10_000, 160, 42
SPACES = int(os.environ.get("WELLSEP_BENCH_SPACES", M))
INDICES = ("silhouette", "silhouette_cosine", "calinski_harabasz", "davies_bouldin")
CELLS = 2  # cells of the grid the loop is timed on

CHILD = """
import json, time, wellsep as ws
from wellsep.evaluate import rank_confidence
from benchmarks.harness import peak_memory_mb
runs = ws.load_runs({folder!r})
start = time.perf_counter()
scores = ws.score_runs(runs, {indices!r}, details=False)
scored = time.perf_counter()
result = ws.ace(scores)
judged = time.perf_counter()
peak = peak_memory_mb()
sure = rank_confidence(runs, scores, result, n_draws=100)
done = time.perf_counter()
after = peak_memory_mb()
values = [scores.values[name][0, :{cells}].tolist() for name in scores.indices]
print(json.dumps(dict(score=scored - start, ace=judged - scored, sure=done - judged,
                      peak=peak, peak_sure=after, values=values)))
"""


def grid() -> ws.Runs:
    """Spaces of different quality; partitions with more and less noise in the labels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, N)
    centres = rng.normal(size=(10, D))
    spaces = {
        f"s{i:02}": (rng.normal(size=(N, D)) * (1 + i / 10) + centres[truth]).astype(np.float32)
        for i in range(SPACES)
    }
    partitions = {
        f"p{j:02}": np.where(rng.random(N) < j / M, rng.integers(0, 10, N), truth) for j in range(M)
    }
    return ws.Runs.from_parts(spaces, partitions)


def loop(X: np.ndarray, labels: np.ndarray) -> list[float]:
    return [
        silhouette_score(X, labels),
        silhouette_score(X, labels, metric="cosine"),
        calinski_harabasz_score(X, labels),
        davies_bouldin_score(X, labels),
    ]


def main() -> int:
    runs = grid()
    X = np.ascontiguousarray(runs.spaces["s00"])
    columns = list(runs.partitions.values())[:CELLS]
    theirs: list[list[float]] = []
    cell = seconds(lambda: theirs.extend(loop(X, labels) for labels in columns)) / CELLS
    with tempfile.TemporaryDirectory() as folder:
        runs.save(folder)
        child = run_child(CHILD.format(folder=folder, indices=INDICES, cells=CELLS))
    ours = json.loads(child.output)
    difference = float(np.abs(np.array(ours["values"]).T / np.array(theirs) - 1).max())
    if difference > 1e-4:
        raise SystemExit(
            f"values must equal scikit-learn's, got a relative difference {difference}"
        )
    size = f"{SPACES} × {M}, {N:,} × {D} float32"
    facts = {"largest_relative_difference": difference, "seed": 0, "loop_cell_s": cell, **ours}
    facts.pop("values")
    met = [
        report(
            f"scores of {size} by 4 indices",
            cell * SPACES * M / ours["score"],
            baseline=f"double loop over scikit-learn, {CELLS} of {SPACES * M} cells timed",
            target=50,
            **facts,
        ),
        report(
            f"memory of scoring {size}",
            ours["peak"],
            baseline="none",
            unit=" MiB",
            target=2048,
            smaller_is_better=True,
        ),
        report(
            f"ACE after scoring {size}",
            ours["ace"],
            baseline="none",
            unit=" s",
            target=1,
            smaller_is_better=True,
        ),
        report(
            f"100 half-samples of {size}, against the plain run",
            ours["sure"] / (ours["score"] + ours["ace"]),
            baseline="scoring and ACE",
            target=3,
            smaller_is_better=True,
        ),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
