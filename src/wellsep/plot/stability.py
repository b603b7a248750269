"""Displays of what draws of the objects find again."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.plot.display import Display, as_written, ink, quiet, tidy, tint
from wellsep.report.page import is_stability

DISSOLVED, RECOVERED = 0.5, 0.75


class StabilityDisplay(Display):
    """How similar each cluster is to the most similar one of every draw, with mean and interval.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import StabilityDisplay
    >>> X = [[0.0], [1], [2], [10], [11], [12]]
    >>> found = ws.stability(ws.KMeans(2, random_state=0), X, n_draws=5, n_splits=0, random_state=0)
    >>> display = StabilityDisplay.from_result(found)
    >>> display.ax_.get_xlabel(), [text.get_text() for text in display.ax_.get_yticklabels()]
    ('Jaccard similarity', ['0 (3)', '1 (3)'])
    """

    figure: Any  # a Stability

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> StabilityDisplay:
        """Draw what :func:`wellsep.stability` returns."""
        if not is_stability(result):
            raise TypeError(
                f"result must be a Stability, got {type(result).__name__}; make one with stability."
            )
        return cls(result).plot(ax=ax)

    def plot(self, ax: Any = None) -> StabilityDisplay:
        """Draw on the given axes, or on new ones; the least stable cluster comes first."""
        figure, k = self.figure, len(self.figure.clusters)
        (ax,) = self._axes(ax, figsize=(6, 1.4 + 0.34 * k))
        order = np.argsort(np.nan_to_num(figure.jaccard, nan=-1.0), kind="stable")
        for row, cluster in enumerate(order):
            values = figure.values[cluster]
            # The same draw always gets the same place: the picture is not random.
            jitter = (np.arange(len(values)) * 2654435761 % 1000 / 1000 - 0.5) * 0.6
            colour = tint(int(cluster))
            ax.scatter(values, row + jitter, s=7, color=colour, alpha=0.6, lw=0)
        middle = np.arange(k)
        label = f"mean, 95 % interval ({figure.scheme}s)"
        mean, half = figure.jaccard[order], np.nan_to_num(figure.half_width[order])
        low, high = np.maximum(mean - half, 0), np.minimum(mean + half, 1)
        ax.hlines(middle, low, high, color=ink(), lw=2)
        ax.plot(mean, middle, "o", color=ink(), ms=5, label=label)
        for at, word, side in ((DISSOLVED, "dissolved", "right"), (RECOVERED, "recovered", "left")):
            ax.axvline(at, color=quiet(), lw=1, ls="--")
            ax.annotate(
                word,
                (at, -0.6),
                (-4 if side == "right" else 4, 3),
                textcoords="offset points",
                ha=side,
                fontsize="x-small",
                color=quiet(),
            )
        names = [f"{as_written(str(figure.clusters[c]))} ({figure.sizes[c]})" for c in order]
        ax.set_yticks(middle, names, fontsize="small")
        ax.tick_params(axis="y", length=0)
        ax.set(ylim=(k - 0.4, -0.6), xlim=(-0.02, 1.02), xlabel="Jaccard similarity")
        ax.set_ylabel("cluster (objects)")
        ax.set_title("Stability of the clusters\n", loc="left", fontsize="medium")
        ax.legend(fontsize="x-small", loc="lower left")
        tidy(ax)
        return self
