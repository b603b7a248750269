"""Each room imports only the rooms below it, read from the source of every module."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest
from golden import ROOT

SOURCE = ROOT / "src" / "wellsep"

# Each module of these folders is a room of its own; the folders themselves hold nothing.
FOLDERS_OF_LEAVES = {"_checks", "_files", "_text", "distances", "tables"}
LEAVES = {
    "_checks.arrays",
    "_checks.values",
    "_files.limits",
    "_files.maps",
    "_files.arrays",
    "_files.replace",
    "_files.records",
    "_checks.labels",
    "partitions",
    "distances.matrix",
    "distances.base",
    "runs",
    "datasets",
    "tables.matching",
    "tables.reading",
    "tables.text",
    "tables.writing",
    "_text.sentences",
    "_text.glossary",
    "_sklearn_callbacks",
    "_plugins",
    "_threads",
}
BELOW = {
    "distances.base": set(),
    "_checks.arrays": {"_text.sentences", "_files.maps", "distances.base"},
    "_checks.values": {"_checks.arrays", "_text.sentences"},
    "_files.limits": {"_text.sentences"},
    "_files.maps": set(),
    "_files.arrays": {"_text.sentences", "_files.maps", "_files.limits"},
    "_files.replace": set(),
    "_files.records": {
        "_checks.values",
        "_files.limits",
        "_files.arrays",
        "_files.replace",
        "_text.sentences",
    },
    "_checks.labels": {"_checks.arrays", "_text.sentences"},
    "partitions": {"_checks.arrays", "_checks.labels", "_files.records", "_text.sentences"},
    "distances.matrix": {"_checks.arrays", "_text.sentences", "distances.base"},
    "tables.reading": {
        "_checks.arrays",
        "_checks.values",
        "_text.sentences",
        "_files.limits",
        "_files.arrays",
        "tables.text",
    }
    | {"tables.writing"},
    "tables.matching": {"_text.sentences"},
    "tables.text": {"tables.writing"},
    "tables.writing": {"_files.arrays", "_files.replace"},
    "_text.sentences": set(),
    "_text.glossary": set(),
    "_sklearn_callbacks": set(),
    "_plugins": set(),
    "_threads": {"_checks.values"},
    "datasets": {"_checks.arrays", "_checks.values", "_text.sentences"},
    "runs": {
        "_checks.arrays",
        "_checks.values",
        "_files.limits",
        "_files.maps",
        "_files.arrays",
        "_files.replace",
        "_checks.labels",
        "partitions",
        "distances.matrix",
        "distances.base",
        "tables.matching",
        "tables.reading",
        "tables.text",
        "_text.sentences",
    },
    "adapters": LEAVES,
    "compute": {
        "_checks.arrays",
        "_checks.values",
        "_text.sentences",
        "_checks.labels",
        "partitions",
    }
    | {"distances.matrix", "distances.base", "_plugins", "_threads"},
    "indices": {
        "_checks.arrays",
        "_checks.values",
        "_text.sentences",
        "_checks.labels",
        "partitions",
        "compute",
    }
    | {"distances.matrix", "distances.base", "_plugins", "_threads"},
    "spaces": {
        "_checks.arrays",
        "_checks.values",
        "_text.sentences",
        "_checks.labels",
        "partitions",
        "compute",
    }
    | {"distances.matrix", "distances.base", "_threads"},
    "cluster": LEAVES | {"compute", "indices"},
    "deep": LEAVES | {"compute", "indices", "cluster"},
    "evaluate": LEAVES | {"compute", "indices", "spaces", "adapters"},
    "extending": {"compute", "indices"},
    "testing": LEAVES | {"compute", "indices", "adapters"},
    "report": LEAVES | {"spaces", "evaluate"},  # the page computes no index
    "plot": LEAVES | {"compute", "indices", "spaces", "evaluate", "report"},
    "explorer": LEAVES | {"compute", "indices", "spaces", "adapters", "cluster", "evaluate"},
    "records": {"_files.records", "indices", "spaces", "cluster", "evaluate", "explorer"},
}
BELOW |= {folder: set() for folder in FOLDERS_OF_LEAVES}
EVERY_ROOM = set(BELOW) | {"cli"}
BELOW["cli"] = EVERY_ROOM
BELOW["__main__"] = {"cli"}  # the door of `python -m wellsep`
# Only what a room needs at its door: torch elsewhere is reached inside a function.
TORCH_ROOMS = {"deep", "compute"}


parsed = functools.cache(ast.parse)


def room_of(path: Path) -> str:
    return room_in(".".join(path.relative_to(SOURCE).with_suffix("").parts))


def room_in(name: str) -> str:
    """The room of a module or of a name in it, both without the package."""
    parts = name.removesuffix(".__init__").split(".")
    return ".".join(parts[:2]) if parts[0] in FOLDERS_OF_LEAVES else parts[0]


def imported_modules(source: str, package: str) -> list[tuple[int, str]]:
    """(line, absolute dotted name) of every import, at any depth, ``load`` included; names
    imported from a package are appended, since they may be modules."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(parents[: len(parents) - node.level + 1] + ([base] if base else []))
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "load":
            found += [
                (node.lineno, one.value) for one in node.args if isinstance(one, ast.Constant)
            ]
    return found


