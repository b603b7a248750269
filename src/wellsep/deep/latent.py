"""Steps in the latent space that methods share: pretraining, starting centres, k-means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from wellsep._checks import check_choice
from wellsep.deep.losses import reconstruction, squared_distances
from wellsep.deep.networks import Autoencoder
from wellsep.deep.training import Stage, Trainer, adam


class Centers(nn.Module):
    """Cluster centres that are trained with the network."""

    def __init__(self, points: Tensor) -> None:
        super().__init__()
        self.points = nn.Parameter(points.clone())


class Partition(NamedTuple):
    """Clusters of embedded objects."""

    labels: np.ndarray
    centers: np.ndarray


def kmeans(embedding: Tensor, n_clusters: int, *, n_init: int, seed: int) -> Partition:
    """The best of several k-means runs from k-means++ starts, the same on every call."""
    points = embedding.detach().cpu().numpy().astype(np.float64)
    # Threads add up in any order; one thread gives the same digits every time.
    with threadpool_limits(limits=1):
        found = KMeans(n_clusters, n_init=n_init, random_state=seed % 2**32).fit(points)
    return Partition(found.labels_, found.cluster_centers_)


INITS = ("k-means", "k-means++", "random")


def check_centers(init: Any, n_clusters: int, n_latent: int) -> None:
    """Refuse what is neither the name of a start nor centres in the latent space."""
    if isinstance(init, str):
        check_choice("init", init, INITS)
        return
    try:
        points = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"init must be one of {', '.join(INITS)} or an array of centres, got {init!r}."
        ) from None
    if points.shape != (n_clusters, n_latent) or not np.isfinite(points).all():
        raise ValueError(
            f"init must hold finite centres of shape (n_clusters, n_latent) = "
            f"({n_clusters}, {n_latent}), got shape {points.shape}."
        )


def starting_centers(embedding: Tensor, n_clusters: int, init: Any, seed: int) -> np.ndarray:
    """Centres to start from: given ones, k-means (20 starts), one k-means++, or random objects."""
    if not isinstance(init, str):
        return np.asarray(init, dtype=np.float64)
    check_choice("init", init, INITS)
    if init == "k-means":
        return kmeans(embedding, n_clusters, n_init=20, seed=seed).centers
    points = embedding.detach().cpu().numpy().astype(np.float64)
    if init == "random":
        rows = np.random.default_rng(seed).choice(len(points), n_clusters, replace=False)
        return points[rows]
    from sklearn.cluster import kmeans_plusplus

    with threadpool_limits(limits=1):
        return kmeans_plusplus(points, n_clusters, random_state=seed % 2**32)[0]


def pretrain(trainer: Trainer, network: Autoencoder, settings: dict[str, Any]) -> None:
    """Train an autoencoder on reconstruction alone."""

    def loss(rows: Tensor) -> Tensor:
        x = trainer.data[rows]
        return reconstruction(x, network.decode(network.encode(x)))

    rate = settings["pretrain_learning_rate"]
    trainer.run(
        Stage(
            "pretrain",
            settings["pretrain_epochs"],
            loss,
            adam(network.parameters(), rate, trainer.device),
        )
    )


def nearest_center(embedding: Tensor, centers: Tensor) -> Tensor:
    """Label of the nearest centre, block by block."""
    parts = [squared_distances(z, centers).argmin(dim=1) for z in embedding.split(4096)]
    return torch.cat(parts)
