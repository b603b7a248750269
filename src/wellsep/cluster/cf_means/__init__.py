"""cf-means; what a study of its search needs is exported."""

from wellsep.cluster.cf_means.centre_search import Budget, CentreSearch, History
from wellsep.compute.kmeans.lloyd import start_centers
from wellsep.compute.kmeans.prepared_points import prepare
from wellsep.compute.kmeans.search_state import CentreState

__all__ = ["Budget", "CentreSearch", "CentreState", "History", "prepare", "start_centers"]
