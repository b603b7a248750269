"""The page says what is in the clusters of the chosen run, as far as it was stored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wellsep as ws
from wellsep.evaluate.clusters.describing import MOST_DESCRIBED, described_objects
from wellsep.records import Judgement
from wellsep.report.pages.ranking import build_ranking_page, collect_evidence

FEATURES = ["height", "weight", "age"]


def runs_of_three(n=150, n_runs=8):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    X = 9 * np.eye(3)[truth] + rng.normal(size=(n, 3))
    runs = []
    for i in range(n_runs):
        moved = rng.random(n) < i / 12
        labels = np.where(moved, rng.integers(0, 3, n), truth)
        runs.append(ws.Run(f"run {i}", labels=labels, embedding=X @ rng.normal(size=(3, 4))))
    ids = [f"cell {i}" for i in range(n)]
    runs.append(ws.Run("copy", labels=(truth + 1) % 3, embedding=X @ rng.normal(size=(3, 4))))
    return ws.Runs(ws.Run(r.name, labels=r.labels, embedding=r.embedding, ids=ids) for r in runs), X


@pytest.fixture(scope="module")
def judged():
    runs, X = runs_of_three()
    judgement = ws.judge(runs, n_draws=0, X=pd.DataFrame(X, columns=FEATURES))
    return judgement, runs, X


def page_of(judgement, runs=None):
    return build_ranking_page(judgement, runs=runs, truth=None, title=None, layout=None)


def table_of(judgement, runs=None):
    """The partition whose clusters the page shows first, and the columns of their table."""
    (shown,) = (s.shown for s in page_of(judgement, runs).sections if s.name == "clusters")
    return shown["partition"], shown["table"]


def test_a_judgement_describes_the_best_distinct_partitions(judged):
    judgement, *_ = judged
    ranking = judgement.ranking
    distinct = [ranking.names[at] for at in ranking.first_of_each]
    assert list(judgement.clusters.descriptions) == distinct[:MOST_DESCRIBED]
    assert not {"run 0", "copy"} <= set(judgement.clusters.descriptions)


def test_the_description_is_that_of_describe_clusters(judged):
    judgement, runs, X = judged
    name, found = list(judgement.clusters.descriptions.items())[1]
    space = runs.spaces[name]
    whole = ws.describe_clusters(space, runs.partitions[name], features=X, ids=runs.ids)
    for field in ("sizes", "silhouette", "cfq", "nearest", "difference", "medoid", "typical"):
        np.testing.assert_allclose(getattr(found, field), getattr(whole, field), err_msg=field)
    assert found.features == tuple(FEATURES)


def test_the_table_of_the_page_has_features_quality_and_examples(judged):
    judgement, runs, _ = judged
    name, table = table_of(judgement, runs)
    assert name == judgement.ranking.best
    assert sum(table["objects"]) == 150
    assert all("high" in words and "against" in words for words in table["what makes it"])
    assert set(FEATURES) == {words.split()[1] for words in table["what makes it"]}
    assert all(name.startswith("cell ") for name in table["medoid"])
    assert all(0 < value <= 1 for value in table["in other runs"])
    assert table["mean width"] == pytest.approx(
        [judgement.details.widths[judgement.details.codes == c].mean() for c in range(3)]
    )


def test_other_runs_have_the_sizes_of_their_clusters(judged):
    judgement, runs, _ = judged
    page = page_of(judgement, runs)
    data = page.data["clusters"]
    last = judgement.ranking.names[judgement.ranking.first_of_each[-1]]
    assert last not in data["described"]
    assert sum(data["sizes"][last][1]) == 150
    (shown,) = (section.shown for section in page.sections if section.name == "clusters")
    assert "stored for the best 5 distinct clusterings" in shown["said"]


def test_a_saved_judgement_keeps_what_is_in_the_clusters(judged, tmp_path):
    judgement, *_ = judged
    again = Judgement.load(judgement.save(tmp_path / "result") or tmp_path / "result")
    table, before = (table_of(one)[1] for one in (again, judgement))
    assert table == before
    assert "what makes it" in table


def test_noise_that_was_judged_as_a_cluster_is_described_as_one():
    rng = np.random.default_rng(1)
    truth = np.arange(90) % 3
    X = 9 * np.eye(3)[truth] + rng.normal(size=(90, 3))
    labels = {"a": np.where(truth == 2, -1, truth), "b": rng.permutation(truth), "c": truth > 0}
    runs = ws.Runs.from_parts({"X": X}, labels)
    judgement = ws.judge(runs, n_draws=0, noise="cluster", dip=False)
    _, table = table_of(judgement, runs)
    assert table["cluster"] == ["-1", "0", "1"]
    assert table["objects"] == [30, 30, 30]


@pytest.mark.parametrize("kind", ["distances", "sparse"])
def test_a_space_without_columns_is_described_without_features(kind):
    import scipy.sparse as sp

    runs, X = runs_of_three(60, 3)
    apart = np.sqrt(((X[:60, None] - X[None, :60]) ** 2).sum(-1))
    space = ws.Distances(apart) if kind == "distances" else sp.csr_matrix(np.maximum(X[:60], 0))
    given = ws.Runs.from_parts({"space": space}, dict(runs.partitions))
    judgement = ws.judge(given, n_draws=0, dip=False)
    _, table = table_of(judgement, given)
    assert "what makes it" not in table
    assert min(table["mean width"]) > 0.3
    assert all(table["typical"])


def test_of_many_objects_a_sample_with_each_cluster_is_described():
    codes = np.repeat([0, 1, 2], [6000, 2, 3998])
    objects = described_objects(codes)
    assert len(objects) < 620
    assert set(codes[objects]) == {0, 1, 2}
    X = np.random.default_rng(0).normal(size=(10_000, 2)) + 8 * codes[:, None]
    runs = ws.Runs.from_parts({"X": X}, {"small": codes, "two": codes > 0})
    judgement = ws.judge(runs, n_draws=0, dip=False)
    found = judgement.clusters.descriptions["small"]
    assert found.sizes.tolist() == [6000, 2, 3998]
    assert found.medoid.tolist()[1] in (6000, 6001)
    whole, sample = found, judgement.clusters.descriptions["two"]
    if judgement.ranking.best == "two":
        whole, sample = sample, whole
    assert whole.notes[-1].startswith("All but the sizes and widths comes from ")
    assert sample.notes[-1].startswith("All but the sizes comes from ")


def test_axes_of_embeddings_are_no_features_and_distances_have_none():
    runs, X = runs_of_three(60, 3)
    apart = ws.Distances(np.sqrt(((X[:60, None] - X[None, :60]) ** 2).sum(-1)))
    for given, names in (({"X": apart}, ()), ({}, ()), ({"X": X[:60]}, ("feature 0",))):
        judgement = ws.judge(runs, n_draws=0, dip=False, **given)
        described = judgement.clusters.descriptions[judgement.ranking.best]
        assert described.features[:1] == names


def test_a_judgement_without_descriptions_describes_its_best_alone():
    runs, _ = runs_of_three(60, 3)
    judgement = ws.judge(runs, n_draws=0, dip=False, details=False)
    evidence = collect_evidence(judgement, runs=runs, truth=None)
    assert list(evidence.described) == [judgement.ranking.best]


@pytest.mark.parametrize(
    ("n", "told"), [(10, "one entry per object"), (150, "that were described")]
)
def test_labels_of_other_clusters_are_refused(n, told, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    found = ws.describe_clusters(X, np.arange(150) % 3)
    with pytest.raises(ValueError, match=f"labels must .*{told}"):
        ws.render_report(found, tmp_path / "p.html", runs=X, labels=(np.arange(n) > 20) * 1)


def test_one_cluster_is_not_called_clusters(tmp_path):
    found = ws.describe_clusters([[0.0, 1], [1, 5], [4, 2]], [0, 0, 0])
    page = ws.render_report(found, tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<title>1 cluster</title>" in page
