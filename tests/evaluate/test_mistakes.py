"""Mistakes that new users make in Python, and what each is answered with."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = RNG.normal(size=(60, 4)) + 8 * np.eye(4)[Y]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ws.silhouette_score(Y, X), "labels come after the data"),
        (lambda: ws.choose_k(X, Y), "k_range must hold numbers of clusters, got a value for each"),
        (lambda: ws.choose_k(X, [1]), r"k_range must hold a number from 2 on, got \[1\]"),
        (lambda: ws.choose_k(X, 10), r"integers, such as range\(2, 11\), got 10"),
        (lambda: ws.stability(X, ws.KMeans(3)), "the clusterer goes first"),
        (lambda: ws.judge([Y, Y]), r"labels alone are a mapping \{name: labels\}"),
        (lambda: ws.judge([("a", Y, X)]), r"the order is \(name, embedding, labels\)"),
        (lambda: ws.save_run("nowhere", Y, X), r"the order is \(name, embedding, labels\)"),
        (lambda: ws.silhouette_score(X.T, Y), r"one entry per object \(4\), got 60"),
        (lambda: ws.silhouette_score(X.astype(str), Y), "convert its columns to numbers"),
        (lambda: ws.KMeans(3).predict(X), "is not fitted yet"),
        (lambda: ws.KMeans(300).fit(X), r"must not exceed the number of objects \(60\), got 300"),
        (lambda: ws.ari_score(Y, Y[:10]), r"one entry per object \(60\), got 10"),
        (lambda: ws.silhouette_score(X, Y, metric="euclid"), "metric must be one of 'euclidean'"),
        (lambda: ws.silhouette_score(X, Y[:, None]), "each row must be a clustering: transpose it"),
        (lambda: ws.silhouette_score(X, np.where(Y == 0, None, Y)), "label such objects -1"),
        (lambda: ws.silhouette_score(X, Y + 2.0**60), "such floats are rounded"),
        (lambda: ws.silhouette_score(np.where(X[3, 1] == X, np.nan, X), Y), r"column 1 \(row 3\)"),
        (lambda: ws.judge({"a": (Y, X)}), r"the order is \(name, embedding, labels\)"),
        (lambda: ws.save_run("nowhere", X, Y[:50], name="a"), "got 50 in labels, 60 in embedding"),
        (lambda: ws.KMeans(3.0).fit(X), "n_clusters must be an integer, got 3.0"),
        (lambda: ws.KMeans("3").fit(X), "n_clusters must be an integer, got '3'"),
        (lambda: ws.KMeans(3).fit(X).predict(X[:, :2]), "has 2 features"),
        (lambda: ws.load_runs("nowhere"), "path must be a folder of runs or an .npz file"),
    ],
)
def test_a_mistake_is_answered_with_what_is_wrong(call, sentence):
    with pytest.raises((ValueError, TypeError, OSError), match=sentence):
        call()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: ws.choose_k(frame.assign(c="x")), r"pass wellsep.MixedTable\(X\)"),
        (lambda frame: ws.choose_k(frame.assign(t="2024")), "got column 't' of type"),
        (
            lambda frame: ws.KMeans(3).fit(frame).predict(frame[list("bacd")]),
            r"pass X\[clusterer.feature_names_in_\]",
        ),
    ],
)
def test_a_mistake_with_a_frame_is_answered_with_what_is_wrong(change, sentence):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    with pytest.raises((ValueError, TypeError), match=sentence):
        change(pd.DataFrame(X, columns=list("abcd")))


def test_labels_of_any_kind_that_name_clusters_get_the_score_of_numbers():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    names, frame = np.array(["low", "mid", "high"])[Y], pd.DataFrame(X)
    kinds = [names.tolist(), pd.Categorical(names), pd.DataFrame({"y": Y}), Y.astype(float)]
    kinds += [Y.tolist(), (Y + 2**62).astype(np.int64)]
    right = ws.silhouette_score(X, Y)
    assert [ws.silhouette_score(X, labels) for labels in kinds] == [right] * len(kinds)
    shuffled = pd.Series(Y).sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="labels have the index of X in another order"):
        assert ws.silhouette_score(frame, shuffled) == right


def test_a_pair_of_k_is_two_values_and_the_answer_says_so():
    told = ws.choose_k(X, (2, 4), random_state=0).explain()
    assert "Nothing between 2 and 4 was tried: pass range(2, 5) for all." in told


def test_a_frame_with_columns_of_very_different_spread_is_warned_of():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    frame = pd.DataFrame(X * [1, 1, 1, 1000], columns=list("abcd"))
    with pytest.warns(UserWarning, match="Columns differ in spread by a factor of .*'d'"):
        ws.choose_k(frame, (2, 3), random_state=0)


def results():
    """A result of each kind that users print."""
    runs = ws.Runs.from_parts({"all": X, "two": X[:, :2]}, {"a": Y, "b": Y % 2, "c": Y > 1})
    judgement = ws.judge(runs, n_draws=4)
    yield from (judgement, judgement.verdict, judgement.ranking, judgement.scores)
    yield from (judgement.by_ace, judgement.vote, judgement.confidence, judgement.embeddings)
    yield ws.agreement(judgement.ranking, runs, Y)
    yield from (ws.consensus(runs), ws.consensus_partition(runs), ws.resolution_tree(runs))
    yield ws.choose_k(X, (2, 3), random_state=0)
    yield ws.stability(None, X, Y, n_draws=3, random_state=0)
    yield from (ws.membership_report(X, Y), ws.local_connectivity(X, Y))
    yield from (ws.describe_clusters(X, Y), ws.dip_test(X[:, 0]))


def test_print_of_a_result_is_its_answer():
    for result in results():
        text = str(result)
        assert text != repr(result), type(result).__name__
        assert text.splitlines()[0].endswith((".", "…")), text
        assert "array (" not in text
        assert "keys {" not in text
