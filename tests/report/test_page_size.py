"""A page of a thousand runs stays small and is soon ready."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import NEEDS_CHROMIUM, Visit
from pages import judged_by_ace

import wellsep as ws

pytestmark = NEEDS_CHROMIUM
M = 1000


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A thousand runs, each with a space and labels of its own, and their scores."""
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 5
    runs = ws.Runs(
        ws.Run(
            f"net {i}, seed={i % 7}",
            labels=np.where(rng.random(300) < i % 40 / 60, rng.integers(0, 3 + i % 9, 300), truth),
            embedding=4 * np.eye(5)[truth] + rng.normal(size=(300, 5)),
            params={"lr": 10.0 ** -(i % 5), "layers": i % 4},
        )
        for i in range(M)
    )
    values = np.linspace(0, 1, M) + rng.normal(0, 0.1, (M, M))
    scores = ws.Scores.from_matrix(
        values,
        spaces=list(runs.spaces),
        partitions=list(runs.partitions),
        dip_pvalues=rng.uniform(0, 2e-4, M),
    )
    path = tmp_path_factory.mktemp("page") / "page.html"
    return ws.render_report(judged_by_ace(scores), path, runs=runs)


@pytest.mark.slow
def test_a_page_of_a_thousand_runs_has_a_scatter_and_less_than_three_megabytes(page):
    assert page.stat().st_size < 3_000_000
    assert '"scatters"' in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_page_of_a_thousand_runs_is_drawn_within_two_seconds(browser, page):
    # Processor time of the page's thread: others may work on the same machine.
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    window = context.new_page()
    session = context.new_cdp_session(window)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    window.goto(page.as_uri())
    window.wait_for_selector("html[data-ready=true]")
    window.wait_for_timeout(500)
    metrics = session.send("Performance.getMetrics")["metrics"]
    spent = {one["name"]: one["value"] for one in metrics}["TaskDuration"]
    context.close()
    assert 0.05 < spent < 3  # about one second on one core of a server


@pytest.mark.slow
def test_the_first_hundred_rows_are_shown_until_the_others_are_asked_for(browser, page):
    seen = Visit(browser, page)
    assert len(seen.rows()) == 100
    more = seen.page.locator("#rows-left button")
    assert more.inner_text() == "Show the other 900 rows"
    last = seen.page.evaluate(
        "document.querySelector('#ranking-table tbody').lastElementChild.cells[1].textContent"
    )
    seen.page.fill("#filter", f'"{last}"')
    assert last in seen.rows()
    seen.page.fill("#filter", "rank>150")
    assert len(seen.rows()) in (100, 101)  # the chosen one may be one of them
    seen.page.fill("#filter", "")
    more.click()
    assert len(seen.rows()) == M
    assert more.is_hidden()
    assert seen.problems == []
    seen.close()


@pytest.mark.slow
def test_a_run_chosen_elsewhere_is_shown_though_its_row_was_not(browser, page):
    seen = Visit(browser, page)
    name = seen.page.evaluate(
        "document.querySelector('#ranking-table tbody').rows[700].querySelector('th').textContent"
    )
    seen.page.evaluate("name => { location.hash = `run=${encodeURIComponent(name)}`; }", name)
    seen.page.wait_for_timeout(200)
    assert seen.chosen() == [name]
    assert len(seen.rows()) == 101
    seen.close()
