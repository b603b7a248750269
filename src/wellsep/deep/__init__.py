"""Deep clusterers on torch with scikit-learn's interface, and sweeps over their settings."""

from __future__ import annotations

try:
    import torch  # noqa: F401 (all of the package needs it)
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "wellsep.deep needs the package torch, which is not installed. "
        "Install it with: pip install 'wellsep[deep]'.",
        name="torch",
    ) from None

from wellsep.deep.checkpoints import load
from wellsep.deep.dec import DEC, IDEC
from wellsep.deep.deepcluster import DeepCluster
from wellsep.deep.deepkmeans import DeepCFMeans, DeepKMeans
from wellsep.deep.depict import DEPICT
from wellsep.deep.jobs import Trial
from wellsep.deep.jule import JULE
from wellsep.deep.jule_linkage import degree_linkage
from wellsep.deep.path_linkage import path_integral
from wellsep.deep.training import TrainingDiverged
from wellsep.deep.trials import Sweep, sweep

__all__ = [
    "DEC",
    "DEPICT",
    "IDEC",
    "JULE",
    "METHODS",
    "DeepCFMeans",
    "DeepCluster",
    "DeepKMeans",
    "Sweep",
    "TrainingDiverged",
    "Trial",
    "degree_linkage",
    "load",
    "path_integral",
    "sweep",
]

METHODS = {
    method.__name__: method
    for method in (DeepKMeans, DeepCFMeans, DEC, IDEC, DEPICT, JULE, DeepCluster)
}
