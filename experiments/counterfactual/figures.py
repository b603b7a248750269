"""The figures of REPORT.md, drawn from the CSVs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.counterfactual import deep, picks
from experiments.counterfactual.deep_tables import deep_values, order_of
from experiments.counterfactual.sse_tables import FIGURE_ARMS
from experiments.counterfactual.starts import cells, excess
from experiments.counterfactual.tables import published, title_of, trials
from experiments.figures import INK, QUIET, STYLE
from wellsep.plot import CLUSTERS, SURFACES

LINE, GREY = (SURFACES["light"][name] for name in ("line", "noise"))
BLUE, ORANGE, GREEN, MAGENTA, VIOLET, SKY, BROWN, MAUVE = CLUSTERS["light"][:8]
ARMS = dict(zip(FIGURE_ARMS, (GREY, BROWN, ORANGE, BLUE, GREEN, MAGENTA), strict=True))
SIGNS = {"attract": ORANGE, "repel": BLUE}

Row = dict[str, Any]


def draw(results: Mapping[str, Sequence[Row]], out: Path) -> list[str]:
    """Whatever the results allow: table2.png, figure23.png, figure24.png; returns their names."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    makers = {"table2": _table2, "figure23": _figure23, "figure24": _figure24}
    written = []
    with plt.rc_context(STYLE | {"axes.titlesize": 9.5}):
        for name, make in makers.items():
            if not results[name]:
                continue
            figure = make(plt, results[name])
            figure.savefig(out / f"{name}.png", dpi=110, metadata={"Software": None})
            plt.close(figure)
            written.append(f"{name}.png")
    return written


