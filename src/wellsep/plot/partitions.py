"""Displays of one partition: its objects by value or in a plane, and what makes its clusters."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_data, to_numpy
from wellsep._checks.values import check_kind
from wellsep.distances.base import PairSpace
from wellsep.evaluate import ClusterDescription, describe_clusters
from wellsep.indices import local_connectivity, margins, silhouette_samples
from wellsep.plot.display import (
    PartitionDisplay,
    Scatter,
    agreement_map,
    as_written,
    centers_of,
    draw_scatter,
    encoded,
    finish,
    ground,
    ink,
    key,
    labels_of,
    list_rows,
    name_rows,
    tint,
)
from wellsep.report.sections.objects import Silhouettes, Strips, silhouette_figure, strip_figure
from wellsep.spaces.drawing_planes import drawn_objects, plane


class SilhouetteDisplay(PartitionDisplay):
    """Silhouette widths, cluster by cluster, with their mean; options of ``silhouette_samples``.

    Examples
    --------
    >>> from wellsep.plot import SilhouetteDisplay
    >>> display = SilhouetteDisplay.from_predictions([[0.0], [1], [4], [5]], [0, 0, 1, 1])
    >>> display.ax_.get_xlabel()
    'silhouette width'
    """

    figure: Silhouettes

    @staticmethod
    def figure_of(X: Any, labels: Any, **options: Any) -> Silhouettes:
        """Compute the silhouette widths of a partition, cluster by cluster."""
        widths = np.asarray(silhouette_samples(X, labels, **options), dtype=float)
        return silhouette_figure(*encoded(labels), widths)

    def plot(self, ax: Any = None) -> SilhouetteDisplay:
        """Draw on the given axes, or on new ones."""
        (ax,) = self._axes(ax, figsize=(5.5, 5))
        beside = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": "small"}
        total = sum(map(len, self.figure.widths)) or 1
        gap, y, places = 0.02 * total, 0.0, []
        for code, widths in enumerate(self.figure.widths):
            rows, ends = y + np.arange(len(widths) + 1), np.append(widths, widths[-1:])
            ax.fill_betweenx(rows, 0, ends, step="post", color=tint(code), lw=0)
            places.append(y + len(widths) / 2)
            numbers = f"{len(widths)}, {widths.mean():.2f}" if len(widths) else "0"
            ax.text(1.01, places[-1], numbers, **beside)
            y += len(widths) + gap
        self.mean_line_ = ax.axvline(self.figure.mean, color=ink(), lw=1, ls="--")
        ax.axvline(0, color=ink(), lw=0.8)
        ax.set(ylim=(y, -gap), xlabel="silhouette width", ylabel="cluster")
        ax.set_yticks(places, self.figure.clusters)
        ax.tick_params(axis="y", length=0)
        finish(ax, f"Silhouette widths, mean {self.figure.mean:.3f}")
        ax.set_title("objects, mean", loc="right", fontsize="small")
        return self


class _StripDisplay(PartitionDisplay):
    """One mark per object and cluster; the worst are open."""

    figure: Strips

    def plot(self, ax: Any = None) -> Any:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        (ax,) = self._axes(ax, figsize=(6, 0.45 * max(len(figure.clusters), 4) + 1.2))
        for row, (values, objects) in enumerate(zip(figure.values, figure.objects, strict=True)):
            if not len(values):
                continue
            # The same object always gets the same place: the picture is not random.
            jitter = (objects * 2654435761 % 1000 / 1000 - 0.5) * 0.6
            bad = np.isin(objects, figure.worst)
            colour = tint(row)
            ax.scatter(values[~bad], row + jitter[~bad], s=6, color=colour, alpha=0.55, lw=0)
            ax.scatter(
                values[bad], row + jitter[bad], s=28, facecolors=ground(), edgecolors=colour, lw=1.5
            )
            low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
            ax.plot([low, high], [row, row], color=ink(), lw=1.5)
            ax.plot([middle, middle], [row - 0.25, row + 0.25], color=ink(), lw=2)
        list_rows(ax, figure.clusters)
        ax.set(xlabel=figure.title, ylabel="cluster")
        if figure.worse < 0:
            ax.axvline(0, color=ink(), lw=1, ls="--")
        finish(ax, f"{figure.title.capitalize()} of the objects")
        return self


class MarginDisplay(_StripDisplay):
    """How far every object is from the nearest plane between clusters; borderline objects are open.

    Options go to ``margins``; the margins of an estimator are to its own centres if it has any.

    Examples
    --------
    >>> from wellsep.plot import MarginDisplay
    >>> display = MarginDisplay.from_predictions([[0.0], [1], [4], [5]], [0, 0, 1, 1])
    >>> display.figure.values[0].tolist()
    [2.5, 1.5]
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, **options: Any) -> Any:
        """Draw the margins of X under a fitted clusterer, to its own centres where it has them."""
        labels = labels_of(estimator, X)
        options.setdefault("centers", centers_of(estimator, labels))
        return cls.from_predictions(X, labels, ax=ax, **options)

    @staticmethod
    def figure_of(X: Any, labels: Any, **options: Any) -> Strips:
        """Compute the margins of a partition, cluster by cluster."""
        values = np.asarray(margins(X, labels, **options), dtype=float)
        return strip_figure("margin", *encoded(labels), values)


