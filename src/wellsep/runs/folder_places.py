"""Where runs lie in a folder: which folders are runs, which may be removed, one version of each."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from wellsep._files.limits import read_bytes
from wellsep._files.replace import LEFT_BEHIND, OLD, remove_folder
from wellsep._text.sentences import quoted
from wellsep.runs.run import Run
from wellsep.runs.space_files import SPACE_FILES

MANIFEST = "run.json"
FILES = {"labels": "labels.npy", "embedding": "embedding.npy", "ids": "ids.npy"}
_OUR_MANIFEST = re.compile(rb'\s*\{\s*"format":\s*"wellsep-run"')
_OF_DESKTOPS = {".DS_Store", "Thumbs.db", "desktop.ini"}
_ATTEMPTS = 100  # at reading a run that is being replaced
_PAUSE = 0.01  # seconds between them


def is_run(folder: Path) -> bool:
    """Whether a folder holds the files of a run."""
    return any((folder / file).is_file() for file in (MANIFEST, "labels.npy", *SPACE_FILES))


def may_hold_runs(folder: Path) -> bool:
    """Whether to look for runs in a subfolder: no link, and no record that wellsep saved."""
    return folder.is_dir() and not folder.is_symlink() and not (folder / "record.json").exists()


def is_ours(folder: Path) -> bool:
    """Whether `save_run` wrote a folder and nobody put anything else into it: it may be removed."""
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
        return _is_saved(folder) and not _others_in(folder)
    return False


def _is_saved(folder: Path) -> bool:
    try:
        with open(folder / MANIFEST, "rb") as stream:
            return _OUR_MANIFEST.match(stream.read(200)) is not None
    except OSError:
        return False


def _others_in(folder: Path) -> list[str]:
    """What lies in a run's folder besides the run."""
    return sorted(
        {p.name for p in folder.iterdir()}
        - {MANIFEST, *FILES.values(), *SPACE_FILES}
        - _OF_DESKTOPS
    )


def put_back(folder: Path) -> None:
    """Finish what killed writers left undone: `move_folder` calls the old run ``.<name>.old``."""
    for entry in folder.glob(f".*{OLD}"):
        target = entry.with_name(entry.name[1 : -len(OLD)])
        with contextlib.suppress(OSError):
            if not is_ours(entry):
                continue
            if is_run(target):
                remove_folder(entry, is_ours)
            elif not target.exists() and time.time() - entry.stat().st_ctime > LEFT_BEHIND:
                os.rename(entry, target)


def remedy_for(folder: Path) -> str:
    """What else than another name helps when a folder is in the way of a run, or why nothing."""
    if is_ours(folder):
        return " or pass overwrite=True"
    if not _is_saved(folder):
        return ": it holds no run that save_run wrote"
    return f": beside the run it holds {quoted(_others_in(folder), 4)}, which would be lost"


def set_aside(path: Path, why: str) -> None:
    """Give a damaged file or folder a name that nothing reads, and say so in a warning."""
    for number in itertools.count(1):
        aside = path.with_name(f".{path.name}.damaged-{number}")
        if not os.path.lexists(aside):
            break
    os.rename(path, aside)
    warnings.warn(f"{path} is damaged and was set aside as {aside.name}. {why}", stacklevel=2)


def list_places(folder: Path) -> tuple[set[str], set[str]]:
    """Names of folders that may hold a run, and of all else; ``.a.old`` counts as ``a``."""
    folders, files = set(), set()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                if entry.name.endswith(OLD) and entry.is_dir():
                    folders.add(entry.name[1 : -len(OLD)])
            elif entry.is_dir() and not _is_array(entry):
                folders.add(entry.name)
            else:
                files.add(entry.name)
    return folders, files


def _is_array(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".zarr") and not (Path(entry.path) / MANIFEST).is_file()


def read_one_version(folder: Path, read: Callable[[Path], Run]) -> Run | None:
    """A run, all of one version although others may replace it meanwhile; None if there is none.

    The manifest holds the checksums: if it is the same before and after, so is all it names.
    """
    old = folder.with_name(f".{folder.name}{OLD}")
    for _ in range(_ATTEMPTS):
        place = folder if folder.exists() or not (old / MANIFEST).is_file() else old
        before = _manifest_text(place)
        try:
            run = read(place) if is_run(place) else None
        except (ValueError, TypeError, OSError):
            if place.exists() and _manifest_text(place) == before:
                raise
        else:
            steady = folder.exists() or not (old / MANIFEST).is_file()
            if _manifest_text(place) == before and (run or steady):
                return run
        time.sleep(_PAUSE)
    raise OSError(
        errno.EBUSY,
        f"run folder {folder.name!a} was replaced each time it was read. Wait for its writers, "
        "then load the runs again.",
    )


def _manifest_text(folder: Path) -> bytes | None:
    try:
        return read_bytes(folder / MANIFEST, f"{MANIFEST} of run folder {folder.name!a}")
    except OSError:
        return None
