"""Judgement: scores, answers, confidence and details of some runs in one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._files.records import Result
from wellsep._text.sentences import rows_of
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.certainty.confidence import (
    RankConfidence,
)
from wellsep.evaluate.clusters.agreed import AgreedGroups, Question, find_agreed, read_answers
from wellsep.evaluate.clusters.judged import JudgedClusters, KeptCodes
from wellsep.evaluate.clusters.objects import PartitionDetails
from wellsep.evaluate.embeddings import EmbeddingRanking, embeddings_of
from wellsep.evaluate.options import PLAIN
from wellsep.evaluate.ranking import Ranking
from wellsep.evaluate.scores import Coordinates, Scores
from wellsep.evaluate.structure import Structure
from wellsep.evaluate.vote.answer import Consensus
from wellsep.evaluate.words.first_screen import bar_html, groups_html
from wellsep.evaluate.words.verdict import Verdict, verdict


@dataclass(frozen=True, eq=False)
class Judgement(Result):
    """The ranking of some runs, with scores, certainty and reasons; true labels are not used.

    Attributes
    ----------
    scores : Scores
    answers : dict of judge to dict of index to AceResult or Consensus
        What each judge says by each index: "ace"; "consensus", agreement and the index; "index"
        where that decides alone. Without any embedding "consensus" is agreement by "ari".
    confidence : RankConfidence or None
        Of the deciding answer.
    details : PartitionDetails or None
        The best partition, object by object.
    input_scores : ndarray of shape (M,) or None
        Scores in the data that the runs were made from, by the deciding index.
    notes : sentences on what was made, drawn or could not be ranked
    judge : {"ace", "consensus", "index"}
        The judge that decides.
    asked : {"auto", "ace", "consensus"}
        The judge that was asked for.
    structure : Structure or None
        How much clearer clusterings of the input are than k-means in clouds without clusters; None
        where X was not given.
    params : dict of partition to its parameters, where a run has any
    options : dict
        The options of the call that are plain data, for the record.
    layout : Coordinates or None
        Some objects in a plane, to draw every clustering in; None where none was asked for.
    clusters : JudgedClusters or None
        The clusters of all runs with their support, and what is in those of the five best.
    codes : KeptCodes or None
        Clusters of at most 2,000 objects in all partitions, and of all objects in the contenders,
        for the page; None where they would take more than 50 MB.
    """

    scores: Scores
    answers: Mapping[str, Mapping[str, Any]]
    confidence: RankConfidence | None = None
    details: PartitionDetails | None = None
    input_scores: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    judge: str = "ace"
    asked: str = "auto"
    structure: Structure | None = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: Coordinates | None = None
    clusters: JudgedClusters | None = None
    codes: KeptCodes | None = None

    @property
    def call(self) -> str:
        """The call of :func:`wellsep.judge` that gives this again; empty where it is not known."""
        if not self.options:
            return ""
        given = {k: v for k, v in self.options.items() if k == "random_state" or v != PLAIN[k]}
        if "ace" in given:
            switches = PLAIN["ace"]
            given["ace"] = {k: v for k, v in given["ace"].items() if v != switches[k]}
        # That X was given is known, not what it was.
        shown = ("X=X" if k == "X" else f"{k}={v!r}" for k, v in given.items())
        return f"wellsep.judge({', '.join(('runs', *shown))})"

    @property
    def answer(self) -> AceResult | Consensus:
        """The deciding judge's answer by the deciding index, the first one."""
        return next(iter(self.answers[self.judge].values()))

    @property
    def by_ace(self) -> AceResult | None:
        """ACE's answer by the deciding index, whoever decides; None without any embedding."""
        return next(iter(self.answers.get("ace", {}).values()), None)

    @property
    def vote(self) -> Consensus | None:
        """The consensus by the deciding index, whoever decides."""
        return next(iter(self.answers.get("consensus", {}).values()), None)

    @cached_property
    def ranking(self) -> Ranking:
        """The partitions in the order of the answer."""
        others = list(self.answers.get("ace", {}).values())[1:]
        return Ranking(
            self.answer,
            by_other_index={other.index: other.scores for other in others},
            confidence=self.confidence,
            input_scores=self.input_scores,
            ace=None if self.judge == "ace" else self.by_ace,
            vote=None if self.judge == "consensus" else self.vote,
            params=self.params,
        )

    @cached_property
    def embeddings(self) -> EmbeddingRanking | None:
        """The embeddings, by how far their scores agree with the vote; None without any."""
        if self.by_ace is None:
            return None
        vote = None if self.vote is None else self.vote.agreed[self.vote.classes.of]
        return embeddings_of(self.scores, self.by_ace, vote, self.ranking.score)

    @cached_property
    def agreed(self) -> AgreedGroups:
        """The clusters of the best run that every contender finds, and what is open.

        Contenders are the runs that are first in some half-sample; ``why``: why there are none.
        """
        best = int(self.answer.classes.of[self.answer.order[0]])
        why = self._why_none_agreed()
        if self.codes is None or self.confidence is None or why:
            return AgreedGroups.none(self.ranking.best, why)
        first = np.bincount(self.confidence.first_in_draw, minlength=len(self.answer.classes))
        others = [int(m) for m in self.codes.contenders if m != best]
        chosen = [best, *sorted(others, key=lambda m: -first[m])]
        answer = self.answer
        names = {answer.classes.of[m]: answer.partitions[m] for m in answer.first_of_each}
        return find_agreed(
            np.stack([self.codes.whole[list(self.codes.contenders).index(m)] for m in chosen]),
            first[chosen] / first.sum(),
            self.codes.labels_of(best),
            tuple(names[m] for m in chosen),
        )

    def _why_none_agreed(self) -> str:
        """Why agreed groups cannot be told; empty where they can."""
        if len(self.answer.classes) == 1:
            return "There is one clustering only, so no other run could agree with its groups."
        if self.judge == "index":
            return (
                "Which groups other runs agree on is not reported, because the index decides alone."
            )
        if self.confidence is None:
            return "Which groups other runs agree on was not asked: there were no half-samples."
        best = self.answer.classes.of[self.answer.order[0]]
        if self.codes is None or best not in self.codes.contenders:
            return "Which groups other runs agree on is not known: the clusters were not kept."
        if self.structure is not None and self.structure.is_nothing:
            return "No group counts as agreed, since there is nothing to cluster."
        return ""

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is open about the groups of the best run, see :attr:`agreed`."""
        return self.agreed.questions

    def settle(self, answers: Any = None) -> np.ndarray:
        """Return labels in which the open questions are answered.

        Parameters
        ----------
        answers : mapping, path of a JSON file, or None
            By the id of a question the words of one of its sides, or its number from 0. A question
            without an answer follows the larger share of the half-samples. A file is what the page
            exports: ``{"wellsep": "answers", "run": name, "answers": {id: words}}``.

        Returns
        -------
        ndarray of shape (n,) of str
            The name of each object's group; noise is "-1". They can be saved, scored and described
            as any labels. They are not to be ranked among the runs they were made from.
        """
        if self.agreed.why:
            raise ValueError(f"There are no questions to settle. {self.agreed.why}")
        return self.agreed.settle(read_answers(answers, self.agreed.run))

    def object_columns(self) -> dict[str, list[Any]]:
        """Return the id of each object, and its support in the best run."""
        if self.clusters is None:
            return {}
        described = next(iter(self.clusters.descriptions.values()), None)
        support = self.clusters.object_support
        ids = np.arange(len(support)) if described is None else described.ids
        return {"id": ids.tolist(), "support": support.tolist()}

    @cached_property
    def verdict(self) -> Verdict:
        """What it comes to in words: is there an answer, how certain is it, what to do next."""
        spaces = (*self.scores.spaces, "")  # the last: of a run that was made in none
        made_in = [spaces[i] for i in self.scores.made_in]
        return verdict(self.ranking, self.vote, self.structure, self.agreed, made_in)

    @property
    def why_this_judge(self) -> str:
        """A sentence on who decides, and why."""
        if len(self.ranking.classes) == 1:
            return "No judge had to decide: all runs are the same clustering."
        if self.by_ace is None:
            return "Agreement decides: there are labels only."
        if self.judge == "index":
            return self.ranking.why_index
        index = self.by_ace.index
        asked = "" if self.asked == "auto" else ", as asked"
        if self.judge == "ace":
            return f"ACE decides{asked}."
        return f"Runs with about as many clusters and the {index} decide{asked}."

    @property
    def explanation(self) -> tuple[str, ...]:
        """Paragraphs on who decides and why, and what was done; none that the verdict says."""
        tested = () if self.structure is None else (" ".join(self.structure.sentences()),)
        paragraphs = (self.why_this_judge, *tested, *self.ranking.sentences(), *self.notes)
        verdict = " ".join(self.verdict.sentences())
        return tuple(paragraph for paragraph in paragraphs if paragraph not in verdict)

    def columns(self) -> dict[str, list[Any]]:
        """Return the ranking as named columns, best first."""
        return self.ranking.columns()

    def sentences(self) -> Iterator[str]:
        """Say the verdict, what to do next, how it came about, and which embedding."""
        yield from (*self.verdict.sentences(), *self.explanation)
        yield from () if self.clusters is None else self.clusters.sentences()
        yield from () if self.embeddings is None else self.embeddings.sentences()

    def _printed(self) -> tuple[str, ...]:
        return tuple(self.verdict.sentences())

    def _tables(self) -> tuple[Mapping[str, Any], ...]:
        table = self.ranking.short_columns()
        return ({name: table[name] for name in table if not name.startswith("rank_")},)

    def _picture(self) -> str:
        """The first screen of the page, but for the members of the groups."""
        bar = bar_html(self.ranking.first_places)
        if self.agreed.why:
            return bar
        support = {} if self.clusters is None else self.clusters.best_support
        drawn, own = self.layout or self.scores.plot_coordinates, 0
        if drawn is None or not drawn.planes:
            return bar + groups_html(self.agreed, support, np.empty(0, int), np.empty((0, 2)))
        if self.layout is None:
            own = max(int(self.scores.made_in[self.answer.order[0]]), 0)
        return bar + groups_html(self.agreed, support, drawn.objects, drawn.planes[own])

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as nested data, as ``--json`` prints them."""
        ranking, ace, structure = self.ranking, self.by_ace, self.structure
        found: dict[str, Any] = {
            "verdict": asdict(self.verdict),
            "best": list(ranking.winners),
            "judge": self.judge,
            "index": ranking.index,
            "ranking": rows_of(ranking.columns()),
            "clusters": [] if self.clusters is None else rows_of(self.clusters.columns()),
            "agreed": {"why": self.agreed.why, "clusters": rows_of(self.agreed.columns())},
            "questions": [question.to_plain() for question in self.questions],
            "baselines": {name: scores.tolist() for name, scores in ranking.baselines.items()},
            "explanation": list(self.explanation),
            "embeddings": [] if self.embeddings is None else self.embeddings.to_rows(),
            "structure": None if structure is None else {
                "gain": structure.gain,
                "best": structure.best,
                "silhouettes": structure.to_rows(),
            },
        }  # fmt: skip
        if ace is not None:
            found |= _ace_findings(self.scores, ace)
        return found | {
            "other_indices": {k: list(v) for k, v in ranking.by_other_index.items()},
            "settings": _settings(self.scores),
        }

    def to_frame(self) -> Any:
        """Return the ranking as a pandas frame, best first."""
        return self.ranking.to_frame()


