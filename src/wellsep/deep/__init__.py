"""Deep clusterers on torch under scikit-learn's contract, and sweeps over their settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wellsep.deep.dec import DEC, IDEC
from wellsep.deep.deepcluster import DeepCluster
from wellsep.deep.deepkmeans import DeepCFMeans, DeepKMeans
from wellsep.deep.degree_linkage import degree_linkage
from wellsep.deep.depict import DEPICT
from wellsep.deep.jule import JULE
from wellsep.deep.path_integral import path_integral
from wellsep.deep.sweep import Sweep, Trial, sweep
from wellsep.deep.training import TrainingDiverged

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


def load(folder: Any, *, device: str = "auto") -> Any:
    """Read any deep clusterer that `save` wrote.

    Parameters
    ----------
    folder : path
        What `save` returned.
    device : str
        Where the network goes.

    Returns
    -------
    The fitted estimator.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = DeepKMeans(2, pretrain_epochs=1, epochs=1, device="cpu", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(model.save(folder), device="cpu")
    >>> type(again).__name__, bool((again.predict(X) == model.labels_).all())
    ('DeepKMeans', True)
    """
    record = Path(folder) / "estimator.json"
    if not record.exists():
        raise FileNotFoundError(f"folder must hold a saved estimator, got {str(folder)!r}.")
    method = json.loads(record.read_text(encoding="utf-8"))["method"]
    return METHODS[method].load(folder, device=device)
