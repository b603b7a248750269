"""Sentences of the library in the words of the shell: flags in the place of arguments."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import wellsep as ws
from wellsep.cli.commands import COMMANDS, load_command
from wellsep.cli.printing import print_line

PHRASES = {
    "one of list_datasets()": "a file or a named data set",
    "wellsep.adapters reads AnnData, MLflow and Optuna": "AnnData, MLflow and Optuna are read too",
    "one of None, ": "one of ",
    "must be None, ": "must be ",
    "got None": "got none",
    "Pass wellsep.Distances(X) if it holds distances.": "If it holds distances: save it as "
    "FOLDER/NAME/distances.npy for wellsep explore FOLDER, with labels for wellsep rank FOLDER; or "
    "wellsep score -i 'silhouette(metric=precomputed)'.",
    "with save or in the shell with --save": "with wellsep rank or choose-k and --save",
}
# What the library calls an argument → what a command calls it, where it has such a flag.
SYNONYMS = {
    "indices": "index",
    "k_range": "k",
    "n_clusters": "k",
    "n_repeats": "repeats",
    "n_trials": "trials",
    "column": "truth",
    "name": "data",
}
# An argument of the library, not inside a quoted name: "n_draws must …", "(max_spaces)",
# "noise='penalize' or 'exclude'", "dip=False".
_ARGUMENT = re.compile(
    r"(?:^|(?<=: )|(?<=\. ))(?P<subject>\w+)(?= must )|(?<=\()(?P<aside>\w+_\w+)(?=\))"
    r"|(?<!['\"\w=,.])(?P<name>\w+)="
    r"(?P<value>(?:True|False)\b|'[^']*'(?:(?:, | or | and )'[^']*')*)"
)


class Flag(NamedTuple):
    """How an argument is given in the shell."""

    yes: str
    no: str | None = None
    joint: str = " "  # between the flag and its value


def flags_of(command: str | None) -> dict[str, Flag]:
    """Argument → flag, for a command of the app; none for what is no command."""
    if command not in COMMANDS:
        return {}
    found = {}
    for parameter in load_command(command).params:
        long = [text for text in parameter.opts if text.startswith("--")]
        no = parameter.secondary_opts
        called = long[0] if long else str(parameter.name).upper()  # as the usage line calls it
        found[str(parameter.name)] = Flag(called, no[0] if no else None)
    if "ace" in found:
        found["dip"] = Flag("--ace dip", "--ace dip=no", "=")
        for switch in dataclasses.fields(ws.Ace):
            found[switch.name] = Flag(f"--ace {switch.name}", joint="=")
    words = {word: found[name] for word, name in SYNONYMS.items() if name in found}
    return words | found


def print_sentences(sentences: Iterable[str], command: str) -> None:
    """Print what the library says, a line each, in the words of a command."""
    flags = flags_of(command)
    for sentence in sentences:
        print_line(in_shell_words(sentence, flags))


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
    >>> in_shell_words("choose noise='penalize', 'exclude' or 'cluster'.", flags)
    'choose --noise penalize, exclude or cluster.'
    >>> in_shell_words("n_draws must be at least 0, got -1.", flags)
    '--draws must be at least 0, got -1.'
    >>> in_shell_words("left out (dip=False), see 'noise=1'", flags)
    "left out (--no-dip), see 'noise=1'"
    """
    for phrase, other in PHRASES.items():
        text = text.replace(phrase, other)
    text = re.sub(r"pass range\((\d+), (\d+)\)", lambda k: f"say --k {k[1]}:{int(k[2]) - 1}", text)
    text = re.sub(r" n_samples=\d+ should be >= n_clusters=\d+\.", "", text)  # said before

    def as_flag(match: re.Match[str]) -> str:
        flag, value = flags.get(match["subject"] or match["aside"] or match["name"]), match["value"]
        if flag is None or (flag.no is None and value in ("True", "False")):
            return match[0]
        if value == "False":
            return str(flag.no)
        if value == "True":
            return flag.yes + ("=yes" if flag.joint == "=" else "")
        # What the shell would expand or split stays in quotation marks.
        shown = "" if value is None else flag.joint + re.sub(r"'([^'*?\[{ ]*)'", r"\1", value)
        return flag.yes + shown

    def shell_only(match: re.Match[str]) -> str:
        return "" if match[1] in text[: match.start()] else f" ({match[1]})"

    text = _ARGUMENT.sub(as_flag, text)
    return re.sub(r" \(in the shell: ([^)]*)\)", shell_only, text)
