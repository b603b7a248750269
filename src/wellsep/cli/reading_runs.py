"""Reading for the commands: a data file, which may be AnnData, and the runs behind a result."""

from __future__ import annotations

import ast
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


def literal(text: str) -> Any:
    """A word of the shell as Python reads it: a number, a tuple, True; else the text.

    Examples
    --------
    >>> literal("0.5"), literal("hits")
    (0.5, 'hits')
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def parse_ace(words: list[str]) -> tuple[bool, dict[str, Any]]:
    """Whether there is a dip test, and the switches of ACE, from ``KEY=VALUE`` each.

    Examples
    --------
    >>> parse_ace(["dip=no", "alpha=none", "links=hits"])
    (False, {'alpha': None, 'links': 'hits'})
    """
    switches = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"ace must read KEY=VALUE, such as grouping=dbscan, got {word!r}.")
        value = None if text.strip().lower() == "none" else literal(text.strip())
        switches[name.strip().replace("-", "_")] = value
    dip = switches.pop("dip", "yes")
    if str(dip).lower() not in ("yes", "no"):
        raise ValueError(f"dip must be yes or no, got {dip!r}.")
    return str(dip).lower() == "yes", switches
