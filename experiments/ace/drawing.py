"""Figures from the CSVs and the kept scores, in the library's palette."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.ace.evaluating import experiments, kept
from experiments.ace.paper import APPROACHES, INDICES, MAIN, METHODS, SETS, TASKS, split
from experiments.ace.tables import Numbers
from experiments.ace_variants.beating import DEFAULTS, KINDS, by_set, read_beat
from experiments.bookkeeping import say
from wellsep.plot import CLUSTERS, SURFACES

BLUE, ORANGE, GREEN, MAGENTA = CLUSTERS["light"][:4]
INK, QUIET, LINE = (SURFACES["light"][k] for k in ("ink", "quiet", "line"))
NOISE = SURFACES["light"]["noise"]
COLOUR = {"raw": NOISE, "paired": ORANGE, "pooled": GREEN, "ace": BLUE}
SHORT = {
    "calinski_harabasz": "Calinski-\nHarabasz", "davies_bouldin": "Davies-\nBouldin",
    "silhouette_cosine": "silhouette\ncosine", "silhouette": "silhouette\nEuclidean",
    "ccc": "CCC", "dunn": "Dunn", "c_index": "C-index", "s_dbw": "S_Dbw", "cdbw": "CDbw",
    "cfq": "CFQ",
}  # fmt: skip


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
            "axes.edgecolor": QUIET, "axes.labelcolor": INK, "text.color": INK,
            "xtick.color": QUIET, "ytick.color": QUIET, "axes.titlesize": 10,
            "axes.titlelocation": "left", "legend.frameon": False, "figure.dpi": 130,
        }
    )  # fmt: skip
    return plt


def save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # No version of the drawing library in the file: the same figure is the same bytes.
    figure.savefig(path, bbox_inches="tight", metadata={"Software": None})
    pyplot().close(figure)
    say(f"figures/{path.name}")


def draw_all(place: Path) -> None:
    """Every figure there are data for."""
    numbers = Numbers.read(place / "results.csv")
    for task in ("tuning", "clusters"):
        draw_means(numbers, task, place / "figures" / f"{task}.png")
    draw_against_theirs(numbers, place / "figures" / "against_theirs.png")
    draw_scatter(place, place / "figures" / "scores_against_nmi.png")
    draw_beat(read_beat(place), place / "figures" / "beat.png")


def draw_means(numbers: Numbers, task: str, path: Path) -> None:
    """r_s with NMI by index and way of scoring: dots are sets, bars their mean."""
    methods = [m for m in ("jule", "depict") if numbers.sets(task, m)]
    if not methods:
        return
    plt = pyplot()
    figure, axes = plt.subplots(
        len(methods), 1, figsize=(9.5, 2.9 * len(methods)), sharex=True, squeeze=False
    )
    for ax, method in zip(axes[:, 0], methods, strict=True):
        sets = numbers.sets(task, method)
        for x, index in enumerate(INDICES):
            for j, approach in enumerate(APPROACHES):
                at = x + 0.19 * (j - 1.5)
                cells = [numbers.our(task, method, index, approach, s, "nmi") for s in sets]
                values = [c[0] for c in cells if c is not None]
                if not values:
                    continue
                mean = float(np.mean(values))
                ax.bar(at, mean, 0.17, color=COLOUR[approach], alpha=0.85, linewidth=0)
                ax.plot([at] * len(values), values, "o", ms=2.6, color=INK, alpha=0.65, mew=0)
                theirs = numbers.averages(task, method, index, approach, "nmi")["theirs, same sets"]
                if theirs is not None:
                    ax.plot([at - 0.09, at + 0.09], [theirs[0]] * 2, color=MAGENTA, lw=2)
        ax.axhline(0, color=QUIET, lw=0.7)
        ax.set_ylim(-1.05, 1.05)
        ax.set_ylabel("r_s with NMI")
        ax.set_title(f"{TASKS[task]}, {METHODS[method]}: {', '.join(sets)}")
        ax.set_xticks(range(len(INDICES)), [SHORT[i] for i in INDICES])
        ax.tick_params(axis="x", length=0)
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOUR[a]) for a in APPROACHES]
    handles += [
        plt.Line2D([], [], marker="o", ls="", ms=3, color=INK),
        plt.Line2D([], [], color=MAGENTA, lw=2),
    ]
    names = [*(t.lower() if t != "ACE" else t for t in APPROACHES.values()), "one set",
             "mean in the paper, same sets"]  # fmt: skip
    figure.legend(
        handles, names, loc="upper center", ncol=6, bbox_to_anchor=(0.5, 0.02), fontsize=8
    )
    figure.tight_layout()
    save(figure, path)


def draw_against_theirs(numbers: Numbers, path: Path) -> None:
    """Every cell of tables 1 and 2: ours against the printed one."""
    points: dict[str, list[tuple[float, float]]] = {a: [] for a in APPROACHES}
    for task, method, index, approach, name in numbers.ours:
        if approach in points and index in MAIN:
            theirs = numbers.their(task, method, index, approach, name, "nmi")
            ours = numbers.our(task, method, index, approach, name, "nmi")
            if theirs is not None and ours is not None:
                points[approach].append((theirs[0], ours[0]))
    if not any(points.values()):
        return
    plt = pyplot()
    figure, axes = plt.subplots(1, 4, figsize=(9.5, 2.7), sharey=True)
    for ax, (approach, title) in zip(axes, APPROACHES.items(), strict=True):
        values = np.array(points[approach]).reshape(-1, 2)
        ax.plot([-1, 1], [-1, 1], color=LINE, lw=1)
        ax.plot(*values.T, "o", ms=4, color=COLOUR[approach], alpha=0.75, mew=0)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), xlabel="r_s in the paper", title=title)
        ax.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), aspect="equal")
    axes[0].set_ylabel("r_s here")
    figure.tight_layout()
    save(figure, path)


def in_the_paper(experiment: str) -> tuple[int, int, int]:
    """Where an experiment stands in the paper: its task, method and set."""
    task, method, name = split(experiment)
    return list(TASKS).index(task), list(METHODS).index(method), list(SETS).index(name)


def draw_scatter(place: Path, path: Path) -> None:
    """ACE's silhouette score of every run against its NMI, one panel per experiment."""
    import wellsep as ws

    scored = sorted(experiments(place / "scores.zip"), key=lambda one: in_the_paper(one.name))
    if not scored:
        return
    plt = pyplot()
    columns = 4
    lines = -(-len(scored) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(9.5, 2.3 * lines), squeeze=False)
    for ax in axes.flat[len(scored) :]:
        ax.axis("off")
    for ax, entry in zip(axes.flat, scored, strict=False):
        one = kept(entry)
        task, method, name = split(one.name)
        try:
            answer = ws.ace(one.scores, index=one.labels["silhouette"])
        except ValueError:
            ax.axis("off")
            continue
        ways = {"paired": answer.baselines["own_space"], "ace": answer.scores}
        for way, scores in ways.items():
            ax.plot(scores, one.truth["nmi"], "o", ms=3.5, color=COLOUR[way], alpha=0.8, mew=0)
        ax.set_title(f"{METHODS[method]}, {SETS[name][0]}\n{TASKS[task].lower()}", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.locator_params(axis="x", nbins=4)
    for ax in axes[:, 0]:
        ax.set_ylabel("NMI")
    for ax in axes.flat[max(0, len(scored) - columns) : len(scored)]:
        ax.set_xlabel("silhouette")
    handles = [
        plt.Line2D([], [], marker="o", ls="", ms=4, color=COLOUR[w]) for w in ("paired", "ace")
    ]
    figure.legend(
        handles, ["paired: in its own space", "ACE"], loc="upper center", ncol=2,
        bbox_to_anchor=(0.5, 0.02), fontsize=8,
    )  # fmt: skip
    figure.tight_layout()
    save(figure, path)


def draw_beat(rows: list[dict[str, Any]], path: Path) -> None:
    """Every variant's difference to ACE as published, by family; dots are sets."""
    rows = [row for row in rows if row["kind"] in KINDS]
    if not rows:
        return
    plt = pyplot()
    families = list(DEFAULTS)
    counts = [len(by_set(rows, f, "r_s")) - 1 for f in families]
    figure, axes = plt.subplots(
        len(families), 1, figsize=(8.5, 0.24 * sum(counts) + 0.5 * len(families)),
        gridspec_kw={"height_ratios": counts}, sharex=True,
    )  # fmt: skip
    deep = {row["set"] for row in rows if row["kind"] == "deep"}
    for ax, family in zip(axes, families, strict=True):
        values = by_set(rows, family, "r_s")
        base = values.pop(DEFAULTS[family])
        for y, (_, found) in enumerate(values.items()):
            gaps = {s: found[s] - base[s] for s in found if s in base}
            for name, gap in gaps.items():
                colour = BLUE if name in deep else NOISE
                ax.plot(gap, y, "o", ms=3.2, color=colour, alpha=0.7, mew=0)
            ax.plot([np.mean(list(gaps.values()))] * 2, [y - 0.35, y + 0.35], color=MAGENTA, lw=2)
        ax.axvline(0, color=QUIET, lw=0.7)
        ax.set_yticks(range(len(values)), list(values), fontsize=7)
        ax.set_ylim(len(values) - 0.5, -0.5)
        ax.set_title(f"{family}, against {DEFAULTS[family]}", fontsize=8)
    axes[-1].set_xlabel("difference in mean r_s with NMI")
    axes[-1].set_xlim(-1, 1)
    handles = [
        plt.Line2D([], [], marker="o", ls="", ms=4, color=BLUE),
        plt.Line2D([], [], marker="o", ls="", ms=4, color=NOISE),
        plt.Line2D([], [], color=MAGENTA, lw=2),
    ]
    figure.legend(
        handles, ["set with deep runs", "k-means or simulated set", "mean"], loc="upper center",
        ncol=3, bbox_to_anchor=(0.5, 0.01), fontsize=8,
    )  # fmt: skip
    figure.tight_layout()
    save(figure, path)
