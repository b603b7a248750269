"""Displays of a ranking, its dip tests, a choice of K, stability, and a resolution tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_count
from wellsep._checks.values import check_kind
from wellsep.evaluate import Judgement, Ranking, ResolutionTree
from wellsep.plot.display import (
    Display,
    ResultDisplay,
    accent,
    answer_of,
    as_written,
    finish,
    ground,
    ink,
    list_rows,
    quiet,
    tint,
    write_beside,
)
from wellsep.report.figures.ace import Dips, dip_figure
from wellsep.report.figures.runs import TreeFigure, tree_figure
from wellsep.report.page import is_a
from wellsep.report.pages.choose_k import shown_k

LONGEST = 40  # letters of a name at an axis
MOST_SPACES = 40  # that get a row each; more are counted in bars
DISSOLVED, RECOVERED = 0.5, 0.75
_MOST_NAMED = 20  # clusters of a level that are named


class RankingDisplay(Display):
    """The rank of each run, with the ranks it has in most half-samples.

    Equal partitions are one row, named after their first run, with the number of runs.

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> from wellsep.plot import RankingDisplay
    >>> side = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 9 * side[:, None]
    >>> runs = ws.Runs.from_parts({"X": X}, {"sides": side, "thirds": np.arange(60) % 3})
    >>> display = RankingDisplay.from_result(ws.judge(runs, n_draws=6, dip=False))
    >>> display.ax_.get_xlabel(), [text.get_text() for text in display.ax_.get_yticklabels()]
    ('rank', ['sides', 'thirds'])
    """

    figure: Ranking
    n_runs = 30

    @classmethod
    def from_result(cls, result: Any, *, n_runs: int = 30, ax: Any = None) -> RankingDisplay:
        """Draw a ``Judgement`` or a ``Ranking`` with half-samples, the best distinct runs."""
        found = result.ranking if isinstance(result, Judgement) else result
        if not isinstance(found, Ranking):
            raise TypeError(
                f"result must be a Judgement or a Ranking, got {type(result).__name__}."
            )
        display = cls(found)
        display.n_runs = check_count("n_runs", n_runs)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> RankingDisplay:
        """Draw on the given axes, or on new ones."""
        ranking, sure = self.figure, self.figure.confidence
        if sure is None:
            raise ValueError(
                "result must hold rank intervals, got none; judge the runs with n_draws=100."
            )
        runs, n_distinct = ranking.first_of_each[: self.n_runs], len(ranking.classes)
        rows, rank = np.arange(len(runs)), ranking.rank[runs]
        low, high = np.asarray(sure.interval)[runs].T
        (ax,) = self._axes(ax, figsize=(6, 1.2 + 0.26 * len(runs)))
        share = f"in {sure.level:.0%} of {sure.n_draws} half-samples"
        ax.hlines(rows, low, high, color=accent(), lw=4, alpha=0.55, label=share)
        ax.plot(rank, rows, "o", color=ink(), ms=5, label="in the full sample")
        for row, p in enumerate(np.asarray(sure.first_in)[runs]):
            if p >= 0.005:
                end = (max(high[row], rank[row]), row)
                write_beside(ax, f"first in {p:.0%}", end, (8, 0), va="center", color=quiet())
        counts = ranking.classes.sizes[ranking.classes.of[runs]]
        names = [
            _short(ranking.names[i]) + (f" (×{count})" if count > 1 else "")
            for i, count in zip(runs, counts, strict=True)
        ]
        list_rows(ax, names, fontsize="small")
        ax.set_xlabel("rank")
        ax.set_xlim(left=0.5)
        ax.xaxis.get_major_locator().set_params(integer=True)
        best = f", the best {len(runs)} of {n_distinct}" if len(runs) < n_distinct else ""
        ax.legend(fontsize="x-small", loc="lower left")
        finish(ax, f"Ranks of the runs{best}")
        return self


class DipDisplay(ResultDisplay):
    """The dip test of every embedding in ACE's answer: can a single mode be ruled out?

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import DipDisplay
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5], [0.2, 0.6]], dip_pvalues=[0.001, 0.4])
    >>> DipDisplay.from_result(ws.ace(scores)).figure.passed.tolist()
    [True, False]
    """

    figure: Dips

    @staticmethod
    def figure_of(result: Any) -> Dips:
        """Take the tests from ACE's answer."""
        scores = result.scores if isinstance(result, Judgement) else None
        found = dip_figure(answer_of(result), scores)
        if found is None:
            raise ValueError("result must hold dip tests, got none; judge the runs with dip=True.")
        return found

    def plot(self, ax: Any = None) -> DipDisplay:
        """Draw on the given axes, or on new ones: a row per space, or bars if they are many."""
        figure, n = self.figure, len(self.figure.names)
        many = n > MOST_SPACES
        (ax,) = self._axes(ax, figsize=(6, 3 if many else 1.2 + 0.26 * n))
        values = np.nan_to_num(figure.adjusted, nan=1.0)
        if many:
            parts = [values[figure.passed], values[~figure.passed]]
            look = {"color": [accent(), quiet(0.6)], "label": ["kept", "left out"]}
            ax.hist(parts, np.linspace(0, 1, 21), stacked=True, **look)
            ax.set_ylabel("spaces")
        else:
            order = np.lexsort((figure.pvalue, values))
            for kept, colour, label in ((True, accent(), "kept"), (False, quiet(), "left out")):
                rows = np.flatnonzero(figure.passed[order] == kept)
                ax.plot(values[order][rows], rows, "o", color=colour, ms=6, label=label)
            list_rows(ax, [_short(figure.names[i]) for i in order], fontsize="small")
        ax.axvline(figure.alpha, color=ink(), lw=1, ls="--")
        ax.set(xlim=(-0.02, 1.02), xlabel="p-value of a single mode, adjusted (Holm)")
        ax.legend(fontsize="x-small", loc="lower right" if not many else "best")
        finish(ax, "Dip tests of the embeddings")
        return self


