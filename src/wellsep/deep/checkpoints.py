"""Trainings and fitted models on disk: weights and arrays as safetensors, the rest as JSON."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from wellsep import __version__
from wellsep._checks.values import check_path
from wellsep._files.arrays import to_json
from wellsep._files.records import Form, load_form, save_form
from wellsep._files.replace import replace_file
from wellsep.deep.data import Scaling, choose_device
from wellsep.deep.networks import NetworkPlan, build_network
from wellsep.runs.folder import set_aside

FORMAT = 2  # of a training's state
_ESTIMATOR = Form("estimator.json", "estimator", 3, "weights.safetensors")
METHODS: dict[str, type] = {}  # by name; the package, which knows them all, puts them in
_PLAIN = ("device_", "seed_", "n_iter_", "history_", "n_features_in_", "_n_dimensions")


def save_tensors(path: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """Write tensors and a JSON record to a new file."""
    flat = {name: t.detach().contiguous().cpu().clone() for name, t in tensors.items()}
    # Not save_file, which makes a temporary file of its own: its mode is 0600, a full disk is
    # no OSError, and nobody removes it after a kill.
    path.write_bytes(save(flat, metadata={"record": json.dumps(record)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            record = json.loads(file.metadata()["record"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} must be a complete safetensors file, got {error}.") from None
    if not isinstance(record, dict):
        raise ValueError(f"{path} must hold a record, got {type(record).__name__}.")
    return tensors, record


def plain(value: Any) -> Any:
    """Parameters as JSON has them; labels of all objects, for example, by their digest."""
    return to_json(value, nan="keep", other=str, longest=100)


class Checkpoint:
    """State of a training in `state.safetensors` of a folder; without a folder nothing is kept."""

    def __init__(self, folder: Any, identity: dict[str, Any], *, resume: bool = True) -> None:
        self.path = None if folder is None else Path(folder) / "state.safetensors"
        self.identity = json.loads(json.dumps(identity))
        self.tensors: dict[str, Tensor] = {}
        self.record: dict[str, Any] = {}
        if self.path is not None and resume and self.path.exists():
            try:
                self.tensors, self.record = read_tensors(self.path)
            except ValueError as error:
                set_aside(self.path, f"{error} The training starts over.")
            else:
                self._check_identity()

    def _check_identity(self) -> None:
        """Refuse to go on with another method, other parameters or other data."""
        saved = self.record.get("identity", {})
        differing = [key for key in self.identity if saved.get(key) != self.identity[key]]
        if differing or self.record.get("format") != FORMAT:
            which = ", ".join(differing) or "format"
            raise ValueError(
                f"checkpoint_dir must hold a training of the same method, settings and data, "
                f"got one that differs in {which}; choose another folder, or resume=False to "
                "start over."
            )

    def write(self, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
        if self.path is not None:
            record = {"format": FORMAT, "identity": self.identity, **record}
            with replace_file(self.path) as temporary:
                save_tensors(temporary, tensors, record)

    def group(self, prefix: str) -> dict[str, Tensor]:
        return without_prefix(prefix, self.tensors)


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with `prefix/`, without it."""
    start = f"{prefix}/"
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimiser's state as a flat dictionary of tensors."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}/{key}": value if torch.is_tensor(value) else torch.tensor(value)
        for index, entries in state.items()
        for key, value in entries.items()
        if value is not None
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    if not tensors:
        return
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split("/", 1)
        state.setdefault(int(index), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def save_to(estimator: Any, folder: Path, *, embedding: bool) -> Path:
    arrays = {
        name: torch.from_numpy(np.array(value))
        for name, value in vars(estimator).items()
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }
    if not embedding:
        arrays.pop("embedding_", None)
    tensors = with_prefix("network", estimator.network_.state_dict())
    tensors |= with_prefix("array", arrays)
    scaling = estimator.scaling_
    record: dict[str, Any] = {
        "version": __version__,
        "method": type(estimator).__name__,
        "params": estimator._plain_params(),
        "plan": plain(estimator.plan_._asdict()),
        "object_shape": list(estimator.object_shape_),
        "settings": plain(estimator.settings_),
        "scaling": {"shift": scaling.shift.tolist(), "factor": scaling.factor},
        "fitted": {name: getattr(estimator, name) for name in _PLAIN},
    }
    if hasattr(estimator, "feature_names_in_"):
        record["feature_names_in"] = estimator.feature_names_in_.tolist()
    save_form(folder, _ESTIMATOR, record, partial(save_tensors, tensors=tensors, record={}))
    return folder


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
    >>> from wellsep.deep import DeepKMeans
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = DeepKMeans(2, pretrain_epochs=1, epochs=1, device="cpu", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(model.save(folder), device="cpu")
    >>> type(again).__name__, bool((again.predict(X) == model.labels_).all())
    ('DeepKMeans', True)
    """
    folder = check_path("folder", folder)
    record, tensors = read_saved(folder)
    got = record.get("method")
    method = METHODS.get(str(got))
    if method is None:
        raise ValueError(
            f"{folder / _ESTIMATOR.manifest} must name a method, got {got!r}; save the "
            "estimator again, or load a class of your own by its own load."
        )
    return restore(method, record, tensors, device)


def read_saved(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not (folder / _ESTIMATOR.manifest).exists():
        raise FileNotFoundError(f"folder must hold a saved estimator, got {str(folder)!r}.")
    record, (tensors, _) = load_form(folder, _ESTIMATOR, read_tensors)
    return record, tensors


def restore(method: Any, record: dict[str, Any], tensors: dict[str, Tensor], device: str) -> Any:
    """The fitted estimator of this class, from what was saved."""
    chosen = choose_device(device)
    # JSON has no tuples; parameters such as hidden are tuples.
    params = {k: tuple(v) if isinstance(v, list) else v for k, v in record["params"].items()}
    estimator: Any = method(**params)
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
    network = build_network(plan, estimator.object_shape_, torch.Generator())
    network.load_state_dict(without_prefix("network", tensors))
    estimator.network_ = network.to(chosen).eval()
    for name, tensor in without_prefix("array", tensors).items():
        setattr(estimator, name, tensor.numpy())
    return estimator
