"""Optuna in: trials that left a run folder or artifacts."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from wellsep.adapters import attach_run, load_any, runs_from_optuna
from wellsep.runs import NoRuns, load_runs, save_run

optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = np.arange(24, dtype=np.float32).reshape(12, 2)


def labels_of(k: int) -> np.ndarray:
    return np.arange(12) % k


def search(storage=None, n_trials=3, name="search", fail=(), **where):
    def objective(trial):
        k = trial.suggest_int("k", 2, 5)
        trial.set_user_attr("note", "ä")
        if trial.number in fail:
            raise optuna.TrialPruned
        attach_run(trial, SPACE + trial.number, labels_of(k), metadata={"seed": 1}, **where)
        return float(k)

    study = optuna.create_study(
        storage=storage, study_name=name, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(objective, n_trials=n_trials)
    return study


def check(runs, study):
    for trial in study.trials:
        name = f"trial-{trial.number}"
        np.testing.assert_array_equal(runs.partitions[name], labels_of(trial.params["k"]))
        np.testing.assert_array_equal(runs.spaces[name], SPACE + trial.number)
        assert runs.params[name] == trial.params
        assert runs.metadata[name]["values"] == trial.values
        assert runs.metadata[name]["user_attrs"] == {"note": "ä"}
    assert len(runs) == len(study.trials)
    assert runs.paired


def test_runs_attached_as_folders_come_back(tmp_path):
    study = search(folder=tmp_path)
    runs = runs_from_optuna(study)
    check(runs, study)
    assert runs.metadata["trial-0"]["seed"] == 1
    assert load_runs(tmp_path / "search").names == runs.names


def test_folders_that_were_moved_are_found_when_told_where(tmp_path):
    study = search(folder=tmp_path / "old")
    shutil.move(tmp_path / "old", tmp_path / "new")
    with pytest.raises(
        FileNotFoundError, match="folder of run 'trial-0' was not found at .*artifacts="
    ):
        runs_from_optuna(study)
    check(runs_from_optuna(study, artifacts=tmp_path / "new"), study)


def test_the_study_and_the_folder_of_its_files_may_stand_behind_the_source(tmp_path):
    database = f"sqlite:///{tmp_path / 'study.db'}"
    study = search(database, name="first", folder=tmp_path / "old")
    search(database, name="second", n_trials=1, folder=tmp_path / "old")
    shutil.move(tmp_path / "old", tmp_path / "new")
    check(load_any(f"{database}#first&artifacts={tmp_path / 'new'}"), study)
    with pytest.raises(FileNotFoundError, match="folder of run 'trial-0' was not found"):
        load_any(f"{database}#first")


def test_a_path_noted_by_hand_is_enough(tmp_path):
    place = save_run(tmp_path, None, labels_of(2), name="my own name")
    study = optuna.create_study()
    study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={"wellsep_run": str(place)}))
    assert runs_from_optuna(study).names == ("trial-0",)


def test_uploaded_artifacts_are_mapped_in_their_folder(tmp_path):
    (tmp_path / "files").mkdir()
    store = optuna.artifacts.FileSystemArtifactStore(tmp_path / "files")
    study = search(artifact_store=store)
    runs = runs_from_optuna(study, artifacts=tmp_path / "files")
    check(runs, study)
    assert isinstance(runs.spaces["trial-1"], np.memmap)
    with pytest.raises(
        ValueError, match="artifacts must be the folder .* of run 'trial-0', got None"
    ):
        runs_from_optuna(study)


class CountingStore:
    """An artifact store that is no folder."""

    def __init__(self, inner):
        self.inner, self.reads = inner, 0

    def open_reader(self, artifact_id):
        self.reads += 1
        return self.inner.open_reader(artifact_id)

    def write(self, artifact_id, content_body):
        self.inner.write(artifact_id, content_body)

    def remove(self, artifact_id):
        self.inner.remove(artifact_id)


def test_artifacts_of_another_store_are_downloaded_once_into_the_cache(tmp_path):
    (tmp_path / "files").mkdir()
    store = CountingStore(optuna.artifacts.FileSystemArtifactStore(tmp_path / "files"))
    study = search(artifact_store=store)
    check(runs_from_optuna(study, artifacts=store, cache=tmp_path / "cache"), study)
    assert store.reads == 6
    check(runs_from_optuna(study, artifacts=store, cache=tmp_path / "cache"), study)
    assert store.reads == 6
    check(runs_from_optuna(study, artifacts=store), study)


def test_a_study_is_found_in_its_database(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = search(url, folder=tmp_path / "runs")
    check(runs_from_optuna(url), study)
    check(load_any(url), study)
    check(load_any(tmp_path / "study.db"), study)
    check(load_any(f"optuna+{url}#search"), study)
    optuna.create_study(storage=url, study_name="other")
    with pytest.raises(ValueError, match="name must say which study is meant.*'other', 'search'"):
        runs_from_optuna(url)
    with pytest.raises(ValueError, match="name must be one of .*got 'none'"):
        runs_from_optuna(url, "none")
    check(runs_from_optuna(url, "search"), study)


def test_a_study_is_found_in_its_journal(tmp_path):
    journal = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
    study = search(optuna.storages.JournalStorage(journal), folder=tmp_path / "runs")
    check(runs_from_optuna(tmp_path / "study.log"), study)
    check(load_any(tmp_path / "study.log"), study)


def test_trials_without_a_run_are_passed_over(tmp_path):
    study = search(folder=tmp_path, fail=(1,))
    assert runs_from_optuna(study).names == ("trial-0", "trial-2")
    with pytest.raises(NoRuns, match="study 'search' must have trials with a run, got 3 without"):
        runs_from_optuna(study, states=["FAIL"])


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="existing database, got no file"):
        runs_from_optuna(f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(FileNotFoundError, match="study must be a storage URL or a journal file"):
        runs_from_optuna(tmp_path / "none.log")
    assert list(tmp_path.iterdir()) == []


def test_a_place_must_be_given_and_only_one(tmp_path):
    trial = optuna.create_study().ask()
    with pytest.raises(ValueError, match="folder or artifact_store must be given, and not both"):
        attach_run(trial, None, labels_of(2))


def test_studies_of_any_name_share_a_folder(tmp_path):
    for name in ("a/b", "<i>"):
        search(folder=tmp_path, name=name, n_trials=1)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["%3Ci%3E", "a%2Fb"]


def test_a_noted_run_that_is_no_path_is_refused():
    study = optuna.create_study()
    study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={"wellsep_run": 3}))
    with pytest.raises(TypeError, match="wellsep_run of run 'trial-0' must be a path, got 3"):
        runs_from_optuna(study)
