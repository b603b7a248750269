"""How fast is the agreement of all pairs of partitions against scikit-learn, pair by pair?"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sklearn import metrics

import wellsep as ws
from benchmarks.harness import Ratio, processor_seconds, report, time_ratio
from wellsep.records import Consensus

THEIRS = {
    "ari": metrics.adjusted_rand_score,
    "ami": metrics.adjusted_mutual_info_score,
    "nmi": metrics.normalized_mutual_info_score,
}
SAMPLE = 20  # pairs that scikit-learn is timed on where all of them would take minutes


def made_labels(n_runs: int, n: int) -> np.ndarray:
    """(M, n) partitions with K from 2 to 50 that share a structure, so that they agree a little."""
    rng = np.random.default_rng(0)
    common = rng.integers(0, 50, n)
    clusters = rng.integers(2, 51, n_runs)
    mixed = [np.where(rng.random(n) < 0.5, common % k, rng.integers(0, k, n)) for k in clusters]
    return np.stack(mixed)


def bench_all(n_runs: int, n: int, agreement: str, *, limit: float, target: float) -> None:
    labels = made_labels(n_runs, n)
    pairs = list(combinations(range(n_runs), 2))
    rng = np.random.default_rng(1)
    asked = [pairs[i] for i in rng.choice(len(pairs), SAMPLE, replace=False)]

    def theirs() -> list[float]:
        return [THEIRS[agreement](labels[i], labels[j]) for i, j in asked]

    def ours() -> Consensus:
        return ws.consensus(labels, agreement=agreement, n_jobs=2)

    found = ours().matrix()
    difference = float(np.abs([found[p] - t for p, t in zip(asked, theirs(), strict=True)]).max())
    if difference > 1e-9:
        raise SystemExit(f"agreement must equal scikit-learn's, got a difference of {difference}")
    sample = time_ratio(theirs, ours, repeats=3)
    ratio = Ratio(sample.baseline_s * len(pairs) / SAMPLE, sample.ours_s, sample.repeats)
    report(
        f"consensus of {n_runs} runs × {n:,} objects by {agreement.upper()}",
        ratio,
        baseline=f"scikit-learn pair by pair, from {SAMPLE} of {len(pairs):,} pairs",
        target=target,
        difference=difference,
    )
    taken = processor_seconds(ours)
    report(
        f"consensus of {n_runs} runs × {n:,} objects by {agreement.upper()}: processor time",
        taken,
        unit="s",
        target=limit,
        smaller_is_better=True,
        baseline="the limit that was set",
    )


def main() -> None:
    for agreement in THEIRS:
        bench_all(42, 10_000, agreement, limit=1, target=5)
        bench_all(300, 10_000, agreement, limit=20, target=5)


if __name__ == "__main__":
    main()
