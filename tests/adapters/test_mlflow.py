"""MLflow in: runs logged with arrays as artifacts, params and metrics kept."""

from __future__ import annotations

import os

import numpy as np
import pytest

from wellsep.adapters import load_any, log_run, runs_from_mlflow
from wellsep.runs import NoRuns

mlflow = pytest.importorskip("mlflow", reason="needs the extra mlflow")
pytest.importorskip("alembic", reason="a local MLflow database needs sqlalchemy and alembic")

LABELS = np.array([0, 0, 1, 1])
SPACE = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory):
    """MLflow builds its tables slowly; every test starts from a copy."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}")
    return path


@pytest.fixture(params=["database", "folder"])
def uri(request, tmp_path, monkeypatch, empty_database):
    monkeypatch.chdir(tmp_path)  # a database keeps its artifacts under the current folder
    if request.param == "folder":
        return str(tmp_path / "mlruns")
    (tmp_path / "mlflow.db").write_bytes(empty_database.read_bytes())
    return f"sqlite:///{tmp_path}/mlflow.db"


def test_logged_runs_come_back_with_params_and_metrics(uri):
    ids = list("pqrs")
    log_run(
        SPACE,
        LABELS,
        tracking_uri=uri,
        experiment="digits",
        name="first",
        params={"k": 2, "lr": 1e-3, "kind": "relu", "sizes": [1, 2]},
        metrics={"loss": 0.25},
        metadata={"note": "ä"},
        ids=ids,
    )
    log_run(
        None, ["a", "a", "b", "c"], tracking_uri=uri, experiment="digits", name="second", ids=ids
    )
    runs = runs_from_mlflow(uri, "digits")
    assert runs.names == ("first", "second")
    assert runs.made_in.tolist() == [0, -1]
    np.testing.assert_array_equal(runs.spaces["first"], SPACE)
    assert isinstance(runs.spaces["first"], np.memmap)
    assert runs.partitions["second"].tolist() == ["a", "a", "b", "c"]
    assert runs.ids.tolist() == ids
    assert runs.params["first"] == {"k": 2, "lr": 1e-3, "kind": "relu", "sizes": [1, 2]}
    assert runs.metadata["first"]["metrics"] == {"loss": 0.25}
    assert runs.metadata["first"]["note"] == "ä"


def log_by_hand(uri, experiment_id, name, **arrays):
    client = mlflow.MlflowClient(tracking_uri=uri)
    run_id = client.create_run(experiment_id, run_name=name).info.run_id
    client.log_param(run_id, "k", 3)
    for key, array in arrays.items():
        np.save(f"{key}.npy", array)
        client.log_artifact(run_id, f"{key}.npy", "out")
    return client, run_id


@pytest.fixture
def database(tmp_path, monkeypatch, empty_database):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlflow.db").write_bytes(empty_database.read_bytes())
    return f"sqlite:///{tmp_path}/mlflow.db"


def test_artifacts_logged_by_hand_are_read_from_where_they_are(database):
    client, run_id = log_by_hand(database, "0", "mine", clusters=LABELS, codes=SPACE)
    client.set_tag(run_id, "owner", "me")
    client.set_terminated(run_id)
    runs = runs_from_mlflow(database, labels="out/clusters.npy", embedding="out/codes.npy")
    assert runs.params == {"mine": {"k": 3}}
    assert runs.metadata["mine"]["tags"] == {"owner": "me"}
    np.testing.assert_array_equal(runs.spaces["mine"], SPACE)


def test_runs_that_are_going_failed_or_without_arrays_are_passed_over(database):
    log_by_hand(database, "0", "going", labels=LABELS)
    client, failed = log_by_hand(database, "0", "failed", labels=LABELS)
    client.set_terminated(failed, "FAILED")
    bare = client.create_run("0", run_name="bare").info.run_id
    client.set_terminated(bare)
    with pytest.raises(NoRuns, match="experiment 'Default' must have runs .*1 RUNNING"):
        runs_from_mlflow(database, labels="out/labels.npy")
    runs = runs_from_mlflow(database, labels="out/labels.npy", states=["RUNNING", "FAILED"])
    assert set(runs.names) == {"going", "failed"}


def test_artifacts_may_be_added_to_a_run_that_stays_open(database):
    client = mlflow.MlflowClient(tracking_uri=database)
    run_id = client.create_run("0", run_name="mine").info.run_id
    assert log_run(SPACE, LABELS, tracking_uri=database, run_id=run_id) == run_id
    assert client.get_run(run_id).info.status == "RUNNING"
    assert runs_from_mlflow(database, states=["RUNNING"]).names == ("mine",)


def test_a_run_that_could_not_be_logged_is_marked_failed(database, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(mlflow.MlflowClient, "log_artifacts", refuse)
    with pytest.raises(OSError, match="no space left"):
        log_run(None, LABELS, tracking_uri=database)
    runs = mlflow.MlflowClient(tracking_uri=database).search_runs(["0"])
    assert [run.info.status for run in runs] == ["FAILED"]


def test_equal_names_are_told_apart_by_their_ids(database):
    first = log_run(None, LABELS, tracking_uri=database, name="train")
    second = log_run(None, LABELS, tracking_uri=database, name="train")
    assert runs_from_mlflow(database).names == (f"train ({first[:8]})", f"train ({second[:8]})")


def test_an_experiment_must_be_named_when_there_are_several(database):
    log_run(None, LABELS, tracking_uri=database, experiment="a", name="x")
    assert runs_from_mlflow(database).names == ("x",)
    log_run(None, LABELS, tracking_uri=database, experiment="b", name="y")
    with pytest.raises(ValueError, match="experiment must be named when several have runs"):
        runs_from_mlflow(database)
    with pytest.raises(ValueError, match="experiment must be one of .*'a'.*got 'c'"):
        runs_from_mlflow(database, "c")
    assert load_any(f"{database}#b").names == ("y",)
    assert load_any(f"{database}#a").names == ("x",)


def test_an_empty_store_says_so(database):
    with pytest.raises(NoRuns, match="tracking_uri must hold runs, got none"):
        runs_from_mlflow(database)


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be an existing database, got no file"):
        runs_from_mlflow(f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(FileNotFoundError, match="must be an existing folder, got no folder"):
        runs_from_mlflow(tmp_path / "mlruns")
    assert os.listdir(tmp_path) == []


def test_a_wrong_number_of_objects_names_the_run(database):
    for name, labels in (("a", LABELS), ("b", LABELS), ("short", LABELS[:3])):
        log_run(None, labels, tracking_uri=database, name=name)
    with pytest.raises(ValueError, match="run 'short' must have the 4 objects"):
        runs_from_mlflow(database)


def test_a_pickled_artifact_is_refused_with_the_name_of_the_run(database):
    client, run_id = log_by_hand(database, "0", "mine", labels=np.array([{}], dtype=object))
    client.set_terminated(run_id)
    with pytest.raises(ValueError, match="labels of run 'mine' must be a plain .npy.*pickled"):
        runs_from_mlflow(database, labels="out/labels.npy")


def test_remote_artifacts_are_downloaded_once_into_the_cache(database, tmp_path, monkeypatch):
    import wellsep.adapters.mlflow as adapter

    log_run(SPACE, LABELS, tracking_uri=database, name="a")
    real, fetched = mlflow.MlflowClient.download_artifacts, []

    def download(self, run_id, path, dst_path=None):
        fetched.append(path)
        return real(self, run_id, path, dst_path)

    class Remote:
        scheme, path = "s3", ""

    monkeypatch.setattr(mlflow.MlflowClient, "download_artifacts", download)
    genuine = adapter.urlparse
    monkeypatch.setattr(
        adapter, "urlparse", lambda uri: Remote if "artifacts" in uri else genuine(uri)
    )
    for _ in range(2):
        runs = runs_from_mlflow(database, cache=tmp_path / "cache")
        np.testing.assert_array_equal(runs.spaces["a"], SPACE)
    assert sorted(fetched) == ["embedding.npy", "labels.npy", "run.json"]


def test_the_environment_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    log_run(None, LABELS, tracking_uri=str(tmp_path / "mlruns"), name="a")
    assert runs_from_mlflow(tmp_path / "mlruns").names == ("a",)
    assert "MLFLOW_ALLOW_FILE_STORE" not in os.environ


def test_the_common_door_knows_the_store(uri):
    log_run(SPACE, LABELS, tracking_uri=uri, name="a")
    log_run(None, LABELS, tracking_uri=uri, name="b")
    assert load_any(uri).names == ("a", "b")
    assert load_any(f"mlflow+{uri}", labels="b").made_in.tolist() == [-1]


@pytest.fixture
def fluent(database):
    """MLflow as users have it: a tracking store that is set, and no run left open."""
    before, known = mlflow.get_tracking_uri(), os.environ.get("MLFLOW_EXPERIMENT_ID")
    mlflow.set_tracking_uri(database)
    yield database
    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(before)
    mlflow.tracking.fluent._active_experiment_id = None
    if known is None:
        os.environ.pop("MLFLOW_EXPERIMENT_ID", None)


def test_the_active_run_and_its_experiment_are_used(fluent):
    mlflow.set_experiment("exp A")
    with mlflow.start_run(run_name="mine") as active:
        assert log_run(SPACE, LABELS, params={"k": 2}) == active.info.run_id
        assert mlflow.active_run().info.status == "RUNNING"
    runs = runs_from_mlflow(fluent)
    assert runs.names == ("mine",)
    assert runs.params["mine"] == {"k": 2}


def test_without_an_active_run_one_is_made_in_the_active_experiment(fluent):
    mlflow.set_experiment("exp A")
    run_id = log_run(SPACE, LABELS, name="alone")
    made = mlflow.MlflowClient().get_run(run_id)
    assert made.info.run_name == "alone"
    assert made.info.status == "FINISHED"
    assert mlflow.get_experiment(made.info.experiment_id).name == "exp A"


def test_another_name_makes_a_child_of_the_active_run(fluent):
    mlflow.set_experiment("exp A")
    with mlflow.start_run(run_name="sweep") as active:
        for k in (2, 3):
            log_run(None, LABELS, name=f"k{k}", params={"k": k})
        child = log_run(None, LABELS, name="k4")
    made = mlflow.MlflowClient().get_run(child)
    assert made.data.tags["mlflow.parentRunId"] == active.info.run_id
    assert runs_from_mlflow(fluent, "exp A").names == ("k2", "k3", "k4")


def test_a_second_result_does_not_replace_the_first_in_one_run(fluent):
    with mlflow.start_run():
        log_run(SPACE, LABELS)
        with pytest.raises(ValueError, match="name must be given for a second"):
            log_run(SPACE, LABELS[::-1])


def test_another_store_or_experiment_is_not_the_active_run(fluent, tmp_path):
    with mlflow.start_run() as active:
        assert log_run(None, LABELS, experiment="other", name="x") != active.info.run_id
        elsewhere = log_run(None, LABELS, tracking_uri=str(tmp_path / "mlruns"), name="y")
        assert elsewhere != active.info.run_id
    assert runs_from_mlflow(fluent, "other").names == ("x",)
    assert runs_from_mlflow(tmp_path / "mlruns").names == ("y",)