class CurvesDisplay(ResultDisplay):
    """Every index of a ``ChosenK`` over the number of clusters, with its spread and its pick.

    Each index has axes of its own.

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

    @staticmethod
    def figure_of(result: Any) -> Any:
        """Refuse all but a ChosenK."""
        return _refuse_others(result, "ChosenK", "choose_k")

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
            one.set_xlabel("number of clusters")
            one.xaxis.get_major_locator().set_params(integer=True)
            better = "larger" if curve["direction"] > 0 else "smaller"
            finish(one, f"{name} ({better} is better)")
        return self


class StabilityDisplay(ResultDisplay):
    """How similar each cluster is to the most similar one of every draw, with mean and interval.

    Made of what :func:`wellsep.stability` returns.

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

    @staticmethod
    def figure_of(result: Any) -> Any:
        """Refuse all but a Stability."""
        return _refuse_others(result, "Stability", "stability")

    def plot(self, ax: Any = None) -> StabilityDisplay:
        """Draw on the given axes, or on new ones; the least stable cluster comes first."""
        figure, k = self.figure, len(self.figure.clusters)
        (ax,) = self._axes(ax, figsize=(6, 1.4 + 0.34 * k))
        order = np.argsort(np.nan_to_num(figure.jaccard, nan=-1.0), kind="stable")
        for row, cluster in enumerate(order):
            values = figure.values[cluster]
            # The same draw always gets the same place: the picture is not random.
            jitter = (np.arange(len(values)) * 2654435761 % 1000 / 1000 - 0.5) * 0.6
            ax.scatter(values, row + jitter, s=7, color=tint(cluster), alpha=0.6, lw=0)
        rows = np.arange(k)
        label = f"mean, 95 % interval ({figure.scheme}s)"
        mean, half = figure.jaccard[order], np.nan_to_num(figure.half_width[order])
        low, high = np.maximum(mean - half, 0), np.minimum(mean + half, 1)
        ax.hlines(rows, low, high, color=ink(), lw=2)
        ax.plot(mean, rows, "o", color=ink(), ms=5, label=label)
        for at, word, side in ((DISSOLVED, "dissolved", "right"), (RECOVERED, "recovered", "left")):
            ax.axvline(at, color=quiet(), lw=1, ls="--")
            away = (-4 if side == "right" else 4, 3)
            write_beside(ax, word, (at, -0.6), away, ha=side, color=quiet())
        names = [f"{as_written(str(figure.clusters[c]))} ({figure.sizes[c]})" for c in order]
        list_rows(ax, names, fontsize="small")
        ax.set(xlim=(-0.02, 1.02), xlabel="Jaccard similarity", ylabel="cluster (objects)")
        ax.legend(fontsize="x-small", loc="lower left")
        finish(ax, "Stability of the clusters\n")
        return self


class ResolutionTreeDisplay(ResultDisplay):
    """Which cluster of each partition goes where in the next finer one: a ``ResolutionTree``.

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

    @staticmethod
    def figure_of(result: Any) -> TreeFigure:
        """Lay out a tree."""
        check_kind("result", result, ResolutionTree, "resolution_tree makes one")
        return tree_figure(result)

    def plot(self, ax: Any = None) -> ResolutionTreeDisplay:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        rows = len(figure.levels)
        (ax,) = self._axes(ax, figsize=(6.4, 0.7 * rows + 1))
        largest = figure.sizes.max()
        line = {"color": quiet(), "zorder": 1, "solid_capstyle": "round"}
        for ends, n, share in zip(figure.links, figure.counts, figure.shares, strict=True):
            look = {"lw": 0.5 + 5 * n / largest, "alpha": 0.1 + 0.8 * share}
            ax.plot(figure.x[ends], figure.level[ends], **line, **look)
        colours = [tint(code) for code in figure.codes]
        area = 30 + 420 * figure.sizes / largest
        ax.scatter(figure.x, figure.level, s=area, c=colours, zorder=2, edgecolors=ground())
        crowded = np.bincount(figure.level)[figure.level] > _MOST_NAMED
        for node in np.flatnonzero(~crowded):
            place, right = (figure.x[node], figure.level[node]), 2 + np.sqrt(area[node]) / 2
            name = as_written(figure.clusters[node])
            write_beside(ax, name, place, (right, 0), va="center", color=ink())
        ax.set_yticks(range(rows), figure.levels)
        ax.set(xticks=[], xlim=(0, 1), ylim=(rows - 0.4, -0.5))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title("Where the clusters go, level by level", loc="left", fontsize="medium")
        return self


def _refuse_others(result: Any, kind: str, maker: str) -> Any:
    if not is_a(result, kind):
        raise TypeError(
            f"result must be a {kind}, got {type(result).__name__}; make one with {maker}."
        )
    return result


def _short(name: str) -> str:
    half = LONGEST // 2 - 1
    return as_written(name if len(name) <= LONGEST else f"{name[:half]}…{name[-half:]}")
