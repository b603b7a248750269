"""The page is one whole file: safe names, no address of anything else, small, and honest."""

from __future__ import annotations

import html
import json
import re
import sys

import numpy as np
import pytest
from pages import (
    CLOSING,
    INJECTION,
    grouped_scores,
    judged_by_ace,
    small_choice,
    small_judgement,
    small_runs,
    unpack_plane,
)

import wellsep as ws
from wellsep.report.pack import pack, pack_plane, safe_json

LARGEST = 1_500_000


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    runs, truth = small_runs()
    path = tmp_path_factory.mktemp("page") / "report.html"
    return ws.render_report(small_judgement(), path, runs=runs, truth=truth).read_text("utf-8")


def data_of(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found.group(1))


def body_of(text: str) -> str:
    """What a reader sees without the script: the text between tags, unescaped."""
    cut = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", cut)).split())


def test_the_answer_comes_first_in_a_sentence(page):
    text = body_of(page)
    assert small_judgement().verdict.headline in text
    assert text.index("is ranked first of") < text.index("The ranking") < text.index("In words")


def test_how_sure_it_is_stands_beside_the_answer(page):
    assert re.search(r"comes first in \d+ of 6 half-samples", body_of(page))


def test_the_page_refers_to_nothing_outside_itself(page):
    markup = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
    addresses = re.findall(r"""(?:src|href|action|xlink:href)\s*=\s*["']([^"']*)""", markup)
    assert [a for a in addresses if not a.startswith("#")] == []
    outside = [a for a in re.findall(r"https?://[^\s\"'<>)]+", markup) if "www.w3.org" not in a]
    assert [a for a in outside if "example.invalid" not in a] == []
    assert "@import" not in markup
    assert "url(" not in markup.replace("url(#shade)", "")


