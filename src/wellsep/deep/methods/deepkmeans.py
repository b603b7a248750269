"""Deep k-means and deep cf-means: an autoencoder and its centres trained together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from wellsep._checks.arrays import check_choice, check_number
from wellsep.deep.latent import PAPER, SMALL, FromAutoencoder, LatentClusterer, check_centers
from wellsep.deep.losses import nearest_center, nearest_two, reconstruction
from wellsep.deep.networks import NetworkPlan, Shape
from wellsep.deep.training import Outcome, Stage, Trainer, adam

SIGNS = {"repel": -1.0, "attract": 1.0}


@dataclass(eq=False, repr=False, kw_only=True)
class DeepKMeans(FromAutoencoder, LatentClusterer):
    """Autoencoder whose latent space and k-means centres are trained together.

    After pretraining on reconstruction, network and centres minimise the batch means of

        λ_rec·‖x − x̂‖²/d + λ_k·‖z − μ_c‖²/m

    with c the nearest centre, d features and m latent dimensions. Both squared errors are means
    over their dimensions, so that a weight means the same for any d and m. Batch-norm on the
    latent keeps its scale from collapsing.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    network : {"auto", "dense", "conv"}
        Autoencoder; "auto" is dense, d-500-500-2000-10 in the paper's preset.
    epochs : int, optional
        Epochs of the second stage.
    learning_rate : float, optional
        AdamW's rate in the second stage; centres move at 0.3 of it.
    batch_size : int, optional
        Objects per step.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume, deterministic
        See `DeepClusterer`.
    n_latent : int, optional
        Latent dimensions.
    hidden : tuple of int, optional
        Widths of the dense network's hidden layers.
    pretrain_epochs : int, optional
        Epochs of the first stage, which trains the autoencoder on reconstruction alone.
    autoencoder : fitted estimator, or path, optional
        A fitted DeepKMeans or DeepCFMeans, or the folder of a saved one, whose network and scaling
        of X to start from in place of pretraining. It is left as it is. One that was fitted with
        0 `epochs` is pretrained only. Where this estimator will be cloned, as in `sweep`, give a
        folder or a `sklearn.frozen.FrozenEstimator`.
    init : {"k-means", "k-means++", "random"} or array of shape (n_clusters, n_latent)
        Starting centres: k-means on the pretrained latent, random latent points, which is what
        the poster's comparison uses, or given ones.
    reconstruction_weight : float
        λ_rec.
    kmeans_weight : float
        λ_k.

    Attributes
    ----------
    labels_, history_, n_iter_
        See `DeepClusterer`.
    embedding_ : array of shape (n, n_latent)
        Latent points of the training data.
    cluster_centers_ : array of shape (n_clusters, n_latent)
        Centres in the latent space.

    References
    ----------
    Yang, Fu, Sidiropoulos, Hong, "Towards k-means-friendly spaces", ICML 2017; Moradi Fard,
    Thonet, Gaussier, "Deep k-means", Pattern Recognition Letters 138 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (20, 5)) for c in (0, 1)])
    >>> model = DeepKMeans(2, pretrain_epochs=2, epochs=1, device="cpu", random_state=0).fit(X)
    >>> model.labels_.shape, model.embedding_.shape, model.reconstruct(X).shape
    ((40,), (40, 10), (40, 5))

    One pretraining may serve many trainings:

    >>> start = DeepKMeans(2, pretrain_epochs=2, epochs=0, device="cpu", random_state=0).fit(X)
    >>> given = {"autoencoder": start, "init": start.embedding_[[0, 30]], "device": "cpu"}
    >>> models = [DeepKMeans(2, kmeans_weight=w, epochs=1, **given).fit(X) for w in (0.1, 1.0)]
    >>> [model.n_iter_ for model in models]
    [1, 1]
    """

    init: Any = "k-means"
    reconstruction_weight: float = 1.0
    kmeans_weight: float = 1.0

    _latent = "batch-norm"
    _lenders = ("DeepKMeans", "DeepCFMeans")
    _of_network = ("n_latent", "hidden", "width")
    _presets = {  # noqa: RUF012
        "paper": PAPER | {"pretrain_epochs": 100, "epochs": 50, "learning_rate": 5e-5},
        "small": SMALL | {"pretrain_epochs": 60, "epochs": 20, "learning_rate": 2e-4},
    }

    def _check_settings(self, settings: dict[str, Any]) -> None:
        super()._check_settings(settings)
        check_centers(self.init, self.n_clusters, settings["n_latent"])
        check_number("reconstruction_weight", self.reconstruction_weight, 0.0)
        check_number("kmeans_weight", self.kmeans_weight, 0.0)

    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        return self._plan_or_given(super()._plan(settings, shape), shape)

    def _separation_weight(self) -> float:
        """Signed weight of the separation term; 0 leaves plain deep k-means."""
        return 0.0

    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        centers = self._centers(trainer, network, self.init)
        sign = self._separation_weight()

        def loss(rows: Tensor) -> Tensor:
            x = trainer.data[rows]
            z = network.encode(x)
            pair = nearest_two(z, centers.points)
            clustering = self.kmeans_weight * pair.own.mean()
            if sign:
                clustering = clustering + sign * pair.margin.square().mean()
            rec = reconstruction(x, network.decode(z))
            return self.reconstruction_weight * rec + clustering / z.shape[1]

        def outcome() -> Outcome:
            z, points = trainer.map(network.encode), centers.points.detach()
            labels = nearest_center(z, points)
            return Outcome(*(part.cpu().numpy() for part in (labels, z, points)))

        rate = settings["learning_rate"]
        groups = [
            {"params": list(network.parameters()), "lr": rate},
            {"params": [centers.points], "lr": 0.3 * rate},
        ]
        optimizer = adam(groups, rate, trainer.device, decay=1e-4)
        epochs = settings["epochs"]
        trainer.run(Stage("cluster", epochs, loss, optimizer, clip=5.0, outcome=outcome))
        return outcome()


@dataclass(eq=False, repr=False, kw_only=True)
class DeepCFMeans(DeepKMeans):
    """Deep k-means with a counterfactual separation term.

    After pretraining, network and centres minimise the batch means of

        λ_rec·‖x − x̂‖²/d + λ_k·‖z − μ_c‖²/m ∓ λ_cf·d_ca(z)²/m

    where d_ca(z) = (‖z−μ_a‖² − ‖z−μ_c‖²)/(2‖μ_c−μ_a‖) is the distance to the plane between the
    nearest centre c and the second nearest a. A point would have to move that far to change its
    cluster. "repel" subtracts the term, so separation grows; "attract" adds it, as the loss is
    printed on the poster. With λ_cf = 0 this is `DeepKMeans`.

    Parameters
    ----------
    n_clusters, network, epochs, learning_rate, batch_size
        See `DeepKMeans`.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume, deterministic
        See `DeepClusterer`.
    n_latent, hidden, pretrain_epochs, autoencoder, init, reconstruction_weight, kmeans_weight
        See `DeepKMeans`.
    cf_weight : float
        λ_cf.
    separation : {"repel", "attract"}
        Sign of the separation term. From random centres, ten seeds on five sets of images and
        pen strokes, "attract" at weight 1 lowered the agreement with the classes on every set;
        "repel" raised its mean a little, and at 0.1 by next to nothing.

    Attributes
    ----------
    labels_, history_, n_iter_, embedding_, cluster_centers_
        See `DeepKMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (20, 5)) for c in (0, 1)])
    >>> model = DeepCFMeans(2, pretrain_epochs=2, epochs=1, device="cpu", random_state=0).fit(X)
    >>> model.predict(X).shape
    (40,)
    """

    cf_weight: float = 0.1
    separation: str = "repel"

    def _check_settings(self, settings: dict[str, Any]) -> None:
        super()._check_settings(settings)
        check_number("cf_weight", self.cf_weight, 0.0)
        check_choice("separation", self.separation, SIGNS)

    def _separation_weight(self) -> float:
        return SIGNS[self.separation] * self.cf_weight
