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


DESKTOP = {"width": 1280, "height": 720}


class Visit:
    """A page, with all it complained of and asked for.

    Visits follow each other in one tab: a tab of its own takes three times as long. Only what
    a tab cannot change later (`**context`) makes another one.
    """

    def __init__(
        self, browser, path, *, viewport=DESKTOP, color_scheme="light", unfolded=True, **context
    ):
        self.own = bool(context)
        if self.own or not browser.contexts:
            self.context = browser.new_context(**context)
        else:
            self.context = browser.contexts[0]
        self.page = self.context.pages[0] if self.context.pages else self.context.new_page()
        self.page.set_default_timeout(8000)
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(media="screen", color_scheme=color_scheme)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.listeners = {
            "console": lambda m: self.problems.append(f"{m.type}: {m.text}"),
            "pageerror": lambda e: self.problems.append(str(e)),
            "dialog": lambda d: (self.problems.append("dialog"), d.dismiss()),
            "request": lambda r: self.requests.append(r.url),
        }
        for event, listener in self.listeners.items():
            self.page.on(event, listener)
        self.address = path.as_uri()
        start = time.perf_counter()
        self.page.goto(self.address)
        self.page.wait_for_selector("html[data-ready=true]")
        self.seconds = time.perf_counter() - start
        if unfolded:
            self.page.locator("details.part").evaluate_all("all => all.forEach(d => d.open = true)")
            self.frames()

    def close(self) -> None:
        if self.own:
            self.context.close()
            return
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        self.page.evaluate("localStorage.clear()")

    def frames(self) -> None:
        """Wait until the page was drawn twice, and so did what it puts off."""
        self.page.evaluate(
            "() => new Promise((done) =>"
            " requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"
        )

    def rows(self) -> list[str]:
        return self.page.locator("#ranking-table tbody tr:not([hidden]) th.name").all_inner_texts()

    def chosen(self) -> list[str]:
        return self.page.locator("#ranking-table tr[aria-current=true] th.name").all_inner_texts()

    def save(self, what: str, kind: str) -> str:
        """What the menu saves: a table as csv or json, a figure as svg, or everything."""
        menu = self.page.locator("#downloads")
        menu.evaluate("e => e.open = true")
        if kind != "everything":
            self.page.select_option("#save-what", what)
        text = self.download(f"#downloads [data-as={kind}]")
        menu.evaluate("e => e.open = false")
        return text

    def download(self, selector: str) -> str:
        with self.page.expect_download(timeout=30_000) as waiting:
            self.page.click(selector)
        return waiting.value.path().read_text("utf-8")
