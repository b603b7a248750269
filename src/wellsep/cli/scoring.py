"""The commands that list and compute validity indices."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wellsep.cli.printing import (
    ALL_ROWS,
    MOST_ROWS,
    TABLES,
    AllOption,
    JsonOption,
    check_file,
    print_columns,
    print_error,
    print_in_parts,
    print_json,
    print_line,
    refuse_inputs,
    wrote,
)
from wellsep.cli.reading import (
    ColumnsOption,
    IdsOption,
    NoHeaderOption,
    TableReader,
    check_order,
    choices,
)
from wellsep.cli.reading_runs import DataArgument, SpaceOption, is_anndata, literal

if TYPE_CHECKING:
    from wellsep.indices import Index, PartitionScores


FACTS = (
    "title", "words", "direction", "range", "params", "metrics", "cost", "laws", "sparse",
    "distances", "weighted", "price", "citation", "caution",
)  # fmt: skip
COSTS = {
    "n·d": "one pass over the objects (n·d)",
    "n·K·d": "every object with every cluster (n·K·d)",
    "n²·d": "every object with every other (n²·d)",
    "fits": "what its function does",
}
PRICES = {
    None: "none: partitions with noise are refused where noise is priced",
    "zero": "a positive value is multiplied by the share of objects that are counted",
    "variance": "noise counts as variance within clusters",
    "inverse": "1/(1 + value) is multiplied by the share of objects that are counted",
    "included": "the value counts noise already",
}


def indices(
    name: Annotated[
        str | None, typer.Argument(help="Show all that is known of this index.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the validity indices that can be computed, or show one of them.

    \b
    Examples:
      wellsep indices
      wellsep indices silhouette
      wellsep indices --json
    """
    import wellsep as ws
    from wellsep.indices.index_names import parse_indices

    if name is not None:
        entry = parse_indices([name], what="NAME")[0][0]
        if as_json:
            print_json(_facts(entry))
        else:
            _print_index(entry)
        return
    if as_json:
        print_json([_facts(entry) for entry in ws.INDICES.values()])
        return
    rows = [
        (
            name,
            "greater" if entry.direction > 0 else "smaller",
            _range(entry),
            entry.cost,
            entry.price,
            entry.title,
            ", ".join(f"{key}={value}" for key, value in entry.params.items()),
        )
        for name, entry in ws.INDICES.items()
    ]
    columns = ("name", "better", "range", "work", "price of noise", "index", "parameters")
    print_columns(dict(zip(columns, zip(*rows, strict=True), strict=True)))
    print_line("All about one of them: wellsep indices silhouette")


def _facts(entry: Index) -> dict[str, Any]:
    return {"name": entry.name} | {fact: getattr(entry, fact) for fact in FACTS}


def _range(entry: Index) -> str:
    return "{:g} … {:g}".format(*entry.range).replace("inf", "∞")


def _print_index(entry: Index) -> None:
    """All that is known of one index, a fact per line."""

    def takes(what: bool) -> str:
        return "yes" if what else "no"

    coordinates = "yes, in place of coordinates" if entry.distances else "no, it needs coordinates"
    facts = {
        "formula": entry.words,
        "better": "greater" if entry.direction > 0 else "smaller",
        "range": _range(entry),
        "work": COSTS.get(entry.cost, entry.cost),
        "distances": coordinates,
        "sparse data": takes(entry.sparse or entry.sparse_sums),
        "weights": takes(entry.weighted),
        "noise": PRICES.get(entry.price, entry.price),
        "parameters": ", ".join(f"{key}={value}" for key, value in entry.params.items()),
        "unchanged by": ", ".join(entry.laws),
        "reference": entry.citation,
        "caution": entry.caution,
    }
    print_line(f"{entry.name}: {entry.title}")
    for word, fact in facts.items():
        if fact:
            print_line(f"  {word}: {fact}")


