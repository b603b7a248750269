"""Evaluate finished results, never fit: scores, ACE, the ranking and how certain it is."""

from .ace import ace
from .agreement import Agreement, agreement
from .baselines import input_scores, mean_scores, own_space_scores
from .details import PartitionDetails, partition_details
from .judgement import Judgement, judge
from .ranking import Ranking, rank
from .result import AceResult, Dropped, Subgroup
from .scores import Coordinates, Dip, NothingToRank, Scores
from .scoring import score_runs
from .sureness import RankConfidence, rank_confidence

__all__ = [
    "AceResult",
    "Agreement",
    "Coordinates",
    "Dip",
    "Dropped",
    "Judgement",
    "NothingToRank",
    "PartitionDetails",
    "RankConfidence",
    "Ranking",
    "Scores",
    "Subgroup",
    "ace",
    "agreement",
    "input_scores",
    "judge",
    "mean_scores",
    "own_space_scores",
    "partition_details",
    "rank",
    "rank_confidence",
    "score_runs",
]
