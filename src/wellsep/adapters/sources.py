"""load_any: find out what a source is, and read its runs."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wellsep._checks.values import check_path
from wellsep._files.limits import is_anndata
from wellsep._plugins import read_plugins, refuse_plugin
from wellsep._text.sentences import quoted, shown
from wellsep.adapters.anndata import opened_anndata, runs_from_anndata
from wellsep.adapters.columns import made_in, why_no_clustering
from wellsep.adapters.mlflow import runs_from_mlflow
from wellsep.adapters.optuna import runs_from_optuna
from wellsep.adapters.stores import matching, patterns_of, sqlite_file
from wellsep.runs import Runs, load_runs
from wellsep.runs.collection import join_runs
from wellsep.tables.reading import read_table

_GROUP = "wellsep.adapters"
_DATABASES = (".db", ".sqlite", ".sqlite3")
_JOURNALS = (".log", ".journal")
_TABLES = (".csv", ".tsv", ".txt", ".parquet")


def load_any(
    source: Any,
    *,
    spaces: str | Iterable[str] | None = None,
    labels: str | Iterable[str] | None = None,
    pairs: str | Mapping[str, str] | None = None,
) -> Runs:
    """Load runs from a folder, a file, AnnData, MLflow or Optuna.

    Parameters
    ----------
    source : str, path, AnnData, Study or Runs, or a list of them
        * a folder of runs, with its subfolders, or an ``.npz`` file (see `load_runs`);
        * a text or Parquet table of labels, each column a partition but measurements;
        * an ``.h5ad`` file, a ``.zarr`` folder or an AnnData object;
        * an MLflow tracking store: ``http://…``, ``sqlite:///mlflow.db``, a folder ``mlruns``;
        * an Optuna study, or its storage: ``sqlite:///study.db``, a journal file ``study.log``.

        The tables of a SQLite file show whose it is. For other databases write ``mlflow+`` or
        ``optuna+`` before the URL. An experiment or a study may be named after a ``#``:
        ``sqlite:///mlflow.db#digits``; behind it ``&artifacts=folder`` says where a study's files
        are.

        What another package reads, by an entry point of the group ``wellsep.adapters``, has the
        name of that entry and ``+`` before it, or is an object of the module of that name.

        Of several sources all runs are taken; names that come twice get their source's path
        before them.
    spaces, labels : str or iterable of str, optional
        Which spaces and which partitions to take, as patterns; a text is split at commas. AnnData
        needs ``labels``.
    pairs : str or mapping of str to str, optional
        In which embedding a partition was made, see `runs_from_anndata`.

    Returns
    -------
    Runs

    Examples
    --------
    >>> import tempfile
    >>> from wellsep.adapters import load_any
    >>> from wellsep.runs import Runs
    >>> runs = Runs.from_parts({"pca": [[0.0], [1.0]]}, {"k1": [0, 0], "k2": [0, 1], "x": [1, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs.save(folder)
    ...     list(load_any(folder, labels="k*").partitions)
    ['k1', 'k2']
    """
    spaces = None if spaces is None else patterns_of(spaces, "spaces")
    labels = None if labels is None else patterns_of(labels, "labels")
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if isinstance(source, list | tuple):
        return _load_several(source, spaces, labels, pairs)
    kind, place, fragment = _kind_of(source)
    name, given, artifacts = (fragment or "").partition("&artifacts=")
    if kind == "anndata":
        return runs_from_anndata(place, spaces, labels, pairs=pairs)
    if kind == "mlflow":
        runs = runs_from_mlflow(place, name or None)
    elif kind == "optuna":
        runs = runs_from_optuna(place, name or None, artifacts=artifacts if given else None)
    elif kind == "runs":
        runs = place
    elif kind == "labels":
        runs = _from_table(place, labels is not None)
    elif kind == "folder":
        runs = load_runs(place)
    else:
        runs = _load_elsewhere(kind, place, name or None)
    if spaces is not None or labels is not None:
        runs = runs.subset(
            spaces=None if spaces is None else matching(spaces, runs.spaces, "spaces"),
            partitions=None if labels is None else matching(labels, runs.partitions, "labels"),
        )
    return _paired(runs, pairs)


def _from_table(path: Path, chosen: bool) -> Runs:
    """The columns of a table as partitions; measurements are left out unless columns are chosen."""
    table = read_table(path)
    found = dict(zip(table.names, table.columns, strict=True))
    measured = [c for c in found if why_no_clustering(found[c]) == "measurements"]
    if 2 * len(measured) > len(found):
        name = measured[0]
        raise ValueError(
            f"source must be a table of labels, got {path.name}, which looks like data "
            f"({found[name][0]} in column {name!r}); wellsep explore finds clusters in data."
        )
    if chosen or not measured:
        return Runs.from_parts(None, found, ids=table.ids)
    note = f"{path.name}: {quoted(measured)} left out as measurements."
    kept = {c: values for c, values in found.items() if c not in measured}
    return replace(Runs.from_parts(None, kept, ids=table.ids), notes=(note,))


def _load_elsewhere(kind: str, place: Any, name: str | None) -> Runs:
    """What the adapter of another package loads."""
    plugin = read_plugins(_GROUP)[kind]
    if not callable(plugin.value):
        raise refuse_plugin(_GROUP, plugin, "a function of a source", shown(plugin.value))
    runs = plugin.value(place, name=name)
    if not isinstance(runs, Runs):
        raise refuse_plugin(_GROUP, plugin, "a function that returns Runs", shown(runs))
    return runs


def _paired(runs: Runs, pairs: str | Mapping[str, str] | None, *, partly: bool = False) -> Runs:
    """The runs, each with the space that it was made in."""
    if pairs is None:
        return runs
    made = made_in(pairs, runs.partitions, runs.spaces, partly=partly)
    return replace(runs, runs=tuple(run._with(space=made.get(run.name, run.space)) for run in runs))


def _load_several(
    sources: Sequence[Any],
    spaces: list[str] | None,
    labels: list[str] | None,
    pairs: str | Mapping[str, str] | None,
) -> Runs:
    """All runs of the sources; a pattern must match in one of them, not in each."""
    if not sources:
        raise ValueError("source must name at least one source, got none.")
    parts = {}
    for path, part in zip(_short_paths(sources), sources, strict=True):
        chosen = _for_anndata(part, spaces, labels) if _kind_of(part)[0] == "anndata" else {}
        parts[path] = load_any(part, **chosen)
    if spaces is not None:
        there = dict.fromkeys(name for runs in parts.values() for name in runs.spaces)
        spaces = matching(spaces, there, "spaces")
    if labels is not None:
        there = dict.fromkeys(name for runs in parts.values() for name in runs.partitions)
        labels = matching(labels, there, "labels")
    smaller = {path: _only(runs, spaces, labels) for path, runs in parts.items()}
    left = {path: runs for path, runs in smaller.items() if runs is not None}
    # Pairs are looked for in each source, by the names that it has there, then between sources.
    joined = join_runs({path: _paired(runs, pairs, partly=True) for path, runs in left.items()})
    for entry in [{p: s} for p, s in pairs.items()] if isinstance(pairs, Mapping) else [pairs]:
        fits = entry is not None and any(
            made_in(entry, runs.partitions, runs.spaces, partly=True) for runs in left.values()
        )
        joined = _paired(joined, entry, partly=fits)
    return joined


def _for_anndata(source: Any, spaces: list[str] | None, labels: list[str] | None) -> dict[str, Any]:
    """The patterns that fit something in AnnData; all of them where none does, to be refused."""
    with opened_anndata(source) as parts:
        names = {"spaces": [*parts.keys, "X"], "labels": parts.columns}
    wanted = {"spaces": spaces, "labels": labels}
    return {
        kind: [word for word in words or () if fnmatch.filter(names[kind], word)] or words
        for kind, words in wanted.items()
    }


def _only(runs: Runs, spaces: list[str] | None, labels: list[str] | None) -> Runs | None:
    """The runs with these spaces and partitions; None if there are none."""
    embeddings = [name for name in runs.spaces if spaces is None or name in spaces]
    partitions = [name for name in runs.partitions if labels is None or name in labels]
    return (
        runs.subset(spaces=embeddings, partitions=partitions) if embeddings + partitions else None
    )


def _short_paths(sources: Sequence[Any]) -> list[str]:
    """What tells the sources apart: their paths below the folder that they share."""
    texts = [
        str(source) if isinstance(source, str | os.PathLike) else f"source {place}"
        for place, source in enumerate(sources, 1)
    ]
    texts = [text if "://" in text else os.path.abspath(text) for text in texts]
    for text in texts:
        if texts.count(text) > 1:
            raise ValueError(f"source must name each source once, got {text} twice.")
    paths = [Path(text).parts for text in texts]
    same = 0
    while len({parts[: same + 1] for parts in paths}) == 1 and same < min(map(len, paths)) - 1:
        same += 1
    return ["/".join(parts[same:]) for parts in paths]


def _kind_of(source: Any) -> tuple[str, Any, str | None]:
    """What holds the runs, where it is, and the name behind the #."""
    if isinstance(source, Runs):
        return "runs", source, None
    if not isinstance(source, str | os.PathLike):
        root = type(source).__module__.partition(".")[0]
        if root in ("anndata", "optuna") or root in read_plugins(_GROUP):
            return root, source, None
        raise TypeError(
            "source must be a path, a URL, Runs, AnnData or an Optuna study, "
            f"got {type(source).__name__}."
        )
    text = str(check_path("source", source))
    if "://" in os.fspath(source):
        text = os.fspath(source)  # a path would lose a slash of the URL
    if Path(text).exists():
        return *_kind_of_path(Path(text)), None
    text, _, fragment = text.partition("#")
    kind, plus, place = text.partition("+")
    if plus and (kind in ("mlflow", "optuna") or kind in read_plugins(_GROUP)):
        return kind, place, fragment or None
    if "://" in text:
        return _kind_of_url(text), text, fragment or None
    if Path(text).exists():
        return *_kind_of_path(Path(text)), fragment or None
    raise FileNotFoundError(f"source must be a folder, a file or a URL that exists, got {text!r}.")


def _kind_of_url(url: str) -> str:
    scheme = url.partition("://")[0]
    if scheme in ("http", "https", "file", "databricks"):
        return "mlflow"
    path = sqlite_file(url)
    if path is None:
        raise ValueError(
            f"source must say whose database it is, got {url!r}; "
            "write mlflow+ or optuna+ before the URL."
        )
    return _owner(path)


def _kind_of_path(path: Path) -> tuple[str, Any]:
    if is_anndata(path):
        return "anndata", path
    if path.is_file() and path.suffix in _DATABASES:
        return _owner(path), f"sqlite:///{path}"
    if path.is_file() and path.suffix in _JOURNALS:
        return "optuna", path
    if path.is_dir() and any(path.glob("*/meta.yaml")):
        return "mlflow", path
    if path.is_file() and path.name.removesuffix(".gz").endswith(_TABLES):
        return "labels", path
    return "folder", path


def _owner(path: Path) -> str:
    """Whose tables a SQLite file has."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        ) as db:
            tables = {row[0] for row in db.execute("select name from sqlite_master")}
    except sqlite3.DatabaseError as error:
        raise ValueError(f"source must be a SQLite database, got {path}: {error}.") from None
    for kind, table in (("optuna", "studies"), ("mlflow", "experiments")):
        if table in tables:
            return kind
    raise ValueError(
        f"source must be a database of MLflow or Optuna, got {path} with neither's tables."
    )