class ConnectivityDisplay(_StripDisplay):
    """Local connectivity disagreement of every object; isolated objects are open.

    The one option is ``n_neighbors`` of ``local_connectivity``.

    Examples
    --------
    >>> from wellsep.plot import ConnectivityDisplay
    >>> display = ConnectivityDisplay.from_predictions([[0.0], [1], [4], [5]], [0, 0, 1, 1])
    >>> display.ax_.get_xlabel()
    'local connectivity disagreement'
    """

    @staticmethod
    def figure_of(X: Any, labels: Any, *, n_neighbors: int = 5) -> Strips:
        """Compute the local connectivity disagreements of a partition, cluster by cluster."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of small clusters: drawn as such
            values = local_connectivity(X, labels, n_neighbors=n_neighbors).objects
        return strip_figure("lcd", *encoded(labels), np.asarray(values, dtype=float))


class ScatterDisplay(PartitionDisplay):
    """Objects in a plane, coloured by their cluster, with a key; options of ``figure_of``.

    Examples
    --------
    >>> from wellsep.plot import ScatterDisplay
    >>> display = ScatterDisplay.from_predictions([[0.0, 0], [0, 1], [5, 0], [5, 1]], [0, 0, 1, -1])
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['noise', '0', '1']
    """

    figure: Scatter

    @staticmethod
    def figure_of(
        X: Any, labels: Any, *, layout: str = "pca", n_drawn: int = 2000, title: str = "Clusters"
    ) -> Scatter:
        """Lay out a partition of X.

        Parameters
        ----------
        X : array-like of shape (n, d) or Distances
        labels : array-like of shape (n,)
            Cluster or class of each object.
        layout : {"pca", "tsne", "umap"}
            How more than two columns are drawn.
        n_drawn : int
            Objects at most.
        title : str
            What is drawn, above the picture.
        """
        if not isinstance(X, PairSpace):
            X = to_numpy(check_data(X))
        codes, clusters = encoded(labels)
        if len(codes) != len(X):
            raise ValueError(f"labels must have one entry per object ({len(X)}), got {len(codes)}.")
        objects = drawn_objects(len(X), n_drawn)
        xy, axes = plane(X, objects, layout)
        return Scatter(title, xy, axes, objects, codes[objects], clusters)

    def plot(self, ax: Any = None) -> ScatterDisplay:
        """Draw on the given axes, or on new ones."""
        (ax,) = self._axes(ax, figsize=(5, 4.6))
        draw_scatter(ax, self.figure)
        ax.set_title(self.figure.space, loc="left", fontsize="medium")
        key(ax, self.figure)
        return self


@dataclass(frozen=True, eq=False)
class ClusterProfile:
    """How the features that make the clusters differ inside and outside of each."""

    clusters: tuple[str, ...]
    features: tuple[str, ...]
    values: np.ndarray  # (K, F) over the pooled standard deviation; of shares the plain difference
    shares: np.ndarray  # (F,) bool, which features are shares

    @classmethod
    def of(cls, description: ClusterDescription, most: int) -> ClusterProfile:
        """Take the features that differ most in any cluster, ``most`` of each."""
        ks = range(len(description.clusters))
        chosen = list(dict.fromkeys(f for k in ks for f in description.order(k)[:most]))
        names = tuple(description.features[f] for f in chosen)
        values, shares = description.difference[:, chosen], description.shares[chosen]
        return cls(description.clusters, names, values, shares)


class ClusterProfileDisplay(PartitionDisplay):
    """Heat map of the features that make the clusters: high or low inside, against the rest.

    ``n_features`` of each cluster are drawn.

    Examples
    --------
    >>> from wellsep.plot import ClusterProfileDisplay
    >>> X, labels = [[0.0, 7], [1, 8], [5, 8], [6, 7]], [0, 0, 1, 1]
    >>> display = ClusterProfileDisplay.from_predictions(
    ...     X, labels, feature_names=["height", "age"], n_features=1
    ... )
    >>> display.figure.features, display.ax_.get_ylabel()
    (('height',), 'cluster')
    """

    figure: ClusterProfile

    @classmethod
    def from_result(
        cls, result: ClusterDescription, *, n_features: int = 5, ax: Any = None
    ) -> ClusterProfileDisplay:
        """Draw a ``ClusterDescription``, with so many features of each cluster."""
        check_kind("result", result, ClusterDescription, "make one with describe_clusters")
        return cls(ClusterProfile.of(result, n_features)).plot(ax=ax)

    @staticmethod
    def figure_of(X: Any, labels: Any, *, n_features: int = 5, **options: Any) -> ClusterProfile:
        """Describe a partition; options go to ``describe_clusters``."""
        return ClusterProfile.of(describe_clusters(X, labels, **options), n_features)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> ClusterProfileDisplay:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        known = np.abs(figure.values[np.isfinite(figure.values)])
        reach = float(known.max(initial=0.0)) or 1.0
        size = (1.6 + 0.5 * max(len(figure.features), 4), 1.6 + 0.35 * len(figure.clusters))
        (ax,) = self._axes(ax, figsize=size)
        self.image_ = ax.imshow(
            figure.values, cmap=agreement_map(), vmin=-reach, vmax=reach, aspect="auto"
        )
        name_rows(ax, figure.clusters)
        ax.set_ylabel("cluster")
        features = [as_written(name) for name in figure.features]
        ax.set_xticks(range(len(features)), features, rotation=40, ha="right", fontsize="small")
        unit = "standard deviations or shares" if figure.shares.any() else "standard deviations"
        title = f"What makes each cluster: difference\nfrom the others ({unit})"
        ax.set_title(title, loc="left", fontsize="small")
        if colorbar:
            self.figure_.colorbar(self.image_, ax=ax, shrink=0.9)
        return self
