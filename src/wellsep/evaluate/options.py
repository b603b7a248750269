"""The options of scoring, ACE and half-samples: each is one field with its check and sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

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
    check_names,
    check_path,
    check_text,
)
from wellsep._files.records import Record
from wellsep.evaluate.ace_method.groups import TIE
from wellsep.evaluate.ace_method.links import LINKS
from wellsep.evaluate.ranks import CORRELATIONS
from wellsep.indices.external import AGREEMENTS
from wellsep.indices.index_names import IndexSpec, ParsedIndex, is_pair, parse_indices
from wellsep.partitions import NOISE_POLICIES
from wellsep.spaces.drawing_planes import LAYOUTS
from wellsep.spaces.modes import PROJECTIONS

UNDEFINED = ("worst", "error")
_HOW = ("progress", "scheduler", "cache", "device", "n_jobs")  # the result does not depend on it
JUDGES = ("auto", "ace", "consensus")
Progress = Callable[[int, int, str], None]
Check = Callable[[str, Any], Any]

_T = TypeVar("_T", bound="Checked")


def _option(default: Any, check: Check | None = None) -> Any:
    return field(default=default, metadata={} if check is None else {"check": check})


def _one_of(choices: Any) -> Check:
    return lambda name, value: check_choice(name, value, choices)


def _count_from(minimum: int) -> Check:
    return lambda name, value: check_count(name, value, minimum=minimum)


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
class Settings(Checked):
    """What scores depend on; they keep it.

    Parameters
    ----------
    noise : {"priced", "exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. By default such objects are not counted and lower
        the score, so that a run that calls most objects noise does not win by it; an index that has
        no price for them is refused. "exclude": they are not counted and cost nothing. "cluster":
        they are one cluster. "singletons": each is a cluster. "error": they are refused.
    convention : {None, "ace"}
        "ace" computes what the authors of ACE computed.
    dip : bool
        Also test every space for more than one mode.
    projection : {"pca", "pca-scaled", "components", "distances"}
        How the dip test sees a space, see :func:`wellsep.multimodality`.
    n_plotted : int
        Objects whose coordinates are kept for drawing; 0 for none.
    """

    noise: str = _option("priced", _one_of(NOISE_POLICIES))
    convention: str | None = _option(None, _one_of((None, "ace")))
    dip: bool = _option(True, check_flag)
    projection: str = _option("pca", _one_of(PROJECTIONS))
    n_plotted: int = _option(2000, _count_from(0))


@dataclass(frozen=True, kw_only=True)
class AceOptions(Checked):
    """The options of ACE; its result keeps them.

    Parameters
    ----------
    index : str, optional
        Which index of the scores decides; the first by default.
    dip : bool
        Leave out spaces the dip test finds unimodal. A space whose test is undefined (p is NaN)
        is kept. If no test finds more than one mode, all are kept. The explanation says which.
    dip_alpha : float
        Family-wise level of that test.
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
    """

    index: str | None = _option(None, _or_none(check_text))
    dip: bool = _option(True, check_flag)
    dip_alpha: float = _option(0.05, check_fraction)
    alpha: float | None = _option(0.10, _or_none(check_fraction))
    correlation: str = _option("spearman", _one_of(CORRELATIONS))
    grouping: str = _option("hdbscan", _one_of(("hdbscan", "dbscan")))
    eps: float = _option(0.1, _between(0.0, 2.0))
    links: str = _option("pagerank", _one_of(LINKS))
    outliers: str = _option("drop", _one_of(("drop", "compete")))
    undefined: str = _option("worst", _one_of(UNDEFINED))
    tie_tolerance: float = _option(TIE, _between(0.0, 0.1))


@dataclass(frozen=True, kw_only=True)
class DrawOptions(Checked):
    """Which half-samples are drawn.

    Parameters
    ----------
    n_draws : int
        Number of half-samples.
    leave_out : float
        Share of the spaces left out of each draw, in [0, 1); none if there are fewer than three.
    n_groups : int
        Even; 12 allow 924 different half-samples.
    level : float
        Share of the draws an interval covers.
    redo_dip : bool
        Test every space again on each half-sample (as it should be); False keeps the spaces'
        p-values, which is quicker.
    """

    n_draws: int = _option(100, _count_from(1))
    leave_out: float = _option(0.2, _between(0.0, 0.95))
    n_groups: int = _option(12, _count_from(2))
    level: float = _option(0.9, check_fraction)
    redo_dip: bool = _option(True, check_flag)


@dataclass(frozen=True, kw_only=True)
class Computing(Checked):
    """What the work on one space is done with, here or on a worker.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; by default as many as BLAS would use. The result does not depend on it.
    device : str, optional
        "cuda" computes on the GPU through PyTorch.
    """

    n_jobs: int | None = _option(None, lambda name, value: check_jobs(value, name))
    device: Any = _option(None, lambda name, value: check_device(value, name))  # noqa: RUF009


@dataclass(frozen=True, kw_only=True)
class Calling(Computing):
    """How the work is shared out and followed; no record keeps it.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(done, total, space)`` before each space, and at the end; then the
        same way for the half-samples, which are called "half-samples".
    random_state : int or Generator
        Chooses the objects whose coordinates are kept, and the half-samples.
    scheduler : str or distributed.Client, optional
        A Dask cluster that works on the spaces, each in a task of its own; an active client is
        used by default. Embeddings in files are read by the workers.
    """

    progress: Progress | None = _option(None, check_function)  # noqa: RUF009
    random_state: Any = _option(0, lambda name, value: check_generator(value, name))  # noqa: RUF009
    scheduler: Any = None


@dataclass(frozen=True, kw_only=True)
class VoteOptions(Checked):
    """How partitions vote for each other; the result keeps it.

    Parameters
    ----------
    agreement : {"ari", "ami", "nmi"}
        How two partitions are compared. "nmi" favours many clusters: use it beside the others.
    weighting : {"rank-squared", "top-quarter"}
        What a partition's vote weighs by the first judge, where there is one: its rank squared
        (worst 1, best D², ties share), or 1 for the best quarter (at least three) and 0 for others.
    rounds : int
        Rounds after the first take the scores of the round before as the first judge.
    near : float or None
        Partitions that agree by at least this share one vote; None: each has its own.
    noise : {"cluster", "singletons"}
        What the label -1 means: one more cluster, or each such object a cluster of its own (not
        with "nmi", which would reward it).
    tie_tolerance : float
        Relative difference under which two scores are equal.
    """

    agreement: str = _option("ari", _one_of(AGREEMENTS))
    weighting: str = _option("rank-squared", _one_of(("rank-squared", "top-quarter")))
    rounds: int = _option(1, _count_from(1))
    near: float | None = _option(0.9, _or_none(check_fraction))
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
class ConsensusOptions(Computing, VoteOptions):
    """The options of :func:`wellsep.consensus`.

    Parameters
    ----------
    first_judge : mapping of names to scores, or array of shape (M,), optional
        Whose favourites weigh more; larger scores are better, an array has them in the order of
        the runs. By default all weigh the same. The scores of :func:`wellsep.ace` or of another
        consensus are its ``scores``.
    n_jobs : int, optional
        Threads that count; by default as many as BLAS would use. The result does not depend on it.
    device : str, optional
        "cuda" counts on the GPU through PyTorch, as labels that are CUDA tensors are.
    """

    first_judge: Any = None


@dataclass(frozen=True, kw_only=True)
class ConfidenceOptions(Calling, DrawOptions):
    """The options of :func:`wellsep.evaluate.rank_confidence`."""


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Calling, Settings):
    """The options of :func:`wellsep.score_runs`.

    Parameters
    ----------
    spaces : str or iterable of str, optional
        Score in these embeddings only, by name or pattern; a text is split at commas.
    labels : str or iterable of str, optional
        Score these partitions only, by name or pattern, such as ``"leiden_*"``.
    pairs : str or mapping of str to str, optional
        In which embedding a partition was made, see :func:`wellsep.adapters.runs_from_anndata`.
    indices : sequence of str or (str, dict)
        Names from ``wellsep.INDICES``. The first index decides the ranking. The others are
        computed and shown next to it.
    max_spaces : int, optional
        Score the partitions in at most so many spaces, drawn by ``random_state``. All partitions
        are kept. The work grows with the number of spaces, and that of ACE with its square.
    cache : path, optional
        Folder that keeps finished spaces by content; an interrupted call continues from it, and
        only new partitions are scored again.
    """

    indices: Sequence[IndexSpec] | IndexSpec = field(default=("silhouette",), kw_only=False)
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
class Options(ScoreOptions, DrawOptions, AceOptions):
    """The options of :func:`wellsep.judge`.

    Parameters
    ----------
    n_draws : int
        Half-samples for the rank intervals; 0 for none.
    dip : bool
        Test every space for more than one mode, and leave out those in which the test finds one
        only. A space whose test is undefined (p is NaN) is kept. If no test finds more than one
        mode, all are kept. The explanation says which.
    judge : {"auto", "ace", "consensus"}
        Who decides. "ace": the spaces that agree, see :func:`wellsep.ace`. "consensus": the
        partitions vote for each other, see :func:`wellsep.consensus`, and a vote weighs by its
        squared rank by ACE. "auto": consensus where the number of clusters varies (at least three
        different ones among distinct partitions, and their 90 % quantile at least 1.5 times their
        10 % quantile), else ACE. Without any space all votes weigh the same. The other judge is
        shown next to it.
    X : array-like of shape (n, p), optional
        The data the runs were made from. If given, every partition is also scored there, as a
        baseline.
    feature_names : sequence of str, optional
        Names of the columns of ``X``, to say what makes each cluster; by default those of a frame.
    details : bool
        Also keep the silhouette widths and margins of the best partition, and what is in the
        clusters of the five best.
    layout : {None, "auto", "umap", "tsne", "pca"}
        Also lay out at most 1,000 objects in a plane, to draw every clustering in: those of ``X``,
        else of the space that the best partition was made in. "auto": UMAP where it is installed,
        else t-SNE. It takes seconds; None draws principal components of each space instead.
    """

    n_draws: int = _option(100, _count_from(0))
    judge: str = _option("auto", _one_of(JUDGES))
    X: Any = None
    feature_names: Sequence[str] | None = _option(None, _or_none(check_names))
    details: bool = _option(True, check_flag)
    layout: str | None = _option(None, _one_of((None, "auto", *LAYOUTS)))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.index is not None:
            check_choice("index", self.index, self.parsed)
        if self.feature_names is not None:
            if self.X is None:
                raise ValueError(
                    "feature_names must come with X, got no X; pass X=data, or leave them out."
                )
            shape = self.X.shape if hasattr(self.X, "shape") else np.shape(self.X)
            if len(shape) == 2 and len(self.feature_names) != shape[1]:
                raise ValueError(
                    f"feature_names must have one name per column of X ({shape[1]}), got "
                    f"{len(self.feature_names)}."
                )

    def to_plain(self) -> dict[str, Any]:
        """The options that are plain data and that the result depends on; of X that it was given.

        Examples
        --------
        >>> Options(indices="cfq", n_draws=5).to_plain()["indices"]
        ['cfq']
        """
        found = {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if option.init and option.name not in _HOW
        }
        given: Any = self.indices
        one = isinstance(given, str) or is_pair(given)
        found["indices"] = [
            spec if isinstance(spec, str) else [spec[0], {k: _plain(v) for k, v in spec[1].items()}]
            for spec in ([given] if one else given)
        ]
        found["X"] = self.X is not None
        found["feature_names"] = self.feature_names is not None
        if not isinstance(self.random_state, int):
            found["random_state"] = "a generator"
        for name in ("spaces", "labels", "pairs"):
            found[name] = None if found[name] is None else str(found[name])
        return found

    @property
    def deciding(self) -> ParsedIndex:
        """The index that decides, with its parameters."""
        return self.parsed[next(iter(self.parsed)) if self.index is None else self.index]


def _plain(value: Any) -> Any:
    """A parameter as it is, where a record can hold it; else its words."""
    return value if isinstance(value, str | int | float | None) else str(value)


PLAIN = Options().to_plain()  # the defaults
