"""Clusterers on arrays: k-means and its separation-aware kin."""

from __future__ import annotations

from wellsep.cluster.cf_means.estimator import CFMeans
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.kmedoids import KMedoids
from wellsep.cluster.outlier_weights import LOFKMeans, RobustKMeans
from wellsep.compute.kmeans.lloyd import LloydResult, lloyd

__all__ = ["CFMeans", "KMeans", "KMedoids", "LOFKMeans", "LloydResult", "RobustKMeans", "lloyd"]
