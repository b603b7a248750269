"""With a real scheduler and two worker processes: the same results, and a lost worker survived."""

from __future__ import annotations

import gc
import os
import time

import numpy as np
import pytest

import wellsep as ws
from wellsep.evaluate import rank_confidence

da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
from wellsep.compute.engine.dask import client as dask_client_module

N, D, K = 120, 3, 4


@pytest.fixture
def on_cluster(dask_client):
    """The two workers compute whatever is on Dask."""
    with dask_client.as_current():
        yield dask_client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, N)
    return rng.normal(size=(N, D)) + 5 * rng.normal(size=(K, D))[truth], truth


CHUNKINGS = {"uneven": (50, 10, 59, 1), "single rows": (1,) * N, "one chunk": (N,)}
# A pass over the cluster takes long: the other ways to cut the rows run with the slow tests, and
# without a cluster in test_dask_indices.py and test_dask_estimators.py.
CHUNKED = [
    pytest.param(sizes, id=name, marks=() if name == "uneven" else pytest.mark.slow)
    for name, sizes in CHUNKINGS.items()
]


def on_dask(X, sizes=CHUNKINGS["uneven"]):
    return da.from_array(X, chunks=(sizes, -1))


@pytest.fixture(params=CHUNKED)
def rows(request, data, monkeypatch):
    """The data on Dask; chunks and blocks are worked on apart, although the data are small."""
    if len(request.param) < 10:
        monkeypatch.setattr("wellsep.compute.engine.dask.chunks.PORTION_BYTES", 0)
    monkeypatch.setattr("wellsep.compute.engine.dask.pairs.LEAST_ROWS", 45)
    return on_dask(data[0], request.param)


@pytest.mark.filterwarnings("ignore:.*have no object within:UserWarning")
def test_every_index_is_the_one_in_memory(data, rows, on_cluster):
    from wellsep.indices.scoring import on_dask as served

    X, truth = data
    partitions = {"truth": truth, "noisy": np.where(np.arange(N) % 7 == 0, -1, truth)}
    indices = [
        "cfq", "calinski_harabasz", "davies_bouldin", "simplified_silhouette",
        "silhouette_cosine", "ccc", "s_dbw", "silhouette", "dunn", "c_index", "generalized_dunn",
    ]  # fmt: skip
    assert set(indices) == {name for name in ws.INDICES if served(ws.INDICES[name])}
    beside = {name: da.from_array(v, chunks=70) for name, v in partitions.items()}
    got = ws.score_partitions(rows, beside, indices)
    expected = ws.score_partitions(X, partitions, indices)
    np.testing.assert_allclose(got.values, expected.values, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        ws.KMeans(K, init="random", n_init=1, random_state=0),
        ws.CFMeans(K, schedule="oscillate", init="random", max_moves=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_estimator_ends_where_it_ends_in_memory(data, rows, on_cluster, model):
    from sklearn.base import clone

    X, _ = data
    here, there = clone(model).fit(X), clone(model).fit(rows)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-9)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)


