"""Calls walk no further through the library than `walk.json` says, and its modules hang together
no more; a number that has fallen is written down."""

from __future__ import annotations

import json
import sys
from collections import Counter
from importlib.util import find_spec

import pytest
from house import walking

MOST_NAMES = 60  # of compute that other rooms use
# `prepare` and `open_state` stand beside the class of which they may load another kind.
OPENED_WHERE_THEY_ARE_DEFINED = {
    "wellsep.compute.kmeans.prepared_points",
    "wellsep.compute.engine.dask.points",
    "wellsep.compute.kmeans.search_state",
    "wellsep.compute.kernels.numba_search",
}
WRITE = "write it down: python tests/house/walking.py --write"


@pytest.mark.skipif(
    not find_spec("sklearn.callback"), reason="what stands in for its callbacks is walked too"
)
def test_no_number_has_risen_and_every_fall_is_written_down():
    risen, fallen = walking.differences(walking.measured(), walking.recorded())
    assert risen == [], "numbers may only fall"
    assert fallen == [], WRITE


def test_a_rise_and_a_fall_are_told_apart():
    before = {"judge": {"depth": 4, "modules": 7, "files": 2}}
    now = {"judge": {"depth": 5, "modules": 6, "encodings": 1}}
    risen, fallen = walking.differences(now, before)
    assert risen == ["judge: depth 4 -> 5", "judge: encodings None -> 1"]
    assert fallen == ["judge: files 2 -> None", "judge: modules 7 -> 6"]
    assert walking.differences(before, before) == ([], [])


@pytest.mark.parametrize(("depth", "kept"), [(3, 3), (4, 4), (5, 4)])
def test_the_writer_lowers_a_number_and_never_raises_one(tmp_path, monkeypatch, depth, kept):
    record = tmp_path / "walk.json"
    record.write_text(json.dumps({"judge": {"depth": 4}}))
    monkeypatch.setattr(walking, "RECORD", record)
    monkeypatch.setattr(walking, "measured", lambda: {"judge": {"depth": depth}})
    assert walking.main(["--write"]) == (depth > kept)
    assert json.loads(record.read_text()) == {"judge": {"depth": kept}}


def test_what_is_no_longer_counted_is_an_error():
    counts = Counter({"encode": 4})
    assert walking.times(counts, "encode".__eq__, 4, "encode") == 4
    with pytest.raises(AssertionError, match="encode was counted 0 times, not 4 or more"):
        walking.times(counts, "_encode".__eq__, 4, "encode")


OWN = """
from dataclasses import dataclass

@dataclass
class Pair:
    a: int

    def twice(self):
        return [f(x) for x in (self.a, self.a)]

def f(x):
    return (lambda: x)()

def numbers():
    yield f(1)
    yield f(2)

def start():
    class Local:
        b = 1
    return sum(numbers()) + sum(Pair(3).twice()) + Local.b
"""


def test_only_functions_written_in_the_library_are_walked(tmp_path):
    path = tmp_path / "own.py"
    names = {"__name__": "wellsep.own"}
    sys.modules["wellsep.own"] = sys  # where dataclass looks for the module's names
    try:
        exec(compile(OWN, path, "exec"), names)
    finally:
        del sys.modules["wellsep.own"]
    walk = walking.Walk()
    sys.setprofile(walk)
    try:
        names["start"]()
    finally:
        sys.setprofile(None)
    assert {name for _, name in walk.calls} == {"start", "numbers", "f", "Pair.twice"}
    assert walk.calls["wellsep.own", "f"] == 4
    assert walk.numbers() == {"functions": 4, "modules": 1, "depth": 3}
    assert walk.depth == 0


SOURCES = {
    "compute/__init__": "",
    "compute/a": "from wellsep.compute import b\nLIMIT = b.BLOCK",
    "compute/b": "def f():\n    try:\n        import numba\n    except ImportError:\n"
    "        from wellsep.compute.a import LIMIT",
    "compute/c": "if TYPE_CHECKING:\n    from wellsep.compute.d import D",
    "compute/d": "from .c import one, two",
    "indices": "from wellsep.compute import a as rows\nfrom wellsep.compute.c import one\n"
    "import wellsep.compute.d\n\ndef g():\n    import json\n    return rows.LIMIT, rows.LIMIT, "
    "wellsep.compute.d.D, rows",
}


def test_no_module_leads_back_to_itself_however_late_it_imports():
    assert walking.in_cycles(walking.import_graph(walking.read())) == set()


def test_only_what_opens_a_kind_of_rows_loads_a_module_above_it():
    modules = walking.read()
    graph = walking.import_graph(modules)
    loading = {name: graph[name] | module.loaded for name, module in modules.items()}
    assert walking.in_cycles(loading) == OPENED_WHERE_THEY_ARE_DEFINED


def test_only_optional_packages_are_imported_inside_functions():
    assert walking.late_imports(walking.read()) == set()


def test_doors_of_compute_are_narrow():
    numbers = walking.source_numbers()["source"]
    assert numbers["names of compute that other rooms use"] <= MOST_NAMES
    assert numbers["names imported from one module of compute, at most"] <= 10


def test_cycles_late_imports_and_names_used_across_rooms_are_counted(tmp_path):
    for name, source in SOURCES.items():
        path = tmp_path / "wellsep" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    assert walking.source_numbers(tmp_path) == {
        "source": {
            "modules of compute in a cycle of imports": 2,  # a and b, by a late import
            "imports inside functions, not of optional packages": 2,  # of a, and of json
            "names of compute that other rooms use": 3,  # a.LIMIT, c.one, d.D
            "names imported from one module of compute, at most": 2,  # c.one, c.two
        }
    }
