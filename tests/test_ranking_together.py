"""Several indices may rank together: no single one decides."""

from __future__ import annotations

import numpy as np
import pytest

import wellsep as ws

NAMES = ["a", "b", "c", "d"]


def result(row, index):
    matrix = np.array([row, row])
    scores = ws.Scores.from_matrix(matrix, index=index, partitions=NAMES, paired=False)
    return ws.ace(scores, dip=False)


def test_the_score_is_the_mean_share_of_partitions_left_behind():
    first = result([0.4, 0.3, 0.2, 0.1], "silhouette")  # shares 1, 2/3, 1/3, 0
    second = result([5.0, 9.0, 9.0, 1.0], "calinski_harabasz")  # shares 1/3, 5/6, 5/6, 0
    ranking = ws.rank(first, beside=[second], together=True)
    np.testing.assert_allclose(ranking.score, [4 / 6, 9 / 12, 7 / 12, 0])
    assert ranking.rank.tolist() == [2, 1, 3, 4]
    assert ranking.best == "b"


def test_the_first_index_alone_decides_unless_asked():
    first = result([0.4, 0.3, 0.2, 0.1], "silhouette")
    second = result([5.0, 9.0, 8.0, 1.0], "calinski_harabasz")
    assert ws.rank(first, beside=[second]).best == "a"
    assert ws.rank(first, beside=[second]).index == "silhouette"


def test_the_order_of_the_indices_and_their_scale_do_not_matter():
    rng = np.random.default_rng(0)
    rows = {name: rng.normal(size=4) for name in ("x", "y", "z")}
    one = [result(row, name) for name, row in rows.items()]
    other = [result(np.exp(3 * row), name) for name, row in reversed(rows.items())]
    first = ws.rank(one[0], beside=one[1:], together=True)
    second = ws.rank(other[0], beside=other[1:], together=True)
    np.testing.assert_allclose(first.score, second.score, atol=1e-12)


def test_all_indices_stand_beside_and_the_explanation_names_them():
    first = result([0.4, 0.3, 0.2, 0.1], "silhouette")
    second = result([5.0, 9.0, 8.0, 1.0], "calinski_harabasz")
    ranking = ws.rank(first, beside=[second], together=True)
    assert list(ranking.beside) == ["silhouette", "calinski_harabasz"]
    assert ranking.index == "silhouette and calinski_harabasz together"
    assert "silhouette and calinski_harabasz together" in ranking.explain()


def test_one_index_together_keeps_its_own_order():
    first = result([0.4, 0.1, 0.2, 0.2], "silhouette")
    together = ws.rank(first, together=True)
    assert together.rank.tolist() == ws.rank(first).rank.tolist() == [1, 4, 2, 2]
    assert together.score.tolist() == pytest.approx([1, 0, 0.5, 0.5])


def test_sureness_is_refused_with_several_indices():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + 6 * truth[:, None]
    labels = {"good": truth, "bad": rng.integers(0, 2, 60)}
    runs = ws.Runs.from_parts({"s": X, "t": 2 * X}, labels)
    scores = ws.score_runs(runs)
    answer = ws.ace(scores, dip=False)
    sure = ws.sureness(runs, scores, answer, n_draws=4)
    with pytest.raises(ValueError, match="sureness must be None with together=True"):
        ws.rank(answer, together=True, sureness=sure)
    assert ws.rank(answer, sureness=sure).best == "good"


def test_a_joint_ranking_is_saved_and_read_again(tmp_path):
    first = result([0.4, 0.3, 0.2, 0.1], "silhouette")
    second = result([5.0, 9.0, 8.0, 1.0], "calinski_harabasz")
    ranking = ws.rank(first, beside=[second], together=True)
    again = ws.Ranking.load(ranking.save(tmp_path))
    assert again.rank.tolist() == ranking.rank.tolist() and again.index == ranking.index


def test_the_page_shows_a_joint_ranking(tmp_path):
    first = result([0.4, 0.3, 0.2, 0.1], "silhouette")
    second = result([5.0, 9.0, 8.0, 1.0], "calinski_harabasz")
    ranking = ws.rank(first, beside=[second], together=True)
    page = ws.render_report(ranking, tmp_path / "r.html")
    assert "silhouette and calinski_harabasz together" in page.read_text(encoding="utf-8")
