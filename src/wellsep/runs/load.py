"""Reading runs back: folders, archives and tables become one Runs record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from wellsep.runs.agreement import listed
from wellsep.runs.archive import read_archive
from wellsep.runs.arrays import array_digest
from wellsep.runs.lazy import stored_parquet, stored_zarr
from wellsep.runs.names import check_name, natural_key
from wellsep.runs.npy import stored_npy
from wellsep.runs.plain import read_json
from wellsep.runs.record import NoRuns, Runs
from wellsep.runs.run import Run
from wellsep.runs.store import FILES, FORMAT, MANIFEST, OLD, VERSION
from wellsep.runs.tables import read_table

_TABLES = (".npy", ".csv", ".parquet", ".zarr")


def load_runs(path: str | os.PathLike[str], *, verify: bool = False) -> Runs:
    """Load the runs in a folder or in one ``.npz`` file, sorted by name.

    A folder may hold, side by side:

    * run folders, as `save_run` writes them; a folder with only ``labels.npy`` and/or
      ``embedding.npy`` (and ``ids.npy``) is a run called like the folder;
    * ``name.npz`` with entries ``embedding``, ``labels``, ``ids``, and ``params`` and ``metadata``
      as JSON text; or, for many runs, ``a/embedding``, ``a/labels``, ``b/labels`` …;
    * pairs ``name.embedding.csv`` and ``name.labels.csv``, also ``.parquet``, ``.npy`` and
      (arrays of the package zarr) ``.zarr``. A
      column called id (or index) names the objects; the first line is a header unless it is all
      numbers.

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
    path = Path(path)
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
        raise NoRuns(
            f"path must hold at least one run, got a folder with {listed(seen, 4)} "
            f"in {path}; save runs there with wellsep.save_run."
            if seen
            else f"path must hold at least one run, got the empty folder {path}; "
            "save runs there with wellsep.save_run."
        )
    return Runs(tuple(sorted(found, key=lambda run: natural_key(run.name))))


def _from_folder(folder: Path, verify: bool) -> list[Run]:
    if (folder / MANIFEST).is_file():
        return [read_run_folder(folder, verify=verify)]
    runs: list[Run] = []
    tables: dict[str, dict[str, Path]] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            if _is_interrupted(entry):
                runs.append(read_run_folder(entry, verify=verify))
        elif entry.is_dir() and entry.suffix != ".zarr":
            if any((entry / file).exists() for file in (MANIFEST, "labels.npy", "embedding.npy")):
                runs.append(read_run_folder(entry, verify=verify))
        elif entry.suffix == ".npz":
            runs.extend(read_archive(entry))
        else:
            _sort_in(entry, tables)
    return runs + [_read_tables(name, files) for name, files in tables.items()]


def _is_interrupted(entry: Path) -> bool:
    """The old version of a run whose replacement never arrived."""
    if not entry.name.endswith(OLD):
        return False
    return (entry / MANIFEST).is_file() and not entry.with_name(entry.name[1:-4]).exists()


def read_run_folder(folder: Path, *, verify: bool = False, name: str | None = None) -> Run:
    """One run from its folder; ``name`` stands in for the name it was saved under."""
    manifest = _read_manifest(folder)
    called = name or manifest.get("name")
    name = check_name(called or folder.name, f"name of run in folder {folder.name!a}")
    promised = manifest.get("files")
    kinds = FILES if promised is None else {k: f for k, f in FILES.items() if k in promised}
    arrays = {}
    for kind, file in kinds.items():
        if promised is None and not (folder / file).exists():
            continue
        what = f"{kind} of run {name!r}"
        arrays[kind] = stored_npy(folder / file, what)
        if promised is not None:
            _check_promise(arrays[kind], promised[kind], what, verify)
    return Run(
        name,
        **arrays,
        params=manifest.get("params"),
        metadata=manifest.get("metadata"),
        space=manifest.get("space"),
    )


def _read_manifest(folder: Path) -> dict[str, Any]:
    what = f"run.json of run folder {folder.name!a}"
    try:
        manifest = read_json((folder / MANIFEST).read_bytes(), what)
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
    for key, got in (("shape", list(stored.shape)), ("dtype", stored.dtype.str)):
        if promise.get(key, got) != got:
            raise ValueError(
                f"{what} must have the {key} {promise[key]} its run.json promises, got {got}; "
                "the file was replaced or damaged."
            )
    if verify and "sha256" in promise and array_digest(stored.open()) != promise["sha256"]:
        raise ValueError(
            f"{what} must have the checksum it was saved with, got another; save it again."
        )


def _sort_in(entry: Path, tables: dict[str, dict[str, Path]]) -> None:
    """Put a file ``name.labels.csv`` where it belongs."""
    if entry.name.endswith(".run.json"):
        kind, name = "manifest", entry.name.removesuffix(".run.json")
    elif entry.suffix in _TABLES:
        name, _, kind = entry.stem.rpartition(".")
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
        manifest = check_manifest(read_json(files["manifest"].read_bytes(), what), what)
    arrays: dict[str, Any] = {}
    columns: list[np.ndarray] = []
    for kind in FILES:
        if kind not in files:
            continue
        what = f"{kind} of run {name!r}"
        if files[kind].suffix == ".npy":
            arrays[kind] = stored_npy(files[kind], what)
        elif files[kind].suffix == ".zarr":
            arrays[kind] = stored_zarr(files[kind], what)
        else:
            stored = kind == "embedding" and files[kind].suffix == ".parquet"
            if stored:
                arrays[kind], ids = stored_parquet(files[kind], what)
            else:
                arrays[kind], ids = read_table(files[kind], kind, what)
            columns += [] if ids is None else [ids]
    if len(columns) == 2 and len(columns[0]) == len(columns[1]):
        _check_columns(columns[0], columns[1], name)
    if columns:
        arrays.setdefault("ids", columns[0])
    return Run(
        manifest.get("name", name),
        **arrays,
        params=manifest.get("params"),
        metadata=manifest.get("metadata"),
        space=manifest.get("space"),
    )


def _check_columns(first: np.ndarray, second: np.ndarray, name: str) -> None:
    differ = np.flatnonzero(first.astype(np.str_) != second.astype(np.str_))
    if differ.size:
        where = int(differ[0])
        raise ValueError(
            f"ids of run {name!r} must be equal in its two files, got {str(first[where])!r} and "
            f"{str(second[where])!r} at position {where}; sort the objects alike."
        )
