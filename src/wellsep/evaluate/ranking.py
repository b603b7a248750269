"""Ranking: the partitions in order, with ties, baselines and how certain each place is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_choice, check_numbers
from wellsep._checks.values import check_items, check_kind
from wellsep._files.records import Result, freeze
from wellsep._text.sentences import cell, need_pandas
from wellsep.evaluate.ace_method.answer import AceResult, explain_ace, explain_undefined
from wellsep.evaluate.answer import describe_coverage
from wellsep.evaluate.certainty.confidence import RankConfidence
from wellsep.evaluate.vote.answer import Consensus
from wellsep.evaluate.vote.rule import FEWEST
from wellsep.partitions import Classes

LEAST_SHARE = 0.02  # of the half-samples, for a place of its own among the first


@dataclass(frozen=True, eq=False)
class Ranking(Result):
    """Partitions ranked by ACE, or by a vote. Scores are turned so that larger is better.

    Attributes
    ----------
    result : AceResult or Consensus
        The answer that ranks; all that is not listed here is derived from it.
    by_other_index : dict of index name to ACE's scores by that index
    confidence : RankConfidence or None
    input_scores : ndarray of shape (M,) or None
        Scores in the data that the runs were made from.
    ace : AceResult or None
        ACE's answer beside a vote or an index that ranks.
    vote : Consensus or None
        The vote beside ACE or an index that ranks.
    params : dict of partition to its parameters, where a run has any
    """

    result: AceResult | Consensus
    by_other_index: Mapping[str, np.ndarray] = field(default_factory=dict)
    confidence: RankConfidence | None = None
    input_scores: np.ndarray | None = None
    ace: AceResult | None = None
    vote: Consensus | None = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The partitions, in the order of the runs."""
        return self.result.partitions

    @property
    def judge(self) -> str:
        """Which method decides: "ace", "consensus" or "index"."""
        return self.result.judge

    @property
    def by_ace(self) -> AceResult | None:
        """ACE's answer, whoever decides; None where there was no embedding."""
        return self.result if isinstance(self.result, AceResult) else self.ace

    @property
    def title(self) -> str:
        """Which method decides, in words."""
        if isinstance(self.result, AceResult):
            return f"ACE ({self.index})"
        if self.result.by_index:
            return f"mean {self.index}"
        return f"agreement and {self.index}" if self.result.index else "agreement"

    @property
    def why_index(self) -> str:
        """Why the index decides alone; empty where it does not."""
        if self.judge != "index":
            return ""
        n = len(self.classes)
        why = "all runs come from one embedding, where agreement is no evidence of its own"
        if n < FEWEST:
            why = f"only {n} clusterings differ"
        return f"The {self.index}, its mean over the embeddings, decides: {why}."

    @property
    def index(self) -> str:
        """The index by which partitions are scored; the measure of agreement without embeddings."""
        if isinstance(self.result, AceResult):
            return self.result.index
        return self.result.index or self.result.options.agreement

    @property
    def score(self) -> np.ndarray:
        """(M,) scores, larger is better; NaN where a partition has none, which is ranked last."""
        return self.result.defined_scores

    @property
    def n_clusters(self) -> np.ndarray | None:
        """(M,) numbers of clusters, where known."""
        return self.result.n_clusters

    @property
    def coverage(self) -> np.ndarray | None:
        """(M,) share of the objects that a partition puts into clusters, where known."""
        return self.result.coverage

    @property
    def classes(self) -> Classes:
        """Which partitions are equal."""
        return self.result.classes

    @property
    def rank(self) -> np.ndarray:
        """(M,) ranks among the distinct partitions, 1 = best; ties share the better rank."""
        return self.result.rank

    @cached_property
    def baselines(self) -> Mapping[str, np.ndarray]:
        """Name to (M,) scores: the other judge, own_space, mean_admitted, mean_all, input."""
        found = {}
        if self.vote is not None:
            found["consensus"] = self.vote.scores
        elif self.ace is not None:
            found["ace"] = self.ace.defined_scores
        if self.by_ace is not None:
            found |= self.by_ace.defined_baselines
        if self.input_scores is not None:
            found["input"] = freeze(self.input_scores)
        return found

    @property
    def shown_baselines(self) -> tuple[str, ...]:
        """The other judge, and the first two of input, own_space and mean_all beside the judge."""
        known = self.baselines
        judges = [name for name in ("ace", "consensus") if name in known]
        decided = "mean_all" if self.judge == "index" else None
        simple = [
            name for name in ("input", "own_space", "mean_all") if name in known and name != decided
        ]
        return (*judges, *simple[:2])

    @property
    def best(self) -> str:
        """The best partition; of several that tie, the first by name."""
        return self.result.best

    @property
    def winners(self) -> tuple[str, ...]:
        """All partitions on rank 1, by name."""
        return self.result.winners

    @property
    def order(self) -> np.ndarray:
        """Positions, best first; ties by name."""
        return self.result.order

    @property
    def first_of_each(self) -> np.ndarray:
        """(D,) positions of the distinct partitions, best first; of equal ones the first."""
        return self.result.first_of_each

    def ranks_by(self, name: str) -> np.ndarray:
        """Ranks by a baseline or by another index."""
        scores = {**self.baselines, **self.by_other_index}
        check_choice("name", name, scores)
        return self.result.ranks_by(scores[name])

    def columns(self) -> dict[str, list[Any]]:
        """Return the ranking as named columns, best first."""
        order = self.order
        columns: dict[str, list[Any]] = {
            "rank": self.rank[order].tolist(),
            "partition": [self.names[i] for i in order],
        }
        if self.n_clusters is not None:
            columns["clusters"] = self.n_clusters[order].tolist()
        columns["score"] = self.score[order].tolist()
        if self.coverage is not None and (self.coverage < 1).any():
            columns["coverage"] = self.coverage[order].tolist()
        if self.confidence is not None:
            low, high = self.confidence.interval[order].T.astype(int).tolist()
            columns["rank_low"], columns["rank_high"] = low, high
            columns["first_in"] = self.confidence.first_in[order].tolist()
        for name in (*self.shown_baselines, *self.by_other_index):
            columns[f"rank_{name}"] = self.ranks_by(name)[order].tolist()
        if any(self.params.values()):
            columns["params"] = [dict(self.params.get(self.names[i], {})) for i in order]
        return columns

    @property
    def first_places(self) -> list[tuple[str, float]]:
        """(name, share of the half-samples) of the distinct runs that come first, most first."""
        first = self.first_of_each
        if self.confidence is None or len(first) < 2:
            return []
        shares = np.asarray(self.confidence.first_in)[first]
        order = np.argsort(-shares, kind="stable")
        bar = [(self.names[first[i]], float(shares[i])) for i in order if shares[i] >= LEAST_SHARE]
        rest = float(shares.sum()) - sum(share for _, share in bar)
        return [*bar, *([("others", rest)] if rest >= 0.005 else [])]

    def short_columns(self) -> dict[str, list[Any]]:
        """Return the columns for readers: three digits, ``ranks`` (1–3), ``first in`` (50%)."""
        short: dict[str, list[Any]] = {}
        table = self.columns()
        low, high = table.pop("rank_low", []), table.pop("rank_high", [])
        first_in = table.pop("first_in", [])
        for name, values in table.items():
            short[name] = values
            if name == "score":
                short[name] = [cell(score, 3) for score in values]
                if first_in:
                    short["ranks"] = [f"{a}–{b}" for a, b in zip(low, high, strict=True)]
                    short["first in"] = [f"{share:.0%}" for share in first_in]
        return short

    def to_frame(self) -> Any:
        """Return a pandas frame, best first; each parameter is a column ``params_…``."""
        columns = self.columns()
        rows = columns.pop("params", [])
        for name in dict.fromkeys(name for row in rows for name in row):
            columns[f"params_{name}"] = [row.get(name) for row in rows]
        return need_pandas().DataFrame(columns)

    def sentences(self) -> Iterator[str]:
        """Say which spaces were left out and why, which group decided, how certain it is."""
        answer, sure = self.result, self.confidence
        shown = {name: self.baselines[name] for name in self.shown_baselines}
        missing = "How often each run comes first was not computed (--draws)."
        if isinstance(answer, AceResult):
            told = (missing,) if sure is None else sure.beside(answer)
            yield from explain_ace(answer, shown, told)
            return
        yield from answer.sentences()
        if self.ace is not None and self.ace.undefined:
            yield from explain_undefined(self.ace)
        best = answer.order[0]
        if answer.coverage is not None and answer.coverage[best] < 1 and self.ace is not None:
            yield describe_coverage(float(answer.coverage[best]), self.ace.noise)
        if answer.n_distinct == 1:  # nothing was ranked
            return
        judge = "the index" if answer.by_index else "the vote"
        if compared := " ".join(answer.compare(shown, judge)):
            yield compared
        if sure is None:
            yield missing
        elif not answer.by_index and answer.n_distinct >= FEWEST:
            yield " ".join(("How stable:", *sure.beside(answer)))

    def _printed(self) -> tuple[str, ...]:
        return self.result._printed()

    @property
    def heading(self) -> str:
        """What stands above the table in a notebook."""
        return f"Ranking by {self.title}"


