"""Every metric of the table gives scikit-learn's distances, and a new one needs one entry."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from dc_oracle import explicit
from sklearn.metrics import pairwise_distances

import wellsep as ws
from wellsep.compute.metrics.table import METRICS, Metric, add_metric
from wellsep.testing import check_metric
from wellsep.testing.compare import make_ugly_rows as ugly
from wellsep.testing.metrics import (
    check_distances,
    check_sums,
    distance_table,
)

# "gower" is of tables: tests/compute/test_gower.py compares it with R.
NAMES = [*(name for name in METRICS if name != "gower"), "manhattan", "chebyshev"]
SOURCE = Path(ws.__file__).parent


def _truth(X, name):
    if name == "precomputed":
        return X.astype(np.float64)
    X = X.astype(np.float64)
    if name == "dc":
        return explicit(X)
    if name == "euclidean":  # theirs loses digits between rows that are close
        return np.sqrt(pairwise_distances(X, metric="sqeuclidean"))
    return pairwise_distances(X, metric=name)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-6)])
@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("name", NAMES)
def test_block_distances_are_scikit_learns(name, library, dtype, tolerance):
    X = ugly().astype(dtype)
    X = _truth(X, "euclidean").astype(dtype) if name == "precomputed" else X
    given = (
        X
        if library == "numpy"
        else pytest.importorskip(library, reason=f"{library} is not installed").asarray(X)
    )
    truth = _truth(X, name)
    check_distances(distance_table(given, name), truth, name, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-6)])
@pytest.mark.parametrize("name", [n for n in METRICS if METRICS[n].finish is not None])
def test_the_numpy_twin_gives_the_same_distances(name, dtype, tolerance):
    X = ugly(1).astype(dtype)
    truth = _truth(X, name)
    check_distances(distance_table(X, name, fast=True), truth, name, tolerance)


def test_the_twin_keeps_zero_rows_where_most_of_a_block_is_close():
    X = np.ones((90, 4))
    X[[7, 50]] = 0
    check_distances(distance_table(X, "cosine", fast=True), _truth(X, "cosine"), "cosine")


@pytest.mark.parametrize("name", [n for n in METRICS if METRICS[n].sums is not None])
@pytest.mark.parametrize("kind", ["dense", "sparse", "far"])
def test_sums_without_pairs_are_sums_of_the_distances(name, kind):
    import scipy.sparse as sp

    X = ugly(2) + 1e3 if kind == "far" else ugly(2)
    given = sp.csr_array(X) if kind == "sparse" else X
    check_sums(METRICS[name], given, _truth(X, name))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "precomputed"])
def test_every_metric_keeps_the_promises_that_the_kit_checks(name):
    check_metric(name, distances=_truth(ugly(), name))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_directions_far_from_the_origin_keep_their_digits(dtype):
    import scipy.sparse as sp

    rng = np.random.default_rng(5)
    y = rng.integers(0, 4, 200)
    X = (rng.normal(size=(200, 5)) + 3 * rng.normal(size=(4, 5))[y] + 1e4).astype(dtype)
    dense = ws.silhouette_samples(X, y, metric="cosine")
    found = ws.silhouette_samples(sp.csr_array(X), y, metric="cosine")
    assert found == pytest.approx(dense, abs=1e-6)


def test_a_metric_must_say_how_distances_come_about():
    with pytest.raises(ValueError, match="either finish or block"):
        Metric("neither", prepare=METRICS["euclidean"].prepare)


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="got 'cosine', which exists already"):
        add_metric(METRICS["cosine"])


def test_a_number_is_no_metric():
    with pytest.raises(TypeError, match="metric must be a name or a function"):
        ws.silhouette_score([[0.0], [1], [5]], [0, 0, 1], metric=2)


# --- a metric of one's own, as CONTRIBUTING says ------------------------------------------------


@pytest.fixture
def hellinger():
    """The lines of the section "Add a metric", as they stand there."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## Add a metric")[1].split("\n## ")[0]
    lines = section.split("```python\n")[1].split("```")[0]
    X, labels = _shares()
    exec(lines, {"ws": ws, "X": X, "labels": labels})
    yield METRICS["hellinger"]
    del METRICS["hellinger"]


def _shares(n=140):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, n)
    X = rng.dirichlet([1.0, 1, 1, 1], n) + 2 * np.eye(3, 4)[y]
    return X / X.sum(axis=1, keepdims=True), y


def _scores(X, y, metric):
    given = {"metric": metric}
    asked = [("silhouette", given), ("dunn", given), ("c_index", given)]
    others = [("c_index", {**given, "variant": "nbclust"})]
    return ws.score_partitions(X, [y, np.arange(len(y)) % 4], [*asked, *others]).values


@pytest.mark.parametrize("kind", ["numpy", "torch", "dask"])
def test_one_entry_is_all_a_new_metric_needs(hellinger, kind):
    X, y = _shares()
    D = np.sqrt(((np.sqrt(X)[:, None] - np.sqrt(X)) ** 2).sum(axis=-1) / 2)
    expected = _scores(D, y, "precomputed")
    given = X
    if kind == "torch":
        given = pytest.importorskip("torch", reason="PyTorch is not installed").tensor(X)
    if kind == "dask":
        da = pytest.importorskip("dask.array", reason="Dask is not installed")
        given = da.from_array(X, chunks=(50, -1))
    assert _scores(given, y, "hellinger") == pytest.approx(expected, rel=1e-9)
    assert _scores(given, y, hellinger) == pytest.approx(expected, rel=1e-9)
    estimate = ws.silhouette_estimate(X, y, metric="hellinger")
    assert estimate.value == pytest.approx(expected[0, 0], rel=1e-9)


# --- one home -----------------------------------------------------------------------------------


def _names_a_metric(path, word):
    """Whether a string of the code, docstrings aside, is the word."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.Constant) and node.value == word for node in ast.walk(tree))


@pytest.mark.parametrize(("word", "home"), [("cosine", "table.py"), ("precomputed", "base.py")])
def test_a_metric_is_named_in_one_module_only(word, home):
    rooms = [SOURCE / room for room in ("compute", "indices", "distances")]
    files = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    assert [path.name for path in files if _names_a_metric(path, word)] == [home]
