"""Displays of how runs agree with each other."""

from __future__ import annotations

from typing import Any

from wellsep.evaluate import Consensus, Judgement
from wellsep.plot.display import Display, agreement_map, heat_size, name_rows
from wellsep.report.figures.records import RunAgreement
from wellsep.report.figures.runs import run_agreement


class RunAgreementDisplay(Display):
    """Heat map of the agreement between all runs, similar ones next to each other.

    Equal partitions are one row, named after their first run, with the number of runs.

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

    @classmethod
    def from_result(cls, result: Any, *, ax: Any = None) -> RunAgreementDisplay:
        """Draw a ``Consensus``, or the agreement (ARI) that a ``Judgement`` holds."""
        return cls(run_agreement(_vote_of(result))).plot(ax=ax)

    def plot(self, ax: Any = None, *, colorbar: bool = True) -> RunAgreementDisplay:
        """Draw on the given axes, or on new ones."""
        figure = self.figure
        (ax,) = self._axes(ax, figsize=heat_size(figure.labels))
        colours = agreement_map(figure.floor)
        self.image_ = ax.imshow(figure.values, cmap=colours, vmin=figure.floor, vmax=1)
        ax.set_xticks([])
        name_rows(ax, figure.labels)
        ax.set_title("Agreement of the runs", loc="left", fontsize="medium")
        if colorbar:
            self.figure_.colorbar(self.image_, ax=ax, label=figure.measure, shrink=0.8)
        return self


def _vote_of(result: Any) -> Consensus:
    if isinstance(result, Consensus):
        return result
    if not isinstance(result, Judgement):
        raise TypeError(f"result must be a Consensus or a Judgement, got {type(result).__name__}.")
    if result.vote is None or result.vote.n_distinct == 1:
        raise ValueError("result must compare at least 2 different clusterings, got one.")
    return result.vote
