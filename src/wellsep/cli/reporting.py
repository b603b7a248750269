"""The command that writes a saved result as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wellsep.cli.output import print_error, refuse_inputs


def report(
    result: Annotated[
        Path, typer.Argument(help="Folder written by wellsep rank --save or choose-k --save.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write the HTML page to.")
    ] = Path("report.html"),
    runs: Annotated[
        str | None,
        typer.Option(help="The runs that were ranked, or the data file given to choose-k."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="File of true classes, to colour objects and compare with the ranking."),
    ] = None,
    layout: Annotated[
        str, typer.Option(help="How embeddings are drawn in two dimensions: pca, tsne or umap.")
    ] = "pca",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write a saved result as one HTML page that works offline.

    With --runs the page also draws the objects of every embedding, coloured by the labels of any
    run. --truth needs --runs.

    \b
    Examples:
      wellsep rank runs/ --save result/
      wellsep report result/ -o report.html --runs runs/
      wellsep choose-k data.csv --save chosen/
      wellsep report chosen/ --runs data.csv
    """
    import wellsep as ws
    from wellsep.cluster.chosen import ChosenK

    refuse_inputs("output", output, runs, truth)
    found = load_result(result)
    ranked = not isinstance(found, ChosenK)
    page = ws.render_report(
        found,
        output,
        runs=None if runs is None else _read_runs(runs, ranked),
        truth=None if truth is None else _read_truth(truth),
        layout=layout,
        title=title,
    )
    print_error(f"wrote {page}")


def load_result(folder: Path) -> Any:
    """Load the result saved in a folder, a ranking or a chosen K."""
    import wellsep.cluster.chosen
    import wellsep.evaluate  # noqa: F401 (a record can be loaded where its class is known)
    from wellsep._records import Record

    if not folder.is_dir():
        raise FileNotFoundError(f"result must be a folder that was saved, got {str(folder)!r}.")
    return Record.load(folder)


def _read_runs(source: str, ranked: bool) -> Any:
    if ranked:
        from wellsep.adapters import load_any

        return load_any(source)
    from wellsep.tables import read_matrix

    return read_matrix(source)


def _read_truth(path: Path) -> Any:
    from wellsep.tables import read_labels

    columns = read_labels(path)
    if len(columns) != 1:
        raise ValueError(f"truth must be one column of classes, got {len(columns)} in {path.name}.")
    (classes,) = columns.values()
    return classes
