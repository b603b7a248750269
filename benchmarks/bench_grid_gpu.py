"""How long does the whole grid of the ACE paper take on the card, by all nine of its indices?

42 spaces × 42 partitions, n = 10,000, d = 160, float32. Each space is a pass of its own: its
distances are computed once on the card and serve all partitions and indices.
``WELLSEP_BENCH_SPACES=4`` times four spaces and multiplies.
"""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

import wellsep as ws
from benchmarks.device import device_seconds, require_cuda
from benchmarks.harness import report, seconds

N, D, K, M = 10_000, 160, 10, 42
SPACES = int(os.environ.get("WELLSEP_BENCH_SPACES", M))
NINE = ("silhouette", "silhouette_cosine", "calinski_harabasz", "davies_bouldin", "dunn",
        "c_index", "s_dbw", "ccc", "cdbw")  # fmt: skip
CHECKED = 2


def main() -> int:
    torch = require_cuda()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, N)
    centres = rng.normal(size=(K, D))
    labels = [np.where(rng.random(N) < m / M, rng.integers(0, K, N), truth) for m in range(M)]

    def space(i: int) -> np.ndarray:
        return (rng.normal(size=(N, D)) * (1 + i / 10) + centres[truth]).astype("f4")

    first = space(0)
    spaces = [torch.tensor(first, device="cuda")]
    spaces += [torch.tensor(space(i), device="cuda") for i in range(1, SPACES)]

    def score(X):
        return ws.score_partitions(X, labels, NINE, convention="ace").values

    wide = first.astype("f8")
    exact = ws.score_partitions(wide, labels[:CHECKED], NINE, convention="ace").values
    difference = np.abs(score(spaces[0])[:CHECKED] / exact - 1)
    worst = float(np.nanmax(difference))
    if worst > 1e-4:
        names = dict(zip(NINE, difference.max(axis=0), strict=True))
        raise SystemExit(f"float32 on the card must agree with float64 on the host, off by {names}")
    # every index alone, on one space: where the time goes
    alone = {
        name: device_seconds(
            lambda name=name: ws.score_partitions(spaces[0], labels, [name], convention="ace"), 2
        )
        for name in NINE
    }
    taken = seconds(lambda: [score(X) for X in spaces]) * M / SPACES
    host = seconds(lambda: ws.score_partitions(first, labels, NINE, convention="ace"))
    facts = {"largest_relative_difference": worst, "each_index_s": alone, "spaces": SPACES}
    met = [
        report(
            f"nine indices, {M} × {M} grid of {N:,} × {D} float32, on the card",
            taken,
            baseline="none",
            target=20,
            unit=" s",
            smaller_is_better=True,
            seed=0,
            **facts,
        ),
        report(
            f"nine indices, {M} partitions of one space of {N:,} × {D} float32",
            host / (taken / M),
            baseline="ours on the host of the card",
            host_s=host,
            card_s=taken / M,
        ),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
