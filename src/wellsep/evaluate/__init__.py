"""Evaluate finished results, never fit: scores, ACE, votes, the ranking, how certain it is."""

from wellsep.evaluate.adaptive import ace
from wellsep.evaluate.baselines import input_scores, mean_scores, own_space_scores
from wellsep.evaluate.combined import ConsensusPartition
from wellsep.evaluate.combining import consensus_partition
from wellsep.evaluate.confidence import RankConfidence, rank_confidence
from wellsep.evaluate.contents import describe_clusters
from wellsep.evaluate.contents_record import ClusterDescription
from wellsep.evaluate.details import PartitionDetails, partition_details
from wellsep.evaluate.embeddings import EmbeddingRanking, rank_embeddings
from wellsep.evaluate.judgement import Judgement
from wellsep.evaluate.judging import judge
from wellsep.evaluate.ranking import Ranking, rank
from wellsep.evaluate.resolutions import resolution_tree
from wellsep.evaluate.result import AceResult, Dropped, Subgroup
from wellsep.evaluate.scores import Coordinates, Dip, NothingToRank, Scores, Spectrum
from wellsep.evaluate.scoring import score_runs
from wellsep.evaluate.structure import Structure
from wellsep.evaluate.tree_record import ResolutionTree
from wellsep.evaluate.truth import Agreement, agreement
from wellsep.evaluate.verdict import Verdict
from wellsep.evaluate.voting import consensus
from wellsep.evaluate.voting_result import Consensus

__all__ = [
    "AceResult",
    "Agreement",
    "ClusterDescription",
    "Consensus",
    "ConsensusPartition",
    "Coordinates",
    "Dip",
    "Dropped",
    "EmbeddingRanking",
    "Judgement",
    "NothingToRank",
    "PartitionDetails",
    "RankConfidence",
    "Ranking",
    "ResolutionTree",
    "Scores",
    "Spectrum",
    "Structure",
    "Subgroup",
    "Verdict",
    "ace",
    "agreement",
    "consensus",
    "consensus_partition",
    "describe_clusters",
    "input_scores",
    "judge",
    "mean_scores",
    "own_space_scores",
    "partition_details",
    "rank",
    "rank_confidence",
    "rank_embeddings",
    "resolution_tree",
    "score_runs",
]
