"""Make the pictures of the five verdicts: a page for each, photographed wide and on a phone."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import wellsep as ws

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from verdict_cases import five  # noqa: E402

# Width of the window → height of the picture, from the top of the page.
SIZES = {1440: 900, 390: 844}
COLOURS = 64  # keeps each file small


def main() -> None:
    """Write docs/_static/verdict-<kind>-<width>.png for each verdict and width."""
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
                picture = Image.open(io.BytesIO(window.screenshot())).convert("RGB")
                out = HERE / "_static" / f"verdict-{name}-{width}.png"
                picture.quantize(COLOURS).save(out, optimize=True)
                print(out.relative_to(HERE.parent), f"{out.stat().st_size / 1000:.0f} kB")
                window.close()
        browser.close()


if __name__ == "__main__":
    main()
