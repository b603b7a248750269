"""How low does the search of cf-means get on a card, in what time and memory?

Ten million objects in a thousand groups, from a random start: k-means stops where many groups share
a centre; the search moves centres from where they are too many to where they are missing.
"""

from __future__ import annotations

import sys
import warnings

import wellsep as ws
from benchmarks.device import device_seconds, require_cuda
from benchmarks.harness import report

N, D, K = 10_000_000, 64, 1_000
MOVES, ITERATIONS = 20, 10
MEMORY_GB = 16


def main() -> int:
    torch = require_cuda()
    warnings.simplefilter("ignore")
    generator = torch.Generator(device="cuda").manual_seed(0)
    means = 3 * torch.randn(K, D, device="cuda", generator=generator)
    X = torch.randn(N, D, device="cuda", generator=generator)
    X += means[torch.randint(K, (N,), device="cuda", generator=generator)]
    options = {"init": "random", "random_state": 0}
    fitted = {}

    def plain() -> None:
        fitted["k-means"] = ws.KMeans(K, max_iter=ITERATIONS, n_init=1, **options).fit(X)

    def search() -> None:
        fitted["search"] = ws.CFMeans(K, max_moves=MOVES, **options).fit(X)

    seconds = {"k-means": device_seconds(plain, 1)}
    torch.cuda.reset_peak_memory_stats()
    seconds["search"] = device_seconds(search, 1)
    peak = torch.cuda.max_memory_allocated() / 1e9
    what = f"{N:,} × {D} float32, k = {K:,}, on the card"
    met = [
        report(
            f"inertia of CFMeans with {MOVES} batches of moves, {what}",
            fitted["k-means"].inertia_ / fitted["search"].inertia_,
            baseline=f"KMeans from the same random start, {ITERATIONS} iterations",
            target=1.5,
            kmeans_s=seconds["k-means"],
            search_s=seconds["search"],
            kmeans_inertia=float(fitted["k-means"].inertia_),
            search_inertia=float(fitted["search"].inertia_),
            expected_inertia=N * D,  # about the true means
        ),
        report(
            f"time of CFMeans with {MOVES} batches of moves, {what}",
            seconds["search"],
            baseline="none",
            unit=" s",
            smaller_is_better=True,
        ),
        report(
            f"memory of CFMeans, {what}",
            peak,
            baseline=f"X itself takes {X.nbytes / 1e9:.1f} GB",
            target=MEMORY_GB,
            unit=" GB",
            smaller_is_better=True,
        ),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
