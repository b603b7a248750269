"""Results drawn with matplotlib (extra `plot`): the figures of the page, for papers and notebooks.

Every display is made by a class method, such as ``SilhouetteDisplay.from_estimator``, holds its
data as a frozen figure in ``figure``, and draws on given axes or its own. matplotlib is imported
only then. ``CLUSTERS`` and ``SURFACES`` are the palette, for figures of one's own.
"""

from wellsep._text.sentences import CLUSTERS, SURFACES
from wellsep.plot.agreement import (
    AgreementDisplay,
    GraphDisplay,
    RunAgreementDisplay,
    SpacesDisplay,
)
from wellsep.plot.partitions import (
    ClusterProfileDisplay,
    ConnectivityDisplay,
    MarginDisplay,
    ScatterDisplay,
    SilhouetteDisplay,
)
from wellsep.plot.results import (
    CurvesDisplay,
    DipDisplay,
    RankingDisplay,
    ResolutionTreeDisplay,
    StabilityDisplay,
)

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
