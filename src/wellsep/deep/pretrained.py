"""Starting from an autoencoder that was trained before."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from wellsep._files.arrays import digest
from wellsep.deep.base import DeepClusterer
from wellsep.deep.checkpoints import load, plain
from wellsep.deep.data import Scaling
from wellsep.deep.networks import NetworkPlan, Shape
from wellsep.deep.training import Trainer


@dataclass(eq=False, repr=False, kw_only=True)
class FromAutoencoder(DeepClusterer):
    """Base of methods that pretrain an autoencoder or take a given one."""

    autoencoder: Any = None

    _lenders: ClassVar[tuple[str, ...]] = ()  # names of the methods whose networks fit this one
    _of_network: ClassVar[tuple[str, ...]] = ("hidden", "width")  # settings of a given network

    def _lent(self) -> Any:
        """The fitted model that the parameter `autoencoder` stands for, or None."""
        value = self.autoencoder
        if value is None:
            return None
        if isinstance(value, FrozenEstimator):
            value = value.estimator
        if isinstance(value, str | os.PathLike):
            if not (Path(value) / "estimator.json").exists():
                raise FileNotFoundError(
                    f"autoencoder must be a folder that save wrote, got {os.fspath(value)!r}."
                )
            value = load(value, device="cpu")
        if type(value).__name__ not in self._lenders:
            raise TypeError(
                f"autoencoder must be a fitted {' or '.join(self._lenders)} or the folder of a "
                f"saved one, got {type(value).__name__}."
            )
        check_is_fitted(
            value,
            "network_",
            msg="autoencoder must be fitted, got a %(name)s that is not (a clone?); give the "
            "folder of a saved one, or sklearn.frozen.FrozenEstimator around it, which clones "
            "keep.",
        )
        return value

    def _settings(self, device: torch.device) -> dict[str, Any]:
        self._given = self._lent()  # until the end of the fit
        settings = super()._settings(device)
        if self._given is None:
            return settings
        built = self._given.settings_
        for name in self._of_network:
            own = getattr(self, name, None)
            if own is not None and plain(own) != plain(built[name]):
                raise ValueError(
                    f"{name} must be the autoencoder's ({built[name]}) or None, got {own}."
                )
        return settings | {name: built[name] for name in self._of_network}

    def _scaling(self, array: np.ndarray) -> Scaling:
        return super()._scaling(array) if self._given is None else self._given.scaling_

    def _plain_params(self) -> dict[str, Any]:
        params = super()._plain_params()
        if self.autoencoder is not None and not isinstance(self.autoencoder, str | os.PathLike):
            model = self._lent()
            params["autoencoder"] = f"{type(model).__name__} {digest_of(model.network_)}"
        return params

    def _plan_or_given(self, plan: NetworkPlan, shape: Shape) -> NetworkPlan:
        """The plan, or the given network's if it does for objects of this shape."""
        if self._given is None:
            return plan
        built = self._given
        wanted, there = ((p.kind, p.options.get("layers")) for p in (plan, built.plan_))
        if self.network != "auto" and wanted != there:
            raise ValueError(
                f"network must be the autoencoder's ({built.plan_.kind}) or 'auto', "
                f"got {self.network!r}."
            )
        if tuple(built.object_shape_) != tuple(shape):
            raise ValueError(
                f"X must hold objects of the shape the autoencoder saw, "
                f"{tuple(built.object_shape_)}, got {tuple(shape)}."
            )
        return built.plan_

    def _begin(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> None:
        """Pretrain, or put the given weights in; an interrupted training has its own."""
        if self._given is None:
            super()._begin(trainer, network, settings)
        elif not trainer.checkpoint.tensors:
            network.load_state_dict(self._given.network_.state_dict())


def digest_of(network: torch.nn.Module) -> str:
    """A short digest of a network's weights."""
    weights = network.state_dict().items()
    parts = [part for name, tensor in weights for part in (name, tensor.detach().cpu().numpy())]
    return digest(*parts)[:12]
