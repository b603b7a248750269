"""Sparse text data are judged, scored and searched without becoming dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wellsep as ws


def texts(n=240, words=2000, k=3, seed=0):
    """Counts of words: each topic has words of its own, rows of length one (TF-IDF like)."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    rows = []
    for topic in y:
        own = rng.integers(0, 300, 25) + topic * 300
        common = rng.integers(1000, words, 15)
        rows.append(np.bincount(np.concatenate([own, common]), minlength=words))
    X = sp.csr_array(np.array(rows, dtype=float))
    return sp.csr_array(sp.diags_array(1 / np.sqrt(X.multiply(X).sum(axis=1))) @ X), y


@pytest.fixture
def no_dense(monkeypatch):
    """A sparse matrix of all objects and words must not be filled in."""
    real = sp.csr_array.toarray

    def small(self, *args, **options):
        assert self.shape[1] < 2000 or self.shape[0] <= 20, f"{self.shape} was made dense"
        return real(self, *args, **options)

    monkeypatch.setattr(sp.csr_array, "toarray", small)


def test_the_euclidean_silhouette_of_sparse_rows_is_that_of_dense_rows():
    X, y = texts()
    assert ws.silhouette_score(X, y) == pytest.approx(ws.silhouette_score(X.toarray(), y), rel=1e-9)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_judge_on_sparse_runs_equals_judge_on_dense_ones(metric):
    X, y = texts()
    parts = {"y": y, "two": y // 2, "mixed": np.random.default_rng(1).permutation(y)}
    options = {"n_draws": 6, "dip": False, "details": False}
    spec = [("silhouette", {"metric": metric})]
    given = ws.judge(ws.Runs.from_parts({"s": X}, parts), spec, **options)
    dense = ws.judge(ws.Runs.from_parts({"s": X.toarray()}, parts), spec, **options)
    np.testing.assert_allclose(given.answer.scores, dense.answer.scores, rtol=1e-6)
    np.testing.assert_array_equal(given.confidence.ranks, dense.confidence.ranks)


def test_text_is_judged_from_folder_to_answer_without_becoming_dense(tmp_path, no_dense):
    X, y = texts()
    parts = {"y": y, "two": y // 2, "mixed": np.random.default_rng(1).permutation(y)}
    ws.Runs.from_parts({"tfidf": X}, parts).save(tmp_path)
    runs = ws.load_runs(tmp_path)
    assert sp.issparse(runs.spaces["tfidf"])
    found = ws.judge(runs, [("silhouette", {"metric": "cosine"})], n_draws=4)
    assert found.ranking.best == "y"


def test_choose_k_takes_sparse_text_with_its_defaults():
    X, _ = texts(150)
    chosen = ws.choose_k(X, range(2, 5), random_state=0)
    assert chosen.picks["silhouette"] == 3
