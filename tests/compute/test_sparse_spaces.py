"""Sparse text data are judged, scored and searched without becoming dense."""

from __future__ import annotations

import tracemalloc

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


def test_choose_k_takes_sparse_text_with_its_defaults(no_dense):
    X, _ = texts(150)
    chosen = ws.choose_k(X, [2, 3, 4], random_state=0)
    assert chosen.picks["silhouette"] == chosen.picks["mixture_bic"] == chosen.best == 3
    assert chosen.structure


def test_choose_k_finds_one_cluster_in_text_without_topics():
    X, _ = texts(150, k=1)
    chosen = ws.choose_k(X, [2, 3, 4], random_state=0)
    assert chosen.best == 1
    assert chosen.structure is False


def test_few_sparse_columns_are_seen_as_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6)) * (rng.random((120, 6)) > 0.3) + 5 * np.eye(6)[np.arange(120) % 3]
    given = ws.choose_k(sp.csr_array(X), [2, 3, 4], random_state=0)
    dense = ws.choose_k(X, [2, 3, 4], random_state=0)
    assert (given.best, given.picks) == (dense.best, dense.picks) == (3, given.picks)
    np.testing.assert_allclose(given.gap, dense.gap, rtol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_choose_k_of_wide_sparse_text_needs_no_dense_table(metric):
    X = wide_texts(1000, 10_000)
    estimator = None if metric == "euclidean" else ws.KMeans(metric="cosine")
    indices = [("silhouette", {"metric": metric}), "prediction_strength", "mixture_bic"]
    tracemalloc.start()
    try:
        chosen = ws.choose_k(X, [2, 3], estimator=estimator, indices=indices, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert chosen.best == 3
    assert peak < 0.25 * 8 * X.shape[0] * X.shape[1], f"{peak / 2**20:.0f} MiB"


def test_sparse_rows_with_wide_indices_are_those_with_narrow_ones():
    X, y = texts(60)
    wide = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    assert wide.indices.dtype == np.int64
    for function in (
        lambda X: ws.KMeans(3, random_state=0).fit_predict(X),
        lambda X: ws.silhouette_score(X, y),
        lambda X: ws.choose_k(X, [2, 3], gate=False, random_state=0).picks["silhouette"],
    ):
        np.testing.assert_array_equal(function(wide), function(X))


def wide_texts(n, words, k=3, seed=0):
    """The same with more words; made without a dense table."""
    rng = np.random.default_rng(seed)
    topic = (np.arange(n) % k)[:, None]
    own = rng.integers(0, words // 8, (n, 40)) + topic * (words // 8)
    columns = np.hstack([own, rng.integers(words // 2, words, (n, 15))])
    X = sp.csr_array(
        (np.ones(columns.size), columns.reshape(-1), np.arange(n + 1) * columns.shape[1]),
        shape=(n, words),
    )
    X.sum_duplicates()
    return sp.csr_array(sp.diags_array(1 / np.sqrt(X.multiply(X).sum(axis=1))) @ X)
