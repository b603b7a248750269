"""Names of runs: what a name may be, the safe folder name it gets, the order of names."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from wellsep._text.sentences import shown

_LONGEST = 150  # bytes; file systems allow 255, temporary siblings need a few more
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def check_name(name: Any, what: str = "name") -> str:
    """A run's name: any text but empty, unencodable or with control characters."""
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a string, got {shown(name)}.")
    if not name:
        raise ValueError(f"{what} must not be empty, got ''.")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            f"{what} must be valid UTF-8 text, got {name!a}; rename the file or pass a name."
        ) from None
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise ValueError(f"{what} must not hold control characters, got {name!r}.")
    return str(name)


def safe_name(name: str) -> str:
    """The folder name of a run: percent-encoded, never hidden, never longer than a file name.

    >>> safe_name("a/b <i>"), safe_name(".."), safe_name("CON"), safe_name("m.zarr")
    ('a%2Fb%20%3Ci%3E', '%2E%2E', '%43ON', 'm%2Ezarr')
    """
    safe = quote(name, safe="-_.+=,@").replace("~", "%7E")
    if safe.startswith(".") or _RESERVED.match(safe):
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    if safe.endswith("."):  # Windows drops a final dot
        safe = safe[:-1] + "%2E"
    if safe.lower().endswith(".zarr"):  # a loader takes such a folder for an array
        safe = f"{safe[:-5]}%2E{safe[-4:]}"
    if len(safe) > _LONGEST:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        safe = f"{safe[:_LONGEST]}~{digest}"
    return safe


def natural_key(name: str) -> tuple[Any, ...]:
    """Sort key that puts k2 before k10."""
    parts = re.split(r"(\d+)", name)
    numbers = (part.lstrip("0") for part in parts)
    return tuple(
        (len(number), number) if i % 2 else (-1, part)
        for i, (part, number) in enumerate(zip(parts, numbers, strict=True))
    ), name


def best_first(ranks: Sequence[Any] | np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return positions by rank, smallest first; equal ranks in the natural order of their names.

    Examples
    --------
    >>> best_first([1, 1, 2], ["k10", "k2", "a"]).tolist()
    [1, 0, 2]
    """
    order = sorted(range(len(names)), key=lambda i: (ranks[i], natural_key(names[i])))
    return np.array(order, dtype=np.intp)
