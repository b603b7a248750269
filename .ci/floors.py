"""Print the oldest versions that pyproject.toml promises, as a constraints file for pip."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def floors(groups: list[str]) -> list[str]:
    """``numpy>=2.0`` as ``numpy==2.0``, for the dependencies and the extras named."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for group in groups:
        wanted += project["optional-dependencies"][group]
    return [line.replace(">=", "==") for line in wanted if "[" not in line]


if __name__ == "__main__":
    print("\n".join(floors(sys.argv[1:])))
