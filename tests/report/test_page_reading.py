"""What a reader does with the page: filter, compare, loop, zoom, link, copy, save pictures."""

from __future__ import annotations

import csv
import io
import re
import shlex
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from browsing import NEEDS_CHROMIUM, Visit
from pages import INJECTION, small_runs

import wellsep as ws
from wellsep.cli.main import main

pytestmark = NEEDS_CHROMIUM
TURNED = "abc\u202e turned round"


def many_runs() -> ws.Runs:
    """Ten runs of which four are the same clustering; one name tries to turn the text round."""
    rng = np.random.default_rng(5)
    truth = np.arange(120) % 3
    runs = []
    for i in range(10):
        labels = truth.copy() if i < 4 else truth.copy() % (2 + i % 2)
        if i >= 4:
            labels[rng.permutation(120)[: 6 * i]] = 0
        space = 12 * np.eye(3)[truth] + rng.normal(0, 1 + 0.1 * i, (120, 3))
        name = TURNED if i == 0 else f"run {i}"
        runs.append(ws.Run(name, labels=labels, embedding=space, params={"lr": 0.1 * (i + 1)}))
    return ws.Runs(runs)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    runs, truth = small_runs()
    known = {
        "batch": np.array(["one", "two"])[np.arange(240) % 2],
        "age": np.linspace(20, 60, 240),
        "note": np.array([f"note {i}" for i in range(240)]),
    }
    judgement = ws.judge(runs, ["silhouette", "davies_bouldin"], n_draws=6, layout="auto")
    equal = many_runs()
    return {
        "full": ws.render_report(
            judgement, folder / "full.html", runs=runs, truth=truth, objects=known
        ),
        "equal": ws.render_report(ws.judge(equal, n_draws=6), folder / "equal.html", runs=equal),
    }


def test_the_filter_understands_words_comparisons_and_quotes_and_names_what_it_does_not(visit):
    seen = visit()
    for words, count in {
        "K = 3": 4,
        "k>=4": 4,
        "clusters >= 4": 4,
        'space="first"': 1,
        "model=jule": 4,
        "-jule": 4,
        '"run 5" OR "run 6"': 2,
        "first in > 50%": 1,
        '"run 5"': 1,
        "run": 3,
        "rank<=2": 2,
        "model depict": 0,
        "depict": 4,
        "depict rank<=2": 1,
    }.items():
        seen.page.fill("#filter", words)
        assert (words, len(seen.rows())) == (words, count)
        assert seen.page.inner_text("#filter-count") == f"{count} of 8 shown"
        assert seen.page.inner_text("#filter-wrong") == ""
    seen.page.fill("#filter", "depict foo>3")
    assert len(seen.rows()) == 4
    assert "there is no column foo" in seen.page.inner_text("#filter-wrong")
    seen.page.fill("#filter", "score > much")
    assert '"much" is no number' in seen.page.inner_text("#filter-wrong")


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_score_and_certainty_are_seen_at_every_width_and_no_column_is_lost(visit, width):
    seen = visit(viewport={"width": width, "height": 900})
    card = seen.page.locator("#ranking-scroll").bounding_box()
    shown = []
    heads = seen.page.locator("#ranking-table thead th").evaluate_all(
        "all => all.filter((e) => e.checkVisibility())"
        ".map((e) => [e.innerText.trim(), e.getBoundingClientRect().right])"
    )
    for head, right in heads:
        assert right <= card["x"] + card["width"] + 1
        shown.append(head)
    assert shown[:4] == ["rank", "run", "score", "first in"]
    left = seen.page.inner_text("#columns-left")
    every = seen.page.locator("#columns-list label span").all_text_contents()
    assert len(every) > 4
    assert all(name in shown or name in left for name in every)
    seen.page.click("#columns summary")
    last = seen.page.locator("#columns-list input").last
    if not last.is_checked():
        last.check()
        assert seen.page.locator("#ranking-table thead th").last.is_visible()
        seen.page.evaluate("document.getElementById('ranking-scroll').scrollLeft = 9999")
    name = seen.page.locator("#ranking-table tbody th.name").first.bounding_box()
    assert name["x"] >= card["x"] - 1  # the name stays beside what was scrolled to


def test_runs_that_are_the_same_clustering_are_one_row_until_it_is_opened(visit):
    seen = visit("equal")
    assert seen.page.inner_text("#filter-count").startswith("10 runs, ")
    folded = len(seen.rows())
    fold = seen.page.locator("button.fold:visible").first
    assert "4 runs, the same clustering" in fold.inner_text()
    fold.click()
    assert len(seen.rows()) == folded + 3
    assert len(list(csv.reader(io.StringIO(seen.save("ranking", "csv"))))) == 11