def test_only_the_page_s_own_script_may_run(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert "default-src &#39;none&#39;" in policy
    assert re.search(r"script-src &#39;sha256-[A-Za-z0-9+/=]{44}&#39;;", policy)


@pytest.mark.parametrize("name", [INJECTION, CLOSING])
def test_a_name_that_is_markup_is_text(page, name):
    assert name not in page
    assert html.escape(name) in page
    assert name in data_of(page)["partitions"]


def test_there_are_exactly_two_scripts(page):
    assert page.count("<script") == 2
    assert page.count("</script>") == 2


def test_a_template_expression_in_a_name_is_not_evaluated(page):
    assert "{{ 7 * 7 }}" in html.unescape(page)


def test_the_same_result_gives_the_same_page(tmp_path):
    runs, _ = small_runs()
    one, two = (
        ws.render_report(small_judgement(), tmp_path / name, runs=runs).read_bytes()
        for name in ("one.html", "two.html")
    )
    assert one == two


def test_truth_changes_colours_and_checks_but_no_rank(page, tmp_path):
    runs, _ = small_runs()
    without = ws.render_report(small_judgement(), tmp_path / "r.html", runs=runs).read_text("utf-8")
    with_truth, plain_page = data_of(page), data_of(without)
    assert with_truth["table"] == plain_page["table"]
    assert with_truth["steps"] == plain_page["steps"]
    assert "truth" not in plain_page
    assert plain_page["scatters"]["truth"] is None
    assert "Agreement with the true labels" in page
    assert "Agreement with the true labels" not in without


def test_the_truth_table_is_that_of_agreement(page):
    runs, truth = small_runs()
    expected = ws.agreement(small_judgement().ranking, runs, truth)
    shown = data_of(page)["truth"]["table"]
    assert shown["pick"] == expected.columns()["pick"]
    for key in ("spearman_ari", "spearman_nmi", "spearman_acc"):
        np.testing.assert_allclose(shown[key], expected.columns()[key], rtol=1e-6)


def test_without_runs_the_page_says_what_it_leaves_out(tmp_path):
    page = ws.render_report(judged_by_ace(grouped_scores()), tmp_path / "r.html")
    text = body_of(page.read_text("utf-8"))
    assert "The embeddings are not drawn: the page was made without the runs" in text
    assert "The objects of the chosen clustering are not shown" in text
    assert "How stable this is was not computed." in text


def test_a_judgement_without_runs_still_shows_its_planes_and_its_objects(tmp_path):
    text = ws.render_report(small_judgement(), tmp_path / "r.html").read_text("utf-8")
    data = data_of(text)
    assert len(data["scatters"]["spaces"]) == 8
    runs, _ = small_runs()
    assert set(data["scatters"]["labels"]) == set(runs.partitions)
    with_runs = ws.render_report(small_judgement(), tmp_path / "r.html", runs=runs)
    assert data_of(with_runs.read_text("utf-8"))["scatters"] == data["scatters"]
    assert "silhouettes" in data["objects"]
    assert "lcd" in data["objects"]


def test_a_chosen_k_has_its_own_sections(tmp_path):
    chosen, X, truth = small_choice()
    text = ws.render_report(chosen, tmp_path / "k.html", runs=X, truth=truth).read_text("utf-8")
    data, words = data_of(text), body_of(text)
    assert "K = 3 is the median of 2 votes (2 to 5 tried, 2 repeats)." in words
    assert data["curves"]["best"] == 3
    assert data["truth"]["names"] == ["silhouette", "davies_bouldin"]
    assert data["objects"]["partition"] == "K = 3"
    assert "adjusted Rand index" in words


def test_a_chosen_k_without_data_leaves_the_objects_out(tmp_path):
    chosen, _, _ = small_choice()
    text = body_of(ws.render_report(chosen, tmp_path / "k.html").read_text("utf-8"))
    assert "The objects are not drawn: the page was made without the data" in text


def test_forty_two_runs_of_ten_thousand_objects_stay_under_the_limit(tmp_path):
    rng = np.random.default_rng(0)
    n, m = 10_000, 42
    names = [f"jule learning rate {10.0**-i:g} unfolding {i}" for i in range(m)]
    matrix = np.linspace(0, 1, m) + rng.normal(0, 0.05, (m, m))
    scores = ws.Scores.from_matrix(
        matrix, index="silhouette", spaces=names, partitions=names, dip_pvalues=np.full(m, 1e-4)
    )
    ids = [f"images/train/class/{i:08d}.jpeg" for i in range(n)]
    runs = ws.Runs(
        ws.Run(
            name,
            labels=rng.integers(0, 10, n),
            embedding=rng.normal(size=(n, 2)).astype("float32"),
            params={"lr": float(i), "unfolding": i},
            ids=ids,
        )
        for i, name in enumerate(names)
    )
    path = ws.render_report(judged_by_ace(scores), tmp_path / "r.html", runs=runs)
    assert path.stat().st_size < LARGEST
    assert len(data_of(path.read_text("utf-8"))["scatters"]["names"]) == 2000


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"runs": 3}, TypeError, "runs must be Runs"),
        ({"truth": [0, 1]}, ValueError, "truth must come with runs"),
        ({"layout": "mds"}, ValueError, "layout must be one of"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(given, error, words, tmp_path):
    path = tmp_path / "r.html"
    with pytest.raises(error, match=words):
        ws.render_report(small_judgement(), path, **given)
    assert list(tmp_path.iterdir()) == []


def test_other_runs_than_those_ranked_are_refused(tmp_path):
    runs, truth = small_runs()
    with pytest.raises(ValueError, match="runs must hold every partition that was ranked"):
        ws.render_report(judged_by_ace(grouped_scores()), tmp_path / "r.html", runs=runs)
    with pytest.raises(ValueError, match="truth must have one class per object"):
        ws.render_report(small_judgement(), tmp_path / "r.html", runs=runs, truth=truth[:-1])


@pytest.mark.parametrize("kind", ["ranking", "ace", "vote", "scores", "dict"])
def test_anything_else_than_a_result_with_a_page_is_refused(kind, tmp_path):
    judged = small_judgement()
    given = {
        "ranking": judged.ranking,
        "ace": judged.by_ace,
        "vote": judged.vote,
        "scores": judged.scores,
        "dict": {"best": 1},
    }[kind]
    kinds = (
        "must be a Judgement, an Exploration, a ChosenK, a Stability, a ClusterDescription or a "
    )
    with pytest.raises(TypeError, match=kinds):
        ws.render_report(given, tmp_path / "r.html")


def test_points_come_back_from_the_page_to_a_thousandth_of_the_picture():
    xy = np.random.default_rng(0).normal(size=(500, 2)) * [3, 40]
    np.testing.assert_allclose(unpack_plane(pack_plane(xy)), xy, atol=np.ptp(xy[:, 1]) / 4095)


def test_a_plane_of_equal_points_is_packed():
    assert unpack_plane(pack_plane(np.ones((3, 2)))).tolist() == [[1, 1]] * 3


def test_arrays_are_packed_little_endian():
    assert pack(np.array([1], ">i4"), "i4")["b"] == "AQAAAA=="


def test_json_inside_a_script_cannot_end_it_and_is_strict():
    text = safe_json({"a": "</script>\u2028", "b": [np.nan, np.inf, np.int64(3)], "c": "\ud800"})
    assert "<" not in text
    assert json.loads(text) == {"a": "</script>\u2028", "b": [None, None, 3], "c": "?"}


def test_plain_keeps_seven_digits():
    assert safe_json(np.float64(1 / 3)) == "0.3333333"


def test_wide_spaces_can_be_embedded_for_the_page_if_asked(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5)) + 6 * (np.arange(30) % 2)[:, None]
    runs = ws.Runs.from_parts({"wide": X}, {"two": np.arange(30) % 2, "three": np.arange(30) % 3})
    result = judged_by_ace(ws.score_runs(runs), dip=False)
    path = ws.render_report(result, tmp_path / "r.html", runs=runs, layout="tsne")
    assert data_of(path.read_text("utf-8"))["scatters"]["spaces"][0]["axes"] == "t-SNE"


