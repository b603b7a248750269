"""Every deep clusterer keeps one contract: finds blobs, repeats itself, saves, refuses."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

torch = pytest.importorskip("torch", reason="needs the extra deep")

from wellsep import deep
from wellsep.deep import DEC, DEPICT, IDEC, JULE, METHODS, DeepCFMeans, DeepCluster, DeepKMeans
from wellsep.runs import load_runs

BLOBS, TRUTH = make_blobs(120, 50, centers=4, random_state=0)

# A few epochs, for promises that do not depend on how good the clusters are.
_AUTO = {"pretrain_epochs": 2, "epochs": 2, "hidden": (8,), "n_latent": 2}
BRIEF = {
    DeepKMeans: _AUTO | {"init": "k-means++"},
    DeepCFMeans: _AUTO | {"init": "k-means++"},
    DEC: _AUTO,
    IDEC: _AUTO,
    DEPICT: {"pretrain_epochs": 2, "start_epochs": 1, "epochs": 2, "hidden": (8,)},
    JULE: {"epochs": 1, "n_features": 6},
    DeepCluster: {"epochs": 2, "n_features": 8, "n_components": 2},
}
EVERY = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
AUTOENCODERS = pytest.mark.parametrize("method", [DeepKMeans, DeepCFMeans, DEC, IDEC, DEPICT])


def brief(method, n_clusters=3, **options):
    settings = BRIEF[method] | {"device": "cpu", "random_state": 0, "batch_size": 16} | options
    return method(n_clusters, **settings)


def images(n=40, shape=(9, 8), dtype=np.uint8):
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 60, size=(n, *shape))
    pictures[: n // 2, :4] += 150
    pictures[n // 2 :, 4:] += 150
    return pictures.astype(dtype)


@functools.cache
def fitted(method):
    """A model of the blobs that no test may change."""
    return brief(method).fit(BLOBS)


@functools.cache
def fitted_to_images(method):
    """A model of grey images that no test may change."""
    return brief(method, 2).fit(images())


@EVERY
def test_four_well_separated_blobs_in_fifty_dimensions_are_found(method):
    model = method(4, preset="small", device="cpu", random_state=0).fit(BLOBS)
    assert normalized_mutual_info_score(TRUTH, model.labels_) >= 0.95
    assert np.ptp(model.embedding_, axis=0).max() > 0.1  # no collapse to a point
    assert np.abs(model.embedding_).max() < 1e3  # nor to infinity


@EVERY
def test_the_same_seed_gives_the_same_result_twice(method):
    first, second = fitted(method), brief(method).fit(BLOBS)
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.history_ == second.history_
    other = brief(method, random_state=1).fit(BLOBS)
    assert not np.array_equal(first.embedding_, other.embedding_)


@EVERY
def test_prediction_and_embedding_of_the_training_data_are_the_fitted_ones(method):
    model = fitted(method)
    np.testing.assert_allclose(model.transform(BLOBS), model.embedding_, atol=1e-5)
    np.testing.assert_array_equal(model.predict(BLOBS), model.labels_)
    np.testing.assert_array_equal(model.predict(BLOBS[:1]), model.labels_[:1])
    np.testing.assert_array_equal(brief(method).fit_predict(BLOBS), model.labels_)


@pytest.mark.parametrize("network", ["dense", "conv"])
@EVERY
def test_images_of_bytes_and_of_floats_are_taken(method, network):
    grey = images()
    model = brief(method, 2, network=network).fit(grey)
    assert model.labels_.shape == (40,)
    assert model.predict(grey[:5]).shape == (5,)
    colour = np.repeat(grey[..., None], 3, axis=3).astype(np.float32)
    assert brief(method, 2, network=network).fit(colour).embedding_.shape[0] == 40


@EVERY
def test_numbers_kept_as_floats_or_as_a_tensor_train_alike(method):
    grey = images()
    expected = brief(method, 2).fit(grey.astype(np.float64)).labels_
    found = brief(method, 2).fit(torch.as_tensor(grey.astype(np.float64))).labels_
    np.testing.assert_array_equal(found, expected)


@AUTOENCODERS
def test_reconstructions_have_the_data_s_shape_and_scale(method):
    grey = images(dtype=np.uint8)
    again = fitted_to_images(method).reconstruct(grey)
    assert again.shape == grey.shape
    assert again.dtype == np.float32
    assert -300 < again.min() < again.max() < 600
    shifted = 1000 + 50 * BLOBS
    model = brief(method, 4, pretrain_epochs=30, batch_size=60).fit(shifted)
    rebuilt = model.reconstruct(shifted)
    assert np.abs(rebuilt.mean() - shifted.mean()) < 100


@pytest.mark.parametrize("method", [JULE, DeepCluster])
def test_without_a_decoder_nothing_is_reconstructed(method):
    with pytest.raises(AttributeError, match="has no decoder"):
        fitted(method).reconstruct(BLOBS)


@EVERY
def test_a_saved_model_is_the_same_when_loaded(method, tmp_path):
    grey = images()
    model = fitted_to_images(method)
    again = deep.load(model.save(tmp_path / "model"), device="cpu")
    assert type(again) is method
    assert again.get_params() == clone(model).get_params()
    np.testing.assert_array_equal(again.predict(grey), model.predict(grey))
    np.testing.assert_array_equal(again.transform(grey), model.transform(grey))
    np.testing.assert_array_equal(again.labels_, model.labels_)
    record, weights = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert record == "estimator.json"
    assert re.fullmatch(r"weights-[0-9a-f]{16}\.safetensors", weights)


def test_embeddings_may_be_left_out_and_taken_again(tmp_path):
    model = fitted(JULE)
    again = JULE.load(model.save(tmp_path, embedding=False), device="cpu")
    assert not hasattr(again, "embedding_")
    with pytest.raises(
        ValueError, match="predict needs embedding_, and this model was saved without"
    ):
        again.predict(BLOBS)
    again.embedding_ = again.transform(BLOBS)
    np.testing.assert_array_equal(again.predict(BLOBS), model.labels_)


def test_weights_and_parameters_of_two_models_are_not_mixed(tmp_path):
    first = fitted(DEC).save(tmp_path / "first")
    second = brief(DEC, random_state=1).fit(BLOBS).save(tmp_path / "second")
    (own,), (other,) = (folder.glob("weights-*") for folder in (first, second))
    own.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match="is not the file that its manifest was saved with"):
        DEC.load(first)


@pytest.fixture(scope="module")
def two_clusters():
    return brief(DEC, 2).fit(BLOBS)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_save_that_fails_at_any_step_leaves_the_old_model_or_the_new(
    tmp_path, monkeypatch, two_clusters, step, after
):
    old, new = fitted(DEC), two_clusters
    old.save(tmp_path)
    real, left = getattr(os, step), [after]

    def full(*args):
        left[0] -= 1
        if left[0] == -1:
            raise OSError("No space left on device")
        return real(*args)

    with monkeypatch.context() as patch, contextlib.suppress(OSError):
        patch.setattr(os, step, full)
        new.save(tmp_path)
    again = DEC.load(tmp_path, device="cpu")
    expected = old if again.n_clusters == old.n_clusters else new
    np.testing.assert_array_equal(again.transform(BLOBS), expected.transform(BLOBS))


def test_a_model_of_an_older_version_is_refused(tmp_path):
    (tmp_path / "estimator.json").write_text('{"wellsep": "0.1", "method": "DEC"}')
    with pytest.raises(ValueError, match="saved by an older version of wellsep; make it again"):
        deep.load(tmp_path)


def test_a_model_of_another_method_is_not_loaded(tmp_path):
    fitted(DEC).save(tmp_path)
    with pytest.raises(ValueError, match="must hold a saved IDEC, got a saved DEC"):
        IDEC.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="must hold"):
        deep.load(tmp_path / "nothing")


def test_a_class_of_ones_own_loads_what_it_saved(tmp_path):
    class Mine(DEC):
        pass

    model = Mine(2, pretrain_epochs=1, epochs=1, device="cpu", random_state=0).fit(BLOBS)
    model.save(tmp_path)
    again = Mine.load(tmp_path, device="cpu")
    assert type(again) is Mine
    np.testing.assert_array_equal(again.predict(BLOBS), model.predict(BLOBS))
    with pytest.raises(
        ValueError, match="got 'Mine'; save the estimator again, or load a class of"
    ):
        deep.load(tmp_path)


@EVERY
def test_a_fitted_model_is_written_as_a_run(method, tmp_path):
    model = fitted(method)
    model.save_run(tmp_path, name="one")
    run = load_runs(tmp_path)["one"]
    np.testing.assert_array_equal(run.labels, model.labels_)
    np.testing.assert_array_equal(run.embedding, model.embedding_)
    assert run.params["method"] == method.__name__
    assert run.metadata["epochs"] == model.n_iter_


@EVERY
def test_models_survive_pickling_and_cloning(method):
    model = fitted(method)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(BLOBS), model.labels_)
    assert clone(model).get_params() == model.get_params()


def test_a_pipeline_scales_first():
    model = make_pipeline(StandardScaler(), brief(DeepKMeans)).fit(BLOBS)
    assert model.predict(BLOBS).shape == (120,)
    names = model[-1].get_feature_names_out()
    assert list(names) == ["deepkmeans0", "deepkmeans1"]


def test_without_weight_on_separation_deep_cf_means_is_deep_k_means():
    plain = fitted(DeepKMeans)
    cf = brief(DeepCFMeans, cf_weight=0.0).fit(BLOBS)
    np.testing.assert_array_equal(plain.embedding_, cf.embedding_)


def test_the_two_signs_share_autoencoder_and_starting_centres_and_then_part():
    first, second = (
        brief(DeepCFMeans, separation=sign, init="random", cf_weight=1.0).fit(BLOBS)
        for sign in ("repel", "attract")
    )
    assert first.history_[:2] == second.history_[:2]  # pretraining
    assert first.history_[2]["loss"] < second.history_[2]["loss"]  # minus against plus


def test_depict_trains_towards_either_target():
    names = ("authors", "paper")
    found = {name: brief(DEPICT, targets=name, epochs=3).fit(BLOBS) for name in names}
    sure = {name: model.soft_labels_.max(axis=1).mean() for name, model in found.items()}
    assert sure["authors"] > sure["paper"]


def test_jule_ends_with_the_clusters_asked_for_and_says_how_many_it_saw():
    model = brief(JULE, 4, unfolding_rate=0.5).fit(BLOBS)
    seen = model.n_clusters_seen_
    assert seen[-1] == 4
    assert (np.diff(seen) < 0).all()
    np.testing.assert_array_equal(-np.diff(seen[:-1]), -(-seen[:-2] // 2))
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1.0, rtol=1e-5)


# -- bad input -------------------------------------------------------------------------------------


@EVERY
def test_a_convnet_refuses_vectors(method):
    with pytest.raises(ValueError, match=r"X must hold images .* got vectors of 50 features"):
        brief(method, network="conv").fit(BLOBS)


@EVERY
def test_more_clusters_than_objects_are_refused(method):
    with pytest.raises(ValueError, match=r"n_clusters must be at most the number of objects \(5\)"):
        brief(method, 6).fit(BLOBS[:5])


@EVERY
def test_nan_is_refused_with_its_object(method):
    broken = BLOBS.copy()
    broken[7, 3] = np.nan
    with pytest.raises(ValueError, match="X must be finite, got NaN or infinity in object 7"):
        brief(method).fit(broken)


@EVERY
def test_constant_data_have_too_few_distinct_objects(method):
    with pytest.raises(ValueError, match=r"distinct objects as n_clusters \(3\), got 1"):
        brief(method).fit(np.ones((30, 4)))


@EVERY
def test_one_batch_and_as_many_clusters_as_objects_are_enough(method):
    few = BLOBS[:12]
    assert brief(method, batch_size=500).fit(few).labels_.shape == (12,)
    assert brief(method, 12).fit(few).labels_.max() < 12


@EVERY
def test_a_constant_feature_does_no_harm(method):
    padded = np.column_stack([BLOBS, np.zeros(120)])
    assert np.isfinite(brief(method).fit(padded).embedding_).all()


def test_cuda_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="got 'cuda' and no CUDA device was found; use device="):
        brief(DeepKMeans, device="cuda").fit(BLOBS)
    with pytest.raises(ValueError, match="device must be 'auto'"):
        brief(DeepKMeans, device="tpu9").fit(BLOBS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "big"}, "preset must be one of 'auto', 'paper', 'small'"),
        ({"network": "vgg16"}, "network must be one of"),
        ({"init": "true labels"}, "init must be one of"),
        ({"learning_rate": 0.0}, "learning_rate must be greater than 0"),
        ({"epochs": -1}, "epochs must be at least 0"),
        ({"batch_size": 1}, "batch_size must be at least 2"),
        ({"checkpoint_every": 0}, "checkpoint_every must be at least 1"),
        ({"n_latent": 0}, "n_latent must be at least 1"),
    ],
)
def test_wrong_settings_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        brief(DeepKMeans, **options).fit(BLOBS)


@pytest.mark.parametrize("shape", [(20,), (20, 3, 4, 5), (20, 2, 3, 3, 1)])
def test_shapes_that_are_neither_vectors_nor_images_are_refused(shape):
    with pytest.raises(ValueError, match=r"X must have|Expected|Reshape"):
        brief(DeepKMeans).fit(np.random.default_rng(0).normal(size=shape))


def test_prediction_wants_objects_of_the_shape_that_was_fitted():
    model = fitted_to_images(DeepKMeans)
    with pytest.raises(ValueError, match=r"objects of the shape fit saw, \(1, 9, 8\)"):
        model.predict(images(shape=(9, 7)))
    with pytest.raises(ValueError, match="3 dimensions fit saw"):
        model.predict(images().reshape(40, 9, 8, 1))


# Checks of what the base of all methods does with input and output: DeepKMeans, JULE and
# DeepCluster stand for those that differ from them in their losses only.
ALIKE = (DeepCFMeans, DEC, DEPICT, IDEC)
CHECKS_OF_THE_BASE = (
    "check_clustering", "check_dtype_object", "check_estimators_dtypes",
    "check_estimators_nan_inf", "check_estimators_pickle", "check_f_contiguous_array_estimator",
    "check_fit2d_1feature", "check_fit2d_predict1d", "check_fit_score_takes_y",
    "check_methods_subset_invariance", "check_n_features_in", "check_n_features_in_after_fitting",
    "check_pipeline_consistency", "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input", "check_transformer_data_not_an_array",
    "check_transformer_general", "check_transformer_preserve_dtypes",
)  # fmt: skip


def _checked():
    for method in METHODS.values():
        options = {"device": "cpu", **BRIEF[method], "batch_size": 64}
        for estimator, check in estimator_checks_generator(method(2, **options)):
            name = check.func.__name__
            slow = method in ALIKE and name in CHECKS_OF_THE_BASE
            words = [method.__name__, name, *map(str, check.keywords.values())]
            marks = [pytest.mark.slow] if slow else []
            yield pytest.param(estimator, check, id="-".join(words), marks=marks)


@pytest.mark.parametrize(("estimator", "check"), list(_checked()))
def test_scikit_learns_contract_is_kept(estimator, check):
    assert estimator is not None
    check(estimator)
