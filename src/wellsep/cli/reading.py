"""What the commands read: data, labels and classes, as they look or as the user says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wellsep._text.sentences import count, quoted
from wellsep.cli.printing import print_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from wellsep.runs import Runs
    from wellsep.tables.reading import Table, TableChoice


TAKE_ROWS = "sort their rows alike, or say --ids none and name the columns to take"


def is_anndata(source: str | Path) -> bool:
    return Path(source).suffix in (".h5ad", ".zarr")


def choices(
    paths: Sequence[Path],
    *,
    ids: str | None,
    no_header: bool,
    columns: str | None,
) -> list[TableChoice]:
    """What the flags say of each file: with several files, each takes the names that it has."""
    from wellsep.tables.reading import TableChoice, matching_columns

    names = None if columns is None else tuple(name.strip() for name in columns.split(","))
    choice = TableChoice(ids, False if no_header else None, names)
    if len(paths) < 2 or (ids in (None, "none") and names is None):
        return [choice] * len(paths)
    wanted = [*(names or ()), *([] if ids is None else [ids])]
    found = [[] if is_anndata(path) else matching_columns(path, wanted, choice) for path in paths]
    for name in wanted:
        if name != "none" and not any(name in there for there in found):
            files = ", ".join(path.name for path in paths)
            option = "columns" if name in (names or ()) else "ids"
            raise ValueError(f"{option} must be in one of {files}, got {name!r} in none of them.")
    return [
        dataclasses.replace(
            choice,
            ids=ids if ids == "none" or ids in there else None,
            columns=tuple(name for name in names or () if name in there) or None,
        )
        for there in found
    ]


class TableReader:
    """Reads the files of one command; `tell` then says what was taken for what.

    ``features`` and ``objects`` are the names in the data that were read last, None without names.
    """

    def __init__(self) -> None:
        self.said: list[str] = []
        self.features: tuple[str, ...] | None = None
        self.objects: np.ndarray | None = None

    def data(
        self, path: Path, choice: TableChoice, space: str | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, objects × features, or one embedding of AnnData; and the ids of the objects."""
        from wellsep.tables.reading import is_table, read_table

        if space is not None or is_anndata(path) or not is_table(path):
            _refuse_columns(path, choice)
            matrix, ids, more = _read_matrix(path, space), None, []
            self.features = None
        else:
            table = read_table(path, None, choice)
            matrix, ids, more = table.matrix(path.name).astype(float), table.ids, _notes(table)
            named = table.header and len(table.names) == matrix.shape[1]
            self.features = table.names if named else None
        self.objects = ids
        self._say(path, matrix.shape[0], [_count(matrix.shape[1], "feature"), *more])
        return matrix, ids

    def partitions(
        self, path: Path, choice: TableChoice
    ) -> tuple[dict[str, Any], np.ndarray | None]:
        """Partitions by name, and the ids of the objects."""
        found, ids, more = _labels(path, choice, gaps=False)
        names = list(found)
        listed = f" ({', '.join(names[:4])}{' …' if len(names) > 4 else ''})"
        self._say(path, len(found[names[0]]), [_count(len(found), "partition") + listed, *more])
        return found, ids

    def truth(self, path: Path, choice: TableChoice) -> tuple[np.ndarray, np.ndarray | None]:
        """True classes, empty for objects without one, and the ids of the objects."""
        import numpy as np

        from wellsep.evaluate.truth import known_classes

        found, ids, more = _labels(path, choice, gaps=True)
        if len(found) != 1:
            raise ValueError(
                f"truth must be one column of classes, got {len(found)} in {path.name} "
                f"({', '.join(list(found)[:4])}); name one with --columns."
            )
        (classes,) = found.values()
        if classes.dtype.kind == "U":  # as R and pandas write what they do not know
            classes = np.where(np.isin(classes, ["NA", "NaN", "nan"]), "", classes)
        codes, known = known_classes(classes)
        facts = [_count(len(np.unique(codes)), "class", "classes")]
        if not known.all():
            facts.append(f"known for {int(known.sum()):,} of them")
        self._say(path, len(classes), [*facts, *more])
        return classes, ids

    def data_of(self, runs: Runs, path: Path, choice: TableChoice) -> Any:
        """Features in the order of the objects of some runs, with their names."""
        matrix, ids = self.data(path, choice)
        X = self.in_order(runs.ids, "the runs", ids, path, matrix)
        if ids is not None:
            self.objects = self.in_order(runs.ids, "the runs", ids, path, ids)
        return named(self, X)

    def in_order(self, ids: Any, first: str, others: Any, path: Path, values: Any) -> Any:
        """Values of a file in the order of the ids of ``first``; what was done is told."""
        from wellsep.tables.matching import match_rows

        rows, sentence = match_rows(ids, others, first, path.name, TAKE_ROWS)
        if sentence is not None and sentence not in self.said:
            self.said.append(sentence)
        return values if rows is None else values[rows]

    def tell(self) -> None:
        """Say on stderr how each file was read, one line each."""
        for line in self.said:
            print_error(line)

    def _say(self, path: Path, n_objects: int, facts: list[str]) -> None:
        self.said.append(f"{path.name}: {', '.join([_count(n_objects, 'object'), *facts])}.")


