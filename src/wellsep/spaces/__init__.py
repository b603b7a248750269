"""Tests of a space without labels: the dip test, its null distribution, projections, Holm."""

from wellsep.spaces.dip import DipResult, HolmResult, dip_statistic, dip_test, holm
from wellsep.spaces.dip_null import null_dips
from wellsep.spaces.modes import Multimodality, multimodality

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
