"""Replace one argument at a time of every call by each odd value, and gather what goes wrong."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faults.calls import Call
from faults.odd_values import ODD
from faults.outcomes import fault_of

# Arguments that are called: what a function given there raises is its own.
CALLED = {
    "estimator", "function", "init", "metric", "objective", "on_trial", "progress", "refit",
    "scheduler",
}  # fmt: skip
FUNCTIONS = {"function", "lambda", "type"}
# A number of workers, and it would start them.
ACCEPTED = {("n_jobs", "-1"), ("n_jobs", "NumPy int"), ("n_jobs", "huge int")}


def malformed(calls: dict[str, Call], seed: int, count: int) -> list[tuple[str, str, str]]:
    """A random part of all (call, argument, odd value)."""
    every = [
        (name, argument, odd)
        for name, call in calls.items()
        for argument in call.arguments
        for odd in ODD
        if (argument, odd) not in ACCEPTED
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def faults(
    calls: dict[str, Call], cases: list[tuple[str, str, str]]
) -> Iterator[tuple[str, str, str, str]]:
    """The cases that end neither in a value nor in a refusal that names what is wrong."""
    for name, argument, odd in cases:
        before = set(Path.cwd().iterdir())
        fault = _fault(calls[name], argument, odd)
        for made in set(Path.cwd().iterdir()) - before:  # else a later call could read it
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        if fault is not None:
            yield name, argument, odd, ascii(fault)[:300]


def _fault(call: Call, argument: str, odd: str) -> str | None:
    value: Any = ODD[odd]()
    # Labels are named so wherever they come from, or by their key in a mapping or frame.
    others = [
        f"{other} must" for other in (*call.arguments, "labels", "labels[0]", "labels[1]", "a")
    ]
    fault = fault_of(lambda: call(**{argument: value}), argument, *others)
    if fault is None or (argument in CALLED and odd in FUNCTIONS):
        return None
    # A file is named by its path, with control characters escaped.
    path = str(value) if isinstance(value, str | Path) else ""
    shown = path and (path in fault or repr(path)[1:-1] in fault)
    return None if shown else fault
