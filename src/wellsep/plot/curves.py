"""Displays of choosing K and of paired runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wellsep.plot.display import Display, accent, ink, quiet, tidy, tint
from wellsep.report.figures.records import Boxes, Curves
from wellsep.report.pages.choose_k import curves_figure


class CurvesDisplay(Display):
    """Every index over the number of clusters, with its spread and its pick.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import CurvesDisplay
    >>> X = [[0.0], [1], [10], [11], [20], [21]]
    >>> chosen = ws.choose_k(X, range(2, 5), indices="silhouette", gate=False)
    >>> display = CurvesDisplay.from_result(chosen)
    >>> display.figure.best, display.ax_.get_xlabel()
    (3, 'number of clusters')
    """

    figure: Curves

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> CurvesDisplay:
        """Draw a ``ChosenK``; `ax` holds one axes per index."""
        return cls(curves_figure(result)).plot(ax=ax)

    def plot(self, ax: Any = None) -> CurvesDisplay:
        """Draw on the given axes, one per index, or on new ones."""
        curves = self.figure.curves
        axes = self._axes(ax, len(curves), figsize=(3.2 * len(curves), 2.8))
        for curve, one in zip(curves, axes, strict=False):
            one.fill_between(curve.k, curve.low, curve.high, color=accent(), alpha=0.16, lw=0)
            one.plot(curve.k, curve.mean, color=accent(), marker="o", ms=3)
            if curve.pick is not None:
                at = curve.k == curve.pick  # nowhere if the pick is one cluster, which has no score
                one.plot(curve.k[at], curve.mean[at], "o", color=accent(), ms=9)
            one.axvline(self.figure.best, color=ink(), lw=1, ls="--")
            better = "larger" if curve.direction > 0 else "smaller"
            one.set_title(f"{curve.name} ({better} is better)", loc="left", fontsize="medium")
            one.set_xlabel("number of clusters")
            one.xaxis.get_major_locator().set_params(integer=True)
            tidy(one)
        return self


class BoxDisplay(Display):
    """Box plots of several methods over the same runs, with the pairs as thin lines.

    Examples
    --------
    >>> from wellsep.plot import BoxDisplay
    >>> display = BoxDisplay.from_values({"k-means": [4.0, 2, 3], "cf-means": [2.0, 2, 2.5]})
    >>> display.figure.wins.tolist()
    [0.5, 2.5]
    """

    figure: Boxes

    @classmethod
    def from_values(
        cls,
        values: Mapping[str, Any],
        *,
        ax: Any = None,
        label: str = "value",
    ) -> BoxDisplay:
        """Draw one number per run and method, such as the SSE of paired seeds."""
        return cls(box_figure(values, label=label)).plot(ax=ax)

    def plot(self, ax: Any = None) -> BoxDisplay:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        (ax,) = self._axes(ax, figsize=(1.1 * len(figure.names) + 2, 4))
        places = np.arange(len(figure.names))
        for row in figure.values:
            ax.plot(places, row, color=quiet(), lw=0.5, alpha=0.35, marker="o", ms=2.5)
        for x, (low, first, middle, third, high) in zip(places, figure.summary, strict=True):
            colour = tint(int(x))
            ax.plot([x, x], [low, high], color=colour, lw=1.5)
            ax.fill_between([x - 0.22, x + 0.22], first, third, color=colour, alpha=0.3, lw=0)
            ax.plot([x - 0.22, x + 0.22], [middle, middle], color=colour, lw=2.5)
        names = [f"{n}\nbest in {w:.3g}" for n, w in zip(figure.names, figure.wins, strict=True)]
        ax.set_xticks(places, names)
        ax.set(xlim=(-0.6, len(places) - 0.4), ylabel=figure.label)
        title = f"{len(figure.values)} paired runs"
        ax.set_title(title, loc="left", fontsize="medium")
        tidy(ax)
        return self


def box_figure(values: Mapping[str, Any], *, label: str = "value") -> Boxes:
    """Box plots of several methods over the same seeds (runs are paired row by row).

    Examples
    --------
    >>> found = box_figure({"k-means": [4.0, 2.0, 3.0], "cf-means": [2.0, 2.0, 2.5]})
    >>> found.summary[0].tolist(), found.wins.tolist()
    ([2.0, 2.5, 3.0, 3.5, 4.0], [0.5, 2.5])
    """
    columns = [np.asarray(column, dtype=float).reshape(-1) for column in values.values()]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"values must hold one number per run and method, got {sorted(lengths)} runs."
        )
    table = np.column_stack(columns)
    summary = np.array([_five_numbers(column[np.isfinite(column)]) for column in table.T])
    known = np.where(np.isfinite(table), table, np.inf)
    least = (known == known.min(axis=1, keepdims=True)) & np.isfinite(known)
    shares = least / np.maximum(least.sum(axis=1, keepdims=True), 1)
    return Boxes(tuple(values), table, summary, shares.sum(axis=0), label)


def _five_numbers(values: np.ndarray) -> np.ndarray:
    """Whiskers at the last value within 1.5 box heights (Tukey), quartiles, median."""
    if not len(values):
        return np.full(5, np.nan)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    inside = values[(values >= low - reach) & (values <= high + reach)]
    return np.array([inside.min(), low, middle, high, inside.max()])
