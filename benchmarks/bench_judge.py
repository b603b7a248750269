"""What do 100 half-samples add to the scores: `judge` against `score_runs` on the same runs?

42 partitions of 10 clusters, silhouette, at 3,000 × 10 and 10,000 × 10 float64. Costs are per
space, so a few spaces stand for 42. One thread, numba loaded beforehand. Before anything is timed,
the scores of both must be equal to the bit. Processor time, so that other programs matter less.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings

import numpy as np

import wellsep as ws
from benchmarks.harness import processor_seconds, report
from wellsep.records import Judgement

M, K, D = 42, 10, 10
SIZES = ((3_000, 16), (10_000, 3))  # objects, spaces
DRAWS, REPEATS = 100, 3


def made(n: int, n_spaces: int) -> ws.Runs:
    """Spaces of different quality; partitions with more and less noise in the labels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, n)
    centres = 1.5 * rng.normal(size=(K, D))
    return ws.Runs.from_parts(
        {f"s{i}": rng.normal(size=(n, D)) * (1 + i / 10) + centres[truth] for i in range(n_spaces)},
        {
            f"p{j:02}": np.where(rng.random(n) < j / M, rng.integers(0, K, n), truth)
            for j in range(M)
        },
    )


def main() -> int:
    warnings.simplefilter("ignore")
    if importlib.util.find_spec("numba") is None:
        raise SystemExit("this benchmark needs numba, which is not installed")
    import numba  # noqa: F401  (loaded, the compiled twins are used from the first space on)

    met = []
    for n, n_spaces in SIZES:
        runs = made(n, n_spaces)

        def score(runs: ws.Runs = runs) -> ws.Scores:
            return ws.score_runs(runs, n_jobs=1)

        def judge(runs: ws.Runs = runs) -> Judgement:
            return ws.judge(runs, n_draws=DRAWS, n_jobs=1)

        scores, judgement = score(), judge()  # warm as well
        if not np.array_equal(scores.values["silhouette"], judgement.scores.values["silhouette"]):
            raise SystemExit("the scores of judge must be those of score_runs to the bit")
        if not np.array_equal(ws.ace(scores).scores, judgement.by_ace.scores):
            raise SystemExit("the answer of judge must be that of ace after score_runs")
        times = [(processor_seconds(score), processor_seconds(judge)) for _ in range(REPEATS)]
        alone, both = (min(column) for column in zip(*times, strict=True))
        met.append(
            report(
                f"judge with {DRAWS} half-samples, {M} partitions of {n:,} × {D}",
                both / alone,
                baseline="score_runs",
                target=1.6,
                smaller_is_better=True,
                spaces=n_spaces,
                score_s=alone,
                judge_s=both,
                objects_per_draw=judgement.confidence.objects_per_draw,
                seed=0,
            )
        )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
