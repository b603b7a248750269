"""Load a test file of the installed scikit-learn with wellsep's names in the place of its own."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import sklearn


def load_tests(path: str, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the test functions of a file, which got our objects where it imports theirs.

    Names are "module:name". They are replaced while the file is read, so that tables of
    parameters hold ours too; nothing stays replaced in scikit-learn.
    """
    file = Path(sklearn.__file__).parent / path
    spec = importlib.util.spec_from_file_location(f"sklearn_own_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with contextlib.ExitStack() as stack:
        for place, replacement in ours.items():
            home, name = place.split(":")
            stack.enter_context(mock.patch.object(importlib.import_module(home), name, replacement))
        spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if name.startswith("test_")}
