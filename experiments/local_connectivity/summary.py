"""From single starts to results.csv: means, distances from the paper, paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from experiments.bookkeeping import read
from experiments.local_connectivity.measure import LCDS, MEASURES, METHODS
from experiments.local_connectivity.protocols import (
    GRID,
    PREFERRED,
    Protocol,
    Source,
)
from wellsep.spaces import holm

Row = dict[str, Any]
HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.csv"
ALL = "all three"
COLUMNS = (
    "part", "set", "scaling", "starts", "method", "t", "measure", "value", "sd", "n", "better",
    "worse", "p", "p_holm", "seeds", "commit",
)  # fmt: skip
# Lower is better, changes in per cent; of the others higher is better, changes are differences.
RELATIVE = (*LCDS, "sse")
TESTED = (*LCDS, "silhouette", "purity", "nmi", "sse")


def published() -> dict[tuple[str, str, str], dict[int | None, float]]:
    """(set, method, measure) -> t -> value of the paper's tables 2 and 3; t is None for KM's."""
    found: dict[tuple[str, str, str], dict[int | None, float]] = {}
    for row in read(EXPECTED):
        values = found.setdefault((row["row"], row["method"], row["measure"]), {})
        values[row["t"]] = float(row["published"])
    return found


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows that hold all the wanted values."""
    values, get = tuple(wanted.values()), itemgetter(*wanted)
    target = values if len(values) > 1 else values[0]
    return [row for row in rows if get(row) == target]


def of_protocol(rows: Iterable[Row], title: str, protocol: Protocol, seeds: int) -> list[Row]:
    """The first starts of one data set under one protocol."""
    found = select(rows, set=title, scaling=protocol.scaling, starts=protocol.starts)
    return [row for row in found if row["seed"] < seeds]


def distance(rows: Sequence[Row], title: str) -> float:
    """Mean of |ours / paper - 1| over the set's twenty values in tables 2 and 3."""
    columns = {shown: short for short, shown in METHODS.items()}
    away = []
    for (name, method, measure), values in published().items():
        if name != title or method not in columns:
            continue
        for t, value in values.items():
            ours = [row[f"{columns[method]}_{measure}"] for row in rows if t in (None, row["t"])]
            away.append(abs(np.nanmean(ours) / value - 1.0))
    return float(np.mean(away))


def nearest(rows: Sequence[Row], title: str, seeds: int) -> Protocol:
    """The protocol of the grid that comes nearest to the paper's rows of a data set."""
    return min(GRID, key=lambda one: distance(of_protocol(rows, title, one, seeds), title))


def paired_p(first: np.ndarray, second: np.ndarray) -> float:
    """Wilcoxon's signed-rank test, two-sided; 1 where nothing differs."""
    differences = np.asarray(second, float) - np.asarray(first, float)
    differences = differences[np.isfinite(differences)]
    return float(wilcoxon(differences).pvalue) if np.any(differences != 0) else 1.0


def _row(rows: Sequence[Row], **values: Any) -> Row:
    seeds = sorted({row["seed"] for row in rows})
    origin = {
        "seeds": f"{seeds[0]}-{seeds[-1]}" if seeds else None,
        "commit": " ".join(sorted({row["commit"] for row in rows})),
    }
    return dict.fromkeys(COLUMNS) | origin | values


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def means(part: str, rows: Sequence[Row], keys: Row) -> list[Row]:
    """Mean and spread of every measure of both methods, for each t."""
    found = []
    for t in sorted({row["t"] for row in rows}):
        at_t = select(rows, t=t)
        columns = [(m, x, x) for m in METHODS for x in MEASURES]
        columns += [("lof", f"{x}_means", f"{x}_means") for x in ("avg_lcd", "max_lcd")]
        for method, column, measure in columns:
            raw = [row[f"{method}_{column}"] for row in at_t]
            if None in raw:
                continue
            # A single cluster has no silhouette.
            values = np.array(raw, dtype=float)
            values = values[np.isfinite(values)]
            found.append(
                _row(
                    at_t,
                    part=part,
                    **keys,
                    method=METHODS[method],
                    t=t,
                    measure=measure,
                    value=_short(values.mean()),
                    sd=_short(values.std(ddof=1)) if len(values) > 1 else None,
                    n=len(values),
                )
            )
    return found


