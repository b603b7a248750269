"""Tests of a space without labels: the dip test, its null distribution, projections, Holm."""

from .dip import DipResult, dip_statistic, dip_test
from .holm import HolmResult, holm
from .multimodality import Multimodality, multimodality
from .null import null_dips

__all__ = [
    "DipResult",
    "HolmResult",
    "Multimodality",
    "dip_statistic",
    "dip_test",
    "holm",
    "multimodality",
    "null_dips",
]
