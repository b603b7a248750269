"""ChosenK: every index's opinion on every number of clusters, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._checks import check_count
from wellsep._display import html_box, html_table
from wellsep._records import Record


@dataclass(frozen=True, eq=False)
class ChosenK(Record):
    """What `choose_k` found; R repeats, nK numbers of clusters, I indices.

    ``save(folder)`` writes it like every other record: ``record.json`` and one archive of arrays.
    ``load(folder)`` reads it back. Folders with ``chosen-k.json``, written before, are refused.

    Attributes
    ----------
    k : ndarray of shape (nK,)
        The numbers of clusters tried.
    indices : tuple of str
        The indices, with their parameters.
    directions : ndarray of shape (I,)
        1 where greater is better, -1 where smaller is.
    values : ndarray of shape (R, nK, I)
        Scores as computed; NaN where undefined (`reasons` says why).
    n_clusters, coverage, seconds : ndarray of shape (R, nK)
        Clusters found, share of objects counted, time of the fit.
    stability : ndarray of shape (nK,)
        Mean adjusted Rand index between the partitions of any two repeats; NaN without repeats.
    labels : ndarray of shape (nK, n)
        The partitions of the first repeat.
    objects : ndarray of shape (n,)
        The rows of X these labels belong to; all of them unless subsampled.
    reasons : mapping (K, index) -> str
        Why a score is undefined.
    estimator, parameter : str
        What was fitted, and its parameter that holds K.
    """

    k: np.ndarray
    indices: tuple[str, ...]
    directions: np.ndarray
    values: np.ndarray
    n_clusters: np.ndarray
    coverage: np.ndarray
    seconds: np.ndarray
    stability: np.ndarray
    labels: np.ndarray
    objects: np.ndarray
    estimator: str
    parameter: str
    reasons: Mapping[tuple[int, str], str] = field(default_factory=dict)

    @property
    def mean(self) -> np.ndarray:
        """(nK, I): mean over the repeats in which a score is defined."""
        defined = ~np.isnan(self.values)
        total = np.where(defined, self.values, 0.0).sum(axis=0)
        counts = defined.sum(axis=0)
        return np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)

    @property
    def spread(self) -> np.ndarray:
        """(nK, I): standard deviation over the repeats; NaN with fewer than two."""
        defined = ~np.isnan(self.values)
        counts = defined.sum(axis=0)
        squares = np.where(defined, (self.values - self.mean) ** 2, 0.0).sum(axis=0)
        variance = np.divide(
            squares, counts - 1, out=np.full(squares.shape, np.nan), where=counts > 1
        )
        return np.sqrt(variance)

    @property
    def picks(self) -> dict[str, int | None]:
        """The K each index likes best by its mean; None where it is undefined for every K."""
        found = _best(self.mean * self.directions)
        return {name: self._k_at(p) for name, p in zip(self.indices, found, strict=True)}

    @property
    def picks_by_repeat(self) -> np.ndarray:
        """(R, I): the K each index likes best in each repeat; 0 where undefined for every K."""
        found = np.stack([_best(values * self.directions) for values in self.values])
        return np.where(found >= 0, self.k[found], 0)

    @property
    def votes(self) -> dict[int, float]:
        """K -> votes: one per index, shared out over the repeats by what it picks in each."""
        picks = self.picks_by_repeat
        return {int(k): float((picks == k).mean(axis=0).sum()) for k in self.k}

    @property
    def best(self) -> int:
        """The K with most votes; of equals the one with the better mean rank, then the smaller."""
        votes = np.array(list(self.votes.values()))
        if not votes.any():
            raise ValueError(
                f"indices must be defined for some K of k_range, got none; "
                f"{'; '.join(sorted(set(self.reasons.values())))}."
            )
        order = np.lexsort((self.k, self._mean_rank(), -votes.round(12)))
        return int(self.k[order[0]])

    def labels_for(self, k: int | None = None) -> np.ndarray:
        """The partition of the first repeat with k clusters, of the best K by default."""
        k = self.best if k is None else k
        where = np.flatnonzero(self.k == check_count("k", k, 0))
        if not len(where):
            raise ValueError(f"k must be among {self.k.tolist()}, got {k}.")
        return self.labels[where[0]]

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per K; per index its mean and, with repeats, its spread."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas; install it, or read .mean and .k.") from None
        return pd.DataFrame(self.columns()).set_index("k")

    def columns(self) -> dict[str, list[Any]]:
        """The table as named columns of plain numbers."""
        columns: dict[str, list[Any]] = {"k": self.k.tolist()}
        repeated = len(self.values) > 1
        for position, name in enumerate(self.indices):
            columns[name] = self.mean[:, position].tolist()
            if repeated:
                columns[f"{name} ±"] = self.spread[:, position].tolist()
        if repeated:
            columns["stability"] = self.stability.tolist()
        columns["votes"] = list(self.votes.values())
        columns["n_clusters"] = self.n_clusters.mean(axis=0).tolist()
        columns["coverage"] = self.coverage.mean(axis=0).tolist()
        columns["seconds"] = self.seconds.mean(axis=0).tolist()
        return columns

    def curves(self) -> dict[str, dict[str, Any]]:
        """What a plot of scores over K needs, index by index."""
        spread = np.nan_to_num(self.spread)
        return {
            name: {
                "k": self.k.tolist(),
                "mean": self.mean[:, i].tolist(),
                "low": (self.mean - spread)[:, i].tolist(),
                "high": (self.mean + spread)[:, i].tolist(),
                "pick": self.picks[name],
                "direction": int(self.directions[i]),
            }
            for i, name in enumerate(self.indices)
        }

    def explain(self) -> str:
        """The choice in sentences: who picks what, how surely, and what to be wary of."""
        best, votes = self.best, self.votes
        lines = [
            f"K = {best} has {votes[best]:.3g} of {len(self.indices)} votes "
            f"({self.k[0]} to {self.k[-1]} tried, {len(self.values)} repeat(s))."
        ]
        for position, name in enumerate(self.indices):
            lines.append(self._sentence(position, name))
        lines += self._cautions(best)
        return "\n".join(lines)

    def _sentence(self, position: int, name: str) -> str:
        pick = self.picks[name]
        if pick is None:
            return f"{name} is undefined for every K: {self.reasons.get((int(self.k[0]), name))}."
        at = int(np.flatnonzero(self.k == pick)[0])
        text = f"{name} picks {pick} at {self.mean[at, position]:.4g}"
        if len(self.values) > 1:
            often = int((self.picks_by_repeat[:, position] == pick).sum())
            text += f" ± {self.spread[at, position]:.2g}, in {often} of {len(self.values)} repeats"
        signed = self.mean[:, position] * self.directions[position]
        signed[at] = np.nan
        if not np.isnan(signed).all():
            second = int(np.nanargmax(signed))
            text += f"; next is {self.k[second]} at {self.mean[second, position]:.4g}"
        return text + "."

    def _cautions(self, best: int) -> list[str]:
        found = []
        if len(self.k) > 2 and best in (self.k[0], self.k[-1]):
            found.append(f"K = {best} is an end of the range: try a wider one.")
        at = int(np.flatnonzero(self.k == best)[0])
        if self.stability[at] < 0.8:
            found.append(
                f"The repeats agree little at K = {best} (adjusted Rand index "
                f"{self.stability[at]:.2f}): its clusters hang on the start or the sample."
            )
        covered = float(self.coverage[:, at].mean())
        if covered < 0.5:
            found.append(
                f"K = {best} is judged on {covered:.0%} of the objects; the others are noise."
            )
        if (self.n_clusters[:, at] != best).any():
            found.append(f"Asked for {best}, some fits found another number of clusters.")
        return found

    def _mean_rank(self) -> np.ndarray:
        signed = np.where(np.isnan(self.mean), -np.inf, self.mean * self.directions)
        better = (signed[:, None, :] < signed[None, :, :]).sum(axis=1)
        return better.mean(axis=1)

    def _k_at(self, position: int) -> int | None:
        return int(self.k[position]) if position >= 0 else None

    def __repr__(self) -> str:
        picks = ", ".join(f"{name}: {k}" for name, k in self.picks.items())
        return f"ChosenK({picks})"

    def _repr_html_(self) -> str:
        title = f"K = {self.best} chosen with {self.estimator}"
        return html_box(title, self.explain().splitlines(), html_table(self.columns(), most=50))


def _best(signed: np.ndarray) -> np.ndarray:
    """Per column the row of the greatest value, -1 where all are NaN."""
    none = np.isnan(signed).all(axis=0)
    return np.where(none, -1, np.where(np.isnan(signed), -np.inf, signed).argmax(axis=0))
