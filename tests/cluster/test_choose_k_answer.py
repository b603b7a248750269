"""choose_k can say one cluster, counts no vote at the end of the range, and takes the median."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from cluster.test_choose_k import fresh
from scipy.stats import skew
from sklearn.cluster import AgglomerativeClustering, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from wellsep.cli.main import main
from wellsep.cluster.k_choice import evidence
from wellsep.cluster.k_choice.choose import RANGE, parse_voters
from wellsep.cluster.k_choice.evidence import draw_sample
from wellsep.cluster.k_choice.prediction_strength import FOUND_AGAIN
from wellsep.cluster.k_choice.result import knee
from wellsep.cluster.kmeans import kmeans_labels
from wellsep.indices.gap import gain_over_one, gaps, one_error_rule
from wellsep.records import ChosenK

SMALL = range(2, 6)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, 3, centers=4, random_state=1)[0]


@pytest.fixture(scope="module")
def nothing():
    return np.random.default_rng(3).normal(size=(200, 2))


@pytest.fixture(scope="module")
def one(nothing):
    return ws.choose_k(nothing, SMALL, random_state=0)


def voting(k, values, names=None, **more):
    """A record of votes alone: one row of scores per index."""
    directions = more.pop("directions", (1,) * len(values))
    chosen = fresh(k, [np.array(values, dtype=float).T], directions, **more)
    return chosen if names is None else ChosenK(**{**vars(chosen), "indices": names})


def peak(k, at):
    """Scores that are best at one K."""
    return [float(one == at) for one in k]


# ------------------------------------------------------------------------------ the gate


def test_the_gate_is_that_of_the_arithmetic_by_hand():
    # ln W 3.0, 2.9, 1.2; references 3.5, 2.9, 2.4; s = .1: gaps .5, 0, 1.2, so Z = 7 at K = 3,
    # where the one-standard-error rule stops at 1.
    reach = 0.1 / np.sqrt(1.5)
    others = np.array([[3.5, 2.9, 2.4]] * 2) + np.array([[reach], [-reach]])
    gap, error = gaps(np.array([3.0, 2.9, 1.2]), others)
    np.testing.assert_allclose(gap, [0.5, 0.0, 1.2])
    np.testing.assert_allclose(error, 0.1)
    np.testing.assert_allclose(gain_over_one(gap, error), [-5, 7])
    assert one_error_rule(np.array([1, 2, 3]), gap, error) == (1, True)
    record = voting([2, 3], [[1.0, 2.0]], gap_k=np.array([1, 2, 3]), gap=gap, gap_error=error,
                    not_tested="")  # fmt: skip
    assert record.gain == (pytest.approx(7), 3)
    assert record.structure is True


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.normal(size=(150, 2)),
        lambda rng: rng.normal(size=(150, 50)),
        lambda rng: rng.uniform(size=(150, 2)),
        lambda rng: rng.standard_t(3, size=(150, 5)),
        lambda rng: rng.normal(size=(150, 5)) * [10, 1, 1, 1, 1],
        lambda rng: rng.uniform(size=(150, 10)),
    ],
    ids=["Gaussian", "wide Gaussian", "square", "heavy tails", "long Gaussian", "box"],
)
def test_sets_without_clusters_are_answered_by_one(make):
    chosen = ws.choose_k(
        make(np.random.default_rng(5)), SMALL, indices="silhouette", random_state=0
    )
    assert chosen.structure is False
    assert chosen.best == 1


def test_the_answer_one_is_in_words_record_labels_and_html(one, tmp_path):
    text = one.explain()
    assert text.startswith("No structure beyond one cluster that KMeans could find: no K of 2 to 5")
    assert f"look at K = {one.best_above_one}" in text
    assert "With so few objects (200) the gap statistic misses weak clusters." in text
    assert one.best_above_one in SMALL
    assert one.labels_for().tolist() == [0] * 200
    again = ChosenK.load(one.save(tmp_path / "one"))
    assert again.best == 1
    assert again.explain() == text
    assert "No structure beyond one cluster" in one._repr_html_()


def test_the_page_of_one_cluster_says_so_first(one, nothing, tmp_path):
    text = ws.render_report(one, tmp_path / "one.html", runs=nothing).read_text("utf-8")
    head = text[text.index('<h1 id="lead">') :][:400]
    assert "No structure beyond one cluster that KMeans could find" in head
    assert f"look at K = {one.best_above_one}" in text


def test_the_command_ends_with_three_and_writes_what_was_asked(nothing, tmp_path, capsys):
    np.save(tmp_path / "x.npy", nothing)
    words = ["choose-k", str(tmp_path / "x.npy"), "-k", "2:4", "-i", "silhouette"]
    assert main([*words, "-o", str(tmp_path / "y.npy")]) == 3
    assert "No structure beyond one cluster" in capsys.readouterr().out
    assert np.load(tmp_path / "y.npy").tolist() == [0] * 200
    assert main([*words, "--json"]) == 3
    shown = json.loads(capsys.readouterr().out)
    assert (shown["best"], shown["structure"]) == (1, False)
    assert shown["gain"]["value"] <= 3
    assert main([*words, "--no-gate", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["structure"] is None
    assert shown["not_tested"] == "gate=False"


def test_the_gate_passes_clusters_and_names_where_it_was_largest(blobs):
    chosen = ws.choose_k(blobs, SMALL, indices="silhouette", random_state=0)
    assert chosen.structure is True
    assert chosen.best == 4
    assert "There is more than one cluster: K = " in chosen.explain()


def test_the_gate_asks_about_the_best_k_of_the_first_index_and_then_about_all(blobs, nothing):
    first = ws.choose_k(blobs, SMALL, indices="silhouette", random_state=0)
    assert first.gap_k.tolist() == [1, first.best]
    whole = ws.choose_k(blobs, SMALL, indices=["silhouette", "gap"], random_state=0)
    assert whole.gap_k.tolist() == [1, *SMALL]
    at = whole.gap_k.tolist().index(first.best)
    np.testing.assert_array_equal(first.gap, whole.gap[[0, at]])
    np.testing.assert_array_equal(first.gap_error, whole.gap_error[[0, at]])
    none = ws.choose_k(nothing, SMALL, indices="silhouette", random_state=0)
    assert none.structure is False
    assert none.gap_k.tolist() == [1, *SMALL]


def test_a_k_that_cannot_be_found_again_is_split_no_further(blobs, monkeypatch):
    rng = np.random.RandomState(0)
    sample = draw_sample(blobs, ws.KMeans(n_init=2), "n_clusters", None, False, rng)

    def strengths():
        found = evidence.strengths(
            sample,
            range(2, 9),
            5,
            lambda function, tasks, what: [function(*task) for task in tasks],
        )
        assert found[1] == {}
        return found[0]

    values = strengths()
    monkeypatch.setattr(evidence, "FOUND_AGAIN", -1.0)  # five splits of every K
    whole = strengths()
    above = whole > FOUND_AGAIN
    assert above.any()
    assert not above.all()
    np.testing.assert_array_equal(values > FOUND_AGAIN, above)
    np.testing.assert_array_equal(values[above], whole[above])
    assert not np.array_equal(values, whole)


def test_objects_in_a_few_places_have_more_than_one_cluster():
    X = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 10, axis=0)
    chosen = ws.choose_k(X, [2, 3], indices="silhouette", estimator=AgglomerativeClustering())
    assert chosen.gain == (np.inf, 3)
    assert chosen.best == 3
    assert "3 clusters leave no spread within them" in chosen.explain()


def test_a_skewed_column_is_named_where_structure_is_found():
    X = np.random.default_rng(0).lognormal(size=(50, 2))
    sample = draw_sample(X, ws.KMeans(), "n_clusters", None, False, np.random.RandomState(0))
    assert sample.skewness == pytest.approx(np.abs(skew(X)).max())
    gap = {"gap_k": np.array([1, 2]), "gap": np.array([0.1, 0.9]), "not_tested": ""}
    for skewness, said in ((sample.skewness, True), (1.4, False)):
        chosen = voting([2, 3], [[2.0, 1.0]], gap_error=np.array([0.1, 0.1]), skewness=skewness,
                        **gap)  # fmt: skip
        assert ("A skewed column alone can look like structure" in chosen.explain()) is said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sample_weight": np.ones(240)}, "objects have weights"),
        ({"estimator": ws.KMeans(metric="cosine", random_state=0)}, "metric 'cosine'"),
        ({"gate": False}, "gate=False"),
    ],
)
def test_what_the_gate_cannot_test_is_said(blobs, options, why):
    chosen = ws.choose_k(blobs + 20, [3, 4, 5], indices="silhouette", random_state=0, **options)
    assert chosen.structure is None
    assert why in chosen.not_tested
    assert f"was not tested: {chosen.not_tested}." in chosen.explain()


def test_the_gate_looks_at_what_the_clusterer_sees(blobs):
    wide = np.column_stack([blobs, 1e6 * np.random.default_rng(0).uniform(size=240)])
    model = make_pipeline(StandardScaler(), ws.KMeans(n_init=2))
    sample = draw_sample(wide, model, "kmeans__n_clusters", None, False, np.random.RandomState(0))
    np.testing.assert_allclose(sample.X.std(axis=0), 1)
    assert sample.parameter == "n_clusters"
    assert ws.choose_k(
        wide, [2, 3, 4, 5], estimator=model, indices="silhouette", random_state=0,
        space=StandardScaler(),
    ).structure  # fmt: skip


# ------------------------------------------------------------------------------ the vote


@pytest.mark.parametrize(
    ("picks", "best", "more"),
    [
        ((4, 2, 7), 4, 0),
        ((8, 9), 8, 0),  # of two the smaller
        ((9, 3, 4), 4, 1),  # 9 is the end: no vote, but it stands above the others
        ((9, 3), 3, 1),
        ((9, 9, 9), 9, 3),  # no vote at all: the end
        ((9, 9, 5), 9, 2),  # most want more
        ((2, 3, 5, 7), 3, 0),
    ],
)
def test_the_median_of_the_votes_counts_and_the_end_is_no_vote(picks, best, more):
    k = list(range(2, 10))
    k = k if max(picks) < 9 or more else [*k, 10]
    chosen = voting(k, [peak(k, at) for at in picks])
    assert chosen.best == best
    assert len(chosen.wants_more) == more
    assert sum(chosen.votes.values()) == len(picks) - more
    if more == len(picks):
        assert chosen.explain().startswith("There may be more than 9 clusters: every index picked")
    if more == 2:
        assert chosen.explain().startswith(
            "There may be more than 9 clusters: 2 of 3 indices picked"
        )
    if more:
        assert "picked the largest K tried, 9: try a wider range." in chosen.explain()


def test_two_votes_for_one_are_one_cluster_and_one_such_vote_pulls_the_median():
    k, names = [2, 3, 4], ("silhouette", "prediction_strength", "mixture_bic")
    bic = [30.0, 20.0, 25.0]
    values = [peak(k, 3), [0.7, 0.6, 0.5], bic]
    options = {"directions": (1, 1, -1)}
    ones = voting(k, values, names, at_one=np.array([np.nan, 1, 10.0]), **options)
    assert ones.picks == {"silhouette": 3, "prediction_strength": 1, "mixture_bic": 1}
    assert ones.votes == {1: 2, 2: 0, 3: 1, 4: 0}
    assert ones.best == 1
    assert ones.explain().startswith("One cluster: 2 of 3 votes are for K = 1.")
    assert "prediction_strength votes for 1: no K has more than 0.8 (largest 0.70" in ones.explain()
    pulled = voting(k, values, names, at_one=np.array([np.nan, 1, 99.0]), **options)
    assert pulled.picks["mixture_bic"] == 3
    assert pulled.best == 3


def test_where_the_gate_says_one_the_votes_do_not_matter():
    closed = {"gap_k": np.array([1, 2]), "gap": np.array([0.5, 0.65]), "not_tested": ""}
    chosen = voting([2, 3, 4], [peak([2, 3, 4], 3)], gap_error=np.array([0.1, 0.1]), **closed)
    assert chosen.gain == (pytest.approx(1.5), 2)
    assert (chosen.voted, chosen.best, chosen.best_above_one) == (3, 1, 3)


def test_the_default_range_is_extended_once_if_an_index_wants_more():
    X, _ = make_blobs(600, 2, centers=18, cluster_std=0.15, random_state=0)
    chosen = ws.choose_k(X, indices=["silhouette", "elbow"], gate=False, random_state=0)
    assert chosen.k.tolist() == list(range(2, 26))
    assert chosen.picks["silhouette"] == 18
    assert chosen.values.shape == (1, 24, 2)
    assert chosen.labels.shape == (24, 600)
    assert "The range was extended from 15 to 25" in chosen.explain()
    given = ws.choose_k(X, range(2, 16), indices="silhouette", gate=False, random_state=0)
    assert given.k[-1] == 15
    assert given.wants_more == ("silhouette",)


class FailsBeyondTheRange(AgglomerativeClustering):
    def fit(self, X, y=None):
        if self.n_clusters > RANGE[-1]:
            raise ArithmeticError("too many")
        return super().fit(X)


def test_an_extension_that_cannot_be_fitted_leaves_what_was_found(monkeypatch):
    monkeypatch.setattr("wellsep.cluster.fitting.is_tree", lambda model: False)
    monkeypatch.setattr("wellsep.cluster.k_choice.choose.is_tree", lambda model: False)
    rng = np.random.default_rng(0)
    X = np.repeat([[10.0 * i, 10.0 * j] for i in range(5) for j in range(4)], 6, axis=0)
    X += rng.normal(size=X.shape)
    with pytest.warns(FitFailedWarning):
        chosen = ws.choose_k(
            X, estimator=FailsBeyondTheRange(), indices="silhouette", random_state=0
        )
    assert chosen.k.tolist() == list(RANGE)
    assert min(chosen.failures) == RANGE[-1] + 1
    assert chosen.labels.dtype.kind == "i"
    assert chosen.labels.shape == (len(RANGE), len(X))


def test_the_default_range_ends_before_the_number_of_objects():
    X = np.random.default_rng(0).normal(size=(9, 2))
    chosen = ws.choose_k(X, indices="silhouette", gate=False, random_state=0)
    assert chosen.k.tolist() == list(range(2, 9))


# ------------------------------------------------------------------------------ criteria by name


def test_the_knee_is_that_of_the_arithmetic_by_hand():
    k, inertia = np.arange(1, 6), np.array([100.0, 40, 20, 15, 12])
    assert knee(k, inertia) == 2
    assert knee(k, np.log(inertia)) == 3


def test_elbow_gap_and_strength_are_had_by_name(blobs):
    names = ["elbow", "log_elbow", "gap", "silhouette", "prediction_strength", "mixture_bic"]
    chosen = ws.choose_k(blobs, range(2, 7), indices=names, random_state=0)
    assert chosen.indices == tuple(names)
    assert chosen.picks["prediction_strength"] == chosen.picks["mixture_bic"] == 4
    assert chosen.picks["log_elbow"] == 4
    assert chosen.directions.tolist() == [-1, -1, 1, 1, 1, -1]
    within = [
        sum(((blobs[y == c] - blobs[y == c].mean(axis=0)) ** 2).sum() for c in set(y))
        for y in chosen.labels
    ]
    np.testing.assert_allclose(chosen.mean[:, 0], within)
    assert chosen.at_one[0] == pytest.approx(((blobs - blobs.mean(axis=0)) ** 2).sum())
    np.testing.assert_allclose(chosen.mean[:, 2], chosen.gap[1:])
    assert set(chosen.to_frame().columns) >= set(names)


def test_the_mixture_has_the_least_bic_of_scikit_learns_forms(blobs):
    from sklearn.mixture import GaussianMixture

    chosen = ws.choose_k(blobs, [2, 4], indices="mixture_bic", gate=False, random_state=0)
    bics = [
        GaussianMixture(4, covariance_type=form, reg_covar=1e-6, random_state=0)
        .fit(blobs)
        .bic(blobs)
        for form in ("full", "tied", "diag", "spherical")
    ]
    assert min(bics) < bics[0] - 1
    assert chosen.mean[1, 0] == pytest.approx(min(bics), rel=1e-3)


def test_few_objects_in_many_columns_do_not_make_the_mixture_name_too_few():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 12)) + 6 * np.eye(4, 12)[np.arange(120) % 4]
    chosen = ws.choose_k(X, range(2, 8), indices="mixture_bic", gate=False, random_state=0)
    assert chosen.picks == {"mixture_bic": 4}


def test_labels_for_many_k_are_those_of_single_fits(blobs):
    found = kmeans_labels(ws.KMeans(n_init=2), [2, 5], blobs, None, 3)
    for k, labels in zip([2, 5], found, strict=True):
        alone = ws.KMeans(k, n_init=2, random_state=3).fit_predict(blobs)
        np.testing.assert_array_equal(labels, alone)


def test_an_unknown_index_is_answered_with_all_names():
    with pytest.raises(ValueError, match=r"indices must be among .*elbow, .*gap"):
        parse_voters("elbo")
    with pytest.raises(ValueError, match="parameters of 'gap' must be left out, got 'q'"):
        parse_voters([("gap", {"q": 2})])
    with pytest.raises(ValueError, match="indices must name at least one index, got none"):
        parse_voters([])


# ------------------------------------------------------------------------------ kinds of X


def test_sparse_objects_are_answered_as_dense_ones(blobs):
    names = ["silhouette", "simplified_silhouette", "prediction_strength", "mixture_bic", "elbow"]
    dense = ws.choose_k(blobs, [3, 4, 5], indices=names, random_state=0)
    sparse = ws.choose_k(sp.csr_array(blobs), [3, 4, 5], indices=names, random_state=0)
    assert sparse.best == dense.best == 4
    assert sparse.gain == pytest.approx(dense.gain)
    np.testing.assert_allclose(sparse.values, dense.values, rtol=1e-6)


def test_wide_sparse_objects_are_never_made_dense(monkeypatch):
    real = sp.csr_array.toarray

    def few_rows(self, *args, **options):  # such as centres
        assert self.shape[0] < 20, f"{self.shape} was made dense"
        return real(self, *args, **options)

    monkeypatch.setattr(sp.csr_array, "toarray", few_rows)
    X = sp.random(60, 20_000, density=2e-4, format="csr", random_state=0)
    chosen = ws.choose_k(X, [2, 3], indices=["mixture_bic", "calinski_harabasz"], random_state=0)
    assert not chosen.not_tested
    assert (2, "mixture_bic") not in chosen.reasons


@pytest.mark.parametrize("subsample", [None, 0.5])
def test_distances_give_what_coordinates_give(blobs, subsample):
    D = pairwise_distances(blobs)
    options = {"subsample": subsample, "random_state": 0}
    model = AgglomerativeClustering(metric="precomputed", linkage="average")
    found = ws.choose_k(D, [3, 4, 5], estimator=model, **options)
    same = ws.choose_k(
        blobs, [3, 4, 5], estimator=AgglomerativeClustering(linkage="average"), gate=False,
        indices=["silhouette", "prediction_strength"], **options,
    )  # fmt: skip
    assert found.indices[0] == "silhouette(metric=precomputed)"
    assert found.best == 4
    np.testing.assert_array_equal(found.labels, same.labels)
    np.testing.assert_allclose(found.values[0, :, 0], same.values[0, :, 0])
    assert "distances, not coordinates" in found.not_tested
    np.testing.assert_allclose(found.values[0, 1, 1], same.values[0, 1, 1])  # K = 4
    assert found.picks["mixture_bic"] is None


def test_similarities_are_cut_by_rows_and_columns(blobs):
    S = np.exp(-(pairwise_distances(blobs) ** 2) / 20)
    model = SpectralClustering(affinity="precomputed", random_state=0)
    chosen = ws.choose_k(
        S, [3, 4, 5], estimator=model, space=blobs, subsample=0.5, random_state=0,
        indices="silhouette",
    )  # fmt: skip
    assert chosen.best == 4


def test_a_matrix_of_distances_must_be_square(blobs):
    model = AgglomerativeClustering(metric="precomputed", linkage="average")
    with pytest.raises(ValueError, match="X must be square for a clusterer of distances"):
        ws.choose_k(blobs, [2, 3], estimator=model)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_equal_objects_are_one_cluster(kind, tmp_path):
    X = kind(np.full((30, 2), 7.0))
    chosen = ws.choose_k(X, random_state=0)
    assert chosen.best == 1
    assert chosen.explain().startswith("One cluster: all objects are equal.")
    if kind is np.asarray:
        assert "all objects are equal" in ws.render_report(
            chosen, tmp_path / "k.html", runs=X
        ).read_text("utf-8")


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_objects_are_refused_in_a_sentence(n, tmp_path, capsys):
    X = np.arange(2.0 * n).reshape(n, 2)
    with pytest.raises(ValueError, match=f"X must have at least 3 objects .*, got {n};"):
        ws.choose_k(X)
    np.save(tmp_path / "x.npy", X)
    assert main(["choose-k", str(tmp_path / "x.npy")]) == 2
    assert "at least 3 objects" in capsys.readouterr().err


# ------------------------------------------------------------------------------ progress, size


def test_progress_is_told_for_every_kind_of_task(blobs):
    told = []
    ws.choose_k(blobs, [3, 4], random_state=0, progress=lambda *words: told.append(words))
    by_kind = {what: [one for one in told if one[2] == what] for _, _, what in told}
    assert set(by_kind) == {"gap statistic", "fits", "prediction strength", "Gaussian mixtures"}
    for steps in by_kind.values():
        total = steps[0][1]
        assert [done for done, _, _ in steps] == list(range(total + 1))
    with pytest.raises(TypeError, match="progress must be a function or None, got 3"):
        ws.choose_k(blobs, [3, 4], progress=3)


def test_large_sets_are_sampled_for_gap_strength_and_mixture():
    X, _ = make_blobs(2500, 2, centers=3, random_state=2)
    chosen = ws.choose_k(X, [2, 3, 4], indices=["calinski_harabasz", "mixture_bic"], random_state=0)
    assert chosen.n_sampled == 2000
    assert "computed on 2,000 of 2,500 objects" in chosen.explain()
    assert chosen.best == 3


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_sample_of_equal_objects_is_answered(kind):
    X = np.zeros((2500, 60))
    X[:, 0], X[7, 5] = 1.0, 3.0  # the sample has no object but equal ones
    found = ws.choose_k(kind(X), [2, 3], random_state=0)
    assert set(found.reasons.values()) >= {"all objects are equal"}


def test_equal_objects_known_by_distances_are_one_cluster():
    found = ws.choose_k(ws.Distances(np.zeros((10, 10))), [2, 3], random_state=0)
    assert found.all_equal
    assert found.explain().startswith("One cluster: all objects are equal.")


# ------------------------------------------------------------------------------ what was tried


def test_two_numbers_are_said_to_be_two_numbers(blobs):
    chosen = ws.choose_k(blobs, (4, 9), gate=False, indices="silhouette")
    assert "4 and 9 tried" in chosen.explain()
    assert "Nothing between 4 and 9 was tried: pass range(4, 10) for all." in chosen.cautions()


def test_a_range_without_holes_is_said_as_a_range(blobs):
    chosen = ws.choose_k(blobs, (3, 4, 5), gate=False, indices="silhouette")
    assert "3 to 5 tried" in chosen.explain()
    assert not any("Nothing between" in line for line in chosen.cautions())


# --------------------------------------------------------------------------- one cluster, untested


def untested(n_votes, why):
    """A record whose first index votes for 3, the others for one cluster."""
    names = ("silhouette", "prediction_strength", "mixture_bic")[:n_votes]
    values = [[0.1, 0.9, 0.2], [0.1, 0.1, 0.1], [60.0, 70.0, 80.0]][:n_votes]
    directions = np.array([1, 1, -1])[:n_votes]
    record = voting([2, 3, 4], values, names, directions=directions, not_tested=why)
    at_one = np.array([np.nan, 1.0, 50.0])[:n_votes]
    return ChosenK(**{**vars(record), "at_one": at_one})


def test_two_votes_without_the_test_never_say_one_cluster():
    chosen = untested(2, "X holds distances")
    assert chosen.voters == {"silhouette": 3, "prediction_strength": 1}
    assert chosen.voted == 1
    assert chosen.best == 3
    assert chosen.answer() == (
        "K = 3 is the answer of the votes above one cluster (2 to 4 tried, 1 repeat).",
        "Whether there is more than one cluster was not tested: X holds distances.",
        "1 of 2 votes is for K = 1, too few to say so without that test.",
    )


def test_three_votes_may_say_one_cluster_and_that_it_was_not_tested():
    chosen = untested(3, "objects have weights")
    assert list(chosen.voters.values()) == [3, 1, 1]
    assert chosen.best == 1
    assert chosen.answer() == (
        "One cluster: 2 of 3 votes are for K = 1.",
        "Whether there is more than one cluster was not tested: objects have weights.",
        "If you want more than one cluster anyway, look at K = 3.",
    )


def test_one_number_of_clusters_is_told_as_one():
    X = np.random.default_rng(0).normal(size=(60, 3))
    two = X + np.repeat([0.0, 9.0], 30)[:, None]
    first = ws.choose_k(two, [2]).answer()[0]
    assert first == "K = 2 is the median of 3 votes (no other K tried, 1 repeat)."
    none, _ = ws.choose_k(X, [3], random_state=0).answer()
    assert "could find: K = 3 does not beat one cluster by more than 3 standard errors" in none
    assert none.endswith("of the gap statistic (-0.5).")
    only = ws.choose_k(X, [3], indices="elbow", gate=False).answer()[0]
    assert only == "One cluster: the only vote is for K = 1."


def test_without_the_gate_the_answer_is_the_vote_alone_and_says_so():
    chosen = untested(2, "gate=False")
    assert chosen.best == 1
    assert "was not tested: gate=False" in chosen.explain()


def test_distances_are_not_called_one_cluster_by_two_votes():
    X = np.random.default_rng(0).normal(size=(60, 2))
    chosen = ws.choose_k(ws.Distances(pairwise_distances(X)), range(2, 5), random_state=0)
    assert chosen.best > 1
    assert "was not tested" in chosen.explain()


# ------------------------------------------------------------------------------ the clusterer


def test_the_clusterer_that_was_chosen_comes_with_the_answer(blobs, tmp_path):
    chosen = ws.choose_k(blobs, range(2, 7), random_state=0)
    np.testing.assert_array_equal(chosen.clusterer.labels_, chosen.labels_for())
    assert chosen.clusterer.n_clusters == chosen.best == 4
    assert ChosenK.load(chosen.save(tmp_path / "k")).clusterer is None


def test_the_clusterer_that_was_chosen_is_stable_where_its_clusters_are_apart(blobs):
    chosen = ws.choose_k(blobs, range(2, 7), random_state=0)
    again = ws.stability(chosen.clusterer, blobs, n_draws=10, n_splits=2, random_state=1)
    np.testing.assert_array_equal(again.labels, chosen.labels_for())
    assert set(again.words) == {"highly stable"}
    assert again.prediction_strength == 1.0


def test_stability_makes_several_starts_where_their_number_is_open(blobs):
    found = ws.stability(ws.KMeans(4, random_state=3), blobs, n_draws=2, n_splits=0)
    assert "n_init=10" in found.clusterer
    single = ws.stability(ws.KMeans(4, n_init=1, random_state=3), blobs, n_draws=2, n_splits=0)
    assert "n_init=1," in single.clusterer
