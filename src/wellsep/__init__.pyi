"""The public names as type checkers see them; a test holds them to those of ``__init__.py``."""

from wellsep import adapters as adapters
from wellsep import cluster as cluster
from wellsep import deep as deep
from wellsep import evaluate as evaluate
from wellsep import plot as plot
from wellsep import records as records
from wellsep import spaces as spaces
from wellsep import testing as testing
from wellsep._checks.arrays import UndefinedIndex
from wellsep.cluster import CFMeans, KMeans, KMedoids, LOFKMeans, RobustKMeans
from wellsep.cluster.grid_search import ClusterSearch
from wellsep.cluster.k_choice.choose import choose_k
from wellsep.cluster.membership import membership_report
from wellsep.cluster.resampling.measure import stability
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.metrics.dc_distance import dc_metric
from wellsep.datasets import list_datasets, load_dataset
from wellsep.distances.matrix import Distances
from wellsep.evaluate import (
    Ace,
    Scores,
    ace,
    agreement,
    consensus,
    consensus_partition,
    describe_clusters,
    judge,
    resolution_tree,
    score_runs,
)
from wellsep.explorer import ClusterExplorer, explore
from wellsep.indices import (
    INDICES,
    ami_score,
    ari_score,
    c_index_score,
    calinski_harabasz_score,
    ccc_score,
    cdbw_score,
    cfq_clusters,
    cfq_score,
    clustering_accuracy,
    davies_bouldin_score,
    dbcv_clusters,
    dbcv_score,
    disco_samples,
    disco_score,
    dunn_score,
    gap_statistic,
    generalized_dunn_score,
    local_connectivity,
    margins,
    nmi_score,
    purity_score,
    register_index,
    s_dbw_score,
    score_partitions,
    silhouette_samples,
    silhouette_score,
    simplified_silhouette_score,
)
from wellsep.indices.silhouette_sampling import silhouette_estimate
from wellsep.records import load
from wellsep.report import render_report
from wellsep.runs import Run, Runs, load_runs, save_run
from wellsep.runs.tables_on_disk import open_chunked
from wellsep.spaces import (
    dip_test,
    multimodality,
)

__all__ = [
    "INDICES",
    "Ace",
    "CFMeans",
    "ClusterExplorer",
    "ClusterSearch",
    "Distances",
    "KMeans",
    "KMedoids",
    "LOFKMeans",
    "MixedTable",
    "RobustKMeans",
    "Run",
    "Runs",
    "Scores",
    "UndefinedIndex",
    "__version__",
    "ace",
    "agreement",
    "ami_score",
    "ari_score",
    "c_index_score",
    "calinski_harabasz_score",
    "ccc_score",
    "cdbw_score",
    "cfq_clusters",
    "cfq_score",
    "choose_k",
    "clustering_accuracy",
    "consensus",
    "consensus_partition",
    "davies_bouldin_score",
    "dbcv_clusters",
    "dbcv_score",
    "dc_metric",
    "describe_clusters",
    "dip_test",
    "disco_samples",
    "disco_score",
    "dunn_score",
    "explore",
    "gap_statistic",
    "generalized_dunn_score",
    "judge",
    "list_datasets",
    "load",
    "load_dataset",
    "load_runs",
    "local_connectivity",
    "margins",
    "membership_report",
    "multimodality",
    "nmi_score",
    "open_chunked",
    "purity_score",
    "register_index",
    "render_report",
    "resolution_tree",
    "s_dbw_score",
    "save_run",
    "score_partitions",
    "score_runs",
    "silhouette_estimate",
    "silhouette_samples",
    "silhouette_score",
    "simplified_silhouette_score",
    "stability",
]

__version__: str
