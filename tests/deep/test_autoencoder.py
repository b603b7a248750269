"""One pretrained autoencoder and given centres serve as the start of many trainings."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

torch = pytest.importorskip("torch", reason="needs the extra deep")

from wellsep import deep
from wellsep.deep import IDEC, DeepCFMeans, DeepKMeans, sweep

X, _ = make_blobs(60, 6, centers=3, random_state=0)
BRIEF = {
    "hidden": (8,), "n_latent": 2, "pretrain_epochs": 3, "batch_size": 16, "device": "cpu",
    "random_state": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def pretrained():
    return DeepKMeans(3, epochs=0, **BRIEF).fit(X)


def weights(model):
    return {name: t.clone() for name, t in model.network_.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def test_without_epochs_the_given_weights_and_centres_are_the_fitted_ones(pretrained):
    points = X[:3, :2]
    model = DeepCFMeans(3, autoencoder=pretrained, init=points, epochs=0, device="cpu").fit(X)
    assert same(weights(pretrained), weights(model))
    np.testing.assert_allclose(model.cluster_centers_, points, rtol=1e-6)
    np.testing.assert_array_equal(model.embedding_, pretrained.embedding_)
    assert model.history_ == []


def test_training_goes_on_from_the_given_network_and_leaves_it_alone(pretrained):
    before = weights(pretrained)
    options = {**BRIEF, "epochs": 2, "init": pretrained.embedding_[[0, 20, 40]]}
    models = [
        method(3, autoencoder=pretrained, **options, **extra).fit(X)
        for method, extra in (
            (DeepKMeans, {}),
            (DeepCFMeans, {"cf_weight": 0.0}),
            (DeepCFMeans, {"cf_weight": 1.0}),
        )
    ]
    assert same(before, weights(pretrained))
    np.testing.assert_array_equal(models[0].embedding_, models[1].embedding_)
    assert not np.array_equal(models[0].embedding_, models[2].embedding_)
    assert [entry["stage"] for entry in models[0].history_] == ["cluster", "cluster"]


def test_network_sizes_and_scaling_come_from_the_autoencoder(pretrained):
    other = 5.0 * X + 3.0
    model = DeepKMeans(3, autoencoder=pretrained, epochs=0, device="cpu").fit(other)
    assert model.settings_["hidden"] == (8,)
    assert model.scaling_.factor == pretrained.scaling_.factor
    np.testing.assert_array_equal(model.transform(X), pretrained.transform(X))


def test_a_folder_does_as_well_as_the_model(pretrained, tmp_path):
    folder = pretrained.save(tmp_path / "start")
    options = {"epochs": 1, "device": "cpu", "random_state": 1}
    first = DeepKMeans(3, autoencoder=folder, **options).fit(X)
    second = DeepKMeans(3, autoencoder=str(folder), **options).fit(X)
    third = DeepKMeans(3, autoencoder=pretrained, **options).fit(X)
    np.testing.assert_array_equal(first.embedding_, third.embedding_)
    np.testing.assert_array_equal(second.embedding_, third.embedding_)


def test_a_sweep_starts_every_trial_from_the_same_network(pretrained, tmp_path):
    model = DeepCFMeans(
        3, autoencoder=FrozenEstimator(pretrained), epochs=0, device="cpu", random_state=0
    )
    found = sweep(model, X, {"cf_weight": [0.1, 1.0]}, out=tmp_path)
    assert [trial.status for trial in found.trials] == ["done", "done"]
    again = sweep(model, X, {"cf_weight": [0.1, 1.0]}, out=tmp_path)
    assert [trial.status for trial in again.trials] == ["kept", "kept"]


def test_a_saved_model_says_what_it_started_from(pretrained, tmp_path):
    model = DeepKMeans(3, autoencoder=pretrained, init=X[:3, :2], epochs=0, device="cpu").fit(X)
    folder = model.save(tmp_path)
    params = json.loads((folder / "estimator.json").read_text())["params"]
    assert params["autoencoder"].startswith("DeepKMeans ")
    np.testing.assert_array_equal(params["init"], X[:3, :2])
    again = deep.load(folder, device="cpu")
    np.testing.assert_array_equal(again.predict(X), model.labels_)


class _Stop:
    """A callback that ends a fit after its first epoch."""

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        raise KeyboardInterrupt


def test_an_interrupted_training_goes_on_from_its_own_weights(pretrained, tmp_path):
    options = {"autoencoder": pretrained, "epochs": 3, "device": "cpu", "random_state": 0}
    whole = DeepKMeans(3, **options).fit(X)
    model = DeepKMeans(3, checkpoint_dir=tmp_path, **options)
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(autoencoder=pretrained).set_callbacks(_Stop()).fit(X)
    np.testing.assert_array_equal(model.fit(X).embedding_, whole.embedding_)


def test_a_clone_of_a_fitted_autoencoder_is_refused_with_the_remedy(pretrained):
    model = clone(DeepKMeans(3, autoencoder=pretrained, device="cpu"))
    with pytest.raises(NotFittedError, match="FrozenEstimator"):
        model.fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_latent": 5}, r"n_latent must be the autoencoder's \(2\)"),
        ({"hidden": (4, 4)}, r"hidden must be the autoencoder's \(\(8,\)\)"),
        ({"network": "conv"}, "network must be the autoencoder's"),
        ({"init": np.zeros((3, 4))}, r"n_latent\) = \(3, 2\), got shape \(3, 4\)"),
        ({"init": np.full((3, 2), np.nan)}, "finite centres"),
        ({"init": "best"}, "init must be one of"),
    ],
)
def test_settings_that_contradict_the_autoencoder_are_refused(pretrained, options, message):
    model = DeepKMeans(3, autoencoder=pretrained, device="cpu", epochs=0).set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X)


def test_data_of_another_shape_are_refused(pretrained):
    with pytest.raises(ValueError, match="shape the autoencoder saw"):
        DeepKMeans(3, autoencoder=pretrained, device="cpu").fit(X[:, :4])


@pytest.mark.parametrize(
    ("autoencoder", "error", "message"),
    [
        ("no/such/folder", FileNotFoundError, "folder that save wrote"),
        (IDEC(3), TypeError, "fitted DeepKMeans or DeepCFMeans"),
        (7, TypeError, "got int"),
    ],
)
def test_what_is_no_autoencoder_is_refused(autoencoder, error, message):
    with pytest.raises(error, match=message):
        DeepKMeans(3, autoencoder=autoencoder, device="cpu").fit(X)
