"""Display of choosing K."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.plot.display import Display, accent, ink, tidy
from wellsep.report.pages.choose_k import shown_k


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

    figure: Any  # a ChosenK

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> CurvesDisplay:
        """Draw a ``ChosenK``; `ax` holds one axes per index."""
        return cls(result).plot(ax=ax)

    def plot(self, ax: Any = None) -> CurvesDisplay:
        """Draw on the given axes, one per index, or on new ones."""
        curves = self.figure.curves()
        axes = self._axes(ax, len(curves), figsize=(3.2 * len(curves), 2.8))
        for (name, curve), one in zip(curves.items(), axes, strict=False):
            k, mean = np.asarray(curve["k"]), np.asarray(curve["mean"], dtype=float)
            one.fill_between(k, curve["low"], curve["high"], color=accent(), alpha=0.16, lw=0)
            one.plot(k, mean, color=accent(), marker="o", ms=3)
            at = k == curve["pick"]  # nowhere if the pick is one cluster, which has no score
            one.plot(k[at], mean[at], "o", color=accent(), ms=9)
            one.axvline(shown_k(self.figure), color=ink(), lw=1, ls="--")
            better = "larger" if curve["direction"] > 0 else "smaller"
            one.set_title(f"{name} ({better} is better)", loc="left", fontsize="medium")
            one.set_xlabel("number of clusters")
            one.xaxis.get_major_locator().set_params(integer=True)
            tidy(one)
        return self
