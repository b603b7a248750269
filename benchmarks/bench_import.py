"""How much do `import wellsep` and a cold `wellsep --help` add to scikit-learn and Python?"""

from __future__ import annotations

import importlib.util
import tempfile

from benchmarks.harness import report, run_child

REPEATS = 5

BARE = "pass"
SKLEARN = "import sklearn, sklearn.metrics"
IMPORT = (
    "import time, sklearn, sklearn.metrics; start = time.perf_counter();"
    "import wellsep; print(time.perf_counter() - start)"
)
SCORING = (
    "import time, sklearn, sklearn.metrics; start = time.perf_counter();"
    "import wellsep; wellsep.score_partitions; print(time.perf_counter() - start)"
)
HELP = "from wellsep.cli.main import main; assert main(['--help']) == 0"
# A fresh process in which numba is loaded and its compiled code comes from the cache on disk.
COMPILED = (
    "import numpy as np; from wellsep.cli.main import main; import numba;"
    "rng = np.random.default_rng(0);"
    "np.save('{folder}/X.npy', rng.normal(size=(1000, 8)));"
    "np.save('{folder}/y.npy', rng.integers(0, 5, (20, 1000)));"
    "assert main(['score', '{folder}/X.npy', '{folder}/y.npy', '-i', 'silhouette']) == 0"
)


def best(code: str) -> float:
    return min(run_child(code).seconds for _ in range(REPEATS))


def best_printed(code: str) -> float:
    return min(float(run_child(code).output) for _ in range(REPEATS))


def main() -> None:
    # Correctness first: the import must leave out what would make it slow.
    loaded = run_child("import sys, wellsep; print('torch' in sys.modules, 'numba' in sys.modules)")
    if loaded.output.split() != ["False", "False"]:
        raise SystemExit("import wellsep must load neither torch nor numba")
    bare, sklearn = best(BARE), best(SKLEARN)
    limits = {"unit": " s", "smaller_is_better": True, "repeats": REPEATS}
    report(
        "seconds that `import wellsep` adds to scikit-learn's import",
        best_printed(IMPORT),
        baseline="scikit-learn",
        target=0.5,
        sklearn_s=sklearn - bare,
        **limits,
    )
    report(
        "the same with the scoring functions resolved",
        best_printed(SCORING),
        baseline="scikit-learn",
        target=0.5,
        sklearn_s=sklearn - bare,
        **limits,
    )
    report(
        "cold `wellsep --help` beyond starting Python",
        best(HELP) - bare,
        baseline="bare Python",
        target=1.0,
        python_s=bare,
        **limits,
    )
    if importlib.util.find_spec("numba") is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        run_child(COMPILED.format(folder=folder))  # compiles, where nobody has yet
        report(
            "cold `wellsep score` of 20 partitions of 1,000 × 8 with numba loaded",
            best(COMPILED.format(folder=folder)) - bare,
            baseline="bare Python",
            target=3.0,
            python_s=bare,
            **limits,
        )


if __name__ == "__main__":
    main()