def killing_reader(X, folder):
    """A function that reads rows, and once, at the twelfth reading, kills its own process."""
    folder = str(folder)

    def read(block_id, block_info=None):
        import os
        import signal
        import uuid

        open(os.path.join(folder, uuid.uuid4().hex), "x").close()
        late = len(os.listdir(folder)) > 12
        if late and not os.path.exists(folder + ".killed"):
            open(folder + ".killed", "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return X[30 * block_id[0] : 30 * block_id[0] + 30]

    return read


def test_a_worker_killed_in_mid_fit_changes_nothing(data, on_cluster, tmp_path):
    X, _ = data
    folder = tmp_path / "reads"
    folder.mkdir()
    rows = da.map_blocks(
        killing_reader(X, folder), chunks=((30,) * 4, (D,)), dtype=float, meta=np.empty((0, 0))
    )
    before = set(on_cluster.run(os.getpid).values())
    model = ws.KMeans(K, init=X[:K], tol=0).fit(rows)
    assert (tmp_path / "reads.killed").exists()
    assert model.n_iter_ >= 3
    expected = ws.KMeans(K, init=X[:K], tol=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-9)
    on_cluster.wait_for_workers(2, timeout=60)
    assert set(on_cluster.run(os.getpid).values()) != before


def test_the_scheduler_is_never_shown_two_tasks_for_one_key(data, on_cluster, caplog):
    X, _ = data
    rows = on_dask(X) * 2.0 + 1.0
    model = ws.KMeans(K, init=X[:K] * 2 + 1, max_iter=3).fit(rows)
    labels = model.labels_.persist()
    widths = ws.silhouette_samples(rows, model.labels_).persist()
    ws.score_partitions(rows, {"lazy": model.labels_, "held": labels}, ["cfq", "silhouette"])
    assert widths.compute().shape == (N,)
    assert rows.sum().compute() == pytest.approx((X * 2 + 1).sum())
    assert [r for r in caplog.records if "run_spec" in r.getMessage()] == []


def test_rows_held_by_the_workers_are_used_where_they_are(data, on_cluster):
    X, truth = data
    held, labels = on_dask(X).persist(), da.from_array(truth, chunks=70).persist()
    for rows in (held, held * 2.0):
        model = ws.KMeans(K, init=np.asarray(rows[:K]), max_iter=3).fit(rows)
        expected = ws.KMeans(K, init=np.asarray(rows[:K]), max_iter=3).fit(np.asarray(rows))
        np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-9)
        value = ws.silhouette_score(rows, labels)
        assert value == pytest.approx(ws.silhouette_score(X, truth), rel=1e-9)


