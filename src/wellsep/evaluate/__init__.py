"""Judges finished results and never fits: scores, ACE, the ranking and how sure it is."""

from .ace import ace
from .agreement import Agreement, agreement
from .baselines import paired, pooled, raw
from .choice import Choice, describe_choice
from .judgement import Judgement, judge
from .ranking import Ranking, rank
from .result import AceResult, Dropped, Subgroup
from .scores import Coordinates, Dip, NothingToRank, Scores
from .scoring import score_runs
from .sureness import Sureness, sureness

__all__ = [
    "AceResult",
    "Agreement",
    "Choice",
    "Coordinates",
    "Dip",
    "Dropped",
    "Judgement",
    "NothingToRank",
    "Ranking",
    "Scores",
    "Subgroup",
    "Sureness",
    "ace",
    "agreement",
    "describe_choice",
    "judge",
    "paired",
    "pooled",
    "rank",
    "raw",
    "score_runs",
    "sureness",
]
