"""Displays of one partition's objects: silhouette widths, margins, local connectivity."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wellsep.indices import local_connectivity, margins, silhouette_samples
from wellsep.plot.display import PartitionDisplay, centers_of, ground, ink, labels_of, tidy, tint
from wellsep.report.figures.records import Silhouettes, Strips
from wellsep.report.sections.objects import lcd_figure, margin_figure, silhouette_figure
from wellsep.report.sections.scatter import encoded


class SilhouetteDisplay(PartitionDisplay):
    """Silhouette widths, cluster by cluster, with their mean.

    Examples
    --------
    >>> from wellsep.plot import SilhouetteDisplay
    >>> display = SilhouetteDisplay.from_predictions([[0.0], [1], [4], [5]], [0, 0, 1, 1])
    >>> display.ax_.get_xlabel()
    'silhouette width'
    """

    figure: Silhouettes

    @classmethod
    def from_predictions(cls, X: Any, labels: Any, *, ax: Any = None, **options: Any):
        """Draw the widths of a partition; options go to ``silhouette_samples``."""
        return cls(width_figure_of(X, labels, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> SilhouetteDisplay:
        """Draw on the given axes, or on new ones."""
        (ax,) = self._axes(ax, figsize=(5.5, 5))
        total = sum(map(len, self.figure.widths)) or 1
        gap, y, places = 0.02 * total, 0.0, []
        for code, widths in zip(self.figure.codes, self.figure.widths, strict=True):
            rows = y + np.arange(len(widths) + 1)
            ax.fill_betweenx(
                rows,
                0,
                np.append(widths, widths[-1:]),
                step="post",
                color=tint(code),
                lw=0,
            )
            places.append(y + len(widths) / 2)
            said = f"{len(widths)}, {widths.mean():.2f}" if len(widths) else "0"
            ax.text(
                1.01, places[-1], said, transform=ax.get_yaxis_transform(), va="center",
                fontsize="small",
            )  # fmt: skip
            y += len(widths) + gap
        self.mean_line_ = ax.axvline(self.figure.mean, color=ink(), lw=1, ls="--")
        ax.axvline(0, color=ink(), lw=0.8)
        ax.set(ylim=(y, -gap), xlabel="silhouette width", ylabel="cluster")
        ax.set_yticks(places, self.figure.clusters)
        ax.tick_params(axis="y", length=0)
        title = f"Silhouette widths, mean {self.figure.mean:.3f}"
        ax.set_title(title, loc="left", fontsize="medium")
        ax.set_title("objects, mean", loc="right", fontsize="small")
        tidy(ax)
        return self


class _StripDisplay(PartitionDisplay):
    """One mark per object and cluster; the worst are open."""

    figure: Strips

    def plot(self, ax: Any = None):
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        (ax,) = self._axes(ax, figsize=(6, 0.45 * max(len(figure.clusters), 4) + 1.2))
        worst = set(figure.worst.tolist())
        for row, (code, values, objects) in enumerate(
            zip(figure.codes, figure.values, figure.objects, strict=True)
        ):
            if not len(values):
                continue
            # The same object always gets the same place: the picture is not random.
            jitter = (objects * 2654435761 % 1000 / 1000 - 0.5) * 0.6
            bad = np.isin(objects, list(worst))
            colour = tint(code)
            ax.scatter(values[~bad], row + jitter[~bad], s=6, color=colour, alpha=0.55, lw=0)
            ax.scatter(
                values[bad], row + jitter[bad], s=28, facecolors=ground(), edgecolors=colour, lw=1.5
            )
            low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
            ax.plot([low, high], [row, row], color=ink(), lw=1.5)
            ax.plot([middle, middle], [row - 0.25, row + 0.25], color=ink(), lw=2)
        ax.set(ylim=(len(figure.clusters) - 0.4, -0.6), xlabel=figure.title, ylabel="cluster")
        ax.set_yticks(range(len(figure.clusters)), figure.clusters)
        ax.tick_params(axis="y", length=0)
        if figure.worse < 0:
            ax.axvline(0, color=ink(), lw=1, ls="--")
        ax.set_title(f"{figure.title.capitalize()} of the objects", loc="left", fontsize="medium")
        tidy(ax)
        return self


class MarginDisplay(_StripDisplay):
    """How far every object is from the nearest plane between clusters; borderline objects are open.

    Examples
    --------
    >>> from wellsep.plot import MarginDisplay
    >>> display = MarginDisplay.from_predictions([[0.0], [1], [4], [5]], [0, 0, 1, 1])
    >>> display.figure.values[0].tolist()
    [2.5, 1.5]
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **options: Any):
        """Draw the margins of X under a fitted clusterer, to its own centres where it has them."""
        labels = labels_of(estimator, X)
        options.setdefault("centers", centers_of(estimator, labels))
        return cls.from_predictions(X, labels, ax=ax, **options)

    @classmethod
    def from_predictions(cls, X: Any, labels: Any, *, ax: Any = None, **options: Any):
        """Draw the margins of a partition; options go to ``margins``."""
        return cls(margin_figure_of(X, labels, **options)).plot(ax=ax)


class ConnectivityDisplay(_StripDisplay):
    """Local connectivity disagreement of every object; isolated objects are open.

    Examples
    --------
    >>> from wellsep.plot import ConnectivityDisplay
    >>> display = ConnectivityDisplay.from_predictions([[0.0], [1], [4], [5]], [0, 0, 1, 1])
    >>> display.ax_.get_xlabel()
    'local connectivity disagreement'
    """

    @classmethod
    def from_predictions(cls, X: Any, labels: Any, *, ax: Any = None, **options: Any):
        """Draw the disagreements of a partition; options: ``n_neighbors``."""
        return cls(lcd_figure_of(X, labels, **options)).plot(ax=ax)


def width_figure_of(X: Any, labels: Any, **options: Any) -> Silhouettes:
    """Compute the silhouette widths of a partition, cluster by cluster."""
    widths = np.asarray(silhouette_samples(X, labels, **options), dtype=float)
    return silhouette_figure(*encoded(labels), widths)


def margin_figure_of(X: Any, labels: Any, **options: Any) -> Strips:
    """Compute the margins of a partition, cluster by cluster."""
    return margin_figure(*encoded(labels), np.asarray(margins(X, labels, **options), dtype=float))


def lcd_figure_of(X: Any, labels: Any, *, n_neighbors: int = 5) -> Strips:
    """Compute the local connectivity disagreements of a partition, cluster by cluster."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of small clusters, which are drawn as such
        values = local_connectivity(X, labels, n_neighbors=n_neighbors).objects
    return lcd_figure(*encoded(labels), np.asarray(values, dtype=float))