def save_spaces(folder, data):
    """Five spaces, one in each kind of file, and three partitions."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    X, truth = data
    rng = np.random.default_rng(1)
    folder.mkdir()
    for name, scale in (("a", 0.1), ("b", 0.5), ("c", 1.0)):
        ws.save_run(
            folder,
            X + scale * rng.normal(size=X.shape),
            np.where(rng.random(N) < scale / 4, 0, truth),
            name=name,
        )
    pd.DataFrame(X * 1.5, columns=list("xyz")).to_parquet(folder / "d.embedding.parquet")
    try:
        import zarr
    except ImportError:
        return
    zarr.save_array(str(folder / "e.embedding.zarr"), X.astype(np.float32))


@pytest.fixture
def runs(tmp_path, data):
    save_spaces(tmp_path / "runs", data)
    return ws.load_runs(tmp_path / "runs")


def equal_scores(got, expected):
    assert (got.spaces, got.partitions) == (expected.spaces, expected.partitions)
    for index in expected.values:
        np.testing.assert_allclose(got.values[index], expected.values[index], rtol=1e-9)
    np.testing.assert_allclose(got.dip.pvalue, expected.dip.pvalue)
    np.testing.assert_array_equal(got.coverage, expected.coverage)
    for one, other in zip(
        got.plot_coordinates.planes, expected.plot_coordinates.planes, strict=True
    ):
        np.testing.assert_allclose(one, other)


def test_workers_read_the_embeddings_and_score_them(runs, dask_client, monkeypatch):
    expected = ws.score_runs(runs, ["silhouette", "davies_bouldin"])
    assert len(expected.spaces) >= 4

    def refuse(part):
        raise AssertionError("an embedding was opened by the client")

    monkeypatch.setattr("wellsep.runs.run.Part.open", refuse_embeddings(refuse))
    told = []
    got = ws.score_runs(
        runs,
        ["silhouette", "davies_bouldin"],
        scheduler=dask_client,
        progress=lambda *facts: told.append(facts),
    )
    monkeypatch.undo()
    equal_scores(got, expected)
    n = len(expected.spaces)
    assert told[0] == (0, n, "")
    assert [done for done, *_ in told] == list(range(n + 1))


def refuse_embeddings(refuse):
    from wellsep.runs.run import Part

    opened = Part.open

    def open_part(part):
        return refuse(part) if part.kind == "embedding" else opened(part)

    return open_part


def test_an_active_client_is_used_unasked(runs, on_cluster, monkeypatch):
    used = []
    from wellsep.evaluate.scoring import spaces as scoring

    monkeypatch.setattr(
        scoring, "over_spaces", lambda team, *rest, **more: used.append(team.client) or iter([])
    )
    with pytest.raises(KeyError):  # nothing was computed
        ws.score_runs(runs)
    assert used == [on_cluster]


def test_an_interrupted_scoring_goes_on_where_it_was(runs, dask_client, tmp_path, monkeypatch):
    cache = tmp_path / "cache"

    def interrupt(done, total, name):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ws.score_runs(runs, scheduler=dask_client, cache=cache, progress=interrupt)
    finished = len(list(cache.iterdir()))
    assert finished >= 2

    from wellsep.evaluate.scoring import spaces as scoring

    asked, over = [], scoring.over_spaces

    def watched(team, spaces, function, *shared, **more):
        asked.append((function.__name__, len(spaces)))
        return over(team, spaces, function, *shared, **more)

    monkeypatch.setattr(scoring, "over_spaces", watched)
    got = ws.score_runs(runs, scheduler=dask_client, cache=cache)
    n = len(got.spaces)
    assert asked == [("digest_embedding", n), ("_compute", n - finished)]
    equal_scores(got, ws.score_runs(runs))
    equal_scores(ws.score_runs(runs, cache=cache), got)  # the cache is the one used in memory


@pytest.mark.slow
def test_a_lost_worker_costs_only_its_task(data, dask_client, tmp_path):
    from wellsep._files.arrays import Stored

    X, truth = data
    opened = tmp_path / "opened"
    opened.mkdir()

    def opener(name):
        folder = str(opened)

        def read():
            import os
            import signal
            import time
            import uuid

            open(os.path.join(folder, f"{name}-{uuid.uuid4().hex}"), "x").close()
            marker = os.path.join(folder, "killed")
            if name == "s1" and not os.path.exists(marker):
                open(marker, "x").close()
                time.sleep(2)  # what this worker has done before is handed over meanwhile
                os.kill(os.getpid(), signal.SIGKILL)
            return X

        return read

    spaces = {f"s{i}": Stored(X.shape, X.dtype, opener(f"s{i}")) for i in range(4)}
    lost = ws.Runs.from_parts(spaces, {"truth": truth})
    got = ws.score_runs(lost, scheduler=dask_client, dip=False, details=False)
    plain = ws.Runs.from_parts(dict.fromkeys(spaces, X), {"truth": truth})
    expected = ws.score_runs(plain, dip=False, details=False)
    np.testing.assert_allclose(got.values["silhouette"], expected.values["silhouette"])
    assert (opened / "killed").exists()
    reads = [path.name.split("-")[0] for path in opened.iterdir() if path.name != "killed"]
    assert reads.count("s1") == 2
    assert len(reads) == 4 + 1  # all others were read once
    dask_client.wait_for_workers(2, timeout=60)


def test_half_samples_are_drawn_on_the_cluster_too(runs, dask_client):
    scores = ws.score_runs(runs)
    result = ws.ace(scores, dip=False)
    here = rank_confidence(runs, scores, result, n_draws=6)
    there = rank_confidence(runs, scores, result, n_draws=6, scheduler=dask_client)
    np.testing.assert_array_equal(there.ranks, here.ranks)


def test_a_judgement_made_on_the_cluster_is_the_one_made_here(runs, dask_client):
    here = ws.judge(runs, n_draws=6, dip=False)
    there = ws.judge(runs, n_draws=6, dip=False, scheduler=dask_client)
    np.testing.assert_array_equal(
        there.scores.values["silhouette"], here.scores.values["silhouette"]
    )
    np.testing.assert_array_equal(there.confidence.ranks, here.confidence.ranks)


def test_the_error_of_a_worker_names_its_space(data, dask_client, tmp_path):
    X, truth = data
    broken = X.copy()
    broken[3, 1] = np.nan
    ws.save_run(tmp_path, X, truth, name="fine")
    ws.save_run(tmp_path, X, truth, name="broken")
    np.save(tmp_path / "broken" / "embedding.npy", broken)
    runs = ws.load_runs(tmp_path)
    with pytest.raises(ValueError, match="embedding of run 'broken' must be finite, got nan"):
        ws.score_runs(runs, scheduler=dask_client)


def test_the_command_ranks_on_the_cluster_and_says_where_to_watch(
    runs, dask_client, tmp_path, capsys
):
    from wellsep.cli.main import main

    folder = str(tmp_path / "runs")
    arguments = ["rank", folder, "--draws", "4", "--cache", "none", "--json", "--ace", "dip=no"]
    assert main(arguments) == 0
    here = capsys.readouterr()
    assert main([*arguments, "--scheduler", dask_client.scheduler.address]) == 0
    there = capsys.readouterr()
    assert there.out == here.out
    assert f"Dask scheduler {dask_client.scheduler.address}: 2 worker(s)" in there.err
    assert f"dashboard: {dask_client.dashboard_link}" in there.err


def test_a_scheduler_that_is_not_there_is_named_within_seconds(runs, monkeypatch, capsys, tmp_path):
    from wellsep.cli.main import main

    monkeypatch.setattr(dask_client_module, "SECONDS", 0.3)
    address = "tcp://127.0.0.1:9"
    start = time.monotonic()
    with pytest.raises(ConnectionError, match=f"answered at {address} within 0.3 s.*dask sched"):
        ws.score_runs(runs, scheduler=address)
    assert time.monotonic() - start < 8
    assert main(["rank", str(tmp_path / "runs"), "--scheduler", address]) != 0
    assert address in capsys.readouterr().err


def test_what_is_no_address_is_refused(runs, monkeypatch):
    monkeypatch.setattr(dask_client_module, "SECONDS", 0.3)
    with pytest.raises(ConnectionError, match="No Dask scheduler answered at gopher://x:1"):
        ws.score_runs(runs, scheduler="gopher://x:1")
    for words in ("nonsense", "tcp://host", "tcp://a b:1"):
        with pytest.raises(ValueError, match="scheduler must be an address like"):
            ws.score_runs(runs, scheduler=words)
    with pytest.raises(TypeError, match="scheduler must be an address .* got int"):
        ws.score_runs(runs, scheduler=8786)


def test_nothing_is_left_of_a_client_that_did_not_start(monkeypatch):
    # What is left would close while another client starts, and both would wait without end.
    monkeypatch.setattr(dask_client_module, "SECONDS", 0.3)
    before = {id(one) for one in gc.get_objects() if isinstance(one, distributed.Client)}
    gc.disable()
    try:
        for address in ("tcp://127.0.0.1:9", "gopher://x:1"):
            with pytest.raises(ConnectionError, match="No Dask scheduler answered"):
                dask_client_module.connect(address)
        left = [one for one in gc.get_objects() if isinstance(one, distributed.Client)]
    finally:
        gc.enable()
    assert {id(one) for one in left} <= before


def test_a_scheduler_without_workers_is_refused(runs, monkeypatch):
    monkeypatch.setattr(dask_client_module, "SECONDS", 1)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=True, host="127.0.0.1", dashboard_address=":0"
        ) as empty,
        pytest.raises(ConnectionError, match="had no worker within"),
    ):
        ws.score_runs(runs, scheduler=empty.scheduler_address)


class _OtherWorkers:
    """A client whose workers have something else installed."""

    def __init__(self, client, **packages):
        self.client, self.packages = client, packages
        self.submit = client.submit

    def get_versions(self, packages):
        found = self.client.get_versions(packages=packages)
        for facts in found["workers"].values():
            facts["packages"].update(self.packages)
        return found


@pytest.mark.parametrize(
    ("packages", "sentence"),
    [
        ({"dask": "2020.1.0"}, r"same dask as the client \(.*\), got 2020.1.0 dask on tcp://"),
        ({"distributed": "1.0"}, "got 1.0 distributed on tcp://"),
        ({"wellsep": None}, "got no wellsep on tcp://.*; install the same version"),
        ({"python": "3.8.1.final.0"}, "got 3.8 python on"),
    ],
)
def test_workers_of_other_versions_are_refused(runs, dask_client, packages, sentence):
    with pytest.raises(ValueError, match=sentence):
        ws.score_runs(runs, scheduler=_OtherWorkers(dask_client, **packages))


def test_versions_are_compared_before_arrays_are_computed_too(data, on_cluster, monkeypatch):
    X, truth = data
    odd = _OtherWorkers(on_cluster, wellsep="0.0.1")
    monkeypatch.setattr("wellsep.compute.engine.dask.chunks.active_client", lambda: odd)
    with pytest.raises(ValueError, match="got 0.0.1 wellsep on tcp://"):
        ws.cfq_score(on_dask(X), truth)


def test_workers_of_the_same_versions_are_let_through(dask_client):
    dask_client_module._CHECKED.discard(dask_client)
    dask_client_module.check_versions(dask_client)
    assert dask_client in dask_client_module._CHECKED
