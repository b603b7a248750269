"""How much memory do scores take: a silhouette as n grows, a file of 2 GB, 100,000 clusters?

Every case runs in a process of its own. Of the silhouettes the peak of the process is read at its
end; a table of all distances would grow with n² and take 75 GiB at the largest size. Of files and
of many clusters the memory that the process takes for itself is watched (RssAnon: pages of the
file that the system keeps are not counted), beyond what it had before the call. They need 2.6 GB
of disk and, for CFQ, minutes: it looks at 2 · 10¹⁰ planes.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import numpy as np

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


WATCHED = """
import threading, time, numpy as np, wellsep as ws
from wellsep._files.arrays import stored_npy
names = {names!r}
ws.score_partitions(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 5, names)
{data}
def own():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024
before, peak, done = own(), 0.0, False
def watch():
    global peak
    while not done:
        peak = max(peak, own())
        time.sleep(0.002)
thread = threading.Thread(target=watch)
thread.start()
begin = time.process_time()
ws.score_partitions(X, y, names)
spent = time.process_time() - begin
done = True
thread.join()
print(peak - before, spent)
"""
BY_ROWS = ["calinski_harabasz", "davies_bouldin", "simplified_silhouette", "cfq"]
# What, its size, indices, most MiB. The silhouette visits all pairs: a wider, smaller file.
FILES = (
    ("4,000,000 × 128 float32 in a file of 2 GB", (4_000_000, 128), "f4", BY_ROWS, 500.0),
    ("2,000,000 × 128 float64 in a file of 2 GB", (2_000_000, 128), "f8", BY_ROWS, 500.0),
    ("8,192 × 16,384 float32 in a file of .5 GB", (8192, 16384), "f4", ["silhouette"], 375.0),
)
OPEN = 'X = stored_npy({path!r}, "X").open(); y = np.arange(len(X)) % 5'
PAIRS = "X = np.random.default_rng(0).normal(size=(200_000, 2)); y = np.arange(200_000) % 100_000"


def _write(path: Path, shape: tuple[int, int], dtype: str) -> None:
    X = np.lib.format.open_memmap(path, "w+", dtype, shape)
    for rows in np.array_split(np.arange(len(X)), 32):
        X[rows[0] : rows[-1] + 1] = np.random.default_rng(rows[0]).random((len(rows), shape[1]))
    X.flush()


def _watched(what: str, data: str, names: list[str], target: float) -> bool:
    mib, spent = map(float, run_child(WATCHED.format(names=names, data=data)).output.split())
    return report(
        f"own memory of {', '.join(names)}: {what}",
        mib,
        baseline="the process before the call",
        target=target,
        unit=" MiB",
        smaller_is_better=True,
        processor_seconds=spent,
    )


def files_and_clusters() -> list[bool]:
    met = []
    for what, shape, dtype, names, target in FILES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            _write(path, shape, dtype)
            met.append(_watched(what, OPEN.format(path=str(path)), names, target))
    for name in ("davies_bouldin", "cfq"):
        met.append(_watched("100,000 clusters of 200,000 × 2", PAIRS, [name], 500.0))
    return met


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
    return 0 if all(met + files_and_clusters()) else 1


if __name__ == "__main__":
    sys.exit(main())
