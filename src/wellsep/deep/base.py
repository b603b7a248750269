"""What all deep clusterers share: reading X, one fit around the loop, predict, save and load."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_finite_objects,
    check_number,
    is_frame,
    name_x,
    to_table,
)
from wellsep._checks.values import (
    check_flag,
    check_items,
    check_mapping,
    check_path,
    check_random_state,
)
from wellsep._files.arrays import digest
from wellsep._sklearn_callbacks import CallbackSupportMixin, with_callbacks
from wellsep.deep.checkpoints import Checkpoint, plain, read_saved, restore, save_to
from wellsep.deep.data import Data, Scaling, choose_device, from_layout, reproducible, to_layout
from wellsep.deep.losses import nearest_center
from wellsep.deep.networks import NetworkPlan, Shape, build_network
from wellsep.deep.training import Outcome, Reported, Trainer
from wellsep.runs import save_run

# Parameters that say where and how often something is kept, not what is made.
_WHERE = {"device", "checkpoint_dir", "checkpoint_every", "resume"}


MYPY = False  # mypy takes this name for True

if MYPY:
    # scikit-learn has no types: under bases of unknown type any keyword would pass.
    class _Estimator:
        def __getattr__(self, name: str) -> Any: ...
        def __sklearn_tags__(self) -> Any: ...
else:

    class _Estimator(
        CallbackSupportMixin,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
        ClusterMixin,
        BaseEstimator,
    ):
        """A clusterer that also transforms and calls back while it trains."""


@dataclass(eq=False, repr=False, kw_only=True)
class DeepClusterer(_Estimator, ABC):
    """Base of the deep clusterers, with what all of them share; not used on its own.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    network : str
        Network to train; "auto" chooses by the shape of the objects.
    epochs : int, optional
        Greatest number of epochs.
    learning_rate : float, optional
        Learning rate.
    batch_size : int, optional
        Objects per step.
    preset : {"auto", "paper", "small"}
        Values of the parameters that are None: the paper's, or reduced ones for a CPU. "auto"
        takes the paper's on CUDA.
    device : str
        "auto", "cpu", "cuda" or "cuda:N".
    random_state : int, RandomState or None
        The same number gives the same result on the same device with as many threads.
    checkpoint_dir : path, optional
        Folder to keep the training in; fitting again goes on where it was interrupted.
    checkpoint_every : int, optional
        Epochs between checkpoints that are also written as runs under `checkpoint_dir`/runs.
    resume : bool
        Whether to go on with what lies in `checkpoint_dir`.
    deterministic : bool
        Whether to train on one thread, so that the result on a CPU does not depend on the number
        of threads. It takes longer.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters of the training data.
    embedding_ : array of shape (n, features)
        Embedding of the training data.
    cluster_centers_ : array of shape (n_clusters, features)
        Centres in the embedding.
    history_ : list of dict
        Stage, epoch and loss of every epoch.
    n_iter_ : int
        Epochs run.
    """

    n_clusters: int = field(default=8, kw_only=False)
    network: str = "auto"
    epochs: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    preset: str = "auto"
    device: str = "auto"
    random_state: Any = None
    checkpoint_dir: Any = None
    checkpoint_every: int | None = None
    resume: bool = True
    deterministic: bool = False

    _presets: ClassVar[dict[str, dict[str, Any]]] = {}
    _signed = False  # whether images are scaled to [−1, 1] instead of [0, 1]
    _has_decoder = False

    # -- what a method fills in ------------------------------------------------------------------

    @abstractmethod
    def _plan(self, settings: dict[str, Any], shape: Shape) -> NetworkPlan:
        """Which network to build for objects of a shape."""

    @abstractmethod
    def _train(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> Outcome:
        """Train the network to cluster, stage by stage."""

    def _pretrain(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> None:
        """Train the network before it clusters, where a method does so."""

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Refuse values no training can use."""

    def _scaling(self, array: np.ndarray) -> Scaling:
        return Scaling.fitted(array, signed=self._signed and array.ndim == 4)

    def _plain_params(self) -> dict[str, Any]:
        return plain(self.get_params(deep=False))

    def _finish(self, embedding: np.ndarray) -> np.ndarray:
        """What is done to the network's features before they are the embedding."""
        return embedding

    def _assign(self, embedding: np.ndarray) -> np.ndarray:
        """Labels of embedded objects: the nearest centre's."""
        points, centers = (torch.as_tensor(a) for a in (embedding, self.cluster_centers_))
        return nearest_center(points, centers).numpy()

    # -- fit -------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Train on X.

        Parameters
        ----------
        X : array of shape (n, features), (n, height, width) or (n, height, width, channels)
            Objects; bytes or floats.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        self
        """
        context = self._init_callback_context(max_subtasks=None)
        device = choose_device(self.device)
        array = self._read(X, reset=True)
        settings = self._settings(device)
        self._check(settings, array)
        scaling = self._scaling(array)
        plan = self._plan(settings, tuple(array.shape[1:]))
        data = Data(array, scaling, device)
        trainer = self._trainer = self._trainer_for(array, data, settings, context)
        try:
            with reproducible(device, one_thread=self.deterministic):
                network = build_network(plan, trainer.data.shape, trainer.generator_for("weights"))
                trainer.add("network", network)
                self.plan_, self.scaling_, self.settings_ = plan, scaling, settings
                self.device_, self.object_shape_ = str(device), trainer.data.shape
                self._begin(trainer, network, settings)
                outcome = self._train(trainer, network, settings)
            trainer.close()
            self._publish(outcome, trainer)
            context.call_on_fit_task_end(estimator=self)
        finally:
            for name in ("_trainer", "_given"):
                self.__dict__.pop(name, None)
        return self

    def _begin(self, trainer: Trainer, network: Any, settings: dict[str, Any]) -> None:
        self._pretrain(trainer, network, settings)

    def _read(self, X: Any, *, reset: bool) -> np.ndarray:
        if not is_frame(X) and not sp.issparse(X):  # scikit-learn's check refuses sparse X
            X = to_table(X)
        X = name_x(
            validate_data, self, X, reset=reset, allow_nd=True, ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )  # fmt: skip
        check_finite_objects(X)
        if reset:
            self._n_dimensions = X.ndim
        elif X.ndim != self._n_dimensions:
            raise ValueError(
                f"X must have the {self._n_dimensions} dimensions fit saw, got shape {X.shape}."
            )
        array = to_layout(X)
        if not reset and tuple(array.shape[1:]) != self.object_shape_:
            raise ValueError(
                f"X must hold objects of the shape fit saw, {self.object_shape_} (channels "
                f"first), got {tuple(array.shape[1:])}."
            )
        return array

    def _settings(self, device: torch.device) -> dict[str, Any]:
        """The preset's values, and over them the parameters that are not None."""
        check_choice("preset", self.preset, ("auto", *self._presets))
        preset = self.preset
        if preset == "auto":
            preset = "paper" if device.type == "cuda" else "small"
        defaults = self._presets[preset]
        given = {k: v for k, v in self.get_params(deep=False).items() if k in defaults}
        return {"preset": preset} | defaults | {k: v for k, v in given.items() if v is not None}

    def _check(self, settings: dict[str, Any], array: np.ndarray) -> None:
        check_count("n_clusters", self.n_clusters, 1)
        if self.n_clusters > len(array):
            raise ValueError(
                f"n_clusters must be at most the number of objects ({len(array)}), "
                f"got {self.n_clusters}."
            )
        distinct: set[bytes] = set()
        for row in array:
            distinct.add(row.tobytes())
            if len(distinct) == self.n_clusters:
                break
        else:
            raise ValueError(
                f"X must have at least as many distinct objects as n_clusters "
                f"({self.n_clusters}), got {len(distinct)}."
            )
        _check_training(settings)
        if self.checkpoint_every is not None:
            check_count("checkpoint_every", self.checkpoint_every)
        if self.checkpoint_dir is not None:
            check_path("checkpoint_dir", self.checkpoint_dir)
        check_flag("resume", self.resume)
        check_flag("deterministic", self.deterministic)
        check_random_state(self.random_state)
        self._check_settings(settings)

    def _trainer_for(
        self, array: np.ndarray, data: Data, settings: dict[str, Any], context: Any
    ) -> Trainer:
        folder = self.checkpoint_dir
        identity: dict[str, Any] = {}
        if folder is not None:
            # A training may go on under other values of these.
            other = {*_WHERE, "random_state", "deterministic"}
            params = {k: v for k, v in self._plain_params().items() if k not in other}
            identity = {"method": type(self).__name__, "params": params | plain(settings)}
            identity["data"] = digest(array)
            if isinstance(self.random_state, int | np.integer):
                identity["random_state"] = int(self.random_state)
        return Trainer(
            data,
            batch_size=settings["batch_size"],
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            checkpoint=Checkpoint(folder, identity, resume=self.resume),
            progress=Reported(self, context),
            save_every=self.checkpoint_every,
            save_outcome=None if folder is None else self._save_outcome,
        )

    def _save_outcome(self, stage: str, epoch: int, outcome: Outcome) -> None:
        save_run(
            Path(self.checkpoint_dir) / "runs",
            outcome.embedding,
            outcome.labels,
            name=f"{stage}-{epoch:05d}",
            params=self._run_params(),
            metadata={"stage": stage, "epoch": epoch, "loss": self._trainer.history[-1]["loss"]},
            overwrite=True,
        )

    def _publish(self, outcome: Outcome, trainer: Trainer) -> None:
        self.network_: Any = trainer.modules["network"]
        self.labels_, self.embedding_ = outcome.labels, outcome.embedding
        self.cluster_centers_ = outcome.centers
        for name, array in outcome.arrays.items():
            setattr(self, name, array)
        self.history_ = trainer.history
        self.n_iter_ = len(trainer.history)
        self.seed_ = trainer.seed

    def _as_if_stopped(self) -> dict[str, Any]:
        """Attributes of an estimator as if training had stopped now, for callbacks."""
        modules = self._trainer.modules
        attributes: dict[str, Any] = {"network_": copy.deepcopy(modules["network"]).eval()}
        centers = modules.get("centers")
        if centers is not None:
            attributes["cluster_centers_"] = centers.points.detach().cpu().numpy()
        return attributes

    # -- use -------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[1]

    def _mapped(self, array: np.ndarray, function: Any) -> np.ndarray:
        device = torch.device(self.device_)
        self.network_.eval()
        with reproducible(device):
            return Data(array, self.scaling_, device).map(function).cpu().numpy()

    def transform(self, X: Any) -> np.ndarray:
        """Embedding of X.

        Parameters
        ----------
        X : array
            Objects of the shape `fit` saw.

        Returns
        -------
        array of shape (n, features)
        """
        return self._embedding_of(X)

    def _embedding_of(self, X: Any) -> np.ndarray:
        # Apart from `transform`, whose output `set_output` may wrap in a frame.
        check_is_fitted(self, "network_")
        array = self._read(X, reset=False)
        return self._finish(self._mapped(array, self.network_))

    def predict(self, X: Any) -> np.ndarray:
        """Cluster of each object of X.

        Parameters
        ----------
        X : array
            Objects of the shape `fit` saw.

        Returns
        -------
        array of shape (n,)
        """
        return self._assign(self._embedding_of(X))

    def reconstruct(self, X: Any) -> np.ndarray:
        """X as the decoder gives it back from its embedding, in X's own scale and shape.

        Parameters
        ----------
        X : array
            Objects of the shape `fit` saw.

        Returns
        -------
        array of X's shape, float32
        """
        if not self._has_decoder:
            raise AttributeError(f"{type(self).__name__} has no decoder, so it cannot reconstruct.")
        check_is_fitted(self, "network_")
        array = self._read(X, reset=False)
        decoded = self._mapped(array, lambda x: self.network_.decode(self.network_.encode(x)))
        return from_layout(self.scaling_.undo(decoded), self._n_dimensions)

    # -- save ------------------------------------------------------------------------------------

    def _run_params(self) -> dict[str, Any]:
        params = {k: v for k, v in self._plain_params().items() if k not in _WHERE}
        return {"method": type(self).__name__} | params

    def save_run(
        self,
        folder: Any,
        *,
        name: str | None = None,
        ids: Any = None,
        metadata: dict[str, Any] | None = None,
    ) -> Path:
        """Write labels and embedding as a run that `wellsep.load_runs` reads.

        Parameters
        ----------
        folder : path
            Folder of runs; the run gets a folder of its own inside.
        name : str, optional
            Name of the run.
        ids : array, optional
            Names of the objects.
        metadata : dict, optional
            Anything else to keep with the run.

        Returns
        -------
        Path
            The run's folder.
        """
        check_is_fitted(self, "network_")
        if metadata is not None:
            check_mapping("metadata", metadata)
        facts = {"epochs": self.n_iter_, "seed": self.seed_, "device": self.device_}
        facts["settings"] = plain(self.settings_)
        if self.history_:
            facts["loss"] = self.history_[-1]["loss"]
        return save_run(
            folder, self.embedding_, self.labels_,
            name=name, params=self._run_params(), metadata=facts | (metadata or {}), ids=ids,
        )  # fmt: skip

    def save(self, folder: Any, *, embedding: bool = True) -> Path:
        """Write the fitted estimator as safetensors and JSON.

        Parameters
        ----------
        folder : path
            Made when absent.
        embedding : bool
            Whether to keep the training embedding too; `transform` gives it again.

        Returns
        -------
        Path
            The folder.
        """
        check_is_fitted(self, "network_")
        return save_to(self, check_path("folder", folder), embedding=embedding)

    @classmethod
    def load(cls, folder: Any, *, device: str = "auto") -> Any:
        """Read what `save` wrote.

        Parameters
        ----------
        folder : path
            What `save` returned.
        device : str
            Where the network goes.

        Returns
        -------
        The fitted estimator.
        """
        record, tensors = read_saved(check_path("folder", folder))
        if (method := record.get("method")) != cls.__name__:
            raise ValueError(
                f"folder must hold a saved {cls.__name__}, got a saved {method}; "
                "wellsep.deep.load reads any of them."
            )
        return restore(cls, record, tensors, device)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]  # networks compute in float32
        return tags


def _check_training(settings: dict[str, Any]) -> None:
    """Refuse sizes, epochs and rates that no training can use."""
    check_count("batch_size", settings["batch_size"], 2)
    for key, value in settings.items():
        if key.endswith("epochs"):
            check_count(key, value, 0)
        elif key.endswith("learning_rate"):
            check_number(key, value, 0.0, open_left=True)
        elif key in ("n_features", "n_latent", "n_components", "width"):
            check_count(key, value)
        elif key == "hidden":
            for size in check_items("hidden", value, "integers"):
                check_count("hidden", size)
