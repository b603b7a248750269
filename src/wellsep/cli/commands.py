"""Which module holds which command; it is imported when the command runs or shows its help.

A command named ``choose-k`` is the function ``choose_k`` of its module.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

COMMANDS = {
    "explore": "exploring",
    "rank": "ranking",
    "score": "scoring",
    "choose-k": "clustering",
    "cluster": "clustering",
    "describe": "clusters",
    "stability": "clusters",
    "resolutions": "clusters",
    "train": "training",
    "report": "saved",
    "explain": "saved",
    "settle": "saved",
    "indices": "scoring",
    "demo": "demo",
}
# By job: the first paragraph of each command's help, which the list shows without its module.
JOBS = {
    "Make clusterings": {
        "explore": "Cluster data of which nothing is known: make many clusterings, judge them, "
        "keep the best.",
        "choose-k": "Find the number of clusters: test for more than one, then let indices vote "
        "on K.",
        "cluster": "Cluster a data set and write the labels.",
        "train": "Train a deep clusterer with one setting or many, and write each result as a run.",
    },
    "Judge clusterings": {
        "rank": "Rank clusterings without true labels; say why, and how certain the ranking is.",
        "score": "Score clusterings (partitions) of one data set by one or more validity indices.",
    },
    "Look at clusters": {
        "describe": "Say what is in each cluster: size, quality, features that differ, objects to "
        "look at.",
        "stability": "Say how often each cluster is found again in random samples of the objects.",
        "resolutions": "Show which clusters split into which as K grows: the resolution tree.",
    },
    "Use a saved result": {
        "report": "Write a saved result as one HTML page that works offline.",
        "explain": "Explain a saved ranking: what was left out and why, what decided, how certain "
        "it is.",
        "settle": "Answer the open questions about the groups of a saved ranking, and write the "
        "labels.",
    },
    "Learn": {
        "indices": "List the validity indices that can be computed, or show one of them.",
        "demo": "Cluster handwritten digits in seven embeddings, rank the runs, write a page.",
    },
}
METAVARS = {"Path": "FILE", "int": "N", "float": "NUMBER", "bool": "", "str": "TEXT"}


class _Plain:
    """Shows no type for a flag or an argument in the help."""

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
            elif parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: None  # its name says enough
        return parameters


class PlainCommand(_Plain, TyperCommand):
    """A command with plain help."""


class Commands(_Plain, TyperGroup):
    """All commands: in a list as `JOBS` has them, else whole."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(args[0]), rest


@functools.cache
def load_command(name: str) -> Any:
    """Import the module of a command and return the command."""
    module = importlib.import_module(f"wellsep.cli.{COMMANDS[name]}")
    function = with_metavars(getattr(module, name.replace("-", "_")))
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name, cls=PlainCommand)(function)
    return typer.main.get_command(app)


def with_metavars(function: Callable[..., None]) -> Callable[..., None]:
    """Give each option a word for its value, in place of a Python type."""
    hints = get_type_hints(function, include_extras=True)
    function.__annotations__ = hints  # typer reads the very records that get a word here
    for name, hint in hints.items():
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for info in extras:
            if getattr(info, "metavar", "") is not None:
                continue
            if isinstance(info, ArgumentInfo):
                info.metavar = name.upper()
            else:
                info.metavar = next(word for key, word in METAVARS.items() if key in str(kind))
                if info.metavar == "FILE" and "folder" in str(info.help).lower():
                    info.metavar = "FOLDER"
    return function
