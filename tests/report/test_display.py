"""The palette holds for every common colour vision; notebook tables are safe and compact."""

from __future__ import annotations

from html import unescape
from itertools import combinations

import numpy as np
import pytest
from contested import contested_judgement
from pages import INJECTION, small_choice, small_judgement, small_runs

import wellsep as ws
from wellsep import Run, Runs
from wellsep._text.sentences import (
    CLUSTERS,
    SURFACES,
    cell,
    colour_of,
    count,
    html_box,
    html_table,
    in_short,
    listing,
    mark_of,
    meant,
    printable,
    quoted,
    shortened,
)
from wellsep._text.sentences import shown as shown_in_errors

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
THEMES = ("light", "dark")


def linear(colour: str) -> np.ndarray:
    v = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    to_lms = np.array([[0.4122214708, 0.5363325363, 0.0514459929],
                       [0.2119034982, 0.6806995451, 0.1073969566],
                       [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
    to_lab = np.array([[0.2104542553, 0.7936177850, -0.0040720468],
                       [1.9779984951, -2.4285922050, 0.4505937099],
                       [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip
    return to_lab @ np.cbrt(np.clip(to_lms @ rgb, 0, None))


def contrast(a: str, b: str) -> float:
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("theme", THEMES)
def test_any_two_cluster_colours_can_be_told_apart(theme, vision):
    # Eight for every eye; twenty for most, and every eight clusters have another mark.
    colours = CLUSTERS[theme] if vision == "normal" else CLUSTERS[theme][:8]
    seen = [oklab(np.clip(np.asarray(VISION[vision]) @ linear(c), 0, 1)) for c in colours]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 0.07


@pytest.mark.parametrize("surface", ["page", "panel"])
@pytest.mark.parametrize("theme", THEMES)
def test_marks_and_words_stand_out_from_what_they_are_on(theme, surface):
    ground = SURFACES[theme][surface]
    assert min(contrast(colour, ground) for colour in CLUSTERS[theme]) >= 3
    assert contrast(SURFACES[theme]["noise"], ground) >= 3
    assert min(contrast(SURFACES[theme][ink], ground) for ink in ("ink", "quiet", "accent")) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_words_on_a_chosen_row_can_be_read(theme):
    wash = SURFACES[theme]["wash"]
    assert min(contrast(SURFACES[theme][ink], wash) for ink in ("ink", "quiet", "accent")) >= 4.5


def test_colours_come_again_with_another_mark():
    assert colour_of(20) == colour_of(0)
    assert mark_of(20) != mark_of(0)
    assert mark_of(8) != mark_of(0)


def shown(value) -> str:
    return value._repr_html_()


@pytest.mark.parametrize(
    "make",
    [
        lambda: small_judgement(),
        lambda: small_judgement().ranking,
        lambda: small_judgement().answer,
        lambda: small_choice()[0],
        lambda: small_runs()[0],
        lambda: ws.membership_report(small_choice()[1], small_choice()[2], ids=[INJECTION] * 240),
    ],
    ids=["judgement", "ranking", "answer", "chosen k", "runs", "membership"],
)
def test_a_result_shows_itself_in_a_notebook_without_script_and_safely(make):
    text = shown(make())
    assert "<script" not in text
    assert INJECTION not in text
    assert "<table" in text or "<p" in text
    assert len(text) < 30_000


def test_a_judgement_shows_the_first_screen_of_its_page_in_a_notebook():
    judgement = contested_judgement()
    text, agreed = shown(judgement), judgement.agreed
    assert agreed.questions and len(agreed.rows)
    assert all(question.text in text for question in agreed.questions)
    assert all(side.words in text for question in agreed.questions for side in question.sides)
    assert "First place in the half-samples" in text
    svg = text[text.index("<svg") : text.index("</svg>")]
    assert svg.count("<text") == len(agreed.clusters)
    # A path for noise and for each cluster, and one more that makes rings of those in question.
    assert svg.count("<path") == 1 + len(agreed.clusters) + int((~agreed.is_agreed).sum())
    assert svg.count("h0") == np.where(agreed.is_agreed[agreed.codes], 1, 2).sum()


def test_a_judgement_without_agreed_groups_shows_the_ranking_alone():
    judgement = ws.judge(small_runs()[0], n_draws=0)
    assert "<svg" not in shown(judgement)
    assert judgement.ranking.best in shown(judgement)


def test_names_in_a_notebook_are_not_broken_into_lines():
    assert "white-space:nowrap" in html_table({"name": ["spectral 8, K=10"]})
    assert "white-space:nowrap" not in html_table({"why": ["a sentence of many words " * 4]})


def test_scores_and_verdict_are_readable_in_a_notebook():
    judgement = small_judgement()
    text = unescape(shown(judgement.scores))
    assert all(f">{space}</th>" in text for space in judgement.scores.spaces)
    said = unescape(shown(judgement.verdict))
    assert "<table" not in said
    assert all(sentence in said for sentence in judgement.verdict.sentences())


def test_a_notebook_table_is_cut_and_says_so():
    text = html_table({"name": [f"run {i}" for i in range(30)], "score": [0.5] * 30}, most=5)
    assert "and 25 more" in text
    assert "run 5" not in text


def test_a_name_cannot_steer_the_terminal():
    shown = printable("a\x1b[31m\r\n\u202eb")
    assert shown.isprintable()
    assert shown.startswith("a\\x1b[31m") and shown.endswith("b")
    run = Run("a\u202eb", labels=[0, 1])
    assert repr(Runs([run])).replace("\n", "").isprintable()


def test_numbers_and_lists_read_like_sentences():
    assert (count(1, "run"), count(1234, "run")) == ("1 run", "1,234 runs")
    assert listing([]) == ""
    assert listing(["a"]) == "a"
    assert listing("abcd", most=3) == "a, b, c and 1 more"
    assert quoted(["a\n"]) == repr("a\n")
    assert count(2, "index", "indices") == "2 indices"
    assert quoted(["a", "b", "c"], most=2) == "'a', 'b' and 1 more"
    assert quoted([]) == "none"


def test_cells_have_four_digits_and_a_dash_for_what_is_undefined():
    values = [0.123456, 43210.6, float("nan"), None, True, 7, {"k": 3}]
    assert [cell(v) for v in values] == ["0.1235", "43,211", "–", "–", "yes", "7", "k=3"]


def test_values_are_short_where_there_is_little_room():
    assert in_short(0.123456) == "0.1235"
    assert in_short(np.zeros((3, 2))) == "array (3, 2) of float64"
    assert in_short(("a", "b", "c", "d", "e")) == "5 items ('a', 'b', 'c', …)"
    assert shortened("dec lr=0.001 seed=17", 13) == "dec lr…eed=17"
    assert shortened("dec", 13) == "dec"
    assert printable("naïve 鳥") == "naïve 鳥"
    assert printable("a long name", longest=6) == "a lon…"
    assert shown_in_errors([1, 2]) == "[1, 2]"
    assert shown_in_errors("a" * 300, longest=8) == "'aaaaaa…"


def test_a_name_is_recognised_by_its_spelling_or_the_first_letters_of_its_words():
    assert meant("silhouete", ["silhouette", "cfq"]) == "; did you mean 'silhouette'?"
    assert meant("CH", ["cfq", "calinski_harabasz"]) == "; did you mean 'calinski_harabasz'?"
    assert meant("beauty", ["silhouette", "cfq"]) == "."


def test_titles_and_names_of_a_notebook_table_are_escaped():
    assert "&lt;b&gt;" in html_box("<b>")
    assert "&lt;i&gt;" in html_table({"name": ["<i>"], "score": [0.5]})