def wrong_arrows(source: str, room: str, package: str) -> list[str]:
    wrong = []
    for line, name in imported_modules(source, package):
        parts = name.split(".")
        if parts[0] != "wellsep" or room == "cli":
            continue
        to = room_in(".".join(parts[1:]))
        if len(parts) == 1:
            wrong.append(f"line {line}: {room} must name the room it imports, got `import wellsep`")
        elif parts[1] == "__version__" or to in BELOW[room] | {room}:
            continue
        else:
            wrong.append(f"line {line}: {room} must not import {to}")
    return wrong


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def arrows_of(path: Path) -> list[str]:
    package = ".".join(["wellsep", *path.relative_to(SOURCE).parts[:-1]])
    return wrong_arrows(path.read_text(encoding="utf-8"), room_of(path), package)


def imports_torch_at_the_top(path: Path) -> bool:
    tree = parsed(path.read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name.split(".")[0] for node in top for alias in node.names}
    names |= {(node.module or "").split(".")[0] for node in top if isinstance(node, ast.ImportFrom)}
    return "torch" in names


def test_every_module_lives_in_a_known_room():
    assert {room_of(path) for path in modules()} == set(BELOW)


def test_every_module_keeps_the_arrows():
    wrong = {name_of(path): found for path in modules() if (found := arrows_of(path))}
    assert wrong == {}


def test_the_arrows_have_no_cycle():
    order: list[str] = []
    while len(order) < len(BELOW):
        ready = sorted(
            room for room in BELOW if room not in order and BELOW[room] <= {*order, room}
        )
        assert ready, f"a cycle among {set(BELOW) - set(order)}"
        order += ready
    assert order[-2:] == ["cli", "__main__"]


def test_only_deep_and_compute_import_torch_at_the_top():
    importing = {room_of(path) for path in modules() if imports_torch_at_the_top(path)}
    assert importing == TORCH_ROOMS


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("from wellsep.cluster import KMeans", "evaluate"),
        ("def f():\n    from ..deep.training import train", "evaluate"),
        ("import wellsep.evaluate.ace_method.steps", "cluster"),
        ("from wellsep import indices", "compute"),
        ("import wellsep as ws", "report"),
        ("from ..indices import record", "compute"),
        ("def f():\n    return load('wellsep.spaces.dip_numba')", "compute"),
    ],
)
def test_a_wrong_arrow_is_seen(source, room):
    assert len(wrong_arrows(source, room, f"wellsep.{room}")) == 1


