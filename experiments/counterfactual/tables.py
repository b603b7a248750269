"""Tables of REPORT.md on table 2, made from its CSV, and the paired tests that others share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from experiments import bookkeeping
from experiments.counterfactual import picks
from wellsep.spaces import holm

HERE = Path(__file__).resolve().parent
TITLES = {
    "optdigits": "Optdigits",
    "pendigits": "Pendigits",
    "mnist_embeddings10": "MNIST Embeddings",
    "usps_9298": "USPS",
    "mnist_test": "MNIST test",
    "fashion_mnist_test": "Fashion-MNIST test",
}
NOT_RUN = "*Not yet run.*"
LEVEL = 0.05

Row = dict[str, Any]


def spread(values: np.ndarray) -> str:
    """Mean ± standard deviation; how many values are missing, if any."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return f"{known[0]:.3f}" if len(known) else ""
    missing = "" if len(known) == len(values) else f" ({len(values) - len(known)} undefined)"
    return f"{known.mean():.3f} ± {known.std(ddof=1):.3f}{missing}"


def p_of(differences: np.ndarray) -> float:
    """Wilcoxon's signed-rank test; 1 where nothing differs."""
    differences = differences[np.isfinite(differences)]
    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0


def shown_p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def verdict(difference: float, p: float) -> str:
    if p >= LEVEL:
        return "none"
    return "first" if difference > 0 else "second"


def compared(pairs: Sequence[tuple[str, str, np.ndarray, np.ndarray]]) -> list[Row]:
    """Paired differences (where, what, first, second), Holm over all lines."""
    p = np.array([p_of(first - second) for *_, first, second in pairs])
    adjusted = holm(p, LEVEL).adjusted
    lines = []
    for (where, what, first, second), raw, value in zip(pairs, p, adjusted, strict=True):
        difference = (first - second)[np.isfinite(first - second)]
        low = f"{(difference < 0).sum()}"
        lines.append(
            {
                "where": where,
                "what": what,
                "difference": f"{difference.mean():+.3f}",
                "higher": f"{(difference > 0).sum()} / {low} / {(difference == 0).sum()}",
                "raw": float(raw),
                "p": shown_p(float(value)),
                "better": verdict(float(difference.mean()), float(value)),
            }
        )
    return lines


