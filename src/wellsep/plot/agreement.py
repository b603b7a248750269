"""Displays of agreement: of embeddings as heat map, graph and side by side, and of runs."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from wellsep.evaluate import Consensus, Judgement, rank
from wellsep.plot.display import (
    Display,
    ResultDisplay,
    Scatter,
    agreement_map,
    answer_of,
    as_written,
    draw_scatter,
    encoded,
    ground,
    heat_size,
    ink,
    key,
    name_rows,
    quiet,
    tint,
    write_beside,
)
from wellsep.report.figures.ace import SpaceAgreement, fates, space_agreement, space_order
from wellsep.report.figures.runs import RunAgreement, run_agreement
from wellsep.spaces.drawing_planes import drawn_objects, plane


class _HeatMap(ResultDisplay):
    """Agreement of every two rows as a colour."""

    def _heat(self, ax: Any, names: tuple[str, ...], title: str, label: str | None) -> Any:
        """The map; with a colour bar where it has a label."""
        (ax,) = self._axes(ax, figsize=heat_size(names))
        floor = self.figure.floor
        self.image_ = ax.imshow(self.figure.values, cmap=agreement_map(floor), vmin=floor, vmax=1)
        ax.set_xticks([])
        name_rows(ax, names)
        ax.set_title(title, loc="left", fontsize="medium")
        if label is not None:
            self.figure_.colorbar(self.image_, ax=ax, label=label, shrink=0.8)
        return ax


class RunAgreementDisplay(_HeatMap):
    """Heat map of the agreement between all runs, similar ones next to each other.

    Made of a ``Consensus``, or of the agreement (ARI) that a ``Judgement`` holds. Equal partitions
    are one row, named after their first run, with the number of runs.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import RunAgreementDisplay
    >>> vote = ws.consensus({"a": [0, 0, 0, 1, 1, 1], "b": [0, 1, 0, 1, 0, 1],
    ...                      "c": [0, 0, 0, 0, 1, 1], "copy of a": [1, 1, 1, 0, 0, 0]})
    >>> RunAgreementDisplay.from_result(vote).figure.labels
    ('b', 'a (×2)', 'c')
    """

    figure: RunAgreement

    @staticmethod
    def figure_of(result: Any) -> RunAgreement:
        """Take the agreement from the vote that a result is or holds."""
        if isinstance(result, Consensus):
            return run_agreement(result)
        if not isinstance(result, Judgement):
            raise TypeError(
                f"result must be a Consensus or a Judgement, got {type(result).__name__}."
            )
        if result.vote is None or result.vote.n_distinct == 1:
            raise ValueError("result must compare at least 2 different clusterings, got one.")
        return run_agreement(result.vote)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> RunAgreementDisplay:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        label = figure.measure if colorbar else None
        self._heat(ax, figure.labels, "Agreement of the runs", label)
        return self


class AgreementDisplay(_HeatMap):
    """Heat map of the rank agreement between embeddings in ACE's answer, ordered by group.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import AgreementDisplay
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> AgreementDisplay.from_result(ws.ace(scores, dip=False)).figure.values.round(1).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    figure: SpaceAgreement

    @staticmethod
    def figure_of(result: Any) -> SpaceAgreement:
        """Take the agreement from ACE's answer."""
        found = space_agreement(answer_of(result))
        if found is None:
            raise ValueError(
                "result must compare at least 2 embeddings, got one that is left alone."
            )
        return found

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> AgreementDisplay:
        """Draw on the given axes, or on new ones."""
        from matplotlib.patches import Rectangle

        heat, n = self.figure, len(self.figure.names)
        label = f"rank correlation ({heat.correlation})" if colorbar else None
        ax = self._heat(ax, heat.names, "Rank agreement of the embeddings", label)
        width = 0.025 * n
        edge = -0.5 - 1.6 * width
        for row, group in enumerate(heat.group):
            for corner, size in (((edge, row - 0.5), (width, 1)), ((row - 0.5, edge), (1, width))):
                ax.add_patch(Rectangle(corner, *size, color=tint(group), lw=0, clip_on=False))
        ax.set(xlim=(-0.5 - 0.05 * n, n - 0.5), ylim=(n - 0.5, -0.5 - 0.05 * n))
        return self


class GraphDisplay(ResultDisplay):
    """Graph of the significant agreements in ACE's answer.

    The colour of an embedding is its group, its size its weight; winners are ringed.

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import GraphDisplay
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5, 0.3], [0.2, 0.6, 0.3]], paired=False)
    >>> GraphDisplay.from_result(ws.ace(scores, dip=False, alpha=None)).figure.edges.tolist()
    [[0, 1]]
    """

    figure: SpaceAgreement
    figure_of = staticmethod(AgreementDisplay.figure_of)

    def plot(self, ax: Any = None, *, names: bool | None = None) -> GraphDisplay:
        """Draw on the given axes, or on new ones; names are written if there are few."""
        from matplotlib.collections import LineCollection

        graph, edges = self.figure, self.figure.edges
        (ax,) = self._axes(ax, figsize=(5, 4.6))
        thin = min(1.0, np.sqrt(250 / max(len(edges), 1)))
        widths = 0.5 + graph.values[tuple(edges.T)]
        look = {"colors": quiet(), "linewidths": widths, "alpha": 0.35 * thin, "zorder": 1}
        self.lines_ = ax.add_collection(LineCollection(list(graph.xy[edges]), **look))
        size = 30 + 260 * graph.weight / max(float(graph.weight.max()), 1e-12)
        colours = [tint(group) for group in graph.group]
        self.nodes_ = ax.scatter(*graph.xy.T, s=size, c=colours, edgecolors=ground(), zorder=2)
        wins = graph.wins
        ax.scatter(
            *graph.xy[wins].T, s=size[wins] * 1.9, facecolors="none", edgecolors=ink(), zorder=3
        )
        if names if names is not None else len(graph.names) <= 16:
            for name, place in zip(graph.names, graph.xy, strict=True):
                write_beside(ax, as_written(name), place, (0, 9), ha="center")
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
        n = len(self.figure)
        axes = self._axes(ax, n, figsize=(4 * n, 4))
        for scatter, one in zip(self.figure, axes, strict=False):
            draw_scatter(one, scatter)
            kind = "selected" if scatter.selected else "excluded"
            title = textwrap.fill(f"{scatter.space} ({kind})".replace(",", ", "), 40)
            one.set_title(as_written(title), loc="left", fontsize="medium")
        key(axes[n - 1], self.figure[-1])
        return self
