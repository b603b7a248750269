"""Indices on dask collections are those in memory, however the rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import wellsep as ws

da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
from wellsep.compute.engine.dask import chunks, pairs

N, D = 180, 4
CENTROID = (
    "cfq",
    "calinski_harabasz",
    "davies_bouldin",
    "simplified_silhouette",
    "silhouette_cosine",
    "ccc",
    "s_dbw",
    ("davies_bouldin", {"q": 2}),
    ("cfq", {"wrong_side": "squared"}),
    ("simplified_silhouette", {"average": "cluster"}),
    ("ccc", {"variant": "fastclus"}),
    ("ccc", {"variant": "nbclust"}),
    ("s_dbw", {"density": "own", "strict": True}),
)
PAIRWISE = (
    "silhouette",
    "dunn",
    "c_index",
    "generalized_dunn",
    ("silhouette", {"metric": "manhattan", "average": "cluster", "singleton": 1}),
    ("dunn", {"metric": "cosine"}),
    ("c_index", {"variant": "nbclust", "metric": "cosine"}),
    ("generalized_dunn", {"separation": "to-centroids", "diameter": "centroid"}),
)
CHUNKINGS = {
    "uneven": (90, 1, 60, 29),
    "single rows": (1,) * N,
    "one chunk": (N,),
}
# A chunk for each row takes long: those tests run with the slow ones.
CHUNKED = [
    pytest.param(sizes, id=name, marks=pytest.mark.slow if name == "single rows" else ())
    for name, sizes in CHUNKINGS.items()
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, N)
    X = rng.normal(size=(N, D)) + 4 * rng.normal(size=(4, D))[truth] + 3
    X[[20, 100, 101]] = X[[2, 3, 3]]  # also in other chunks
    X[[17, 140]] = 0.0
    labels = {
        "good": truth,
        "noisy": np.where(rng.random(N) < 0.2, -1, truth),
        "wrong": rng.integers(0, 3, N),
    }
    labels["lone"] = np.where(np.arange(N) == 66, 9, labels["noisy"])
    return X, labels


@pytest.fixture
def many_blocks(monkeypatch):
    """Chunks, pieces and blocks are worked on apart, although the data are small."""
    monkeypatch.setattr(chunks, "PORTION_BYTES", 0)
    monkeypatch.setattr(chunks, "PIECE_BYTES", 0)
    monkeypatch.setattr(chunks, "PIECE_ROWS", 23)
    monkeypatch.setattr(pairs, "LEAST_ROWS", 40)


def on_dask(X, labels, sizes):
    return (
        da.from_array(X, chunks=(sizes, -1)),
        {name: da.from_array(v, chunks=(sizes,)) for name, v in labels.items()},
    )


def assert_agree(got, expected, rtol=1e-9):
    np.testing.assert_allclose(got.values, expected.values, rtol=rtol)
    np.testing.assert_array_equal(got.coverage, expected.coverage)
    np.testing.assert_array_equal(got.n_clusters, expected.n_clusters)
    assert got.reasons == expected.reasons


@pytest.mark.filterwarnings("ignore:.*have no object within:UserWarning")
@pytest.mark.parametrize("sizes", CHUNKED)
def test_every_index_equals_the_one_in_memory(data, sizes, many_blocks):
    X, labels = data
    indices = CENTROID + PAIRWISE
    got = ws.score_partitions(*on_dask(X, labels, sizes), indices)
    assert_agree(got, ws.score_partitions(X, labels, indices))


@pytest.mark.filterwarnings("ignore:.*have no object within:UserWarning")
@pytest.mark.parametrize(
    ("noise", "in_memory"),
    [("exclude", False), ("cluster", True), ("singletons", False)],
    ids=["exclude, labels on dask", "cluster, labels in memory", "singletons, labels on dask"],
)
def test_weights_and_noise_mean_the_same(data, noise, in_memory, many_blocks):
    X, labels = data
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    indices = (*CENTROID, "silhouette", "dunn")
    rows, beside = on_dask(X, labels, CHUNKINGS["uneven"])
    got = ws.score_partitions(
        rows,
        labels if in_memory else beside,
        indices,
        sample_weight=weights if in_memory else da.from_array(weights, chunks=50),
        noise=noise,
    )
    expected = ws.score_partitions(X, labels, indices, sample_weight=weights, noise=noise)
    assert_agree(got, expected)


@pytest.mark.filterwarnings("ignore:.*have no object within:UserWarning")
@pytest.mark.parametrize("variant", ["sarle", "fastclus", "nbclust"])
def test_the_cubic_criterion_takes_more_columns_than_rows(variant):
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(12, 30)) + 3, np.arange(12) % 3
    spec = [("ccc", {"variant": variant})]
    ours = ws.score_partitions(da.from_array(X, chunks=(5, 30)), [labels], spec)
    assert ours.values == pytest.approx(ws.score_partitions(X, [labels], spec).values, rel=1e-9)


def test_a_cluster_whose_objects_have_no_weight_does_not_exist(data):
    X, labels = data
    weights = (labels["good"] != 2).astype(float)
    rows, beside = on_dask(X, labels, CHUNKINGS["uneven"])
    got = ws.score_partitions(rows, beside["good"], CENTROID, sample_weight=weights)
    assert got.n_clusters.tolist() == [3]
    assert_agree(got, ws.score_partitions(X, labels["good"], CENTROID, sample_weight=weights))


def test_small_chunks_are_looked_at_together_with_the_same_result(data):
    X, labels = data
    rows, beside = on_dask(X, labels, CHUNKINGS["single rows"])
    assert len(chunks.open_chunks(rows).portions()) == 3  # of 64 chunks at most
    indices = ["cfq", "davies_bouldin"]
    got = ws.score_partitions(rows, {"noisy": beside["noisy"]}, indices)
    assert_agree(got, ws.score_partitions(X, {"noisy": labels["noisy"]}, indices))


def counted_reads(X, sizes):
    """A dask array that counts how often each chunk is read."""
    reads = np.zeros(len(sizes), dtype=int)

    def read(block_id):
        reads[block_id[0]] += 1
        start = sum(sizes[: block_id[0]])
        return X[start : start + sizes[block_id[0]]]

    return da.map_blocks(read, chunks=(sizes, (D,)), dtype=float, meta=np.empty((0, 0))), reads


@pytest.mark.parametrize(
    ("index", "passes"),
    [
        *((name, 1) for name in ("calinski_harabasz", "ccc")),
        *((name, 2) for name in ("cfq", "davies_bouldin", "simplified_silhouette")),
        *((name, 2) for name in ("silhouette_cosine", "s_dbw")),
    ],
)
@pytest.mark.filterwarnings("ignore:.*have no object within:UserWarning")
def test_centroid_indices_go_through_the_rows_once_or_twice(data, index, passes):
    X, labels = data
    rows, reads = counted_reads(X, (60, 60, 60))
    ws.score_partitions(rows, labels["good"], [index])
    assert reads[1:].tolist() == [passes, passes]
    assert reads[0] == passes + 1  # a point near the data is taken from the first chunk


@pytest.mark.filterwarnings("ignore:.*have no object within:UserWarning")
def test_all_centroid_indices_together_take_two_passes(data):
    X, labels = data
    rows, reads = counted_reads(X, (60, 60, 60))
    ws.score_partitions(rows, labels, CENTROID[:7])
    assert reads.tolist() == [3, 2, 2]


def test_rows_are_never_gathered(data, monkeypatch, many_blocks):
    X, labels = data
    rows, beside = on_dask(X, labels, CHUNKINGS["uneven"])
    largest = []
    compute = chunks.dask.compute

    def watched(*collections, **options):
        found = compute(*collections, **options)
        largest.append(largest_array(found))
        return found

    monkeypatch.setattr(chunks.dask, "compute", watched)
    ws.score_partitions(rows, beside["good"], [*CENTROID[:6], "silhouette"])
    assert max(largest) < N


def largest_array(value) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, dict):
        return max((largest_array(v) for v in value.values()), default=0)
    if isinstance(value, list | tuple):
        return max((largest_array(v) for v in value), default=0)
    return 0


@pytest.mark.parametrize("offset", [1e4, 1e7])
def test_data_far_from_the_origin_lose_nothing(data, offset):
    X, labels = data
    rows, beside = on_dask(X + offset, labels, CHUNKINGS["uneven"])
    indices = ["calinski_harabasz", "davies_bouldin", "cfq", "silhouette"]
    assert_agree(
        ws.score_partitions(rows, beside, indices),
        ws.score_partitions(X + offset, labels, indices),
        rtol=1e-12 * offset,
    )


def test_float32_gives_the_same_for_every_chunking(data):
    X, labels = data
    n = 60
    single, labels = (X[:n] + 100).astype(np.float32), {k: v[:n] for k, v in labels.items()}
    indices = ["calinski_harabasz", "davies_bouldin", "cfq", "simplified_silhouette", "silhouette"]
    expected = ws.score_partitions(single.astype(float), labels, indices)
    for sizes in ((30, 1, 20, 9), (1,) * n, (n,)):
        got = ws.score_partitions(*on_dask(single, labels, sizes), indices)
        assert_agree(got, expected, rtol=1e-4)


def test_fewer_rows_than_columns_have_the_spectrum_that_they_have_in_memory():
    X = np.random.default_rng(4).normal(size=(12, 30))
    labels = np.arange(12) % 3
    got = ws.ccc_score(da.from_array(X, chunks=(5, -1)), labels)
    assert got == pytest.approx(ws.ccc_score(X, labels), rel=1e-9)


def test_one_index_of_one_partition_is_a_float(data):
    X, labels = data
    rows, beside = on_dask(X, labels, CHUNKINGS["uneven"])
    value = ws.davies_bouldin_score(rows, beside["good"], q=2)
    assert value == pytest.approx(ws.davies_bouldin_score(X, labels["good"], q=2), rel=1e-9)
    centers = np.array([X[labels["good"] == k].mean(axis=0) + 0.1 for k in range(4)])
    value = ws.cfq_score(rows, beside["good"], centers=centers)
    assert value == pytest.approx(ws.cfq_score(X, labels["good"], centers=centers), rel=1e-9)
    parts = ws.cfq_clusters(rows, beside["good"])
    np.testing.assert_allclose(parts, ws.cfq_clusters(X, labels["good"]), rtol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_widths_of_objects_are_a_lazy_array_cut_like_the_rows(data, metric, many_blocks):
    X, labels = data
    rows, beside = on_dask(X, labels, CHUNKINGS["uneven"])
    got = ws.silhouette_samples(rows, beside["noisy"], metric=metric)
    assert got.chunks == (CHUNKINGS["uneven"],)
    expected = ws.silhouette_samples(X, labels["noisy"], metric=metric)
    np.testing.assert_allclose(got.compute(), expected, rtol=1e-9, atol=1e-12)


def test_margins_are_a_lazy_array_cut_like_the_rows(data):
    X, labels = data
    rows, beside = on_dask(X, labels, CHUNKINGS["uneven"])
    got = ws.margins(rows, beside["noisy"])
    assert isinstance(got, da.Array)
    np.testing.assert_allclose(got.compute(), ws.margins(X, labels["noisy"]), rtol=1e-9, atol=1e-12)


def test_undefined_values_have_the_reasons_they_have_in_memory(data):
    X, labels = data
    one = np.zeros(N, dtype=int)
    rows, _ = on_dask(X, labels, CHUNKINGS["uneven"])
    partitions = {"one": one, "all": np.arange(N), "good": labels["good"]}
    beside = {name: da.from_array(v, chunks=50) for name, v in partitions.items()}
    indices = ["silhouette", "cfq", "ccc"]
    assert_agree(
        ws.score_partitions(rows, beside, indices), ws.score_partitions(X, partitions, indices)
    )
    with pytest.raises(ws.UndefinedIndex, match="needs at least 2 clusters, got 1"):
        ws.cfq_score(rows, beside["one"])


@pytest.mark.parametrize("shape", ["list", "rows", "frame", "series", "words"])
def test_labels_may_be_any_dask_collection(data, shape):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    import pandas as pd

    X, labels = data
    rows, beside = on_dask(X, labels, CHUNKINGS["uneven"])
    words = np.array(["ant", "bee", "cow", "dog"])[labels["good"]]
    frame = dd.from_pandas(pd.DataFrame({k: labels[k] for k in ("good", "wrong")}), npartitions=3)
    given, expected = {
        "list": ([beside["good"], beside["wrong"]], [labels["good"], labels["wrong"]]),
        "rows": (
            da.stack([beside["good"], beside["wrong"]]),
            np.stack([labels["good"], labels["wrong"]]),
        ),
        "frame": (frame, {k: labels[k] for k in ("good", "wrong")}),
        "series": (frame["good"], labels["good"]),
        "words": (da.from_array(words, chunks=70), words),
    }[shape]
    indices = ["davies_bouldin", "simplified_silhouette"]
    assert_agree(
        ws.score_partitions(rows, given, indices), ws.score_partitions(X, expected, indices)
    )


def test_a_dask_dataframe_with_unknown_sizes_is_scored(data):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    import pandas as pd

    X, labels = data
    table = pd.DataFrame(X, columns=list("abcd")).assign(label=labels["good"])
    frame = dd.from_pandas(table, npartitions=4)
    frame = frame[frame["a"] > 0]
    kept = table[table["a"] > 0]
    got = ws.cfq_score(frame[list("abcd")], frame["label"])
    expected = ws.cfq_score(kept[list("abcd")], kept["label"])
    assert got == pytest.approx(expected, rel=1e-9)


def test_unknown_chunk_sizes_of_an_array_are_worked_out_and_empty_chunks_left_out(data):
    X, labels = data
    rows = da.from_array(X, chunks=(30, -1))
    keep = np.arange(N) >= 45  # the whole first chunk goes
    part = rows[da.from_array(keep, chunks=30)]
    assert np.isnan(part.shape[0])
    got = ws.davies_bouldin_score(part, labels["good"][keep])
    expected = ws.davies_bouldin_score(X[keep], labels["good"][keep])
    assert got == pytest.approx(expected, rel=1e-9)
    assert np.isnan(part.shape[0])  # what was given is left as it was


def test_a_nan_is_named_with_its_chunk(data):
    X, labels = data
    broken = X.copy()
    broken[101, 2] = np.nan
    rows, _ = on_dask(broken, labels, CHUNKINGS["uneven"])
    sentence = r"X must be finite, got nan in chunk 2 \(row 10 of it, column 2\)"
    with pytest.raises(ValueError, match=sentence):
        ws.davies_bouldin_score(rows, labels["good"])
    with pytest.raises(ValueError, match=sentence):
        ws.KMeans(3, random_state=0).fit(rows)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        (lambda x, y: (x[:, 0], y), ValueError, "X must be two-dimensional, got 1 dimension"),
        (
            lambda x, y: (x[:, 0].to_dask_dataframe(), y),
            ValueError,
            "X must be two-dimensional, got 1 dimension",
        ),
        (lambda x, y: (x.astype(str), y), TypeError, "X must be numeric, got a dask array of type"),
        (lambda x, y: (x, y[:-1]), ValueError, r"labels must have one value per object \(180\)"),
        (lambda x, y: (x, y + 0.5), ValueError, "labels must be whole numbers or names, got"),
        (
            lambda x, y: (x.map_blocks(sp.csr_array, meta=sp.csr_array((0, 0))), y),
            TypeError,
            "X must have dense chunks, got sparse ones",
        ),
    ],
)
def test_bad_input_is_refused_in_a_sentence(data, change, error, sentence):
    rows, beside = on_dask(*data, CHUNKINGS["uneven"])
    with pytest.raises(error, match=sentence):
        ws.davies_bouldin_score(*change(rows, beside["good"]))


def test_weights_are_checked_where_they_are(data):
    rows, beside = on_dask(*data, CHUNKINGS["uneven"])
    negative = da.from_array(np.r_[np.ones(N - 1), -1.0], chunks=50)
    with pytest.raises(ValueError, match="sample_weight must not be negative, got -1.0"):
        ws.davies_bouldin_score(rows, beside["good"], sample_weight=negative)
    with pytest.raises(ValueError, match="at least one positive value, got zeros only"):
        ws.davies_bouldin_score(rows, beside["good"], sample_weight=0 * negative)


def test_noise_can_be_refused(data):
    rows, beside = on_dask(*data, CHUNKINGS["uneven"])
    n_noise = int((data[1]["noisy"] == -1).sum())
    with pytest.raises(ValueError, match=rf"noisy must not hold noise .*, got {n_noise}"):
        ws.score_partitions(rows, beside, ["cfq"], noise="error")


def test_an_index_that_needs_all_rows_says_which_ones_do_not(data):
    rows, beside = on_dask(*data, CHUNKINGS["uneven"])
    with pytest.raises(TypeError, match="X must be in memory for 'cdbw'.*calinski_harabasz, ccc"):
        ws.score_partitions(rows, beside, ["cdbw"])
    with pytest.raises(TypeError, match="in memory for 'generalized_dunn.separation=hausdorff.'"):
        ws.generalized_dunn_score(rows, beside["good"], separation="hausdorff")
    with pytest.raises(TypeError, match="got 'precomputed'"):
        ws.score_partitions(rows, beside, [("silhouette", {"metric": "precomputed"})])
    with pytest.raises(ValueError, match="device must be None for a dask array, got 'cuda'"):
        ws.cfq_score(rows, beside["good"], device="cuda")


def test_what_takes_no_dask_collection_says_so(data):
    rows, _ = on_dask(*data, CHUNKINGS["uneven"])
    with pytest.raises(TypeError, match=r"X must be in memory here, got a dask Array; pass X.comp"):
        ws.multimodality(rows)


def test_the_cost_of_all_pairs_is_said_beforehand(data, monkeypatch):
    monkeypatch.setattr(pairs, "WORTH_SAYING", 0.0)
    rows, beside = on_dask(*data, CHUNKINGS["uneven"])
    with pytest.warns(UserWarning, match=r"1.6e\+04 distances between 180 objects.*estimate"):
        ws.silhouette_score(rows, beside["good"])
