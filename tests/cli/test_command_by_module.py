"""``python -m wellsep`` is the command."""

from __future__ import annotations

import subprocess
import sys

import wellsep as ws


def test_the_package_runs_as_a_module():
    shown = subprocess.run(
        [sys.executable, "-m", "wellsep", "--version"], capture_output=True, text=True, check=True
    )
    assert ws.__version__ in shown.stdout