def test_umap_that_is_not_installed_is_asked_for_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    runs, _ = small_runs()
    with pytest.raises(ImportError, match="'umap' needs the package umap-learn"):
        ws.render_report(small_judgement(), tmp_path / "r.html", runs=runs, layout="umap")


def test_noise_is_shown_as_noise_and_its_share_is_said(tmp_path):
    X = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 9.0)])
    X += np.random.default_rng(0).normal(size=X.shape)
    some = np.repeat([0, 1], 20)
    some[:4] = -1
    runs = ws.Runs.from_parts({"flat": X}, {"some": some, "mixed": np.arange(40) % 2})
    judgement = ws.judge(runs, noise="exclude", n_draws=0, dip=False)
    for given in (runs, None):
        text = ws.render_report(judgement, tmp_path / "r.html", runs=given).read_text("utf-8")
        assert "It puts 90% of the objects into clusters" in body_of(text)
        assert sum(data_of(text)["objects"]["sizes"]) == 36


def test_details_that_the_judgement_lacks_follow_its_policy_for_noise(tmp_path):
    from wellsep.report.pages.ranking import collect_evidence

    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 20, axis=0) + rng.normal(size=(60, 2))
    labels = np.repeat([0, 1, -1], 20)
    runs = ws.Runs.from_parts({"s": X}, {"noisy": labels, "two": np.arange(60) % 2})
    judgement = ws.judge(runs, noise="cluster", n_draws=0, dip=False, details=False)
    evidence = collect_evidence(judgement, runs=runs, truth=None)
    assert evidence.details.partition == "noisy"
    assert evidence.details.clusters == ("-1", "0", "1")