def changes(part: str, rows: Sequence[Row], keys: Row) -> list[Row]:
    """What LOFKM changes, start by start: mean, better and worse starts, p."""
    found = []
    for t in sorted({row["t"] for row in rows}):
        at_t = select(rows, t=t)
        for measure in TESTED:
            km, lof = (
                np.array([row[f"{method}_{measure}"] for row in at_t], float) for method in METHODS
            )
            better, worse = _wins(lof - km, measure)
            found.append(
                _row(
                    at_t,
                    part=part,
                    **keys,
                    method="change",
                    t=t,
                    measure=measure,
                    value=_change(np.nanmean(km), np.nanmean(lof), measure),
                    n=len(km),
                    better=better,
                    worse=worse,
                    p=_short(paired_p(km, lof)),
                )
            )
    return found


def _change(km: float, lof: float, measure: str) -> float:
    return _short(100.0 * (lof / km - 1.0) if measure in RELATIVE else lof - km)


def _wins(differences: np.ndarray, measure: str) -> tuple[int, int]:
    gains = -differences if measure in RELATIVE else differences
    return int((gains > 0).sum()), int((gains < 0).sum())


def across(rows: Sequence[Row]) -> list[Row]:
    """Over all further sets: the median change, and Wilcoxon's test of the sets' changes."""
    found = []
    for t in sorted({row["t"] for row in rows}):
        for measure in TESTED:
            per_set = select(rows, t=t, measure=measure, method="change")
            values = np.array([row["value"] for row in per_set])
            better, worse = _wins(values, measure)
            found.append(
                dict.fromkeys(COLUMNS)
                | {
                    "part": "across",
                    "method": "change",
                    "t": t,
                    "measure": measure,
                    "value": _short(float(np.median(values))),
                    "n": len(values),
                    "better": better,
                    "worse": worse,
                    "p": _short(paired_p(np.zeros(len(values)), values)),
                    "seeds": per_set[0]["seeds"],
                    "commit": " ".join(sorted({w for r in per_set for w in r["commit"].split()})),
                }
            )
    return found


def with_holm(rows: list[Row]) -> list[Row]:
    """The rows with p-values adjusted for all tests among them."""
    tested = [row for row in rows if row["p"] is not None]
    adjusted = holm([row["p"] for row in tested], alpha=0.05).adjusted
    for row, p in zip(tested, adjusted, strict=True):
        row["p_holm"] = _short(float(p))
    return rows


def summarise(
    paper: Sequence[Row],
    further: Sequence[Row],
    weights: Sequence[Row],
    *,
    grid_seeds: dict[str, int],
    seeds: int,
    sources: Sequence[Source],
    control: Sequence[Source],
) -> list[Row]:
    """All rows of results.csv from the rows of single starts."""
    results: list[Row] = []
    away: dict[Protocol, list[float]] = {}
    for title, tried in grid_seeds.items():
        for protocol in GRID:
            rows = of_protocol(paper, title, protocol, tried)
            value = distance(rows, title)
            away.setdefault(protocol, []).append(value)
            results.append(_distance(rows, title, protocol, value, tried))
    for protocol, values in away.items():
        results.append(_distance([], ALL, protocol, float(np.mean(values)), None))
    for row in weights:
        results += [
            dict.fromkeys(COLUMNS)
            | {key: row[key] for key in ("set", "scaling", "t", "commit")}
            | {"part": "weights", "measure": measure, "value": row[measure]}
            for measure in ("objects", "features", "classes", "largest_weight", "above_two")
        ]
    tests: list[Row] = []
    for title, tried in grid_seeds.items():
        best = nearest(paper, title, tried)
        for part, protocol in (("preferred", PREFERRED), ("nearest", best)):
            rows = of_protocol(paper, title, protocol, seeds)
            keys = {"set": title, **protocol._asdict()}
            results += means(part, rows, keys)
            tests += changes(part, rows, keys)
    _add(results, tests, "control", further, control)
    results += with_holm(tests)
    tests = []
    _add(results, tests, "further", further, sources)
    results += with_holm(tests)
    return results + with_holm(across(tests))


def _add(results, tests, part, starts, sources):
    for source in sources:
        rows = select(starts, set=source.title)
        keys = {"set": source.title, **Protocol(source.scaling, "objects")._asdict()}
        results += means(part, rows, keys)
        tests += changes(part, rows, keys)


def _distance(rows, title, protocol, value, n):
    return _row(
        rows,
        part="grid",
        set=title,
        **protocol._asdict(),
        measure="distance",
        value=_short(value),
        n=n,
    )
