"""The first screen: agreed groups, members of them, questions that a click answers, the export."""

from __future__ import annotations

import csv
import functools
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from browsing import CHROMIUM, NEEDS_CHROMIUM, Visit

import wellsep as ws
from wellsep.evaluate.clusters.judged import KeptCodes
from wellsep.evaluate.words.first_screen import bar_html
from wellsep.partitions import Partitions
from wellsep.records import Judgement

N = 240
IMAGES = np.zeros((N, 6, 6))
IMAGES[np.arange(N), np.arange(N) % 6] = 1.0
TEXTS = np.array([f"a sentence on object number {i}" for i in range(N)])


@functools.cache
def judged():
    """Six blobs; some runs join two of them, others two more, so that draws disagree."""
    rng = np.random.default_rng(3)
    truth = np.arange(N) % 6
    centres = 14.0 * np.eye(6)[[0, 1, 2, 2, 4, 4]] + 1.6 * np.eye(6)[[0, 1, 2, 3, 4, 5]]
    ways = {
        "six": truth,
        "three and two": np.array([0, 1, 2, 2, 4, 5])[truth],
        "four and five": np.array([0, 1, 2, 3, 4, 4])[truth],
        "four": np.array([0, 1, 2, 2, 4, 4])[truth],
        "mixed": np.where(rng.random(N) < 0.3, rng.integers(0, 6, N), truth),
    }
    runs = ws.Runs(
        ws.Run(name, labels=labels, embedding=centres[truth] + rng.normal(0, 1, (N, 6)))
        for name, labels in ways.items()
    )
    judgement = ws.judge(runs, n_draws=40, layout="pca", random_state=0)
    # As if four of the runs came first in turn.
    first = np.arange(40) % 4
    distinct = Partitions.from_labels(ways)
    return replace(
        judgement,
        confidence=replace(judgement.confidence, first_in_draw=first),
        codes=KeptCodes.keep(distinct, judgement.codes.objects, range(4)),
    ), runs


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    judgement, runs = judged()
    path = tmp_path_factory.mktemp("page") / "page.html"
    objects = {"image": IMAGES, "batch": np.arange(N) % 2}
    return ws.render_report(judgement, path, runs=runs, objects=objects)


def test_there_are_questions_to_answer():
    judgement, _ = judged()
    assert len(judgement.questions) >= 2
    assert judgement.agreed.is_agreed.any()


def test_the_chip_does_not_say_clear_over_open_questions(page):
    judgement, _ = judged()
    assert judgement.verdict.kind == "clear"
    assert 'class="chip questions-open">Questions open<' in page.read_text(encoding="utf-8")


def test_the_head_counts_groups_and_questions_and_every_group_is_a_row(page):
    judgement, _ = judged()
    text = page.read_text("utf-8")
    assert judgement.verdict.groups in text.partition('<h1 id="lead">')[2].partition("</h1>")[0]
    assert text.count('class="question"') == len(judgement.questions)


def test_runs_that_are_all_equal_have_a_map_and_their_clusters(tmp_path):
    _, runs = judged()
    twice = [ws.Run(name, labels=np.arange(N) % 6, embedding=runs.spaces["six"]) for name in "ab"]
    equal = ws.Runs(twice)
    text = ws.render_report(ws.judge(equal), tmp_path / "r.html", runs=equal).read_text("utf-8")
    assert 'id="answer-map"' in text
    assert 'id="clusters-section"' in text


def test_images_are_one_sheet_and_texts_stand_in_rows(page, tmp_path):
    assert page.read_text("utf-8").count("data:image/png;base64,") == 1
    judgement, _ = judged()
    path = ws.render_report(judgement, tmp_path / "r.html", objects={"title": TEXTS})
    text = path.read_text("utf-8")
    assert "data:image/png" not in text
    assert "<q data-object=" in text
    assert "a sentence on object number" in text.partition('id="agreed"')[2][:3000]


