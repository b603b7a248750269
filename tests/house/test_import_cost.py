"""`import wellsep` is light: half a second beyond scikit-learn at most, and nothing heavy."""

from __future__ import annotations

import functools
import json
import subprocess
import sys

import pytest

import wellsep

HEAVY = ("torch", "dask", "distributed", "numba", "matplotlib", "pandas", "polars")
# Each step and what it may add; they follow each other in one process.
STEPS = {
    "the import": "import wellsep",
    "the room that scores": "wellsep.score_partitions",
    "every public name": "[getattr(wellsep, name) for name in wellsep.__all__]",
    "the room that draws": "import wellsep.plot",
}


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def measure():
    """Step → (heavy modules and processor time since scikit-learn was imported)."""
    code = ["import json, sys, time, sklearn.base, sklearn.metrics"]
    code += ["before, start, found = set(sys.modules), time.process_time(), {}"]
    for name, step in STEPS.items():
        heavy = f"sorted((set(sys.modules) - before) & set({HEAVY!r}))"
        code += [step, f"found[{name!r}] = [{heavy}, time.process_time() - start]"]
    code += ["print(json.dumps(found))"]
    return functools.cache(lambda attempt: json.loads(python("\n".join(code))))


@pytest.mark.parametrize("step", STEPS)
def test_nothing_heavy_is_loaded_beyond_what_scikit_learn_loads(measure, step):
    # scikit-learn itself imports pandas where it is installed.
    assert measure(0)[step][0] == []


def test_the_bare_import_loads_nothing_heavy_at_all():
    report = f"import sys, wellsep; print(sorted(set(sys.modules) & set({HEAVY!r})))"
    assert python(report).strip() == "[]"


@pytest.mark.parametrize("step", ["the import", "the room that scores"])
def test_less_than_half_a_second_is_added_to_scikit_learn(measure, step):
    # Processor time, since others may share the cores; three attempts, since they share its caches.
    assert any(measure(attempt)[step][1] < 0.5 for attempt in range(3))


def test_the_probe_would_see_a_heavy_module():
    assert "'polars'" in python(f"import sys, polars; print(set(sys.modules) & set({HEAVY!r}))")


@pytest.mark.parametrize("room", wellsep._ROOMS)
def test_the_import_of_the_package_makes_its_rooms_usable(room):
    if room == "deep":
        pytest.importorskip("torch", reason="needs the extra deep")
    assert python(f"import wellsep; print(wellsep.{room}.__name__)").strip() == f"wellsep.{room}"
