"""How long does the support of every cluster of 300 runs take?"""

from __future__ import annotations

import numpy as np

from benchmarks.bench_consensus import made_labels
from benchmarks.harness import processor_seconds, report
from wellsep.evaluate.clusters import support


def main() -> None:
    codes = made_labels(300, 10_000)
    rank, weights = np.arange(1, 301), np.ones(300)
    run, members = 7, codes[7] == 3
    better = [r for r in range(151) if r != run][:150]
    theirs = [[codes[r] == g for g in range(codes[r].max() + 1)] for r in better]
    expected = np.mean([max((members & g).sum() / (members | g).sum() for g in t) for t in theirs])
    difference = abs(support.cluster_support(codes, rank, weights)[run][3] - expected)
    if difference > 1e-9:
        raise SystemExit(f"support must be that of the sets, got a difference of {difference}")
    report(
        "support of all clusters of 300 runs × 10,000 objects: processor time",
        processor_seconds(lambda: support.cluster_support(codes, rank, weights)),
        unit="s",
        target=10,
        smaller_is_better=True,
        baseline="the limit that was set",
        difference=difference,
    )


if __name__ == "__main__":
    main()
