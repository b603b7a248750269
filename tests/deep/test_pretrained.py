"""DEPICT starts from a pretrained autoencoder and from given clusters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator

torch = pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.deep import DEPICT, DeepKMeans, sweep
from wellsep.runs import load_runs

X, TRUTH = make_blobs(90, 6, centers=3, random_state=0)
SHORT = {"device": "cpu", "random_state": 0, "hidden": (8, 6), "batch_size": 20}


@pytest.fixture(scope="module")
def pretrained():
    return DEPICT(3, pretrain_epochs=5, start_epochs=0, epochs=0, init=TRUTH, **SHORT).fit(X)


def test_a_given_autoencoder_takes_the_place_of_pretraining(pretrained):
    before = {name: t.clone() for name, t in pretrained.network_.state_dict().items()}
    same = DEPICT(3, autoencoder=pretrained, init=TRUTH, start_epochs=0, epochs=0, **SHORT).fit(X)
    np.testing.assert_array_equal(same.embedding_, pretrained.embedding_)
    assert same.history_ == []
    further = DEPICT(3, autoencoder=pretrained, init=TRUTH, start_epochs=2, epochs=1, **SHORT)
    assert {entry["stage"] for entry in further.fit(X).history_} == {"start", "cluster"}
    assert np.abs(further.embedding_ - pretrained.embedding_).max() > 1e-4
    for name, tensor in pretrained.network_.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_given_labels_are_where_the_second_stage_starts(pretrained):
    np.testing.assert_array_equal(pretrained.start_labels_, TRUTH)


def test_one_pretraining_serves_a_sweep(pretrained, tmp_path):
    model = DEPICT(3, autoencoder=FrozenEstimator(pretrained), init=TRUTH, start_epochs=1,
                   epochs=1, **SHORT)  # fmt: skip
    result = sweep(model, X, {"balance": [0.1, 10.0]}, out=tmp_path)
    assert [trial.status for trial in result.trials] == ["done", "done"]
    params = load_runs(tmp_path)["DEPICT,K=3,balance=10"].params
    assert params["autoencoder"].startswith("DEPICT ")


def test_another_number_of_clusters_than_the_autoencoder_has_dimensions_is_refused(pretrained):
    with pytest.raises(ValueError, match=r"latent dimensions \(3\), got 4"):
        DEPICT(4, autoencoder=pretrained, **SHORT).fit(X)


def test_another_methods_network_is_refused():
    other = DeepKMeans(3, pretrain_epochs=0, epochs=0, device="cpu", random_state=0).fit(X)
    with pytest.raises(TypeError, match="must be a fitted DEPICT"):
        DEPICT(3, autoencoder=other, device="cpu").fit(X)


@pytest.mark.parametrize("labels", [TRUTH[:-1], TRUTH + 1, TRUTH.astype(float), TRUTH % 2])
def test_labels_that_are_not_clusters_of_all_objects_are_refused(pretrained, labels):
    with pytest.raises(ValueError, match="init must be one of path-integral, k-means or 90 whole"):
        DEPICT(3, autoencoder=pretrained, init=labels, **SHORT).fit(X)
