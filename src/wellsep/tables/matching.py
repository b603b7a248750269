"""Ids of two tables: which row of the second belongs to each row of the first."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from wellsep._text.sentences import count

_NUMBERED = re.compile(r"(.*?)(\d{1,18})")


def match_rows(
    ids: Any, others: Any, first: str, second: str, remedy: str = "sort their rows alike"
) -> tuple[np.ndarray | None, str | None]:
    """Return the rows of the second table in the order of the first, and a sentence about them.

    The rows are None where they are in that order already or only one table has ids. Ids that count
    the rows from 0 or 1, as pandas writes them, are no ids.
    """
    known, given = _as_text(ids), _as_text(others)
    if known is None and given is None:
        return None, None
    if known is None or given is None:
        table, lacks = (second, first) if known is None else (first, second)
        if _are_shuffled(given if known is None else known):
            raise ValueError(
                f"ids must be in both files where the rows of one are out of order, got no ids in "
                f"{lacks} and numbers that do not rise in {table}; {remedy}."
            )
        return None, f"ids not compared: {lacks} has none, so rows are taken in their order."
    if np.array_equal(known, given):
        return None, None
    row_of = {name: row for row, name in enumerate(given.tolist())}
    missing = next((name for name in known.tolist() if name not in row_of), None)
    if missing is not None or len(row_of) < len(given):
        got = "one of them twice" if missing is None else f"no {missing!r} in {second}"
        raise ValueError(
            f"ids must name the same objects in {first} and {second}, got {got}; {remedy}."
        )
    more = len(given) - len(known)
    left = f"; {count(more, 'other')} left out" if more else ""
    rows = np.array([row_of[name] for name in known.tolist()], dtype=np.intp)
    return rows, f"{second}: rows put in the order of {first} by their ids{left}."


def _as_text(ids: Any) -> np.ndarray | None:
    """Ids as text; None where there are none or they count the rows."""
    if ids is None:
        return None
    text = np.asarray(ids).astype(np.str_)
    counts = (np.arange(start, start + len(text)).astype(np.str_) for start in (0, 1))
    return None if any(np.array_equal(text, count) for count in counts) else text


def _are_shuffled(ids: Any) -> bool:
    """Whether ids are consecutive numbers, after some letters, that are out of order."""
    parts = [_NUMBERED.fullmatch(name) for name in ids.tolist()]
    if None in parts or len({part[1] for part in parts if part}) > 1:
        return False
    numbers = np.array([int(part[2]) for part in parts if part])
    counted = np.arange(len(numbers)) + numbers.min()
    return not np.array_equal(numbers, counted) and np.array_equal(np.sort(numbers), counted)