def read_data_and_labels(
    reader: TableReader,
    data: Path,
    paths: Sequence[Path],
    *,
    ids: str | None,
    no_header: bool,
    columns: str | None,
    partitions: str | None,
    space: str | None,
    labelled: bool = True,
) -> tuple[Any, dict[str, Any]]:
    """Read data and partitions: of label files or else of AnnData, if its labels are wanted.

    A name that occurs in two files gets the file's name before it.
    """
    as_said = choices([data, *paths], ids=ids, no_header=no_header, columns=None)
    (of_data,) = choices([data], ids=as_said[0].ids, no_header=no_header, columns=columns)
    X, objects = reader.data(data, of_data, space)
    if labelled and not paths and is_anndata(data):
        from wellsep.adapters import runs_from_anndata

        runs = runs_from_anndata(data, space, partitions)
        for note in runs.notes:
            print_error(note)
        return X, dict(runs.partitions)
    of_labels = choices(paths, ids=None, no_header=no_header, columns=partitions)
    read = []
    for path, with_ids, choice in zip(paths, as_said[1:], of_labels, strict=True):
        try:
            found, others = reader.partitions(path, dataclasses.replace(choice, ids=with_ids.ids))
        except ValueError as error:  # of label files --labels names the columns, not --columns
            if not str(error).startswith("columns must name"):
                raise
            raise ValueError(f"partitions{str(error).removeprefix('columns')}") from None
        for name, vector in found.items():
            read.append((path, name, reader.in_order(objects, data.name, others, path, vector)))
    names = [name for _, name, _ in read]
    return X, {
        name if names.count(name) == 1 else f"{path.stem}:{name}": vector
        for path, name, vector in read
    }


def the_only_one(partitions: Mapping[str, Any], data: Path) -> Any:
    """The labels of the only clustering; an error where there are more, or none."""
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
    return next(iter(partitions.values()))


def scaled(X: Any, scale: bool) -> Any:
    """The data, with every column scaled to standard deviation 1 where that is asked for."""
    if not scale:
        return X
    from scipy.sparse import issparse
    from sklearn.preprocessing import StandardScaler

    # Distances do not depend on the mean, and without it sparse data stay sparse.
    return StandardScaler(with_mean=not issparse(X)).fit_transform(X)


def truth_file(truth: str | None, sources: Sequence[str]) -> Path | None:
    """The file of true classes; None where they are a column of the AnnData that is judged."""
    if truth is None or (
        len(sources) == 1 and is_anndata(sources[0]) and not Path(truth).is_file()
    ):
        return None
    return Path(truth)


def read_truth(
    reader: TableReader,
    truth: str,
    sources: Sequence[str],
    said: Mapping[Path, TableChoice],
    runs: Runs | None = None,
) -> Any:
    """Read the true classes, one for each object of the runs."""
    path = truth_file(truth, sources)
    if path is None:
        from wellsep.adapters.anndata_entries import read_column

        return read_column(sources[0], truth)
    classes, ids = reader.truth(path, said[path])
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


def read_objects(reader: TableReader, path: Path, runs: Any) -> Any:
    """Read what is known about the objects: images of a folder or an array, or a table.

    A table has one row for each object of the runs. No column is left out: one that holds the ids
    of the runs gives the order, any other column of texts is what the objects say.
    """
    from wellsep.tables.reading import TableChoice, read_array, read_table

    if path.is_dir():
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


def _read_matrix(path: Path, space: str | None) -> Any:
    """Read the objects of a data file, or one embedding of AnnData."""
    if is_anndata(path):
        from wellsep.adapters.anndata_entries import read_space

        return read_space(path, space)
    if space is not None:
        raise ValueError(f"space must be left out for a file without embeddings, got {path.name}.")
    from wellsep.tables.reading import read_matrix

    return read_matrix(path)


def _labels(
    path: Path, choice: TableChoice, *, gaps: bool
) -> tuple[dict[str, np.ndarray], np.ndarray | None, list[str]]:
    from wellsep.tables.reading import is_table, read_labels, read_table

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


def _count(number: int, one: str, many: str | None = None) -> str:
    return count(number, one, many)
