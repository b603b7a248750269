"""The command that writes a saved result as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wellsep.cli.input import SpaceOption, is_anndata, read_data
from wellsep.cli.output import PAGES, check_file, refuse_inputs, wrote
from wellsep.cli.ranking import read_truth


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
        str | None,
        typer.Option(
            metavar="FILE|COLUMN",
            help="True classes, to colour objects and compare with the ranking: a file, or a "
            "column of the .h5ad.",
        ),
    ] = None,
    space: SpaceOption = None,
    layout: Annotated[
        str,
        typer.Option(
            help="How embeddings are drawn in two dimensions: pca, tsne, umap, or a layout of the "
            ".h5ad such as X_umap."
        ),
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
      wellsep report result/ --runs data.h5ad --truth cell_type --layout X_umap
      wellsep choose-k data.csv --save chosen/
      wellsep report chosen/ --runs data.csv
    """
    import wellsep as ws
    from wellsep.cluster.chosen import ChosenK

    refuse_inputs("output", output, runs, truth)
    check_file("output", output, PAGES)
    found = load_result(result)
    given = None
    if runs is not None:
        given = read_data(Path(runs), space) if isinstance(found, ChosenK) else _runs(found, runs)
    page = ws.render_report(
        found,
        output,
        runs=given,
        truth=None if truth is None else read_truth(truth, runs, None),
        layout=layout,
        title=title,
    )
    wrote(page)


def load_result(folder: Path) -> Any:
    """Load the result saved in a folder, a ranking or a chosen K."""
    import wellsep.cluster.chosen
    import wellsep.evaluate  # noqa: F401 (a record can be loaded where its class is known)
    from wellsep._records import Record

    if not folder.is_dir():
        raise FileNotFoundError(f"result must be a folder that was saved, got {str(folder)!r}.")
    return Record.load(folder)


def _runs(result: Any, source: str) -> Any:
    """The runs that were judged; from AnnData the embeddings and columns that the result names."""
    from wellsep.adapters import load_any

    if not is_anndata(source):
        return load_any(source)
    scores = result.scores
    return load_any(source, spaces=list(scores.spaces), labels=list(scores.partitions))
