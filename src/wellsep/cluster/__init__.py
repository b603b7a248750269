"""Clusterers on arrays: k-means and its separation-aware kin."""

from __future__ import annotations

from wellsep.cluster.kmeans import KMeans
from wellsep.cluster.lloyd import LloydResult, lloyd

__all__ = ["KMeans", "LloydResult", "lloyd"]
