"""AnnData in: labelings of obs judged in embeddings of obsm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wellsep.adapters import load_any, runs_from_anndata

anndata = pytest.importorskip("anndata", reason="needs the extra anndata")

RNG = np.random.default_rng(2)
PCA = RNG.normal(size=(6, 4)).astype(np.float32)
SCVI = RNG.normal(size=(6, 3))
CELLS = [f"cell{i}" for i in range(6)]


def cells():
    obs = pd.DataFrame(
        {
            "batch": pd.Categorical(list("ababab")),
            "leiden_0.5": pd.Categorical(list("001122")),
            "leiden_1.0": pd.Categorical(list("012344")),
            "kmeans": [0, 0, 1, 1, 2, -1],
            "doubtful": pd.Categorical(["a", None, "a", "b", "b", "b"]),
        },
        index=CELLS,
    )
    made = anndata.AnnData(
        X=np.ones((6, 2), dtype=np.float32),
        obs=obs,
        obsm={"X_pca": PCA, "X_scvi": SCVI, "frame": pd.DataFrame(SCVI, CELLS, list("xyz"))},
    )
    made.uns["leiden_0.5"] = {"params": {"resolution": 0.5, "seed": np.int64(0)}}
    return made


@pytest.fixture(scope="module", params=["memory", "h5ad", "h5ad compressed", "zarr"])
def source(request, tmp_path_factory):
    made = cells()
    if request.param == "memory":
        return made
    folder = tmp_path_factory.mktemp("cells")
    if request.param == "zarr":
        made.write_zarr(folder / "cells.zarr")
        return folder / "cells.zarr"
    compression = "gzip" if request.param.endswith("compressed") else None
    made.write_h5ad(folder / "cells.h5ad", compression=compression)
    return folder / "cells.h5ad"


def test_keys_and_patterns_choose_spaces_and_partitions(source):
    runs = runs_from_anndata(source, spaces=["X_pca", "X_scvi"], labels=["leiden_*", "kmeans"])
    assert list(runs.spaces) == ["X_pca", "X_scvi"]
    assert list(runs.partitions) == ["leiden_0.5", "leiden_1.0", "kmeans"]
    np.testing.assert_array_equal(runs.spaces["X_pca"], PCA)
    assert runs.spaces["X_pca"].dtype == np.float32
    np.testing.assert_array_equal(runs.spaces["X_scvi"], SCVI)
    assert runs.partitions["leiden_0.5"].tolist() == list("001122")
    assert runs.partitions["kmeans"].tolist() == [0, 0, 1, 1, 2, -1]
    assert runs.ids.tolist() == CELLS
    assert not runs.paired


def test_settings_left_by_the_clusterer_become_params(source):
    runs = runs_from_anndata(source, labels="leiden_*")
    assert runs.params["leiden_0.5"] == {"resolution": 0.5, "seed": 0}
    assert runs.params["leiden_1.0"] == {}


def test_all_embeddings_are_spaces_by_default_and_the_matrix_only_by_name(source):
    assert set(runs_from_anndata(source, labels="kmeans").spaces) == {"X_pca", "X_scvi", "frame"}
    assert set(runs_from_anndata(source, "X_*", "kmeans").spaces) == {"X_pca", "X_scvi"}
    with_matrix = runs_from_anndata(source, "X,frame", "kmeans")
    assert set(with_matrix.spaces) == {"X", "frame"}
    np.testing.assert_array_equal(with_matrix.spaces["X"], np.ones((6, 2)))
    np.testing.assert_array_equal(with_matrix.spaces["frame"], SCVI)


def test_the_space_of_a_labeling_may_be_told(source):
    runs = runs_from_anndata(
        source, ["X_pca"], ["leiden_*"], pairs={"leiden_0.5": "X_pca", "leiden_1.0": "X_pca"}
    )
    assert runs.paired


def test_a_file_is_mapped_and_its_matrix_left_alone(tmp_path, monkeypatch):
    cells().write_h5ad(tmp_path / "cells.h5ad")
    monkeypatch.setattr(anndata, "read_h5ad", None)
    runs = runs_from_anndata(tmp_path / "cells.h5ad", "X_pca", "kmeans")
    assert isinstance(runs.spaces["X_pca"], np.memmap)


@pytest.mark.parametrize(
    ("spaces", "labels", "sentence"),
    [
        (None, None, "got None; these look like clusterings: labels='leiden_\\*,kmeans'"),
        (None, "louvain*", "labels must match one of 'batch'.*got 'louvain"),
        ("X_none", "kmeans", "spaces must match one of .*'X_pca'.*got 'X_none'"),
        (None, [], "labels must name at least one of"),
        (
            None,
            "doubtful",
            "labels of run 'doubtful' must have a value for every object.*first at 1",
        ),
    ],
)
def test_a_choice_that_does_not_fit_says_what_there_is(source, spaces, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        runs_from_anndata(source, spaces, labels)


def test_a_sparse_matrix_is_a_space_and_stays_sparse(tmp_path):
    import scipy.sparse as sparse

    made = anndata.AnnData(X=sparse.csr_matrix(np.eye(6)), obs=cells().obs)
    made.write_h5ad(tmp_path / "a.h5ad")
    for source in (made, tmp_path / "a.h5ad"):
        space = runs_from_anndata(source, "X", "kmeans").spaces["X"]
        assert sparse.issparse(space)
        np.testing.assert_array_equal(space.toarray(), np.eye(6))


def test_nan_in_an_embedding_names_its_key(tmp_path):
    made = cells()
    made.obsm["X_scvi"][3, 1] = np.nan
    made.write_h5ad(tmp_path / "a.h5ad")
    runs = runs_from_anndata(tmp_path / "a.h5ad", labels="kmeans")
    with pytest.raises(
        ValueError, match="embedding of run 'X_scvi' must be finite, got nan at row 3"
    ):
        runs.spaces["X_scvi"]


def test_what_is_no_anndata_is_refused(tmp_path):
    (tmp_path / "a.h5ad").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="source must be a readable .h5ad file, got a.h5ad"):
        runs_from_anndata(tmp_path / "a.h5ad", labels="x")
    h5py = pytest.importorskip("h5py", reason="needs the extra anndata")
    with h5py.File(tmp_path / "b.h5ad", "w") as file:
        file["other"] = 1
    with pytest.raises(ValueError, match="source must hold AnnData, got 'other' in b.h5ad"):
        runs_from_anndata(tmp_path / "b.h5ad", labels="x")
    with pytest.raises(FileNotFoundError, match="source must be an .h5ad file"):
        runs_from_anndata(tmp_path / "c.h5ad", labels="x")
    with pytest.raises(TypeError, match="source must be AnnData or a path, got int"):
        runs_from_anndata(3, labels="x")


def test_files_of_old_anndata_are_read_whole(tmp_path):
    h5py = pytest.importorskip("h5py", reason="needs the extra anndata")
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["X"] = np.ones((2, 1), dtype=np.float32)
        file["obs"] = np.array([(b"c0", 0), (b"c1", 1)], dtype=[("index", "S2"), ("k", "i8")])
        file["var"] = np.array([(b"g0",)], dtype=[("index", "S2")])
        file["obsm"] = np.array([((1.0, 2.0),), ((3.0, 4.0),)], dtype=[("X_pca", "f8", (2,))])
    runs = runs_from_anndata(tmp_path / "old.h5ad", labels="k")
    assert runs.spaces["X_pca"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert runs.ids.tolist() == ["c0", "c1"]


def test_the_common_door_opens_anndata(source):
    runs = load_any(source, spaces="X_pca,X_scvi", labels="leiden_*")
    assert (len(runs.spaces), len(runs.partitions)) == (2, 2)
