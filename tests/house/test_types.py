"""A type checker sees the public names as what they are, and no other names."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

import pytest
from golden import ROOT

import wellsep

SOURCE = ROOT / "src" / "wellsep"
STUB = ast.parse((SOURCE / "__init__.pyi").read_text())
PUBLIC = [name for name in wellsep.__all__ if not name.startswith("__")]

# Only the modules on the way to the name are read, which keeps the check short.
ONE_NAME = """
[mypy]
ignore_missing_imports = True
follow_imports = skip

[mypy-wellsep,wellsep.indices,wellsep.indices.silhouette]
follow_imports = silent
"""


def said_by_mypy(snippet, settings, folder):
    (folder / "snippet.py").write_text(snippet)
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--no-error-summary"]
    command += ["--cache-dir", str(folder / "cache"), "snippet.py"]
    environment = os.environ | {"MYPYPATH": str(SOURCE.parent)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_the_stub_takes_every_public_name_from_the_module_that_owns_it():
    taken = {
        alias.name: node.module.removeprefix("wellsep").removeprefix(".")
        for node in STUB.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert taken == wellsep._HOME | dict.fromkeys(wellsep._ROOMS, "")


def test_the_stub_exports_what_the_package_exports():
    (exported,) = (
        ast.literal_eval(node.value)
        for node in STUB.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    )
    assert sorted(exported) == wellsep.__all__


def test_the_marker_of_a_typed_package_lies_in_it():
    assert (SOURCE / "py.typed").is_file()


def test_a_type_checker_sees_signatures_and_refuses_unknown_names(tmp_path):
    snippet = "import wellsep as ws\nreveal_type(ws.silhouette_score)\nws.this_does_not_exist\n"
    (tmp_path / "mypy.ini").write_text(ONE_NAME)
    signature, unknown = said_by_mypy(snippet, tmp_path / "mypy.ini", tmp_path)
    assert re.search(
        r'snippet.py:2: .*"def \(X: Any, labels: Any, \*, .*\) -> (builtins\.)?float"', signature
    )
    assert 'snippet.py:3: error: Module has no attribute "this_does_not_exist"' in unknown


def test_a_type_checker_sees_records_and_refuses_unknown_ones(tmp_path):
    snippet = "from wellsep import records\nreveal_type(records.DipResult)\nrecords.no_record\n"
    settings = ONE_NAME.replace("wellsep.indices", "wellsep.records,wellsep.spaces")
    settings = settings.replace("wellsep.records,wellsep.spaces.silhouette", "wellsep.spaces.dip")
    (tmp_path / "mypy.ini").write_text(settings)
    known, unknown = said_by_mypy(snippet, tmp_path / "mypy.ini", tmp_path)
    assert re.search(r"snippet.py:2: .*wellsep\.spaces\.dip\.DipResult", known)
    assert 'snippet.py:3: error: Module has no attribute "no_record"' in unknown


@pytest.mark.slow
def test_a_type_checker_knows_the_type_of_every_public_name(tmp_path):
    lines = [f"reveal_type(ws.{name})" for name in PUBLIC]
    snippet = "\n".join(["import wellsep as ws", *lines])
    said = said_by_mypy(snippet, ROOT / "pyproject.toml", tmp_path)
    assert len(said) == len(PUBLIC)
    unknown = [name for name, line in zip(PUBLIC, said, strict=True) if 'type is "Any"' in line]
    assert unknown == []
