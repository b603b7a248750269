"""The page in a real browser: quiet, self-contained, usable by mouse, keyboard and on a phone."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from browsing import DESKTOP, NEEDS_CHROMIUM
from pages import (
    CLOSING,
    FORMULA,
    INJECTION,
    grouped_scores,
    judged_by_ace,
    small_choice,
    small_judgement,
)
from pages import small_runs as runs_and_truth

import wellsep as ws

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Name → file of every page that is looked at here."""
    folder = tmp_path_factory.mktemp("pages")
    runs, truth = runs_and_truth()
    chosen, X, _ = small_choice()
    rng = np.random.default_rng(0)
    many = np.linspace(0, 1, 200) + rng.normal(0, 0.1, (200, 200))
    partial = ws.score_runs(some_params())
    results = {
        "full": (small_judgement(), {"runs": runs, "truth": truth}),
        "k": (chosen, {"runs": X, "truth": truth}),
        "bare": (judged_by_ace(grouped_scores()), {}),
        "200 runs": (
            judged_by_ace(ws.Scores.from_matrix(many, dip_pvalues=rng.uniform(0, 2e-4, 200))),
            {},
        ),
        "partial params": (judged_by_ace(partial), {"runs": some_params()}),
        "2 runs": (judged_by_ace(ws.Scores.from_matrix([[0.2, 0.1], [0.3, 0.1]]), dip=False), {}),
        "NaN scores": (
            judged_by_ace(ws.Scores.from_matrix([[0.2, np.nan], [np.nan, 0.1]]), dip=False),
            {},
        ),
        "no space passes": (
            judged_by_ace(
                ws.Scores.from_matrix(rng.random((4, 4)), dip_pvalues=[0.4, 0.5, 0.6, 0.7])
            ),
            {},
        ),
    }
    return {
        name: ws.render_report(result, folder / f"{i}.html", **given)
        for i, (name, (result, given)) in enumerate(results.items())
    }


def some_params() -> ws.Runs:
    """Three runs of which one does not say its learning rate."""
    space = np.random.default_rng(3).normal(size=(40, 2)) + 8 * (np.arange(40) % 2)[:, None]
    return ws.Runs(
        ws.Run(name, labels=np.arange(40) % k, embedding=space, params=params)
        for name, k, params in (("a", 2, {"lr": 0.5}), ("b", 3, {}), ("c", 4, {"lr": 0.1}))
    )


