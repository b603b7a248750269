"""The commands that list and compute validity indices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import wellsep as ws
from wellsep._files.limits import is_anndata
from wellsep._text.sentences import cell, meant, shown
from wellsep.cli import options
from wellsep.cli.deliver import Outputs, print_json
from wellsep.cli.options import parse_index
from wellsep.cli.printing import ALL_ROWS, print_columns, print_in_parts, print_line, rows_shown
from wellsep.cli.reading import TableReader
from wellsep.cli.wording import print_sentences

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
    None: "none: clusterings with noise are refused under --noise penalize",
    "zero": "a positive value is multiplied by the share of objects that are counted",
    "variance": "noise counts as variance within clusters",
    "inverse": "1/(1 + value) is multiplied by the share of objects that are counted",
    "included": "the value counts noise already",
}


def indices(
    name: Annotated[
        str | None, typer.Argument(help="Show all that is known of this index.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the validity indices that can be computed, or show one of them.

    \b
    Examples:
      wellsep indices
      wellsep indices silhouette
      wellsep indices --json
    """
    if name is not None:
        if name not in ws.INDICES:
            raise ValueError(
                f"NAME must be among {', '.join(ws.INDICES)}; got {shown(name)}"
                f"{meant(name, ws.INDICES)}"
            )
        entry = ws.INDICES[name]
        if as_json:
            print_json(_facts(entry))
        else:
            _print_index(entry)
        return
    if as_json:
        print_json([_facts(entry) for entry in ws.INDICES.values()])
        return
    entries = list(ws.INDICES.values())
    table: dict[str, Any] = {
        "name": [entry.name for entry in entries],
        "better": [_better(entry) for entry in entries],
        "range": [_range(entry) for entry in entries],
        "work": [entry.cost for entry in entries],
        "how noise lowers it": [entry.price for entry in entries],
        "index": [entry.title for entry in entries],
        "parameters": [_params(entry) for entry in entries],
    }
    print_columns(table)
    print_line("All about one of them: wellsep indices silhouette")


def _facts(entry: Any) -> dict[str, Any]:
    return {"name": entry.name} | {fact: getattr(entry, fact) for fact in FACTS}


def _better(entry: Any) -> str:
    return "greater" if entry.direction > 0 else "smaller"


def _range(entry: Any) -> str:
    return "{:g} … {:g}".format(*entry.range).replace("inf", "∞")


def _params(entry: Any) -> str:
    return ", ".join(f"{key}={value}" for key, value in entry.params.items())


def _print_index(entry: Any) -> None:
    """All that is known of one index, a fact per line."""
    coordinates = "yes, in place of coordinates" if entry.distances else "no, it needs coordinates"
    facts = {
        "formula": entry.words,
        "better": _better(entry),
        "range": _range(entry),
        "work": COSTS.get(entry.cost, entry.cost),
        "distances": coordinates,
        "sparse data": cell(entry.sparse or entry.sparse_sums),
        "weights": cell(entry.weighted),
        "noise": PRICES.get(entry.price, entry.price),
        "parameters": _params(entry),
        "unchanged by": ", ".join(entry.laws),
        "reference": entry.citation,
        "caution": entry.caution,
    }
    print_line(f"{entry.name}: {entry.title}")
    for word, fact in facts.items():
        if fact:
            print_line(f"  {word}: {fact}")


def score(
    data: options.Data,
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
    space: options.Space = None,
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
            help="How to treat the labels -1, -2 and -3, which mean noise. exclude: not scored. "
            "penalize: not scored, and lowers the score by its share. Also cluster, singletons or "
            "error."
        ),
    ] = "exclude",
    output: options.Table = None,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    as_json: options.Json = False,
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
    files = labels or []
    outputs = Outputs(as_json, output=output)
    outputs.check(data, *files)
    if not files and not is_anndata(data):
        raise ValueError("labels must be at least one file, got none; name it after the data file.")
    named: dict[str, Any] = {"indices": [parse_index(text) for text in index]} if index else {}
    reader = TableReader([data], ids, no_header, columns, labels=files, partitions=partitions)
    X, clusterings = reader.data_and_partitions(data, space)
    scores = ws.score_partitions(X, clusterings, noise=noise, **named)
    reader.tell()
    outputs.deliver(scores, print_scores)


def print_scores(scores: Any) -> None:
    """Print the table of scores, the best by each index, and why a score is missing."""
    directed = scores.with_arrows(scores.columns())
    table = {"K" if name == "n_clusters" else name: values for name, values in directed.items()}
    most = rows_shown()
    print_in_parts({name: values[:most] for name, values in table.items()})
    if most is not None and len(scores.names) > most:
        print_line(f"{most} of {len(scores.names):,} rows. {ALL_ROWS}")
    print_sentences(scores.sentences(), "score")
