"""Candidates that are made are never lost: a budget, Ctrl-C, and the same call again."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import Birch
from sklearn.datasets import make_blobs

import wellsep as ws

X = make_blobs(80, 3, centers=3, random_state=0)[0]
FITS: list[int] = []
STOP_AT: list[int] = []


class Counted(Birch):
    def fit(self, X, y=None):
        FITS.append(self.n_clusters)
        if len(FITS) in STOP_AT:
            raise KeyboardInterrupt
        return super().fit(X)


@pytest.fixture(autouse=True)
def _no_fits():
    FITS.clear()
    STOP_AT.clear()


def explored(**options):
    options = {"k": range(2, 8), "embeddings": [], "n_draws": 0, **options}
    return ws.explore(X, methods={"counted": Counted()}, **options)


def test_ctrl_c_keeps_what_is_made_and_judges_it():
    STOP_AT.append(4)
    found = explored()
    assert len(found.runs.partitions) == 3
    said = "Interrupted: 3 of 6 fits were not made; with a cache it goes on."
    assert said in found.notes
    assert found.best in found.runs.partitions


def test_ctrl_c_before_two_candidates_are_made_ends_the_call():
    STOP_AT.append(2)
    with pytest.raises(KeyboardInterrupt):
        explored()


def test_the_same_call_goes_on_from_its_cache(tmp_path):
    STOP_AT.append(4)
    notes = explored(cache=tmp_path).notes
    assert "Interrupted: 3 of 6 fits were not made; the same call goes on." in notes
    made = FITS[:3]
    FITS.clear()
    STOP_AT.clear()
    whole = explored(cache=tmp_path)
    assert sorted(FITS) == sorted(set(range(2, 8)) - set(made))
    FITS.clear()
    again = explored(cache=tmp_path)
    assert FITS == []
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert len(again.runs.partitions) == 6


def test_another_seed_takes_nothing_from_the_cache(tmp_path):
    explored(cache=tmp_path)
    FITS.clear()
    explored(cache=tmp_path, random_state=1)
    assert len(FITS) == 6


def test_a_damaged_candidate_is_made_again(tmp_path):
    explored(cache=tmp_path)
    FITS.clear()
    next(tmp_path.glob("*.npz")).write_bytes(b"not a zip file")
    explored(cache=tmp_path)
    assert len(FITS) == 1


def test_a_spent_budget_judges_what_is_made():
    found = explored(budget=0)
    assert 2 <= len(found.runs.partitions) < 6
    assert any("The time was spent" in note for note in found.notes)


def test_progress_is_told_of_every_step_to_its_end():
    told: list[tuple[int, int, str]] = []
    explored(progress=lambda *step: told.append(step))
    candidates = [step for step in told if step[2] == "candidates"]
    assert candidates[0] == (0, 6, "candidates")
    assert candidates[-1] == (6, 6, "candidates")


def test_workers_of_a_dask_cluster_make_the_candidates():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = ws.explore(
            X, methods=["k-means"], k=[2, 3, 4], embeddings=[], n_draws=0, scheduler=client
        )
    here = ws.explore(X, methods=["k-means"], k=[2, 3, 4], embeddings=[], n_draws=0)
    np.testing.assert_array_equal(there.labels_, here.labels_)