def _ace_findings(scores: Scores, result: AceResult) -> dict[str, Any]:
    """What ACE made of the spaces, as plain nested data."""
    names = result.spaces
    return {
        "winning_spaces": dict(
            zip((names[i] for i in result.winner.spaces), result.winner.weights, strict=True)
        ),
        "won_by": result.winner.won_by,
        "groups": [[names[i] for i in group] for group in result.groups.members],
        "outliers": [names[i] for i in result.groups.outliers],
        "dropped": [{"space": d.space, "step": d.step, "why": d.reason} for d in result.dropped],
        "undefined": [{"space": s, "partition": p, "why": why} for s, p, why in result.undefined],
        "dip": _dip_table(scores, result),
        "agreement": None if result.groups.agreement is None else {
            "spaces": [names[i] for i in result.screen.retained],
            "correlation": result.groups.agreement,
            "pvalue": result.groups.pvalue,
            "adjusted": result.groups.adjusted,
            "edges": result.groups.edges,
        },
        "options": {"dip": result.dip} | {
            k: v for k, v in asdict(result.options).items() if k not in ("projection", "convention")
        },
    }  # fmt: skip


def _settings(scores: Scores) -> dict[str, Any]:
    """What the values depend on; the options say whether there was a dip test."""
    settings = {} if scores.settings is None else asdict(scores.settings)
    if not settings.pop("dip", True):
        settings["projection"] = None
    return {"indices": dict(scores.index_specs), **settings, "version": scores.version}


def _dip_table(scores: Scores, result: AceResult) -> list[dict[str, Any]]:
    if scores.dip is None or result.screen.adjusted is None:
        return []
    return rows_of({
        "space": scores.spaces,
        "statistic": scores.dip.statistic.tolist(),
        "pvalue": scores.dip.pvalue.tolist(),
        "adjusted": result.screen.adjusted.tolist(),
        "note": scores.dip.notes,
    })  # fmt: skip
