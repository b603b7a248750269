"""Clusterers on arrays: k-means and its separation-aware kin."""

from __future__ import annotations

from wellsep.cluster.cf_means.centre_search import Parts, search_history
from wellsep.cluster.cf_means.estimator import CFMeans
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.kmedoids import KMedoids
from wellsep.cluster.lof_kmeans import LOFKMeans
from wellsep.cluster.robust_kmeans import RobustKMeans
from wellsep.compute.kmeans.lloyd import LloydResult, lloyd

__all__ = [
    "CFMeans",
    "KMeans",
    "KMedoids",
    "LOFKMeans",
    "LloydResult",
    "Parts",
    "RobustKMeans",
    "lloyd",
    "search_history",
]
