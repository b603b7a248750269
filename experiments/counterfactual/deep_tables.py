"""Tables of REPORT.md on figure 24, made from its CSV.

Values are paired by seed: every array of one set has the same seeds in the same order. Tests are
Wilcoxon's over all pairs of set and seed, with Holm's correction over the lines of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import ttest_ind

from experiments import bookkeeping
from experiments.counterfactual import deep
from experiments.counterfactual.tables import (
    LEVEL,
    NOT_RUN,
    compared,
    shown_p,
    spread,
    title_of,
)
from wellsep.spaces import holm

MEASURES = {
    "acc": "accuracy",
    "ari": "ARI",
    "nmi_settled": "NMI of k-means in the space",
    "cfq_settled": "its CFQ",
}

Row = dict[str, Any]
Values = dict[tuple[str, str, str], np.ndarray]


def whole_groups(rows: Sequence[Row]) -> dict[tuple[str, int], dict[tuple[str, str], Row]]:
    """Set and seed -> rows by balance and method, of seeds that have every method of the set."""
    groups = deep.paired(list(rows))
    methods: dict[str, set[tuple[str, str]]] = {}
    for (name, _), kept in groups.items():
        methods.setdefault(name, set()).update(kept)
    return {key: kept for key, kept in sorted(groups.items()) if set(kept) == methods[key[0]]}


def deep_values(rows: Sequence[Row], column: str) -> Values:
    """Set, balance and method -> values by seed, of seeds that have every method of the set."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for (name, _), kept in whole_groups(rows).items():
        for (balance, method), row in kept.items():
            found.setdefault((name, balance, method), []).append(row[column])
    return {key: np.array(values) for key, values in found.items()}


def order_of(values: Values) -> tuple[list[str], list[str]]:
    names = list(dict.fromkeys(name for name, _, _ in values))
    methods = list(dict.fromkeys(m for _, balance, m in values if balance))
    return names, methods


def settings(values: Values) -> list[tuple[str, str]]:
    """Balance and method of every deep cf-means."""
    balances = dict.fromkeys(balance for _, balance, _ in values if balance)
    return [(balance, m) for balance in balances for m in order_of(values)[1] if m != deep.BASELINE]


def differences(values: Values, balance: str, method: str) -> dict[str, np.ndarray]:
    """Set -> value less deep k-means' of the same seed."""
    return {
        name: values[name, balance, method] - values[name, balance, deep.BASELINE]
        for name in order_of(values)[0]
    }


def pooled(values: Values, balance: str, method: str) -> np.ndarray:
    """The same over all sets."""
    return np.concatenate(list(differences(values, balance, method).values()))


def tested(values: Values) -> list[Row]:
    """Every deep cf-means against deep k-means, over all sets and seeds."""
    names, _ = order_of(values)
    return compared(
        [
            (balance, method, *(np.concatenate([values[n, balance, m] for n in names])
                                for m in (method, deep.BASELINE)))
            for balance, method in settings(values)
        ]
    )  # fmt: skip


def figure24(rows: Sequence[Row]) -> str:
    values = deep_values(rows, "nmi")
    if not values:
        return NOT_RUN
    settled = deep_values(rows, "nmi_settled")
    names, methods = order_of(values)
    lines = []
    for label, source in (("nearest random centre", values), ("k-means from it", settled)):
        line = {"balance": "before training", "method": label}
        lines.append(line | {n: spread(source[n, "", deep.BEFORE]) for n in names})
    for balance in dict.fromkeys(b for _, b, _ in values if b):
        for method in methods:
            line = {"balance": balance, "method": method}
            lines.append(line | {n: spread(values[n, balance, method]) for n in names})
    counts = {name: len(values[name, "", deep.BEFORE]) for name in names}
    columns = {"balance": "balance", "method": "NMI"}
    columns |= {name: f"{title_of(name)}, {count} seeds" for name, count in counts.items()}
    return bookkeeping.markdown(lines, columns)


