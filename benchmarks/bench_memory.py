"""How much memory does an exact silhouette take as n grows, beyond a process with X in it?

Every size runs in a process of its own, whose peak is read at its end. A table of all distances
would grow with n² and take 75 GiB at the largest size.
"""

from __future__ import annotations

import math
import sys

from benchmarks.harness import report, run_child

SIZES, D, K = (12_500, 25_000, 50_000, 100_000), 32, 20
WITHIN = 1536.0  # MiB, whole process

DATA = """
import numpy as np
rng = np.random.default_rng(0)
y = rng.integers(0, {k}, {n})
X = rng.normal(size=({n}, {d})) + rng.normal(size=({k}, {d}))[y]
"""
IDLE = DATA + "import wellsep as ws; ws.silhouette_score(X[:200], y[:200])"
OURS = DATA + "import wellsep as ws; print(ws.silhouette_score(X, y))"
THEIRS = DATA + "from sklearn.metrics import silhouette_score; print(silhouette_score(X, y))"


def main() -> int:
    # The parent stays small: a child begins with the peak of the process that starts it.
    idle, ours = [], []
    for n in SIZES:
        size = {"n": n, "d": D, "k": K}
        idle.append(run_child(IDLE.format(**size)))
        ours.append(run_child(OURS.format(**size)))
    theirs = run_child(THEIRS.format(n=SIZES[0], d=D, k=K))
    difference = abs(float(ours[0].output) - float(theirs.output))
    if difference > 1e-10:
        raise SystemExit(f"silhouettes must equal scikit-learn's, got a difference of {difference}")
    extra = [max(o.peak_mb - i.peak_mb, 1.0) for o, i in zip(ours, idle, strict=True)]
    exponent = math.log(extra[-1] / extra[0]) / math.log(SIZES[-1] / SIZES[0])
    facts = {
        "sizes": SIZES,
        "peak_mib": [o.peak_mb for o in ours],
        "beyond_x_mib": extra,
        "seconds": [o.seconds for o in ours],
        "sklearn_peak_mib_at_the_smallest": theirs.peak_mb,
        "difference": difference,
    }
    met = [
        report(
            f"peak memory of a silhouette of {SIZES[-1]:,} × {D} float64, K = {K}",
            ours[-1].peak_mb,
            baseline="none",
            target=WITHIN,
            unit=" MiB",
            smaller_is_better=True,
            **facts,
        ),
        report(
            f"exponent of n in the memory beyond X, {SIZES[0]:,} to {SIZES[-1]:,} × {D}",
            exponent,
            baseline="the process before the call",
            target=1.1,
            unit="",
            smaller_is_better=True,
        ),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
