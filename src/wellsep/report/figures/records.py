"""The page and its figures as plain frozen data, computed before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._text.sentences import count
from wellsep.report.pack import to_payload

_NOT_SENT = {"page": False}  # the script knows it from elsewhere


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table.

    Attributes
    ----------
    key, label, help : short name, heading, a sentence
    kind : {"name", "text", "int", "float", "share", "interval"}
    values : tuple, None where there is none; an interval is a pair
    direction : 1 larger is better, -1 smaller is better, 0 neither
    """

    key: str
    label: str
    kind: str
    values: tuple[Any, ...]
    help: str = field(default="", metadata=_NOT_SENT)
    direction: int = 0


@dataclass(frozen=True, eq=False)
class RankingTable:
    """The ranking, best first.

    Attributes
    ----------
    rows : ndarray of int, the partition (or K) each row is about
    columns : tuple of Column
    same : params that all runs share, and are no column
    classes : which distinct clustering each row is; None where all differ
    """

    rows: np.ndarray
    columns: tuple[Column, ...]
    same: Mapping[str, Any] = field(default_factory=dict)
    classes: np.ndarray | None = None


@dataclass(frozen=True)
class Step:
    """One step of ACE: how many spaces are left, and what it did."""

    title: str
    count: int
    sentence: str
    kept: tuple[bool, ...]  # per space


@dataclass(frozen=True, eq=False)
class Steps:
    """Spaces in → multimodal → groups → winner.

    Attributes
    ----------
    spaces : tuple of str
    order : ndarray, the spaces as they are drawn: by group, the winner first
    fate : tuple of {"wins", "group", "outlier", "constant", "dip"}
    group : ndarray, phase-1 group of each space, -1 = none
    weight : ndarray, weight in the answer, 0 for others
    steps : tuple of Step
    dropped : tuple of (space, step, sentence)
    """

    spaces: tuple[str, ...] = field(metadata=_NOT_SENT)
    order: np.ndarray
    fate: tuple[str, ...]
    group: np.ndarray
    weight: np.ndarray
    steps: tuple[Step, ...]
    dropped: tuple[tuple[str, str, str], ...] = field(metadata=_NOT_SENT)


@dataclass(frozen=True, eq=False)
class SpaceAgreement:
    """Rank agreement of the retained spaces, ordered by group, and their graph."""

    names: tuple[str, ...]
    places: np.ndarray  # (R,) position of each among all spaces
    values: np.ndarray  # (R, R) rank correlation
    adjusted: np.ndarray | None  # (R, R) Holm-adjusted p
    linked: np.ndarray  # (R, R) bool, significant and positive
    group: np.ndarray  # (R,)
    weight: np.ndarray  # (R,) PageRank (or HITS) within its subgroup
    wins: np.ndarray  # (R,) bool
    correlation: str
    xy: np.ndarray  # (R, 2) where the graph puts each, in the unit square

    @property
    def floor(self) -> float:
        """Where the colours start."""
        return colour_floor(self.values)

    @property
    def edges(self) -> np.ndarray:
        """(E, 2) the links of the graph."""
        return np.argwhere(np.triu(self.linked, 1))


