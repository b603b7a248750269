"""Displays of a ranking: how sure each rank is, and which spaces take part."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import check_count
from wellsep.evaluate import Judgement, Ranking
from wellsep.plot.display import Display, accent, answer_of, as_written, ink, quiet, tidy
from wellsep.report.figures.ace import dip_figure
from wellsep.report.figures.records import Dips

LONGEST = 40  # letters of a name at an axis
MOST_SPACES = 40  # that get a row each; more are counted in bars


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
                ax.annotate(
                    f"first in {p:.0%}",
                    (max(high[row], rank[row]), row),
                    (8, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize="x-small",
                    color=quiet(),
                )
        counts = ranking.classes.sizes[ranking.classes.of[runs]]
        names = [
            _short(ranking.names[i]) + (f" (×{count})" if count > 1 else "")
            for i, count in zip(runs, counts, strict=True)
        ]
        ax.set_yticks(rows, names, fontsize="small")
        ax.tick_params(axis="y", length=0)
        ax.set(ylim=(len(runs) - 0.4, -0.6), xlabel="rank")
        ax.set_xlim(left=0.5)
        ax.xaxis.get_major_locator().set_params(integer=True)
        title = "Ranks of the runs"
        if len(runs) < n_distinct:
            title += f", the best {len(runs)} of {n_distinct}"
        ax.set_title(title, loc="left", fontsize="medium")
        ax.legend(fontsize="x-small", loc="lower left")
        tidy(ax)
        return self


class DipDisplay(Display):
    """The dip test of every space: can a single mode be ruled out?

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.plot import DipDisplay
    >>> scores = ws.Scores.from_matrix([[0.1, 0.5], [0.2, 0.6]], dip_pvalues=[0.001, 0.4])
    >>> DipDisplay.from_result(ws.ace(scores)).figure.passed.tolist()
    [True, False]
    """

    figure: Dips

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> DipDisplay:
        """Draw the tests of ACE's answer."""
        scores = result.scores if isinstance(result, Judgement) else None
        found = dip_figure(answer_of(result), scores)
        if found is None:
            raise ValueError("result must hold dip tests, got none; judge the runs with dip=True.")
        return cls(found).plot(ax=ax)

    def plot(self, ax: Any = None) -> DipDisplay:
        """Draw on the given axes, or on new ones: a row per space, or bars if they are many."""
        figure, n = self.figure, len(self.figure.names)
        many = n > MOST_SPACES
        (ax,) = self._axes(ax, figsize=(6, 3 if many else 1.2 + 0.26 * n))
        values = np.nan_to_num(figure.adjusted, nan=1.0)
        if many:
            edges = np.linspace(0, 1, 21)
            parts = [values[figure.passed], values[~figure.passed]]
            ax.hist(
                parts, edges, stacked=True, color=[accent(), quiet(0.6)], label=["kept", "left out"]
            )
            ax.set_ylabel("spaces")
        else:
            order = np.lexsort((figure.pvalue, values))
            for kept, colour, label in ((True, accent(), "kept"), (False, quiet(), "left out")):
                rows = np.flatnonzero(figure.passed[order] == kept)
                ax.plot(values[order][rows], rows, "o", color=colour, ms=6, label=label)
            ax.set_yticks(range(n), [_short(figure.names[i]) for i in order], fontsize="small")
            ax.tick_params(axis="y", length=0)
            ax.set_ylim(n - 0.4, -0.6)
        ax.axvline(figure.alpha, color=ink(), lw=1, ls="--")
        ax.set(xlim=(-0.02, 1.02), xlabel="p-value of a single mode, adjusted (Holm)")
        ax.set_title("Dip tests of the embeddings", loc="left", fontsize="medium")
        ax.legend(fontsize="x-small", loc="lower right" if not many else "best")
        tidy(ax)
        return self


def _short(name: str) -> str:
    half = LONGEST // 2 - 1
    return as_written(name if len(name) <= LONGEST else f"{name[:half]}…{name[-half:]}")
