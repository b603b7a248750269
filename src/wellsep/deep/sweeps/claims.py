"""Which process works on what: sweeps that share a folder take different trials."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wellsep._files.replace import is_running, locked, machine, write_text
from wellsep.runs.folder_names import safe_name

_SUFFIX = ".claim"


@contextlib.contextmanager
def claimed(folder: Path, name: str) -> Iterator[bool]:
    """Claim a piece of work inside this block; gives False if another process has it.

    The claim of a process that has ended, however it ended, counts for nothing. One of another
    machine counts until its file is removed.
    """
    path = folder / f".{safe_name(name)}{_SUFFIX}"
    me = {"machine": machine(), "process": os.getpid(), "started": _started(os.getpid())}
    with locked(folder):
        free = not _is_taken(path)
        if free:
            write_text(path, json.dumps(me))
    try:
        yield free
    finally:
        if free:
            path.unlink(missing_ok=True)


def drop_dead_claims(folder: Path) -> None:
    """Remove the claims of processes that have ended."""
    with locked(folder):
        for path in folder.glob(f".*{_SUFFIX}"):
            if not _is_taken(path):
                path.unlink(missing_ok=True)


def _is_taken(path: Path) -> bool:
    try:
        owner: Any = json.loads(path.read_bytes())
        where, process, started = owner["machine"], int(owner["process"]), owner["started"]
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, KeyError):  # no claim of ours can be read so
        return False
    if where != machine():
        return True
    return is_running(process) and _started(process) == started


def _started(process: int) -> str | None:
    """When a process began, where the system tells: numbers of processes are used again."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stream:
            # The name in parentheses may hold anything; the time is field 22 of all.
            return stream.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