@dataclass(frozen=True, eq=False)
class RunAgreement:
    """Agreement of every two distinct partitions, ordered so that similar ones are neighbours."""

    names: tuple[str, ...]  # of the first run of each
    counts: np.ndarray  # (D,) runs that are each partition
    values: np.ndarray  # (D, D)
    measure: str  # in words

    @property
    def floor(self) -> float:
        """Where the colours start."""
        return colour_floor(self.values)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names, with the number of runs where it is not one."""
        pairs = zip(self.names, self.counts.tolist(), strict=True)
        return tuple(name if n == 1 else f"{name} (×{n})" for name, n in pairs)


def colour_floor(values: np.ndarray) -> float:
    """Where the colours of agreement start: -1, or a tenth under the least where all agree."""
    least = float(np.min(values, initial=1.0))
    return -1.0 if least < 0 else min(np.floor(least * 10) / 10, 0.9)


@dataclass(frozen=True, eq=False)
class Dips:
    """Dip tests of all spaces."""

    names: tuple[str, ...] = field(metadata=_NOT_SENT)
    statistic: np.ndarray
    pvalue: np.ndarray
    adjusted: np.ndarray
    passed: np.ndarray
    notes: tuple[str, ...]
    alpha: float


@dataclass(frozen=True, eq=False)
class Scatter:
    """Some objects of one space in a plane, with the clusters of one partition."""

    space: str
    xy: np.ndarray  # (s, 2)
    axes: str
    objects: np.ndarray  # (s,)
    codes: np.ndarray  # (s,) cluster of each, -1 = noise
    clusters: tuple[str, ...]
    selected: bool = True


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Silhouette widths of a partition, cluster by cluster, the greatest first."""

    clusters: tuple[str, ...]
    codes: np.ndarray  # (K,) number of each cluster, for its colour
    widths: tuple[np.ndarray, ...]
    objects: tuple[np.ndarray, ...]
    means: np.ndarray  # (K,)
    mean: float


@dataclass(frozen=True, eq=False)
class Strips:
    """One value per object, cluster by cluster, and the objects to check."""

    kind: str  # "margin" or "lcd"
    title: str
    clusters: tuple[str, ...]
    codes: np.ndarray
    values: tuple[np.ndarray, ...]
    objects: tuple[np.ndarray, ...]
    worst: np.ndarray  # positions of objects, the worst first
    worse: int  # 1: large values are bad, -1: small ones


@dataclass(frozen=True, eq=False)
class TreeFigure:
    """A resolution tree, laid out: a row per level, clusters placed to cross few links."""

    levels: tuple[str, ...]
    clusters: tuple[str, ...]
    level: np.ndarray  # (N,) row of each cluster
    x: np.ndarray  # (N,) from 0 to 1
    sizes: np.ndarray  # (N,)
    codes: np.ndarray  # (N,) colour: the largest part of a cluster keeps its colour, noise is -1
    links: np.ndarray  # (E, 2)
    counts: np.ndarray  # (E,)
    shares: np.ndarray  # (E,) share of the lower cluster that comes along the link


@dataclass(frozen=True, eq=False)
class ClusterProfile:
    """How the features that make the clusters differ inside and outside of each."""

    clusters: tuple[str, ...]
    features: tuple[str, ...]
    values: np.ndarray  # (K, F) over the pooled standard deviation; of shares the plain difference
    shares: np.ndarray  # (F,) bool, which features are shares

    @property
    def reach(self) -> float:
        """Where the colours end on both sides."""
        known = np.abs(self.values[np.isfinite(self.values)])
        return float(known.max(initial=0.0)) or 1.0


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page.

    Attributes
    ----------
    name : which form of the template writes it
    data : what the script draws
    shown : what the template writes besides
    absent : the sentence that says why there is nothing to show
    """

    name: str
    data: Mapping[str, Any] = field(default_factory=dict)
    shown: Any = None
    absent: str = ""


@dataclass(frozen=True, eq=False)
class Page:
    """A page before it is written.

    Attributes
    ----------
    kind : {"ranking", "choice of k", "stability", "clusters", "resolutions"}
    lead : the answer as pieces ("name" or "text", words)
    sure : sentences on how certain it is
    facts : (number, words) pairs
    table : RankingTable
    paragraphs : the explanation
    sections : what follows, in the order in which it is read
    about : what the script needs besides the data of the sections
    chip : the kind of verdict, in two or three words
    picks : (clustering, judges that place it first), most judges first
    provenance : (word, text) pairs: how to make the page again, options, version, date, data
    """

    kind: str
    title: str
    lead: tuple[tuple[str, str], ...]
    sure: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    table: RankingTable
    paragraphs: tuple[str, ...]
    sections: tuple[Section, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    chip: str = ""
    picks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    provenance: tuple[tuple[str, str], ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """What the script draws."""
        found = {"kind": self.kind, **self.about, "table": to_payload(self.table)}
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
