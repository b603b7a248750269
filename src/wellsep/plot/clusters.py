"""Displays of what is in the clusters."""

from __future__ import annotations

from typing import Any

from wellsep._checks.values import check_kind
from wellsep.evaluate import ClusterDescription, describe_clusters
from wellsep.plot.display import PartitionDisplay, agreement_map, as_written, name_rows
from wellsep.report.figures.records import ClusterProfile
from wellsep.report.sections.clusters import profile_figure


class ClusterProfileDisplay(PartitionDisplay):
    """Heat map of the features that make the clusters: high or low inside, against the rest.

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
        return cls(profile_figure(result, n_features)).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: Any, *, n_features: int = 5, ax: Any = None, **options: Any
    ) -> ClusterProfileDisplay:
        """Draw a partition; options go to ``describe_clusters``."""
        result = describe_clusters(X, labels, **options)
        return cls.from_result(result, n_features=n_features, ax=ax)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> ClusterProfileDisplay:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        size = (1.6 + 0.5 * max(len(figure.features), 4), 1.6 + 0.35 * len(figure.clusters))
        (ax,) = self._axes(ax, figsize=size)
        reach = figure.reach
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
