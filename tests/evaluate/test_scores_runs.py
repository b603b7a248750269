"""Scoring runs: every value the engine's own, nothing computed twice, errors that name the run."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws
from wellsep.evaluate import NothingToRank, Scores, rank, score_runs
from wellsep.evaluate.scoring import spaces as scoring_module
from wellsep.runs import Run, Runs


def made_runs(n=60, spaces=3, seed=0) -> Runs:
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    runs = []
    for i in range(spaces):
        X = rng.normal(size=(n, 2 + i)) + 5 * np.eye(3, 2 + i)[truth]
        labels = np.where(rng.random(n) < 0.1 * i, rng.integers(0, 3, n), truth)
        runs.append(Run(f"run {i}", labels=labels, embedding=X, params={"i": i}))
    return Runs(runs)


@pytest.fixture
def counted(monkeypatch):
    """Names of the partitions each call of the engine scored."""
    calls = []
    original = scoring_module.score_partitions

    def count(X, partitions, *args, **kwargs):
        calls.append(partitions.names)
        return original(X, partitions, *args, **kwargs)

    monkeypatch.setattr(scoring_module, "score_partitions", count)
    return calls


def test_every_value_is_the_engines():
    runs = made_runs()
    scores = score_runs(runs, ["silhouette", ("davies_bouldin", {"q": 2})])
    assert scores.indices == ("silhouette", "davies_bouldin(q=2)")
    for i, (_, X) in enumerate(runs.spaces.items()):
        for j, (_, labels) in enumerate(runs.partitions.items()):
            assert scores.values["silhouette"][i, j] == pytest.approx(
                ws.silhouette_score(X, labels)
            )
            assert scores.values["davies_bouldin(q=2)"][i, j] == pytest.approx(
                ws.davies_bouldin_score(X, labels, q=2)
            )
    assert scores.directions == {"silhouette": 1, "davies_bouldin(q=2)": -1}
    assert scores.dip.pvalue[1] == ws.multimodality(runs.spaces["run 1"]).pvalue
    assert scores.params == {f"run {i}": {"i": i} for i in range(3)}
    assert scores.dims.tolist() == [2, 3, 4]
    assert scores.is_paired


def test_each_space_is_one_pass(counted):
    score_runs(made_runs(), ["silhouette", "calinski_harabasz"])
    assert counted == [("run 0", "run 1", "run 2")] * 3


def test_a_second_call_finds_all_in_the_cache(tmp_path, counted):
    first = score_runs(made_runs(), cache=tmp_path)
    counted.clear()
    again = score_runs(made_runs(), cache=tmp_path)
    assert counted == []
    np.testing.assert_array_equal(again.values["silhouette"], first.values["silhouette"])
    np.testing.assert_array_equal(again.dip.pvalue, first.dip.pvalue)
    np.testing.assert_array_equal(
        again.plot_coordinates.planes[2], first.plot_coordinates.planes[2]
    )


def test_an_interrupted_call_continues_where_it_stopped(tmp_path, counted):
    def stop(done, total, name):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_runs(made_runs(), cache=tmp_path, progress=stop, n_jobs=1)
    assert len(counted) == 2
    counted.clear()
    finished = score_runs(made_runs(), cache=tmp_path)
    assert len(counted) == 1
    np.testing.assert_array_equal(
        finished.values["silhouette"], score_runs(made_runs()).values["silhouette"]
    )


def test_a_new_run_is_scored_alone_in_known_spaces(tmp_path, counted):
    score_runs(made_runs(), cache=tmp_path)
    counted.clear()
    more = Runs([*made_runs(), Run("late", labels=np.arange(60) % 2)])
    scores = score_runs(more, cache=tmp_path)
    assert counted == [("late",)] * 3
    plain = score_runs(more)
    np.testing.assert_allclose(scores.values["silhouette"], plain.values["silhouette"], rtol=1e-12)


@pytest.mark.parametrize(
    "changed",
    [
        {"indices": ["calinski_harabasz"]},
        {"projection": "pca-scaled"},
        {"details": False},
    ],
)
def test_other_settings_do_not_meet_in_the_cache(tmp_path, counted, changed):
    score_runs(made_runs(), cache=tmp_path)
    counted.clear()
    score_runs(made_runs(), cache=tmp_path, **changed)
    assert len(counted) == 3


def test_a_damaged_cache_is_computed_again(tmp_path, counted):
    first = score_runs(made_runs(), cache=tmp_path)
    for archive in tmp_path.glob("*/arrays-*.npz"):
        archive.write_bytes(b"not an archive")
    counted.clear()
    again = score_runs(made_runs(), cache=tmp_path)
    assert len(counted) == 3
    np.testing.assert_array_equal(again.values["silhouette"], first.values["silhouette"])


def test_progress_names_each_space_before_it_is_done():
    told = []
    score_runs(made_runs(), progress=lambda *seen: told.append(seen))
    assert told == [(0, 3, "run 0"), (1, 3, "run 1"), (2, 3, "run 2"), (3, 3, "")]


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_spaces_worked_on_at_once_change_no_bit_and_keep_their_order(n_jobs):
    told = []
    one = ws.judge(made_runs(n=200, spaces=7), n_draws=10, n_jobs=1)
    some = ws.judge(
        made_runs(n=200, spaces=7), n_draws=10, n_jobs=n_jobs, progress=lambda *p: told.append(p)
    )
    np.testing.assert_array_equal(
        some.scores.values["silhouette"], one.scores.values["silhouette"], strict=True
    )
    np.testing.assert_array_equal(some.scores.dip.statistic, one.scores.dip.statistic)
    np.testing.assert_array_equal(some.confidence.ranks, one.confidence.ranks)
    for ours, theirs in zip(
        some.scores.plot_coordinates.planes, one.scores.plot_coordinates.planes, strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    scored = [name for _, _, name in told if name != "half-samples"]
    assert scored == [*(f"run {i}" for i in range(7)), ""]


def test_equal_spaces_worked_on_at_once_share_one_entry_of_the_cache(tmp_path):
    X = made_runs().spaces["run 0"]
    runs = Runs.from_parts(
        {f"copy {i}": X.copy() for i in range(6)}, {"a": np.arange(60) % 3, "b": np.arange(60) % 2}
    )
    first = score_runs(runs, cache=tmp_path, n_jobs=4)
    assert len(list(tmp_path.iterdir())) == 1
    again = score_runs(runs, cache=tmp_path, n_jobs=4)
    np.testing.assert_array_equal(again.values["silhouette"], first.values["silhouette"])


def test_an_error_among_spaces_worked_on_at_once_names_its_space():
    runs = made_runs(spaces=5)
    spaces = {name: np.array(X) for name, X in runs.spaces.items()}
    spaces["run 3"][7, 1] = np.nan
    broken = Runs.from_parts(spaces, dict(runs.partitions))
    with pytest.raises(ValueError, match="run 3"):
        score_runs(broken, n_jobs=3)


def test_more_partitions_than_spaces_are_welcome():
    runs = made_runs()
    parts = {f"p{k}": np.arange(60) % k for k in (2, 3, 4, 5)}
    scores = score_runs(Runs.from_parts({"only": runs.spaces["run 0"]}, parts))
    assert scores.values["silhouette"].shape == (1, 4)
    assert not scores.is_paired
    assert ws.ace(scores, dip=False).winner.won_by == "single space"


def test_a_partition_of_one_cluster_is_undefined_with_its_reason():
    runs = Runs([*made_runs(), Run("lump", labels=np.zeros(60, int))])
    scores = score_runs(runs)
    assert np.isnan(scores.values["silhouette"][:, 3]).all()
    assert "at least 2 clusters" in scores.why("run 0", "lump")
    ranking = rank(ws.ace(scores))
    assert ranking.rank[3] == 4


def test_noise_lowers_the_scores_unless_another_policy_is_chosen():
    labels = np.arange(60) % 3
    labels[:54] = -1
    runs = Runs([*made_runs(), Run("mostly noise", labels=labels)])
    with pytest.raises(ValueError, match=r"mostly noise.*must not hold noise \(-1, -2 or -3\)"):
        score_runs(runs, noise="error")
    scores, priced = score_runs(runs, noise="exclude"), score_runs(runs)
    plain, paid = (s.values["silhouette"][:, 3] for s in (scores, priced))
    np.testing.assert_allclose(paid, np.where(plain >= 0, 0.1 * plain, plain), rtol=1e-12)
    assert scores.coverage.tolist() == pytest.approx([1, 1, 1, 0.1])
    table = rank(ws.ace(scores)).columns()
    assert sorted(table["coverage"]) == pytest.approx([0.1, 1, 1, 1])


def test_nan_in_an_embedding_names_the_run():
    X = np.ones((60, 2))
    X[3, 1] = np.nan
    runs = Runs([*made_runs(), Run("broken", embedding=X)])
    with pytest.raises(ValueError, match="broken"):
        score_runs(runs)


def test_runs_without_spaces_or_partitions_leave_nothing_to_rank():
    with pytest.raises(NothingToRank, match="at least one embedding"):
        score_runs(Runs([Run("a", labels=[0, 1, 1])]))
    with pytest.raises(NothingToRank, match="at least one clustering"):
        score_runs(Runs([Run("a", embedding=[[0.0], [1.0]])]))


def test_a_number_and_a_folder_that_is_not_there_are_no_runs():
    with pytest.raises(TypeError, match="load a folder with load_runs"):
        score_runs(3)
    with pytest.raises(FileNotFoundError, match=r"a folder, a file or a URL that exists, got"):
        score_runs("runs/")


def test_coordinates_are_of_the_same_objects_in_every_space(monkeypatch):
    monkeypatch.setattr("wellsep.evaluate.scoring.spaces.N_PLOTTED", 10)
    scores = score_runs(made_runs())
    assert len(scores.plot_coordinates.objects) == 10
    assert [p.shape for p in scores.plot_coordinates.planes] == [(10, 2)] * 3
    X = made_runs().spaces["run 0"][scores.plot_coordinates.objects]
    np.testing.assert_allclose(scores.plot_coordinates.planes[0], X, rtol=1e-6)
    assert scores.plot_coordinates.axes == (
        "columns",
        "principal components",
        "principal components",
    )
    assert score_runs(made_runs(), details=False).plot_coordinates is None


def test_the_plane_of_a_space_keeps_its_two_widest_directions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [1, 9, 1, 4, 1]
    from wellsep.spaces.drawing_planes import plane

    flat, _ = plane(X, np.arange(200))
    assert abs(np.corrcoef(flat[:, 0], X[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(flat[:, 1], X[:, 3])[0, 1]) > 0.98


def test_ids_of_the_objects_come_along(tmp_path):
    ids = [f"object {i}" for i in range(60)]
    runs = Runs([Run(r.name, labels=r.labels, embedding=r.embedding, ids=ids) for r in made_runs()])
    scores = Scores.load(score_runs(runs).save(tmp_path))
    assert scores.ids.tolist() == ids


def test_integer_and_single_precision_spaces_are_scored():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (60, 3))
    labels = {"a": np.arange(60) % 2, "b": X[:, 0] > 25}
    whole = score_runs(Runs.from_parts({"s": X.astype(np.uint8)}, labels))
    single = score_runs(Runs.from_parts({"s": X.astype(np.float32)}, labels))
    np.testing.assert_allclose(
        whole.values["silhouette"], single.values["silhouette"], rtol=1e-4, atol=1e-6
    )
