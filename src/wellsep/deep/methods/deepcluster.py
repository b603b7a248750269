"""DeepCluster: k-means on a convnet's features gives the labels it is trained on next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wellsep._checks.arrays import check_choice, check_count
from wellsep.deep.base import DeepClusterer
from wellsep.deep.latent import kmeans
from wellsep.deep.losses import cross_entropy
from wellsep.deep.networks import NetworkPlan, Shape
from wellsep.deep.training import Outcome, Stage, Trainer


class Whitening(NamedTuple):
    """PCA to at most `n_components`, unit variance, rows of unit length."""

    mean: np.ndarray  # (d,)
    projection: np.ndarray  # (d, m)

    @classmethod
    def fitted(cls, features: np.ndarray, n_components: int) -> Whitening:
        """From the features' covariance; directions without variance are left out."""
        mean = features.mean(axis=0, dtype=np.float64)
        centred = features - mean
        values, vectors = np.linalg.eigh(centred.T @ centred / len(features))
        values, vectors = values[::-1], vectors[:, ::-1]
        count = min(n_components, max(1, int((values > 1e-6 * max(values[0], 1e-30)).sum())))
        return cls(mean, vectors[:, :count] / np.sqrt(np.maximum(values[:count], 1e-30)))

    def apply(self, features: np.ndarray) -> np.ndarray:
        white = (features - self.mean) @ self.projection
        length = np.maximum(np.linalg.norm(white, axis=1, keepdims=True), 1e-12)
        return (white / length).astype(np.float32)


