"""Count how far calls walk through the library, and how its modules hang together.

The numbers are kept in `walk.json` and may only fall. A call is counted in a process of its own, by
the second call in it, with one thread and without the optional packages, so that the numbers are
the same wherever the tests run. Only functions written in `wellsep` count: not the bodies of
modules and classes, comprehensions, lambdas, nor methods that a dataclass or named tuple makes.

    python tests/house/walking.py             # what differs from walk.json
    python tests/house/walking.py --write     # write down what has fallen
    python tests/house/walking.py --list judge   # every function of one walk, and its calls
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.machinery
import inspect
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
RECORD = Path(__file__).with_name("walk.json")
Numbers = dict[str, dict[str, int]]

# --------------------------------------------------------------------------- the walk of a call

# Hidden, with all that comes with them: which of them are installed must not matter.
OPTIONAL = {"numba", "faiss", "torch", "dask", "distributed", "pandas", "polars", "pyarrow"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ENCODER = "_encode"  # turns one label vector into codes
RUN_FILES = ("labels.npy", "embedding.npy")
N_RUNS = 4


class Walk:
    """The functions of wellsep that a call enters, how often, how deep; and the files it opens."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()  # (module, qualified name)
        self.opened: Counter[str] = Counter()
        self.depth = self.deepest = 0
        self._names: dict[CodeType, tuple[str, str] | None] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code not in self._names:
            self._names[code] = own_name(frame)
        name = self._names[code]
        if name is None:
            return
        if event == "return":
            self.depth -= 1
            return
        self.calls[name] += 1
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def numbers(self) -> dict[str, int]:
        modules = {module for module, _ in self.calls}
        return {"functions": len(self.calls), "modules": len(modules), "depth": self.deepest}


def own_name(frame: FrameType) -> tuple[str, str] | None:
    """(module, qualified name) of a function written in wellsep; None for any other frame."""
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    is_own = module.partition(".")[0] == "wellsep" and code.co_filename.endswith(".py")
    is_named = bool(code.co_flags & inspect.CO_NEWLOCALS) and not code.co_name.startswith("<")
    return (module, code.co_qualname) if is_own and is_named else None


def walked(call: Callable[[], Any]) -> Walk:
    """The walk of a call that was made once before."""
    call()
    walk, opened = Walk(), files_opened()
    opened.clear()
    sys.setprofile(walk)
    try:
        call()
    finally:
        sys.setprofile(None)
    walk.opened = Counter(opened)
    return walk


@functools.cache
def files_opened() -> list[str]:
    """Names of the files that this process opens from now on."""
    opened: list[str] = []

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not isinstance(arguments[0], int):
            opened.append(os.path.basename(os.fsdecode(arguments[0])))

    sys.addaudithook(hear)  # cannot be taken back, but its process is its own
    return opened


def times(counts: Counter[Any], is_meant: Callable[[Any], bool], least: int, what: str) -> int:
    """How often what is meant was counted; an error where it seems to have been renamed."""
    found = sum(number for name, number in counts.items() if is_meant(name))
    assert found >= least, f"{what} was counted {found} times, not {least} or more: a new name?"
    return found