def rank(
    result: AceResult | Consensus,
    *,
    others: Sequence[AceResult] = (),
    confidence: RankConfidence | None = None,
    input_scores: Any = None,
) -> Ranking:
    """Rank the partitions by ACE or by a vote, next to simpler rankings.

    Parameters
    ----------
    result : AceResult or Consensus
        The answer, from :func:`wellsep.ace` or :func:`wellsep.consensus`.
    others : sequence of AceResult
        The same runs by other indices, shown next to it.
    confidence : RankConfidence, optional
        From :func:`wellsep.evaluate.rank_confidence`: rank intervals, shares of first ranks.
    input_scores : array-like of shape (M,), optional
        From :func:`wellsep.evaluate.input_scores`: scores in the data that the runs were made from.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.evaluate import rank
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False,
    ...                                partitions=["k2", "k3", "k4"])
    >>> ranking = rank(ws.ace(scores, dip=False))
    >>> ranking.best, ranking.rank.tolist()
    ('k3', [3, 1, 2])
    """
    if not isinstance(result, AceResult | Consensus):
        raise TypeError(f"result must be an AceResult or a Consensus, got {type(result).__name__}.")
    others = check_items("others", others, "results of ace")
    for other in others:
        check_kind("others", other, AceResult, "make one with ace")
        if other.partitions != result.partitions:
            raise ValueError("others must rank the same clusterings in the same order.")
    n = len(result.partitions)
    if confidence is not None:
        check_kind("confidence", confidence, RankConfidence, "make one with rank_confidence")
        if confidence.ranks.shape[1] != n:
            raise ValueError(
                f"confidence must be of the same {n} clusterings, got {confidence.ranks.shape[1]}."
            )
    if input_scores is not None:
        input_scores = freeze(check_numbers("input_scores", input_scores))
        if input_scores.shape != (n,):
            raise ValueError(
                f"input_scores must have one score per clustering ({n}), "
                f"got shape {input_scores.shape}."
            )
    by_index = {other.index: other.scores for other in others}
    return Ranking(result, by_index, confidence, input_scores)