@pytest.mark.parametrize(
    ("source", "room"),
    [
        ("from wellsep._checks.arrays import check_data\nfrom . import blocks", "compute"),
        ("from ..indices import record\nimport numpy", "evaluate"),
        ("import wellsep as ws", "cli"),
        ("from wellsep import __version__", "report"),
    ],
)
def test_a_right_arrow_is_let_through(source, room):
    assert wrong_arrows(source, room, f"wellsep.{room}") == []


def is_folder(module: str) -> bool:
    return SOURCE.joinpath(*module.split(".")[1:]).is_dir()


def private_imports(source: str) -> list[str]:
    """Imports of wellsep past its public doors: the package, its rooms, their folders."""
    wrong = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            wrong += [a.name for a in node.names if a.name.startswith("wellsep.") and "_" in a.name]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wellsep":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            wrong += [
                name
                for name in names
                if (node.module.count(".") > 1 and not is_folder(node.module))
                or any(part.startswith("_") and part != "__version__" for part in name.split("."))
            ]
    return wrong


@pytest.mark.parametrize("folder", ["benchmarks", "experiments", "examples"])
def test_programs_outside_the_package_use_public_names_only(folder):
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (found := private_imports(path.read_text(encoding="utf-8")))
    }
    assert wrong == {}


def test_a_private_import_is_seen():
    assert private_imports("from wellsep._checks.arrays import check_data")
    assert private_imports("from wellsep.compute.engine.kernel_choice import compiled_pays")
    assert not private_imports("import wellsep as ws\nfrom wellsep.deep import DEC")


# "What is X?": which library an array is of, where it lies, which class wraps it.
QUESTION = re.compile(
    r"issparse\(|is_torch\(|is_dask\(|is_host\(|is_numpy\(|is_numpy_array\(|(?<!def )\bon_device\(|"
    r"\.(on_device|is_cuda|in_chunks)\b|\bis np\b|"
    r"isinstance\([^,]+, \(?(np\.ndarray|da\.Array|torch\.Tensor|\w*(Space|Points|Task|Chunks)\b)|"
    r"hasattr\((X|values|array|rows|codes|labels)\b"
)
# They are asked where data come in; and by the functions that say whether a faster one is usable.
DOORS = {
    "data/opening.py": "open_space",
    "engine/kernel_choice.py": "device_usable",
    "data/mixed_columns.py": "read_columns",
    "statistics/cluster_prototypes.py": "open_around",
    "engine/dask/chunks.py": "open_chunks",
    "engine/dask/labels.py": "encode_chunks",
}
DOOR_FUNCTIONS = re.compile(r"\w*usable")


def questions(source: str) -> list[str]:
    """Lines that ask what an array is, outside functions that are doors."""
    inside: dict[int, str] = {}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.FunctionDef):
            inside |= dict.fromkeys(range(node.lineno, (node.end_lineno or 0) + 1), node.name)
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(source.splitlines(), 1)
        if QUESTION.search(line.partition("#")[0])
        and not DOOR_FUNCTIONS.fullmatch(inside.get(number, ""))
    ]


def test_fewer_than_fifteen_lines_behind_the_doors_ask_what_an_array_is():
    rooms = sorted((SOURCE / "compute").rglob("*.py"))
    names = {str(path.relative_to(SOURCE / "compute")): path for path in rooms}
    assert set(names) >= set(DOORS)
    asked = [
        f"{name}:{question}"
        for name, path in names.items()
        if name not in DOORS
        for question in questions(path.read_text())
    ]
    assert len(asked) < 15, "\n".join(asked)


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("return a if sp.issparse(a) else b", True),
        ("rows = isinstance(a, np.ndarray)", True),
        ("if space.on_device:", True),
        ("table = xp.where(a > 0, a, b)", False),
        ("name = isinstance(metric, str)", False),
    ],
)
def test_a_question_about_an_array_is_noticed(line, asks):
    body = line + (" pass" if line.endswith(":") else "")
    assert bool(questions(f"def block():\n    {body}\n")) is asks
    assert not questions(f"def twin_usable():\n    {body}\n")
