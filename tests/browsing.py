"""A browser for the tests of the page, and a visit that notes what a page complains of."""

from __future__ import annotations

import shutil
import time

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def open_browser(driver):
    return driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


class Visit:
    """A page, with all it complained of and asked for."""

    def __init__(self, browser, path, **context):
        self.context = browser.new_context(accept_downloads=True, **context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(8000)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.problems.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.problems.append(str(e)))
        self.page.on("dialog", lambda d: (self.problems.append("dialog"), d.dismiss()))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.address = path.as_uri()
        start = time.perf_counter()
        self.page.goto(self.address)
        self.page.wait_for_selector("html[data-ready=true]")
        self.seconds = time.perf_counter() - start

    def rows(self) -> list[str]:
        return self.page.locator("#ranking-table tbody tr:not([hidden]) th.name").all_inner_texts()

    def chosen(self) -> list[str]:
        return self.page.locator("#ranking-table tr[aria-current=true] th.name").all_inner_texts()

    def download(self, selector: str) -> str:
        with self.page.expect_download(timeout=30_000) as waiting:
            self.page.click(selector)
        return waiting.value.path().read_text("utf-8")
