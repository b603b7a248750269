"""A fitted deep clusterer on disk: a JSON manifest, and the weights and arrays that it names."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from wellsep._records import load_parts, save_parts
from wellsep.deep.checkpoints import plain, read_tensors, save_tensors
from wellsep.deep.data import Scaling, choose_device
from wellsep.deep.networks import build_network

_TENSORS, _RECORD = "weights.safetensors", "estimator.json"
_KIND, _FORMAT = "estimator", 2
_PLAIN = ("device_", "seed_", "n_iter_", "history_", "n_features_in_", "_n_dimensions")


def save_to(estimator: Any, folder: Path, *, embedding: bool) -> Path:
    """Write a fitted estimator; see `DeepClusterer.save`."""
    from wellsep import __version__

    weights = estimator.network_.state_dict()
    tensors = {f"network/{key}": value for key, value in weights.items()}
    arrays = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }
    if not embedding:
        arrays.pop("embedding_", None)
    tensors |= {f"array/{k}": torch.from_numpy(np.array(v)) for k, v in arrays.items()}
    record: dict[str, Any] = {
        "version": __version__,
        "method": type(estimator).__name__,
        "params": estimator._plain_params(),
        "plan": plain(estimator.plan_._asdict()),
        "object_shape": list(estimator.object_shape_),
        "settings": plain(estimator.settings_),
        "scaling": {
            "shift": estimator.scaling_.shift.tolist(),
            "factor": estimator.scaling_.factor,
        },
        "fitted": {name: getattr(estimator, name) for name in _PLAIN},
    }
    if hasattr(estimator, "feature_names_in_"):
        record["feature_names_in"] = estimator.feature_names_in_.tolist()
    parts = {_TENSORS: partial(save_tensors, tensors=tensors, record={})}
    save_parts(folder, _RECORD, _KIND, _FORMAT, record, parts)
    return folder


def load_into(cls: type[BaseEstimator], folder: Path, *, device: str) -> Any:
    """Read a fitted estimator; see `DeepClusterer.load`."""
    from wellsep.deep.base import NetworkPlan

    record, parts = load_parts(folder, _RECORD, _KIND, _FORMAT, read_tensors)
    if record["method"] != cls.__name__:
        raise ValueError(
            f"folder must hold a {cls.__name__}, got a {record['method']}; "
            "wellsep.deep.load reads any of them."
        )
    chosen = choose_device(device)
    # JSON has no tuples; parameters such as hidden are tuples.
    params = {k: tuple(v) if isinstance(v, list) else v for k, v in record["params"].items()}
    estimator: Any = cls(**params)
    plan = estimator.plan_ = NetworkPlan(**record["plan"])
    estimator.object_shape_ = tuple(record["object_shape"])
    estimator.settings_ = record["settings"]
    scaling = record["scaling"]
    estimator.scaling_ = Scaling(np.array(scaling["shift"]), scaling["factor"])
    for name, value in record["fitted"].items():
        setattr(estimator, name, value)
    estimator.device_ = str(chosen)
    if "feature_names_in" in record:
        estimator.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)
    tensors, _ = parts[_TENSORS]
    network = build_network(
        plan.kind,
        estimator.object_shape_,
        plan.options,
        init=plan.init,
        generator=torch.Generator(),
    )
    state = {k.removeprefix("network/"): v for k, v in tensors.items() if k[:8] == "network/"}
    network.load_state_dict(state)
    estimator.network_ = network.to(chosen).eval()
    for name, tensor in tensors.items():
        if name.startswith("array/"):
            setattr(estimator, name.removeprefix("array/"), tensor.numpy())
    return estimator
