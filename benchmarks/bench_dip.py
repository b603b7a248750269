"""How fast are one dip, simulated dips, and the dip test of a large space?"""

from __future__ import annotations

import os
from unittest.mock import patch

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from benchmarks.harness import Ratio, report, seconds, time_ratio
from wellsep.spaces import dip_statistic, null_dips

SEED = 0


def dip_by_scanning(x: np.ndarray) -> float:
    """The same algorithm as plain loops: hulls scanned anew, point by point, in each round."""
    v, counts = np.unique(x, return_counts=True)
    upto = np.cumsum(counts)
    v, low, high = v.tolist(), (upto - counts).tolist(), upto.tolist()

    def hull(y, first, last):
        stack = [first]
        for i in range(first + 1, last + 1):
            while len(stack) > 1:
                a, b = stack[-2], stack[-1]
                if (y[b] - y[a]) * (v[i] - v[b]) < (y[i] - y[b]) * (v[b] - v[a]):
                    break
                stack.pop()
            stack.append(i)
        return stack

    def at(points, vertices, y):
        return np.interp([v[i] for i in points], [v[i] for i in vertices], [y[i] for i in vertices])

    first, last, height = 0, len(v) - 1, 1.0
    while first < last:
        g, m = hull(low, first, last), hull([-y for y in high], first, last)
        apart_g = at(g, m, high) - [low[i] for i in g]
        apart_m = [high[i] for i in m] - at(m, g, low)
        if max(apart_g.max(), apart_m.max()) <= height:
            break
        if apart_g.max() > apart_m.max():
            start = g[int(apart_g.argmax())]
            stop = min(i for i in m if i >= start)
        else:
            stop = m[int(apart_m.argmax())]
            start = max(i for i in g if i <= stop)
        left, right = range(first, start), range(stop + 1, last + 1)
        height = max([height, *([high[i] for i in left] - at(left, g, low))])
        height = max([height, *(at(right, m, high) - [low[i] for i in right])])
        first, last = start, stop
    return height / (2 * len(x))


def bench_statistic() -> None:
    xs = list(np.random.default_rng(SEED).normal(size=(5, 10_000)))
    difference = largest_difference(dip_by_scanning, xs)
    report(
        "one dip statistic of 10,000 normal values",
        without_kernels(ratio_of_one, dip_by_scanning, xs),
        baseline="the same algorithm in plain loops",
        target=4,
        difference=difference,
        samples=len(xs),
    )
    bench_peer()


def largest_difference(theirs, xs: list) -> float:
    """Ours must be theirs, with and without the compiled twin."""
    difference = max(
        abs(theirs(x) - dip)
        for x in xs
        for dip in (dip_statistic(x), without_kernels(dip_statistic, x))
    )
    if difference > 1e-12:
        raise SystemExit(f"the dip must equal that of the baseline, got {difference} more")
    return difference


def ratio_of_one(theirs, xs: list) -> Ratio:
    """Times of one dip; each call gets another sample, as a processor soon knows one's branches."""
    total = time_ratio(
        lambda: [theirs(x) for x in xs], lambda: [dip_statistic(x) for x in xs], repeats=9
    )
    return Ratio(total.baseline_s / len(xs), total.ours_s / len(xs), total.repeats)


def with_kernels(function, *arguments):
    return function(*arguments)


def without_kernels(function, *arguments):
    with patch.dict(os.environ, WELLSEP_KERNELS="0"):
        return function(*arguments)


def bench_peer() -> None:
    """Against the diptest package, which is copyleft and only used where the user has it."""
    try:
        from diptest import dipstat
    except ImportError:
        return

    def theirs(x):
        return dipstat(x, allow_zero=False)  # as ours: unsorted values in, at least 1/(2n) out

    rng = np.random.default_rng(SEED)
    kinds = {
        "normal": lambda shape: rng.normal(size=shape),
        "uniform": lambda shape: rng.random(shape),
        "bimodal": lambda shape: rng.normal(size=shape) + 4 * rng.integers(0, 2, size=shape),
        "rounded normal": lambda shape: rng.normal(size=shape).round(2),
    }
    # As many dips as make it pay load the compiled twin, where there is one.
    null_dips(100, 2000, random_state=SEED)
    for n in (1000, 10_000, 100_000, 1_000_000):
        for kind, draw in kinds.items():
            xs = list(draw((max(3, min(200, 200_000 // n)), n)))
            difference = largest_difference(theirs, xs[:3])
            for note, when in (("", with_kernels), (", without numba", without_kernels)):
                report(
                    f"one dip statistic of {n:,} {kind} values{note}",
                    when(ratio_of_one, theirs, xs),
                    baseline="diptest",
                    difference=difference,
                    samples=len(xs),
                )


def bench_null_dips() -> None:
    def simulate():
        return null_dips(1000, 2000, random_state=SEED)

    if not np.allclose(simulate(), without_kernels(simulate), rtol=0, atol=1e-13):
        raise SystemExit("the compiled twin must give the dips of its reference")
    report(
        "2000 simulated dips of 1000 values",
        time_ratio(lambda: without_kernels(simulate), simulate, repeats=3),
        baseline="ours without numba",
        target=5,
    )


def bench_space() -> None:
    X = np.random.default_rng(SEED).normal(size=(100_000, 256)).astype(np.float32)
    X[:50_000, :40] += 1.0

    def scikit_learn():
        Z = StandardScaler().fit_transform(X)
        return ws.dip_test(PCA(1, svd_solver="full").fit_transform(Z)[:, 0])

    ours, theirs = ws.multimodality(X), scikit_learn()
    difference = abs(ours.statistic - theirs.statistic)
    if difference > 1e-4:
        raise SystemExit(f"the dip must equal that of scikit-learn's PCA, got {difference} more")
    report(
        "dip test of a float32 space, 100,000 × 256",
        time_ratio(scikit_learn, lambda: ws.multimodality(X), repeats=2, warm=False),
        baseline="StandardScaler and full PCA of scikit-learn",
        target=1,
        difference=difference,
        dip_alone_s=seconds(lambda: ws.dip_test(X[:, 0])),
    )


def main() -> None:
    bench_statistic()
    bench_null_dips()
    bench_space()


if __name__ == "__main__":
    main()
