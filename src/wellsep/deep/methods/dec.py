"""DEC and IDEC: soft Student-t memberships trained towards sharpened copies of themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wellsep._checks.arrays import check_number
from wellsep.deep.latent import PAPER, SMALL, LatentClusterer
from wellsep.deep.losses import divergence, reconstruction, sharpened, soft_assignment
from wellsep.deep.training import Outcome, Stage, Trainer, adam


@dataclass(eq=False, repr=False, kw_only=True)
class DEC(LatentClusterer):
    """Deep embedded clustering: the encoder learns from its own confident assignments.

    Memberships are q_ik ∝ (1 + ‖z_i−μ_k‖²)⁻¹. They are trained towards targets
    p_ik ∝ q_ik²/Σ_i q_ik, refreshed every epoch, by minimising KL(P‖Q) over encoder and centres. It
    ends when fewer than `tol` of the labels change in an epoch.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    network : {"auto", "dense", "conv"}
        Autoencoder; "auto" is dense, d-500-500-2000-10 in the paper's preset.
    epochs : int, optional
        Greatest number of epochs of the second stage.
    learning_rate : float, optional
        SGD's rate in the second stage (momentum .9).
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
    tol : float
        Share of labels that may still change when training ends.

    Attributes
    ----------
    labels_, history_, n_iter_
        See `DeepClusterer`.
    embedding_ : array of shape (n, n_latent)
        Latent points of the training data.
    cluster_centers_ : array of shape (n_clusters, n_latent)
        Centres in the latent space.
    soft_labels_ : array of shape (n, n_clusters)
        Memberships q.

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

    tol: float = 1e-3
    soft_labels_: np.ndarray = field(init=False)

    _presets = {  # noqa: RUF012
        "paper": PAPER | {"pretrain_epochs": 200, "epochs": 100, "learning_rate": 1e-2},
        "small": SMALL | {"pretrain_epochs": 60, "epochs": 30, "learning_rate": 1e-2},
    }

    def _check_settings(self, settings: dict[str, Any]) -> None:
        super()._check_settings(settings)
        check_number("tol", self.tol, 0.0, 1.0)

    def _weight_beside_decoder(self) -> float | None:
        """Weight of the clustering loss where the decoder is trained too; None where it is not."""
        return None

    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        centers = self._centers(trainer, network)
        n = len(trainer.data)
        targets = trainer.once("targets", lambda: torch.zeros(n, self.n_clusters))
        before = trainer.once("labels", lambda: torch.full((n,), -1))
        gamma = self._weight_beside_decoder()

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
            fit = divergence(targets[rows], soft_assignment(z, centers.points))
            return fit if gamma is None else gamma * fit + reconstruction(x, network.decode(z))

        def outcome() -> Outcome:
            soft = memberships().cpu().numpy()
            embedding = trainer.map(network.encode).cpu().numpy()
            points = centers.points.detach().cpu().numpy()
            return Outcome(soft.argmax(axis=1), embedding, points, {"soft_labels_": soft})

        trained, rate = [*network.encoder.parameters(), centers.points], settings["learning_rate"]
        optimizer: torch.optim.Optimizer
        if gamma is None:
            optimizer = torch.optim.SGD(trained, lr=rate, momentum=0.9)
        else:
            optimizer = adam([*trained, *network.decoder.parameters()], rate, trainer.device)
        stage = Stage("cluster", settings["epochs"], loss, optimizer, outcome=outcome)
        stage.before_epoch = refresh
        trainer.run(stage)
        return outcome()


@dataclass(eq=False, repr=False, kw_only=True)
class IDEC(DEC):
    """Improved deep embedded clustering: DEC that keeps the decoder.

    Minimises ‖x − x̂‖²/d + γ·KL(P‖Q), so that the embedding stays faithful to the data.

    Parameters
    ----------
    n_clusters, network, epochs
        See `DEC`.
    learning_rate : float, optional
        Adam's rate in the second stage.
    batch_size : int, optional
        Objects per step.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume, deterministic
        See `DeepClusterer`.
    n_latent, hidden, pretrain_epochs, tol
        See `DEC`.
    gamma : float
        Weight γ of the clustering loss.

    Attributes
    ----------
    labels_, history_, n_iter_, embedding_, cluster_centers_, soft_labels_
        See `DEC`.

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

    gamma: float = 0.1

    _presets = {  # noqa: RUF012
        "paper": DEC._presets["paper"] | {"learning_rate": 1e-3},
        "small": DEC._presets["small"] | {"learning_rate": 1e-3},
    }

    def _check_settings(self, settings: dict[str, Any]) -> None:
        super()._check_settings(settings)
        check_number("gamma", self.gamma, 0.0)

    def _weight_beside_decoder(self) -> float | None:
        return self.gamma
