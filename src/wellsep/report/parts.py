"""What a page is made of: its table, its sections, and the facts at its head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._text.sentences import count
from wellsep.report.pack import NOT_SENT, to_payload


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table."""

    key: str
    label: str  # the heading
    kind: str  # "name", "text", "int", "float", "share" or "interval"
    values: tuple[Any, ...]  # None where there is none; an interval is a pair
    help: str = field(default="", metadata=NOT_SENT)  # a sentence
    direction: int = 0  # 1 larger is better, -1 smaller is better, 0 neither


@dataclass(frozen=True, eq=False)
class RankingTable:
    """The ranking, best first."""

    rows: np.ndarray  # the partition (or K, or cluster) each row is about
    columns: tuple[Column, ...]
    # Params that all runs share.
    same: Mapping[str, Any] = field(default_factory=dict, metadata=NOT_SENT)
    classes: np.ndarray | None = None  # which distinct clustering each row is


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page."""

    name: str  # which form of the template writes it
    data: Mapping[str, Any] = field(default_factory=dict)  # what the script draws
    shown: Any = None  # what the template writes besides
    absent: str = ""  # the sentence that says why there is nothing to show


@dataclass(frozen=True, eq=False)
class Page:
    """A page before it is written."""

    kind: str  # "ranking", "choice of k", "stability", "clusters" or "resolutions"
    title: str
    lead: tuple[tuple[str, str], ...]  # the answer as pieces ("name" or "text", words)
    sure: tuple[str, ...]  # sentences on how certain it is
    facts: tuple[tuple[str, str], ...]  # (number, words)
    table: RankingTable
    paragraphs: tuple[str, ...]  # the explanation
    sections: tuple[Section, ...]  # what follows, in the order in which it is read
    about: Mapping[str, Any] = field(default_factory=dict)  # what else the script needs
    chip: str = ""  # the kind of verdict, in two or three words
    picks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (clustering, judges that place it first)
    provenance: tuple[tuple[str, str], ...] = ()  # (word, text): how to make the page again

    @property
    def data(self) -> dict[str, Any]:
        """What the script draws."""
        found = {**self.about, "table": to_payload(self.table)}
        found["explanation"] = list(self.paragraphs)
        for section in self.sections:
            found |= section.data
        return found


def fact(number: int, noun: str, plural: str | None = None) -> tuple[str, str]:
    """A number and its noun, as the head of a page shows them.

    Examples
    --------
    >>> fact(1, "run"), fact(2000, "object")
    (('1', 'run'), ('2,000', 'objects'))
    """
    shown, _, words = count(number, noun, plural).partition(" ")
    return shown, words
