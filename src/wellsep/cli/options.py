"""Options and arguments that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FILES = "Files"  # panel of the help
METHODS = ("k-means", "cf-means", "lof-k-means", "robust-k-means", "ward", "gaussian-mixture")

Data = Annotated[
    Path,
    typer.Argument(
        help="Data file with one object per row: csv, tsv, parquet, npy, npz or AnnData's h5ad."
    ),
]
Space = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Embedding (space) of an .h5ad file to use, such as X_pca."),
]
Truth = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|COLUMN",
        help="True classes to compare with: a file, or a column of the .h5ad.",
    ),
]
Objects = Annotated[
    Path | None,
    typer.Option(
        "--objects",
        metavar="FILE|FOLDER",
        help="What the objects are, for the page: a table, or images in a folder or an npy file.",
        rich_help_panel=FILES,
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids", help="Column of a table that names the objects, or none.", rich_help_panel=FILES
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The first row of a table is an object, not a header.",
        rich_help_panel=FILES,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Columns of a table by name, pattern or number from 1: f1,f2 or 'f*'",
        rich_help_panel=FILES,
    ),
]
Method = Annotated[
    str, typer.Option("--method", "-m", help=f"Clustering method: {', '.join(METHODS)}.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A parameter of the method, such as n_init=20 or n_neighbors=10. Repeat for more.",
    ),
]
Scale = Annotated[
    bool,
    typer.Option("--scale", help="First scale every column to mean 0 and standard deviation 1."),
]
Seed = Annotated[int, typer.Option(help="Random seed. The same seed gives the same result.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Number of fits to run at the same time.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else on stdout, in place of a table.")
]
All = Annotated[
    bool, typer.Option("--all", help="Print every row; by default the first 40 of a long table.")
]
Report = Annotated[
    Path | None, typer.Option(help="Write the result as one HTML page to this file.")
]
Save = Annotated[
    Path | None, typer.Option(help="Save all results in this folder, for wellsep report.")
]
Table = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Also write the table to this csv or parquet file."),
]
Labels = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the labels to this csv, parquet or npy file."),
]
