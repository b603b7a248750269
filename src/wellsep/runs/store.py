"""Writing runs: one folder each, complete or not there at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from wellsep.runs.arrays import array_digest
from wellsep.runs.names import check_name, safe_name
from wellsep.runs.record import Runs
from wellsep.runs.run import Run

FORMAT, VERSION = "wellsep-run", 1
MANIFEST = "run.json"
FILES = {"labels": "labels.npy", "embedding": "embedding.npy", "ids": "ids.npy"}
TEMPORARY, OLD = ".tmp", ".old"
_ATTEMPTS = 50  # at replacing a run that other writers replace at the same time
_LEFT_BEHIND = 3600.0  # seconds without a change after which a temporary folder has no writer


def save_run(
    folder: str | os.PathLike[str],
    embedding: Any,
    labels: Any = None,
    *,
    name: str | None = None,
    params: Any = None,
    metadata: Any = None,
    ids: Any = None,
    space: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Save one run in a folder of its own under ``folder`` and return that folder.

    The run is written beside its place, flushed to disk and then moved there in one step: a
    writer that is killed, or a disk that fills up, leaves no half run. What such a writer left
    behind is never read, and removed by the first save an hour later.

    Parameters
    ----------
    folder : path
        Made when absent. Many processes may save into it at once.
    embedding : array-like of shape (n_objects, n_features) or None
        The space the partition was made in; None if there is none. float32 stays float32. Its
        values are not checked here, so that no result is lost; NaN is refused when the space is
        opened.
    labels : array-like of shape (n_objects,), optional
        The partition; None for a space without one.
    name : str, optional
        Any text; it is kept in ``run.json``, and the folder is called after it with unsafe
        characters percent-encoded. By default run-1, run-2, …
    params, metadata : mapping, optional
        JSON data: the settings that made the run, and anything else.
    ids : array-like of shape (n_objects,), optional
        What the objects are called; compared between runs when they are loaded.
    space : str, optional
        Name of another run in whose embedding these labels were made.
    overwrite : bool
        Replace a run of the same name instead of raising FileExistsError.

    Examples
    --------
    >>> import tempfile
    >>> from wellsep.runs import load_runs, save_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_run(folder, [[0.0], [0.1], [5.0]], [0, 0, 1], name="k=2", params={"k": 2})
    ...     sorted(file.name for file in path.iterdir()), load_runs(folder)["k=2"].params
    (['embedding.npy', 'labels.npy', 'run.json'], {'k': 2})
    """
    if embedding is not None and np.ndim(embedding) == 1:
        given = "None" if labels is None else "embedding"
        raise ValueError(
            "embedding must have a row per object and a column per feature, got one dimension; "
            f"the labels come second: save_run(folder, {given}, labels)."
        )
    run = Run(
        name="run-1" if name is None else check_name(name),
        labels=labels,
        embedding=embedding,
        params=params,
        metadata=metadata,
        ids=ids,
        space=space,
    )
    folder = Path(folder)
    with _clear_sentence(run.name, folder):
        folder.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(folder)
        return _write_and_move(folder, run, overwrite=overwrite, choose=name is None)


def save_runs(path: str | os.PathLike[str], runs: Runs, *, overwrite: bool = False) -> None:
    """Write all runs to a folder, or to one file ending in .npz."""
    path = Path(path)
    if path.suffix == ".npz":
        from wellsep.runs.archive import write_archive

        write_archive(path, runs, overwrite=overwrite)
        return
    for run in runs:
        with _clear_sentence(run.name, path):
            path.mkdir(parents=True, exist_ok=True)
            _remove_left_behind(path)
            _write_and_move(path, run, overwrite=overwrite)