def _table2(plt: Any, rows: Sequence[Row]) -> Any:
    """Mean and standard deviation of every index's NMI, the poster's beside ours."""
    groups, told = trials(rows), published()
    names = list(dict.fromkeys(row["set"] for row in rows))
    figure, axes = plt.subplots(
        1, len(names), figsize=(2.4 * len(names) + 0.8, 3.0), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    marks = {
        "poster": (INK, "D", "poster"),
        "classes": (BLUE, "o", "ours, random classes"),
        "seeds": (ORANGE, "s", "ours, all classes"),
    }
    for axis, name in zip(axes[0], names, strict=True):
        for place, (method, index) in enumerate(picks.POSTER.items()):
            for shift, (kind, (colour, mark, label)) in zip(
                (-0.22, 0.0, 0.22), marks.items(), strict=True
            ):
                if kind == "poster":
                    mean, std = told.get((title_of(name), method), (np.nan, np.nan))
                elif (name, kind) in groups:
                    values = picks.picked(groups[name, kind], index)
                    mean, std = np.nanmean(values), np.nanstd(values, ddof=min(1, len(values) - 1))
                else:
                    continue
                axis.errorbar(
                    place + shift, mean, std, fmt=mark, color=colour, markersize=4.5,
                    elinewidth=1.2, label=label if not place else None,
                )  # fmt: skip
        axis.set_title(title_of(name))
        axis.set_xticks(range(len(picks.POSTER)), list(picks.POSTER))
        axis.set_xlim(-0.5, len(picks.POSTER) - 0.5)
        axis.grid(axis="y", color=LINE, linewidth=0.7)
        axis.set_axisbelow(True)
    axes[0][0].set_ylabel("NMI of the partition picked\n(mean ± std)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _boxes(axis: Any, values: Sequence[np.ndarray], colours: Sequence[str]) -> None:
    drawn = axis.boxplot(
        values, widths=0.62, patch_artist=True, medianprops={"color": INK, "linewidth": 1.2},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": QUIET},
        showmeans=True, meanprops={"marker": "D", "markersize": 3, "markerfacecolor": "white",
                                   "markeredgecolor": INK, "markeredgewidth": 0.6},
        whiskerprops={"color": QUIET}, capprops={"color": QUIET},
        boxprops={"edgecolor": QUIET, "linewidth": 0.8},
    )  # fmt: skip
    for box, colour in zip(drawn["boxes"], colours, strict=True):
        box.set_facecolor(colour)
        box.set_alpha(0.75)
    axis.set_xticks([])
    axis.grid(axis="y", color=LINE, linewidth=0.7)
    axis.set_axisbelow(True)


def _legend(
    figure: Any, colours: Mapping[str, str], columns: int, levels: Mapping[str, str] | None = None
) -> None:
    """Boxes by colour, and lines by their dashes, below the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=c, alpha=0.75, edgecolor=QUIET, label=n) for n, c in colours.items()
    ]
    handles += [
        Line2D([], [], color=QUIET, linewidth=1.0, linestyle=dashes, label=name)
        for name, dashes in (levels or {}).items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)


def _figure23(plt: Any, rows: Sequence[Row]) -> Any:
    """Box plots of the sums of squares, one panel a set."""
    tables = cells(rows)
    columns = min(3, len(tables))
    lines = -(-len(tables) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(8.4, 2.0 * lines + 0.6), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(tables) :]:
        axis.set_visible(False)
    for axis, ((name, k), table) in zip(axes.flat, tables.items(), strict=False):
        over = excess(table)
        _boxes(axis, [over[arm] for arm in ARMS], list(ARMS.values()))
        axis.set_title(f"{name}, K = {k}")
        axis.set_yscale("symlog", linthresh=10.0, linscale=0.8)
        top = max(o.max() for o in over.values())
        axis.set_yticks([t for t in (0, 5, 10, 30, 100, 300, 1000) if t <= 1.3 * top])
        axis.get_yaxis().set_major_formatter(plt.FuncFormatter(lambda v, _: f"{v:g}"))
        axis.minorticks_off()
    figure.supylabel("SSE above the lowest found, in thousandths", fontsize=8.5)
    _legend(figure, ARMS, len(ARMS))
    return figure


def _shade(method: str, weights: Sequence[float], row: Row) -> str:
    """The sign's colour, paler for smaller weights."""
    if not row["sign"]:
        return GREY
    colour = SIGNS[row["sign"]]
    share = 0.45 + 0.55 * (sorted(weights).index(row["weight"]) + 1) / len(weights)
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [round(share * c + (1 - share) * 255) for c in channels]
    return "#" + "".join(f"{c:02x}" for c in mixed)


def _figure24(plt: Any, rows: Sequence[Row]) -> Any:
    """Box plots of NMI, one column a set and one line a balance of the losses."""
    values, settled = deep_values(rows, "nmi"), deep_values(rows, "nmi_settled")
    names, methods = order_of(values)
    balances = list(dict.fromkeys(balance for _, balance, _ in values if balance))
    known = {row["method"]: row for row in rows}
    weights = sorted({row["weight"] for row in rows if row["sign"]})
    colours = {method: _shade(method, weights, known[method]) for method in methods}
    levels = {"random centres": ":", "k-means from them": "--"}
    figure, axes = plt.subplots(
        len(balances), len(names), figsize=(1.75 * len(names) + 1.0, 2.1 * len(balances) + 0.6),
        squeeze=False, sharey="col", layout="constrained",
    )  # fmt: skip
    for line, balance in zip(axes, balances, strict=True):
        for axis, name in zip(line, names, strict=True):
            _boxes(axis, [values[name, balance, m] for m in methods], list(colours.values()))
            for found, dashes in zip((values, settled), levels.values(), strict=True):
                level = found[name, "", deep.BEFORE].mean()
                axis.axhline(level, color=QUIET, linewidth=1.0, linestyle=dashes)
        line[0].set_ylabel(f"NMI, balance “{balance}”")
    for axis, name in zip(axes[0], names, strict=True):
        axis.set_title(title_of(name))
    _legend(figure, colours, len(colours) + len(levels), levels)
    return figure
