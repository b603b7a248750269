"""One run ↔ one folder: written whole or not at all, and read back with archives and tables."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._arguments import check_flag, check_path
from wellsep._display import quoted
from wellsep._files import read_json
from wellsep._reading import read_bytes
from wellsep._replace import move_folder, temporary_folder
from wellsep.runs.archive import read_archive, write_archive
from wellsep.runs.collection import NoRuns, Runs
from wellsep.runs.large import stored_zarr
from wellsep.runs.names import check_name, natural_key, safe_name
from wellsep.runs.nested import below
from wellsep.runs.places import (
    FILES,
    MANIFEST,
    is_ours,
    list_places,
    may_hold_runs,
    put_back,
    read_one_version,
    remedy_for,
)
from wellsep.runs.run import Run
from wellsep.runs.space_files import (
    condensed,
    digest_stored,
    file_of,
    is_space,
    read_square_table,
    space_file,
    stored_space,
    write_space,
)
from wellsep.runs.tabular import check_equal_ids, read_part

FORMAT, VERSION = "wellsep-run", 1
_FACTS = ("params", "metadata", "space")
_DEEPEST = 8  # levels of subfolders
_TABLES = (".npy", ".csv", ".tsv", ".parquet", ".zarr")


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

    The run is written under a temporary name, flushed to disk and renamed in one step: a
    writer that is killed, or a disk that fills up, leaves no half run. What such a writer left
    behind is never read, and removed by the next save.

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
    if embedding is not None and not is_space(embedding):
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
    return _save(
        check_path("folder", folder),
        run,
        overwrite=check_flag("overwrite", overwrite),
        choose=name is None,
    )


def save_runs(path: str | os.PathLike[str], runs: Runs, *, overwrite: bool = False) -> None:
    """Write all runs to a folder, or to one file ending in .npz."""
    path = Path(path)
    if path.suffix == ".npz":
        write_archive(path, runs, overwrite=overwrite)
        return
    for run in runs:
        _save(path, run, overwrite=overwrite)


def _save(folder: Path, run: Run, *, overwrite: bool, choose: bool = False) -> Path:
    with _clear_sentence(run.name, folder):
        folder.mkdir(parents=True, exist_ok=True)
        put_back(folder)
        return _write_and_move(folder, run, overwrite=overwrite, choose=choose)


def _write_and_move(folder: Path, run: Run, *, overwrite: bool, choose: bool) -> Path:
    target = folder / safe_name(run.name)
    if choose:
        run = run._with(name=_free_name(folder, 1))
    elif not overwrite and target.exists():
        raise FileExistsError(errno.EEXIST, "exists", str(target))
    with temporary_folder(folder) as temporary:
        manifest = write_run_files(temporary, run)
        while True:
            target = folder / safe_name(run.name)
            try:
                may_go = is_ours if overwrite and not choose else lambda folder: False
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
        if kind == "embedding":
            file = file_of(array)
        shape, dtype, sha256 = write_space(folder / file, array)
        manifest["files"][kind] = {
            "file": file,
            "shape": list(shape),
            "dtype": dtype,
            "sha256": sha256,
        }
    _write_manifest(folder / MANIFEST, manifest)
    return manifest


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    with open(path, "wb") as stream:
        stream.write(text.encode("utf-8"))
        stream.flush()
        os.fsync(stream.fileno())


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


def load_runs(path: str | os.PathLike[str], *, verify: bool = False) -> Runs:
    """Load the runs in a folder or in one ``.npz`` file, sorted by name.

    A folder may hold, side by side:

    * run folders, as `save_run` writes them, also in subfolders (the run's name then begins with
      the path of the subfolder: ``dec/K=10``); a folder with only ``labels.npy`` and/or
      ``embedding.npy`` (and ``ids.npy``) is a run called like the folder; ``embedding.npz`` is a
      sparse matrix as ``scipy.sparse.save_npz`` writes it; in place of the embedding,
      ``distances.npy`` is a square matrix or a condensed list of distances, and
      ``distances.npz`` a sparse graph of neighbours;
    * ``name.npz`` with entries ``embedding``, ``labels``, ``ids``, and ``params`` and ``metadata``
      as JSON text; or, for many runs, ``a/embedding``, ``a/labels``, ``b/labels`` …;
    * pairs ``name.embedding.csv`` (or ``name.distances.csv``) and ``name.labels.csv``, also
      ``.tsv``, ``.parquet``, ``.npy`` and (arrays of the package zarr) ``.zarr``. A column without
      a name or called id (or index), or one of words or barcodes that never come twice, names the
      objects. A first row of numbers is a header only if it reads 0, 1, 2, …

    Anything else, and names that begin with a dot, is left alone. Embeddings stay on disk
    until they are used (``.npy`` memory-mapped) unless they are compressed or in a CSV table.
    Pickles are never loaded.

    Parameters
    ----------
    path : path
        A folder of runs, one run folder, or one ``.npz``.
    verify : bool
        Compare every array with the checksum it was saved with.

    Returns
    -------
    Runs

    Raises
    ------
    NoRuns
        When there is no run.
    ValueError, TypeError, OSError
        When a run cannot be read or does not fit the others; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from wellsep.runs import load_runs, save_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in (2, 10):
    ...         labels = [i % k for i in range(20)]
    ...         _ = save_run(folder, None, labels, name=f"k{k}", params={"k": k})
    ...     load_runs(folder)
    Runs(0 spaces × 2 partitions of 20 objects)
      k2   2 clusters
      k10  10 clusters
    """
    path = check_path("path", path)
    check_flag("verify", verify)
    if not path.exists():
        raise FileNotFoundError(f"path must be a folder of runs or an .npz file, got {path}.")
    if path.is_dir():
        found = _from_folder(path, verify)
    elif path.suffix == ".npz":
        found = read_archive(path)
    else:
        raise ValueError(
            f"path must be a folder of runs or an .npz file, got the file {path.name!r}; "
            "wellsep.adapters reads AnnData, MLflow and Optuna."
        )
    if not found:
        seen = sorted(os.listdir(path))
        got = f"a folder with {quoted(seen, 4)} in {path}" if seen else f"the empty folder {path}"
        raise NoRuns(
            f"path must hold at least one run, got {got}; save runs there with wellsep.save_run."
        )
    return Runs(tuple(sorted(found, key=lambda run: natural_key(run.name))))


def _from_folder(folder: Path, verify: bool, depth: int = 0) -> list[Run]:
    read = partial(read_run_folder, verify=verify)
    if (folder / MANIFEST).is_file():
        return [run for run in [read_one_version(folder, read)] if run is not None]
    # A name that is moved while a folder is listed may be missed; twice is as good as never.
    folders, files = map(set.union, list_places(folder), list_places(folder))
    runs: list[Run] = []
    for name in sorted(folders):
        run = read_one_version(folder / name, read)
        if run is not None:
            runs.append(run)
        elif depth < _DEEPEST and may_hold_runs(folder / name):
            runs += below(name, _from_folder(folder / name, verify, depth + 1))
    tables: dict[str, dict[str, Path]] = {}
    for entry in (folder / name for name in sorted(files)):
        if entry.suffix == ".npz":
            runs.extend(read_archive(entry))
        else:
            _sort_in(entry, tables)
    return runs + [_read_tables(name, files) for name, files in tables.items()]


def read_run_folder(folder: Path, *, verify: bool = False, name: str | None = None) -> Run:
    """One run from its folder; ``name`` stands in for the name it was saved under."""
    manifest = _read_manifest(folder)
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
    return Run(name, **arrays, **{fact: manifest.get(fact) for fact in _FACTS})


def _read_manifest(folder: Path) -> dict[str, Any]:
    what = f"run.json of run folder {folder.name!a}"
    try:
        manifest = read_json(read_bytes(folder / MANIFEST, what), what)
    except FileNotFoundError:
        return {}
    return check_manifest(manifest, what)


def check_manifest(manifest: Any, what: str) -> dict[str, Any]:
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files", {}), dict):
        raise ValueError(f"{what} must be a JSON object, got {type(manifest).__name__}.")
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


def _sort_in(entry: Path, tables: dict[str, dict[str, Path]]) -> None:
    """Put a file ``name.labels.csv`` where it belongs."""
    if entry.name.endswith(".run.json"):
        kind, name = "manifest", entry.name.removesuffix(".run.json")
    elif entry.suffix in _TABLES:
        name, _, kind = entry.stem.rpartition(".")
        kind = "embedding" if kind == "distances" else kind
        if kind not in FILES:
            return
    else:
        return
    name = check_name(name, f"name of run in file {entry.name!a}")
    there = tables.setdefault(name, {})
    if kind in there:
        raise ValueError(
            f"{kind} of run {name!r} must be in one file, got {there[kind].name} and {entry.name}."
        )
    there[kind] = entry


def _read_tables(name: str, files: dict[str, Path]) -> Run:
    manifest: dict[str, Any] = {}
    if "manifest" in files:
        what = f"run.json of run {name!r}"
        manifest = check_manifest(read_json(read_bytes(files["manifest"], what), what), what)
    arrays: dict[str, Any] = {}
    columns: list[np.ndarray] = []
    for kind in FILES:
        if kind not in files:
            continue
        what = f"{kind} of run {name!r}"
        if files[kind].suffix == ".npy":
            arrays[kind] = stored_space(files[kind], what)
        elif files[kind].stem.endswith(".distances"):
            arrays[kind], ids = read_square_table(files[kind], what)
            columns += [] if ids is None else [ids]
        elif files[kind].suffix == ".zarr":
            arrays[kind] = stored_zarr(files[kind], what)
        else:
            arrays[kind], ids = read_part(files[kind], kind, what)
            columns += [] if ids is None else [ids]
    if len(columns) == 2 and len(columns[0]) == len(columns[1]):
        check_equal_ids(columns[0], columns[1], name)
    if columns:
        arrays.setdefault("ids", columns[0])
    facts = {fact: manifest.get(fact) for fact in _FACTS}
    return Run(manifest.get("name", name), **arrays, **facts)
