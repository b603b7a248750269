"""Options and arguments that several commands share; words of the shell read as values."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import wellsep as ws
from wellsep._checks.arrays import check_choice

SHORT_NAMES = {"lr": "learning_rate", "k": "n_clusters", "batch": "batch_size"}
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


def literal(text: str) -> Any:
    """A word of the shell as Python reads it: a number, a tuple, True; else the text.

    Examples
    --------
    >>> literal("0.5"), literal("hits")
    (0.5, 'hits')
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text


def parse_count(text: str) -> int:
    """Read a number of clusters; what is no number is refused with the command that finds one."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(
            f"must be a whole number, got {text!r}; wellsep choose-k DATA finds one"
        ) from None


def parse_index(text: str) -> str | tuple[str, dict[str, Any]]:
    """Read ``"davies_bouldin(q=2)"`` as ``("davies_bouldin", {"q": 2})``, a bare name as itself."""
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
    if match is None:
        raise ValueError(
            f"index must read name or name(parameter=value, ...), got {text!r}; for several "
            "indices repeat --index."
        )
    name, inside = match[1].replace("-", "_"), match[2]
    if not (inside or "").strip():
        return name
    params = {}
    for part in inside.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise ValueError(f"index must read name(parameter=value, ...), got {text!r}.")
        params[key.strip()] = literal(value.strip())
    return name, params


def parse_range(text: str) -> list[int]:
    """Read ``"2:12"`` as 2, 3, … 12, ``"2:20:2"`` in steps of 2, ``"3,5,8"`` as listed."""
    match = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*(?::\s*(\d+)\s*)?", text)
    if match:
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if last >= first and step > 0:
            return list(range(first, last + 1, step))
    elif re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        return [int(part) for part in text.split(",")]
    raise ValueError(f"k must read like 2:12, 2:20:2 or 3,5,8, got {text!r}.")


def split_setting(word: str) -> tuple[str, str]:
    """The name and the text of ``"lr=1e-4"``; a short name in full."""
    name, equals, text = word.partition("=")
    if not equals or not name or not text:
        raise ValueError(
            f"a setting must read like lr=1e-4, a grid like lr=1e-4,1e-3, got {word!r}."
        )
    return SHORT_NAMES.get(name, name), text


def parse_settings(words: Sequence[str] | None) -> dict[str, Any]:
    """Read ``["epochs=50", "hidden=(64,32)"]`` as {"epochs": 50, "hidden": (64, 32)}."""
    return {name: literal(text) for name, text in map(split_setting, words or ())}


def parse_ace(words: Sequence[str] | None) -> tuple[bool, dict[str, Any]]:
    """Whether there is a dip test, and the switches of ACE, from ``KEY=VALUE`` each.

    Examples
    --------
    >>> parse_ace(["dip=no", "alpha=none", "links=hits"])
    (False, {'alpha': None, 'links': 'hits'})
    """
    switches = {}
    for word in words or ():
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"ace must read KEY=VALUE, such as grouping=dbscan, got {word!r}.")
        name = name.strip().replace("-", "_")
        check_choice("ace", name, ["dip", *(switch.name for switch in dataclasses.fields(ws.Ace))])
        switches[name] = None if text.strip().lower() == "none" else literal(text.strip())
    dip = switches.pop("dip", "yes")
    if str(dip).lower() not in ("yes", "no"):
        raise ValueError(f"dip must be yes or no, got {dip!r}.")
    return str(dip).lower() == "yes", switches


def cache_folder(text: str | None) -> Path | None:
    """The folder that keeps finished work: the named one, none, or by default the user's cache."""
    if text is not None:
        return None if text == "none" else Path(text)
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home folder
        return None
    return Path(base) / "wellsep" / "scores"


ONE_CLUSTER = 3  # exit code of choose-k and explore where there is no structure
in_files = partial(typer.Option, rich_help_panel="Files")
in_computing = partial(typer.Option, rich_help_panel="Computing")

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
    in_files(
        metavar="FILE|FOLDER",
        help="What the objects are, for the page: a table, or images in a folder or an npy file.",
    ),
]
Ids = Annotated[str | None, in_files(help="Column of a table that names the objects, or none.")]
NoHeader = Annotated[
    bool, in_files("--no-header", help="The first row of a table is an object, not a header.")
]
Columns = Annotated[
    str | None, in_files(help="Columns of a table by name, pattern or number from 1: f1,f2 or 'f*'")
]
Column = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="NAME",
        help="Column with the clustering, of the label file or of the .h5ad.",
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed. The same seed gives the same result.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Number of fits to run at the same time.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else on stdout, in place of a table.")
]
Cache = Annotated[
    str | None,
    in_computing(
        metavar="FOLDER|none",
        help="Folder that keeps finished scores and candidates.",
        envvar="WELLSEP_CACHE",
    ),
]
Report = Annotated[
    Path | None, typer.Option(help="Write the result as one HTML page to this file.")
]
Save = Annotated[
    Path | None, typer.Option(help="Save all results in this folder, for wellsep report.")
]
Keep = Annotated[
    Path | None, typer.Option(help="Save the result in this folder, for wellsep.load in Python.")
]
Table = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Also write the table to this csv or parquet file."),
]
Labels = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the labels to this csv, parquet or npy file."),
]
