"""Data ten times larger than the memory of the workers run through, from disk."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

import wellsep as ws

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

ROWS, D, K, TIMES = 400_000, 64, 6, 100  # 102 MB of float32, written 100 times
WORKER_MB = 500  # each of two


@pytest.fixture
def base():
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(K, D))
    return (rng.normal(size=(ROWS, D)) + centres[rng.integers(0, K, ROWS)]).astype(np.float32)


@pytest.fixture
def path(tmp_path, base):
    wanted = TIMES * base.nbytes
    if shutil.disk_usage(tmp_path).free < 1.2 * wanted:
        pytest.skip(f"needs {1.2 * wanted / 1e9:.0f} GB of free disk space")
    target = tmp_path / "large.npy"
    array = np.lib.format.open_memmap(target, "w+", np.float32, (TIMES * ROWS, D))
    for i in range(TIMES):
        array[i * ROWS : (i + 1) * ROWS] = base
    array.flush()
    del array
    yield target
    target.unlink()


@pytest.mark.slow
def test_ten_times_the_memory_of_the_workers_runs_through(path, base):
    assert path.stat().st_size > 10 * 2 * WORKER_MB * 1e6
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=":0",
            memory_limit=f"{WORKER_MB}MB",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        X = ws.open_chunked(path, chunk_rows=100_000)
        model = ws.KMeans(K, init=base[:K], max_iter=2, tol=0).fit(X)
        labels = model.predict(X)
        indices = ["davies_bouldin", "cfq", "simplified_silhouette"]
        scores = ws.score_partitions(X, labels, indices)
        assert set(client.run(os.getpid).values()) == before  # no worker ran out of memory
    # Repeated rows change neither means nor ratios: one copy in memory tells the answer.
    exact = ws.KMeans(K, init=base[:K], max_iter=2, tol=0).fit(base)
    np.testing.assert_allclose(model.cluster_centers_, exact.cluster_centers_, rtol=2e-4, atol=1e-4)
    assert model.inertia_ == pytest.approx(TIMES * exact.inertia_, rel=1e-4)
    expected = ws.score_partitions(base, exact.labels_, indices)
    np.testing.assert_allclose(scores.values, expected.values, rtol=1e-3)
