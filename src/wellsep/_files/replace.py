"""Replace a file or a folder whole or not at all; remove what killed writers left behind."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import platform
import re
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
OLD = ".old"
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.([0-9a-f]{8})-(\d+)\.tmp")
LEFT_BEHIND = 3600.0  # seconds without a change: then a writer on another machine is gone too
_ATTEMPTS = 50  # at replacing a folder that other writers replace at the same time
_READINGS = 100  # of what others may replace meanwhile
_PAUSE = 0.01  # seconds between them
_PATIENCE = 10.0  # seconds to wait for a lock, whose holder needs milliseconds
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextlib.contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new empty file next to ``path``; it replaces ``path`` if the block raises nothing.

    The new file is flushed to disk first, and its mode follows the user's umask. The folder is
    made when absent. What a killed writer left in it is removed. A link stays, and the file that
    it points to is replaced. What is no regular file, such as a device, is refused.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(temporary_name())
    with _told(path):
        _refuse_special(path, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        # os.open applies the umask, which cannot be read without changing it for every thread.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        with _told(path, only_full=True):
            yield temporary
        with _told(path):
            sync_file(temporary)
            os.replace(temporary, target)
            sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text as UTF-8 so that the file is there entirely or not at all."""
    with replace_file(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


@contextlib.contextmanager
def _told(path: Path, *, only_full: bool = False) -> Iterator[None]:
    """Turn a failure of the system into a sentence that names the file and what became of it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (only_full and error.errno not in _FULL):
            raise
        raise OSError(
            error.errno,
            f"Writing {path} failed: {os.strerror(error.errno)}. Nothing was written, and an "
            "earlier file is unchanged. Free space or choose another folder, then repeat.",
        ) from error


def _refuse_special(path: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        mode = os.stat(target).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a device or pipe"
            raise ValueError(f"path must be a file, got {kind} at {path}; name another file.")


def read_one_version(version: Callable[[], Any], read: Callable[[], T], what: str) -> T:
    """What `read` gives, all of one version although others may replace it meanwhile.

    `version` tells which one there is: if that is the same before and after, so is all in between.
    """
    for _ in range(_READINGS):
        before = version()
        try:
            result = read()
        except (ValueError, TypeError, KeyError, OSError):
            if version() == before:
                raise
        else:
            if version() == before:
                return result
        time.sleep(_PAUSE)
    raise OSError(
        errno.EBUSY,
        f"{what} was replaced each time it was read. Wait for its writers, then load it again.",
    )


@contextlib.contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Give a new folder in ``parent`` that is removed unless `move_folder` has put it elsewhere."""
    sweep(parent)
    temporary = parent / temporary_name()
    try:
        temporary.mkdir()
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def move_folder(temporary: Path, target: Path, may_go: Callable[[Path], bool]) -> None:
    """Rename a finished folder to ``target``; replace an existing one only if ``may_go`` agrees.

    No system replaces a folder in one step, so the old one is called ``.<name>.old`` for a moment.
    A reader that comes then, or after a crash there, looks for it under that name.
    """
    old = target.with_name(f".{target.name}{OLD}")
    sync_folder(temporary)
    with locked(target.parent):
        _swap(temporary, target, old, may_go)


def _swap(temporary: Path, target: Path, old: Path, may_go: Callable[[Path], bool]) -> None:
    for _ in range(_ATTEMPTS):
        try:
            _rename(temporary, target)
        except FileExistsError:
            if target.exists() and not may_go(target):
                raise
            remove_folder(old, may_go)
            if old.exists() and not may_go(old):
                raise FileExistsError(errno.EEXIST, "exists", str(old)) from None
            with contextlib.suppress(FileNotFoundError, FileExistsError):  # another was first
                _rename(target, old)
        except BaseException:
            if old.exists() and not target.exists():
                os.rename(old, target)
            raise
        else:
            sync_folder(target.parent)
            remove_folder(old, may_go)
            return
    raise FileExistsError(errno.EEXIST, "exists", str(target))


def remove_folder(folder: Path, may_go: Callable[[Path], bool]) -> None:
    """Remove a folder if ``may_go`` agrees; nobody sees half of it under its own name."""
    if not may_go(folder):
        return
    gone = folder.with_name(temporary_name())  # swept by the next writer if this one is killed
    with contextlib.suppress(OSError):  # another was first
        os.rename(folder, gone)
        shutil.rmtree(gone, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other writers out of this block for the same folder.

    The system gives a lock back when its process ends, however that ends. Where there is no such
    lock, or its holder was stopped, the block runs without it.
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + _PATIENCE
        while not try_lock(handle) and time.monotonic() < end:
            time.sleep(0.005)
        yield
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file until it is closed; False if another has it, True if there are no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # file systems without locks
        return True
    return True


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders of writers that are gone."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        left = [match for entry in entries if (match := _TEMPORARY.fullmatch(entry.name))]
        for match in left:
            path = folder / match[0]
            if not _is_gone(path, *match.groups()):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Flush what was written to a file to disk."""
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without it
            raise
    finally:
        os.close(handle)


def temporary_name() -> str:
    """A new hidden name that tells whose it is, so that `sweep` can remove it."""
    return f".{uuid.uuid4().hex}.{machine()}-{os.getpid()}.tmp"


@functools.cache
def machine() -> str:
    """Where process numbers mean the same: this machine, and within it this container."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]


def is_running(process: int) -> bool:
    """Whether this machine has a process of that number."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _is_gone(path: Path, writer: str, process: str) -> bool:
    if writer == machine() and os.name == "posix":
        return not is_running(int(process))
    inside = path.iterdir() if path.is_dir() else ()
    newest: float = max(p.stat().st_mtime for p in (path, *inside))
    return time.time() - newest > LEFT_BEHIND


def _rename(temporary: Path, target: Path) -> None:
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise FileExistsError(errno.EEXIST, "exists", str(target)) from None
        raise
