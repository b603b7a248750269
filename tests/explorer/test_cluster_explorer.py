"""ClusterExplorer behaves as an estimator of scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import wellsep as ws

QUICK = {"methods": ["k-means", "ward"], "embeddings": [], "k": [2, 3], "n_draws": 0}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([ws.ClusterExplorer(**QUICK)])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, 3, centers=3, cluster_std=0.5, random_state=2)


def test_it_finds_what_explore_finds(blobs):
    model = ws.ClusterExplorer(**QUICK).fit(blobs[0])
    found = ws.explore(blobs[0], **QUICK)
    np.testing.assert_array_equal(model.labels_, found.labels_)
    np.testing.assert_array_equal(model.predict(blobs[0]), model.labels_)
    assert model.n_clusters_ == 3
    assert model.exploration_.best == found.best


def test_it_stands_at_the_end_of_a_pipeline(blobs):
    pipeline = make_pipeline(StandardScaler(), ws.ClusterExplorer(**QUICK))
    labels = pipeline.fit_predict(blobs[0])
    np.testing.assert_array_equal(pipeline.predict(blobs[0]), labels)


def test_a_clone_has_the_same_parameters_and_no_answer(blobs):
    copy = clone(ws.ClusterExplorer(**QUICK).fit(blobs[0]))
    assert copy.get_params()["k"] == [2, 3]
    with pytest.raises(NotFittedError):
        copy.predict(blobs[0])


def test_it_takes_frames_with_words_and_names_their_columns(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.array(["x", "y", "z"])[y])
    model = ws.ClusterExplorer(embeddings=[], k=[2, 3], n_draws=0).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b", "c", "kind"]
    np.testing.assert_array_equal(model.predict(frame[:5]), model.labels_[:5])
