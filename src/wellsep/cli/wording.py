"""Sentences of the library in the words of the shell: flags in the place of arguments."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

PHRASES = {
    "(rank_confidence, or --draws)": "(--draws)",
    "one of list_datasets()": "a file or a named data set",
    "wellsep.adapters reads AnnData, MLflow and Optuna": "AnnData, MLflow and Optuna are read too",
    "one of None, ": "one of ",
    "must be None, ": "must be ",
    "got None": "got none",
    "Pass wellsep.Distances(X) if it holds distances.": "If it holds distances: wellsep score -i "
    "'silhouette(metric=precomputed)', or wellsep rank on a folder with it as distances.npy.",
    "with save or in the shell with --save": "with wellsep rank or choose-k and --save",
}
# What the library calls an argument → what a command calls it, where it has such a flag.
SYNONYMS = {
    "indices": "index",
    "k_range": "k",
    "n_clusters": "k",
    "n_repeats": "repeats",
    "column": "truth",
    "name": "data",
}
# noise='priced', 'exclude' or 'cluster'; not inside a quoted name
_TEXTS = r"(?<!['\"\w=,.])(\w+)=('[^']*'(?:(?:, | or | and )'[^']*')*)"
_FLAGS = r"(?<!['\"\w=,.])(\w+)=(True|False)\b"


class Flag(NamedTuple):
    """How an argument is given in the shell."""

    yes: str
    no: str | None = None
    joint: str = " "  # between the flag and its value


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
        no = parameter.secondary_opts
        called = long[0] if long else str(parameter.name).upper()  # as the usage line calls it
        found[str(parameter.name)] = Flag(called, no[0] if no else None)
    if "ace" in found:
        from wellsep.evaluate.options import Ace

        found["dip"] = Flag("--ace dip", "--ace dip=no", "=")
        for switch in dataclasses.fields(Ace):
            found[switch.name] = Flag(f"--ace {switch.name}", joint="=")
    words = {word: found[name] for word, name in SYNONYMS.items() if name in found}
    return words | found


def with_its_flag(text: str, arguments: Sequence[str], flags: Mapping[str, Flag]) -> str:
    """The text with the flag before which a file was given, where it only says path or folder.

    Examples
    --------
    >>> words = ["rank", "runs", "--truth", "no.csv"]
    >>> with_its_flag("path must be an existing file, got 'no.csv'.", words, {})
    "--truth must be an existing file, got 'no.csv'."
    """
    match = re.match(r"(?:path|folder) must .*?got [^']*'([^']*)'", text)
    words = [part for word in arguments for part in word.split("=", 1)]
    if match is None or match[1] not in words:
        return text
    place = words.index(match[1])
    given = [flag.yes for flag in flags.values() if flag.yes.isupper()]
    called = words[place - 1]
    if not called.startswith("-"):
        called = (given[0] if place == 1 else given[-1]) if given else "the file"
    return called + text.removeprefix("path").removeprefix("folder")


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
    text = re.sub(r" n_samples=\d+ should be >= n_clusters=\d+\.", "", text)  # said before

    def choice(match: re.Match[str]) -> str:
        name, values = match.groups()
        if name not in flags:
            return match[0]
        # What the shell would expand or split stays in quotation marks.
        return flags[name].yes + flags[name].joint + re.sub(r"'([^'*?\[{ ]*)'", r"\1", values)

    def switch(match: re.Match[str]) -> str:
        flag = flags.get(match[1])
        if flag is None or flag.no is None:
            return match[0]
        yes = flag.yes + ("=yes" if flag.joint == "=" else "")
        return yes if match[2] == "True" else flag.no

    def bare(match: re.Match[str]) -> str:
        name = match[1]
        return match[0].replace(name, flags[name].yes) if name in flags else match[0]

    def shell_only(match: re.Match[str]) -> str:
        return "" if match[1] in text[: match.start()] else f" ({match[1]})"

    text = re.sub(_TEXTS, choice, text)
    text = re.sub(_FLAGS, switch, text)
    text = re.sub(r"\((\w+_\w+)\)", bare, text)
    text = re.sub(r"(?:^|(?<=: )|(?<=\. ))(\w+)(?= must )", bare, text)
    return re.sub(r" \(in the shell: ([^)]*)\)", shell_only, text)


def command_of(context: Any) -> str:
    """The command line of a context again: its arguments, and every option that was given."""
    words = context.command_path.split()
    for parameter in context.command.params:
        value = context.params.get(parameter.name)
        source = context.get_parameter_source(parameter.name)
        if value is None or source is None or source.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            words += map(str, value if isinstance(value, list | tuple) else [value])
        elif isinstance(value, bool):
            off = parameter.secondary_opts or parameter.opts
            words.append((parameter.opts if value else off)[0])
        else:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [max(parameter.opts, key=len), str(one)]
    return shlex.join(words)
