"""Rankings are compared with the truth after they are made; it enters nowhere else."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from ace_golden import INDEX_NAMES, arrays, case_names, case_runs, matrix_record, record

import wellsep as ws
from wellsep import evaluate
from wellsep.evaluate import Agreement, Scores, ace, agreement, rank
from wellsep.runs import Runs

# where partitions are identical the authors rank by the last digit, here they tie
TIED = ("identical_partitions", "duplicates14", "half_degenerate")
FLOAT64 = [c for c in case_names() if record(c)["dtype"] == "float64" and c not in TIED]


def stored_ranking(case: str, index: str):
    """A ranking by pooled and paired scores of the golden matrix."""
    table = Scores.from_matrix(
        arrays(case)[f"Sfill_{index}"],
        partitions=[f"run {m}" for m in range(record(case)["M"])],
        dip_pvalues=record(case)["dip"]["pvalue"],
        paired=True,
    )
    return rank(ace(table, tie_tolerance=0.0), input_scores=matrix_record(case, "", index)["raw"])


@pytest.mark.parametrize("index", INDEX_NAMES)
@pytest.mark.parametrize("case", FLOAT64)
def test_correlations_with_the_truth_equal_the_authors(case, index):
    ranking = stored_ranking(case, index)
    found = agreement(ranking, case_runs(case), arrays(case)["truth"])
    np.testing.assert_allclose(found.external["nmi"], record(case)["nmi"], atol=1e-12)
    np.testing.assert_allclose(found.external["acc"], record(case)["acc"], atol=1e-12)
    theirs = matrix_record(case, "", index)["agreement"]
    names = {"raw": "input", "paired": "own_space", "pooled": "mean_admitted"}
    for name, our_name in {**names, "pooled_all": "mean_all"}.items():
        for key in ("spearman_nmi", "spearman_acc", "kendall_nmi", "kendall_acc"):
            ours = found.correlations[our_name][key]
            assert ours == pytest.approx(theirs[name][key], abs=1e-9), (name, key)


def test_each_way_of_ranking_tells_what_it_would_have_picked():
    matrix = np.array([[0.9, 0.1, 0.3], [0.8, 0.2, 0.4], [0.85, 0.1, 0.3]])
    scores = Scores.from_matrix(matrix, partitions=["good", "bad", "fair"], paired=True)
    labels = {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1], "fair": [0, 0, 1, 2]}
    found = agreement(
        rank(ace(scores, dip=False), input_scores=[0.1, 0.9, 0.2]), labels, [5, 5, 7, 7]
    )
    assert found.picks["ace"] == ("good",)
    assert found.picks["input"] == ("bad",)
    assert found.external["acc"].tolist() == [1.0, 0.5, 0.75]
    assert found.correlations["ace"]["spearman_nmi"] == pytest.approx(1.0)
    assert found.correlations["input"]["kendall_acc"] == pytest.approx(-1.0)
    columns = found.columns()
    assert columns["ranking"][0] == "ace"
    assert columns["acc_of_pick"][0] == 1.0


def test_the_ari_with_the_truth_comes_before_nmi_and_accuracy():
    scores = Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["few", "many"], paired=False)
    # As many objects as clusters: NMI praises it, ARI does not.
    labels = {"few": [0, 0, 0, 1, 1, 0], "many": [0, 1, 2, 3, 4, 5]}
    found = agreement(rank(ace(scores, dip=False)), labels, [0, 0, 0, 1, 1, 1])
    assert list(found.external) == ["ari", "nmi", "acc"]
    few, many = found.external["ari"]
    assert (few, many) == (ws.ari_score([0, 0, 0, 1, 1, 1], labels["few"]), 0.0)
    assert found.external["nmi"][1] > found.external["nmi"][0]
    assert found.correlations["ace"]["spearman_ari"] == 1.0
    assert found.correlations["ace"]["spearman_nmi"] == -1.0
    columns = list(found.columns())
    assert columns[1:3] == ["spearman_ari", "kendall_ari"]
    assert columns.index("ari_of_pick") < columns.index("nmi_of_pick")
    assert found.to_frame()["ari_of_pick"][0] == few


def test_values_that_differ_in_the_last_digit_are_tied():
    row = [0.3, 0.1 + 0.2, 0.9]
    scores = Scores.from_matrix([row, row], partitions=["a", "b", "c"], paired=False)
    labels = {"a": [0, 1, 0, 1], "b": [1, 0, 1, 0], "c": [0, 0, 1, 1]}
    found = agreement(rank(ace(scores, dip=False)), labels, [0, 0, 1, 1])
    assert found.correlations["ace"]["spearman_nmi"] == pytest.approx(1.0)
    assert found.correlations["ace"]["kendall_acc"] == pytest.approx(1.0)


def test_noise_counts_as_a_cluster_so_that_dropping_objects_does_not_pay():
    scores = Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["few", "all"], paired=False)
    labels = {"few": [0, 1, -1, -1, -1, -1], "all": [0, 1, 0, 1, 0, 1]}
    found = agreement(rank(ace(scores, dip=False)), labels, [0, 1, 0, 1, 0, 1])
    assert found.external["acc"][0] < 1
    assert found.external["acc"][1] == 1


def test_truth_of_another_length_is_refused():
    scores = Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["a", "b"], paired=False)
    with pytest.raises(ValueError, match=r"one class per object \(3 in 'a'\), got 2"):
        agreement(rank(ace(scores, dip=False)), {"a": [0, 1, 1], "b": [0, 0, 1]}, [0, 1])


def test_agreement_survives_the_disk(tmp_path):
    scores = Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["a", "b"], paired=False)
    first = agreement(rank(ace(scores, dip=False)), {"a": [0, 1, 1], "b": [0, 0, 1]}, [0, 1, 1])
    again = Agreement.load(first.save(tmp_path / "truth"))
    # two clusters each: "more_clusters" tells nothing apart, and its correlation is NaN
    np.testing.assert_equal(again.columns(), first.columns())


@pytest.mark.parametrize(
    "function", [f for f in map(evaluate.__dict__.get, evaluate.__all__) if inspect.isfunction(f)]
)
def test_only_agreement_is_told_the_truth(function):
    told = "truth" in inspect.signature(function).parameters
    assert told == (function is agreement)


def test_the_whole_way_from_runs_to_truth():
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2], 30)
    spaces = {f"s{i}": rng.normal(size=(90, 3)) + 5 * np.eye(3)[truth] for i in range(4)}
    wrong = {f"{p:.0%}": np.where(rng.random(90) < p, rng.integers(0, 3, 90), truth)
             for p in (0, 0.1, 0.3, 0.6)}  # fmt: skip
    runs = Runs.from_parts(spaces, wrong)
    scores = ws.score_runs(runs, ["silhouette", "calinski_harabasz"])
    answer, beside = (ws.ace(scores, index=i) for i in scores.indices)
    found = ws.agreement(rank(answer, others=[beside]), runs, truth)
    assert found.picks["ace"] == ("0%",)
    assert found.correlations["ace"]["spearman_nmi"] == pytest.approx(1.0)
    assert found.correlations["ace_by_calinski_harabasz"]["spearman_acc"] == pytest.approx(1.0)


@pytest.mark.parametrize("votes", [3, [1.0, 2.0], np.ones(2), {"consensus": "high"}])
def test_votes_that_are_no_scores_by_name_are_refused(votes):
    scores = Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["a", "b"], paired=False)
    with pytest.raises(TypeError, match="votes"):
        rank(ace(scores, dip=False), votes=votes)


@pytest.mark.parametrize("truth", [[{1}, {1}, {2}], [object()] * 3])
def test_classes_of_another_kind_are_refused_with_their_position(truth):
    scores = Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["a", "b"], paired=False)
    with pytest.raises(TypeError, match="truth must be all text or all integers.* at 0"):
        agreement(rank(ace(scores, dip=False)), {"a": [0, 1, 1], "b": [0, 0, 1]}, truth)
