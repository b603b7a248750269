"""wellsep: choose, build and trust a clustering.

Public names are resolved on first use, so that ``import wellsep`` stays light.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# public name -> module that owns it
_HOME = {
    # one partition, one index
    "silhouette_score": "indices",
    "silhouette_samples": "indices",
    "silhouette_estimate": "indices.silhouette_sampling",
    "simplified_silhouette_score": "indices",
    "calinski_harabasz_score": "indices",
    "davies_bouldin_score": "indices",
    "dunn_score": "indices",
    "generalized_dunn_score": "indices",
    "c_index_score": "indices",
    "s_dbw_score": "indices",
    "cdbw_score": "indices",
    "ccc_score": "indices",
    "dbcv_score": "indices",
    "dbcv_clusters": "indices",
    "disco_score": "indices",
    "disco_samples": "indices",
    "gap_statistic": "indices",
    "cfq_score": "indices",
    "cfq_clusters": "indices",
    "margins": "indices",
    "nmi_score": "indices",
    "clustering_accuracy": "indices",
    "purity_score": "indices",
    "ari_score": "indices",
    "ami_score": "indices",
    # many partitions, many indices
    "score_partitions": "indices",
    "INDICES": "indices",
    "register_index": "indices",
    "UndefinedIndex": "_checks.arrays",
    # spaces without coordinates
    "Distances": "distances.matrix",
    "MixedTable": "compute.data.mixed_table",
    "dc_metric": "compute.metrics.dc_distance",
    # local connectivity
    "local_connectivity": "indices",
    # clusterers
    "CFMeans": "cluster",
    "KMeans": "cluster",
    "KMedoids": "cluster",
    "LOFKMeans": "cluster",
    "RobustKMeans": "cluster",
    "choose_k": "cluster.k_choice.choose",
    "ClusterSearch": "cluster.grid_search",
    "stability": "cluster.resampling.measure",
    "membership_report": "cluster.membership",
    # runs
    "Run": "runs",
    "Runs": "runs",
    "load_runs": "runs",
    "open_chunked": "runs.tables_on_disk",
    "save_run": "runs",
    # rank runs
    "judge": "evaluate",
    "score_runs": "evaluate",
    "Scores": "evaluate",
    "ace": "evaluate",
    "Ace": "evaluate",
    "consensus": "evaluate",
    "consensus_partition": "evaluate",
    "agreement": "evaluate",
    "resolution_tree": "evaluate",
    # from data alone
    "explore": "explorer",
    "ClusterExplorer": "explorer",
    # what is in a cluster
    "describe_clusters": "evaluate",
    # saved results
    "load": "records",
    # report page
    "render_report": "report",
    # tests of a space
    "dip_test": "spaces",
    "multimodality": "spaces",
    # data
    "load_dataset": "datasets",
    "list_datasets": "datasets",
}

# packages and modules that `import wellsep` alone makes usable, as in wellsep.plot.ScatterDisplay
_ROOMS = ("adapters", "cluster", "deep", "evaluate", "plot", "records", "spaces", "testing")

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"wellsep.{name}")
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'wellsep' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(f"wellsep.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
