"""Displays draw their figures on given axes or their own, and look as they did."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from pages import grouped_scores, small_choice, small_judgement, small_runs, small_stability
from sklearn.cluster import AgglomerativeClustering
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from wellsep.evaluate import rank
from wellsep.records import Judgement

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("agg")
import matplotlib.pyplot as plt

from wellsep import plot
from wellsep._text.sentences import CLUSTERS

BASELINES = Path(__file__).parents[1] / "pictures"
# Set to draw the pictures anew after a change that is meant.
RENEW = "WELLSEP_DRAW_PICTURES"


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(m, 1, (30, 2)) for m in ([0, 0], [6, 0], [3, 5])])
    return X, ws.KMeans(3, random_state=0).fit(X)


DISPLAYS = {
    "silhouette": lambda plane, ax: plot.SilhouetteDisplay.from_estimator(*plane[::-1], ax=ax),
    "margin": lambda plane, ax: plot.MarginDisplay.from_estimator(*plane[::-1], ax=ax),
    "connectivity": lambda plane, ax: plot.ConnectivityDisplay.from_estimator(*plane[::-1], ax=ax),
    "agreement": lambda plane, ax: plot.AgreementDisplay.from_result(
        ws.ace(grouped_scores()), ax=ax
    ),
    "runs": lambda plane, ax: plot.RunAgreementDisplay.from_result(small_judgement(), ax=ax),
    "graph": lambda plane, ax: plot.GraphDisplay.from_result(small_judgement(), ax=ax),
    "curves": lambda plane, ax: plot.CurvesDisplay.from_result(small_choice()[0], ax=ax),
    "spaces": lambda plane, ax: plot.SpacesDisplay.from_result(
        small_judgement(), small_runs()[0], ax=ax
    ),
}
DISPLAYS |= {
    "scatter": lambda plane, ax: plot.ScatterDisplay.from_estimator(*plane[::-1], ax=ax),
    "ranking": lambda plane, ax: plot.RankingDisplay.from_result(small_judgement(), ax=ax),
    "dips": lambda plane, ax: plot.DipDisplay.from_result(small_judgement(), ax=ax),
    "stability": lambda plane, ax: plot.StabilityDisplay.from_result(small_stability(), ax=ax),
    "profile": lambda plane, ax: plot.ClusterProfileDisplay.from_estimator(*plane[::-1], ax=ax),
    "tree": lambda plane, ax: plot.ResolutionTreeDisplay.from_result(
        ws.resolution_tree(small_choice()[0]), ax=ax
    ),
}
TWO = ("curves", "spaces")


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_draws_on_axes_of_its_own(name, plane):
    display = DISPLAYS[name](plane, None)
    assert display.figure_ is display.ax_.figure
    assert display.ax_.has_data()
    display.figure_.canvas.draw()


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_draws_on_the_axes_it_is_given(name, plane):
    _, axes = plt.subplots(1, 2)
    given = axes if name in TWO else axes[0]
    display = DISPLAYS[name](plane, given)
    assert display.ax_ is axes[0]
    assert plt.get_fignums() == [axes[0].figure.number]
    assert name in TWO or not axes[1].has_data()


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_keeps_its_figure_and_draws_it_again(name, plane):
    display = DISPLAYS[name](plane, None)
    first = display.ax_
    display.plot()
    assert display.ax_ is not first
    assert type(display).__name__ in repr(display)


@pytest.mark.parametrize("name", TWO)
def test_too_few_axes_are_refused(name, plane):
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="ax must hold 2 axes, got 1"):
        DISPLAYS[name](plane, ax)


def test_curves_are_drawn_where_an_index_picks_one_cluster():
    X = np.random.default_rng(0).normal(size=(60, 6))
    chosen = ws.choose_k(X, range(2, 5), indices="prediction_strength", random_state=0)
    assert chosen.picks == {"prediction_strength": 1}
    assert plot.CurvesDisplay.from_result(chosen).ax_.has_data()


def test_the_colours_are_those_of_the_page(plane):
    display = DISPLAYS["silhouette"](plane, None)
    drawn = [matplotlib.colors.to_hex(c.get_facecolor()[0]) for c in display.ax_.collections]
    assert drawn == list(CLUSTERS["light"][:3])


def test_the_mean_line_stands_at_the_score(plane):
    X, model = plane
    line = DISPLAYS["silhouette"](plane, None).mean_line_
    assert line.get_xdata()[0] == pytest.approx(ws.silhouette_score(X, model.labels_))


def test_margins_of_an_estimator_are_to_its_own_centres(plane):
    X, model = plane
    display = plot.MarginDisplay.from_estimator(model, X)
    expected = ws.margins(X, model.labels_, centers=model.cluster_centers_)
    found = np.concatenate(display.figure.values)
    np.testing.assert_allclose(np.sort(found), np.sort(expected))


def test_labels_stand_in_for_a_clusterer_that_cannot_predict(plane):
    X, _ = plane
    model = AgglomerativeClustering(3).fit(X)
    display = plot.SilhouetteDisplay.from_estimator(model, X)
    assert display.figure.mean == pytest.approx(ws.silhouette_score(X, model.labels_))
    with pytest.raises(ValueError, match="X must be what the estimator was fitted with"):
        plot.SilhouetteDisplay.from_estimator(model, X[:-1])
    with pytest.raises(ValueError, match="estimator must be fitted"):
        plot.SilhouetteDisplay.from_estimator(AgglomerativeClustering(3), X)


def test_the_last_step_of_a_pipeline_may_have_the_labels(plane):
    X, _ = plane
    model = make_pipeline(StandardScaler(), AgglomerativeClustering(3)).fit(X)
    display = plot.SilhouetteDisplay.from_estimator(model, X)
    assert display.figure.mean == pytest.approx(ws.silhouette_score(X, model[-1].labels_))


def test_a_clusterer_that_predicts_labels_objects_it_was_not_fitted_with(plane):
    X, model = plane
    display = plot.SilhouetteDisplay.from_estimator(model, X[::-1])
    expected = ws.silhouette_score(X[::-1], model.predict(X[::-1]))
    assert display.figure.mean == pytest.approx(expected)


def test_selected_spaces_come_first_and_any_labels_colour_them():
    runs, truth = small_runs()
    display = plot.SpacesDisplay.from_result(small_judgement(), runs, labels=truth, n_each=2)
    assert [s.selected for s in display.figure] == [True, True, False, False]
    assert display.figure[0].clusters == ("0", "1", "2")


def test_one_space_alone_cannot_be_compared():
    result = ws.ace(ws.Scores.from_matrix([[0.1, 0.3]], paired=False), dip=False)
    with pytest.raises(ValueError, match="at least 2 embeddings"):
        plot.AgreementDisplay.from_result(result)


def test_a_result_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="result must be a Judgement"):
        plot.GraphDisplay.from_result({"winner": 1})


def test_runs_stand_next_to_similar_ones_and_equal_ones_are_one_row():
    truth = np.arange(60) % 3
    near = np.where(np.arange(60) < 6, 0, truth)
    other = np.arange(60) // 20
    vote = ws.consensus(
        {"a": truth, "x": other, "b": near, "y": np.where(truth < 1, 0, other), "copy": truth + 5}
    )
    figure = plot.RunAgreementDisplay.from_result(vote).figure
    places = [figure.names.index(name) for name in "abxy"]
    assert abs(places[0] - places[1]) == abs(places[2] - places[3]) == 1
    assert figure.counts[places[0]] == 2
    assert figure.labels[places[0]] == "a (×2)"
    i, j = figure.names.index("a"), figure.names.index("x")
    assert figure.values[i, j] == pytest.approx(ws.ari_score(truth, other))


def test_the_runs_of_a_judgement_are_drawn_from_what_it_keeps(tmp_path):
    judgement = small_judgement()
    again = Judgement.load(judgement.save(tmp_path / "record"))
    drawn = [plot.RunAgreementDisplay.from_result(one).figure for one in (judgement, again)]
    assert drawn[0].names == drawn[1].names
    np.testing.assert_array_equal(drawn[0].values, drawn[1].values)
    with pytest.raises(TypeError, match="result must be a Consensus or a Judgement, got dict"):
        plot.RunAgreementDisplay.from_result({})


@pytest.mark.parametrize("name", ["agreement", "runs"])
def test_a_heat_map_takes_its_letters_from_rc_params(name, plane):
    sizes = []
    for size in (8, 16):
        with plt.rc_context({"font.size": size}):
            display = DISPLAYS[name](plane, None)
            sizes.append(display.ax_.get_yticklabels()[0].get_fontsize())
    assert sizes[1] == pytest.approx(2 * sizes[0])


def test_without_matplotlib_a_sentence_says_how_to_get_it(plane, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        DISPLAYS["silhouette"](plane, None)


def small_picture(display) -> np.ndarray:
    """The figure without words, 80 × 60: what is left is the same with any fonts."""
    figure = display.figure_
    figure.set_layout_engine("none")
    for ax in figure.axes:
        ax.set_title("")
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
        for words in list(ax.texts):
            words.set_alpha(0)
    figure.set_size_inches(4, 3)
    figure.set_dpi(80)
    figure.canvas.draw()
    fine = np.asarray(figure.canvas.buffer_rgba(), dtype=float)[..., :3]
    return fine.reshape(60, 4, 80, 4, 3).mean(axis=(1, 3))


def baseline(name: str, picture: np.ndarray | None = None) -> np.ndarray:
    path = BASELINES / f"{name}.png"
    if picture is not None and os.environ.get(RENEW):
        path.parent.mkdir(exist_ok=True)
        plt.imsave(path, picture.astype(np.uint8))
    return plt.imread(path)[..., :3] * 255.0


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(((a - b) ** 2).mean()))


PICTURED = ["silhouette", "agreement"]


@pytest.mark.parametrize("name", PICTURED)
def test_a_display_looks_as_it_did(name, plane):
    _, ax = plt.subplots(figsize=(4, 3), dpi=80)
    picture = small_picture(DISPLAYS[name](plane, ax))
    assert distance(picture, baseline(name, picture)) < 6


@pytest.mark.parametrize("name", PICTURED)
def test_another_picture_would_be_noticed(name, plane):
    _, ax = plt.subplots(figsize=(4, 3), dpi=80)
    picture = small_picture(DISPLAYS[name](plane, ax))
    others = [other for other in PICTURED if other != name]
    assert min(distance(picture, baseline(other)) for other in others) > 18


@pytest.mark.parametrize("look", ["default", "dark_background"])
def test_lines_and_clusters_stand_out_from_the_background_of_any_style(look, plane):
    from matplotlib.colors import to_rgb

    def light(colour):
        return float(np.dot(to_rgb(colour), [0.299, 0.587, 0.114]))

    with plt.style.context(look):
        ground = light(plt.rcParams["axes.facecolor"])
        display = DISPLAYS["silhouette"](plane, None)
        assert abs(light(display.mean_line_.get_color()) - ground) > 0.5
        for name in DISPLAYS:
            drawn = DISPLAYS[name](plane, None)
            assert drawn.ax_.get_title("left"), name
            for line in drawn.ax_.get_lines():
                assert abs(light(line.get_color()) - ground) > 0.12, name


def test_silhouettes_tell_the_size_and_the_mean_of_each_cluster(plane):
    said = [text.get_text() for text in DISPLAYS["silhouette"](plane, None).ax_.texts]
    assert len(said) == 3
    assert all(text.startswith("30, 0.") for text in said)


def test_ranks_are_drawn_for_each_distinct_run_with_its_interval():
    judgement = small_judgement()
    display = plot.RankingDisplay.from_result(judgement, n_runs=3)
    best = judgement.ranking.first_of_each[:3]
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [judgement.ranking.names[at] for at in best]
    drawn = display.ax_.collections[0].get_segments()
    ends = [segment[:, 0].tolist() for segment in drawn]
    assert ends == judgement.confidence.interval[best].tolist()
    assert "the best 3 of" in display.ax_.get_title("left")
    assert "half-samples" in display.ax_.get_legend().get_texts()[0].get_text()


def test_without_half_samples_there_are_no_intervals_to_draw():
    with pytest.raises(ValueError, match="result must hold rank intervals, got none"):
        plot.RankingDisplay.from_result(rank(ws.ace(grouped_scores())))
    with pytest.raises(TypeError, match="must be a Judgement or a Ranking, got int"):
        plot.RankingDisplay.from_result(3)


def test_dips_of_kept_spaces_lie_left_of_the_line():
    display = plot.DipDisplay.from_result(ws.ace(grouped_scores()))
    kept, left_out = (line.get_xdata() for line in display.ax_.get_lines()[:2])
    assert max(kept) < display.figure.alpha < min(left_out)
    many = ws.Scores.from_matrix(
        np.random.default_rng(0).random((60, 5)), dip_pvalues=np.linspace(0, 1, 60), paired=False
    )
    drawn = plot.DipDisplay.from_result(ws.ace(many))
    assert drawn.ax_.get_ylabel() == "spaces"
    with pytest.raises(ValueError, match="result must hold dip tests, got none"):
        plot.DipDisplay.from_result(ws.ace(grouped_scores(), dip=False))


def test_stability_is_drawn_from_the_least_stable_cluster_on():
    found = small_stability()
    display = plot.StabilityDisplay.from_result(found)
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    order = np.argsort(found.jaccard, kind="stable")
    assert names == [f"{found.clusters[c]} ({found.sizes[c]})" for c in order]
    with pytest.raises(TypeError, match="result must be a Stability, got dict"):
        plot.StabilityDisplay.from_result({})


def test_curves_are_those_of_a_choice_of_k():
    with pytest.raises(TypeError, match="result must be a ChosenK, got Scores; make one with cho"):
        plot.CurvesDisplay.from_result(grouped_scores())


def test_labels_of_another_length_are_refused_by_a_scatter(plane):
    with pytest.raises(ValueError, match=r"one entry per object \(90\), got 2"):
        plot.ScatterDisplay.from_predictions(plane[0], [0, 1])


def test_a_dollar_sign_in_a_name_is_no_formula(plane):
    X, labels = plane[0], np.array(["$\\frac", "a$_{$", "c"])[plane[1].labels_]
    plot.ScatterDisplay.from_predictions(X, labels).figure_.canvas.draw()
    runs = ws.Runs.from_parts({"s$_{$": X}, {"$\\a": labels, "b": X[:, 0] > 3, "c": X[:, 1] > 2})
    judgement = ws.judge(runs, n_draws=4)
    for display in (plot.RankingDisplay, plot.DipDisplay, plot.RunAgreementDisplay):
        drawn = display.from_result(judgement)
        drawn.figure_.canvas.draw()
        assert any("$" in text.get_text() for text in drawn.ax_.get_yticklabels())
    plot.SpacesDisplay.from_result(judgement, runs).figure_.canvas.draw()
    both = ws.Scores.from_matrix([[0.1, 0.2, 0.4, 0.7]] * 2, spaces=["s$_{$", "t"])
    plot.GraphDisplay.from_result(ws.ace(both, dip=False)).figure_.canvas.draw()
    named = ["f$_{$", "g"]
    plot.ClusterProfileDisplay.from_predictions(
        X, labels, feature_names=named
    ).figure_.canvas.draw()
    plot.ResolutionTreeDisplay.from_result(ws.resolution_tree(runs)).figure_.canvas.draw()
    found = ws.stability(None, X, labels, n_draws=4, random_state=0)
    plot.StabilityDisplay.from_result(found).figure_.canvas.draw()


def test_scatters_name_their_clusters(plane):
    assert DISPLAYS["scatter"](plane, None).ax_.get_legend() is not None
    assert DISPLAYS["spaces"](plane, None).axes_[-1].get_legend() is not None
