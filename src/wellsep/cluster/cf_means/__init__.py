"""cf-means; what a study of its search needs is exported."""

from wellsep.cluster.cf_means.centre_search import Budget, CentreSearch, History, open_state
from wellsep.compute.kmeans.lloyd import start_centers
from wellsep.compute.kmeans.prepared_points import prepare

__all__ = ["Budget", "CentreSearch", "History", "open_state", "prepare", "start_centers"]
