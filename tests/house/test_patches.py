"""What tests patch is read in its own module, so that tests pass in any order.

A module that is first imported while a test has patched a constant of another one would keep the
patched value for good if it took the constant by value (``from … import SORTABLE``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from golden import ROOT

SOURCES = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
TESTS = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*|on_device")  # the one function that is answered for
READ = "wellsep.compute.statistics.neighbour_graph.READ"
PATCHES = ("setattr", "patch.object", "mock.patch")


def from_imports(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """(module, name, what it is called here) of each ``from wellsep… import name``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("wellsep"):
            yield from ((str(node.module), one.name, one.asname or one.name) for one in node.names)


def patched(source: str) -> set[str]:
    """Full names of the constants that a test file patches."""
    tree = ast.parse(source)
    modules = {called: f"{module}.{name}" for module, name, called in from_imports(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {one.asname or one.name: one.name for one in node.names}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(PATCHES):
            first, second = (*node.args, None, None)[:2]
            if isinstance(second, ast.Constant) and not isinstance(first, ast.Constant):
                target = ast.unparse(first)
                # A variable that is no module may run over all of them.
                some = [modules[target]] if target in modules else modules.values()
                names |= {f"{module}.{second.value}" for module in some}
            elif isinstance(first, ast.Constant):
                names.add(str(first.value))
    return {name for name in names if CONSTANT.fullmatch(name.rpartition(".")[2])}


def by_value(source: str) -> set[str]:
    """Full names of what a module takes by value from others of the package."""
    return {f"{module}.{name}" for module, name, _ in from_imports(ast.parse(source))}


def test_no_module_takes_a_constant_by_value_that_a_test_patches():
    names = set().union(*map(patched, TESTS))
    assert {"wellsep.compute.statistics.ranked_sums.SORTABLE", READ} <= names
    assert names & set().union(*map(by_value, SOURCES)) == set()


@pytest.mark.parametrize(
    "test",
    [
        "from wellsep.compute import sums\nmonkeypatch.setattr(sums, 'ROWS', 3)",
        "from wellsep.compute import sums as s\nmonkeypatch.setattr(s, 'ROWS', 3)",
        "import wellsep.compute.sums as s\nwith mock.patch.object(s, 'ROWS', 3): pass",
        "import wellsep.compute.sums\nmonkeypatch.setattr(wellsep.compute.sums, 'ROWS', 3)",
        "monkeypatch.setattr('wellsep.compute.sums.ROWS', 3)",
        "mock.patch('wellsep.compute.sums.ROWS', 3)",
        "from wellsep.compute import sums\nfor m in [sums]: p.setattr(m, 'ROWS', 3)",
    ],
)
def test_a_patched_constant_is_noticed(test):
    module = "from wellsep.compute.sums import ROWS, strips\n"
    assert patched(test) & by_value(module) == {"wellsep.compute.sums.ROWS"}
    assert not patched(test) & by_value("from wellsep.compute import sums\n")
