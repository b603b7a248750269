"""Evaluate finished results, never fit: scores, ACE, votes, the ranking, how certain it is."""

from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.steps import ace
from wellsep.evaluate.certainty.confidence import RankConfidence, rank_confidence
from wellsep.evaluate.clusters.agreed import AgreedGroups, Question
from wellsep.evaluate.clusters.describing import describe_clusters
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.judged import JudgedClusters
from wellsep.evaluate.clusters.objects import PartitionDetails
from wellsep.evaluate.clusters.tree import ResolutionTree, resolution_tree
from wellsep.evaluate.embeddings import EmbeddingRanking
from wellsep.evaluate.judgement import Judgement
from wellsep.evaluate.judging import judge
from wellsep.evaluate.options import Ace
from wellsep.evaluate.ranking import Ranking, rank
from wellsep.evaluate.scores import NothingToRank, Scores
from wellsep.evaluate.scoring.spaces import input_scores, score_runs
from wellsep.evaluate.truth import Agreement, agreement
from wellsep.evaluate.vote.answer import Consensus, consensus
from wellsep.evaluate.vote.merging import ConsensusPartition, consensus_partition

__all__ = [
    "Ace",
    "AceResult",
    "AgreedGroups",
    "Agreement",
    "ClusterDescription",
    "Consensus",
    "ConsensusPartition",
    "EmbeddingRanking",
    "JudgedClusters",
    "Judgement",
    "NothingToRank",
    "PartitionDetails",
    "Question",
    "RankConfidence",
    "Ranking",
    "ResolutionTree",
    "Scores",
    "ace",
    "agreement",
    "consensus",
    "consensus_partition",
    "describe_clusters",
    "input_scores",
    "judge",
    "rank",
    "rank_confidence",
    "resolution_tree",
    "score_runs",
]
