"""What the commands read: data, labels and classes, as they look or as the user says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._files.limits import is_anndata
from wellsep._text.sentences import count, quoted
from wellsep.adapters import runs_from_anndata
from wellsep.adapters.anndata import read_column, read_space
from wellsep.cli.printing import print_error
from wellsep.partitions import known_classes
from wellsep.runs import Runs
from wellsep.tables.matching import match_rows
from wellsep.tables.reading import (
    NO_IDS,
    Table,
    TableChoice,
    is_table,
    matching_columns,
    read_array,
    read_labels,
    read_matrix,
    read_table,
)

TAKE_ROWS = "sort their rows alike, or say --ids none and name the columns to take"


class TableReader:
    """Reads the files of one command as its flags say; `tell` then says what was taken for what.

    ``columns`` chooses among the columns of ``files``, ``partitions`` among those of ``labels``,
    and ``ids`` in all of them: with several files, each takes the names that it has.
    ``features`` and ``objects`` are the names in the data that were read last, None without names.
    """

    def __init__(
        self,
        files: Sequence[Path | None],
        ids: str | None,
        no_header: bool,
        columns: str | None,
        *,
        labels: Sequence[Path | None] = (),
        partitions: str | None = None,
    ) -> None:
        self.said: list[str] = []
        self.features: tuple[str, ...] | None = None
        self.objects: np.ndarray | None = None
        self.partition_names = partitions
        data_files, label_files = ([path for path in group if path] for group in (files, labels))
        header = False if no_header else None
        id_column = () if ids in (None, NO_IDS) else (ids,)
        own_ids = _shared_out("ids", id_column, [*data_files, *label_files], header)

        def choices(option: str, names: str | None, paths: list[Path]) -> dict[Path, TableChoice]:
            words = () if names is None else tuple(map(str.strip, names.split(",")))
            shared = _shared_out(option, words, paths, header)
            return {
                path: TableChoice(ids if own_ids[path] or ids == NO_IDS else None, header, own)
                for path, own in shared.items()
            }

        self.choices = choices("columns", columns, data_files)
        self.label_choices = choices("partitions", partitions, label_files)

    def data(self, path: Path, space: str | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, objects × features, or one embedding of AnnData; and the ids of the objects."""
        ids, more, self.features = None, [], None
        if is_anndata(path):
            _refuse_columns(path, self.choices[path])
            matrix = read_space(path, space)
        elif space is not None:
            raise ValueError(
                f"space must be left out for a file without embeddings, got {path.name}."
            )
        elif not is_table(path):
            _refuse_columns(path, self.choices[path])
            matrix = read_matrix(path)
        else:
            table = read_table(path, None, self.choices[path])
            matrix, ids, more = table.matrix(path.name).astype(float), table.ids, _notes(table)
            if table.header and len(table.names) == matrix.shape[1]:
                self.features = table.names
        self.objects = ids
        self._say(path, matrix.shape[0], [count(matrix.shape[1], "feature"), *more])
        return matrix, ids

    def data_and_partitions(self, data: Path, space: str | None) -> tuple[Any, dict[str, Any]]:
        """Data, and partitions by name: of the label files or else of AnnData.

        A name that occurs in two files gets the file's name before it.
        """
        X, objects = self.data(data, space)
        if not self.label_choices and is_anndata(data):
            runs = runs_from_anndata(data, space, self.partition_names)
            for note in runs.notes:
                print_error(note)
            return X, dict(runs.partitions)
        read = []
        for path in self.label_choices:
            try:
                found, ids = self.partitions(path)
            except ValueError as error:  # of label files --labels names the columns, not --columns
                if not str(error).startswith("columns must name"):
                    raise
                raise ValueError(f"partitions{str(error).removeprefix('columns')}") from None
            for name, vector in found.items():
                read.append((path, name, self.in_order(objects, data.name, ids, path, vector)))
        names = [name for _, name, _ in read]
        return X, {
            name if names.count(name) == 1 else f"{path.stem}:{name}": vector
            for path, name, vector in read
        }

    def data_and_labels(self, data: Path, space: str | None) -> tuple[Any, Any]:
        """Data, and the labels of the only clustering; an error where there are more, or none."""
        X, partitions = self.data_and_partitions(data, space)
        if not partitions:
            raise ValueError(
                f"labels must be a file for data without columns of labels, got {data.name} alone; "
                "name the file after the data file."
            )
        if len(partitions) != 1:
            raise ValueError(
                f"labels must be one clustering, got {len(partitions)}: {quoted(partitions, 4)}; "
                "name one with --labels."
            )
        return X, next(iter(partitions.values()))

    def partitions(self, path: Path) -> tuple[dict[str, Any], np.ndarray | None]:
        """Partitions by name, and the ids of the objects."""
        found, ids, more = _labels(path, self.label_choices[path], gaps=False)
        names = list(found)
        listed = f" ({', '.join(names[:4])}{' …' if len(names) > 4 else ''})"
        self._say(path, len(found[names[0]]), [count(len(found), "clustering") + listed, *more])
        return found, ids

    def truth(self, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
        """True classes, empty for objects without one, and the ids of the objects."""
        found, ids, more = _labels(path, self.choices[path], gaps=True)
        if len(found) != 1:
            raise ValueError(
                f"truth must be one column of classes, got {len(found)} in {path.name} "
                f"({', '.join(list(found)[:4])}); name one with --columns."
            )
        (classes,) = found.values()
        if classes.dtype.kind == "U":  # as R and pandas write what they do not know
            classes = np.where(np.isin(classes, ["NA", "NaN", "nan"]), "", classes)
        codes, known = known_classes(classes)
        facts = [count(len(np.unique(codes)), "class", "classes")]
        if not known.all():
            facts.append(f"known for {int(known.sum()):,} of them")
        self._say(path, len(classes), [*facts, *more])
        return classes, ids

    def data_of(self, runs: Runs, path: Path | None) -> Any:
        """Features in the order of the objects of some runs, with their names; None without."""
        if path is None:
            return None
        matrix, ids = self.data(path)
        X = self.in_order(runs.ids, "the runs", ids, path, matrix)
        if ids is not None:
            self.objects = self.in_order(runs.ids, "the runs", ids, path, ids)
        return named(self, X)

    def in_order(self, ids: Any, first: str, others: Any, path: Path, values: Any) -> Any:
        """Values of a file in the order of the ids of ``first``; what was done is told."""
        rows, sentence = match_rows(ids, others, first, path.name, TAKE_ROWS)
        if sentence is not None and sentence not in self.said:
            self.said.append(sentence)
        return values if rows is None else values[rows]

    def tell(self) -> None:
        """Say on stderr how each file was read, one line each."""
        for line in self.said:
            print_error(line)

    def _say(self, path: Path, n_objects: int, facts: list[str]) -> None:
        self.said.append(f"{path.name}: {', '.join([count(n_objects, 'object'), *facts])}.")


def _shared_out(
    option: str, names: tuple[str, ...], paths: Sequence[Path], header: bool | None
) -> dict[Path, tuple[str, ...] | None]:
    """Those of the names that each file has a column for; one file is asked for all of them."""
    if len(paths) < 2 or not names:
        return dict.fromkeys(paths, names or None)
    own = {
        path: () if is_anndata(path) else matching_columns(path, names, header) for path in paths
    }
    for name in names:
        if not any(name in columns for columns in own.values()):
            files = ", ".join(path.name for path in paths)
            raise ValueError(f"{option} must be in one of {files}, got {name!r} in none of them.")
    return {path: tuple(columns) or None for path, columns in own.items()}


def truth_file(truth: str | None, sources: Sequence[str]) -> Path | None:
    """The file of true classes; None where they are a column of the AnnData that is judged."""
    if truth is None or (
        len(sources) == 1 and is_anndata(sources[0]) and not Path(truth).is_file()
    ):
        return None
    return Path(truth)


def read_truth(
    reader: TableReader, truth: str | None, sources: Sequence[str], runs: Runs | None
) -> Any:
    """Read the true classes, one for each object of the runs; None where they are not given."""
    if truth is None:
        return None
    path = truth_file(truth, sources)
    if path is None:
        return read_column(sources[0], truth)
    classes, ids = reader.truth(path)
    if runs is None:
        return reader.in_order(reader.objects, "the data", ids, path, classes)
    classes = reader.in_order(runs.ids, "the runs", ids, path, classes)
    if len(classes) != runs.n_objects:
        raise ValueError(
            f"truth must have one class per object ({runs.n_objects}), got {len(classes)} "
            f"in {path.name}."
        )
    return classes


def named(reader: TableReader, X: Any) -> Any:
    """The data that was read last, with the names of its columns and objects where they are known.

    Without pandas the names are left out.
    """
    if reader.features is None or not hasattr(X, "shape") or X.shape[1] != len(reader.features):
        return X
    try:
        import pandas as pd
    except ImportError:
        return X
    return pd.DataFrame(X, columns=list(reader.features), index=reader.objects)


def read_objects(reader: TableReader, path: Path | None, runs: Any) -> Any:
    """Read what is known about the objects, if given: images of a folder or array, or a table.

    A table has one row for each object of the runs. No column is left out: one that holds the ids
    of the runs gives the order, any other column of texts is what the objects say.
    """
    if path is None or path.is_dir():
        return path
    if path.suffix == ".npy":
        return {"image": read_array(path)}
    table = read_table(path, None, TableChoice("none"), gaps=True)
    columns = dict(zip(table.names, table.columns, strict=True))
    if runs is None:
        return columns
    wanted = None if runs.ids is None else {str(one) for one in runs.ids}
    ids = next((n for n, values in columns.items() if wanted == set(map(str, values))), None)
    order = None if ids is None else columns.pop(ids)
    for name, column in columns.items():
        values = columns[name] = reader.in_order(runs.ids, "the runs", order, path, column)
        if len(values) != runs.n_objects:
            raise ValueError(
                f"objects must have one row per object ({runs.n_objects}), got {len(values)} in "
                f"{path.name}, column {name!r}."
            )
    return columns


def _labels(
    path: Path, choice: TableChoice, *, gaps: bool
) -> tuple[dict[str, np.ndarray], np.ndarray | None, list[str]]:
    if not is_table(path):
        _refuse_columns(path, choice)
        return read_labels(path), None, []
    table = read_table(path, None, choice, gaps=gaps)
    if not table.columns:
        raise ValueError(f"{path.name} must hold a column of labels, got ids only.")
    return dict(zip(table.names, table.columns, strict=True)), table.ids, _notes(table)


def _refuse_columns(path: Path, choice: TableChoice) -> None:
    named = choice.columns or (choice.ids if choice.ids != "none" else None)
    if named:
        raise ValueError(f"columns must be left out for {path.name}, whose columns have no names.")


def _notes(table: Table) -> list[str]:
    """What was taken for ids and for a header."""
    notes = []
    if table.id_place is not None:
        column = f"column {table.id_place + 1}"
        if table.id_place == 0:
            column = "the first column"
        if table.id_name:
            column = f"column {table.id_name!r}"
        notes.append(f"ids from {column}")
    if table.left_out:
        notes.append(f"{', '.join(map(repr, table.left_out))} left out as more ids")
    if not table.header:
        notes.append("no header")
    return notes
