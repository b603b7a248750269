"""What judge and score_runs are given becomes Runs here, before anything else is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from wellsep._checks.values import check_names
from wellsep.evaluate.options import ScoreOptions
from wellsep.runs import Runs


def open_runs(source: Any, options: ScoreOptions) -> Runs:
    """Read the chosen spaces and partitions of a source; what is no source is left for the check.

    Examples
    --------
    >>> from wellsep.evaluate.options import ScoreOptions
    >>> triples = [("a", [[0.0], [1.0]], [0, 1]), ("b", [[0.0], [1.0]], [0, 0])]
    >>> open_runs(iter(triples), ScoreOptions(labels="b")).partitions
    <1 partitions: 'b'>
    >>> open_runs({"a": [0, 1], "b": ([[0.0], [1.0]], [0, 0])}, ScoreOptions()).spaces
    <1 spaces: 'b'>
    """
    chosen = {"spaces": options.spaces, "labels": options.labels, "pairs": options.pairs}
    if isinstance(source, Mapping):
        check_names("runs", list(source))
        pairs = (v if isinstance(v, tuple) and len(v) == 2 else (None, v) for v in source.values())
        source = [(name, *pair) for name, pair in zip(source, pairs, strict=True)]
    if isinstance(source, Iterator | list | tuple):
        source = Runs.from_iterator(source)
    plain = all(choice is None for choice in chosen.values())
    elsewhere = isinstance(source, str | os.PathLike)
    foreign = type(source).__module__.partition(".")[0] in ("anndata", "optuna")
    if elsewhere or foreign or (isinstance(source, Runs) and not plain):
        from wellsep.adapters import load_any

        return load_any(source, **chosen)
    return source  # type: ignore[no-any-return]
