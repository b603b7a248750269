"""Sentences of the library in the words of the shell: flags in the place of arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

PHRASES = {"(rank_confidence, or --draws)": "(--draws)"}
# noise='priced', 'exclude' or 'cluster'; not inside a quoted name
_TEXTS = r"(?<!['\"\w=,.])(\w+)=('[^']*'(?:(?:, | or | and )'[^']*')*)"
_FLAGS = r"(?<!['\"\w=,.])(\w+)=(True|False)\b"


class Flag(NamedTuple):
    """How an argument is given in the shell."""

    yes: str
    no: str | None = None


def flags_of(command: str | None) -> dict[str, Flag]:
    """Argument → flag, for a command of the app; none for what is no command."""
    import typer

    from wellsep.cli.main import COMMANDS, build_app

    if command not in COMMANDS:
        return {}
    app = typer.main.get_command(build_app(command))
    found = {}
    for parameter in app.commands[command].params:  # type: ignore[attr-defined]
        long = [text for text in parameter.opts if text.startswith("--")]
        if long:
            no = parameter.secondary_opts
            found[str(parameter.name)] = Flag(long[0], no[0] if no else None)
    return found


def in_shell_words(text: str, flags: Mapping[str, Flag]) -> str:
    """The text with flags where it names arguments of the library.

    Examples
    --------
    >>> flags = {"noise": Flag("--noise"), "dip": Flag("--dip", "--no-dip"),
    ...          "n_draws": Flag("--draws")}
    >>> in_shell_words("choose noise='priced', 'exclude' or 'cluster'.", flags)
    'choose --noise priced, exclude or cluster.'
    >>> in_shell_words("n_draws must be at least 0, got -1.", flags)
    '--draws must be at least 0, got -1.'
    >>> in_shell_words("left out (dip=False), see 'noise=1'", flags)
    "left out (--no-dip), see 'noise=1'"
    """
    for phrase, other in PHRASES.items():
        text = text.replace(phrase, other)

    def choice(match: re.Match[str]) -> str:
        name, values = match.groups()
        if name not in flags:
            return match[0]
        return f"{flags[name].yes} {values}".replace("'", "")

    def switch(match: re.Match[str]) -> str:
        flag = flags.get(match[1])
        if flag is None or flag.no is None:
            return match[0]
        return flag.yes if match[2] == "True" else flag.no

    def bare(match: re.Match[str]) -> str:
        name = match[1]
        return match[0].replace(name, flags[name].yes) if name in flags else match[0]

    text = re.sub(_TEXTS, choice, text)
    text = re.sub(_FLAGS, switch, text)
    text = re.sub(r"\((\w+_\w+)\)", bare, text)
    return re.sub(r"^(\w+)(?= must )", bare, text)
