"""Deep clusterers on torch with scikit-learn's interface, and sweeps over their settings."""

from __future__ import annotations

try:
    import torch  # noqa: F401 (all of the package needs it)
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "wellsep.deep needs the package torch, which is not installed. "
        "Install it with: pip install torch safetensors.",
        name="torch",
    ) from None

from wellsep.deep.base import DeepClusterer
from wellsep.deep.checkpoints import METHODS, load
from wellsep.deep.linkage.degree import degree_linkage
from wellsep.deep.linkage.paths import path_integral
from wellsep.deep.methods.dec import DEC, IDEC
from wellsep.deep.methods.deepcluster import DeepCluster
from wellsep.deep.methods.deepkmeans import DeepCFMeans, DeepKMeans
from wellsep.deep.methods.depict import DEPICT
from wellsep.deep.methods.jule import JULE
from wellsep.deep.sweeps.sweep import Sweep, sweep
from wellsep.deep.sweeps.trial import Trial
from wellsep.deep.training import TrainingDiverged

__all__ = [
    "DEC",
    "DEPICT",
    "IDEC",
    "JULE",
    "METHODS",
    "DeepCFMeans",
    "DeepCluster",
    "DeepClusterer",
    "DeepKMeans",
    "Sweep",
    "TrainingDiverged",
    "Trial",
    "degree_linkage",
    "load",
    "path_integral",
    "sweep",
]

for _method in (DeepKMeans, DeepCFMeans, DEC, IDEC, DEPICT, JULE, DeepCluster):
    METHODS[_method.__name__] = _method