def test_a_page_of_a_saved_judgement_needs_no_runs(page, tmp_path):
    judgement, _ = judged()
    again = Judgement.load(judgement.save(tmp_path / "kept") or tmp_path / "kept")
    text = ws.render_report(again, tmp_path / "r.html").read_text("utf-8")
    assert text.count('class="question"') == len(judgement.questions)


# Pixels of each hue in both scatter plots.
COUNT_DOTS = """(hues) => ['#scatter-one', '#scatter-two'].map((id) => {
  const canvas = document.querySelector(id + ' canvas');
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return hues.map((hue) => {
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] > 150 && hue.every((v, c) => Math.abs(v - data[i + c]) < 4)) count++;
    }
    return count;
  });
})"""


class TestInBrowser:
    pytestmark = NEEDS_CHROMIUM

    def test_all_questions_are_answered_by_clicking_and_the_labels_are_those_of_settle(
        self, browser, page, tmp_path
    ):
        judgement, _ = judged()
        seen = Visit(browser, page, unfolded=False)
        answers = {}
        picture = "document.querySelector('#answer-map canvas').toDataURL()"
        before = seen.page.evaluate(picture)
        for question in judgement.questions:
            side = len(question.sides) - 1  # not the one that holds without an answer
            box = seen.page.locator(f"[data-question='{question.id}']")
            box.locator(f"[data-side='{side}']").click()
            answers[question.id] = question.sides[side].words
        count = len(judgement.questions)
        assert seen.page.inner_text("#answered") == f"{count} of {count} answered"
        assert seen.page.evaluate(picture) != before
        rows = list(csv.DictReader(io.StringIO(seen.download("#export-labels"))))
        assert [row["group"] for row in rows] == judgement.settle(answers).tolist()
        support = judgement.clusters.object_support
        assert [float(row["support"]) for row in rows] == pytest.approx(support, abs=1e-3)
        exported = tmp_path / "answers.json"
        exported.write_text(seen.download("#export-answers"), "utf-8")
        assert json.loads(exported.read_text("utf-8"))["answers"] == answers
        assert judgement.settle(exported).tolist() == [row["group"] for row in rows]
        link = seen.page.url
        seen.page.goto("about:blank")
        seen.page.goto(link)
        seen.page.wait_for_selector("html[data-ready=true]")
        assert seen.page.inner_text("#answered") == f"{count} of {count} answered"
        seen.close()
        assert seen.problems == []

    def test_an_answer_is_given_and_taken_back_by_the_keyboard(self, browser, page):
        seen = Visit(browser, page, unfolded=False)
        button = seen.page.locator(".question [data-side]").first
        button.focus()
        for pressed, key in (("true", "Enter"), ("false", "Space")):
            seen.page.keyboard.press(key)
            assert button.get_attribute("aria-pressed") == pressed
        seen.close()

    def test_a_folded_page_has_fewer_than_sixty_stops_for_the_tab_key(self, browser, page):
        seen = Visit(browser, page, unfolded=False)
        stops = seen.page.evaluate(
            "[...document.querySelectorAll('a, button, input, select, summary, [tabindex]')]"
            ".filter((e) => e.checkVisibility() && e.tabIndex >= 0 && !e.disabled).length"
        )
        seen.close()
        assert stops < 60

    def test_isolating_a_cluster_shows_its_match_on_the_right(self, browser, page):
        seen = Visit(browser, page)
        seen.page.select_option("#compare-with", label="four")
        hues = seen.page.locator("#legend button svg > *").evaluate_all(
            "all => all.map((e) => getComputedStyle(e).fill.match(/\\d+/g).map(Number))"
        )
        seen.page.locator("#legend button").first.click()
        counts = seen.page.evaluate(COUNT_DOTS, hues)
        seen.close()
        for panel in counts:
            assert panel[0] > 100
            assert max(panel[1:]) < 20


def test_a_table_of_objects_loses_no_column_and_texts_are_texts(tmp_path):
    from wellsep.cli.reading import TableReader, read_objects

    _, runs = judged()
    rows = [f"{i % 3},{text}" for i, text in enumerate(TEXTS)]
    (tmp_path / "about.csv").write_text("\n".join(["batch,said", *rows]), "utf-8")
    reader = TableReader([], ids=None, no_header=False, columns=None)
    columns = read_objects(reader, tmp_path / "about.csv", runs)
    assert list(columns) == ["batch", "said"]
    assert columns["said"].tolist() == TEXTS.tolist()


