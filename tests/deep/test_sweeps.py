"""Sweeps write each trial the moment it ends, record failures and never repeat what is done."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs

pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.cli.main import main
from wellsep.cli.training import parse_grid
from wellsep.deep import DeepKMeans, sweep
from wellsep.deep.sweeps import trial
from wellsep.deep.sweeps.trial import JOURNAL, claimed, drop_dead_claims, try_lock
from wellsep.runs import load_runs
from wellsep.tables.reading import read_array

X, _ = make_blobs(60, 4, centers=3, random_state=0)
MODEL = DeepKMeans(
    3, pretrain_epochs=1, epochs=1, hidden=(8,), n_latent=2, device="cpu", random_state=0
)


def statuses(result):
    return [trial.status for trial in result.trials]


def journal(folder):
    return [json.loads(line) for line in (folder / JOURNAL).read_text().splitlines()]


def test_missing_values_are_refused_before_the_first_setting(tmp_path):
    holed = X.copy()
    holed[7, 1] = np.nan
    with pytest.raises(ValueError, match="X must be finite, got NaN or infinity in object 7"):
        sweep(MODEL, holed, {"kmeans_weight": [0.1, 1.0]}, out=tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


def test_each_setting_becomes_a_run_with_its_parameters(tmp_path):
    result = sweep(
        MODEL, X, {"kmeans_weight": [0.1, 1.0], "init": ["random", "k-means"]}, out=tmp_path
    )
    runs = load_runs(tmp_path)
    assert statuses(result) == ["done"] * 4
    assert set(runs.names) == {trial.name for trial in result.trials}
    assert runs["DeepKMeans,K=3,init=random,kmeans_weight=0.1"].params["init"] == "random"
    assert len(runs.spaces) == len(runs.partitions) == 4


def test_a_trial_is_on_disk_before_the_next_begins(tmp_path):
    seen = []
    sweep(
        MODEL, X, {"kmeans_weight": [0.1, 1.0, 2.0]}, out=tmp_path,
        on_trial=lambda trial: seen.append(len(load_runs(tmp_path))),
    )  # fmt: skip
    assert seen == [1, 2, 3]


def test_failures_are_recorded_with_their_error_and_the_rest_goes_on(tmp_path):
    result = sweep(MODEL, X, {"kmeans_weight": [0.1, -1.0, 1.0]}, out=tmp_path)
    assert statuses(result) == ["done", "failed", "done"]
    assert result.failed[0].error == "ValueError: kmeans_weight must be at least 0.0, got -1.0."
    assert [entry["status"] for entry in journal(tmp_path)] == ["done", "failed", "done"]
    assert len(load_runs(tmp_path)) == 2


def test_finished_trials_are_not_repeated_and_failed_ones_are(tmp_path):
    grid = {"kmeans_weight": [0.1, -1.0]}
    sweep(MODEL, X, grid, out=tmp_path)
    wider = {"kmeans_weight": [0.1, -1.0, 1.0]}
    assert statuses(sweep(MODEL, X, wider, out=tmp_path)) == ["kept", "failed", "done"]
    assert len(journal(tmp_path)) == 4


@pytest.mark.parametrize(
    ("change", "data", "named"), [({"random_state": 1}, X, "random_state"), ({}, X + 1, "data")]
)
def test_a_folder_of_another_sweep_is_refused(tmp_path, change, data, named):
    sweep(MODEL, X, {"kmeans_weight": [0.1]}, out=tmp_path)
    other = DeepKMeans(**(MODEL.get_params() | change))
    with pytest.raises(
        ValueError, match=f"'DeepKMeans,K=3,kmeans_weight=0.1' with another {named}; choose"
    ):
        sweep(other, data, {"kmeans_weight": [0.1]}, out=tmp_path)


@pytest.mark.parametrize("file", ["run.json", "labels.npy"])
def test_a_damaged_run_is_named_set_aside_and_trained_again(tmp_path, file):
    grid = {"kmeans_weight": [0.1, 1.0]}
    sweep(MODEL, X, grid, out=tmp_path)
    damaged = tmp_path / "DeepKMeans,K=3,kmeans_weight=0.1" / file
    damaged.write_bytes(damaged.read_bytes()[:9])
    with pytest.warns(UserWarning, match=r"weight=0.1 is damaged and was set aside as \.Deep"):
        result = sweep(MODEL, X, grid, out=tmp_path)
    assert statuses(result) == ["done", "kept"]
    assert (tmp_path / ".DeepKMeans,K=3,kmeans_weight=0.1.damaged-1" / file).stat().st_size == 9
    assert len(load_runs(tmp_path)) == 2


def test_a_damaged_checkpoint_is_named_set_aside_and_the_training_starts_over(tmp_path):
    model = DeepKMeans(**(MODEL.get_params() | {"checkpoint_dir": tmp_path / "states"}))
    grid = {"kmeans_weight": [0.1]}
    sweep(model, X, grid, out=tmp_path / "first")
    state = tmp_path / "states" / "DeepKMeans,K=3,kmeans_weight=0.1" / "state.safetensors"
    state.write_bytes(state.read_bytes()[:99])
    with pytest.warns(UserWarning, match=r"state\.safetensors is damaged and was set aside"):
        result = sweep(model, X, grid, out=tmp_path / "second")
    assert statuses(result) == ["done"]
    assert state.with_name(".state.safetensors.damaged-1").stat().st_size == 99


def test_a_journal_cut_short_by_a_full_disk_is_read_and_continued(tmp_path):
    sweep(MODEL, X, {"kmeans_weight": [-1.0]}, out=tmp_path)
    with open(tmp_path / JOURNAL, "ab") as stream:
        stream.write(b'[1]\n{"status": "failed"}\n\xff{"name": "kmeans_wei')
    grid = {"kmeans_weight": [-1.0, -2.0]}
    assert statuses(sweep(MODEL, X, grid, out=tmp_path)) == ["failed", "failed"]
    last = (tmp_path / JOURNAL).read_bytes().splitlines()[-1]
    assert json.loads(last)["name"] == "DeepKMeans,K=3,kmeans_weight=-2"


def test_a_second_sweep_takes_what_nobody_trains(tmp_path):
    grid = {"kmeans_weight": [0.1, 1.0]}
    with claimed(tmp_path / ".DeepKMeans,K=3,kmeans_weight=0.1.claim") as mine:
        assert mine
        assert statuses(sweep(MODEL, X, grid, out=tmp_path)) == ["running", "done"]
    assert statuses(sweep(MODEL, X, grid, out=tmp_path)) == ["done", "kept"]
    assert not list(tmp_path.glob(".*"))


CLAIMS = """
import sys, time
from pathlib import Path
from wellsep.deep.sweeps.trial import claimed
with claimed(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX systems")
def test_a_claim_counts_while_its_process_runs_and_not_when_it_was_killed(tmp_path):
    path = tmp_path / ".a.claim"
    words = [sys.executable, "-c", CLAIMS, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "True\n"
        drop_dead_claims(tmp_path)
        assert path.exists()
        with claimed(path) as mine:
            assert not mine
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert path.exists()
    with claimed(path) as mine, claimed(path) as again:
        assert (mine, again) == (True, False)
    path.touch()  # left by a killed process
    drop_dead_claims(tmp_path)
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX systems")
def test_a_claim_given_back_while_another_asks_for_it_is_no_claim_on_a_removed_file(
    tmp_path, monkeypatch
):
    path, opened, holds = tmp_path / ".a.claim", threading.Event(), []

    def slowly(handle):
        opened.set()
        time.sleep(0.3)  # in which the first could remove the file
        return try_lock(handle)

    def ask():
        with claimed(path) as mine:
            holds.append(mine and not path.exists())

    with claimed(path):
        monkeypatch.setattr(trial, "try_lock", slowly)
        thread = threading.Thread(target=ask)
        thread.start()
        opened.wait(60)
    thread.join()
    assert holds == [False]


def test_a_sweep_gives_what_single_fits_give(tmp_path):
    sweep(MODEL, X, {"kmeans_weight": [0.5]}, out=tmp_path)
    alone = DeepKMeans(**MODEL.get_params()).set_params(kmeans_weight=0.5).fit(X)
    run = load_runs(tmp_path)["DeepKMeans,K=3,kmeans_weight=0.5"]
    np.testing.assert_array_equal(run.labels, alone.labels_)
    np.testing.assert_array_equal(run.embedding, alone.embedding_)


def test_unknown_parameters_and_empty_lists_are_refused(tmp_path):
    with pytest.raises(ValueError, match="grid must name parameters of DeepKMeans: .*; got 'rate'"):
        sweep(MODEL, X, {"rate": [1]}, out=tmp_path)
    with pytest.raises(ValueError, match="got 'epoch'; did you mean 'epochs'\\?"):
        sweep(MODEL, X, {"epoch": [1]}, out=tmp_path)
    with pytest.raises(ValueError, match="grid must give epochs a list of values"):
        sweep(MODEL, X, {"epochs": []}, out=tmp_path)


def test_trials_keep_their_checkpoints_apart(tmp_path):
    model = DeepKMeans(**MODEL.get_params()).set_params(checkpoint_dir=tmp_path / "states")
    sweep(model, X, {"kmeans_weight": [0.1, 1.0]}, out=tmp_path / "runs")
    kept = sorted(path.parent.name for path in tmp_path.glob("states/*/state.safetensors"))
    assert kept == ["DeepKMeans,K=3,kmeans_weight=0.1", "DeepKMeans,K=3,kmeans_weight=1"]


def test_a_study_draws_settings_and_goes_on_where_it_ended(tmp_path):
    pytest.importorskip("optuna", reason="studies need the extra optuna")
    space = {"kmeans_weight": (0.01, 10.0, "log"), "n_latent": (2, 5), "init": ["random"]}
    first = sweep(MODEL, X, space, out=tmp_path, n_trials=2)
    both = sweep(MODEL, X, space, out=tmp_path, n_trials=4)
    assert statuses(both) == ["done"] * 4
    assert both.trials[:2] == first.trials
    assert len(load_runs(tmp_path)) == 4
    assert all(2 <= trial.params["n_latent"] <= 5 for trial in both.trials)


def test_a_run_that_is_kept_tells_a_study_the_value_of_its_objective(tmp_path):
    pytest.importorskip("optuna", reason="needs the extra optuna")
    grid, options = {"n_clusters": [2]}, {"out": tmp_path, "objective": lambda model, data: 7.5}
    assert [t.value for t in sweep(MODEL, X, grid, n_trials=1, **options).trials] == [7.5]
    other = f"sqlite:///{tmp_path / 'other.db'}"
    again = sweep(MODEL, X, grid, n_trials=2, storage=other, **options)
    assert [t.value for t in again.trials] == [7.5, 7.5]


def test_a_run_without_a_value_is_refused_where_an_objective_is_asked_for(tmp_path):
    grid = {"n_clusters": [2]}
    sweep(MODEL, X, grid, out=tmp_path)
    with pytest.raises(ValueError, match="out must hold runs whose objective is known, got"):
        sweep(MODEL, X, grid, out=tmp_path, objective=lambda model, data: 7.5)


def test_a_study_tells_failures_and_values_of_the_objective(tmp_path):
    optuna = pytest.importorskip("optuna", reason="studies need the extra optuna")
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    result = sweep(MODEL, X, {"kmeans_weight": [-1.0]}, out=tmp_path, n_trials=1, storage=url)
    assert statuses(result) == ["failed"]
    result = sweep(
        MODEL, X, {"kmeans_weight": [1.0]}, out=tmp_path / "other", n_trials=1,
        objective=lambda model, data: float(len(data)),
    )  # fmt: skip
    assert result.trials[0].value == 60.0
    (name,) = optuna.study.get_all_study_names(url)
    assert name.startswith("wellsep-sweep-DeepKMeans,K=3-")


def test_a_storage_without_a_study_is_refused(tmp_path, objects, capsys):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    refusal = "storage must be left out without a study (n_trials), got 'sqlite:///"
    with pytest.raises(ValueError, match=re.escape(refusal)):
        sweep(MODEL, X, {"kmeans_weight": [1.0]}, out=tmp_path / "runs", storage=url)
    words = ["train", "-d", objects, "-m", "dec", "-o", tmp_path / "runs", "-s", f"storage={url}"]
    assert main([str(word) for word in words]) == 2
    assert refusal.replace("n_trials", "--trials") in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_settings_of_a_dead_process_are_tried_again(tmp_path):
    optuna = pytest.importorskip("optuna", reason="studies need the extra optuna")
    import socket

    sweep(MODEL, X, {"kmeans_weight": (0.0, 1.0)}, out=tmp_path, n_trials=1)
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.load_study(study_name=None, storage=url)
    abandoned = study.ask()
    abandoned.suggest_float("kmeans_weight", 0.0, 1.0)
    abandoned.set_user_attr("worker", [socket.gethostname(), 2**22 + 1])  # beyond any process
    result = sweep(MODEL, X, {"kmeans_weight": (0.0, 1.0)}, out=tmp_path, n_trials=2)
    assert statuses(result) == ["done", "done"]
    assert result.trials[1].params == abandoned.params


ORPHAN = """
from wellsep.deep.sweeps import trial
trial._run_in_worker(2**22 + 1, None, {})
"""


def test_a_worker_whose_parent_has_ended_begins_no_trial():
    done = subprocess.run([sys.executable, "-c", ORPHAN], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")


def dies(model, data):
    if model.kmeans_weight == 1.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


@pytest.mark.slow
def test_trials_of_a_killed_process_fail_with_the_cause_and_are_made_later(tmp_path):
    grid = {"kmeans_weight": [0.1, 1.0, 2.0]}
    result = sweep(MODEL, X, grid, out=tmp_path, n_jobs=2, objective=dies)
    assert statuses(result)[1] == "failed"
    assert "TerminatedWorkerError" in result.trials[1].error
    assert {entry["name"] for entry in journal(tmp_path)} == {t.name for t in result.trials}
    again = sweep(MODEL, X, grid, out=tmp_path, n_jobs=2)
    assert {trial.status for trial in again.trials} <= {"done", "kept"}
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_several_trainings_at_a_time_give_the_same_runs(tmp_path):
    grid = {"kmeans_weight": [0.1, 1.0, -1.0]}
    here = sweep(MODEL, X, grid, out=tmp_path / "here")
    there = sweep(MODEL, X, grid, out=tmp_path / "there", n_jobs=2)
    assert statuses(there) == statuses(here) == ["done", "done", "failed"]
    for name in load_runs(tmp_path / "here").names:
        first, second = (load_runs(tmp_path / part)[name] for part in ("here", "there"))
        np.testing.assert_array_equal(first.labels, second.labels)


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def objects(tmp_path):
    np.savez(tmp_path / "objects.npz", X=X.astype(np.float32), y=np.zeros(60))
    return tmp_path / "objects.npz"


FAST = ["-s", "pretrain_epochs=1", "-s", "epochs=1", "-s", "hidden=(8,)"]


def test_train_writes_runs_and_says_what_comes_next(objects, tmp_path, capsys):
    out = tmp_path / "runs"
    words = ["train", "--data", objects, "--method", "idec", "--grid", "lr=1e-4,1e-3", "gamma=0.1"]
    assert main([str(w) for w in [*words, "-k", 3, "--out", out, "--device", "cpu", *FAST]]) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 runs" in shown
    assert "wellsep rank" in shown
    runs = load_runs(out)
    fixed = "IDEC,K=3,epochs=1,gamma=0.1,hidden=(8,),learning_rate="
    assert list(runs.names) == [f"{fixed}{lr},pretrain_epochs=1" for lr in ("0.0001", "0.001")]
    assert runs[runs.names[0]].params["n_clusters"] == 3


def test_train_prints_json_and_keeps_what_is_done(objects, tmp_path, capsys):
    words = ["train", "-d", objects, "-m", "deep-k-means", "-k", 3, "-o", tmp_path / "runs"]
    words = [str(w) for w in [*words, "--device", "cpu", *FAST, "--json"]]
    for status in ("done", "kept"):
        assert main(words) == 0
        shown = json.loads(capsys.readouterr().out)
        assert [trial["status"] for trial in shown["trials"]] == [status]


def test_train_fails_when_every_trial_does(objects, tmp_path, capsys):
    words = ["train", "-d", objects, "-m", "jule", "-k", 99, "-o", tmp_path / "runs"]
    assert main([str(w) for w in [*words, "--device", "cpu"]]) == 1
    assert "--clusters must be at most the number of objects (60)" in capsys.readouterr().err


def test_grids_read_lists_ranges_and_short_names():
    assert parse_grid(["lr=1e-4:1e-1:log", "k=5,10", "init=random", "hidden=(8,),(9,4)"]) == {
        "learning_rate": (1e-4, 1e-1, "log"),
        "n_clusters": [5, 10],
        "init": ["random"],
        "hidden": [(8,), (9, 4)],
    }
    for wrong in ("lr", "lr=", "lr=a:b", "lr=1:2:lin"):
        with pytest.raises(ValueError, match="must read like"):
            parse_grid([wrong])


def test_images_keep_their_shape(tmp_path):
    images = np.zeros((4, 5, 6), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    np.savez(tmp_path / "images.npz", data=images, y=np.zeros(4))
    assert read_array(tmp_path / "images.npy").shape == (4, 5, 6)
    assert read_array(tmp_path / "images.npz").shape == (4, 5, 6)
    np.savez(tmp_path / "two.npz", a=images, b=images)
    with pytest.raises(ValueError, match="must hold one array or one named X, got a, b"):
        read_array(tmp_path / "two.npz")
