"""Displays of objects in a plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_data, to_numpy
from wellsep.distances.base import PairSpace
from wellsep.plot.display import PartitionDisplay, draw_scatter, key
from wellsep.report.figures.records import Scatter
from wellsep.report.sections.scatter import encoded
from wellsep.spaces.drawing_planes import drawn_objects, plane


class ScatterDisplay(PartitionDisplay):
    """Objects in a plane, coloured by their cluster, with a key.

    Examples
    --------
    >>> from wellsep.plot import ScatterDisplay
    >>> display = ScatterDisplay.from_predictions([[0.0, 0], [0, 1], [5, 0], [5, 1]], [0, 0, 1, -1])
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['noise', '0', '1']
    """

    figure: Scatter

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: Any,
        *,
        layout: str = "pca",
        n_drawn: int = 2000,
        title: str = "Clusters",
        ax: Any = None,
    ) -> ScatterDisplay:
        """Draw a partition of X.

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
        ax : axes, optional
        """
        if not isinstance(X, PairSpace):
            X = to_numpy(check_data(X))
        codes, clusters = encoded(labels)
        if len(codes) != len(X):
            raise ValueError(f"labels must have one entry per object ({len(X)}), got {len(codes)}.")
        objects = drawn_objects(len(X), n_drawn)
        xy, axes = plane(X, objects, layout)
        return cls(Scatter(title, xy, axes, objects, codes[objects], clusters)).plot(ax=ax)

    def plot(self, ax: Any = None) -> ScatterDisplay:
        """Draw on the given axes, or on new ones."""
        (ax,) = self._axes(ax, figsize=(5, 4.6))
        draw_scatter(ax, self.figure)
        ax.set_title(self.figure.space, loc="left", fontsize="medium")
        key(ax, np.asarray(self.figure.codes), self.figure.clusters)
        return self
