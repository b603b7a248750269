"""What a training needs to go on after an interruption, as one safetensors file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from wellsep._files import replace_file, to_json

FORMAT = 2


def write_tensors(path: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """Write tensors and a JSON record to one file, all or nothing."""
    with replace_file(path) as temporary:
        save_tensors(temporary, tensors, record)


def save_tensors(path: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    """Write tensors and a JSON record to a new file."""
    flat = {name: t.detach().contiguous().cpu().clone() for name, t in tensors.items()}
    save_file(flat, path, metadata={"record": json.dumps(record)})


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `write_tensors` wrote."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return tensors, json.loads(file.metadata()["record"])


def plain(value: Any) -> Any:
    """Parameters as JSON has them; labels of all objects, for example, by their digest."""
    return to_json(value, nan="keep", other=str, longest=100)


class Checkpoint:
    """Where a training stands: tensors by name and a JSON record, in memory or on disk.

    Parameters
    ----------
    folder : path or None
        Where `state.safetensors` lies; None keeps nothing.
    identity : dict
        What must agree for a training to be continued: method, parameters, data.
    resume : bool
        Whether to continue what lies in the folder.
    """

    def __init__(self, folder: Any, identity: dict[str, Any], *, resume: bool = True) -> None:
        self.path = None if folder is None else Path(folder) / "state.safetensors"
        self.identity = json.loads(json.dumps(identity))
        self.tensors: dict[str, Tensor] = {}
        self.record: dict[str, Any] = {}
        if self.path is not None and resume and self.path.exists():
            self.tensors, self.record = read_tensors(self.path)
            self._check_identity()

    def _check_identity(self) -> None:
        found = self.record.get("identity", {})
        differing = [key for key in self.identity if found.get(key) != self.identity[key]]
        if differing or self.record.get("format") != FORMAT:
            which = ", ".join(differing) or "format"
            raise ValueError(
                f"checkpoint_dir must hold a training of the same method, settings and data, "
                f"got one that differs in {which}; choose another folder, or resume=False to "
                "start over."
            )

    def write(self, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
        """Replace what is kept by a newer state."""
        if self.path is not None:
            record = {"format": FORMAT, "identity": self.identity, **record}
            write_tensors(self.path, tensors, record)

    def group(self, prefix: str) -> dict[str, Tensor]:
        """The kept tensors whose names start with `prefix/`, without it."""
        start = f"{prefix}/"
        return {
            name.removeprefix(start): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(start)
        }


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
    """Put back what `optimizer_tensors` took."""
    if not tensors:
        return
    whole = optimizer.state_dict()
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split("/", 1)
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": whole["param_groups"]})
