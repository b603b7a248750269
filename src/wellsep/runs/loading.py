"""Load runs: run folders, archives and tables side by side in a folder, or one archive."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from wellsep._checks.arrays import check_choice
from wellsep._checks.values import check_flag, check_path
from wellsep._text.sentences import listing, quoted
from wellsep.runs.archive import read_archive
from wellsep.runs.collection import NoRuns, Runs, below, check_space
from wellsep.runs.folder import (
    FILES,
    MANIFEST,
    is_run,
    list_places,
    may_hold_runs,
    others_in,
    read_manifest,
    read_run_folder,
    read_steady_run,
)
from wellsep.runs.folder_names import check_name, natural_key
from wellsep.runs.run import FACTS, Run
from wellsep.runs.tables_on_disk import read_part
from wellsep.tables.matching import match_rows

_DEEPEST = 8  # levels of subfolders
_TABLES = (".npy", ".csv", ".tsv", ".parquet", ".zarr")


def load_runs(path: str | os.PathLike[str], *, verify: bool = False, damaged: str = "warn") -> Runs:
    """Load the runs in a folder or in one ``.npz`` file, sorted by name.

    A folder may hold, side by side:

    * run folders, as `save_run` writes them, also in subfolders. The name of a run in a subfolder
      begins with its path: ``dec/K=10``. A folder with only ``labels.npy`` or ``embedding.npy`` is
      a run too, called like the folder; ``ids.npy`` may be there. ``embedding.npz`` is a sparse
      matrix as ``scipy.sparse.save_npz`` writes it. In place of the embedding, ``distances.npy``
      is a square matrix or a condensed list of distances, and ``distances.npz`` a sparse graph of
      neighbours.
    * ``name.npz`` with entries ``embedding``, ``labels``, ``ids``, and ``params`` and ``metadata``
      as JSON text. A file of many runs has ``a/embedding``, ``a/labels``, ``b/labels`` ….
    * pairs ``name.embedding.csv`` and ``name.labels.csv``. In place of the first,
      ``name.distances.csv`` holds distances. ``.tsv``, ``.parquet``, ``.npy`` and arrays of the
      package zarr, ``.zarr``, are read too. A column names the objects if it has no name, is
      called id, index or barcode, or comes first and holds words that never come twice. Where both
      files have ids, labels are put in the order of the embedding. A first row of numbers is a
      header only if it reads 0, 1, 2, …

    Anything else, and names that begin with a dot, is left alone. Embeddings stay on disk
    until they are used (``.npy`` memory-mapped) unless they are compressed or in a CSV table.
    Pickles are never loaded.

    Parameters
    ----------
    path : path
        A folder of runs, one run folder, or one ``.npz``.
    verify : bool
        Compare every array with the checksum it was saved with.
    damaged : {"warn", "raise"}
        What happens where a run cannot be read and others can. "warn": it is left out, a warning
        names it, and ``notes`` of the runs keep the sentence. "raise": an error.

    Returns
    -------
    Runs

    Raises
    ------
    NoRuns
        When there is no run.
    ValueError, TypeError, OSError
        When no run can be read, or one does not fit the others; the message names it.

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
    check_choice("damaged", damaged, ("warn", "raise"))
    if not path.exists():
        raise FileNotFoundError(f"path must be a folder of runs or an .npz file, got {path}.")
    unread: list[_Unread] = []
    if path.is_dir():
        found = _from_folder(path, verify, unread)
    elif path.suffix == ".npz":
        found = [(path, run) for run in read_archive(path)]
    else:
        raise ValueError(
            f"path must be a folder of runs or an .npz file, got the file {path.name!r}; "
            "wellsep.adapters reads AnnData, MLflow and Optuna."
        )
    runs = _with_their_spaces(found, unread)
    if unread and (damaged == "raise" or not runs):
        raise unread[0][1]
    if not runs:
        seen = sorted(os.listdir(path))
        got = f"with {quoted(seen, 4)}" if seen else "an empty folder"
        raise NoRuns(
            f"path must hold at least one run, got {str(path)!r}, {got}; call tables "
            "NAME.embedding.csv and NAME.labels.csv, or save runs there with wellsep.save_run."
        )
    notes = () if not unread else (_left_out(unread),)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return Runs(tuple(sorted(runs, key=lambda run: natural_key(run.name))), notes=notes)