def _write_and_move(folder: Path, run: Run, *, overwrite: bool, choose: bool = False) -> Path:
    if choose:
        run = run._with(name=_free_name(folder, 1))
    elif not overwrite:
        _refuse_existing(folder, run.name)
    temporary = folder / f".{uuid.uuid4().hex}{TEMPORARY}"
    try:
        temporary.mkdir()
        manifest = write_run_files(temporary, run)
        _sync_folder(temporary)
        while True:
            target = folder / safe_name(run.name)
            try:
                _move(temporary, target, overwrite=overwrite and not choose)
                break
            except FileExistsError:
                if not choose:
                    raise
                # Another process took the number in the meantime.
                run = run._with(name=_free_name(folder, _number(run.name) + 1))
                manifest["name"] = run.name
                (temporary / MANIFEST).unlink()
                _write_text(temporary / MANIFEST, manifest)
        _sync_folder(folder)
        return target
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_run_files(folder: Path, run: Run) -> dict[str, Any]:
    """The files of one run, straight into ``folder``; returns the manifest."""
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": run.name,
        "n_objects": run.n_objects,
        "space": run.space,
        "params": run.params,
        "metadata": run.metadata,
        "files": {},
    }
    for kind, file in FILES.items():
        part = run._part(kind)
        if part is None:
            continue
        # Not opened through the record: a space with NaN is kept, and refused when it is judged.
        array = np.ascontiguousarray(part.raw())
        with open(folder / file, "xb") as stream:
            npy_format.write_array(stream, array, allow_pickle=False)
            _sync(stream)
        manifest["files"][kind] = {
            "file": file,
            "shape": list(array.shape),
            "dtype": array.dtype.str,
            "sha256": array_digest(array),
        }
    _write_text(folder / MANIFEST, manifest)
    return manifest


def _write_text(path: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    with open(path, "xb") as stream:
        stream.write(text.encode("utf-8"))
        _sync(stream)


def _move(temporary: Path, target: Path, *, overwrite: bool) -> None:
    """Put the run in its place; a run that is there makes way only when it may."""
    # A reader that comes between the two renames, or after a crash there, finds the old run.
    old = target.with_name(f".{target.name}{OLD}")
    for _ in range(_ATTEMPTS):
        try:
            _rename(temporary, target)
        except FileExistsError:
            if not overwrite:
                raise
            shutil.rmtree(old, ignore_errors=True)
            with contextlib.suppress(FileNotFoundError, FileExistsError):  # another was first
                _rename(target, old)
        except BaseException:
            if old.exists() and not target.exists():
                os.rename(old, target)
            raise
        else:
            shutil.rmtree(old, ignore_errors=True)
            return
    raise FileExistsError(errno.EEXIST, "exists", str(target))


def _rename(temporary: Path, target: Path) -> None:
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise FileExistsError(errno.EEXIST, "exists", str(target)) from None
        raise


def _refuse_existing(folder: Path, name: str) -> None:
    if (folder / safe_name(name)).exists():
        raise FileExistsError(errno.EEXIST, "exists", str(folder / safe_name(name)))


def _free_name(folder: Path, number: int) -> str:
    while (folder / f"run-{number}").exists():
        number += 1
    return f"run-{number}"


def _number(name: str) -> int:
    return int(name.removeprefix("run-"))


def _remove_left_behind(folder: Path) -> None:
    """Temporary folders of writers that were killed; one that is still growing stays."""
    for entry in folder.glob(f".*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            newest = max(p.stat().st_mtime for p in (entry, *entry.iterdir()))
            if time.time() - newest > _LEFT_BEHIND:
                shutil.rmtree(entry, ignore_errors=True)
    for entry in folder.glob(f".*{OLD}"):
        target = entry.with_name(entry.name[1 : -len(OLD)])
        with contextlib.suppress(OSError):
            if not target.exists():
                if time.time() - entry.stat().st_ctime > _LEFT_BEHIND:
                    os.rename(entry, target)
            else:
                shutil.rmtree(entry, ignore_errors=True)


@contextlib.contextmanager
def _clear_sentence(name: str, folder: Path) -> Iterator[None]:
    """An OSError that says which run was not saved, where and why, of the same kind."""
    try:
        yield
    except FileExistsError as error:
        if folder.is_dir():
            message = (
                f"run {name!r} must be new in {folder}, got a folder {Path(error.filename).name!r} "
                "there already; choose another name or pass overwrite=True."
            )
        else:
            message = f"folder must be a folder, got the file {folder}."
        raise FileExistsError(errno.EEXIST, message) from None
    except OSError as error:
        # ndarray.tofile reports a full disk without an error number.
        why = error.strerror or str(error)
        message = f"run {name!r} must be saved completely, got: {why} ({folder}); nothing was kept."
        raise OSError(error.errno or errno.EIO, message) from error


def _sync(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
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
