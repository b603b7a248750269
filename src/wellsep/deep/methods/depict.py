"""DEPICT: a noisy encoder learns the clean encoder's sharpened cluster memberships."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor, nn
from torch.nn import functional as F

from wellsep._checks.arrays import check_choice, check_number, check_numbers, to_numpy
from wellsep.deep.latent import FromAutoencoder, kmeans
from wellsep.deep.linkage.paths import path_integral
from wellsep.deep.losses import (
    balanced,
    cross_entropy,
    directions,
    layered_reconstruction,
    sharpened,
)
from wellsep.deep.networks import DEPICT_LAYERS, NetworkPlan, Shape
from wellsep.deep.training import Outcome, Stage, Trainer, adam

INITS = ("path-integral", "k-means")
TARGETS = {"authors": sharpened, "paper": balanced}
HELD_OUT = 0.1
INNER = 0.1  # weight of hidden layers in the reconstruction


class Softmax(nn.Module):
    """Logits Wz + b of the clusters; W starts from unit directions, b from 0."""

    def __init__(self, directions: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(directions.clone())
        self.bias = nn.Parameter(torch.zeros_like(directions[:, 0]))

    def forward(self, z: Tensor) -> Tensor:
        return F.linear(z, self.weight, self.bias)


@dataclass(eq=False, repr=False, kw_only=True)
class DEPICT(FromAutoencoder):
    """Deep clustering by relative entropy and a joint, layer-wise autoencoder.

    Three stages. First a denoising autoencoder is trained on

        rec = ‖x−x̂‖² + .1·‖h₁−ĥ₁‖² + .1·‖h₂−ĥ₂‖²        (means; h from the clean encoder)

    Its embedding z has one tanh unit per cluster and is clustered. p is softmax(Wz + b), where W
    begins as the clusters' unit centroids. It is trained on balance·rec + CE(noisy p, those
    labels). Then targets q ∝ p²/Σ_i p are taken from the clean encoder each epoch, and
    balance·rec + CE(noisy p, q) is minimised until the targets change no more. Labels are argmax p.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, and of latent dimensions.
    network : {"auto", "conv", "dense", "depict-faces", "depict-ytf"}
        Convolutional for images and dense for vectors, or a paper's choice by name.
    epochs : int, optional
        Greatest number of epochs of the third stage.
    learning_rate : float, optional
        Adam's rate in all stages.
    batch_size : int, optional
        Objects per step.
    preset, device, random_state, checkpoint_dir, checkpoint_every, resume, deterministic
        See `DeepClusterer`.
    autoencoder : fitted estimator, or path, optional
        A fitted DEPICT, or the folder of a saved one, whose network and scaling of X to start from
        in place of pretraining. It is left as it is. One that was fitted with 0 `start_epochs` and
        0 `epochs` is pretrained only. Where this estimator will be cloned, as in `sweep`, give a
        folder or a `sklearn.frozen.FrozenEstimator`.
    balance : float
        Weight of the reconstruction relative to the clustering loss.
    init : {"path-integral", "k-means"} or array of shape (n,)
        Clusters of the autoencoder's embedding: path-integral agglomeration (the paper's choice
        for USPS and MNIST), k-means (for the face sets), or labels 0 … n_clusters−1.
    targets : {"authors", "paper"}
        q ∝ p²/Σ_i p as the authors run it, or q ∝ p/√(Σ_i p) as printed, which does not sharpen
        when clusters are equally large.
    hidden : tuple of int, optional
        Widths of the dense network's hidden layers.
    pretrain_epochs : int, optional
        Greatest number of epochs of the first stage.
    start_epochs : int, optional
        Greatest number of epochs of the second stage.

    Attributes
    ----------
    labels_, history_, n_iter_
        See `DeepClusterer`.
    embedding_ : array of shape (n, n_clusters)
        Latent points of the training data.
    soft_labels_ : array of shape (n, n_clusters)
        Memberships p.
    start_labels_ : array of shape (n,)
        Clusters the second stage started from.
    cluster_centers_ : array of shape (n_clusters, n_clusters)
        W.
    cluster_biases_ : array of shape (n_clusters,)
        b.

    Notes
    -----
    Departs from the original: the tenth that is held out for early stopping is drawn at random,
    not stratified by true labels.

    References
    ----------
    Ghasedi Dizaji, Herandi, Deng, Cai, Huang, "Deep clustering via joint convolutional
    autoencoder embedding and relative entropy minimization", ICCV 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (20, 5)) for c in (0, 1)])
    >>> short = {"pretrain_epochs": 2, "start_epochs": 1, "epochs": 1}
    >>> DEPICT(2, **short, device="cpu", random_state=0).fit(X).soft_labels_.shape
    (40, 2)
    """

    balance: float = 1.0
    init: Any = "path-integral"
    targets: str = "authors"
    hidden: tuple[int, ...] | None = None
    pretrain_epochs: int | None = None
    start_epochs: int | None = None
    soft_labels_: np.ndarray = field(init=False)
    start_labels_: np.ndarray = field(init=False)
    cluster_biases_: np.ndarray = field(init=False)

    _signed = True
    _has_decoder = True
    _lenders = ("DEPICT",)
    _presets = {  # noqa: RUF012
        "paper": {
            "hidden": (500, 500), "width": 50, "batch_size": 100, "learning_rate": 1e-4,
            "pretrain_epochs": 4000, "pretrain_patience": 100, "start_epochs": 1000,
            "start_patience": 5, "epochs": 4000, "stop": 1e-7,
        },
        "small": {
            "hidden": (128, 64), "width": 24, "batch_size": 50, "learning_rate": 1e-3,
            "pretrain_epochs": 60, "pretrain_patience": 10, "start_epochs": 20,
            "start_patience": 3, "epochs": 30, "stop": 1e-6,
        },
    }  # fmt: skip

    def _check_settings(self, settings: dict[str, Any]) -> None:
        check_number("balance", self.balance, 0.0)
        if isinstance(self.init, str):
            check_choice("init", self.init, INITS)
        else:
            check_numbers("init", self.init)
        check_choice("targets", self.targets, TARGETS)

    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        check_choice("network", self.network, ("auto", "conv", "dense", *DEPICT_LAYERS))
        options: dict[str, Any] = {"n_latent": self.n_clusters, "latent": "tanh"}
        if self.network == "dense" or (self.network == "auto" and len(shape) == 1):
            options |= {"hidden": settings["hidden"], "noise": (0.1, 0.1)}
            plan = NetworkPlan("dense-autoencoder", options)
        else:
            layers = self.network if self.network in DEPICT_LAYERS else "auto"
            options |= {"layers": layers, "width": settings["width"]}
            plan = NetworkPlan("conv-autoencoder", options)
        plan = self._plan_or_given(plan, shape)
        if plan.options["n_latent"] != self.n_clusters:
            raise ValueError(
                f"n_clusters must be the autoencoder's latent dimensions "
                f"({plan.options['n_latent']}), got {self.n_clusters}."
            )
        return plan

    def _pretrain(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> None:
        held_out, rows = _split(trainer)

        def loss(rows: Tensor) -> Tensor:
            x = trainer.data[rows]
            return _reconstructions(network, x, network.encoded_layers(x, noisy=True)[-1])

        def per_object(x: Tensor) -> Tensor:
            *clean, z = network.encoded_layers(x)
            decoded = network.decoded_layers(z)
            terms = [
                (d - c).square().flatten(1).mean(dim=1) for c, d in zip(clean, decoded, strict=True)
            ]
            return terms[0] + INNER * sum(terms[1:])

        def error() -> float:
            return float(trainer.map(per_object, held_out).mean())

        optimizer = adam(network.parameters(), settings["learning_rate"], trainer.device)
        stage = Stage("pretrain", settings["pretrain_epochs"], loss, optimizer, rows=rows)
        stage.watch, stage.patience = error, settings["pretrain_patience"]
        trainer.run(stage)

    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        held_out, rows = _split(trainer)
        z = trainer.map(network.encode)
        start = trainer.once("start", lambda: self._start(trainer, z)).long()
        head = trainer.add("head", Softmax(directions(z, start, self.n_clusters)))

        def optimizer() -> torch.optim.Optimizer:
            trained = [*network.parameters(), *head.parameters()]
            return adam(trained, settings["learning_rate"], trainer.device)

        def memberships(subset: Tensor | None = None) -> Tensor:
            return trainer.map(lambda x: head(network.encode(x)).softmax(dim=1), subset)

        def loss_towards(targets: Tensor) -> Any:
            def loss(rows: Tensor) -> Tensor:
                x = trainer.data[rows]
                noisy = network.encoded_layers(x, noisy=True)[-1]
                fit = cross_entropy(head(noisy), targets[rows])
                return self.balance * _reconstructions(network, x, noisy) + fit

            return loss

        def disagreement() -> float:
            labels = memberships(held_out).argmax(dim=1).cpu().numpy()
            return -normalized_mutual_info_score(start[held_out].cpu().numpy(), labels)

        def outcome() -> Outcome:
            soft = memberships().cpu().numpy()
            arrays = {
                "soft_labels_": soft,
                "start_labels_": start.cpu().numpy(),
                "cluster_biases_": head.bias.detach().cpu().numpy(),
            }
            embedding = trainer.map(network.encode).cpu().numpy()
            centers = head.weight.detach().cpu().numpy()
            return Outcome(soft.argmax(axis=1), embedding, centers, arrays)

        epochs = settings["start_epochs"]
        first = Stage("start", epochs, loss_towards(start), optimizer(), rows=rows, outcome=outcome)
        first.watch, first.patience = disagreement, settings["start_patience"]
        trainer.run(first)
        q = trainer.once("targets", lambda: torch.zeros(len(trainer.data), self.n_clusters))

        def refresh(epoch: int) -> bool:
            fresh = TARGETS[self.targets](memberships())
            change = float((fresh - q).square().mean())
            q.copy_(fresh)
            return epoch > 0 and change < settings["stop"]

        second = Stage("cluster", settings["epochs"], loss_towards(q), optimizer(), outcome=outcome)
        second.before_epoch = refresh
        trainer.run(second)
        return outcome()

    def _start(self, trainer: Trainer, z: Tensor) -> np.ndarray:
        if not isinstance(self.init, str):
            return _given_labels(self.init, len(z), self.n_clusters)
        if self.init == "k-means":
            return kmeans(z, self.n_clusters, n_init=40, seed=trainer.seed_for("start")).labels_
        return path_integral(z, self.n_clusters)

    def _assign(self, embedding: np.ndarray) -> np.ndarray:
        return (embedding @ self.cluster_centers_.T + self.cluster_biases_).argmax(axis=1)


def _split(trainer: Trainer) -> tuple[Tensor, Tensor]:
    """A random tenth that is held out, and the rest; too few objects serve as both."""
    n = len(trainer.data)
    order = torch.randperm(n, generator=trainer.generator_for("held out")).to(trainer.device)
    count = int(HELD_OUT * n)
    return (order[:count], order[count:]) if count else (order, order)


def _reconstructions(network: Any, x: Tensor, noisy: Tensor) -> Tensor:
    """Errors of all layers decoded from a noisy embedding, against the clean encoder's."""
    clean = network.encoded_layers(x)
    return layered_reconstruction(clean[:-1], network.decoded_layers(noisy), INNER)


def _given_labels(init: Any, n_objects: int, n_clusters: int) -> np.ndarray:
    labels = to_numpy(init, "init")
    whole = labels.dtype.kind in "iu" and labels.shape == (n_objects,)
    if not whole or not np.array_equal(np.unique(labels), np.arange(n_clusters)):
        raise ValueError(
            f"init must be one of {', '.join(INITS)} or {n_objects} whole numbers that use each of "
            f"0 … {n_clusters - 1}, got shape {labels.shape} and type {labels.dtype}."
        )
    return labels
