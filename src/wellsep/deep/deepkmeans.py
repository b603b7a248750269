"""Deep k-means and deep cf-means: an autoencoder and its centres trained together."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wellsep._checks import check_choice, check_count, check_number
from wellsep.deep.base import Outcome
from wellsep.deep.latent import Centers, check_centers, nearest_center, pretrain, starting_centers
from wellsep.deep.losses import nearest_two, reconstruction
from wellsep.deep.networks import NetworkPlan, Shape
from wellsep.deep.pretrained import FromAutoencoder
from wellsep.deep.training import Stage, Trainer, adam

SIGNS = {"repel": -1.0, "attract": 1.0}


def autoencoder_plan(
    network: str, settings: dict[str, Any], shape: Shape, latent: str
) -> NetworkPlan:
    """The dense or convolutional autoencoder that `network` names."""
    check_choice("network", network, ("auto", "dense", "conv"))
    if network == "conv":
        options = {"n_latent": settings["n_latent"], "latent": latent, "noise": ()}
        return NetworkPlan("conv-autoencoder", options | {"width": settings["width"]})
    return NetworkPlan(
        "dense-autoencoder",
        {"n_latent": settings["n_latent"], "hidden": settings["hidden"], "latent": latent},
    )


class DeepKMeans(FromAutoencoder):
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
    n_latent : int, optional
        Latent dimensions m.
    hidden : tuple of int, optional
        Widths of the dense network's hidden layers.
    init : {"k-means", "k-means++", "random"} or array of shape (n_clusters, n_latent)
        Starting centres: k-means on the pretrained latent, random latent points, which is what
        the poster's comparison uses, or given ones.
    autoencoder : fitted DeepKMeans or DeepCFMeans, or path, optional
        Model, or folder of a saved one, whose network and scaling of X to start from in place of
        pretraining; its own network is left as it is. ``epochs=0`` makes one that is pretrained
        only. Where the model will be cloned, as in `sweep`, give a folder or a
        `sklearn.frozen.FrozenEstimator`.
    reconstruction_weight, kmeans_weight : float
        λ_rec and λ_k.
    pretrain_epochs, epochs : int, optional
        Epochs of the two stages.
    pretrain_learning_rate, learning_rate : float, optional
        Adam's rate in the first, AdamW's in the second stage; centres move at 0.3 of it.
    batch_size : int, optional
        Objects per step.
    preset : {"auto", "paper", "small"}
        Values of the parameters that are None: the paper's, or reduced ones for a CPU. "auto"
        takes the paper's on CUDA.
    device : str
        "auto", "cpu", "cuda" or "cuda:N".
    random_state : int, RandomState or None
        The same number gives the same result on the same device.
    checkpoint_dir : path, optional
        Folder to keep the training in; fitting again goes on where it was interrupted.
    checkpoint_every : int, optional
        Epochs between checkpoints that are also written as runs under `checkpoint_dir`/runs.
    resume : bool
        Whether to go on with what lies in `checkpoint_dir`.

    Attributes
    ----------
    labels_, embedding_ : array
        Clusters and latent points of the training data.
    cluster_centers_ : array of shape (n_clusters, n_latent)
        Centres in the latent space.
    history_ : list of dict
        Stage, epoch and loss of every epoch.
    n_iter_ : int
        Epochs run.

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

    _has_decoder = True
    _lenders = ("DeepKMeans", "DeepCFMeans")
    _of_network = ("n_latent", "hidden", "width")
    _presets = {  # noqa: RUF012
        "paper": {
            "n_latent": 10, "hidden": (500, 500, 2000), "width": 50, "batch_size": 256,
            "pretrain_epochs": 100, "pretrain_learning_rate": 1e-3,
            "epochs": 50, "learning_rate": 5e-5,
        },
        "small": {
            "n_latent": 10, "hidden": (256, 128), "width": 16, "batch_size": 64,
            "pretrain_epochs": 60, "pretrain_learning_rate": 1e-3,
            "epochs": 20, "learning_rate": 2e-4,
        },
    }  # fmt: skip

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        network: str = "auto",
        n_latent: int | None = None,
        hidden: tuple[int, ...] | None = None,
        init: Any = "k-means",
        autoencoder: Any = None,
        reconstruction_weight: float = 1.0,
        kmeans_weight: float = 1.0,
        pretrain_epochs: int | None = None,
        epochs: int | None = None,
        pretrain_learning_rate: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        preset: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_every: int | None = None,
        resume: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.network = network
        self.n_latent = n_latent
        self.hidden = hidden
        self.init = init
        self.autoencoder = autoencoder
        self.reconstruction_weight = reconstruction_weight
        self.kmeans_weight = kmeans_weight
        self.pretrain_epochs = pretrain_epochs
        self.epochs = epochs
        self.pretrain_learning_rate = pretrain_learning_rate
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.preset = preset
        self.device = device
        self.random_state = random_state
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.resume = resume

    def _check_settings(self, settings: dict[str, Any]) -> None:
        check_count("n_latent", settings["n_latent"])
        check_centers(self.init, self.n_clusters, settings["n_latent"])
        for name in ("learning_rate", "pretrain_learning_rate"):
            check_number(name, settings[name], 0.0, open_left=True)
        check_number("reconstruction_weight", self.reconstruction_weight, 0.0)
        check_number("kmeans_weight", self.kmeans_weight, 0.0)

    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        plan = autoencoder_plan(self.network, settings, shape, "batch-norm")
        return self._plan_or_given(plan, shape)

    def _separation_weight(self) -> float:
        """Signed weight of the separation term; 0 leaves plain deep k-means."""
        return 0.0

    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        if self._given is None:
            pretrain(trainer, network, settings)
        else:
            self._take_given(trainer, network)

        def start() -> np.ndarray:
            latent = trainer.map(network.encode)
            seed = trainer.seed_for("centers")
            return starting_centers(latent, self.n_clusters, self.init, seed)

        points = trainer.once("start", start).to(torch.float32)
        centers = trainer.add("centers", Centers(points))
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

        def outcome() -> tuple[np.ndarray, np.ndarray]:
            z = trainer.map(network.encode)
            labels = nearest_center(z, centers.points.detach())
            return labels.cpu().numpy(), z.cpu().numpy()

        rate = settings["learning_rate"]
        groups = [
            {"params": list(network.parameters()), "lr": rate},
            {"params": [centers.points], "lr": 0.3 * rate},
        ]
        trainer.run(
            Stage(
                "cluster",
                settings["epochs"],
                loss,
                adam(groups, rate, trainer.device, decay=1e-4),
                clip=5.0,
                outcome=outcome,
            )
        )
        labels, embedding = outcome()
        return Outcome(labels, embedding, centers.points.detach().cpu().numpy())


class DeepCFMeans(DeepKMeans):
    """Deep k-means with a counterfactual separation term.

    After pretraining, network and centres minimise the batch means of

        λ_rec·‖x − x̂‖²/d + λ_k·‖z − μ_c‖²/m ∓ λ_cf·d_ca(z)²/m

    where d_ca(z) = (‖z−μ_a‖² − ‖z−μ_c‖²)/(2‖μ_c−μ_a‖) is the distance to the plane between the
    nearest centre c and the second nearest a: what a point would have to move to change its
    cluster. "repel" subtracts the term (separation grows), "attract" adds it, as the loss is
    printed on the poster. With λ_cf = 0 this is `DeepKMeans`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    cf_weight : float
        λ_cf.
    separation : {"repel", "attract"}
        Sign of the separation term. From random centres, ten seeds on five sets of images and
        pen strokes, "attract" at weight 1 lowered the agreement with the classes on every set;
        "repel" raised its mean a little, and at 0.1 by next to nothing.
    network, n_latent, hidden, init, autoencoder, reconstruction_weight, kmeans_weight
        See `DeepKMeans`.
    pretrain_epochs, epochs, pretrain_learning_rate, learning_rate, batch_size
        See `DeepKMeans`.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume
        See `DeepKMeans`.

    Attributes
    ----------
    labels_, embedding_, cluster_centers_, history_, n_iter_
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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        cf_weight: float = 0.1,
        separation: str = "repel",
        network: str = "auto",
        n_latent: int | None = None,
        hidden: tuple[int, ...] | None = None,
        init: Any = "k-means",
        autoencoder: Any = None,
        reconstruction_weight: float = 1.0,
        kmeans_weight: float = 1.0,
        pretrain_epochs: int | None = None,
        epochs: int | None = None,
        pretrain_learning_rate: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        preset: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_every: int | None = None,
        resume: bool = True,
    ) -> None:
        super().__init__(
            n_clusters,
            network=network,
            n_latent=n_latent,
            hidden=hidden,
            init=init,
            autoencoder=autoencoder,
            reconstruction_weight=reconstruction_weight,
            kmeans_weight=kmeans_weight,
            pretrain_epochs=pretrain_epochs,
            epochs=epochs,
            pretrain_learning_rate=pretrain_learning_rate,
            learning_rate=learning_rate,
            batch_size=batch_size,
            preset=preset,
            device=device,
            random_state=random_state,
            checkpoint_dir=checkpoint_dir,
            checkpoint_every=checkpoint_every,
            resume=resume,
        )
        self.cf_weight = cf_weight
        self.separation = separation

    def _check_settings(self, settings: dict[str, Any]) -> None:
        super()._check_settings(settings)
        check_number("cf_weight", self.cf_weight, 0.0)
        check_choice("separation", self.separation, SIGNS)

    def _separation_weight(self) -> float:
        return SIGNS[self.separation] * self.cf_weight