def calls(folder: Path) -> dict[str, Callable[[], Any]]:
    """The calls that are walked, by name."""
    import numpy as np

    import wellsep as ws
    from wellsep.cli.main import main

    def objects(n: int, apart: float) -> tuple[Any, Any]:
        truth = np.arange(n) % 3
        return rng.normal(size=(n, 4)) + apart * np.eye(3, 4)[truth], truth

    rng = np.random.default_rng(0)
    X, labels = objects(300, 4.0)
    others = rng.integers(0, 4, 300)
    runs = []
    for i in range(N_RUNS):
        embedding, truth = objects(180, 5.0 - i)
        mixed = np.where(rng.random(180) < 0.2 * i, rng.integers(0, 4, 180), truth)
        runs.append(ws.Run(f"run {i}", labels=mixed, embedding=embedding))
    ws.Runs(runs).save(folder / "runs")

    def rank() -> None:
        options = ["--report", str(folder / "r.html"), "--layout", "pca", "--cache", "none"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = main(["rank", str(folder / "runs"), *options])
        assert code == 0, f"rank ended with exit code {code}"

    three = ["silhouette", "dbcv", "cdbw"]
    return {
        "silhouette_score": lambda: ws.silhouette_score(X, labels),
        "score_partitions": lambda: ws.score_partitions(X, [labels, others], three),
        "KMeans.fit": lambda: ws.KMeans(8, random_state=0).fit(X),
        "CFMeans.fit": lambda: ws.CFMeans(8, random_state=0).fit(X),
        "choose_k": lambda: ws.choose_k(X, [2, 3, 4], random_state=0),
        "judge": lambda: ws.judge(ws.Runs(runs), random_state=0),
        "rank --report": rank,
    }


def walks_here(names: list[str]) -> dict[str, Walk]:
    """The walks of the calls named, or of all, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        made = calls(Path(folder))
        return {name: walked(made[name]) for name in names or made}


def walk_numbers() -> Numbers:
    walks = walks_here([])
    numbers = {name: walk.numbers() for name, walk in walks.items()}
    rank = walks["rank --report"]
    numbers["rank --report"] |= {
        "label vectors encoded": times(
            rank.calls, lambda name: name[1] == ENCODER, N_RUNS, f"the function {ENCODER}"
        ),
        "label and embedding files opened": times(
            rank.opened, lambda name: name in RUN_FILES, 2 * N_RUNS, f"a file of {RUN_FILES}"
        ),
    }
    return numbers


class _PlainInstallation(importlib.machinery.PathFinder):
    """Finds modules, but none of the optional packages."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Any:
        hidden = fullname.partition(".")[0] in OPTIONAL
        return None if hidden else super().find_spec(fullname, path, target)


def hide_optional_packages() -> None:
    place = sys.meta_path.index(importlib.machinery.PathFinder)
    sys.meta_path[place] = _PlainInstallation


def in_own_process(*arguments: str) -> str:
    """What this program prints in a fresh process with one thread."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith("WELLSEP_")}
    settings |= dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(SOURCE), "COLUMNS": "100"}
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --------------------------------------------------------------------------- the syntax tree

REQUIRED = {"numpy", "scipy", "sklearn", "joblib", "narwhals", "array_api_compat", "threadpoolctl"}
REQUIRED |= {"typer", "rich", "jinja2"}


class Import(NamedTuple):
    """One imported name, absolute; name is empty where a module is imported as a whole."""

    base: str
    name: str
    local: str  # what the module calls it
    line: int
    late: bool  # inside a function
    runs: bool  # not for types alone


class Module(NamedTuple):
    """What the syntax tree of one module says."""

    imports: list[Import]
    attributes: set[tuple[str, str]]  # (dotted name, its attribute)
    loaded: set[str]  # modules that `load` imports when they are wanted


def read(root: Path = SOURCE) -> dict[str, Module]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((root / "wellsep").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        package = ".".join(parts[:-1])
        name = package if path.stem == "__init__" else ".".join(parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found[name] = Module(
            list(_imports(tree, package)), set(_attributes(tree)), set(_loaded(tree))
        )
    return found


def _imports(
    node: ast.AST, package: str, late: bool = False, runs: bool = True
) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                local = alias.asname or alias.name
                yield Import(alias.name, "", local, child.lineno, late, runs)
        elif isinstance(child, ast.ImportFrom):
            parents = package.split(".")
            above = parents[: len(parents) + 1 - child.level] if child.level else []
            base = ".".join([*above, *filter(None, [child.module])])
            for alias in child.names:
                local = alias.asname or alias.name
                yield Import(base, alias.name, local, child.lineno, late, runs)
        elif not isinstance(child, ast.expr):
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from _imports(child, package, late or inside, runs and not typing)


def _attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := _dotted(node.value)):
            yield name, node.attr


def _loaded(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _dotted(node.func) == "load":
            names = [one.value for one in node.args if isinstance(one, ast.Constant)]
            yield from (name for name in names if str(name).startswith("wellsep."))


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    before = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before else ""


def of_compute(module: str) -> bool:
    return f"{module}.".startswith("wellsep.compute.")


def is_optional(package: str) -> bool:
    return package not in REQUIRED | sys.stdlib_module_names | {"wellsep"}


def home(one: Import, modules: dict[str, Module]) -> str:
    """The module that an import reads: a name of a package may itself be a module."""
    whole = f"{one.base}.{one.name}"
    return whole if whole in modules else one.base


def used_of_compute(module: Module, modules: dict[str, Module]) -> set[tuple[str, str]]:
    """(module of compute, name) of names imported, and of attributes of modules imported."""
    read_from = [(home(one, modules), one) for one in module.imports]
    used, aliases = set(), {}
    for place, one in read_from:
        if of_compute(place) and place == one.base and one.name:
            used.add((place, one.name))
        elif of_compute(place):
            aliases[one.local] = place
    return used | {(aliases[at], name) for at, name in module.attributes if at in aliases}


def in_cycles(graph: dict[str, set[str]]) -> set[str]:
    """The nodes from which a path leads back."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen

    return {node for node in graph if node in reached(node)}


def import_graph(modules: dict[str, Module]) -> dict[str, set[str]]:
    """The modules that each imports, at whatever time."""
    return {
        name: {home(one, modules) for one in module.imports if one.runs} - {name}
        for name, module in modules.items()
    }


def late_imports(modules: dict[str, Module]) -> set[tuple[str, int]]:
    """(module, line) of imports inside functions, but for those of optional packages."""
    return {
        (name, one.line)
        for name, module in modules.items()
        for one in module.imports
        if one.late and not is_optional(one.base.partition(".")[0])
    }


def source_numbers(root: Path = SOURCE) -> Numbers:
    """What the syntax tree of all modules says."""
    modules = read(root)
    graph = {name: to for name, to in import_graph(modules).items() if of_compute(name)}
    late = late_imports(modules)
    used = {name: used_of_compute(module, modules) for name, module in modules.items()}
    elsewhere = set().union(*(names for name, names in used.items() if not of_compute(name)))
    given = Counter(place for place, _ in set().union(*used.values()))
    return {
        "source": {
            "modules of compute in a cycle of imports": len(in_cycles(graph)),
            "imports inside functions, not of optional packages": len(late),
            "names of compute that other rooms use": len(elsewhere),
            "names imported from one module of compute, at most": max(given.values(), default=0),
        }
    }


# --------------------------------------------------------------------------- the record


def recorded() -> Numbers:
    return json.loads(RECORD.read_text(encoding="utf-8"))


def measured() -> Numbers:
    """All numbers as they are now."""
    return json.loads(in_own_process("--here")) | source_numbers()


def differences(now: Numbers, before: Numbers) -> tuple[list[str], list[str]]:
    """(what has risen or is new, what has fallen or is gone), in words."""
    risen, fallen = [], []
    for place in sorted({*now, *before}):
        for what in sorted({*now.get(place, {}), *before.get(place, {})}):
            new, old = now.get(place, {}).get(what), before.get(place, {}).get(what)
            line = f"{place}: {what} {old} -> {new}"
            if old is not None and (new is None or new < old):
                fallen.append(line)
            elif new != old:
                risen.append(line)
    return risen, fallen


def main(arguments: list[str]) -> int:
    if arguments == ["--here"]:
        hide_optional_packages()
        sys.stdout.write(json.dumps(walk_numbers()))
        return 0
    if arguments[:1] == ["--list"]:
        hide_optional_packages()
        for walk in walks_here(arguments[1:]).values():
            for (module, name), number in sorted(walk.calls.items()):
                sys.stdout.write(f"{number:6} {module}.{name}\n")
        return 0
    now = measured()
    risen, fallen = differences(now, recorded())
    sys.stdout.writelines(f"{line}\n" for line in [*risen, *fallen])
    if "--write" not in arguments:
        return int(bool(risen or fallen))
    if risen:
        sys.stdout.write("Nothing is written: numbers may only fall.\n")
        return 1
    RECORD.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
