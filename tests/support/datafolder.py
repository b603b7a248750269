"""The folder of real data sets, for tests here and in `experiments/tests`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NAMED = os.environ.get("WELLSEP_DATA")  # read before any test changes it


@pytest.fixture
def real_data(monkeypatch) -> Path:
    """The folder that WELLSEP_DATA names; the test is skipped where it names none."""
    if not NAMED:
        pytest.skip("WELLSEP_DATA names no folder of real data sets")
    monkeypatch.setenv("WELLSEP_DATA", NAMED)
    return Path(NAMED)
