"""The commands that show a saved result: as an HTML page, in words, or as settled labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import wellsep as ws
from wellsep._files.limits import is_anndata
from wellsep._text.glossary import WORDS
from wellsep.adapters import load_any
from wellsep.cli import options
from wellsep.cli.deliver import (
    PAGES,
    Outputs,
    check_target,
    command_of,
    print_json,
    write_columns,
    wrote,
)
from wellsep.cli.printing import print_line
from wellsep.cli.reading import TableReader, named, read_objects, read_truth, truth_file
from wellsep.cli.wording import print_sentences

OF_ONE_FILE = ("ChosenK", "Stability")  # results that are made from one data file
JUDGEMENT = "Judgement"


def report(
    context: typer.Context,
    result: Annotated[
        Path,
        typer.Argument(help="Folder written by wellsep rank, choose-k or stability with --save."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write the HTML page to.")
    ] = Path("report.html"),
    runs: Annotated[
        list[str] | None,
        typer.Option(
            help="The runs that were ranked, or the data file given to choose-k or stability. "
            "Repeat for more."
        ),
    ] = None,
    truth: options.Truth = None,
    space: options.Space = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="How embeddings are drawn in two dimensions: pca, tsne, umap, or a layout of the "
            ".h5ad such as X_umap. Default: pca, beside the layout that was saved."
        ),
    ] = None,
    objects: options.Objects = None,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
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
      wellsep stability data.csv -k 3 --save stable/
      wellsep report stable/ --runs data.csv
    """
    check_target("output", output, PAGES, *(runs or ()), truth)
    if not result.is_dir():
        raise FileNotFoundError(f"result must be a folder that was saved, got {str(result)!r}.")
    found = ws.load(result)
    ranked = type(found).__name__ not in OF_ONE_FILE
    if runs and not ranked and len(runs) > 1:
        raise ValueError(f"runs must be one data file for this result, got {len(runs)}.")
    data = None if not runs or ranked else Path(runs[0])
    if space is not None and data is None:
        raise ValueError(f"space must be left out for a result without a data file, got {space!r}.")
    files = [data, truth_file(truth, runs or ())]
    reader = TableReader(files, ids, no_header, columns)
    source: Any = None
    if data is not None:
        source = named(reader, reader.data(data, space)[0])
    if runs and ranked:
        source = _runs(found, runs)
    page = ws.render_report(
        found,
        output,
        runs=source,
        truth=read_truth(reader, truth, runs or (), source if ranked else None),
        layout=layout,
        objects=read_objects(reader, objects, source if ranked else None),
        command=command_of(context),
    )
    reader.tell()
    wrote(page)


def _runs(result: Any, sources: list[str]) -> Any:
    """The runs that were judged; from AnnData the embeddings and columns that the result names."""
    if len(sources) > 1 or not is_anndata(sources[0]) or type(result).__name__ != JUDGEMENT:
        return load_any(sources)
    scores = result.scores
    return load_any(sources, spaces=list(scores.spaces) or None, labels=list(scores.partitions))


def settle(
    result: Annotated[Path, typer.Argument(help="Folder written by wellsep rank --save.")],
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            "-a",
            help="JSON file with answers to the open questions, as the page exports it. Others "
            "follow the larger share of the half-samples.",
        ),
    ] = None,
    output: options.Labels = None,
    as_json: options.Json = False,
) -> None:
    """Answer the open questions about the groups of a saved ranking, and write the labels.

    Without --answers the questions and the words of their answers are printed.

    \b
    Examples:
      wellsep rank runs/ --save result/
      wellsep settle result/
      wellsep settle result/ --answers answers.json --output labels.csv
    """
    outputs = Outputs(as_json, output=output, labels=True)
    outputs.check(answers)
    judgement = _load_judgement(result)
    groups = judgement.settle(answers)
    if as_json:
        questions = [question.to_plain() for question in judgement.questions]
        print_json({"questions": questions, "labels": None if output else groups})
    else:
        print_sentences(judgement.agreed.sentences(), "settle")
        for question in judgement.questions:
            sides = (f"{side.words!r} ({side.share:.0%})" for side in question.sides)
            print_line(f"{question.id}  {question.text}  {', '.join(sides)}")
    if output is not None:
        columns = {} if output.suffix == ".npy" else judgement.object_columns()
        write_columns(output, columns | {"group": groups})


def explain(
    result: Annotated[
        Path | None, typer.Argument(help="Folder written by wellsep rank --save.")
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Say what the words of a ranking mean.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Explain a saved ranking: what was left out and why, what decided, how certain it is.

    \b
    Examples:
      wellsep rank runs/ --save result/
      wellsep explain result/
      wellsep explain --words
    """
    if words:
        for word, meaning in WORDS.items():
            print_line(f"{word}: {meaning}")
        return
    if result is None:
        raise ValueError("result must be a folder that wellsep rank --save wrote, got none.")
    judgement = _load_judgement(result)
    if as_json:
        print_json(judgement.to_dict())
        return
    print_sentences(judgement.sentences(), "rank")


def _load_judgement(folder: Path) -> Any:
    judgement = ws.load(folder)
    if type(judgement).__name__ != JUDGEMENT:
        raise ValueError(
            f"result must be a ranking that wellsep rank --save wrote, got {folder.name} with a "
            f"{type(judgement).__name__}; wellsep report shows any saved result."
        )
    return judgement