def test_images_of_a_folder_are_found_by_the_names_of_the_objects(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="needs pillow")
    judgement, _ = judged()
    for i in range(N):
        image.fromarray((255 * IMAGES[i]).astype(np.uint8)).save(tmp_path / f"{i:04d}.png")
    path = ws.render_report(judgement, tmp_path / "r.html", objects=tmp_path)
    assert path.read_text("utf-8").count("data:image/png;base64,") == 1
    (tmp_path / "0000.png").unlink()
    with pytest.raises(ValueError, match=r"one image per object \(240\), got 239"):
        ws.render_report(judgement, tmp_path / "r.html", objects=tmp_path)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_all_objects_are_drawn_in_the_layout_where_more_than_the_sample_exist(browser, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(2600) % 3
    runs = ws.Runs(
        ws.Run(name, labels=labels, embedding=9 * np.eye(3)[truth] + rng.normal(size=(2600, 3)))
        for name, labels in (("three", truth), ("two", truth % 2))
    )
    judgement = ws.judge(runs, n_draws=4, layout="pca")
    seen = Visit(browser, ws.render_report(judgement, tmp_path / "r.html", runs=runs))
    drawn = seen.page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).scatters.whole.codes.b.length"
    )
    assert drawn >= 2600 * 4 / 3 - 4  # a byte each, in base64
    assert "put between their neighbours" in seen.page.inner_text("#answer-map-said")
    assert seen.page.get_attribute("#answer-map canvas", "aria-label").startswith("Map of 2600 ")
    seen.close()
    assert seen.problems == []


LEAST_SHARES = """() => [...document.querySelectorAll('.race li:not(.thin) b')].map((share) => {
  const [own, box] = [share.getBoundingClientRect(), share.parentElement.getBoundingClientRect()];
  return own.width > 0 && own.right <= box.right + 1;
})"""
WORDS_SEEN = r"""() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = new Range(), word = /[\p{L}\p{N}-]*\p{L}{2}[\p{L}\p{N}-]*/gu;
  let words = 0;
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const parent = text.parentElement;
    if (!parent.checkVisibility() || parent.closest('.unseen, .skip')) continue;
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    if (box.width && box.top < innerHeight) words += (text.data.match(word) || []).length;
  }
  return words;
}"""


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.browser
@pytest.mark.parametrize("width", [1440, 794, 390])
def test_every_share_of_the_bar_is_seen_whole_and_the_first_screen_has_few_words(
    browser, page, width
):
    seen = Visit(browser, page, viewport={"width": width, "height": 900}, unfolded=False)
    whole = seen.page.evaluate(LEAST_SHARES)
    words = seen.page.evaluate(WORDS_SEEN)
    seen.close()
    assert whole == [True] * len(whole)
    assert len(whole) > 1
    assert 40 < words <= 150


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.browser
@pytest.mark.parametrize("width", [1440, 794, 390])
def test_the_bar_in_a_notebook_shows_every_share_of_five_per_cent_whole(browser, width):
    shares = {"spectral 8, K=10": 0.43, "umap 5, spectral, K=12": 0.3, "spectral 8, K=12": 0.14,
              "kmeans, K=9": 0.08, "ward, K=9": 0.04, "others": 0.01}  # fmt: skip
    notebook = browser.new_page(viewport={"width": width, "height": 300})
    notebook.set_content(bar_html(list(shares.items())))
    inside = """[...document.querySelectorAll('b')].map(b => [b.textContent, 0 <= Math.min(
        b.parentElement.getBoundingClientRect().right - b.getBoundingClientRect().right,
        b.getBoundingClientRect().left - b.parentElement.getBoundingClientRect().left)])"""
    assert notebook.evaluate(inside) == [[n, True] for n in ("43%", "30%", "14%", "8%")]
    notebook.close()