def figure24_tests(rows: Sequence[Row]) -> str:
    """NMI of every deep cf-means against deep k-means: over all sets and seeds."""
    values = deep_values(rows, "nmi")
    if not values:
        return NOT_RUN
    names, _ = order_of(values)
    names_of = {"first": "deep cf-means", "second": deep.BASELINE, "none": "none"}
    lines = []
    for line in tested(values):
        balance, method = line["where"], line["what"]
        found = differences(values, balance, method)
        runs = pooled(values, balance, method)
        deviation = runs.std(ddof=1)
        narrower = sum(
            values[n, balance, method].std() < values[n, balance, deep.BASELINE].std()
            for n in names
        )
        line["effect"] = f"{runs.mean() / deviation:+.1f}" if deviation else ""
        line["sets"] = f"{sum(d.mean() > 0 for d in found.values())} of {len(names)}"
        line["narrower"] = f"{narrower} of {len(names)}"
        lines.append(line | {"better": names_of[line["better"]]})
    return bookkeeping.markdown(
        lines,
        {
            "where": "balance", "what": "deep cf-means",
            "difference": "NMI − deep k-means, mean over runs",
            "effect": "in standard deviations",
            "higher": "runs higher / lower / equal", "sets": "mean higher on sets",
            "narrower": "narrower on sets", "p": "p (Holm)", "better": "better",
        },
    )  # fmt: skip


def figure24_sets(rows: Sequence[Row]) -> str:
    """The same set by set: mean difference, and seeds in which it is above zero."""
    values = deep_values(rows, "nmi")
    if not values:
        return NOT_RUN
    lines = []
    for balance, method in settings(values):
        line = {"balance": balance, "method": method}
        for name, found in differences(values, balance, method).items():
            line[name] = f"{found.mean():+.3f} ({(found > 0).sum()} of {len(found)})"
        lines.append(line)
    columns = {"balance": "balance", "method": "deep cf-means"}
    return bookkeeping.markdown(lines, columns | {n: title_of(n) for n in order_of(values)[0]})


def figure24_measures(rows: Sequence[Row]) -> str:
    """The same by other measures, Holm over the whole table."""
    kinds = {column: deep_values(rows, column) for column in MEASURES}
    if not kinds["acc"]:
        return NOT_RUN
    found = {column: tested(values) for column, values in kinds.items()}
    p = np.array([line["raw"] for lines in found.values() for line in lines])
    adjusted = iter(holm(p, LEVEL).adjusted)
    told: dict[tuple[str, str], Row] = {}
    for column, lines in found.items():
        for line in lines:
            where = {"balance": line["where"], "method": line["what"]}
            cell = f"{line['difference']} ({line['higher']}), p {shown_p(float(next(adjusted)))}"
            told.setdefault((line["where"], line["what"]), where)[column] = cell
    columns = {"balance": "balance", "method": "deep cf-means"}
    return bookkeeping.markdown(list(told.values()), columns | MEASURES)


def figure24_short(rows: Sequence[Row]) -> str:
    """What figure 24 says in sentences."""
    values = deep_values(rows, "nmi")
    if not values:
        return NOT_RUN
    settled = deep_values(rows, "nmi_settled")
    names, methods = order_of(values)

    def mean(found: Values, balance: str, method: str) -> float:
        return float(np.mean([found[n, balance, method].mean() for n in names]))

    trained = dict.fromkeys((balance, method) for _, balance, method in values if balance)
    best = max(trained, key=lambda key: mean(values, *key))
    sentences = [
        f"Before training the nearest of the random centres gives a mean NMI of "
        f"{mean(values, '', deep.BEFORE):.3f} over the sets, k-means from them "
        f"{mean(settled, '', deep.BEFORE):.3f}; the best of the trained, {' '.join(best)}, has "
        f"{mean(values, *best):.3f}."
    ]
    for balance in dict.fromkeys(b for _, b, _ in values if b):
        base = mean(values, balance, deep.BASELINE)
        told = []
        for method in methods[1:]:
            found = differences(values, balance, method)
            runs = pooled(values, balance, method)
            told.append(
                f"{method} {runs.mean():+.3f} (higher in {(runs > 0).sum()} of {len(runs)} runs, "
                f"on {sum(d.mean() > 0 for d in found.values())} of {len(names)} sets)"
            )
        sentences.append(
            f"Balance “{balance}”: deep k-means {base:.3f} over the sets; {'; '.join(told)}."
        )
    return "\n".join(f"* {sentence}" for sentence in sentences)