def score(
    data: DataArgument,
    labels: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Label files. Each column of a csv or parquet file, each row of an npy file and "
            "each array of an npz file is a clustering."
        ),
    ] = None,
    partitions: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="PATTERN",
            help="Columns to score, of label tables or of the .h5ad: k2,k3 or 'leiden_*'.",
        ),
    ] = None,
    space: SpaceOption = None,
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index",
            "-i",
            help="Index to compute, such as cfq or davies_bouldin(q=2). Repeat for more.",
        ),
    ] = None,
    noise: Annotated[
        str,
        typer.Option(
            help="How to treat the labels -1, -2 and -3, which mean noise. exclude: not counted. "
            "priced: not counted, and the score falls. Also cluster, singletons or error."
        ),
    ] = "exclude",
    convention: Annotated[
        str | None, typer.Option(help='With "ace", compute the indices as the ACE paper did.')
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write the scores to this csv or parquet file."),
    ] = None,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
    all_rows: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score clusterings (partitions) of one data set by one or more validity indices.

    \b
    Examples:
      wellsep score data.csv labels.csv
      wellsep score data.npy runs.npz --index silhouette --index "davies_bouldin(q=2)"
      wellsep score data.parquet labels.csv -i cfq --json
      wellsep score cells.csv cells.csv --ids barcode --columns 'pc*' --labels 'leiden*'
      wellsep score data.h5ad --labels 'leiden_*' --space X_pca
    """
    import wellsep as ws

    files = labels or []
    refuse_inputs("output", output, data, *files)
    check_file("output", output, TABLES)
    if not files and not is_anndata(data):
        raise ValueError("labels must be at least one file, got none; name it after the data file.")
    options: dict[str, Any] = {"noise": noise, "convention": convention}
    if index:
        options["indices"] = [parse_index(text) for text in index]
    reader = TableReader()
    X, found = _read_all(reader, data, files, ids, no_header, columns, partitions, space)
    if not files:
        found = _read_columns(data, partitions, space)
    scores = ws.score_partitions(X, found, **options)
    reader.tell()
    if as_json:
        print_json(scores.to_dict())
    else:
        print_scores(scores, all_rows=all_rows)
    if output is not None:
        from wellsep.tables.writing import write_table

        write_table(output, scores.columns())
        wrote(output)


def parse_index(text: str) -> str | tuple[str, dict[str, Any]]:
    """Read ``"davies_bouldin(q=2)"`` as ``("davies_bouldin", {"q": 2})``, a bare name as itself."""
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
    if match is None:
        raise ValueError(
            f"index must read name or name(parameter=value, ...), got {text!r}; for several "
            "indices repeat --index."
        )
    name, inside = match[1].replace("-", "_"), match[2]
    if not (inside or "").strip():
        return name
    params = {}
    for part in inside.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise ValueError(f"index must read name(parameter=value, ...), got {text!r}.")
        params[key.strip()] = literal(value.strip())
    return name, params


def _read_columns(data: Path, columns: str | None, space: str | None) -> dict[str, Any]:
    """Read the columns of AnnData that are clusterings."""
    from wellsep.adapters import runs_from_anndata

    runs = runs_from_anndata(data, space, columns)
    for note in runs.notes:
        print_error(note)
    return dict(runs.partitions)


def _read_all(
    reader: TableReader,
    data: Path,
    paths: list[Path],
    ids: str | None,
    no_header: bool,
    columns: str | None,
    partitions: str | None,
    space: str | None,
) -> tuple[Any, dict[str, Any]]:
    """Read data and partitions; a name that occurs in two files gets the file's name before it."""
    as_said = choices([data, *paths], ids=ids, no_header=no_header, columns=None)
    (of_data,) = choices([data], ids=as_said[0].ids, no_header=no_header, columns=columns)
    X, objects = reader.data(data, of_data, space)
    of_labels = choices(paths, ids=None, no_header=no_header, columns=partitions)
    read = []
    for path, named, said in zip(paths, as_said[1:], of_labels, strict=True):
        with _called_labels():
            found, others = reader.partitions(path, dataclasses.replace(said, ids=named.ids))
        check_order(objects, others, path)
        read += [(path, name, vector) for name, vector in found.items()]
    called = [name for _, name, _ in read]
    return X, {
        name if called.count(name) == 1 else f"{path.stem}:{name}": vector
        for path, name, vector in read
    }


@contextlib.contextmanager
def _called_labels() -> Iterator[None]:
    """Blame --labels, which names the columns of label files here, and not --columns."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("columns must name"):
            raise
        raise ValueError(f"partitions{str(error).removeprefix('columns')}") from None


def print_scores(scores: PartitionScores, *, all_rows: bool = False) -> None:
    """Print the table of scores, the best by each index, and why a score is missing."""
    shown = scores.with_arrows(scores.columns())
    table = {"K" if name == "n_clusters" else name: values for name, values in shown.items()}
    folded = not all_rows and len(scores.names) > MOST_ROWS
    print_in_parts({k: v[:MOST_ROWS] for k, v in table.items()} if folded else table)
    if folded:
        print_line(f"{MOST_ROWS} of {len(scores.names):,} rows. {ALL_ROWS}")
    for sentence in scores.sentences():
        print_line(sentence)