def random_crops(x: Tensor, generator: torch.Generator) -> Tensor:
    """Images moved by up to an eighth, edges repeated; those with colours mirrored by chance."""
    n, channels, height, width = x.shape
    shift = max(1, min(height, width) // 8)
    padded = F.pad(x, (shift,) * 4, mode="replicate")
    device = x.device
    top, left = torch.randint(2 * shift + 1, (2, n, 1), generator=generator, device=device)
    rows = top + torch.arange(height, device=device)
    columns = left + torch.arange(width, device=device)
    if channels > 1:
        mirrored = torch.rand(n, 1, generator=generator, device=device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    objects = torch.arange(n, device=device)[:, None, None]
    return padded[objects, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@dataclass(eq=False, repr=False, kw_only=True)
class DeepCluster(DeepClusterer):
    """Deep clustering for unsupervised learning of visual features.

    Every epoch the features of all objects are whitened by PCA and brought to unit length, and
    k-means clusters them. The network is then trained for one pass to predict those clusters from
    augmented objects: images are shifted by up to an eighth of the side, and those with colours
    are also mirrored by chance. Clusters are sampled uniformly, and the last linear layer is fresh.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    network : {"auto", "conv", "dense", "vgg16"}
        A small convnet for images and one hidden layer for vectors, or the paper's VGG16.
    epochs : int, optional
        Rounds of clustering and training.
    learning_rate : float, optional
        SGD's rate, with momentum .9 and weight decay 1e-5.
    batch_size : int, optional
        Objects per step.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume, deterministic
        See `DeepClusterer`.
    n_features : int, optional
        Features the network gives.
    n_components : int, optional
        Dimensions kept by the whitening, which makes all of them equally important: 256 in the
        paper's preset, twice the number of clusters in the small one.

    Attributes
    ----------
    labels_, history_, n_iter_
        See `DeepClusterer`.
    embedding_ : array of shape (n, n_components)
        Whitened features of the training data.
    cluster_centers_ : array of shape (n_clusters, n_components)
        Centres among the whitened features.

    References
    ----------
    Caron, Bojanowski, Joulin, Douze, "Deep clustering for unsupervised learning of visual
    features", ECCV 2018.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (20, 5)) for c in (0, 1)])
    >>> DeepCluster(2, epochs=1, device="cpu", random_state=0).fit_predict(X).shape
    (40,)
    """

    n_features: int | None = None
    n_components: int | None = None
    whitening_mean_: np.ndarray = field(init=False)
    whitening_projection_: np.ndarray = field(init=False)

    _presets = {  # noqa: RUF012
        "paper": {
            "n_features": 256, "n_components": 256, "width": 32, "batch_size": 256,
            "learning_rate": 0.05, "epochs": 200,
        },
        "small": {
            "n_features": 64, "n_components": None, "width": 16, "batch_size": 64,
            "learning_rate": 0.05, "epochs": 30,
        },
    }  # fmt: skip

    def _settings(self, device: torch.device) -> dict[str, Any]:
        check_count("n_clusters", self.n_clusters)
        settings = super()._settings(device)
        # Clusters differ in fewer dimensions than there are clusters; the rest is mostly noise.
        return {"n_components": 2 * self.n_clusters} | {
            key: value for key, value in settings.items() if value is not None
        }

    def _check_settings(self, settings: dict[str, Any]) -> None:
        check_count("n_components", settings["n_components"])

    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        check_choice("network", self.network, ("auto", "conv", "dense", "vgg16"))
        options = {"n_features": settings["n_features"], "width": settings["width"]}
        return NetworkPlan("deepcluster", options | {"blocks": self.network}, "he")

    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        n, device = len(trainer.data), trainer.device
        top = trainer.add("top", nn.Linear(settings["n_features"], self.n_clusters))
        labels = trainer.once("labels", lambda: torch.zeros(n, dtype=torch.long))
        trained, rate = [*network.parameters(), *top.parameters()], settings["learning_rate"]
        optimizer = torch.optim.SGD(trained, lr=rate, momentum=0.9, weight_decay=1e-5)
        latest: list[Outcome] = []

        def clustered(purpose: str) -> Outcome:
            features = trainer.map(network).cpu().numpy()
            whitening = Whitening.fitted(features, settings["n_components"])
            white = whitening.apply(features)
            seed = trainer.seed_for(purpose)
            model = kmeans(torch.from_numpy(white), self.n_clusters, n_init=3, seed=seed)
            centers = model.cluster_centers_.astype(np.float32)
            arrays = {f"whitening_{name}_": part for name, part in whitening._asdict().items()}
            return Outcome(model.labels_.astype(np.int64), white, centers, arrays)

        def relabel(epoch: int) -> None:
            latest[:] = [clustered(f"kmeans-{epoch}")]
            labels.copy_(torch.as_tensor(latest[0].labels, device=device))
            # A fresh top layer, in place: a recorded step goes on reading these tensors.
            generator = trainer.generator_for(f"top-{epoch}")
            with torch.no_grad():
                drawn = torch.empty(top.weight.shape).normal_(0.0, 0.01, generator=generator)
                top.weight.copy_(drawn)
                top.bias.zero_()
                for parameter in top.parameters():
                    momentum = optimizer.state[parameter].get("momentum_buffer")
                    if momentum is not None:
                        momentum.zero_()

        def order(epoch: int) -> Tensor:
            seed = trainer.seed_for(f"order-{epoch}")
            return torch.from_numpy(_uniform_over_clusters(labels.cpu().numpy(), seed))

        def loss(rows: Tensor) -> Tensor:
            x = trainer.data[rows]
            if x.ndim == 4:
                x = random_crops(x, trainer.noise)
            return cross_entropy(top(network(x)), labels[rows])

        stage = Stage("cluster", settings["epochs"], loss, optimizer, order=order)
        stage.before_epoch, stage.outcome = relabel, lambda: latest[0]
        trainer.run(stage)
        return clustered("kmeans-final")

    def _finish(self, embedding: np.ndarray) -> np.ndarray:
        return Whitening(self.whitening_mean_, self.whitening_projection_).apply(embedding)


def _uniform_over_clusters(labels: np.ndarray, seed: int) -> np.ndarray:
    """As many row numbers as there are objects, every cluster equally often, in random order."""
    rng = np.random.default_rng(seed)
    clusters = np.unique(labels)
    wanted = -(-len(labels) // len(clusters))
    members = [np.flatnonzero(labels == c) for c in clusters]
    drawn = [rng.choice(rows, wanted, replace=len(rows) < wanted) for rows in members]
    return rng.permutation(np.concatenate(drawn))[: len(labels)]
