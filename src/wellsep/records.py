"""The records that the library returns, for annotations and ``isinstance``; `load` opens them."""

import os
from typing import Any

from wellsep._files.records import Record
from wellsep.cluster.k_choice.result import ChosenK
from wellsep.cluster.membership import MembershipReport
from wellsep.cluster.resampling.result import Stability
from wellsep.evaluate import (
    AceResult,
    AgreedGroups,
    Agreement,
    ClusterDescription,
    Consensus,
    ConsensusPartition,
    EmbeddingRanking,
    JudgedClusters,
    Judgement,
    PartitionDetails,
    Question,
    RankConfidence,
    Ranking,
    ResolutionTree,
)
from wellsep.explorer.result import Exploration
from wellsep.indices import GapStatistic, LocalConnectivity, PartitionScores
from wellsep.indices.silhouette_sampling import SilhouetteEstimate
from wellsep.spaces import DipResult, HolmResult, Multimodality

__all__ = [
    "AceResult",
    "AgreedGroups",
    "Agreement",
    "ChosenK",
    "ClusterDescription",
    "Consensus",
    "ConsensusPartition",
    "DipResult",
    "EmbeddingRanking",
    "Exploration",
    "GapStatistic",
    "HolmResult",
    "JudgedClusters",
    "Judgement",
    "LocalConnectivity",
    "MembershipReport",
    "Multimodality",
    "PartitionDetails",
    "PartitionScores",
    "Question",
    "RankConfidence",
    "Ranking",
    "ResolutionTree",
    "SilhouetteEstimate",
    "Stability",
]


def load(folder: str | os.PathLike[str]) -> Any:
    """Open a saved result, whatever its kind.

    Parameters
    ----------
    folder : str or PathLike
        Folder that the method ``save`` of a result, or ``--save`` in the shell, wrote.

    Returns
    -------
    record
        The result: a :class:`wellsep.records.Judgement`, :class:`wellsep.records.ChosenK`, … .

    Examples
    --------
    >>> import tempfile
    >>> import wellsep as ws
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ws.consensus({"a": [0, 0, 1], "b": [0, 0, 1], "c": [0, 1, 1]}).save(folder)
    ...     ws.load(path).best
    'a'
    """
    return Record.load(folder)