def published() -> dict[tuple[str, str], tuple[float, float]]:
    """Set and method -> the poster's mean and standard deviation."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in bookkeeping.read(HERE / "expected.csv"):
        found.setdefault((row["row"], row["method"]), {})[row["measure"]] = row["published"]
    return {key: (value["mean"], value["std"]) for key, value in found.items()}


def trials(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Set and protocol -> trials in order."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda r: r["trial"]):
        found.setdefault((row["set"], row["protocol"]), []).append(row)
    return found


def title_of(name: str) -> str:
    return TITLES.get(name, name)


def table2(rows: Sequence[Row]) -> str:
    groups, told = trials(rows), published()
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        for method, index in picks.POSTER.items():
            mean, std = told.get((title_of(name), method), (np.nan, np.nan))
            line = {"set": title_of(name), "method": method}
            line["poster"] = f"{mean:.3f} ± {std:.3f}" if np.isfinite(mean) else ""
            for protocol in picks.PROTOCOLS:
                found = groups.get((name, protocol), [])
                line[protocol] = spread(picks.picked(found, index)) if found else ""
            lines.append(line)
    count = {p: min((len(g) for (_, q), g in groups.items() if q == p), default=0)
             for p in picks.PROTOCOLS}  # fmt: skip
    return bookkeeping.markdown(
        lines,
        {
            "set": "set",
            "method": "index",
            "poster": "poster",
            "classes": f"random classes, {count['classes']} trials",
            "seeds": f"all classes, {count['seeds']} trials",
        },
    )


def table2_tests(rows: Sequence[Row]) -> str:
    groups, told = trials(rows), published()
    lines = []
    for protocol in picks.PROTOCOLS:
        pairs = []
        for (name, kind), found in groups.items():
            if kind != protocol:
                continue
            cfq = picks.picked(found, "cfq")
            for method in ("SIL", "VRC"):
                other = picks.picked(found, picks.POSTER[method])
                pairs.append((name, f"CFQ − {method}", cfq, other))
        for what in dict.fromkeys(pair[1] for pair in pairs):
            parts = [pair for pair in pairs if pair[1] == what]
            first, second = (np.concatenate([part[i] for part in parts]) for i in (2, 3))
            pairs.append(("all", what, first, second))
        for line in compared(pairs):
            title, method = title_of(line["where"]), line["what"][-3:]
            if (title, method) in told:
                poster = told[title, "CFQ"][0] - told[title, method][0]
                line["poster"] = f"{poster:+.3f}"
            names = {"first": "CFQ", "second": method, "none": "none"}
            lines.append(line | {"set": title, "protocol": protocol}
                         | {"better": names[line["better"]]})  # fmt: skip
    return bookkeeping.markdown(
        lines,
        {
            "protocol": "protocol", "set": "set", "what": "difference", "poster": "poster",
            "difference": "ours", "higher": "trials higher / lower / equal", "p": "p (Holm)",
            "better": "better",
        },
    )  # fmt: skip


def table2_all(rows: Sequence[Row]) -> str:
    """Every index of ours beside them, under random classes."""
    groups = {name: g for (name, protocol), g in trials(rows).items() if protocol == "classes"}
    kinds = {index: (lambda found, index=index: picks.picked(found, index))
             for index in picks.INDICES}  # fmt: skip
    means = {
        index: float(np.mean([np.nanmean(pick(found)) for found in groups.values()]))
        for index, pick in kinds.items()
    }
    lines = []
    for index in sorted(means, key=lambda name: -means[name]):
        line: Row = {"index": index, "mean": f"{means[index]:.3f}"}
        line |= {name: spread(kinds[index](found)) for name, found in groups.items()}
        chosen = [(row[f"k_{index}"], picks.n_classes(row)) for g in groups.values() for row in g]
        known = [(k, c) for k, c in chosen if k is not None]
        line["right"] = f"{100 * np.mean([k == c for k, c in known]):.0f} %"
        line["off"] = f"{np.mean([k - c for k, c in known]):+.1f}"
        lines.append(line)
    for label, measure in (
        ("*best K in hindsight*", picks.best_possible),
        ("*K = number of classes*", picks.at_true_count),
    ):
        found_means = [measure(found).mean() for found in groups.values()]
        line = {"index": label, "mean": f"{np.mean(found_means):.3f}"}
        lines.append(line | {name: spread(measure(found)) for name, found in groups.items()})
    columns = {"index": "index", "mean": "mean of sets"}
    columns |= {name: title_of(name) for name in groups}
    columns |= {"right": "K right", "off": "mean of K − classes"}
    return bookkeeping.markdown(lines, columns)


def table2_short(rows: Sequence[Row]) -> str:
    """What table 2 says in sentences."""
    groups, told = trials(rows), published()
    sentences = []
    poster_sets = [
        name for name in picks.SETS if (name, "classes") in groups and (TITLES[name], "CFQ") in told
    ]
    gaps = [
        abs(picks.picked(groups[name, "classes"], index).mean() - told[TITLES[name], method][0])
        for name in poster_sets
        for method, index in picks.POSTER.items()
    ]
    if gaps:
        sentences.append(
            f"Under random classes our {len(gaps)} means lie {np.mean(gaps):.3f} from the "
            f"poster's on average, at most {max(gaps):.3f}."
        )
    for method in ("SIL", "VRC"):
        ours = [
            np.nanmean(
                picks.picked(groups[name, "classes"], "cfq")
                - picks.picked(groups[name, "classes"], picks.POSTER[method])
            )
            for name in poster_sets
        ]
        poster = [told[TITLES[name], "CFQ"][0] - told[TITLES[name], method][0]
                  for name in poster_sets]  # fmt: skip
        if ours:
            sentences.append(
                f"CFQ has the higher mean than {method} on {sum(d > 0 for d in ours)} of "
                f"{len(ours)} sets (poster: {sum(d > 0 for d in poster)}); mean difference "
                f"{np.mean(ours):+.3f} (poster: {np.mean(poster):+.3f})."
            )
    return "\n".join(f"* {s}" for s in sentences) or "None of the poster's sets is among these."
