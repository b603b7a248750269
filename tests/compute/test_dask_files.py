"""Tables in files of each kind are read by the workers and give what they give in memory."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws

da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
pytest.importorskip("distributed", reason="the extra dask is not installed")

N, D, K = 200, 3, 4


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) + 5 * rng.normal(size=(K, D))[rng.integers(0, K, N)]


def as_npy(folder, X):
    np.save(folder / "x.npy", X)
    return ws.open_chunked(folder / "x.npy", chunk_rows=60)


def as_zarr(folder, X):
    pytest.importorskip("zarr", reason="zarr is not installed")
    da.from_array(X, chunks=(60, 2)).to_zarr(str(folder / "x.zarr"))  # columns are split too
    return ws.open_chunked(folder / "x.zarr")


def write_parquet(folder, X):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (folder / "x").mkdir()
    for i, part in enumerate(np.array_split(X, [90, 91])):
        pd.DataFrame(part, columns=list("abc")).to_parquet(folder / "x" / f"part{i}.parquet")
    return folder / "x"


def as_parquet(folder, X):
    return ws.open_chunked(write_parquet(folder, X))


def as_dataframe(folder, X):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    return dd.read_parquet(write_parquet(folder, X))


@pytest.mark.parametrize("kind", [as_npy, as_zarr, as_parquet, as_dataframe])
def test_a_table_on_disk_gives_what_it_gives_in_memory(X, kind, tmp_path, dask_client):
    rows = kind(tmp_path, X)
    here = ws.KMeans(K, init=X[:K]).fit(X)
    with dask_client.as_current():
        there = ws.KMeans(K, init=X[:K]).fit(rows)
        value = ws.davies_bouldin_score(rows, there.labels_)
        labels, distances = there.predict(rows).compute(), there.transform(rows).compute()
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9)
    assert value == pytest.approx(ws.davies_bouldin_score(X, here.labels_), rel=1e-9)
    np.testing.assert_array_equal(labels, here.labels_)
    np.testing.assert_allclose(distances, here.transform(X), rtol=1e-9)


def test_a_file_that_cannot_be_opened_is_named(X, tmp_path):
    np.save(tmp_path / "vector.npy", X[:, 0])
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(FileNotFoundError, match="path must exist, got no file .*none.npy"):
        ws.open_chunked(tmp_path / "none.npy")
    with pytest.raises(ValueError, match=r"path must end in .npy, .zarr or .parquet, got 'x.csv'"):
        ws.open_chunked(tmp_path / "x.csv")
    with pytest.raises(ValueError, match=r"vector.npy must hold a matrix, got shape \(200,\)"):
        ws.open_chunked(tmp_path / "vector.npy")
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="chunk_rows must be .*, got 0"):
        ws.open_chunked(tmp_path / "x.npy", chunk_rows=0)
