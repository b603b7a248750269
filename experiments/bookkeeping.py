"""What every experiment needs: results appended row by row, their origin, and tables in reports.

A run appends rows to a CSV as soon as they are measured and skips those that are there, so it can
be stopped and resumed. A report holds its tables between markers, written from the CSV by the run;
a test writes them again and compares.

    <!-- table2 -->
    ...
    <!-- /table2 -->
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import wellsep as ws

ROOT = Path(__file__).resolve().parents[1]
# A commit such as 1234567 or 12e4567 would be read as a number.
TEXT = frozenset({"commit", "version", "date"})


def append(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a CSV, with a header where there is none; a half-written line is dropped."""
    if not rows:
        return
    path = Path(path)
    columns = list(rows[0])
    kept = path.read_bytes() if path.is_file() else b""
    whole = kept[: kept.rfind(b"\n") + 1]
    if whole:
        header = next(csv.reader([whole.decode().splitlines()[0]]))
        if set(header) != set(columns):
            raise ValueError(f"rows must have the columns {header} of {path.name}, got {columns}.")
        columns = header
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    if not whole:
        writer.writeheader()
    writer.writerows(dict(row) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(whole) < len(kept):
        path.write_bytes(whole)
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())


def read(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Rows of a CSV: numbers as numbers, empty cells as None; none where there is no file."""
    path = Path(path)
    if not path.is_file():
        return []
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> list[dict[str, Any]]:
    """Rows of the text of a CSV, as `read` gives them."""
    whole = text[: text.rfind("\n") + 1]
    return [
        {name: _value(name, cell) for name, cell in row.items()}
        for row in csv.DictReader(io.StringIO(whole))
    ]


def _value(name: str, cell: str) -> Any:
    if name in TEXT:
        return cell
    if cell == "":
        return None
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def done(path: str | os.PathLike[str], keys: Sequence[str]) -> set[tuple[Any, ...]]:
    """The values of the key columns that are in the CSV already."""
    return {tuple(row[key] for key in keys) for row in read(path)}


def provenance(*paths: str) -> dict[str, str]:
    """Commit and version of the code at work; a + behind the commit marks uncommitted changes.

    A copy without its history, as on a borrowed card, is told by ``WELLSEP_COMMIT``.

    Parameters
    ----------
    paths : str
        What else to look at for such changes beside the package, relative to the repository.
    """

    def git(*words: str) -> str:
        try:
            return subprocess.run(
                ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return ""

    if named := os.environ.get("WELLSEP_COMMIT"):
        return {"commit": named, "version": ws.__version__}
    changed = "+" if git("status", "--porcelain", "--", "src/wellsep", *paths) else ""
    commit = git("rev-parse", "--short=10", "HEAD")
    return {"commit": commit + changed if commit else "unknown", "version": ws.__version__}


def markdown(
    rows: Iterable[Mapping[str, Any]],
    columns: Mapping[str, str] | Sequence[str],
    *,
    digits: int = 3,
) -> str:
    """A Markdown table; columns are keys, or a mapping from key to title. None is left empty."""
    titles = dict(columns) if isinstance(columns, Mapping) else {name: name for name in columns}

    def cell(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:.{digits}f}" if isinstance(value, float) else str(value)

    lines = [
        f"| {' | '.join(titles.values())} |",
        f"|{'---|' * len(titles)}",
        *(f"| {' | '.join(cell(row.get(key)) for key in titles)} |" for row in rows),
    ]
    return "\n".join(lines)


def replace_between(text: str, marker: str, block: str) -> str:
    """The text with the block between ``<!-- marker -->`` and ``<!-- /marker -->``."""
    first, last = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    if text.count(first) != 1 or text.count(last) != 1:
        raise ValueError(f"text must hold {first} and {last} once each.")
    before, rest = text.split(first)
    after = rest.split(last)[1]
    return f"{before}{first}\n{block.strip()}\n{last}{after}"


def data_folder() -> Path | None:
    """The folder of data sets that WELLSEP_DATA names; None where it names no folder."""
    named = os.environ.get("WELLSEP_DATA")
    return Path(named) if named and Path(named).is_dir() else None


_BEGAN = time.perf_counter()


def say(message: str) -> None:
    """Print progress with the seconds since the start."""
    print(f"{time.perf_counter() - _BEGAN:7.1f} s  {message}", flush=True)
