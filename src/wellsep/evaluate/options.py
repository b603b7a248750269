"""The options of scoring, ACE and votes: each is one field with its check.

What each option means is said in the docstring of the public function that takes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_fraction,
    check_number,
)
from wellsep._checks.values import (
    check_device,
    check_flag,
    check_function,
    check_generator,
    check_jobs,
    check_path,
)
from wellsep._files.records import Record
from wellsep._text.sentences import shown
from wellsep.evaluate.ace_method.groups import LINKS
from wellsep.evaluate.ranks import CORRELATIONS, TIE
from wellsep.indices.external import AGREEMENTS
from wellsep.indices.index_names import IndexSpec, ParsedIndex, is_pair, parse_indices
from wellsep.partitions import NOISE_POLICIES
from wellsep.spaces.drawing_planes import LAYOUTS
from wellsep.spaces.modes import PROJECTIONS

UNDEFINED = ("worst", "error")
CONVENTIONS = (None, "ace")
_HOW = ("progress", "scheduler", "cache", "device", "n_jobs")  # the result does not depend on it
JUDGES = ("auto", "ace", "consensus")
Progress = Callable[[int, int, str], None]
Check = Callable[[str, Any], Any]

_T = TypeVar("_T", bound="Checked")


def _option(default: Any, check: Check | None = None) -> Any:
    return field(default=default, metadata={} if check is None else {"check": check})


def _one_of(choices: Any) -> Check:
    return lambda name, value: check_choice(name, value, choices)


def _between(low: float, high: float) -> Check:
    return lambda name, value: check_number(name, value, low, high)


def _or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


@dataclass(frozen=True, kw_only=True)
class Checked(Record):
    """Some options; each field is checked by the rule that is declared with it."""

    def __post_init__(self) -> None:
        for option in fields(self):
            if "check" in option.metadata:
                option.metadata["check"](option.name, getattr(self, option.name))

    def part(self, kind: type[_T]) -> _T:
        """The fields that another kind of options has too."""
        return kind(
            **{option.name: getattr(self, option.name) for option in fields(kind) if option.init}
        )


@dataclass(frozen=True, kw_only=True)
class Ace(Checked):
    """The switches of ACE, for :func:`wellsep.judge`; a result of ACE keeps them.

    Parameters
    ----------
    dip_alpha : float
        Family-wise level of the dip test that leaves out spaces.
    alpha : float or None
        Family-wise level of the edge test; None: every positive correlation is an edge.
    correlation : {"spearman", "kendall"}
        Rank correlation between the scores of two spaces.
    grouping : {"hdbscan", "dbscan"}
        How spaces are grouped in phase 1; phase 2 (inside groups of more than 5 spaces) is always
        HDBSCAN.
    eps : float
        Largest distance (1 - correlation) between neighbours in DBSCAN.
    links : {"pagerank", "hits"}
        How the spaces of a group are weighted.
    outliers : {"drop", "compete"}
        "compete": the best space outside the groups decides if its mean is no smaller than the best
        group's and a paired one-sided t-test rejects at .05.
    undefined : {"worst", "error"}
        "worst": undefined scores count as the smallest of the whole matrix; "error" raises.
    tie_tolerance : float
        Relative difference under which scores, distances and means are equal.
    projection : {"pca", "pca-scaled", "components", "distances"}
        How the dip test sees a space, see :func:`wellsep.multimodality`.
    convention : {None, "ace"}
        "ace" computes the indices as the authors of ACE computed them.

    Examples
    --------
    >>> import wellsep as ws
    >>> ws.Ace(grouping="dbscan", eps=0.2).links
    'pagerank'
    """

    dip_alpha: float = _option(0.05, check_fraction)
    alpha: float | None = _option(0.10, _or_none(check_fraction))
    correlation: str = _option("spearman", _one_of(CORRELATIONS))
    grouping: str = _option("hdbscan", _one_of(("hdbscan", "dbscan")))
    eps: float = _option(0.1, _between(0.0, 2.0))
    links: str = _option("pagerank", _one_of(LINKS))
    outliers: str = _option("drop", _one_of(("drop", "compete")))
    undefined: str = _option("worst", _one_of(UNDEFINED))
    tie_tolerance: float = _option(TIE, _between(0.0, 0.1))
    projection: str = _option("pca", _one_of(PROJECTIONS))
    convention: str | None = _option(None, _one_of(CONVENTIONS))


def as_ace(given: Any) -> Ace:
    """The switches of ACE: as they are, from a mapping, or the defaults."""
    if given is None or isinstance(given, Ace):
        return given or Ace()
    if not isinstance(given, Mapping):
        raise TypeError(f"ace must be Ace, a mapping or None, got {shown(given)}.")
    for name in given:
        check_choice("ace", name, [option.name for option in fields(Ace)])
    return Ace(**given)


@dataclass(frozen=True, kw_only=True)
class Settings(Checked):
    """What scores depend on; they keep it."""

    noise: str = _option("penalize", _one_of(NOISE_POLICIES))
    convention: str | None = _option(None, _one_of(CONVENTIONS))
    dip: bool = _option(True, check_flag)
    projection: str = _option("pca", _one_of(PROJECTIONS))


@dataclass(frozen=True, kw_only=True)
class Computing(Checked):
    """What the work on one space is done with, here or on a worker."""

    n_jobs: int | None = _option(None, lambda name, value: check_jobs(value, name))
    device: Any = _option(None, lambda name, value: check_device(value, name))  # noqa: RUF009


@dataclass(frozen=True, kw_only=True)
class Calling(Computing):
    """How the work is shared out and followed; no record keeps it."""

    progress: Progress | None = _option(None, check_function)  # noqa: RUF009
    random_state: Any = _option(0, lambda name, value: check_generator(value, name))  # noqa: RUF009
    scheduler: Any = None


@dataclass(frozen=True, kw_only=True)
class VoteOptions(Checked):
    """How partitions vote for each other, see :func:`wellsep.consensus`; the result keeps it."""

    agreement: str = _option("ari", _one_of(AGREEMENTS))
    noise: str = _option("cluster", _one_of(("cluster", "singletons")))
    tie_tolerance: float = _option(TIE, _between(0.0, 0.1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise == "singletons" and self.agreement == "nmi":
            raise ValueError(
                "noise must be 'cluster' with agreement='nmi', got 'singletons'; NMI rewards many "
                "small clusters: choose agreement='ari' or 'ami'."
            )


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Calling, Settings):
    """The options of :func:`wellsep.score_runs`."""

    indices: Sequence[IndexSpec] | IndexSpec = ("silhouette",)
    details: bool = _option(True, check_flag)
    spaces: Any = None
    labels: Any = None
    pairs: Any = None
    max_spaces: int | None = _option(None, _or_none(check_count))
    cache: str | os.PathLike[str] | None = _option(None, _or_none(check_path))  # noqa: RUF009
    # The indices by their labels, with all their parameters; parsed once.
    parsed: Mapping[str, ParsedIndex] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        parsed = parse_indices(self.indices, self.convention)
        object.__setattr__(self, "parsed", {i.label(params): (i, params) for i, params in parsed})


@dataclass(frozen=True, kw_only=True)
class Options(ScoreOptions):
    """The options of :func:`wellsep.judge`."""

    judge: str = _option("auto", _one_of(JUDGES))
    X: Any = None
    n_draws: int = _option(100, partial(check_count, minimum=0))
    layout: str | None = _option(None, _one_of((None, "auto", *LAYOUTS)))
    ace: Ace = Ace()
    # Switches of ACE that scores depend on.
    convention: str | None = field(init=False, default=None)
    projection: str = field(init=False, default="pca")

    def __post_init__(self) -> None:
        for name in ("convention", "projection"):
            object.__setattr__(self, name, getattr(self.ace, name))
        super().__post_init__()

    def to_plain(self) -> dict[str, Any]:
        """The options that are plain data and that the result depends on; whether X was given."""
        plain = {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if option.init and option.name not in _HOW
        }
        given: Any = self.indices
        one = isinstance(given, str) or is_pair(given)
        plain["indices"] = [
            spec if isinstance(spec, str) else [spec[0], {k: _plain(v) for k, v in spec[1].items()}]
            for spec in ([given] if one else given)
        ]
        plain["X"] = self.X is not None
        plain["ace"] = asdict(self.ace)
        if not isinstance(self.random_state, int):
            plain["random_state"] = "a generator"
        for name in ("spaces", "labels", "pairs"):
            plain[name] = None if plain[name] is None else str(plain[name])
        return plain


def _plain(value: Any) -> Any:
    """A parameter as it is, where a record can hold it; else its words."""
    return value if isinstance(value, str | int | float | None) else str(value)


PLAIN = Options().to_plain()  # the defaults
