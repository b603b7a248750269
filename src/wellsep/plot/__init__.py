"""Results drawn with matplotlib (extra `plot`): the figures of the page, for papers and notebooks.

Every display is made by a class method, such as ``SilhouetteDisplay.from_estimator``, holds its
data as a frozen figure in ``figure``, and draws on given axes or its own. matplotlib is imported
only then. ``CLUSTERS`` and ``SURFACES`` are the palette, for figures of one's own.
"""

from wellsep._text.sentences import CLUSTERS, SURFACES
from wellsep.plot.clusters import ClusterProfileDisplay
from wellsep.plot.curves import CurvesDisplay
from wellsep.plot.objects import ConnectivityDisplay, MarginDisplay, SilhouetteDisplay
from wellsep.plot.partitions import RunAgreementDisplay
from wellsep.plot.rankings import DipDisplay, RankingDisplay
from wellsep.plot.scatters import ScatterDisplay
from wellsep.plot.spaces import AgreementDisplay, GraphDisplay, SpacesDisplay
from wellsep.plot.stability import StabilityDisplay
from wellsep.plot.trees import ResolutionTreeDisplay

__all__ = [
    "CLUSTERS",
    "SURFACES",
    "AgreementDisplay",
    "ClusterProfileDisplay",
    "ConnectivityDisplay",
    "CurvesDisplay",
    "DipDisplay",
    "GraphDisplay",
    "MarginDisplay",
    "RankingDisplay",
    "ResolutionTreeDisplay",
    "RunAgreementDisplay",
    "ScatterDisplay",
    "SilhouetteDisplay",
    "SpacesDisplay",
    "StabilityDisplay",
]