def figure24_space(rows: Sequence[Row]) -> str:
    """What training does to the space: k-means in it, its CFQ and its reconstruction error."""
    columns = ("nmi", "nmi_settled", "cfq_settled", "reconstruction", "clusters")
    kinds = {column: deep_values(rows, column) for column in columns}
    values = kinds["nmi"]
    if not values:
        return NOT_RUN
    names, methods = order_of(values)
    lines = []
    keys = [("", deep.BEFORE)]
    keys += [(b, m) for b in dict.fromkeys(b for _, b, _ in values if b) for m in methods]
    for balance, method in keys:
        line: Row = {"balance": balance or "before training", "method": method if balance else ""}
        for column, found in kinds.items():
            digits = 1 if column == "clusters" else 3
            mean = np.mean([found[n, balance, method].mean() for n in names])
            line[column] = f"{mean:.{digits}f}"
        lines.append(line)
    return bookkeeping.markdown(
        lines,
        {
            "balance": "balance", "method": "method", "nmi": "NMI",
            "nmi_settled": "NMI of k-means in the space", "cfq_settled": "its CFQ",
            "reconstruction": "reconstruction error", "clusters": "clusters that have points",
        },
    )  # fmt: skip


def figure24_parts(rows: Sequence[Row]) -> str:
    """Whether the seeds of the first commit and those of later ones may be taken together."""
    groups = whole_groups(rows)
    if not groups:
        return NOT_RUN
    commits = {key: {row["commit"] for row in kept.values()} for key, kept in groups.items()}

    def of(keys: Sequence[tuple[str, int]]) -> Values:
        return deep_values([row for key in keys for row in groups[key].values()], "nmi")

    first = of([key for key in groups if commits[key] == {rows[0]["commit"]}])
    later = of([key for key in groups if commits[key] != {rows[0]["commit"]}])
    if not later:
        return "All rows are of one commit."
    one_commit = [key for key, found in commits.items() if len(found) == 1]
    verdicts = [[line["better"] for line in tested(v)] for v in (of(list(groups)), of(one_commit))]
    same = sum(a == b for a, b in zip(*verdicts, strict=True))
    p = np.array([ttest_ind(first[k], later[k], equal_var=False).pvalue for k in later])
    told = [
        f"{balance} {method} {pooled(first, balance, method).mean():+.3f} / "
        f"{pooled(later, balance, method).mean():+.3f}"
        for balance, method in settings(later)
    ]
    sentences = [
        f"NMI less deep k-means', mean over first / later runs: {', '.join(told)}.",
        f"Of {len(p)} pairs of set and method the NMIs of first and later seeds differ most with "
        f"p = {min(p):.3f} (Welch's t), {min(holm(p, LEVEL).adjusted):.3f} after Holm.",
        f"{len(groups) - len(one_commit)} of {len(groups)} groups have rows of both commits; "
        f"without them {same} of {len(verdicts[0])} verdicts above are the same.",
    ]
    return "\n".join([_levels(first, later), "", *(f"* {s}" for s in sentences)])


def _levels(first: Values, later: Values) -> str:
    """NMI of first and later seeds by set, before training and of deep k-means."""
    names, _ = order_of(later)
    balances = dict.fromkeys(balance for _, balance, _ in later if balance)
    keys = [("", deep.BEFORE), *((balance, deep.BASELINE) for balance in balances)]
    lines = []
    for name in names:
        counts = [len(part[name, "", deep.BEFORE]) for part in (first, later)]
        line = {"set": title_of(name), "seeds": " / ".join(map(str, counts))}
        for key in keys:
            line[key[0]] = f"{spread(first[name, *key])} / {spread(later[name, *key])}"
        lines.append(line)
    columns = {"set": "set", "seeds": "seeds, first / later", "": "nearest random centre"}
    columns |= {balance: f"deep k-means, {balance}" for balance in balances}
    return bookkeeping.markdown(lines, columns)
