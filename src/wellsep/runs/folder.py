"""One run ↔ one folder: which folders are runs; written whole or not at all, and read back."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from wellsep._checks.values import check_flag, check_path
from wellsep._files.arrays import digest, read_json
from wellsep._files.limits import read_bytes
from wellsep._files.replace import (
    LEFT_BEHIND,
    OLD,
    move_folder,
    read_one_version,
    remove_folder,
    sync_file,
    temporary_folder,
)
from wellsep._text.sentences import quoted, shown
from wellsep.runs.archive import write_archive
from wellsep.runs.folder_names import check_name, safe_name
from wellsep.runs.run import FACTS, KINDS, Run
from wellsep.runs.space_files import (
    SPACE_FILES,
    condensed,
    digest_stored,
    file_of,
    space_file,
    stored_space,
    write_space,
)

MANIFEST = "run.json"
FILES = {kind: f"{kind}.npy" for kind in KINDS}
_OUR_MANIFEST = re.compile(rb'\s*\{\s*"format":\s*"wellsep-run"')
_OF_DESKTOPS = {".DS_Store", "Thumbs.db", "desktop.ini"}


def is_run(folder: Path) -> bool:
    """Whether a folder holds the files of a run."""
    return any((folder / file).is_file() for file in (MANIFEST, "labels.npy", *SPACE_FILES))


def may_hold_runs(folder: Path) -> bool:
    """Whether to look for runs in a subfolder: no link, and no record that wellsep saved."""
    return folder.is_dir() and not folder.is_symlink() and not (folder / "record.json").exists()


def is_ours(folder: Path) -> bool:
    """Whether `save_run` wrote a folder and nobody put anything else into it: it may be removed."""
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
        return _is_saved(folder) and not others_in(folder)
    return False


def _is_saved(folder: Path) -> bool:
    try:
        with open(folder / MANIFEST, "rb") as stream:
            return _OUR_MANIFEST.match(stream.read(200)) is not None
    except OSError:
        return False


def others_in(folder: Path) -> list[str]:
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
    return f": beside the run it holds {quoted(others_in(folder), 4)}, which would be lost"


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


def read_steady_run(folder: Path, read: Callable[[Path], Run]) -> Run | None:
    """A run as it is in one version of its folder; None if there is none."""
    old = folder.with_name(f".{folder.name}{OLD}")

    def version() -> tuple[Path, bytes | None]:  # the manifest holds the checksums of the files
        place = folder if folder.exists() or not (old / MANIFEST).is_file() else old
        try:
            return place, read_bytes(place / MANIFEST, f"{MANIFEST} of run folder {folder.name!a}")
        except OSError:
            return place, None

    def run() -> Run | None:
        place, _ = version()
        return read(place) if is_run(place) else None

    return read_one_version(version, run, f"run folder {folder.name!a}")


FORMAT, VERSION = "wellsep-run", 1


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

    The run is written under a temporary name, flushed to disk and renamed in one step. So a writer
    that is killed, or a disk that fills up, leaves no half run. What such a writer left behind is
    never read, and removed by the next save.

    Parameters
    ----------
    folder : path
        Made when absent. Many processes may save into it at once.
    embedding : array-like, sparse matrix or Distances of shape (n_objects, n_features), or None
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
        Names of the objects; compared between runs when they are loaded.
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
    run = Run(
        name="run-1" if name is None else check_name(name),
        labels=labels,
        embedding=embedding,
        params=params,
        metadata=metadata,
        ids=ids,
        space=space,
    )
    return _save(
        check_path("folder", folder),
        run,
        overwrite=check_flag("overwrite", overwrite),
        choose=name is None,
    )


def save_runs(path: Path, runs: Iterable[Run], *, overwrite: bool = False) -> None:
    """Write all runs to a folder, or to one file ending in .npz."""
    if path.suffix == ".npz":
        write_archive(path, runs, overwrite=overwrite)
        return
    for run in runs:
        _save(path, run, overwrite=overwrite)


def _target(folder: Path, name: str) -> Path:
    """The folder of a run; another one where a name that differs in case has it already.

    macOS and Windows take "K-Means" and "k-means" for the same folder.
    """
    target = folder / safe_name(name)
    try:
        held = json.loads((target / MANIFEST).read_text(encoding="utf-8")).get("name", name)
    except (OSError, ValueError, AttributeError):  # nothing there, or nothing of ours
        return target
    if held != name and str(held).casefold() == name.casefold():
        return folder / f"{target.name}~{digest(name)[:16]}"
    return target


def _save(folder: Path, run: Run, *, overwrite: bool, choose: bool = False) -> Path:
    may_go = is_ours if overwrite and not choose else lambda folder: False
    with _clear_sentence(run.name, folder):
        folder.mkdir(parents=True, exist_ok=True)
        put_back(folder)
        target = _target(folder, run.name)
        if choose:
            run = run._with(name=_free_name(folder, 1))
        elif not overwrite and target.exists():
            raise FileExistsError(errno.EEXIST, "exists", str(target))
        with temporary_folder(folder) as temporary:
            manifest = write_run_files(temporary, run)
            while True:
                target = _target(folder, run.name)
                try:
                    move_folder(temporary, target, may_go)
                    return target
                except FileExistsError:
                    if not choose:
                        raise
                # Another process took the number in the meantime.
                run = run._with(name=_free_name(folder, int(run.name[4:]) + 1))
                manifest["name"] = run.name
                _write_manifest(temporary / MANIFEST, manifest)


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
        array = part.raw()
        path = folder / (file_of(array) if kind == "embedding" else file)
        manifest["files"][kind] = write_space(path, array)
    _write_manifest(folder / MANIFEST, manifest)
    return manifest


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_bytes(text.encode("utf-8"))
    sync_file(path)


def _free_name(folder: Path, number: int) -> str:
    while (folder / f"run-{number}").exists():
        number += 1
    return f"run-{number}"


@contextlib.contextmanager
def _clear_sentence(name: str, folder: Path) -> Iterator[None]:
    """An OSError that says which run was not saved, where and why, of the same kind."""
    try:
        yield
    except FileExistsError as error:
        if folder.is_dir():
            there = Path(error.filename)
            remedy = remedy_for(there)
            message = (
                f"run {name!r} must be new in {folder}, got a folder {there.name!r} "
                f"there already; choose another name{remedy}."
            )
        else:
            message = f"folder must be a folder, got the file {folder}."
        raise FileExistsError(errno.EEXIST, message) from None
    except OSError as error:
        # ndarray.tofile reports a full disk without an error number.
        why = error.strerror or str(error)
        message = (
            f"Saving run {name!r} in {folder} failed: {why}. Nothing was written, and what was "
            "saved before is unchanged. Free space or choose another folder, then save again."
        )
        raise OSError(error.errno or errno.EIO, message) from error


def read_run_folder(folder: Path, *, verify: bool = False, name: str | None = None) -> Run:
    """One run from its folder; ``name`` stands in for the name it was saved under."""
    manifest = read_manifest(folder / MANIFEST, f"run.json of run folder {folder.name!a}")
    called = name or manifest.get("name")
    name = check_name(called or folder.name, f"name of run in folder {folder.name!a}")
    promised = manifest.get("files")
    kinds = FILES if promised is None else {k: f for k, f in FILES.items() if k in promised}
    arrays: dict[str, Any] = {}
    for kind, usual in kinds.items():
        what = f"{kind} of run {name!r}"
        file = space_file(folder, what) if kind == "embedding" else usual
        if promised is None and (file is None or not (folder / file).exists()):
            continue
        arrays[kind] = stored_space(folder / (file or usual), what)
        if promised is not None:
            _check_promise(arrays[kind], promised[kind], what, verify)
    return Run(name, **arrays, **{fact: manifest.get(fact) for fact in FACTS})


def read_manifest(path: Path, what: str) -> dict[str, Any]:
    """What a run.json says, checked; empty if there is none."""
    try:
        manifest = read_json(read_bytes(path, what), what)
    except FileNotFoundError:
        return {}
    if not isinstance(manifest, dict):
        raise ValueError(f"{what} must be a JSON object, got {type(manifest).__name__}.")
    files = {} if manifest.get("files") is None else manifest["files"]
    if not isinstance(files, dict) or not all(isinstance(one, dict) for one in files.values()):
        raise ValueError(f"files of {what} must be a JSON object of objects, got {shown(files)}.")
    if manifest.get("format", FORMAT) != FORMAT:
        raise ValueError(f"{what} must have the format {FORMAT!r}, got {manifest['format']!r}.")
    version = manifest.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"{what} must have a format version up to {VERSION}, got {version!r}; "
            "update wellsep to read it."
        )
    return manifest


def _check_promise(stored: Any, promise: Any, what: str, verify: bool) -> None:
    # A condensed list is promised as such, and read as the square matrix that it stands for.
    promised = promise.get("shape")
    shape = promised if condensed(promised, stored.shape) else list(stored.shape)
    for key, got in (("shape", shape), ("dtype", stored.dtype.str)):
        if promise.get(key, got) != got:
            raise ValueError(
                f"{what} must have the {key} {promise[key]} its run.json promises, got {got}; "
                "the file was replaced or damaged."
            )
    if verify and "sha256" in promise and digest_stored(stored) != promise["sha256"]:
        raise ValueError(
            f"{what} must have the checksum it was saved with, got another; save it again."
        )
