"""The two figures: the paper's tables beside ours, and what LOFKM changes on further sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.figures import INK, QUIET, STYLE
from experiments.local_connectivity.measure import LCDS, MEASURES
from experiments.local_connectivity.protocols import NEIGHBOURS
from experiments.local_connectivity.report import LEVEL, SHOWN_T, further_sets, one, paper_sets
from experiments.local_connectivity.summary import RELATIVE, Row, published, select
from wellsep.plot import CLUSTERS, SURFACES

LINE = SURFACES["light"]["line"]
BLUE, ORANGE = CLUSTERS["light"][:2]
COLOURS = {"paper": INK, "preferred": BLUE, "nearest": ORANGE}
NAMES = {
    "paper": "paper",
    "preferred": "our protocol",
    "nearest": "protocol nearest to the paper",
}
SHORTER = {"object_lcd": "object LCD", "large_lcd": "AvgLCD > t"}
GAINS = LCDS
COSTS = ("silhouette", "purity", "nmi", "sse")


def draw(results: Sequence[Row], out: Path) -> None:
    """tables.png and further.png."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        for name, make in (("tables", _tables), ("further", _further)):
            figure = make(plt, results)
            figure.savefig(out / f"{name}.png", dpi=110, metadata={"Software": None})
            plt.close(figure)


def _values(results: Sequence[Row], who: str, title: str, method: str, measure: str) -> list[float]:
    if who == "paper":
        return [published()[title, method, measure][t] for t in NEIGHBOURS]
    return [
        one(results, part=who, set=title, method=method, measure=measure, t=t)["value"]
        for t in NEIGHBOURS
    ]


def _tables(plt: Any, results: Sequence[Row]) -> Any:
    titles = paper_sets(results)
    figure, axes = plt.subplots(2, len(titles), figsize=(8.4, 5.0), sharex=True, sharey="row")
    for row, measure in zip(axes, ("avg_lcd", "max_lcd"), strict=True):
        for ax, title in zip(row, titles, strict=True):
            for shift, (who, colour) in zip((-0.16, 0.0, 0.16), COLOURS.items(), strict=True):
                places = [t + shift for t in NEIGHBOURS]
                km, lof = (_values(results, who, title, m, measure) for m in ("KM", "LOFKM"))
                ax.vlines(places, lof, km, color=colour, lw=1.2)
                ax.plot(places, km, "o", color=colour, ms=5)
                ax.plot(places, lof, "o", mfc="white", mec=colour, mew=1.4, ms=5)
            ax.set_xticks(NEIGHBOURS, [f"t = {t}" for t in NEIGHBOURS])
            ax.grid(axis="y", color=LINE, lw=0.6)
            ax.set_axisbelow(True)
        row[0].set_ylabel(f"{MEASURES[measure]} (lower is better)")
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, loc="left", fontweight="bold", fontsize=9.5)
    line = plt.Line2D
    handles = [
        line([], [], color=c, marker="o", lw=1.2, label=NAMES[w]) for w, c in COLOURS.items()
    ]
    handles += [
        line([], [], color=QUIET, marker="o", lw=0, label="k-means"),
        line([], [], color=QUIET, marker="o", lw=0, mfc="white", mew=1.4, label="LOFKM"),
    ]
    figure.legend(handles=handles, loc="lower center", ncols=5, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return figure


def _further(plt: Any, results: Sequence[Row]) -> Any:
    rows = [("preferred", title) for title in paper_sets(results)]
    rows += [("further", title) for title in further_sets(results)]
    figure, axes = plt.subplots(
        1,
        len(GAINS) + len(COSTS),
        figsize=(11.6, 0.27 * len(rows) + 1.6),
        sharey=True,
        layout="constrained",
    )
    for ax, measure in zip(axes, (*GAINS, *COSTS), strict=True):
        better_is_down = measure in RELATIVE
        for place, (part, title) in enumerate(rows):
            (change,) = select(
                results, part=part, set=title, t=SHOWN_T, method="change", measure=measure
            )
            value = change["value"]
            good = value < 0 if better_is_down else value > 0
            colour = QUIET if value == 0 else BLUE if good else ORANGE
            sure = change["p_holm"] < LEVEL
            ax.plot([0, value], [place, place], color=colour, lw=1.4)
            ax.plot(value, place, "o", color=colour, mfc=colour if sure else "white", ms=5)
        ax.axvline(0, color=QUIET, lw=0.8)
        ax.grid(axis="x", color=LINE, lw=0.6)
        ax.set_axisbelow(True)
        ax.margins(x=0.12)
        if measure == "sse":
            # Avila's one far object would press all the others into one spot.
            ax.set_xscale("symlog", linthresh=3)
            ax.set_xticks([-30, -3, 0, 3], ["-30", "-3", "0", "3"])
        else:
            ax.locator_params(axis="x", nbins=3)
        name = SHORTER.get(measure, MEASURES[measure])
        unit = ", %" if measure in RELATIVE else ""
        arrow = "← better" if better_is_down else "better →"
        ax.set_title(f"{name}{unit}\n{arrow}", fontsize=8.5)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    axes[0].set_yticks(range(len(rows)), [title for _, title in rows])
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    for label in axes[0].get_yticklabels():
        label.set_color(INK)
    line = plt.Line2D
    figure.legend(
        handles=[
            line([], [], color=BLUE, marker="o", label="LOFKM better than k-means"),
            line([], [], color=ORANGE, marker="o", label="worse"),
            line([], [], color=QUIET, marker="o", mfc="white", lw=0, label="not sure (Holm, 5 %)"),
        ],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return figure
