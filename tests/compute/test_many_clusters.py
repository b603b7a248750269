"""Memory is bounded by blocks: of clusters where these are many, of rows where X is a file."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context

import wellsep as ws
from wellsep.compute.statistics import centre_pairs as centres


def _pairs(n: int, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of two objects each, some of them in one place."""
    X = np.random.default_rng(0).normal(size=(n, d))
    X[: n // 100] = X[n // 2 : n // 2 + n // 100] = 1.0
    return X, np.arange(n) % (n // 2)


def _peak(call) -> int:
    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    ("score", "limit"),
    [
        (ws.davies_bouldin_score, 20 << 20),
        (ws.cfq_score, 40 << 20),
        (ws.margins, 300 << 20),
        (ws.simplified_silhouette_score, 300 << 20),
    ],
)
def test_three_thousand_clusters_need_no_table_of_pairs(score, limit):
    X, y = _pairs(6000)
    assert _peak(lambda: score(X, y)) < limit


SMALL = 0.01  # MiB, the size of a table of 36 × 36 clusters
SQUARE = ("cdbw", "cfq_mixture", "generalized_dunn", "s_dbw")  # hold tables of all pairs


@pytest.mark.parametrize("name", ws.INDICES)
def test_an_index_needs_no_table_of_clusters_beyond_the_budget_or_says_so(name):
    X, y = np.random.default_rng(0).normal(size=(120, 2)), np.arange(120) % 40
    if name not in SQUARE:
        expected = ws.score_partitions(X, y, [name]).values
        with config_context(working_memory=SMALL):
            found = ws.score_partitions(X, y, [name]).values
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        return
    sentence = "labels must have at most 36 clusters for this index, got 40: one of its tables"
    with config_context(working_memory=SMALL), pytest.raises(ValueError, match=sentence):
        ws.score_partitions(X, y, [name])


@pytest.mark.parametrize(
    "separation", ["average", "centroid", "to-centroids", "own-centroids", "single"]
)
def test_every_separation_that_holds_a_table_of_clusters_is_refused(separation):
    X, y = np.random.default_rng(0).normal(size=(120, 2)), np.arange(120) % 40
    options = {"separation": separation, "diameter": "complete"}
    with config_context(working_memory=SMALL):
        assert ws.generalized_dunn_score(X, y % 36, **options) > 0
        if separation == "single":  # the nearest pair needs none
            assert ws.generalized_dunn_score(X, y, **options) > 0
            return
        with pytest.raises(ValueError, match="labels must have at most 36 clusters"):
            ws.generalized_dunn_score(X, y, **options)


@pytest.mark.parametrize("score", [ws.clustering_accuracy, ws.purity_score])
def test_many_classes_and_clusters_are_matched_without_a_table_of_all_of_them(score):
    n = 20_000
    truth, found = np.arange(n), np.arange(n)[::-1] // 2
    assert _peak(lambda: score(truth, found)) < 50 << 20  # the table would have 1.6 GB
    assert score(truth, found) == 0.5
    assert score(found, truth) == (0.5 if score is ws.clustering_accuracy else 1.0)


@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("twins", ["0", "1"])
def test_blocks_of_clusters_give_what_the_table_gives(d, twins, monkeypatch):
    monkeypatch.setenv("WELLSEP_KERNELS", twins)
    X, y = _pairs(600, d)
    X, y = np.vstack([X, X[:5] + 0.1]), np.append(y, [0, 0, 1, 2, 2])
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    data = {"dense": X, "single": X.astype(np.float32), "sparse": sp.csr_array(X)}
    kinds = [("dense", None), ("dense", weights), ("single", None), ("sparse", weights)]

    def values():
        found = []
        for kind, weight in kinds:
            one = {"sample_weight": weight}
            found.append(ws.davies_bouldin_score(data[kind], y, **one))
            found.append(ws.davies_bouldin_score(data[kind], y, q=2, **one))
            for side in ("zero", "squared"):
                found.append(ws.cfq_score(data[kind], y, wrong_side=side, **one))
        return np.array(found), ws.margins(X, y)

    table, margins = values()
    monkeypatch.setattr(centres, "MANY", 10)
    blocks, same = values()
    assert blocks == pytest.approx(table, rel=1e-5)
    assert np.delete(blocks, range(8, 12)) == pytest.approx(
        np.delete(table, range(8, 12)), rel=1e-9
    )
    assert same == pytest.approx(margins, rel=1e-9, nan_ok=True)


def test_centres_in_one_place_have_no_partner():
    sizes = np.linspace(1, 2, 2000)
    assert centres.worst_partners(sizes, np.ones((2000, 3))) is None
    apart = np.ones((2000, 3))
    apart[0] = 2
    found = centres.worst_partners(sizes, apart)
    assert found == pytest.approx(np.append((1 + 2) / 3**0.5, (sizes[1:] + 1) / 3**0.5))


PEAK = """
import sys, numpy as np, wellsep as ws
names = sys.argv[2].split(",")
ws.score_partitions(np.eye(60)[:, :3], np.arange(60) % 5, names)
X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X)) % 5
def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
import threading, time
before, peak, done = anonymous(), 0, False
def watch():
    global peak
    while not done:
        peak = max(peak, anonymous())
        time.sleep(0.002)
thread = threading.Thread(target=watch)
thread.start()
ws.score_partitions(X, y, names, n_jobs=1)
done = True
thread.join()
print((peak - before) // 1024)
"""


def _own_memory(path, shape, names) -> int:
    """MB that a process takes for itself while it scores a file of random numbers."""
    X = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    for rows in np.array_split(np.arange(len(X)), 8):
        X[rows] = np.random.default_rng(rows[0]).random((len(rows), shape[1]), np.float32)
    del X
    command = [sys.executable, "-c", PEAK, str(path), names]
    alone = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    return int(done.stdout)


needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="reads Linux's /proc"
)


@needs_proc
def test_a_memory_map_is_read_by_blocks(tmp_path):
    names = "calinski_harabasz,davies_bouldin,cfq,simplified_silhouette,silhouette_cosine"
    # MB, of a file of 256 MB
    assert _own_memory(tmp_path / "X.npy", (100_000, 640), names) < 230


@pytest.mark.slow
@needs_proc
def test_the_silhouette_of_a_memory_map_makes_no_copy_of_it(tmp_path):
    # MB, of a file of 70 MB
    assert _own_memory(tmp_path / "X.npy", (5200, 3400), "silhouette") < 60


@pytest.mark.slow
def test_a_hundred_thousand_clusters_fit_into_half_a_gigabyte():
    X, y = _pairs(200_000)
    tracemalloc.start()
    ws.davies_bouldin_score(X, y)
    ws.cfq_score(X, y)
    assert tracemalloc.get_traced_memory()[1] < 500 << 20
    tracemalloc.stop()