def test_a_name_cannot_turn_the_headline_round(visit):
    seen = visit("equal")
    assert "\u202e" not in seen.page.inner_text("body")
    named = seen.page.locator(".sure bdi").first.inner_text()
    assert "turned round" in named
    assert "abc␣ turned round" in " ".join(seen.rows())


def test_two_runs_are_compared_with_the_objects_in_which_they_differ(visit):
    seen = visit()
    assert "differ in" in seen.page.inner_text("#differ-said")
    seen.page.select_option("#compare-with", label="run 5")
    assert "and run 5 differ in" in seen.page.inner_text("#differ-said")
    assert "coloured by run 5" in seen.page.inner_text("#scatter-two .said")
    seen.page.evaluate("document.getElementById('contingency-fold').open = true")
    rows = list(csv.reader(io.StringIO(seen.save("contingency", "csv"))))
    assert sum(int(count) for row in rows[1:] for count in row[1:]) == 240


def test_a_loop_lists_the_objects_inside_it_and_they_come_down_as_csv(visit):
    seen = visit()
    seen.page.click("#lasso")
    canvas = seen.page.locator("#scatter-one canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    for i, (x, y) in enumerate(corners):
        seen.page.mouse.move(
            box["x"] + 4 + x * (box["width"] - 8), box["y"] + 4 + y * (box["height"] - 8), steps=2
        )
        if i == 0:
            seen.page.mouse.down()
    seen.page.mouse.up()
    assert seen.page.inner_text("#picked-count") == "240 objects inside the loop"
    rows = list(csv.reader(io.StringIO(seen.save("picked", "csv"))))
    assert rows[0] == ["object", "position", "first", "batch", "age", "note"]
    assert len(rows) == 241
    seen.page.click("#picked-clear")
    assert not seen.page.locator("#picked").is_visible()


def test_a_scatter_zooms_pans_and_goes_back(visit):
    seen = visit()
    picture = "document.querySelector('#scatter-one canvas').toDataURL()"
    first = seen.page.evaluate(picture)
    seen.page.click("#scatter-one [aria-label^='Zoom in']")
    near = seen.page.evaluate(picture)
    assert near != first
    canvas = seen.page.locator("#scatter-one canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    seen.page.mouse.move(box["x"] + 100, box["y"] + 100)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 160, box["y"] + 130, steps=3)
    seen.page.mouse.up()
    assert seen.page.evaluate(picture) != near
    seen.page.focus("#scatter-one canvas")
    seen.page.keyboard.press("0")
    assert seen.page.evaluate(picture) == first


def test_objects_are_coloured_by_what_is_known_about_them_with_a_key(visit):
    seen = visit()
    assert "t-SNE of" in seen.page.inner_text("#scatter-one .said")
    seen.page.select_option("#colour-by", "known:batch")
    assert "coloured by batch" in seen.page.inner_text("#scatter-one .said")
    assert seen.page.locator("#legend button").count() == 2
    seen.page.select_option("#colour-by", "known:age")
    assert "20" in seen.page.locator("#legend svg").text_content()
    seen.page.select_option("#colour-by", "value:width")
    assert "silhouette width in first" in seen.page.inner_text("#legend")


def test_values_of_the_best_run_are_not_told_beside_the_clusters_of_another(visit):
    seen = visit()
    seen.page.focus("#scatter-one canvas")
    seen.page.keyboard.press("ArrowRight")
    assert "silhouette width" in seen.page.inner_text("#scatter-one .said")
    assert "silhouette width" not in seen.page.inner_text("#scatter-two .said")
    assert "note note" in seen.page.inner_text("#scatter-two .said")


def test_a_link_shows_what_was_seen(visit):
    seen = visit()
    seen.page.fill("#filter", "k >= 4 -jule")
    seen.page.locator("#ranking-table thead th", has_text="lr").locator("button").click()
    seen.page.locator("#ranking-table tbody tr", has_text=INJECTION).click()
    seen.page.select_option("#colour-by", "truth")
    seen.page.select_option("#compare-with", label="run 6")
    rows, differ, link = seen.rows(), seen.page.inner_text("#differ-said"), seen.page.url
    seen.page.goto("about:blank")
    seen.page.goto(link)
    seen.page.wait_for_selector("html[data-ready=true]")
    assert seen.rows() == rows
    assert seen.chosen() == [INJECTION]
    assert seen.page.input_value("#filter") == "k >= 4 -jule"
    assert "coloured by truth" in seen.page.inner_text("#scatter-one .said")
    assert seen.page.inner_text("#differ-said") == differ


def test_every_figure_comes_down_as_svg(visit):
    seen = visit()
    seen.page.locator("#downloads").evaluate("e => e.open = true")
    offered = seen.page.locator("#save-what option").evaluate_all("all => all.map((o) => o.value)")
    names = []
    for what in offered:
        seen.page.select_option("#save-what", what)
        if seen.page.locator("#downloads [data-as=svg]").is_enabled():
            names.append(what)
    assert len(names) >= 10
    assert "scatter-one" in names
    seen.page.evaluate(
        "() => { const make = URL.createObjectURL;"
        " URL.createObjectURL = (file) => { window.saved = file; return make(file); }; }"
    )  # what is saved is read here: Chromium drops one of many downloads now and then
    for what in names:
        seen.page.evaluate("() => { window.saved = null; }")
        seen.page.select_option("#save-what", what)
        seen.page.click("#downloads [data-as=svg]")
        text = seen.page.evaluate("async () => await window.saved.text()")
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert "var(--" not in text
        assert len(text) > 600


def test_the_structure_is_shown_and_a_cell_compares_two_runs(visit):
    seen = visit()
    for chart in ("grid", "votes_of_runs", "tree", "sweep"):
        assert seen.page.locator(f"[data-chart={chart}] > :first-child").is_visible()
    assert "mean width" in seen.page.inner_text("#clusters-shown")
    seen.page.focus("[data-chart=grid] canvas")
    seen.page.keyboard.press("ArrowRight")
    assert "silhouette" in seen.page.inner_text("#live")
    seen.page.select_option("#sweep-by", label="model")
    assert "depict" in seen.page.locator("[data-chart=sweep] svg").text_content()


def test_without_script_answer_and_table_are_there_and_no_card_is_empty(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["full"].as_uri())
    assert "is ranked first of 8 runs" in page.inner_text("h1")
    assert page.locator("#ranking-table tbody tr").count() == 8
    assert not page.locator("#downloads").is_visible()
    page.locator("details.part > summary").first.click()
    assert page.locator("figure.chart:visible").count() == 0
    assert page.locator(".picks li").count() >= 1
    assert "Reproduce" in page.inner_text("footer")
    context.close()


def test_nothing_is_printed_smaller_than_eight_points(visit):
    seen = visit()
    seen.page.emulate_media(media="print")
    small = seen.page.evaluate("""() => [...document.querySelectorAll('body *')].filter((e) =>
        e.checkVisibility() && !e.closest('.unseen, script, style')
        && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())
        && parseFloat(getComputedStyle(e).fontSize) < 8 * 96 / 72 - 0.01)
        .map((e) => e.outerHTML.slice(0, 80))""")
    assert small == []


def test_the_command_on_the_page_makes_the_same_page_but_for_the_date(
    tmp_path, browser, monkeypatch
):
    runs, truth = small_runs()
    for run in runs:
        ws.save_run(tmp_path / "runs", run.embedding, run.labels, name=run.name, params=run.params)
    np.save(tmp_path / "truth.npy", truth)
    command = "rank runs -i silhouette -i cfq --draws 4 --layout pca --cache none --truth truth.npy"
    words = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--report", "page.html"]) == 0
    seen = Visit(browser, tmp_path / "page.html")
    again = shlex.split(seen.page.inner_text("#reproduce"))
    seen.close()
    first = (tmp_path / "page.html").read_text("utf-8")
    (tmp_path / "page.html").unlink()
    assert again[0] == "wellsep"
    assert main(again[1:]) == 0
    second = (tmp_path / "page.html").read_text("utf-8")
    date = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.search(date, first)
    assert re.sub(date, "", first) == re.sub(date, "", second)


def test_the_table_of_clusters_follows_the_chosen_run(visit):
    seen = visit()
    table = seen.page.locator("#clusters-shown")
    assert "nearest cluster" in table.inner_text()
    order = seen.page.locator("#ranking-table tbody tr:not([hidden])")
    order.nth(1).click()
    name = order.nth(1).locator("th.name bdi").inner_text()
    assert seen.page.inner_text("#clusters-of") == name
    assert "nearest cluster" in table.inner_text()
    order.last.click()
    assert "nearest cluster" not in table.inner_text()
    assert "share" in table.inner_text()
    assert "Only the sizes of its clusters are stored." in seen.page.inner_text("#clusters-said")
    assert seen.problems == []
