"""The command that turns a saved result into a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def report(
    result: Annotated[
        Path, typer.Argument(help="Folder written by wellsep rank --save or choose-k --save.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    runs: Annotated[
        str | None,
        typer.Option(help="The runs that were ranked, or the data K was chosen on."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="True classes, for colours and comparison only.")
    ] = None,
    layout: Annotated[str, typer.Option(help="pca, tsne or umap.")] = "pca",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write a saved result as one HTML page that works offline.

    With the runs the page also colours every space by any run's labels and shows the objects of the
    best partition; truth needs the runs.

    \b
    Examples:
      wellsep rank runs/ --save result/
      wellsep report result/ -o report.html --runs runs/
      wellsep choose-k data.csv --save chosen/
      wellsep report chosen/ --runs data.csv
    """
    import wellsep as ws

    found = load_result(result)
    ranked = not hasattr(found, "votes")
    page = ws.render_report(
        found,
        output,
        runs=None if runs is None else _read_runs(runs, ranked),
        truth=None if truth is None else _read_truth(truth),
        layout=layout,
        title=title,
    )
    sys.stderr.write(f"wrote {page}\n")


def load_result(folder: Path) -> Any:
    """The result that was saved in a folder, of whatever kind."""
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
