"""Clusterers on arrays: k-means and its separation-aware kin."""

from __future__ import annotations

from wellsep.cluster.by_name import clusterer, scaled
from wellsep.cluster.cf_means.estimator import CFMeans
from wellsep.cluster.fitting import fit_labels
from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.kmedoids import KMedoids
from wellsep.cluster.outlier_weights import LOFKMeans, RobustKMeans
from wellsep.compute.kmeans.lloyd import LloydResult, lloyd

__all__ = [
    "CFMeans",
    "KMeans",
    "KMedoids",
    "LOFKMeans",
    "LloydResult",
    "RobustKMeans",
    "clusterer",
    "fit_labels",
    "lloyd",
    "scaled",
]
