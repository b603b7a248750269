"""Runs from a Python loop, and the parameters of runs beside their ranks."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wellsep as ws
from wellsep.cli.main import main
from wellsep.records import Judgement


def triples(n=60):
    """(name, embedding, labels), the first with the true labels."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    for i, share in enumerate((0.0, 0.3, 0.6)):
        labels = np.where(rng.random(n) < share, rng.integers(0, 3, n), truth)
        yield f"trial-{i}", rng.normal(size=(n, 3)) + 6 * np.eye(3)[truth], labels


def test_a_plain_iterator_is_judged():
    by_hand = ws.Runs([ws.Run(name, X, labels) for name, X, labels in triples()])
    expected = str(ws.judge(by_hand, n_draws=0).to_dict())
    assert str(ws.judge(triples(), n_draws=0).to_dict()) == expected
    assert str(ws.judge(list(triples()), n_draws=0).to_dict()) == expected
    assert str(ws.judge(ws.Runs.from_iterator(triples()), n_draws=0).to_dict()) == expected
    assert ws.score_runs(triples(), labels="trial-[01]").partitions == ("trial-0", "trial-1")


@pytest.mark.parametrize("wrong", [[("a", [0, 1])], [1, 2], iter([("a", [[1.0]], [0], {})])])
def test_an_iterator_of_something_else_is_refused(wrong):
    with pytest.raises(TypeError, match=r"runs must hold \(name, embedding, labels\)"):
        ws.judge(wrong)


def test_a_folder_and_a_mapping_are_judged_as_the_same_runs_are(folder):
    expected = str(ws.judge(ws.load_runs(folder), n_draws=0).ranking.columns())
    assert str(ws.judge(folder, n_draws=0).ranking.columns()) == expected
    assert str(ws.judge(str(folder), n_draws=0).ranking.columns()) == expected
    mapping = {name: (X, labels) for name, X, labels in triples()}
    assert set(ws.judge(mapping, n_draws=0).ranking.columns()["partition"]) == set(mapping)
    alone = {name: labels for name, _, labels in triples()}
    assert ws.judge(alone, n_draws=0).ranking.best == "trial-0"


def test_exchanged_labels_and_embedding_are_refused_with_their_order():
    for call in (
        lambda: ws.judge((name, labels, X) for name, X, labels in triples()),
        lambda: ws.judge({name: (labels, X) for name, X, labels in triples()}),
        lambda: ws.Run("a", [0, 1, 1], [[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]]),
        lambda: ws.save_run("nowhere", [0, 1], [[0.0], [1.5]]),
    ):
        with pytest.raises(ValueError, match=r"the order is \(name, embedding, labels\)"):
            call()


def test_labels_alone_in_a_list_are_refused_with_what_takes_them():
    with pytest.raises(TypeError, match="which wellsep.consensus takes as well"):
        ws.judge([[0, 1, 1, 0], [0, 0, 1, 1]])


def test_what_is_no_source_is_refused():
    with pytest.raises(TypeError, match="runs must be Runs"):
        ws.judge(3)
    with pytest.raises(FileNotFoundError, match="must be a folder, a file or a URL that exists"):
        ws.judge("nowhere/")
    with pytest.raises(ValueError, match="labels of run 'a' must be one value per object"):
        ws.judge({"a": 1})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WELLSEP_CACHE", str(tmp_path / "cache"))
    for i, (name, X, labels) in enumerate(triples()):
        ws.save_run(tmp_path / "runs", X, labels, name=name, params={"lr": 10.0**-i, "layers": 2})
    return tmp_path / "runs"


def test_params_stand_beside_every_row(folder, capsys, tmp_path):
    pytest.importorskip("pandas", reason="needs pandas")
    judgement = ws.judge(ws.load_runs(folder), n_draws=0)
    frame = judgement.to_frame()
    assert frame.set_index("partition").loc["trial-2", "params_lr"] == 0.01
    assert frame["params_layers"].tolist() == [2, 2, 2]
    words = ["rank", str(folder), "--draws", "0", "--cache", "none"]
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["ranking"]
    assert {row["partition"]: row["params"]["lr"] for row in rows}["trial-1"] == 0.1
    assert main(words) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "trial-2 " in line)
    assert "lr=0.01" in row
    assert "layers" not in out  # the same in all runs
    saved = Judgement.load(judgement.save(tmp_path / "saved"))
    assert saved.ranking.columns()["params"] == judgement.ranking.columns()["params"]
    assert "lr=0.01" in judgement._repr_html_()


def test_params_that_the_names_tell_are_not_shown_twice(tmp_path, capsys):
    for _name, X, labels in triples():
        k = len(list(tmp_path.glob("runs/*"))) + 2
        ws.save_run(tmp_path / "runs", X, labels, name=f"K={k}", params={"K": k})
    words = ["rank", str(tmp_path / "runs"), "--draws", "0", "--cache", "none"]
    assert main(words) == 0
    assert "params" not in capsys.readouterr().out


def test_params_of_optuna_trials_are_shown(tmp_path, capsys):
    optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    made = list(triples())
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(0))

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-4, 1e-1, log=True)
        _, X, labels = made[trial.number]
        ws.adapters.attach_run(trial, X, labels, folder=tmp_path / "runs")
        return rate

    study.optimize(objective, n_trials=3)
    assert main(["rank", storage, "--draws", "0", "--cache", "none"]) == 0
    out = capsys.readouterr().out
    for trial in study.trials:
        assert f"rate={trial.params['rate']:.5g}" in out
    assert ws.judge(study, n_draws=0).ranking.best == "trial-0"
