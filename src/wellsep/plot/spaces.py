"""Displays of how spaces agree: heat map, graph, and the spaces themselves side by side."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from wellsep.evaluate import rank
from wellsep.plot.display import (
    Display,
    agreement_map,
    answer_of,
    as_written,
    draw_scatter,
    ground,
    heat_size,
    ink,
    key,
    name_rows,
    quiet,
    tint,
)
from wellsep.report.figures.ace import fates, space_agreement, space_order
from wellsep.report.figures.records import Scatter, SpaceAgreement
from wellsep.report.sections.scatter import encoded
from wellsep.spaces.drawing_planes import drawn_objects, plane


class AgreementDisplay(Display):
    """Heat map of the rank agreement between spaces, ordered by group.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import AgreementDisplay
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> AgreementDisplay.from_result(ws.ace(scores, dip=False)).figure.values.round(1).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    figure: SpaceAgreement

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> AgreementDisplay:
        """Draw ACE's answer."""
        return cls(_agreement(result)).plot(ax=ax)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> AgreementDisplay:
        """Draw on the given axes, or on new ones."""
        from matplotlib.patches import Rectangle

        heat, n = self.figure, len(self.figure.names)
        (ax,) = self._axes(ax, figsize=heat_size(heat.names))
        self.image_ = ax.imshow(
            heat.values, cmap=agreement_map(heat.floor), vmin=heat.floor, vmax=1
        )
        for row, group in enumerate(heat.group):
            colour = tint(group)
            width = 0.025 * n
            for corner in ((-0.5 - width * 1.6, row - 0.5), (row - 0.5, -0.5 - width * 1.6)):
                size = (width, 1) if corner[1] == row - 0.5 else (1, width)
                ax.add_patch(Rectangle(corner, *size, color=colour, lw=0, clip_on=False))
        ax.set(xlim=(-0.5 - 0.05 * n, n - 0.5), ylim=(n - 0.5, -0.5 - 0.05 * n), xticks=[])
        name_rows(ax, heat.names)
        ax.set_title("Rank agreement of the embeddings", loc="left", fontsize="medium")
        if colorbar:
            label = f"rank correlation ({heat.correlation})"
            self.figure_.colorbar(self.image_, ax=ax, label=label, shrink=0.8)
        return self


class GraphDisplay(Display):
    """Graph of the significant agreements: colour by group, size by weight, winners ringed.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import GraphDisplay
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> GraphDisplay.from_result(ws.ace(scores, dip=False, alpha=None)).figure.edges.tolist()
    [[0, 1]]
    """

    figure: SpaceAgreement

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> GraphDisplay:
        """Draw ACE's answer."""
        return cls(_agreement(result)).plot(ax=ax)

    def plot(self, ax: Any = None, *, names: bool | None = None) -> GraphDisplay:
        """Draw on the given axes, or on new ones; names are written if there are few."""
        from matplotlib.collections import LineCollection

        graph, edges = self.figure, self.figure.edges
        (ax,) = self._axes(ax, figsize=(5, 4.6))
        thin = min(1.0, np.sqrt(250 / max(len(edges), 1)))
        lines = LineCollection(
            list(graph.xy[edges]),
            colors=quiet(),
            linewidths=0.5 + graph.values[tuple(edges.T)],
            alpha=0.35 * thin,
            zorder=1,
        )
        self.lines_ = ax.add_collection(lines)
        size = 30 + 260 * graph.weight / max(float(graph.weight.max()), 1e-12)
        colours = [tint(group) for group in graph.group]
        self.nodes_ = ax.scatter(*graph.xy.T, s=size, c=colours, edgecolors=ground(), zorder=2)
        wins = graph.wins
        ax.scatter(
            *graph.xy[wins].T, s=size[wins] * 1.9, facecolors="none", edgecolors=ink(), zorder=3
        )
        if names if names is not None else len(graph.names) <= 16:
            for name, (x, y) in zip(graph.names, graph.xy, strict=True):
                ax.annotate(
                    as_written(name),
                    (x, y),
                    (0, 9),
                    textcoords="offset points",
                    ha="center",
                    fontsize="x-small",
                )
        ax.set_title("Significant agreement of the embeddings", loc="left", fontsize="medium")
        ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-0.05, 1.05), ylim=(1.05, -0.05))
        ax.spines[:].set_visible(False)
        return self


class SpacesDisplay(Display):
    """Selected and excluded spaces side by side, coloured by one partition.

    ``figure`` is a tuple of Scatter figures, the selected spaces first.

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> from wellsep.plot import SpacesDisplay
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1]])
    >>> runs = ws.Runs.from_parts({"flat": X}, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]})
    >>> display = SpacesDisplay.from_result(ws.ace(ws.score_runs(runs), dip=False), runs)
    >>> [(scatter.space, scatter.selected) for scatter in display.figure]
    [('flat', True)]
    """

    figure: tuple[Scatter, ...]

    @classmethod
    def from_result(
        cls,
        result: Any,
        runs: Any,
        *,
        labels: Any = None,
        n_each: int = 1,
        n_drawn: int = 2000,
        layout: str = "pca",
        ax: Any = None,
    ) -> SpacesDisplay:
        """Draw the heaviest selected spaces and as many excluded ones.

        Parameters
        ----------
        result : Judgement, Ranking or AceResult
        runs : Runs
        labels : str or array-like of shape (n,), optional
            Name of a partition, or labels or true classes; by default the best partition.
        n_each : int
            Spaces of either kind.
        n_drawn : int
            Objects at most.
        layout : {"pca", "tsne", "umap"}
        ax : axes, one per space, optional
        """
        answer = answer_of(result)
        if labels is None:
            labels = rank(answer).best
        if isinstance(labels, str):
            labels = runs.partitions[labels]
        wins = [answer.spaces.index(name) for name in answer.heaviest_spaces[0][:n_each]]
        fate = fates(answer)
        others = [int(i) for i in space_order(answer)[::-1] if fate[i] != "wins"][:n_each]
        objects = drawn_objects(runs.n_objects, n_drawn)
        codes, clusters = encoded(labels)
        found = []
        for space, selected in [*((s, True) for s in wins), *((s, False) for s in others)]:
            name = answer.spaces[space]
            xy, axes = plane(runs.spaces[name], objects, layout)
            found.append(Scatter(name, xy, axes, objects, codes[objects], clusters, selected))
        return cls(tuple(found)).plot(ax=ax)

    def plot(self, ax: Any = None) -> SpacesDisplay:
        """Draw on the given axes, one per space, or on new ones."""
        axes = self._axes(ax, len(self.figure), figsize=(4 * len(self.figure), 4))
        for scatter, one in zip(self.figure, axes, strict=False):
            draw_scatter(one, scatter)
            kind = "selected" if scatter.selected else "excluded"
            title = textwrap.fill(f"{scatter.space} ({kind})".replace(",", ", "), 40)
            one.set_title(as_written(title), loc="left", fontsize="medium")
        last = self.figure[-1]
        key(axes[len(self.figure) - 1], last.codes, last.clusters)
        return self


def _agreement(result: Any) -> SpaceAgreement:
    found = space_agreement(answer_of(result))
    if found is None:
        raise ValueError("result must compare at least 2 embeddings, got one that is left alone.")
    return found
