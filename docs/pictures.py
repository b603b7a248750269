"""Make the pictures of the page: the five verdicts, every figure of the demo, 300 runs."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import wellsep as ws
from wellsep.cli.main import main as main_of_shell

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from verdict_cases import five  # noqa: E402

# Width of the window → height of the picture, from the top of the page.
SIZES = {1440: 900, 390: 844}
COLOURS = 64  # keeps each file small
# Picture → what it shows of the demo's page.
PARTS = {
    "ranking": "#ranking-scroll",
    "clusters": "#scatters",
    "cluster-table": "#clusters-shown",
    "grid": "#grid",
    "votes_of_runs": "#votes_of_runs",
    "tree": "#tree",
    "sweep": "#sweep",
    "silhouettes": "#silhouettes",
    "margin": "#margin",
    "lcd": "#lcd",
    "steps": "#steps",
    "heat": "#heat",
    "graph": "#graph",
    "dips": "#dips",
    "panels": "#panels",
    "foot": "footer",
}


def save(picture: bytes, name: str) -> None:
    """Write docs/_static/<name>.png with few colours."""
    out = HERE / "_static" / f"{name}.png"
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS).save(out, optimize=True)
    print(out.relative_to(HERE.parent), f"{out.stat().st_size / 1000:.0f} kB")


def demo_page(folder: Path) -> Path:
    """The page that `wellsep demo` writes."""
    if main_of_shell(["demo", str(folder / "demo")]) != 0:
        sys.exit("The demo failed.")
    return folder / "demo" / "report.html"


def large_page(folder: Path) -> Path:
    """A page of 300 runs in 60 spaces, some of them the same clustering."""
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 5
    spaces = {
        f"net {i}": (4 if i % 3 else 0) * np.eye(5)[truth] + rng.normal(0, 1, (400, 5))
        for i in range(60)
    }
    labels, pairs = {}, {}
    for i in range(300):
        moved = rng.random(400) < (i % 25) / 40
        name = f"net {i % 60}, seed {i // 60}"
        labels[name] = np.where(moved, rng.integers(0, 3 + i % 7, 400), truth)
        pairs[name] = f"net {i % 60}"
    runs = ws.Runs.from_parts(spaces, labels, pairs=pairs)
    judgement = ws.judge(runs, n_draws=20, layout="pca")
    return ws.render_report(judgement, folder / "300.html", runs=runs)


def photograph(browser: Browser, folder: Path) -> None:
    """Write the pictures of the demo, wide, dark and on a phone, part by part; and of 300 runs."""
    page = demo_page(folder)
    looks = {"report-answer": (1440, "light"), "report-dark": (1440, "dark")}
    for name, (width, scheme) in {**looks, "report-phone": (390, "light")}.items():
        size = {"width": width, "height": SIZES[width]}
        window = browser.new_page(viewport=size, color_scheme=scheme)
        window.goto(page.as_uri())
        save(window.screenshot(), name)
        if name == "report-answer":
            for part, selector in PARTS.items():
                save(window.locator(selector).first.screenshot(), f"report-{part}")
        window.close()
    window = browser.new_page(viewport={"width": 1440, "height": 900})
    window.goto(large_page(folder).as_uri())
    # The bar at the top would lie across a picture that is taller than the window.
    window.evaluate("document.querySelector('.top').style.position = 'static'")
    save(window.locator("#structure").screenshot(), "report-300")
    window.close()


def main() -> None:
    """Write docs/_static/verdict-*.png, by kind and width, and docs/_static/report-*.png."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for kind, runs in five().items():
            judgement = ws.judge(runs, n_draws=100)
            if judgement.verdict.kind != kind:
                sys.exit(f"The runs for {kind!r} are called {judgement.verdict.kind!r} now.")
            name = kind.replace(" ", "-")
            page = ws.render_report(judgement, Path(folder) / f"{name}.html", runs=runs)
            for width, height in SIZES.items():
                window = browser.new_page(viewport={"width": width, "height": height})
                window.goto(page.as_uri())
                save(window.screenshot(), f"verdict-{name}-{width}")
                window.close()
        photograph(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
