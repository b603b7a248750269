"""From data alone to a clustering: candidates over embeddings, methods and K, judged."""

from wellsep.explorer.estimator import ClusterExplorer
from wellsep.explorer.exploring import explore
from wellsep.explorer.result import Exploration

__all__ = ["ClusterExplorer", "Exploration", "explore"]
