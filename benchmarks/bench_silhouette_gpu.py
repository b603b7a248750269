"""How near the limits of the card is an exact silhouette of a million objects?

Every one of n² distances is a product of two rows in three half-precision parts (6d operations) and
a root; nothing larger than n × K is in memory. The limit is products at the rate of a large
half-precision matrix product and then roots at the special-function units' rate, one after the
other; a kernel that overlaps them may pass it.
"""

from __future__ import annotations

import os
import sys
from unittest.mock import patch

import numpy as np

import wellsep as ws
from benchmarks.device import device_seconds, half_precision_rate, require_cuda, root_rate
from benchmarks.harness import report

N, D, K = 1_000_000, 64, 20
SUBSET = 100_000
MANY = 42
PLAIN = 200_000  # what the chunked baseline is timed on


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    return (rng.standard_normal((n, D), np.float32) + rng.normal(size=(K, D))[y]).astype("f4"), y


def main() -> int:
    torch = require_cuda()
    X, y = blobs(N)
    there = torch.tensor(X, device="cuda")
    few, labels = there[:SUBSET], y[:SUBSET]
    error = abs(
        ws.silhouette_score(few, labels) - ws.silhouette_score(X[:SUBSET].astype("f8"), labels)
    )
    if error > 1e-6:
        raise SystemExit(f"a float32 silhouette must equal that of float64 to 1e-6, off by {error}")
    products, roots = half_precision_rate(), root_rate()

    taken = device_seconds(lambda: ws.silhouette_score(there, y))
    operations, distances = 6 * N**2 * D, N**2
    limit = operations / products + distances / roots
    facts = {
        "limit_s": limit,
        "operations": operations,
        "roots": distances,
        "bytes": there.nbytes + 8 * N * K,
        "half_precision_tflops": products / 1e12,
        "roots_per_s": roots,
    }
    met = [
        report(
            f"silhouette, {N:,} × {D} float32, K = {K}",
            taken,
            baseline="none",
            target=1.2,
            unit=" s",
            smaller_is_better=True,
            **facts,
        ),
        report(
            f"share of the limit, silhouette of {N:,} × {D}",
            100 * limit / taken,
            baseline="products, then roots, at the card's rates",
            unit=" %",
        ),
        report(
            f"error of a float32 silhouette, {SUBSET:,} × {D}, K = {K}",
            error,
            baseline="float64 on the host",
            target=1e-6,
            unit="",
            smaller_is_better=True,
        ),
    ]
    met += [_chunked(there[:PLAIN], y[:PLAIN]), _many(few)]
    return 0 if all(met) else 1


def _chunked(X, y) -> bool:
    fused = device_seconds(lambda: ws.silhouette_score(X, y))
    with patch.dict(os.environ, WELLSEP_KERNELS="0"):
        plain = device_seconds(lambda: ws.silhouette_score(X, y), 1)
    return report(
        f"silhouette, {len(y):,} × {D} float32, K = {K}, on the card",
        plain / fused,
        baseline="the same in chunks of plain PyTorch",
        target=2,
        baseline_s=plain,
        ours_s=fused,
    )


def _many(X) -> bool:
    rng = np.random.default_rng(1)
    labels = [rng.integers(0, K, len(X)) for _ in range(MANY)]
    one = device_seconds(lambda: ws.score_partitions(X, labels[:1], ["silhouette"]))
    many = device_seconds(lambda: ws.score_partitions(X, labels, ["silhouette"]))
    return report(
        f"{MANY} partitions (K = {K}) at once over {len(X):,} × {D}",
        many / one,
        baseline="one partition",
        target=6,
        smaller_is_better=True,
        one_s=one,
        many_s=many,
    )


if __name__ == "__main__":
    sys.exit(main())
