"""Display of a resolution tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.values import check_kind
from wellsep.evaluate import ResolutionTree
from wellsep.plot.display import Display, as_written, ground, ink, quiet, tint
from wellsep.report.figures.records import TreeFigure
from wellsep.report.figures.runs import tree_figure

_MOST_NAMED = 20  # clusters of a level that are named


class ResolutionTreeDisplay(Display):
    """Which cluster of each partition goes where in the next finer one.

    A row is a partition, a dot a cluster, its area the number of objects. A line is as dark as the
    share of the lower cluster that comes along it, and as wide as its number of objects.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import ResolutionTreeDisplay
    >>> tree = ws.resolution_tree({"k2": [0, 0, 0, 1, 1, 1], "k3": [0, 0, 2, 1, 1, 1]})
    >>> display = ResolutionTreeDisplay.from_result(tree)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['k2', 'k3']
    """

    figure: TreeFigure

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> ResolutionTreeDisplay:
        """Draw what ``resolution_tree`` found."""
        check_kind("result", result, ResolutionTree, "resolution_tree makes one")
        return cls(tree_figure(result)).plot(ax=ax)

    def plot(self, ax: Any = None) -> ResolutionTreeDisplay:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        rows = len(figure.levels)
        (ax,) = self._axes(ax, figsize=(6.4, 0.7 * rows + 1))
        largest = figure.sizes.max()
        for (above, below), n, share in zip(
            figure.links, figure.counts, figure.shares, strict=True
        ):
            ax.plot(
                figure.x[[above, below]],
                figure.level[[above, below]],
                color=quiet(),
                lw=0.5 + 5 * n / largest,
                alpha=0.1 + 0.8 * share,
                zorder=1,
                solid_capstyle="round",
            )
        colours = [tint(code) for code in figure.codes]
        area = 30 + 420 * figure.sizes / largest
        ax.scatter(figure.x, figure.level, s=area, c=colours, zorder=2, edgecolors=ground())
        crowded = np.bincount(figure.level)[figure.level] > _MOST_NAMED
        for node in np.flatnonzero(~crowded):
            ax.annotate(
                as_written(figure.clusters[node]),
                (figure.x[node], figure.level[node]),
                xytext=(2 + np.sqrt(area[node]) / 2, 0),
                textcoords="offset points",
                va="center",
                fontsize="x-small",
                color=ink(),
            )
        ax.set_yticks(range(rows), figure.levels)
        ax.set(xticks=[], xlim=(0, 1), ylim=(rows - 0.4, -0.5))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title("Where the clusters go, level by level", loc="left", fontsize="medium")
        return self
