"""axe-core finds no violation: light and dark, wide and narrow, all folds open."""

from __future__ import annotations

import pytest
from browsing import NEEDS_CHROMIUM, Visit
from pages import small_choice, small_judgement, small_runs, small_stability

import wellsep as ws

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)
pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    runs, truth = small_runs()
    chosen, X, _ = small_choice()
    judged = small_judgement()
    return {
        "ranking": ws.render_report(judged, folder / "r.html", runs=runs, truth=truth),
        "k": ws.render_report(chosen, folder / "k.html", runs=X, truth=truth),
        "stability": ws.render_report(small_stability(), folder / "s.html", runs=X),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranking", "k", "stability"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_no_violation(browser, pages, name, scheme, width):
    size = {"width": width, "height": 900}
    # The page forbids foreign scripts; the checker must be let in.
    seen = Visit(browser, pages[name], color_scheme=scheme, viewport=size, bypass_csp=True)
    seen.page.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true; })")
    seen.page.wait_for_timeout(300)
    # The cells of a long table are all alike: axe sees the first rows.
    seen.page.evaluate(
        "document.querySelectorAll('[data-table] tbody').forEach("
        "(b) => [...b.rows].slice(20).forEach((row) => row.remove()))"
    )
    found = axe.Axe().run(seen.page).response["violations"]
    seen.close()
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []
