"""DEC and IDEC: soft Student-t memberships drawn towards their own sharpened targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from wellsep._checks import check_count, check_number
from wellsep.deep.base import DeepClusterer, Outcome
from wellsep.deep.deepkmeans import autoencoder_plan
from wellsep.deep.latent import Centers, kmeans, pretrain
from wellsep.deep.losses import divergence, reconstruction, sharpened, soft_assignment
from wellsep.deep.networks import NetworkPlan, Shape
from wellsep.deep.training import Stage, Trainer, adam


class DEC(DeepClusterer):
    """Deep embedded clustering: the encoder learns from its own confident assignments.

    Memberships q_ik ∝ (1 + ‖z_i−μ_k‖²)⁻¹ are drawn to targets p_ik ∝ q_ik²/Σ_i q_ik, refreshed
    every epoch, by minimising KL(P‖Q) over encoder and centres. It ends when fewer than `tol` of
    the labels change in an epoch.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    network : {"auto", "dense", "conv"}
        Autoencoder; "auto" is dense, d-500-500-2000-10 in the paper's preset.
    n_latent : int, optional
        Latent dimensions.
    hidden : tuple of int, optional
        Widths of the dense network's hidden layers.
    tol : float
        Share of labels that may still change when training ends.
    pretrain_epochs, epochs : int, optional
        Greatest number of epochs of the two stages.
    pretrain_learning_rate, learning_rate : float, optional
        Adam's rate in the first, SGD's in the second stage (momentum .9).
    batch_size : int, optional
        Objects per step.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume
        See `DeepKMeans`.

    Attributes
    ----------
    labels_, embedding_, cluster_centers_, history_, n_iter_
        See `DeepKMeans`.

    Notes
    -----
    Departs from the paper: the autoencoder is pretrained end to end with Adam instead of layer by
    layer as a stack of denoisers, and targets are refreshed every epoch instead of every T steps.

    References
    ----------
    Xie, Girshick, Farhadi, "Unsupervised deep embedding for clustering analysis", ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (20, 5)) for c in (0, 1)])
    >>> model = DEC(2, pretrain_epochs=2, epochs=1, device="cpu", random_state=0).fit(X)
    >>> model.soft_labels_.shape
    (40, 2)
    """

    _has_decoder = True
    _presets = {  # noqa: RUF012
        "paper": {
            "n_latent": 10, "hidden": (500, 500, 2000), "width": 50, "batch_size": 256,
            "pretrain_epochs": 200, "pretrain_learning_rate": 1e-3,
            "epochs": 100, "learning_rate": 1e-2,
        },
        "small": {
            "n_latent": 10, "hidden": (256, 128), "width": 16, "batch_size": 64,
            "pretrain_epochs": 60, "pretrain_learning_rate": 1e-3,
            "epochs": 30, "learning_rate": 1e-2,
        },
    }  # fmt: skip

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        network: str = "auto",
        n_latent: int | None = None,
        hidden: tuple[int, ...] | None = None,
        tol: float = 1e-3,
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
        self.tol = tol
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
        for name in ("learning_rate", "pretrain_learning_rate"):
            check_number(name, settings[name], 0.0, open_left=True)
        check_number("tol", self.tol, 0.0, 1.0)

    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        return autoencoder_plan(self.network, settings, shape, "linear")

    def _weights(self) -> tuple[float, float]:
        """Weights of reconstruction and of the clustering loss."""
        return 0.0, 1.0

    def _optimizer(self, parameters: Any, rate: float, device: torch.device) -> Any:
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9)

    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        pretrain(trainer, network, settings)

        def start() -> np.ndarray:
            latent = trainer.map(network.encode)
            seed = trainer.seed_for("centers")
            return kmeans(latent, self.n_clusters, n_init=20, seed=seed).centers

        points = trainer.once("start", start).to(torch.float32)
        centers = trainer.add("centers", Centers(points))
        n = len(trainer.data)
        targets = trainer.once("targets", lambda: torch.zeros(n, self.n_clusters))
        before = trainer.once("labels", lambda: torch.full((n,), -1))
        rec_weight, weight = self._weights()

        def memberships() -> Tensor:
            return trainer.map(lambda x: soft_assignment(network.encode(x), centers.points))

        def refresh(epoch: int) -> bool:
            q = memberships()
            labels = q.argmax(dim=1)
            changed = float((labels != before).float().mean())
            # In place: the loss of a recorded step reads this very tensor.
            targets.copy_(sharpened(q))
            before.copy_(labels)
            return epoch > 0 and changed < self.tol

        def loss(rows: Tensor) -> Tensor:
            x = trainer.data[rows]
            z = network.encode(x)
            total = weight * divergence(targets[rows], soft_assignment(z, centers.points))
            if rec_weight:
                total = total + rec_weight * reconstruction(x, network.decode(z))
            return total

        def outcome() -> tuple[np.ndarray, np.ndarray]:
            return memberships().argmax(dim=1).cpu().numpy(), embedding()

        def embedding() -> np.ndarray:
            return trainer.map(network.encode).cpu().numpy()

        trained = [*network.encoder.parameters(), centers.points]
        if rec_weight:
            trained += network.decoder.parameters()
        trainer.run(
            Stage(
                "cluster",
                settings["epochs"],
                loss,
                self._optimizer(trained, settings["learning_rate"], trainer.device),
                before_epoch=refresh,
                outcome=outcome,
            )
        )
        soft = memberships().cpu().numpy()
        points = centers.points.detach().cpu().numpy()
        return Outcome(soft.argmax(axis=1), embedding(), points, {"soft_labels_": soft})


class IDEC(DEC):
    """Improved deep embedded clustering: DEC that keeps the decoder.

    Minimises ‖x − x̂‖²/d + γ·KL(P‖Q), so that the embedding stays faithful to the data.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    gamma : float
        Weight γ of the clustering loss.
    network, n_latent, hidden, tol
        See `DEC`.
    pretrain_epochs, epochs, pretrain_learning_rate, learning_rate, batch_size
        See `DEC`; both stages use Adam.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume
        See `DeepKMeans`.

    Attributes
    ----------
    labels_, embedding_, cluster_centers_, history_, n_iter_
        See `DeepKMeans`.

    References
    ----------
    Guo, Gao, Liu, Yin, "Improved deep embedded clustering with local structure preservation",
    IJCAI 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (20, 5)) for c in (0, 1)])
    >>> model = IDEC(2, pretrain_epochs=2, epochs=1, device="cpu", random_state=0).fit(X)
    >>> model.transform(X).shape
    (40, 10)
    """

    _presets = {  # noqa: RUF012
        "paper": DEC._presets["paper"] | {"learning_rate": 1e-3},
        "small": DEC._presets["small"] | {"learning_rate": 1e-3},
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 0.1,
        network: str = "auto",
        n_latent: int | None = None,
        hidden: tuple[int, ...] | None = None,
        tol: float = 1e-3,
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
            tol=tol,
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
        self.gamma = gamma

    def _check_settings(self, settings: dict[str, Any]) -> None:
        super()._check_settings(settings)
        check_number("gamma", self.gamma, 0.0)

    def _weights(self) -> tuple[float, float]:
        return 1.0, self.gamma

    def _optimizer(self, parameters: Any, rate: float, device: torch.device) -> Any:
        return adam(parameters, rate, device)
