"""What judge and score_runs are given becomes Runs here, before anything else is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wellsep.evaluate.options import ScoreOptions
from wellsep.runs import Runs


def open_runs(source: Any, options: ScoreOptions) -> Runs:
    """Read the chosen spaces and partitions of a source; what is no source is left for the check.

    Examples
    --------
    >>> from wellsep.evaluate.options import ScoreOptions
    >>> triples = [("a", [0, 1], [[0.0], [1.0]]), ("b", [0, 0], [[0.0], [1.0]])]
    >>> open_runs(iter(triples), ScoreOptions(labels="b")).partitions
    <1 partitions: 'b'>
    """
    chosen = {"spaces": options.spaces, "labels": options.labels, "pairs": options.pairs}
    if isinstance(source, Iterator | list | tuple):
        source = Runs.from_iterator(source)
    plain = all(choice is None for choice in chosen.values())
    foreign = type(source).__module__.partition(".")[0] in ("anndata", "optuna")
    if foreign or (isinstance(source, Runs) and not plain):
        from wellsep.adapters import load_any

        return load_any(source, **chosen)
    return source  # type: ignore[no-any-return]
