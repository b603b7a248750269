"""The promises of an adapter: runs that can be kept, the same twice, and an untouched source."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._files.arrays import digest_file
from wellsep.adapters.sources import load_any
from wellsep.runs import Runs, load_runs
from wellsep.testing.compare import need


def check_adapter(
    adapter: str | Callable[..., Runs], source: Any, expected: Runs | None = None
) -> None:
    """Check that an adapter keeps its promises.

    Checked are: it returns runs; twice the same ones; ``load_any`` finds it by its name; the runs
    survive being saved and loaded; a file that is the source stays as it was.

    Parameters
    ----------
    adapter : str or callable
        The name of an entry point of the group ``wellsep.adapters``, or its function.
    source : str, path or object
        What it reads.
    expected : Runs, optional
        What it should find.

    Raises
    ------
    AssertionError
        With the promise that was broken.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.testing import check_adapter
    >>> def load_table(source, *, name=None):
    ...     return ws.Runs.from_parts(None, source)
    >>> check_adapter(load_table, {"k2": [0, 0, 1], "k3": [0, 1, 2]})
    """
    before = _content(source)
    if isinstance(adapter, str):
        named = f"{adapter}+{os.fspath(source)}" if isinstance(source, str | Path) else source
        first, second = load_any(named), load_any(named)
    else:
        first, second = adapter(source, name=None), adapter(source, name=None)
    need(isinstance(first, Runs), f"An adapter must return Runs, got {type(first).__name__}.")
    need(len(first) > 0, "An adapter must return at least one run, got none.")
    _same_runs(first, second, "An adapter must return the same runs twice")
    if expected is not None:
        _same_runs(first, expected, "An adapter must return the expected runs")
    with tempfile.TemporaryDirectory() as folder:
        first.save(Path(folder) / "runs")
        again = load_runs(Path(folder) / "runs")
        _same_runs(first, again, "Runs of an adapter must survive being saved and loaded")
    need(before == _content(source), "An adapter must not change its source.")


def _content(source: Any) -> str | None:
    """What a file holds; None of what is no file."""
    if isinstance(source, str | Path) and Path(source).is_file():
        return digest_file(Path(source))
    return None


def _same_runs(found: Runs, expected: Runs, sentence: str) -> None:
    for what in ("spaces", "partitions"):
        ours, theirs = getattr(found, what), getattr(expected, what)
        need(list(ours) == list(theirs), f"{sentence}: {what} {list(ours)} and {list(theirs)}.")
        for name in ours:
            same = np.array_equal(to_numpy(ours[name]), to_numpy(theirs[name]))
            need(same, f"{sentence}: {name!r} differs.")
