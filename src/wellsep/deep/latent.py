"""What methods share that train an autoencoder, start from a given one or cluster its latents."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from wellsep._checks.arrays import check_choice, check_count, check_numbers
from wellsep._files.arrays import digest
from wellsep.cluster.kmeans import KMeans
from wellsep.compute.kmeans.lloyd import plus_plus
from wellsep.compute.kmeans.prepared_points import prepare
from wellsep.deep.base import DeepClusterer
from wellsep.deep.checkpoints import load, plain
from wellsep.deep.data import Scaling
from wellsep.deep.losses import reconstruction
from wellsep.deep.networks import Autoencoder, NetworkPlan, Shape
from wellsep.deep.training import Stage, Trainer, adam


class Centers(nn.Module):
    """Cluster centres that are trained with the network."""

    def __init__(self, points: Tensor) -> None:
        super().__init__()
        self.points = nn.Parameter(points.clone())


def kmeans(embedding: Tensor, n_clusters: int, *, n_init: int, seed: int) -> KMeans:
    """Return the best of several k-means runs from k-means++ starts, the same on every call."""
    # On the host: on a card every iteration of every start would wait for a transfer, more so
    # where several trainings share it, and a latent space has few dimensions.
    points = _on_host(embedding)
    # Threads add up in any order; one thread gives the same digits every time.
    with threadpool_limits(limits=1):
        return KMeans(n_clusters, n_init=n_init, random_state=seed % 2**32).fit(points)


def _on_host(embedding: Tensor) -> np.ndarray:
    return embedding.detach().cpu().numpy().astype(np.float64)


INITS = ("k-means", "k-means++", "random")


def check_centers(init: Any, n_clusters: int, n_latent: int) -> None:
    """Refuse what is neither the name of a start nor centres in the latent space."""
    if isinstance(init, str):
        check_choice("init", init, INITS)
        return
    points = check_numbers("init", init)
    if points.shape != (n_clusters, n_latent) or not np.isfinite(points).all():
        raise ValueError(
            f"init must hold finite centres of shape (n_clusters, n_latent) = "
            f"({n_clusters}, {n_latent}), got shape {points.shape}."
        )


def starting_centers(embedding: Tensor, n_clusters: int, init: Any, seed: int) -> np.ndarray:
    """Centres to start from: given ones, k-means (20 starts), one k-means++, or random objects."""
    if not isinstance(init, str):
        return check_numbers("init", init)
    if init == "k-means":
        return kmeans(embedding, n_clusters, n_init=20, seed=seed).cluster_centers_
    points = _on_host(embedding)
    if init == "random":
        rows = np.random.default_rng(seed).choice(len(points), n_clusters, replace=False)
        return points[rows]
    with threadpool_limits(limits=1):
        return points[plus_plus(prepare(points), n_clusters, np.random.RandomState(seed % 2**32))]


# Settings of the autoencoder that come with a preset.
PAPER = {
    "n_latent": 10, "hidden": (500, 500, 2000), "width": 50, "batch_size": 256,
    "pretrain_learning_rate": 1e-3,
}  # fmt: skip
SMALL = {
    "n_latent": 10, "hidden": (256, 128), "width": 16, "batch_size": 64,
    "pretrain_learning_rate": 1e-3,
}  # fmt: skip


@dataclass(eq=False, repr=False, kw_only=True)
class LatentClusterer(DeepClusterer):
    """Base of methods that train centres in the latent space of an autoencoder."""

    n_latent: int | None = None
    hidden: tuple[int, ...] | None = None
    pretrain_epochs: int | None = None

    _has_decoder = True
    _latent = "linear"  # what ends the encoder

    def _check_settings(self, settings: dict[str, Any]) -> None:
        check_count("n_latent", settings["n_latent"])

    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        check_choice("network", self.network, ("auto", "dense", "conv"))
        options = {"n_latent": settings["n_latent"], "latent": self._latent}
        if self.network == "conv":
            options |= {"noise": (), "width": settings["width"]}
            return NetworkPlan("conv-autoencoder", options)
        return NetworkPlan("dense-autoencoder", options | {"hidden": settings["hidden"]})

    def _pretrain(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> None:
        def loss(rows: Tensor) -> Tensor:
            x = trainer.data[rows]
            return reconstruction(x, network.decode(network.encode(x)))

        rate = settings["pretrain_learning_rate"]
        optimizer = adam(network.parameters(), rate, trainer.device)
        trainer.run(Stage("pretrain", settings["pretrain_epochs"], loss, optimizer))

    def _centers(self, trainer: Trainer, network: Autoencoder, init: Any = "k-means") -> Centers:
        """Centres that are trained with the network, where `init` says on its latent points."""

        def start() -> np.ndarray:
            latent = trainer.map(network.encode)
            return starting_centers(latent, self.n_clusters, init, trainer.seed_for("centers"))

        return trainer.add("centers", Centers(trainer.once("start", start).to(torch.float32)))


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
