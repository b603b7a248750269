"""From data alone to a clustering: candidates over embeddings, methods and K, judged."""

from wellsep.explorer.exploring import ClusterExplorer, explore
from wellsep.explorer.result import Exploration

__all__ = ["ClusterExplorer", "Exploration", "explore"]
