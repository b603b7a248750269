"""The command that writes a saved result as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wellsep.cli.files import (
    ColumnsOption,
    IdsOption,
    NoHeaderOption,
    TableReader,
    check_target,
    choices,
    tell_written,
)
from wellsep.cli.output import refuse_inputs


def report(
    result: Annotated[
        Path, typer.Argument(help="Folder written by wellsep rank --save or choose-k --save.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write the HTML page to.")
    ] = Path("report.html"),
    runs: Annotated[
        list[str] | None,
        typer.Option(
            help="The runs that were ranked, or the data file given to choose-k. Repeat for more."
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="File of true classes, to colour objects and compare with the ranking."),
    ] = None,
    layout: Annotated[
        str, typer.Option(help="How embeddings are drawn in two dimensions: pca, tsne or umap.")
    ] = "pca",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
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
    from wellsep.adapters import load_any
    from wellsep.cluster.chosen import ChosenK

    refuse_inputs("output", output, *(runs or ()), truth)
    check_target("output", output, ".html", ".htm")
    found = load_result(result)
    ranked = not isinstance(found, ChosenK)
    if runs and not ranked and len(runs) > 1:
        raise ValueError(f"runs must be one data file for a choice of K, got {len(runs)}.")
    data = None if not runs or ranked else Path(runs[0])
    files = [path for path in (data, truth) if path is not None]
    said = dict(
        zip(files, choices(files, ids=ids, no_header=no_header, columns=columns), strict=True)
    )
    reader = TableReader()
    source: Any = None if data is None else reader.data(data, said[data])[0]
    if runs and ranked:
        source = load_any(runs)
    page = ws.render_report(
        found,
        output,
        runs=source,
        truth=None if truth is None else reader.truth(truth, said[truth])[0],
        layout=layout,
        title=title,
    )
    reader.tell()
    tell_written(page)


def load_result(folder: Path) -> Any:
    """Load the result saved in a folder, a ranking or a chosen K."""
    import wellsep.cluster.chosen
    import wellsep.evaluate  # noqa: F401 (a record can be loaded where its class is known)
    from wellsep._records import Record

    if not folder.is_dir():
        raise FileNotFoundError(f"result must be a folder that was saved, got {str(folder)!r}.")
    return Record.load(folder)
