"""Figures of choosing K and of paired runs: curves over K, box plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wellsep.report.figures import Boxes, Column, Curve, Curves, RankingTable


def curves_figure(chosen: Any) -> Curves:
    """Every index over K with its spread, the votes and the stability of a ``ChosenK``."""
    found = tuple(
        Curve(
            name=name,
            k=np.asarray(curve["k"]),
            mean=np.asarray(curve["mean"], dtype=float),
            low=np.asarray(curve["low"], dtype=float),
            high=np.asarray(curve["high"], dtype=float),
            pick=curve["pick"],
            direction=int(curve["direction"]),
        )
        for name, curve in chosen.curves().items()
    )
    votes = chosen.votes
    return Curves(
        curves=found,
        k=np.asarray(chosen.k),
        votes=np.array([votes[int(k)] for k in chosen.k]),
        stability=np.asarray(chosen.stability, dtype=float),
        best=int(chosen.best),
        n_repeats=len(chosen.values),
    )


def k_table(chosen: Any) -> RankingTable:
    """A row per K: votes first, then every index with its spread, stability, clusters, seconds."""
    columns = chosen.columns()
    votes, k = columns["votes"], columns["k"]
    best = int(chosen.best)
    order = np.array(sorted(range(len(k)), key=lambda i: (k[i] != best, -votes[i], k[i])))
    directions = dict(zip(chosen.indices, np.asarray(chosen.directions).tolist(), strict=True))
    found = [Column("k", "K", "name", tuple(f"K = {k[i]}" for i in order))]
    found.append(Column("votes", "votes", "float", _cells(votes, order), "One vote per index.", 1))
    for name, values in columns.items():
        if name in ("k", "votes"):
            continue
        said, direction, kind = _said(name, directions)
        if name.endswith(" ±"):
            values = [_spread(v, columns[name[:-2]][i]) for i, v in enumerate(values)]
        found.append(Column(name, name, kind, _cells(values, order), said, direction))
    return RankingTable(order, tuple(found))


def _said(name: str, directions: Mapping[str, int]) -> tuple[str, int, str]:
    if name in directions:
        way = "larger" if directions[name] > 0 else "smaller"
        return f"Mean over the repeats; {way} is better.", int(directions[name]), "float"
    if name.endswith(" ±"):
        return f"Standard deviation of {name[:-2]} over the repeats.", 0, "float"
    return {
        "stability": ("Mean adjusted Rand index between repeats.", 1, "float"),
        "n_clusters": ("Clusters found, mean over the repeats.", 0, "float"),
        "coverage": ("Share of the objects that are not noise.", 0, "share"),
        "seconds": ("Time of a fit.", 0, "float"),
    }.get(name, ("", 0, "float"))


def _spread(spread: float, mean: float) -> float:
    """A spread that is rounding alone is none."""
    return 0.0 if spread <= 1e-12 * abs(mean) else spread


def box_figure(values: Mapping[str, Any], *, label: str = "sum of squared errors") -> Boxes:
    """Box plots of several methods over the same seeds (runs are paired row by row).

    Examples
    --------
    >>> found = box_figure({"k-means": [4.0, 2.0, 3.0], "cf-means": [2.0, 2.0, 2.5]})
    >>> found.summary[0].tolist(), found.wins.tolist()
    ([2.0, 2.5, 3.0, 3.5, 4.0], [0.5, 2.5])
    """
    columns = [np.asarray(column, dtype=float).reshape(-1) for column in values.values()]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"values must hold one number per run and method, got {sorted(lengths)} runs."
        )
    table = np.column_stack(columns)
    summary = np.array([_five_numbers(column[np.isfinite(column)]) for column in table.T])
    known = np.where(np.isfinite(table), table, np.inf)
    least = (known == known.min(axis=1, keepdims=True)) & np.isfinite(known)
    shares = least / np.maximum(least.sum(axis=1, keepdims=True), 1)
    return Boxes(tuple(values), table, summary, shares.sum(axis=0), label)


def _five_numbers(values: np.ndarray) -> np.ndarray:
    """Whiskers at the last value within 1.5 box heights (Tukey), quartiles, median."""
    if not len(values):
        return np.full(5, np.nan)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (high - low)
    inside = values[(values >= low - reach) & (values <= high + reach)]
    return np.array([inside.min(), low, middle, high, inside.max()])


def _cells(values: list[Any], order: np.ndarray) -> tuple[Any, ...]:
    taken = [values[i] for i in order]
    return tuple(None if isinstance(v, float) and not np.isfinite(v) else v for v in taken)
