"""What do 100 half-samples add to the scores on the card: `judge` against `score_runs`?

42 partitions of 10 clusters in 42 spaces, silhouette, at 10,000 × 32 and 100,000 × 32 float32 on
CUDA; ``WELLSEP_BENCH_SPACES`` takes fewer spaces. The votes of the half-samples, the support of the
clusters and the description of the best ones are made once, whatever the number of spaces: with
few spaces they weigh more. Before anything is timed, the scores of both must be equal to the bit,
and ranks in half-samples of 10,000 those of the host. numba is loaded before, where it is there.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress

import numpy as np

import wellsep as ws
from benchmarks.device import device_seconds, require_cuda
from benchmarks.harness import report
from wellsep.records import Judgement

M, K, D = 42, 10, 32
SIZES, SPACES = (10_000, 100_000), 42
DRAWS = 100
CLOSE = 0.05  # ranks; neighbours may change places where float32 sums differ


def made(n: int, n_spaces: int) -> ws.Runs:
    """Spaces of different quality; partitions with more and less noise in the labels."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, n)
    centres = 1.5 * rng.normal(size=(K, D))
    spaces = {
        f"s{i}": (rng.normal(size=(n, D)) * (1 + i / 10) + centres[truth]).astype(np.float32)
        for i in range(n_spaces)
    }
    labels = {
        f"p{j:02}": np.where(rng.random(n) < j / M, rng.integers(0, K, n), truth) for j in range(M)
    }
    return ws.Runs.from_parts(spaces, labels)


def off_by(judgement: Judgement, runs: ws.Runs) -> float:
    """Ranks that a partition is off the host's in a draw, on average."""
    host = ws.judge(runs, n_draws=DRAWS).confidence.ranks
    return float(np.abs(judgement.confidence.ranks - host).mean())


def measure(n: int, n_spaces: int, device: str = "cuda") -> bool:
    runs = made(n, n_spaces)

    def score() -> ws.Scores:
        return ws.score_runs(runs, device=device)

    def judge() -> Judgement:
        return ws.judge(runs, n_draws=DRAWS, device=device)

    scores, judgement = score(), judge()
    if not np.array_equal(scores.values["silhouette"], judgement.scores.values["silhouette"]):
        raise SystemExit("the scores of judge must be those of score_runs to the bit")
    difference = off_by(judgement, runs) if n <= 10_000 else None
    if difference is not None and difference > CLOSE:
        raise SystemExit(f"ranks in half-samples must be the host's, off by {difference}")
    alone, both = device_seconds(score, 2), device_seconds(judge, 2)
    return report(
        f"judge with {DRAWS} half-samples, {n_spaces} spaces × {M} partitions, {n:,} × {D} float32",
        both / alone,
        baseline="score_runs, both on the card",
        target=3,
        smaller_is_better=True,
        score_s=alone,
        judge_s=both,
        ranks_off=difference,
        objects_per_draw=judgement.confidence.objects_per_draw,
        seed=0,
    )


def main() -> int:
    require_cuda()
    warnings.simplefilter("ignore")
    with suppress(ImportError):
        import numba  # noqa: F401
    n_spaces = int(os.environ.get("WELLSEP_BENCH_SPACES", SPACES))
    met = [measure(n, n_spaces) for n in SIZES]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
