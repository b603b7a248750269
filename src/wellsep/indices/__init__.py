"""Validity indices, their registry, and scoring many partitions at once."""

from wellsep.indices.c_index import c_index_score
from wellsep.indices.calinski_harabasz import calinski_harabasz_score
from wellsep.indices.ccc import ccc_score
from wellsep.indices.cdbw import cdbw_score
from wellsep.indices.centroid import (
    cfq_clusters,
    cfq_score,
    davies_bouldin_score,
    margins,
    simplified_silhouette_score,
)
from wellsep.indices.dbcv import dbcv_clusters, dbcv_score
from wellsep.indices.disco import disco_samples, disco_score
from wellsep.indices.dunn import dunn_score, generalized_dunn_score
from wellsep.indices.external import (
    ami_score,
    ari_score,
    clustering_accuracy,
    nmi_score,
    purity_score,
)
from wellsep.indices.gap import GapStatistic, gap_statistic
from wellsep.indices.lcd import LocalConnectivity, local_connectivity
from wellsep.indices.registry import INDICES, Index, register_index
from wellsep.indices.s_dbw import s_dbw_score
from wellsep.indices.score_table import PartitionScores
from wellsep.indices.scoring import score_partitions
from wellsep.indices.silhouette import silhouette_samples, silhouette_score

__all__ = [
    "INDICES",
    "GapStatistic",
    "Index",
    "LocalConnectivity",
    "PartitionScores",
    "ami_score",
    "ari_score",
    "c_index_score",
    "calinski_harabasz_score",
    "ccc_score",
    "cdbw_score",
    "cfq_clusters",
    "cfq_score",
    "clustering_accuracy",
    "davies_bouldin_score",
    "dbcv_clusters",
    "dbcv_score",
    "disco_samples",
    "disco_score",
    "dunn_score",
    "gap_statistic",
    "generalized_dunn_score",
    "local_connectivity",
    "margins",
    "nmi_score",
    "purity_score",
    "register_index",
    "s_dbw_score",
    "score_partitions",
    "silhouette_samples",
    "silhouette_score",
    "simplified_silhouette_score",
]
