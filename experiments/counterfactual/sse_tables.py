"""Tables on sums of squares: figure 23 for REPORT.md, and those of STUDY.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments import bookkeeping
from experiments.counterfactual.starts import (
    ASIDE,
    N_STARTS_ASIDE,
    SCHEDULES,
    cells,
    excess,
)
from experiments.counterfactual.tables import LEVEL, NOT_RUN, p_of, shown_p
from wellsep.spaces import holm

TIE = 0.01  # thousandths of the SSE: less is where the tolerance happened to stop a refinement
FIGURE_ARMS = ("k-means", "k-means++", *SCHEDULES, "cf-means")
MAIN_ARMS = (
    "k-means",
    "k-means++",
    "cf-means",
    "restarts for cf-means",
    "cf-means from k-means++",
    "restarts for cf-means from k-means++",
)

Row = dict[str, Any]


def spread(values: np.ndarray) -> str:
    return f"{values.mean():.1f} ± {values.std():.1f}"


def _cost(table: dict[str, np.ndarray], arm: str) -> float:
    return float(table[arm][:, 2].mean() / table["k-means++"][:, 2].mean())


# -- figure 23 -------------------------------------------------------------------------------------


def figure23(rows: Sequence[Row]) -> str:
    tables = cells(rows)
    if not tables:
        return NOT_RUN
    lines: list[Row] = []
    for (name, k), table in tables.items():
        over = excess(table)
        lines.append({"cell": f"{name} / {k}", **{arm: spread(over[arm]) for arm in FIGURE_ARMS}})
    over = [excess(table) for table in tables.values()]
    mean: Row = {"cell": "mean"}
    cost: Row = {"cell": "time, k-means++ = 1"}
    for arm in FIGURE_ARMS:
        means = np.mean([o[arm].mean() for o in over]), np.mean([o[arm].std() for o in over])
        mean[arm] = f"{means[0]:.1f} ± {means[1]:.1f}"
        cost[arm] = f"{np.mean([_cost(table, arm) for table in tables.values()]):.1f}"
    return bookkeeping.markdown(
        [*lines, mean, cost], {"cell": "set / K"} | {a: a for a in FIGURE_ARMS}
    )


def figure23_tests(rows: Sequence[Row]) -> str:
    """Each arm against k-means from the same start, and against k-means++."""
    tables = cells(rows)
    if not tables:
        return NOT_RUN
    over = [excess(table) for table in tables.values()]
    lines: list[Row] = []
    p = []
    for arm in FIGURE_ARMS[2:]:
        for other in FIGURE_ARMS[:2]:
            # Relative, so that sets weigh alike; ties within the tolerance count as equal.
            parts = [o[arm] - o[other] for o in over]
            joined = np.concatenate([np.where(np.abs(d) <= TIE, 0.0, d) for d in parts])
            p.append(p_of(joined))
            n = len(parts)
            lines.append(
                {
                    "arm": arm,
                    "other": other,
                    "starts": f"{(joined < 0).sum()} / {(joined > 0).sum()} / "
                    f"{(joined == 0).sum()}",
                    "mean": f"{sum(d.mean() < 0 for d in parts)} of {n}",
                    "narrower": f"{sum(o[arm].std() < o[other].std() for o in over)} of {n}",
                    "lower": bool(np.median(joined) < 0 or (joined < 0).sum() > (joined > 0).sum()),
                }
            )
    for line, value in zip(lines, holm(np.array(p), LEVEL).adjusted, strict=True):
        line["p"] = shown_p(float(value))
        lower, higher = line["arm"], line["other"]
        line["better"] = "none" if value >= LEVEL else lower if line["lower"] else higher
    return bookkeeping.markdown(
        lines,
        {
            "arm": "arm", "other": "against", "starts": "starts lower / higher / equal",
            "mean": "lower mean on sets", "narrower": "narrower on sets", "p": "p (Holm)",
            "better": "better",
        },
    )  # fmt: skip


def figure23_short(rows: Sequence[Row]) -> str:
    tables = cells(rows)
    if not tables:
        return NOT_RUN
    over = [excess(table) for table in tables.values()]
    n = len(over)

    def below(arm: str, other: str) -> int:
        return sum(o[arm].mean() < o[other].mean() for o in over)

    def narrower(arm: str) -> int:
        return sum(o[arm].std() < o["k-means"].std() for o in over)

    sentences = [
        f"{arm}: mean SSE below k-means on {below(arm, 'k-means')} of {n} sets, spread narrower on "
        f"{narrower(arm)}; below k-means++ on {below(arm, 'k-means++')}."
        for arm in FIGURE_ARMS[2:]
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


# -- STUDY.md --------------------------------------------------------------------------------------


def main_table(rows: Sequence[Row]) -> str:
    tables = cells(rows)
    lines: list[Row] = []
    for (name, k), table in tables.items():
        over = excess(table)
        lines.append(
            {
                "cell": f"{name} / {k}",
                **{arm: spread(over[arm]) for arm in MAIN_ARMS},
                "runs": f"{table['restarts for cf-means'][:, 3].mean():.1f}",
                "cost": f"{_cost(table, 'cf-means'):.1f}",
            }
        )
    over = [excess(table) for table in tables.values()]
    lines.append(
        {"cell": "mean"}
        | {
            arm: f"{np.mean([o[arm].mean() for o in over]):.1f} ± "
            f"{np.mean([o[arm].std() for o in over]):.1f}"
            for arm in MAIN_ARMS
        }
    )
    titles = {arm: arm for arm in MAIN_ARMS} | {MAIN_ARMS[-1]: "restarts for it"}
    return bookkeeping.markdown(
        lines,
        {"cell": "set / K"}
        | titles
        | {"runs": "number of restarts", "cost": "time, k-means++ = 1"},
    )


def study_short(rows: Sequence[Row]) -> str:
    over = [excess(table) for table in cells(rows).values()]

    def mean(arm: str) -> float:
        return float(np.mean([o[arm].mean() for o in over]))

    within = [o["cf-means"].mean() <= o["restarts for cf-means"].mean() + TIE for o in over]
    return (
        f"* The library's cf-means ends {mean('cf-means'):.1f} thousandths above the lowest SSE "
        f"seen, as many k-means++ restarts as fit its time {mean('restarts for cf-means'):.1f}, "
        f"one k-means++ {mean('k-means++'):.1f}, one k-means {mean('k-means'):.1f}; at or below "
        f"the restarts on {sum(within)} of {len(over)} pairs of set and K."
    )


def lines_reached(rows: Sequence[Row]) -> str:
    tables = cells(rows)
    over = {cell: excess(table) for cell, table in tables.items()}
    cf, plus = "cf-means", "k-means++"
    from_plus = f"{cf} from {plus}"
    lines: dict[str, tuple[str, Callable[[dict[str, np.ndarray]], bool]]] = {
        "mean below k-means from the same start": (
            "every pair",
            lambda o: o[cf].mean() < o["k-means"].mean(),
        ),
        "standard deviation below k-means": (
            "85 %",
            lambda o: o[cf].std() < o["k-means"].std(),
        ),
        "mean at or below greedy k-means++, n_init=1": (
            "70 %",
            lambda o: o[cf].mean() <= o[plus].mean(),
        ),
        "started from k-means++: mean below it": (
            "90 %",
            lambda o: o[from_plus].mean() < o[plus].mean(),
        ),
        "mean at or below restarts of equal cost": (
            "to win the mean",
            lambda o: o[cf].mean() <= o[f"restarts for {cf}"].mean() + TIE,
        ),
        "the same, started from k-means++": (
            "",
            lambda o: o[from_plus].mean() <= o[f"restarts for {from_plus}"].mean() + TIE,
        ),
    }
    found: list[Row] = []
    for line, (wanted, better) in lines.items():
        missed = [f"{name}/{k}" for (name, k), o in over.items() if not better(o)]
        reached = f"{len(over) - len(missed)} of {len(over)}"
        reached += f" (not {', '.join(missed)})" if missed else ""
        found.append({"line": line, "wanted": wanted, "reached": reached})
    return bookkeeping.markdown(found, ("line", "wanted", "reached"))


def parts(rows: Sequence[Row]) -> str:
    tables = cells(rows)
    over = [excess(table) for table in tables.values()]
    lines: list[Row] = []
    for arm in ("k-means", "k-means++", "cf-means", *ASIDE):
        values = [o[arm][:N_STARTS_ASIDE] for o in over]
        lines.append(
            {
                "arm": arm,
                "mean": f"{np.mean([v.mean() for v in values]):.1f}",
                "std": f"{np.mean([v.std() for v in values]):.1f}",
                "cost": f"{np.mean([_cost(table, arm) for table in tables.values()]):.1f}",
            }
        )
    return bookkeeping.markdown(
        lines,
        {"arm": "part", "mean": "mean excess", "std": "mean std", "cost": "time, k-means++ = 1"},
    )


def choices(rows: Sequence[Row]) -> str:
    tables = cells(rows)
    lines: list[Row] = []
    for arm in next(iter(tables.values())):
        over = [excess(table)[arm] for table in tables.values()]
        lines.append(
            {
                "arm": "no steps" if arm == "0" else arm,
                "mean": f"{np.mean([o.mean() for o in over]):.2f}",
                "std": f"{np.mean([o.std() for o in over]):.2f}",
                "cost": f"{np.mean([_cost(table, arm) for table in tables.values()]):.1f}",
            }
        )
    return bookkeeping.markdown(
        lines,
        {"arm": "schedule, weight, steps", "mean": "mean excess", "std": "mean std"}
        | {"cost": "time, k-means++ = 1"},
    )
