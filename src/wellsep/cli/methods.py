"""Options of the commands that call a clusterer by name, and may scale the data first."""

from __future__ import annotations

from typing import Annotated

import typer

METHODS = ("k-means", "cf-means", "lof-k-means", "robust-k-means", "ward", "gaussian-mixture")
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
