"""How often each verdict occurs: from open_verdicts.csv alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from experiments.ace.tables import NOTHING, table
from experiments.bookkeeping import read

HERE = Path(__file__).parent
TABLE = HERE / "open_verdicts.csv"
KINDS = ("nothing to cluster", "judges disagree", "practically tied", "stands alone", "clear")
WHOLE = "large deep"  # experiments whose embeddings were at hand


def frequencies(rows: list[dict[str, Any]]) -> str:
    """Experiments by group and verdict; the share of the largest last."""
    groups = list(dict.fromkeys(row["group"] for row in rows))
    real = [row for row in rows if row["group"] != "nothing to find"]
    lines = [_line(group, [row for row in rows if row["group"] == group]) for group in groups]
    lines.append(_line("*all but nothing to find*", real))
    return table(["runs", "experiments", *KINDS, "largest share"], lines)


def _line(group: str, rows: list[dict[str, Any]]) -> list[str]:
    seen = Counter(row["verdict"] for row in rows)
    largest = max(seen.values(), default=0) / max(1, len(rows))
    return [group, str(len(rows)), *(str(seen[kind]) for kind in KINDS), f"{largest:.0%}"]


def blocks(place: Path) -> dict[str, str]:
    """Marker -> table of REPORT.md."""
    rows = read(place / TABLE.name)
    return {"verdict-frequencies": frequencies(rows) if rows else NOTHING}
