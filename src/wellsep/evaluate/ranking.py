"""Ranking: the partitions in order, with ties, baselines and how sure each place is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._records import Record, freeze

from .explain import explain_ace, ranking_html, ranks
from .result import AceResult
from .sureness import Sureness


@dataclass(frozen=True, eq=False)
class Ranking(Record):
    """Partitions ranked by ACE. Scores are turned so that larger is better.

    Attributes
    ----------
    names : tuple of str, in the order of the runs
    score : ndarray of shape (M,)
    rank : ndarray of shape (M,), 1 = best; ties share the better rank
    index : the index that answered
    baselines : dict of str to (M,) scores
    beside : dict of index name to ACE's scores by that index
    n_clusters, coverage : per partition, where known
    sureness : Sureness or None
    explanation : sentences
    result : AceResult or None
        The answer in full, for the page and the plots.
    """

    names: tuple[str, ...]
    score: np.ndarray
    rank: np.ndarray
    index: str
    baselines: Mapping[str, np.ndarray]
    beside: Mapping[str, np.ndarray] = field(default_factory=dict)
    n_clusters: np.ndarray | None = None
    coverage: np.ndarray | None = None
    sureness: Sureness | None = None
    explanation: tuple[str, ...] = ()
    tie_tolerance: float = 1e-12
    result: AceResult | None = None

    @property
    def best(self) -> str:
        """The best partition; of several that tie, the first by name."""
        return min(self.winners)

    @property
    def winners(self) -> tuple[str, ...]:
        """All partitions on rank 1."""
        return tuple(self.names[i] for i in np.flatnonzero(self.rank == 1))

    @property
    def order(self) -> np.ndarray:
        """Positions, best first; ties by name."""
        by_name = sorted(range(len(self.names)), key=self.names.__getitem__)
        return np.array(sorted(by_name, key=lambda i: self.rank[i]), dtype=np.intp)

    @property
    def interval(self) -> np.ndarray | None:
        """(M, 2) lowest and highest rank over the half-samples, if sureness was asked for."""
        return None if self.sureness is None else self.sureness.interval

    @property
    def probability_best(self) -> np.ndarray | None:
        """(M,) share of the half-samples in which a partition is best."""
        return None if self.sureness is None else self.sureness.probability_best

    def ranks_by(self, name: str) -> np.ndarray:
        """Ranks by a baseline or by another index."""
        scores = {**self.baselines, **self.beside}
        if name not in scores:
            raise ValueError(f"name must be one of {', '.join(scores)}, got {name!r}.")
        return ranks(scores[name], tolerance=self.tie_tolerance)

    def table(self) -> dict[str, list[Any]]:
        """Columns of the ranking, best first."""
        order = self.order
        columns: dict[str, list[Any]] = {
            "rank": self.rank[order].tolist(),
            "partition": [self.names[i] for i in order],
            "score": self.score[order].tolist(),
        }
        if self.sureness is not None:
            low_high = self.sureness.interval[order]
            columns["rank interval"] = [f"{low:g}–{high:g}" for low, high in low_high]
            columns["P(best)"] = self.sureness.probability_best[order].tolist()
        if self.n_clusters is not None:
            columns["clusters"] = self.n_clusters[order].tolist()
        if self.coverage is not None and (self.coverage < 1).any():
            columns["coverage"] = self.coverage[order].tolist()
        for name in (*self.baselines, *self.beside):
            columns[f"rank {name}"] = self.ranks_by(name)[order].tolist()
        return columns

    def to_frame(self) -> Any:
        """A pandas frame, best first."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def explain(self) -> str:
        """Plain sentences: what fell out and why, which group won, and how sure one can be."""
        return "\n".join(self.explanation)

    def _repr_html_(self) -> str:
        return ranking_html(self)


def rank(
    result: AceResult,
    *,
    beside: Sequence[AceResult] = (),
    sureness: Sureness | None = None,
    raw: Any = None,
) -> Ranking:
    """Put the partitions in order.

    Parameters
    ----------
    result : AceResult
        The answer.
    beside : sequence of AceResult
        The same runs by other indices, shown beside it.
    sureness : Sureness, optional
        From :func:`wellsep.sureness`: rank intervals and the probability of being best.
    raw : array-like of shape (M,), optional
        Scores in the input space, larger is better (see :func:`wellsep.raw`).

    Returns
    -------
    Ranking

    Examples
    --------
    >>> import wellsep as ws
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False,
    ...                                partitions=["k2", "k3", "k4"])
    >>> ranking = ws.rank(ws.ace(scores, dip=False))
    >>> ranking.best, ranking.rank.tolist()
    ('k3', [3, 1, 2])
    """
    if not isinstance(result, AceResult):
        raise TypeError(f"result must be an AceResult, got {type(result).__name__}.")
    tolerance = result.options["tie_tolerance"]
    others = {}
    for other in beside:
        if other.partitions != result.partitions:
            raise ValueError("beside must rank the same partitions in the same order.")
        others[other.index] = freeze(other.scores)
    if sureness is not None and sureness.ranks.shape[1] != len(result.partitions):
        raise ValueError(
            f"sureness must be of the same {len(result.partitions)} partitions, "
            f"got {sureness.ranks.shape[1]}."
        )
    baselines = dict(result.baselines)
    if raw is not None:
        baselines["raw"] = freeze(raw, float)
        if baselines["raw"].shape != result.scores.shape:
            raise ValueError(
                f"raw must have one score per partition ({len(result.partitions)}), "
                f"got shape {baselines['raw'].shape}."
            )
        baselines["raw"] = freeze(_worst_for_nan(baselines["raw"]))
    return Ranking(
        names=result.partitions,
        score=freeze(result.scores),
        rank=freeze(ranks(result.scores, tolerance=tolerance)),
        index=result.index,
        baselines=baselines,
        beside=others,
        n_clusters=result.n_clusters,
        coverage=result.coverage,
        sureness=sureness,
        explanation=tuple(explain_ace(result, sureness)),
        tie_tolerance=tolerance,
        result=result,
    )


def _worst_for_nan(scores: np.ndarray) -> np.ndarray:
    finite = np.isfinite(scores)
    return np.where(finite, scores, scores[finite].min(initial=np.inf) if finite.any() else 0.0)