NAMES = ["full", "k", "bare", "200 runs", "2 runs", "NaN scores", "no space passes"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_a_phone_and_opens_without_a_complaint_and_without_a_request(visit, name):
    seen = visit(name, viewport={"width": 360, "height": 740})
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360
    size = seen.page.eval_on_selector("h1", "e => parseFloat(getComputedStyle(e).fontSize)")
    assert size >= 22
    for viewport in (None, DESKTOP):
        if viewport:
            seen.page.set_viewport_size(viewport)
        seen.frames()
        assert seen.problems == []
        assert seen.requests == [seen.address]


def test_a_page_of_two_hundred_runs_is_ready_soon(visit):
    # About a second alone; other processes may share the cores, hence several attempts.
    assert any(visit("200 runs").seconds < 5 for _ in range(3))


def test_names_that_are_markup_are_shown_as_text_everywhere(visit):
    seen = visit()
    assert {INJECTION, CLOSING, FORMULA} <= set(seen.rows())
    seen.page.locator("details").evaluate_all("all => all.forEach(d => d.open = true)")
    seen.frames()
    seen.page.locator("#ranking-table tbody tr").evaluate_all("all => all.forEach(r => r.click())")
    assert seen.chosen() == seen.rows()[-1:]
    assert seen.page.locator("img").count() == 0
    assert seen.page.locator("body script:not([type='application/json'])").count() == 1
    assert seen.problems == []


def test_sorting_by_a_column_orders_the_rows_and_says_so(visit):
    seen = visit()
    head = seen.page.locator("#ranking-table thead th", has_text="score").first
    head.locator("button").click()
    scores = seen.page.locator("#ranking-table td.float:nth-child(3)").all_inner_texts()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(s) for s in scores] == sorted(map(float, scores), reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    turned = seen.page.locator("#ranking-table td.float:nth-child(3)").all_inner_texts()
    assert [float(s) for s in turned] == sorted(map(float, scores))


def test_what_is_missing_comes_last_in_either_direction(visit):
    seen = visit("partial params")
    head = seen.page.locator("#ranking-table thead th", has_text="lr")
    at = seen.page.locator("#ranking-table thead th").all_inner_texts().index("lr") + 1
    for first in ("0.1", "0.5"):
        head.locator("button").click()
        column = seen.page.locator(f"#ranking-table tbody tr :nth-child({at})").all_text_contents()
        assert column[0] == first
        assert column[-1] == "–"


def test_what_is_chosen_in_table_heat_map_or_graph_is_seen_in_the_others(visit):
    seen = visit()
    heat = "document.querySelector('[data-chart=heat] canvas').toDataURL()"
    before = seen.page.evaluate(heat)
    seen.page.locator("#ranking-table tbody tr", has_text=FORMULA).click()
    assert seen.chosen() == [FORMULA]
    assert FORMULA in seen.page.inner_text("#scatter-one .said")
    assert seen.page.evaluate(heat) != before
    ringed = seen.page.locator("[data-chart=graph] circle.node[stroke='var(--ink)']")
    assert FORMULA in ringed.get_attribute("data-tip")
    assert "is chosen" in seen.page.inner_text("#live")
    heat = seen.page.locator("[data-chart=heat] canvas")
    box = heat.bounding_box()
    heat.click(position={"x": box["width"] - 6, "y": box["height"] - 6})
    last = seen.page.evaluate(
        "(() => { const d = JSON.parse(document.getElementById('data').textContent);"
        " return d.spaces[d.heat.places.at(-1)]; })()"
    )
    assert seen.chosen() == [last]
    node = seen.page.locator("[data-chart=graph] circle.node").first
    name = node.get_attribute("data-tip").split("\n")[0]
    assert name != last
    node.click()
    assert seen.chosen() == [name]


FIRST_MARK = """(canvas) => {
  const {width, height} = canvas;
  const pixels = canvas.getContext('2d').getImageData(0, 0, width, height);
  const at = pixels.data.findIndex((v, i) => i % 4 === 3 && v > 150) >> 2;
  const ratio = width / canvas.clientWidth;
  return [(at % width) / ratio, Math.floor(at / width) / ratio];
}"""


def test_hovering_over_an_object_names_it_and_a_click_marks_it_everywhere(visit):
    seen = visit()
    canvas = seen.page.locator("#scatter-one canvas")
    x, y = canvas.evaluate(FIRST_MARK)
    canvas.hover(position={"x": x, "y": y})
    assert "object <" in seen.page.inner_text("#tip")
    canvas.click(position={"x": x, "y": y})
    assert "Marked: object <" in seen.page.inner_text("#scatter-one .said")
    assert "Marked: object <" in seen.page.inner_text("#scatter-two .said")


def test_the_objects_can_be_coloured_by_the_truth_and_one_cluster_seen_alone(visit):
    seen = visit()
    seen.page.select_option("#colour-by", "truth")
    assert "coloured by truth" in seen.page.inner_text("#scatter-one .said")
    picture = "document.querySelector('#scatter-one canvas').toDataURL()"
    before = seen.page.evaluate(picture)
    button = seen.page.locator("#legend button").first
    button.click()
    assert seen.page.locator("#legend button").first.get_attribute("aria-pressed") == "true"
    assert seen.page.evaluate(picture) != before


def test_all_spaces_are_drawn_when_they_are_asked_for(visit):
    seen = visit()
    assert seen.page.locator(".thumb").count() == 0
    seen.page.click("#all-spaces summary")
    seen.page.locator(".thumb").first.wait_for()
    assert seen.page.locator(".thumb").count() == 8


def test_the_keyboard_meets_things_in_the_order_they_are_read_and_walks_table_and_pictures(visit):
    seen = visit()
    met = []
    for _ in range(16):
        seen.page.keyboard.press("Tab")
        met.append(seen.page.evaluate(
            "document.activeElement.id || document.activeElement.textContent.trim()"
        ))  # fmt: skip
    assert met[0] == "Skip to the table"
    assert met[1:5] == ["Answer", "Clusterings", "Map", "Method"]
    assert met.index("Download") < met.index("theme") < met.index("filter")
    outline = seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    seen.page.focus("#ranking-table tbody th.name button[tabindex='0']")
    seen.page.keyboard.press("ArrowDown")
    assert seen.chosen() == [seen.rows()[1]]
    seen.page.keyboard.press("End")
    assert seen.chosen() == [seen.rows()[-1]]
    seen.page.keyboard.press("Escape")
    assert seen.chosen() == [seen.rows()[0]]
    seen.page.focus("[data-chart=heat] canvas")
    seen.page.keyboard.press("ArrowRight")
    seen.page.keyboard.press("ArrowRight")
    assert "r = " in seen.page.inner_text("#live")
    seen.page.keyboard.press("Enter")
    assert "is chosen" in seen.page.inner_text("#live")
    seen.page.focus("#scatter-one canvas")
    seen.page.keyboard.press("ArrowRight")
    assert "object <" in seen.page.inner_text("#live")


CONTRAST = """() => {
  const parts = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const channel = (v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (c) => .2126 * channel(c[0]) + .7152 * channel(c[1]) + .0722 * channel(c[2]);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parts(getComputedStyle(e).backgroundColor);
      if (c.length && (c.length < 4 || c[3] > 0)) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    const said = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!said || !e.checkVisibility() || e.closest('#tip, .unseen, svg, script')) continue;
    const [a, b] = [light(parts(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${e.outerHTML.slice(0, 70)}`);
  }
  return bad;
}"""


@pytest.mark.parametrize("name", ["full", "k", "bare"])
def test_all_words_have_the_contrast_of_level_aa_and_all_controls_a_name(visit, name):
    seen = visit(name)
    assert seen.page.evaluate(CONTRAST) == []
    nameless = seen.page.evaluate("""() => [...document.querySelectorAll(
        'button, a, input, select, canvas, svg[role=img], summary, [role=region]')]
        .filter((e) => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby')
            || e.textContent.trim() || (e.labels && e.labels.length)
            || e.getAttribute('aria-hidden')))
        .map((e) => e.outerHTML.slice(0, 80))""")
    assert nameless == []
    seen.page.emulate_media(color_scheme="dark")
    assert seen.page.evaluate(CONTRAST) == []


def test_dark_follows_the_system_is_printed_in_light_colours_and_turned_by_the_button(visit):
    seen = visit(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    picture = "document.querySelector('#scatter-one canvas').toDataURL()"
    dark, before = seen.page.evaluate(ground), seen.page.evaluate(picture)
    seen.page.emulate_media(media="print")
    assert seen.page.evaluate(ground) == "rgb(255, 255, 255)"
    assert not seen.page.locator(".top").is_visible()
    assert not seen.page.locator("#downloads").is_visible()
    seen.page.emulate_media(media="screen")
    assert seen.page.inner_text("#theme") == "Light"
    seen.page.click("#theme")
    assert seen.page.evaluate(ground) != dark
    assert seen.page.evaluate(picture) != before
    assert seen.page.inner_text("#theme") == "Dark"


def test_the_rows_that_are_shown_come_down_as_csv_with_formulas_disarmed_or_all_as_json(visit):
    seen = visit()
    rows = list(csv.reader(io.StringIO(seen.save("ranking", "csv"))))
    names = [row[rows[0].index("run")] for row in rows[1:]]
    assert rows[0][:3] == ["rank", "run", "score"]
    assert len(names) == 8
    assert "'" + FORMULA in names
    assert INJECTION in names
    seen.page.fill("#filter", "rank<=2")
    assert len(json.loads(seen.save("ranking", "json"))) == 2
    found = json.loads(seen.save("", "everything"))
    assert {"ranking", "spaces", "agreement", "links", "dips", "points", "margin", "lcd", "worst",
            "truth"} <= set(found)  # fmt: skip
    scores = small_judgement()
    heat = {row["space"]: row for row in found["agreement"]}
    kept = [scores.by_ace.spaces[i] for i in scores.by_ace.screen.retained]
    expected = scores.by_ace.groups.agreement[0, 1]
    assert heat[kept[0]][kept[1]] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["full", "k"])
def test_every_chart_has_a_table_behind_it(visit, name):
    seen = visit(name)
    charts = seen.page.locator("figure.chart:has([data-table])")
    charts.locator("summary").evaluate_all("all => all.forEach(s => s.click())")
    for i in range(charts.count()):
        charts.nth(i).locator("table tbody tr").first.wait_for()
        assert charts.nth(i).locator("table thead th").count() > 1
    assert charts.count() >= 5


def test_choosing_a_k_moves_through_curves_votes_and_scatter(visit):
    seen = visit("k")
    seen.page.locator("[data-chart=votes] rect").nth(2).click()
    assert seen.chosen() == ["K = 4"]
    assert "coloured by K = 4" in seen.page.inner_text("#scatter-one .said")
