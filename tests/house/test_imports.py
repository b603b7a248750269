"""A test file or module that cannot be imported is an error, not a skip."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from golden import ROOT


def pytest_on(folder, *options) -> subprocess.CompletedProcess[str]:
    """Run pytest on a folder with this repository's settings."""
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    settings += ["-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *settings, *options, str(folder)],
        cwd=folder,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # their import takes longest
        capture_output=True,
        text=True,
    )


@pytest.fixture
def fine(tmp_path):
    (tmp_path / "test_fine.py").write_text("def test_fine():\n    assert 1 + 1 == 2\n")
    return tmp_path


def test_a_test_file_that_can_be_imported_passes(fine):
    done = pytest_on(fine)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "from os import nothing",
        pytest.param("import no_such_package", marks=pytest.mark.slow),
        pytest.param("raise ImportError('broken')", marks=pytest.mark.slow),
    ],
)
def test_a_test_file_that_cannot_be_imported_is_an_error(fine, line):
    (fine / "test_broken.py").write_text(f"{line}\n\n\ndef test_never_seen():\n    assert False\n")
    done = pytest_on(fine)
    assert done.returncode == 2, done.stdout
    assert "ERROR test_broken.py" in done.stdout
    assert "1 error" in done.stdout


@pytest.fixture
def source(tmp_path):
    """A package `wellsep` of one module, under the hook that skips absent packages."""
    package = tmp_path / "src" / "wellsep"
    package.mkdir(parents=True)
    hook = (ROOT / "src" / "conftest.py").read_text(encoding="utf-8")
    (package.parent / "conftest.py").write_text(hook, encoding="utf-8")
    (package / "__init__.py").write_text("")
    return tmp_path


def doctests_of(source, module) -> subprocess.CompletedProcess[str]:
    (source / "src" / "wellsep" / "part.py").write_text(module)
    return pytest_on(source, "--doctest-modules", "-o", f"pythonpath={source / 'src'}")


def test_a_module_that_cannot_be_imported_is_an_error_among_the_doctests(source):
    done = doctests_of(source, "import no_such_package\n")
    assert done.returncode == 2, done.stdout
    assert "No module named 'no_such_package'" in done.stdout


@pytest.mark.skipif(bool(find_spec("triton")), reason="triton is installed")
def test_the_doctests_of_a_module_are_skipped_where_its_optional_package_is_absent(source):
    done = doctests_of(source, "import triton\n")
    assert "part.py:1: wellsep.part needs triton, which comes with torch for CUDA" in done.stdout
    assert "1 skipped" in done.stdout
    assert "error" not in done.stdout


def test_examples_that_fail_are_seen(source):
    done = doctests_of(source, '"""Example.\n\n>>> 1 + 1\n3\n"""\n')
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
