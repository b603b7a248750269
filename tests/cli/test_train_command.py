"""`wellsep train`: what a corrected, repeated or interrupted command does, and what it says."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from wellsep.cli.main import main

X, _ = make_blobs(60, 4, centers=3, random_state=0)
FAST = ["-s", "pretrain_epochs=1", "-s", "hidden=(8,)", "--device", "cpu"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra deep")
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    return tmp_path


def train(capsys, *words, code=0, method="deep-k-means", data="x.npy"):
    words = ["train", "-d", data, "-m", method, "-k", "3", "-o", "runs", *FAST, *words]
    assert main(words) == code
    return capsys.readouterr()


def names(folder):
    from wellsep import load_runs

    return list(load_runs(folder / "runs").names)


def test_a_corrected_command_is_a_new_run(folder, capsys):
    shown = train(capsys, "-s", "epochs=abc", code=1)
    assert "0 of 1 runs are in runs." in shown.out
    assert "Next:" not in shown.out
    shown = train(capsys, "-s", "epochs=1")
    assert "1 of 1 runs are in runs.\nNext: wellsep rank runs" in shown.out


def test_what_failed_is_trained_again_by_the_next_call(folder, capsys, monkeypatch):
    from wellsep.deep import DeepKMeans, sweep

    model = DeepKMeans(3, pretrain_epochs=1, epochs=1, hidden=(8,), random_state=0)
    calls = []
    fit = DeepKMeans.fit

    def fails_on_one(self, X, y=None):
        calls.append(self.device)
        if self.device == "cpu":
            raise RuntimeError("broken device")
        return fit(self.set_params(device="cpu"), X)

    monkeypatch.setattr(DeepKMeans, "fit", fails_on_one)
    statuses = []
    for device in ("cpu", "cpu", "auto"):
        result = sweep(model.set_params(device=device), X, {}, out=folder / "runs")
        statuses.append(result.trials[0].status)
    assert statuses == ["failed", "failed", "done"]
    assert calls == ["cpu", "cpu", "auto"]


def test_a_corrected_study_draws_again(folder, capsys):
    pytest.importorskip("optuna", reason="studies need the extra optuna")
    words = ["-g", "lr=1e-4:1e-2:log", "--trials", "2"]
    train(capsys, "-s", "epochs=abc", *words, code=1)
    assert "2 of 2 runs are in runs." in train(capsys, "-s", "epochs=1", *words).out


def test_two_methods_share_a_folder_and_runs_say_which(folder, capsys):
    train(capsys, "-s", "epochs=1")
    train(capsys, "-s", "epochs=1", "-g", "lr=1e-4,1e-3", method="idec")
    rest = "hidden=(8,)"
    assert names(folder) == [
        f"DeepKMeans,K=3,epochs=1,{rest},pretrain_epochs=1",
        f"IDEC,K=3,epochs=1,{rest},learning_rate=0.0001,pretrain_epochs=1",
        f"IDEC,K=3,epochs=1,{rest},learning_rate=0.001,pretrain_epochs=1",
    ]
    train(capsys, "-s", "epochs=1", "-g", "k=3,4")
    assert len(names(folder)) == 4


def test_a_range_without_trials_is_refused(folder, capsys):
    shown = train(capsys, "-g", "lr=1e-4:1e-2:log", code=2)
    sentence = "got the range (0.0001, 0.01, 'log'); only studies draw from ranges (--trials)."
    assert sentence in " ".join(shown.err.split())
    assert not (folder / "runs").exists()
    from wellsep.deep import DeepKMeans, sweep

    with pytest.raises(ValueError, match="grid must list the values of learning_rate, got the ran"):
        sweep(DeepKMeans(3), X, {"learning_rate": (1e-4, 1e-2, "log")}, out=folder / "runs")


def test_a_line_for_each_run_is_written_when_piped(folder, capsys):
    words = ["-s", "epochs=1", "-g", "lr=1e-4,1e-3"]
    lines = train(capsys, *words[:3], "lr=1e-4").err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["1 of 1 runs"]
    lines = train(capsys, *words).err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["1 of 2 runs", "2 of 2 runs"]
    assert "learning_rate=0.0001,pretrain_epochs=1 kept" in lines[0]
    assert "learning_rate=0.001,pretrain_epochs=1 done" in lines[1]


def test_the_bar_counts_runs_names_the_current_one_and_starts_where_it_is(folder, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra deep")
    from rich.progress import Progress

    shown = []
    update = Progress.update
    monkeypatch.setattr(
        Progress,
        "update",
        lambda self, task, **what: shown.append(what) or update(self, task, **what),
    )

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    words = ["train", "-d", "x.npy", "-m", "deep-k-means", "-k", "3", "-o", "runs", *FAST]
    assert main([*words, "-s", "epochs=1", "-g", "lr=1e-4"]) == 0
    shown.clear()
    assert main([*words, "-s", "epochs=1", "-g", "lr=1e-4,1e-3"]) == 0
    first, second, last = shown
    assert (first["completed"], second["completed"], last["completed"]) == (1, 1, 2)
    assert first["description"] == "Training deep-k-means: 1 of 2 runs"
    assert second["description"].startswith(
        "Training deep-k-means: 1 of 2 runs, now DeepKMeans,K=3,epochs=1"
    )
    assert last["description"] == "Training deep-k-means: 2 of 2 runs"


def test_ctrl_c_says_what_is_kept(folder, capsys, monkeypatch):
    from wellsep.deep import DeepKMeans

    fit = DeepKMeans.fit

    def stops(self, X, y=None):
        if self.learning_rate == 1e-3:
            raise KeyboardInterrupt
        return fit(self, X)

    monkeypatch.setattr(DeepKMeans, "fit", stops)
    shown = train(capsys, "-s", "epochs=1", "-g", "lr=1e-4,1e-3", code=130)
    assert "Interrupted. 1 finished run is kept in runs. Repeat the command" in shown.err


def test_named_sets_are_trained_on(folder, capsys, monkeypatch):
    np.savez(folder / "blobs.npz", X=X, y=np.zeros(60))
    shown = train(capsys, "-s", "epochs=1", data="iris")
    assert "iris: 150 objects, from scikit-learn." in shown.err
    monkeypatch.setenv("WELLSEP_DATA", str(folder))
    monkeypatch.chdir(folder / "runs")
    assert "blobs: 60 objects, from folder" in train(capsys, "-s", "epochs=1", data="blobs").err
    shown = train(capsys, data="no_such_set", code=2)
    assert "got 'no_such_set'" in shown.err


def test_a_table_is_read_with_its_ids(folder, capsys):
    from wellsep import load_runs

    rows = [f"c{i},{','.join(map(str, row))}" for i, row in enumerate(X)]
    (folder / "x.csv").write_text("\n".join([",a,b,c,d", *rows]) + "\n")
    shown = train(capsys, "-s", "epochs=1", "--columns", "a,b,c", data="x.csv")
    assert "x.csv: 60 objects, 3 features, ids from the first column." in shown.err
    assert load_runs(folder / "runs").ids[:2].tolist() == ["c0", "c1"]


WITHOUT_TORCH = """
import importlib, json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import io, contextlib
from wellsep.cli.main import main
import wellsep

def sentence(call):
    try:
        call()
    except ImportError as error:
        return str(error)

def command(*words):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        main(list(words))
    return said.getvalue()

found = {name: sentence(lambda: importlib.import_module(name)) for name in (
    "wellsep.deep", "wellsep.deep.sweeps.sweep", "wellsep.deep.methods.dec",
    "wellsep.deep.sweeps.trial")}
found["train"] = command("train", "-d", "x.npy", "-m", "dec", "-o", "runs")
found["rank"] = command("rank", "runs", "--device", "cuda", "--cache", "none")
found["score"] = sentence(lambda: wellsep.silhouette_score([[0.], [1.], [2.]], [0, 0, 1],
                                                           device="cuda"))
print(json.dumps(found))
"""


def test_without_torch_every_entry_says_what_to_install(tmp_path):
    np.save(tmp_path / "x.npy", X)
    from wellsep import save_run

    for k in (2, 3):
        save_run(tmp_path / "runs", X, np.arange(60) % k, name=f"k{k}")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for entry, said in json.loads(done.stdout).items():
        packages = "torch" if entry in ("rank", "score") else "torch safetensors"  # no models
        assert f"pip install {packages}." in str(said), entry
