"""Reading for the commands: a data file, which may be AnnData, and the runs behind a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

DataArgument = Annotated[
    Path,
    typer.Argument(
        help="Data file with one object per row: csv, tsv, parquet, npy, npz or AnnData's h5ad."
    ),
]
SpaceOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Embedding (space) of an .h5ad file to use, such as X_pca."),
]


def is_anndata(source: str | Path) -> bool:
    return Path(source).suffix in (".h5ad", ".zarr")


def read_data(path: Path, space: str | None = None) -> Any:
    """Read the objects of a data file, or one embedding of AnnData."""
    if is_anndata(path):
        from wellsep.adapters.anndata_entries import read_space

        return read_space(path, space)
    if space is not None:
        raise ValueError(f"space must be left out for a file without embeddings, got {path.name}.")
    from wellsep.tables.reading import read_matrix

    return read_matrix(path)


def parse_alpha(text: str) -> float | None:
    """The level of the dip test, or None for "none"."""
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"alpha must be a number or none, got {text!r}.") from None
