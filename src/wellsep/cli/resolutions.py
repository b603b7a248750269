"""The command that says which cluster goes where as clusters become more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wellsep.cli.printing import (
    TABLES,
    JsonOption,
    check_file,
    check_folder,
    print_columns,
    print_error,
    print_json,
    print_line,
    refuse_inputs,
    wrote,
)
from wellsep.cli.reading_runs import is_anndata


def resolutions(
    source: Annotated[
        str,
        typer.Argument(
            help="Clusterings of the same objects: a table of labels, an .h5ad file, a folder of "
            "runs, or a folder written by choose-k --save."
        ),
    ],
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", metavar="PATTERN", help="Use only these clusterings: 'leiden_*' or k2,k3,k4"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write the links to this csv or parquet file."),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Save the tree in this folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show which clusters split into which as K grows: the resolution tree.

    Clusterings are put in the order of their number of clusters. No data is needed, only labels.

    \b
    Examples:
      wellsep resolutions labels.csv
      wellsep resolutions data.h5ad --labels 'leiden_*' -o links.csv
      wellsep resolutions chosen/ --json
    """
    import wellsep as ws

    refuse_inputs("output", output, source)
    check_file("output", output, TABLES)
    check_folder("save", save)
    tree = ws.resolution_tree(_read(source, labels), None if is_anndata(source) else labels)
    if as_json:
        print_json(tree.to_dict())
    else:
        print_columns(tree.columns())
        print_line(tree.explain())
    if save is not None:
        tree.save(save)
        wrote(save)
    if output is not None:
        from wellsep.tables.writing import write_table

        write_table(output, tree.columns())
        wrote(output)


def _read(source: str, labels: str | None) -> Any:
    """The clusterings of a source; a saved choice of K is one."""
    from wellsep._files.records import MANIFEST
    from wellsep.adapters import load_any

    if (Path(source) / MANIFEST).is_file():
        from wellsep.cluster.k_choice.result import ChosenK

        return ChosenK.load(source)
    if is_anndata(source):
        from wellsep.adapters.anndata import clusterings_of

        runs = clusterings_of(source, labels)
    else:
        runs = load_any(source)
    for note in runs.notes:
        print_error(note)
    return runs
