"""How near the limits of the card are nearest centres, and what does a cf-means iteration cost?

The nearest two of k centres take 6nkd half-precision operations (each row and centre in two parts)
and one reading of X; no table of n × k is ever in memory.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import wellsep as ws
from benchmarks.device import device_seconds, half_precision_rate, memory_rate, require_cuda
from benchmarks.harness import report
from wellsep.compute.data import opening as space

N, D, K = 10_000_000, 64, 1_000
CHECKED = 100_000
FEW, MANY = 2, 32  # iterations; their difference must outweigh the rest of a fit
FEWER, FEW_CENTERS = 1_000_000, 100  # for CFQ


def main() -> int:
    torch = require_cuda()
    warnings.simplefilter("ignore")
    generator = torch.Generator(device="cuda").manual_seed(0)
    means = 1.5 * torch.randn(2 * K, D, device="cuda", generator=generator)
    X = torch.randn(N, D, device="cuda", generator=generator)
    X += means[torch.randint(2 * K, (N,), device="cuda", generator=generator)]
    centers = X[:K].double().cpu().numpy()

    wrong = _differing(X[:CHECKED], centers)
    if wrong > 1e-4:
        raise SystemExit(f"the nearest centres must be those of float64, {wrong:.2%} are not")
    products, memory = half_precision_rate(), memory_rate()
    rows = space.open_space(X)
    norms = rows.norms()
    taken = device_seconds(lambda: rows.nearest_two(centers, norms), 5)
    written = N * (4 + 4 + 4 + 4)
    limit = max(6 * N * K * D / products, (X.nbytes + written) / memory)
    met = [
        report(
            f"nearest two of {N:,} × {D}, k = {K:,}, float32",
            1000 * taken,
            baseline="none",
            target=60,
            unit=" ms",
            smaller_is_better=True,
            operations=6 * N * K * D,
            bytes=X.nbytes + written,
            limit_ms=1000 * limit,
            half_precision_tflops=products / 1e12,
            memory_tb_per_s=memory / 1e12,
            differing=wrong,
        ),
        report(
            f"share of the limit, nearest two of {N:,} × {D}, k = {K:,}",
            100 * limit / taken,
            baseline="products at the rate of a large half-precision product",
            unit=" %",
        ),
    ]
    met.append(_iterations(X, X[:K].clone()))
    met.append(_quality(X, centers))
    return 0 if all(met) else 1


def _differing(X, centers: np.ndarray) -> float:
    """Share of rows whose two nearest centres differ from those of float64 distances."""
    import torch

    found = space.open_space(X).nearest_two(centers)
    exact = torch.cdist(X.double(), torch.as_tensor(centers, device=X.device)).topk(
        2, dim=1, largest=False
    )
    wrong = (found.first != exact.indices[:, 0]) | (found.second != exact.indices[:, 1])
    return float(wrong.double().mean())


def _iterations(X, start) -> bool:
    def lloyd(count: int) -> None:
        ws.KMeans(K, init=start, max_iter=count, tol=0.0).fit(X)

    def counterfactual(count: int) -> None:
        options = {
            "schedule": "oscillate",
            "max_moves": 0,
            "safeguard": False,
            "max_iter": 1,
            "tol": 0.0,
        }
        ws.CFMeans(K, init=start, n_steps=count, weight=0.5, **options).fit(X)

    def one(fit) -> float:
        fit(FEW)
        gap = device_seconds(lambda: fit(MANY), 2) - device_seconds(lambda: fit(FEW), 2)
        return max(gap / (MANY - FEW), 1e-9)

    plain, cf = one(lloyd), one(counterfactual)
    return report(
        f"one cf-means iteration on the card, {N:,} × {D}, k = {K:,}",
        cf / plain,
        baseline="one k-means iteration",
        target=1.6,
        smaller_is_better=True,
        kmeans_ms=1000 * plain,
        cfmeans_ms=1000 * cf,
    )


def _quality(X, centers: np.ndarray) -> bool:
    """CFQ needs every distance to a plane between centres: n × K numbers, in parts."""
    import torch

    some, few = X[:FEWER], centers[:FEW_CENTERS]
    labels = space.open_space(some).nearest(few).first.cpu().numpy()
    part, there = slice(0, CHECKED), torch.as_tensor(few, dtype=X.dtype, device=X.device)
    exact = ws.cfq_score(some[part].double().cpu().numpy(), labels[part], centers=few)
    difference = abs(ws.cfq_score(some[part], labels[part], centers=there) / exact - 1)
    if difference > 1e-5:
        raise SystemExit(f"CFQ must equal that of the host in float64, it differs by {difference}")
    return report(
        f"CFQ of {FEWER:,} × {D}, k = {FEW_CENTERS}, float32, on the card",
        1000 * device_seconds(lambda: ws.cfq_score(some, labels, centers=there)),
        baseline="none",
        unit=" ms",
        smaller_is_better=True,
        difference=difference,
    )


if __name__ == "__main__":
    sys.exit(main())
