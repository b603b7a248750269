"""Which embedding? The spaces ranked by how they agree with the vote of the clusterings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._files.records import Result, freeze
from wellsep._text.sentences import count, listing, rows_of
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ranks import rank_correlation, ranks
from wellsep.evaluate.scores import Scores
from wellsep.partitions import Classes
from wellsep.runs.folder_names import best_first


@dataclass(frozen=True, eq=False)
class EmbeddingRanking(Result):
    """The embeddings of a judgement, ranked by how far their scores agree with the vote.

    An embedding has a score for every clustering. The clusterings vote for each other without any
    embedding (:func:`wellsep.consensus`). Where there is no vote, or all votes are the same, the
    ranking that was decided takes its place. Embeddings that agree can be wrong together. Copies
    are counted once.

    Attributes
    ----------
    embeddings : tuple of str
        In the order of the runs.
    copies : tuple of tuples of str
        Embeddings that were left out because they equal this one.
    index, correlation : str
        The validity index whose scores are compared, and the rank correlation.
    n_objects : int
    dims : ndarray of shape (L,)
        Columns of each; 0 where it is given by distances, -1 where unknown.
    agreement : ndarray of shape (L,)
        Rank correlation of its scores with the vote of the clusterings, see
        :func:`wellsep.consensus`; NaN where either is constant. It decides the order.
    agreement_ranking : ndarray of shape (L,)
        The same with the ranking of the clusterings that was decided. An embedding that decides
        this ranking agrees with it by itself.
    admitted : ndarray of shape (L,), bool
        Whether the dip test, and scores that differ, let it take part in ACE.
    why : tuple of str
        Why it is admitted or not.
    dip, dip_pvalue, dip_adjusted : ndarray of shape (L,)
        Dip statistic, p-value and Holm's; NaN where the test is undefined or was not run.
    group : ndarray of shape (L,)
        Its group in ACE, from 1, the one with the best mean score first; 0 for none.
    weight : ndarray of shape (L,)
        Its share in ACE's answer.
    favourite : tuple of str
        The clustering that it scores best; of several the first; "" where no score is defined.
    favourite_score : ndarray of shape (L,)
        The score there, with the index's own sign.
    favourite_coverage : ndarray of shape (L,)
        Share of the objects that it puts into clusters; NaN where unknown.
    own_runs : ndarray of shape (L,)
        How many clusterings were made in it, equal ones counted once.
    own_vote : ndarray of shape (L,)
        Mean vote for these clusterings; NaN without any.
    rankme : ndarray of shape (L,)
        RankMe: how many directions the embedding uses; NaN where unknown.
    alpha_req : ndarray of shape (L,)
        α-ReQ: the power by which the variance of its directions falls; NaN where unknown.
    rank : ndarray of shape (L,)
        1 = the best; ties share the better rank.

    References
    ----------
    RankMe: Garrido, Balestriero, Najman & LeCun (2023), ICML. α-ReQ: Agrawal, Mondal, Ghosh &
    Richards (2022), NeurIPS.
    """

    embeddings: tuple[str, ...]
    copies: tuple[tuple[str, ...], ...]
    index: str
    correlation: str
    n_objects: int
    dims: np.ndarray
    agreement: np.ndarray
    agreement_ranking: np.ndarray
    admitted: np.ndarray
    why: tuple[str, ...]
    dip: np.ndarray
    dip_pvalue: np.ndarray
    dip_adjusted: np.ndarray
    group: np.ndarray
    weight: np.ndarray
    favourite: tuple[str, ...]
    favourite_score: np.ndarray
    favourite_coverage: np.ndarray
    own_runs: np.ndarray
    own_vote: np.ndarray
    rankme: np.ndarray
    alpha_req: np.ndarray

    @property
    def deciding(self) -> np.ndarray:
        """(L,) what decides the order: agreement with the vote, else with the ranking."""
        voted = np.isfinite(self.agreement).any()
        return self.agreement if voted else self.agreement_ranking

    @cached_property
    def rank(self) -> np.ndarray:
        """(L,) ranks, 1 = best; an embedding without any agreement comes last."""
        return freeze(ranks(np.where(np.isnan(self.deciding), -2.0, self.deciding)))

    @property
    def order(self) -> np.ndarray:
        """Positions, best first; ties by name."""
        return best_first(self.rank, self.embeddings)

    @property
    def best(self) -> str:
        """The best embedding; of several that tie, the first by name."""
        return self.embeddings[int(self.order[0])]

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as named columns, best first."""
        order = self.order
        columns: dict[str, Any] = {
            "rank": self.rank,
            "embedding": self.embeddings,
            "agreement": self.agreement,
            "favourite": self.favourite,
            "score": self.favourite_score,
            "coverage": self.favourite_coverage,
            "admitted": self.admitted,
            "weight": self.weight,
            "own_vote": self.own_vote,
            "dims": [None if d < 0 else int(d) or "distances" for d in self.dims],
            "rankme": self.rankme,
            "alpha_req": self.alpha_req,
            "agreement_ranking": self.agreement_ranking,
            "group": self.group,
            "own_runs": self.own_runs,
            "dip": self.dip,
            "dip_p": self.dip_pvalue,
            "dip_adjusted": self.dip_adjusted,
            "objects": [self.n_objects] * len(order),
            "copies": [len(names) for names in self.copies],
            "why": self.why,
        }
        if not (self.favourite_coverage < 1).any():
            del columns["coverage"]
        if not np.isfinite(self.own_vote).any():
            del columns["own_vote"], columns["own_runs"]
        return {name: np.array(v, dtype=object)[order].tolist() for name, v in columns.items()}

    def sentences(self) -> Iterator[str]:
        """Say which embedding agrees best with the vote, and which least."""
        deciding = self.deciding
        order = [i for i in self.order if np.isfinite(deciding[i])]
        n = len(self.embeddings)
        if n < 2 or not order:
            return
        judge = "their vote" if deciding is self.agreement else "the ranking"
        first = [i for i in order if self.rank[i] == 1]
        names = listing((repr(self.embeddings[i]) for i in first), most=3)
        text = (
            f"Of {count(n, 'embedding')}, {names} {'ranks' if len(first) == 1 else 'rank'} the "
            f"clusterings most as {judge} does "
            f"({self.correlation.capitalize()} {deciding[first[0]]:z.2f})"
        )
        if (last := order[-1]) not in first:
            text += f", {self.embeddings[last]!r} least ({deciding[last]:z.2f})"
        heavy = int(self.weight.argmax())
        if self.weight[heavy] > 0 and 2 * self.rank[heavy] > n + 1:
            text += (
                f"; {self.embeddings[heavy]!r}, which weighs most in ACE's answer, has rank "
                f"{self.rank[heavy]}"
            )
        yield f"{text}."

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one mapping per embedding, best first, copies by name."""
        return rows_of(self.columns() | {"copies": [list(self.copies[i]) for i in self.order]})


def embeddings_of(
    scores: Scores, result: AceResult, vote: np.ndarray | None, decided: np.ndarray
) -> EmbeddingRanking:
    """Rank the embeddings by how far their scores agree with a vote, both (M,), or the ranking."""
    first, kind = result.classes.first, result.options.correlation
    matrix = scores.oriented(result.index)[:, first]
    votes = np.full(len(first), np.nan) if vote is None else vote[first]
    known = np.isfinite(matrix)
    liked = np.where(known, matrix, -np.inf).argmax(axis=1)
    rows = np.arange(len(scores.spaces))
    liked_scores = scores.values[result.index][:, first][rows, liked]
    own_runs, own_vote = _own_votes(scores, result.classes, vote)
    dip, spectrum = scores.dip, scores.spectrum
    unknown = np.full(len(rows), np.nan)
    admitted, why = _admissions(scores, result)
    weight = np.zeros(len(rows))
    weight[list(result.winner.spaces)] = result.winner.weights
    return EmbeddingRanking(
        embeddings=scores.spaces,
        copies=tuple(
            tuple(copy for copy, first_one in scores.copies.items() if first_one == name)
            for name in scores.spaces
        ),
        index=result.index,
        correlation=kind,
        n_objects=scores.n_objects,
        dims=freeze(np.full(len(rows), -1) if scores.dims is None else scores.dims),
        agreement=freeze([rank_correlation(kind, row, votes) for row in matrix]),
        agreement_ranking=freeze([rank_correlation(kind, row, decided[first]) for row in matrix]),
        admitted=freeze(admitted),
        why=why,
        dip=freeze(unknown if dip is None else dip.statistic),
        dip_pvalue=freeze(unknown if dip is None else dip.pvalue),
        dip_adjusted=freeze(unknown if result.screen.adjusted is None else result.screen.adjusted),
        group=freeze(result.group_of),
        weight=freeze(weight),
        favourite=tuple(
            scores.partitions[first[m]] if known[i].any() else "" for i, m in enumerate(liked)
        ),
        favourite_score=freeze(np.where(known.any(axis=1), liked_scores, np.nan)),
        favourite_coverage=freeze(
            unknown if scores.coverage is None else scores.coverage[first[liked]]
        ),
        own_runs=freeze(own_runs),
        own_vote=freeze(own_vote),
        rankme=freeze(unknown if spectrum is None else spectrum.rankme),
        alpha_req=freeze(unknown if spectrum is None else spectrum.alpha_req),
    )


def _admissions(scores: Scores, result: AceResult) -> tuple[np.ndarray, tuple[str, ...]]:
    """(L,) whether each space takes part in ACE, and why."""
    out = {d.space: d.reason for d in result.dropped if d.step in ("dip", "constant")}
    adjusted = result.screen.adjusted
    why = []
    for i, name in enumerate(scores.spaces):
        if name in out:
            why.append(out[name])
        elif adjusted is None:
            why.append("the dip test was not run")
        elif np.isnan(adjusted[i]):
            why.append("the dip test is undefined, and the embedding stays")
        elif result.screen.none_passed:
            why.append("no embedding passes the dip test, so all stay")
        else:
            why.append(f"the dip test finds more than one mode (adjusted p = {adjusted[i]:.3g})")
    return np.array([name not in out for name in scores.spaces]), tuple(why)


def _own_votes(
    scores: Scores, classes: Classes, vote: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(L,) distinct clusterings that were made in each space, and their mean vote."""
    made = scores.made_in >= 0
    pairs = np.unique(np.stack([scores.made_in[made], classes.of[made]]), axis=1)
    runs = np.bincount(pairs[0], minlength=len(scores.spaces))
    if vote is None:
        return runs, np.full(len(runs), np.nan)
    total = np.bincount(pairs[0], vote[classes.first][pairs[1]], len(scores.spaces))
    return runs, np.divide(total, runs, out=np.full(len(runs), np.nan), where=runs > 0)
