"""Clusterers on arrays: k-means and its separation-aware kin."""

from __future__ import annotations

from wellsep.cluster.cfmeans import CFMeans
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.local_search import Parts, search_history
from wellsep.cluster.lofkmeans import LOFKMeans
from wellsep.cluster.medoids import KMedoids
from wellsep.cluster.robust import RobustKMeans
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
