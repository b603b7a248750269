"""`import wellsep` is light: half a second beyond scikit-learn at most, and nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "dask", "distributed", "numba", "matplotlib", "pandas", "polars", "faiss")
NO_MORE = "import wellsep"
EVERY_NAME = "import wellsep; [getattr(wellsep, name) for name in wellsep.__all__]"


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("code", [NO_MORE, EVERY_NAME], ids=["import", "every public name"])
def test_nothing_heavy_is_loaded_beyond_what_scikit_learn_loads(code):
    # scikit-learn itself imports pandas where it is installed.
    before = "import sys, sklearn.base, sklearn.metrics; before = set(sys.modules);"
    report = f"print(sorted((set(sys.modules) - before) & set({HEAVY!r})))"
    assert python(f"{before}{code};{report}").strip() == "[]"


def test_the_bare_import_loads_nothing_heavy_at_all():
    report = f"import sys, wellsep; print(sorted(set(sys.modules) & set({HEAVY!r})))"
    assert python(report).strip() == "[]"


def test_the_import_adds_less_than_half_a_second_to_scikit_learn():
    code = (
        "import time, sklearn, sklearn.metrics; start = time.process_time(); import wellsep;"
        "print(time.process_time() - start)"
    )
    # Processor time, since others may share the cores; three attempts, since they share its caches.
    assert any(float(python(code)) < 0.5 for _ in range(3))


def test_the_scoring_room_adds_less_than_half_a_second_to_scikit_learn():
    code = (
        "import time, sklearn, sklearn.metrics; start = time.process_time(); import wellsep;"
        "wellsep.score_partitions; print(time.process_time() - start)"
    )
    assert any(float(python(code)) < 0.5 for _ in range(3))


def test_the_probe_would_see_a_heavy_module():
    assert "'polars'" in python(f"import sys, polars; print(set(sys.modules) & set({HEAVY!r}))")
