"""Display of a clustering of the plane: regions, separating lines, a counterfactual."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep.plot.display import Display, centers_of, ground, ink, key, labels_of, style, tint
from wellsep.report.figures.records import Regions
from wellsep.report.figures.regions import regions_figure


class RegionsDisplay(Display):
    """Decision regions of a 2-D clustering, and how far one object is from another cluster.

    Examples
    --------
    >>> from wellsep.plot import RegionsDisplay
    >>> X = [[0.0, 0], [0, 2], [4, 0], [4, 2]]
    >>> display = RegionsDisplay.from_predictions(X, [0, 0, 1, 1], point=0)
    >>> display.figure.counterfactual.tolist(), display.figure.margin
    ([2.0, 0.0], 2.0)
    """

    figure: Regions

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, point: int | None = None, n_grid: int = 160, ax: Any = None
    ) -> RegionsDisplay:
        """Draw a fitted clusterer of two columns.

        With centres, regions are those of the nearest one and lines are exact; else they follow
        ``predict``, and a point's counterfactual is not known.
        """
        labels = labels_of(estimator, X)
        centers = centers_of(estimator, labels)
        predict = None if centers is not None else getattr(estimator, "predict", None)
        if predict is not None and point is not None:
            raise ValueError(
                f"point must be None for a clusterer without centres, got {point!r}; "
                "its counterfactual is not known."
            )
        return cls(
            regions_figure(X, labels, centers=centers, predict=predict, point=point, n_grid=n_grid)
        ).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: Any,
        *,
        centers: Any = None,
        point: int | None = None,
        n_grid: int = 160,
        ax: Any = None,
    ) -> RegionsDisplay:
        """Draw a partition by its centres, the means by default."""
        return cls(regions_figure(X, labels, centers=centers, point=point, n_grid=n_grid)).plot(
            ax=ax
        )

    def plot(self, ax: Any = None) -> RegionsDisplay:
        """Draw on the given axes, or on new ones."""
        from matplotlib.collections import LineCollection
        from matplotlib.colors import to_rgb

        regions = self.figure
        (ax,) = self._axes(ax, figsize=(5, 4.6))
        back = np.array(to_rgb(ground()))
        shades = np.ones((*regions.grid.shape, 3)) * back
        for code in np.unique(regions.grid):
            # Shades of the clusters' colours, lighter than the marks.
            shades[regions.grid == code] = back - 0.16 * (back - np.array(to_rgb(tint(code))))
        extent = (regions.x[0], regions.x[-1], regions.y[0], regions.y[-1])
        self.image_ = ax.imshow(
            shades, origin="lower", extent=extent, interpolation="nearest", zorder=0
        )
        self.lines_ = ax.add_collection(
            LineCollection(list(regions.lines), colors=ink(), linewidths=0.9, zorder=1)
        )
        for code in np.unique(regions.codes):
            here = regions.codes == code
            ax.scatter(*regions.xy[here].T, s=14, lw=0, alpha=0.85, zorder=2, **style(int(code)))
        if regions.centers is not None:
            ax.scatter(*regions.centers.T, marker="x", s=60, color=ink(), zorder=3)
        if regions.point is not None and regions.counterfactual is not None:
            ax.annotate(
                "",
                regions.counterfactual,
                regions.point,
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": ink(),
                    "lw": 1.5,
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
                zorder=4,
            )
            ax.scatter(*regions.point, s=70, facecolors="none", edgecolors=ink(), lw=1.8, zorder=4)
            ax.set_title(f"margin {regions.margin:.3g}", loc="left", fontsize="medium")
        else:
            ax.set_title("Regions of the clusters", loc="left", fontsize="medium")
        key(ax, regions.codes, regions.clusters)
        # The same scale on both axes, so that distances can be compared by eye.
        ax.set(xlim=extent[:2], ylim=extent[2:], aspect="equal")
        return self
