"""Results drawn with matplotlib (extra `plot`): the figures of the page, for papers and notebooks.

Every display is made by a class method, such as ``SilhouetteDisplay.from_estimator``, holds its
data as a frozen figure in ``figure``, and draws on given axes or its own. matplotlib is imported
only then. ``CLUSTERS`` and ``SURFACES`` are the palette, for figures of one's own.
"""

from .._display import CLUSTERS, SURFACES
from .counts import BoxDisplay, CurvesDisplay
from .objects import ConnectivityDisplay, MarginDisplay, SilhouetteDisplay
from .regions import RegionsDisplay
from .spaces import AgreementDisplay, GraphDisplay, SpacesDisplay

__all__ = [
    "CLUSTERS",
    "SURFACES",
    "AgreementDisplay",
    "BoxDisplay",
    "ConnectivityDisplay",
    "CurvesDisplay",
    "GraphDisplay",
    "MarginDisplay",
    "RegionsDisplay",
    "SilhouetteDisplay",
    "SpacesDisplay",
]