# Where a run lies, and the run that was read, or why it cannot be read.
_Found = tuple[Path, Run]
_Unread = tuple[Path, Exception]


def _with_their_spaces(found: list[_Found], unread: list[_Unread]) -> list[Run]:
    """The runs whose spaces are there too; the others go to ``unread``."""
    spaces = [run.name for _, run in found if run.has_embedding]
    runs = []
    for place, run in found:
        try:
            check_space(run, spaces)
            runs.append(run)
        except ValueError as error:
            unread.append((place, error))
    return runs


def _left_out(unread: list[_Unread]) -> str:
    places = listing([str(place) for place, _ in unread], 4)
    place, error = unread[0]
    one = len(unread) == 1
    runs, were, them = ("A run", "was", "it") if one else (f"{len(unread)} runs", "were", "them")
    first = "" if one else f"{place}: "
    return (
        f"{runs} that cannot be read {were} left out: {places}. {first}{error} "
        f"The other runs were loaded. Repair or remove {them}, then load again."
    )


def _from_folder(folder: Path, verify: bool, unread: list[_Unread], depth: int = 0) -> list[_Found]:
    """The runs below a folder; those that cannot be read go to ``unread``."""

    @contextlib.contextmanager
    def noted(place: Path) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, OSError) as error:
            unread.append((place, error))

    read = partial(read_run_folder, verify=verify)
    if (folder / MANIFEST).is_file() or (is_run(folder) and not others_in(folder)):
        place = folder.resolve() if folder.name in ("", "..") else folder  # "." has no name
        run = read_steady_run(place, read)
        return [] if run is None else [(folder, run)]
    # A name that is moved while a folder is listed may be missed; twice is as good as never.
    folders, files = map(set.union, list_places(folder), list_places(folder))
    runs: list[_Found] = []
    for name in sorted(folders):
        run = None
        before = len(unread)
        with noted(folder / name):
            run = read_steady_run(folder / name, read)
        if run is not None:
            runs.append((folder / name, run))
        elif len(unread) == before and depth < _DEEPEST and may_hold_runs(folder / name):
            inner = _from_folder(folder / name, verify, unread, depth + 1)
            renamed = below(name, [run for _, run in inner])
            runs += [(place, run) for (place, _), run in zip(inner, renamed, strict=True)]
    tables: dict[str, dict[str, Path]] = {}
    for entry in (folder / name for name in sorted(files)):
        if entry.suffix == ".npz":
            with noted(entry):
                runs.extend((entry, run) for run in read_archive(entry))
        else:
            _sort_in(entry, tables)
    for name, parts in tables.items():
        place = folder / next(iter(parts.values())).name
        with noted(place):
            runs.append((place, _read_tables(name, parts)))
    return runs


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
    if not name:
        alone = "lie in a folder that holds the files of one run only, or "
        raise ValueError(
            f"{entry.name} must {alone if entry.suffix == '.npy' else ''}be called "
            f"NAME.{entry.name} after its run, got it in {str(entry.parent)!r}."
        )
    name = check_name(name, f"name of run in file {entry.name!a}")
    there = tables.setdefault(name, {})
    if kind in there:
        raise ValueError(
            f"{kind} of run {name!r} must be in one file, got {there[kind].name} and {entry.name}."
        )
    there[kind] = entry


def _read_tables(name: str, files: dict[str, Path]) -> Run:
    what = f"run.json of run {name!r}"
    manifest = read_manifest(files["manifest"], what) if "manifest" in files else {}
    arrays: dict[str, Any] = {}
    ids: dict[str, Any] = {}
    for kind in FILES:
        if kind in files:
            arrays[kind], ids[kind] = read_part(files[kind], kind, f"{kind} of run {name!r}")
    first, second = ids.get("embedding"), ids.get("labels")
    if "labels" in files and "embedding" in files:
        names = (files[kind].name for kind in ("embedding", "labels"))
        rows, _ = match_rows(first, second, *names)
        if rows is not None:
            arrays["labels"] = arrays["labels"][rows]
    if first is not None or second is not None:
        arrays.setdefault("ids", second if first is None else first)
    facts = {fact: manifest.get(fact) for fact in FACTS}
    return Run(manifest.get("name", name), **arrays, **facts)
