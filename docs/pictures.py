"""Make the pictures of the page: the six verdicts, every figure of the demo, 300 runs."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import wellsep as ws
from wellsep.cli.main import main as main_of_shell

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))

from verdict_cases import six  # noqa: E402

# Width of the window → height of the picture, from the top of the page.
SIZES = {1440: 900, 390: 844}
COLOURS = 64  # keeps each file small
OPEN = "kind => document.querySelectorAll(kind).forEach(part => { part.open = true; })"
ALL = "details:not(.menu, #columns)"  # a menu would lie across a picture
# The bar at the top would lie across a picture that is taller than the window.
UNSTICK = "document.querySelector('.top').style.position = 'static'"
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


def wines() -> pd.DataFrame:
    from sklearn.datasets import load_wine

    X = load_wine(as_frame=True).data
    return (X - X.mean()) / X.std()


def chosen_page(folder: Path) -> Path:
    """How many clusters of wines there are; three kinds were grown."""
    X = wines()
    return ws.render_report(ws.choose_k(X, random_state=0), folder / "k.html", runs=X)


def stability_page(folder: Path) -> Path:
    """The stability of five clusters of wines, of which there are three kinds."""
    X = wines()
    found = ws.stability(ws.KMeans(5, n_init=2, random_state=0), X, random_state=0)
    return ws.render_report(found, folder / "stability.html", runs=X)


def all_displays() -> bytes:
    """Every display of wellsep.plot in one picture."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from pages import grouped_scores, small_choice, small_runs, small_stability

    from wellsep import plot

    runs = ws.Runs(
        ws.Run(f"run {i}", labels=run.labels, embedding=run.embedding)
        for i, run in enumerate(small_runs()[0])
    )
    judgement, (chosen, X, _) = ws.judge(runs, n_draws=20), small_choice()
    model = ws.KMeans(3, random_state=0).fit(X)
    figure, axes = plt.subplots(5, 3, figsize=(15, 19), layout="constrained")
    at = axes.ravel()
    plot.ScatterDisplay.from_estimator(model, X, ax=at[0])
    plot.SilhouetteDisplay.from_estimator(model, X, ax=at[1])
    plot.MarginDisplay.from_estimator(model, X, ax=at[2])
    plot.ConnectivityDisplay.from_predictions(X, model.labels_, ax=at[3])
    plot.ClusterProfileDisplay.from_estimator(model, X, ax=at[4])
    plot.StabilityDisplay.from_result(small_stability(), ax=at[5])
    plot.RankingDisplay.from_result(judgement, ax=at[6])
    plot.RunAgreementDisplay.from_result(judgement, ax=at[7])
    plot.ResolutionTreeDisplay.from_result(ws.resolution_tree(chosen), ax=at[8])
    plot.DipDisplay.from_result(judgement, ax=at[9])
    plot.AgreementDisplay.from_result(ws.ace(grouped_scores()), ax=at[10])
    plot.GraphDisplay.from_result(judgement, ax=at[11])
    plot.CurvesDisplay.from_result(
        ws.choose_k(X, range(2, 7), indices="silhouette", gate=False), ax=at[12]
    )
    for unused in at[13:]:
        unused.set_axis_off()
    out = io.BytesIO()
    figure.savefig(out, dpi=70)
    plt.close(figure)
    return out.getvalue()


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
            window.evaluate(OPEN, ALL)
            window.evaluate(UNSTICK)
            for part, selector in PARTS.items():
                save(window.locator(selector).first.screenshot(), f"report-{part}")
        window.close()
    window = browser.new_page(viewport={"width": 1440, "height": 900})
    window.goto(large_page(folder).as_uri())
    window.evaluate(OPEN, "details.part")
    window.evaluate(UNSTICK)
    save(window.locator("#structure-section").screenshot(), "report-300")
    window.goto(chosen_page(folder).as_uri())
    save(window.screenshot(), "report-k")
    window.goto(stability_page(folder).as_uri())
    window.evaluate(UNSTICK)
    save(window.screenshot(), "report-stability")
    for part in ("jaccard", "fates", "found", "strengths"):
        save(window.locator(f"#{part}").screenshot(), f"report-{part}")
    window.close()
    save(all_displays(), "plots")


def main() -> None:
    """Write docs/_static/verdict-*.png, by kind and width, and docs/_static/report-*.png."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for kind, (runs, options) in six().items():
            judgement = ws.judge(runs, n_draws=100, **options)
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
