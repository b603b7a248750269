"""What do Dunn, the C index, local connectivity and nearest neighbours cost on the card?

All look at pairs of objects: their nearest and farthest in every partition, a histogram of
distances, neighbours within clusters, neighbours among all. No table of n × n is ever in memory.
The limit of a search for neighbours is products at the rate of a large half-precision product.
"""

from __future__ import annotations

import os
import sys
import warnings
from unittest.mock import patch

import numpy as np

import wellsep as ws
from benchmarks.device import device_seconds, half_precision_rate, require_cuda
from benchmarks.harness import report
from wellsep.compute.statistics import neighbour_graph as neighbours

N, D, K, M = 100_000, 64, 20, 8
CHECKED, PLAIN = 5_000, 20_000  # what is compared with the host, and timed without kernels
SEARCHED, T = 400_000, 5


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    return (rng.standard_normal((n, D), np.float32) + rng.normal(size=(K, D))[y]).astype("f4"), y


def main() -> int:
    torch = require_cuda()
    warnings.simplefilter("ignore")
    X, y = blobs(SEARCHED)
    there = torch.tensor(X, device="cuda")
    rng = np.random.default_rng(1)
    labels = [np.where(rng.random(SEARCHED) < m / M, rng.integers(0, K, SEARCHED), y)
              for m in range(M)]  # fmt: skip

    def score(name, n, partitions):
        some = [one[:n] for one in labels[:partitions]]
        return lambda data: ws.score_partitions(data[:n], some, [name]).values

    met = []
    for name, partitions in (("dunn", 1), ("dunn", M), ("c_index", M), ("lcd", 1)):
        exact = score(name, CHECKED, partitions)(X.astype("f8"))
        difference = float(np.abs(score(name, CHECKED, partitions)(there) - exact).max())
        if difference > 1e-5:
            raise SystemExit(f"{name} on the card must equal float64 to 1e-5, off by {difference}")
        met.append(_line(name, partitions, there, score, difference))
    met.append(_neighbours(there))
    return 0 if all(met) else 1


def _line(name, partitions, there, score, difference) -> bool:
    whole = device_seconds(lambda: score(name, N, partitions)(there), 2)
    fused = device_seconds(lambda: score(name, PLAIN, partitions)(there), 2)
    with patch.dict(os.environ, WELLSEP_KERNELS="0"):
        plain = device_seconds(lambda: score(name, PLAIN, partitions)(there), 1, warm=False)
    many = f" of {partitions} partitions" if partitions > 1 else ""
    return report(
        f"{name}{many}, {N:,} × {D} float32, K = {K}",
        1000 * whole,
        baseline=f"{PLAIN:,} objects in chunks of plain PyTorch take {plain / fused:.3g}× as long",
        unit=" ms",
        smaller_is_better=True,
        plain_s=plain,
        fused_s=fused,
        difference=difference,
    )


def _neighbours(X) -> bool:
    host = neighbours.NeighbourGraph.of(X[:CHECKED].double().cpu().numpy(), T)
    found = neighbours.NeighbourGraph.of(X[:CHECKED], T)
    difference = float(np.abs(found.distances - host.distances).max())
    if difference > 1e-6:
        raise SystemExit(f"neighbours must be those of the host, off by {difference}")
    taken = device_seconds(lambda: neighbours.NeighbourGraph.of(X, T), 2)
    limit = 6 * len(X) ** 2 * D / half_precision_rate()
    return report(
        f"{T} nearest neighbours of each of {len(X):,} × {D} float32",
        taken,
        baseline=f"{100 * limit / taken:.3g} % of the limit",
        unit=" s",
        smaller_is_better=True,
        operations=6 * len(X) ** 2 * D,
        limit_s=limit,
        difference=difference,
    )


if __name__ == "__main__":
    sys.exit(main())
