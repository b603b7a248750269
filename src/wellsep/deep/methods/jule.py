"""JULE: merging clusters and learning features in turns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wellsep._checks.arrays import check_choice, check_count, check_number
from wellsep._checks.values import check_flag
from wellsep.deep.base import DeepClusterer
from wellsep.deep.linkage.degree import degree_linkage
from wellsep.deep.linkage.merging import nearest_chains
from wellsep.deep.losses import directions, sample_triplets, triplet_loss
from wellsep.deep.networks import JULE_BLOCKS, NetworkPlan, Shape
from wellsep.deep.training import Outcome, Stage, Trainer

N_NEGATIVES = 20  # drawn for each same-cluster pair of a batch


@dataclass(eq=False, repr=False, kw_only=True)
class JULE(DeepClusterer):
    """Joint unsupervised learning of representations and image clusters.

    Clusters start as 1-nearest-neighbour chains of the raw objects. In each period the network
    learns for some epochs from triplets of its clusters, by hinge(‖a−p‖² − ‖a−n‖² + margin). Then
    ceil(η·number of clusters) pairs are merged by `degree_linkage` on the new features. When
    `n_clusters` are reached, the agglomeration is redone from chains of the final features: those
    are the labels.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    network : {"auto", "conv", "dense", "usps", "mnist", "faces", "coil", "umist"}
        Convolutional for images and one hidden layer for vectors, or a paper's choice by name.
    epochs : int, optional
        Epochs per period.
    learning_rate : float, optional
        SGD's rate; step t uses rate·(1 + 1e-4·t)^−.75.
    batch_size : int, optional
        Objects per step.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume, deterministic
        See `DeepClusterer`.
    unfolding_rate : float
        Share η of the clusters merged in a period; the paper has .2 for faces, .9 otherwise.
    n_features : int, optional
        Size of the embedding, whose rows have unit length.
    n_neighbors : int
        Neighbours in the graph (K_s).
    margin : float
        Margin of the triplet loss.
    anchors_only : bool
        Let only anchors receive gradient, which is what the original's CUDA code amounts to.

    Attributes
    ----------
    labels_, history_, n_iter_
        See `DeepClusterer`.
    embedding_ : array of shape (n, n_features)
        Unit-length features of the training data.
    cluster_centers_ : array of shape (n_clusters, n_features)
        Mean directions of the clusters. `predict` gives the label of the nearest training object
        instead: agglomerated clusters need not be round.
    n_clusters_seen_ : array of int
        Number of clusters each period learned from.

    Notes
    -----
    Departs from the original: affinities are exact (its fast mode drops cross terms and, above 100
    clusters, looks at lower-numbered partners only); features for merging are computed in
    evaluation mode; small clusters without affinity join the nearest centroid whatever the
    number of clusters; unless `anchors_only`, all three of a triplet receive gradient.

    References
    ----------
    Yang, Parikh, Batra, "Joint unsupervised learning of deep representations and image
    clusters", CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (20, 5)) for c in (0, 1)])
    >>> JULE(2, epochs=1, device="cpu", random_state=0).fit_predict(X).shape
    (40,)
    """

    unfolding_rate: float = 0.9
    n_features: int | None = None
    n_neighbors: int = 20
    margin: float = 0.2
    anchors_only: bool = False
    n_clusters_seen_: np.ndarray = field(init=False)

    _presets = {  # noqa: RUF012
        "paper": {
            "n_features": 160, "width": 50, "batch_size": 100, "learning_rate": 0.01, "epochs": 20,
        },
        "small": {
            "n_features": 64, "width": 24, "batch_size": 100, "learning_rate": 0.01, "epochs": 10,
        },
    }  # fmt: skip

    def _check_settings(self, settings: dict[str, Any]) -> None:
        check_number("unfolding_rate", self.unfolding_rate, 0.0, 1.0, open_left=True)
        check_number("margin", self.margin, 0.0)
        check_count("n_neighbors", self.n_neighbors)
        check_flag("anchors_only", self.anchors_only)

    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        check_choice("network", self.network, ("auto", "conv", "dense", *JULE_BLOCKS))
        options = {"n_features": settings["n_features"], "width": settings["width"]}
        return NetworkPlan("jule", options | {"blocks": self.network}, "small")

    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        labels = trainer.once("labels-0", lambda: self._first(trainer))
        seen = [int(labels.max()) + 1]
        while seen[-1] > self.n_clusters:
            self._learn(trainer, network, labels, settings, len(seen))
            merge = partial(self._merge, trainer, network, labels)
            labels = trainer.once(f"labels-{len(seen)}", merge)
            seen.append(int(labels.max()) + 1)
        if len(seen) == 1:  # fewer objects than would ever merge: learn once all the same
            self._learn(trainer, network, labels, settings, 1)
        features = trainer.map(network)
        final = self._linked(features, self._chains(features), self.n_clusters)
        return _outcome(features, final, {"n_clusters_seen_": np.array(seen)})

    def _assign(self, embedding: np.ndarray) -> np.ndarray:
        if not hasattr(self, "embedding_"):
            raise ValueError(
                "predict needs embedding_, and this model was saved without it. "
                "Set embedding_ to transform(X) of the training data."
            )
        trained = torch.as_tensor(self.embedding_)
        parts = torch.as_tensor(embedding).split(2048)
        return self.labels_[torch.cat([(z @ trained.T).argmax(dim=1) for z in parts]).numpy()]

    def _learn(
        self, trainer: Trainer, network: Any, labels: Tensor, settings: dict[str, Any], period: int
    ) -> None:
        def loss(rows: Tensor) -> Tensor:
            triplets = sample_triplets(labels[rows], N_NEGATIVES, trainer.shuffler)
            z = network(trainer.data[rows])
            return triplet_loss(z, triplets, self.margin, anchors_only=self.anchors_only)

        start = settings["learning_rate"]
        options = {"momentum": 0.9, "dampening": 0.9, "weight_decay": 5e-5}
        optimizer = torch.optim.SGD(network.parameters(), lr=start, **options)

        def rate(step: int) -> float:
            return start * (1.0 + 1e-4 * step) ** -0.75

        def outcome() -> Outcome:
            return _outcome(trainer.map(network), labels.cpu().numpy(), {})

        # No step is recorded: the number of triplets differs from batch to batch.
        stage = Stage(f"period-{period}", settings["epochs"], loss, optimizer, rate=rate)
        stage.outcome = outcome
        trainer.run(stage)

    def _first(self, trainer: Trainer) -> np.ndarray:
        """Chains of the raw objects, whose rows are clipped to unit length."""
        raw = trainer.data.map(lambda x: x.flatten(1))
        return self._chains(raw / raw.norm(dim=1, keepdim=True).clamp_min(1.0))

    def _chains(self, features: Tensor) -> np.ndarray:
        labels = nearest_chains(features)
        # Chains may be fewer than the clusters wanted; then every object starts alone.
        return labels if labels.max() + 1 >= self.n_clusters else np.arange(len(labels))

    def _merge(self, trainer: Trainer, network: Any, labels: Tensor) -> np.ndarray:
        count = int(labels.max()) + 1
        fewer = max(self.n_clusters, count - math.ceil(self.unfolding_rate * count))
        return self._linked(trainer.map(network), labels.cpu().numpy(), fewer)

    def _linked(self, features: Tensor, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        return degree_linkage(features, n_clusters, labels=labels, n_neighbors=self.n_neighbors)


def _outcome(features: Tensor, labels: np.ndarray, arrays: dict[str, np.ndarray]) -> Outcome:
    features = features.cpu()
    centers = directions(features, torch.as_tensor(labels), int(labels.max()) + 1)
    return Outcome(labels, features.numpy(), centers.numpy(), arrays)
