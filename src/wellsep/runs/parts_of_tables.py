"""Parts of a run that lie in tables: one embedding, one column of labels, ids beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wellsep._text.sentences import quoted
from wellsep.runs.tables_on_disk import stored_parquet
from wellsep.tables.reading import read_table


def read_part(path: Path, kind: str, what: str) -> tuple[Any, np.ndarray | None]:
    """One part of a run from a table, and the ids beside it."""
    if kind == "embedding" and path.suffix == ".parquet":
        return stored_parquet(path, what)
    table = read_table(path, what)
    if kind == "embedding":
        return table.matrix(what).astype(np.float64), table.ids
    if kind == "ids" and not table.columns:
        return table.ids, None
    if len(table.columns) != 1:
        raise ValueError(
            f"{what} must have one column besides the ids, got {quoted(table.names)}; "
            "write one file for each partition."
        )
    return table.columns[0], table.ids
