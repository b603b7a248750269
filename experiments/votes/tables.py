"""What DECLARED.md decides, and the tables on the fresh runs: from voting.csv alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from experiments.ace.tables import NOTHING, probability, table
from experiments.bookkeeping import read
from wellsep import spaces

HERE = Path(__file__).parent
TABLE, NOTHING_TABLE = HERE / "voting.csv", HERE / "voting_nothing.csv"
COPIES_TABLE = HERE / "voting_copies.csv"
CANDIDATES = ("plain", "seeded", "self-seeded", "two rounds")
RIVALS = ("UMAP silhouette", "generalisation", "seeded above clouds")
TRIVIAL = ("more clusters", "middle K")
OTHERS = (
    "the rule", "plain, NMI", "ACE, no dip test", "input", "own space", "mean of admitted spaces",
    "mean of all spaces", *RIVALS, "RankMe", "α-ReQ", *TRIVIAL,
)  # fmt: skip
RANGES_OF_K = ("K varies", "K low", "K high")
KINDS = (*RANGES_OF_K, "K fixed", "with noise")
TIES = {"r_s": 0.02, "regret": 0.005}  # a set is won by more than this
SIGN = {"r_s": 1, "regret": -1}
TWO_THIRDS = 2 / 3
NEARLY_NOTHING = 0.05  # of E


class Outcomes:
    """Values of a judge by set, for one kind of runs and one measure."""

    def __init__(self, rows: Iterable[dict[str, Any]], kind: str, measure: str = "ari") -> None:
        mine = [row for row in rows if row["kind"] == kind]
        self.sets = sorted({row["set"] for row in mine})
        self.judges = list(dict.fromkeys(row["judge"] for row in mine))
        self.measure = measure
        self._of = {(row["judge"], row["set"]): row for row in mine}

    def values(self, judge: str, end: str) -> np.ndarray:
        """r_s or regret of a judge, set by set."""
        column = f"{end}_{self.measure}"
        return np.array([float(self._of[judge, name][column]) for name in self.sets])

    def mean(self, judge: str, end: str) -> float:
        return float(self.values(judge, end).mean())

    def duel(self, judge: str, end: str, against: str = "ACE") -> tuple[int, int, int]:
        """Sets won, tied and lost against another judge."""
        gain = SIGN[end] * (self.values(judge, end) - self.values(against, end))
        won, lost = int((gain > TIES[end]).sum()), int((gain < -TIES[end]).sum())
        return won, len(gain) - won - lost, lost

    def wins_two_thirds(self, judge: str, against: str = "ACE") -> bool:
        return self.duel(judge, "r_s", against)[0] >= TWO_THIRDS * len(self.sets)

    def holm(self, end: str) -> dict[str, float]:
        """Candidate -> adjusted p of its sign test against ACE."""
        return dict(
            zip(CANDIDATES, holm([sign_test(self.duel(c, end)) for c in CANDIDATES]), strict=True)
        )


def sign_test(duel: tuple[int, int, int]) -> float:
    """Two-sided p; 1 if every set is tied."""
    won, _, lost = duel
    return float(stats.binomtest(won, won + lost).pvalue) if won + lost else 1.0


def holm(pvalues: Sequence[float]) -> list[float]:
    """Adjusted p-values."""
    return [float(p) for p in spaces.holm(np.array(pvalues), 0.05).adjusted]


# ---- the declared rule ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Decision:
    """What the thresholds of DECLARED.md say."""

    wins_order: bool  # (a)
    lower_regret: bool  # (b)
    off_range: tuple[str, ...]  # (c): ranges of K in which the regret is above ACE's by over .02
    k_varies: str  # the judge that ranks where K varies
    k_fixed: str  # and where it is fixed
    with_noise: bool  # whether the new default is also for runs with noise
    named: tuple[str, ...]  # rivals that become a named judge

    @property
    def names_range(self) -> bool:
        """Whether the headline says that agreement sees no K beyond those tried."""
        return self.k_varies != "ACE" and bool(self.off_range)


def decide(rows: list[dict[str, Any]]) -> Decision:
    """Apply the thresholds, as declared."""
    at = {kind: Outcomes(rows, kind) for kind in KINDS}
    varies = at["K varies"]

    def off(judge: str) -> tuple[str, ...]:
        cut = {kind: at[kind].mean(judge, "regret") - at[kind].mean("ACE", "regret")
               for kind in ("K low", "K high")}  # fmt: skip
        return tuple(kind for kind, more in cut.items() if more > 0.02)

    def order_and_pick(judge: str) -> tuple[bool, bool]:
        lower = varies.mean(judge, "regret") < varies.mean("ACE", "regret")
        return varies.wins_two_thirds(judge), lower

    wins, lower = order_and_pick("seeded")
    chosen = "ACE"
    if wins and lower:
        chosen = "seeded"
        regret = {c: np.mean([at[kind].mean(c, "regret") for kind in RANGES_OF_K])
                  for c in CANDIDATES}  # fmt: skip
        better = [
            c
            for c in CANDIDATES
            if c != "seeded"
            and all(order_and_pick(c))
            and set(off(c)) <= set(off("seeded"))
            and regret["seeded"] - regret[c] >= 0.01
            and varies.wins_two_thirds(c, "seeded")
        ]
        chosen = min(better, key=regret.__getitem__, default="seeded")
    fixed, noisy = at["K fixed"], at["with noise"]
    adjusted = fixed.holm("r_s")
    ahead = [
        c
        for c in CANDIDATES
        if fixed.wins_two_thirds(c)
        and adjusted[c] < 0.05
        and fixed.mean("ACE", "regret") - fixed.mean(c, "regret") >= 0.01
    ]
    return Decision(
        wins_order=wins,
        lower_regret=lower,
        off_range=off("seeded"),
        k_varies=chosen,
        k_fixed=min(ahead, key=lambda c: fixed.mean(c, "regret"), default="ACE"),
        with_noise=noisy.mean("seeded", "regret") - noisy.mean("ACE", "regret") <= 0.02,
        named=tuple(
            rival
            for rival in RIVALS
            if varies.wins_two_thirds(rival, chosen)
            and varies.mean(rival, "regret") < varies.mean(chosen, "regret")
        ),
    )


def decided(rows: list[dict[str, Any]]) -> str:
    """Every declared condition, its figures and what it says."""
    found = decide(rows)
    at = {kind: Outcomes(rows, kind) for kind in KINDS}
    varies, fixed = at["K varies"], at["K fixed"]

    def regrets(kind: str, judge: str = "seeded", against: str = "ACE") -> str:
        one = at[kind]
        return (
            f"{decimal(one.mean(judge, 'regret'))} against {decimal(one.mean(against, 'regret'))}"
        )

    def order(one: Outcomes, judge: str, against: str = "ACE") -> str:
        return "{} won, {} tied, {} lost".format(*one.duel(judge, "r_s", against))

    lines = [
        ["(a) seeded wins two thirds of the sets on order", order(varies, "seeded"),
         _yes(found.wins_order)],
        ["(b) its mean regret is below ACE's", regrets("K varies"), _yes(found.lower_regret)],
        *(
            [f"(c) {kind}: its mean regret is above ACE's by at most .02", regrets(kind),
             _yes(kind not in found.off_range)]
            for kind in ("K low", "K high")
        ),
    ]  # fmt: skip
    total = {c: np.mean([at[kind].mean(c, "regret") for kind in RANGES_OF_K]) for c in CANDIDATES}
    for c in CANDIDATES:
        if c != "seeded":
            figures = (
                f"regret of three ranges {decimal(total[c])} against {decimal(total['seeded'])}; "
                f"order against seeded {order(varies, c, 'seeded')}"
            )
            lines.append([f"{c} takes the place of seeded", figures, _yes(found.k_varies == c)])
    adjusted = fixed.holm("r_s")
    for c in CANDIDATES:
        figures = (
            f"{order(fixed, c)}, Holm p {probability(adjusted[c])}; regret {regrets('K fixed', c)}"
        )
        lines.append([f"K fixed: {c} takes the place of ACE", figures, _yes(found.k_fixed == c)])
    lines.append(
        ["with noise: the regret of seeded is above ACE's by at most .02", regrets("with noise"),
         _yes(found.with_noise)]
    )  # fmt: skip
    for rival in RIVALS:
        figures = (
            f"{order(varies, rival, found.k_varies)}; "
            f"regret {regrets('K varies', rival, found.k_varies)}"
        )
        lines.append(
            [f"{rival} beats {found.k_varies} where K varies", figures, _yes(rival in found.named)]
        )
    return table(["declared", "found", "met"], lines)


def left_out(rows: list[dict[str, Any]]) -> str:
    """The decision with each set left out in turn."""
    whole = decide(rows)
    changed = {}
    for name in sorted({row["set"] for row in rows}):
        found = decide([row for row in rows if row["set"] != name])
        other = [
            f"{field.name.replace('_', ' ')}: {_told(getattr(found, field.name))}"
            for field in dataclasses.fields(found)
            if getattr(found, field.name) != getattr(whole, field.name)
        ]
        changed[name] = "; ".join(other) or "the same"
    return table(["left out", "the decision is then"], [[k, v] for k, v in changed.items()])


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return _yes(value)
    return ", ".join(value) or "none" if isinstance(value, tuple) else str(value)


def _yes(value: bool) -> str:
    return "yes" if value else "**no**"


# ---- tables ---------------------------------------------------------------------------------


def decimal(value: float) -> str:
    """Three digits without the leading zero, a true minus."""
    text = f"{value:.3f}".replace("-0.000", "0.000")
    return text.replace("0.", ".", 1).replace("-", "−") if abs(value) < 0.9995 else text


def by_judge(rows: list[dict[str, Any]], kind: str) -> str:
    """Means over the sets, and sets won, tied and lost against ACE."""
    one = Outcomes(rows, kind)
    adjusted = {end: one.holm(end) for end in TIES}
    lines = []
    for judge in ("ACE", *CANDIDATES, *OTHERS):
        if judge not in one.judges:
            continue
        cells = [f"**{judge}**" if judge in CANDIDATES else judge]
        for end in TIES:
            cells.append(decimal(one.mean(judge, end)))
            if judge == "ACE":
                cells += ["", "", ""]
                continue
            duel = one.duel(judge, end)
            cells += ["/".join(map(str, duel)), probability(sign_test(duel))]
            cells.append(probability(adjusted[end][judge]) if judge in CANDIDATES else "")
        lines.append(cells)
    head = ["judge", "r_s", "won/tied/lost", "p", "Holm", "regret", "won/tied/lost", "p", "Holm"]
    return table(head, lines)


def by_set(rows: list[dict[str, Any]], kind: str) -> str:
    """r_s · regret of the judges that matter, set by set."""
    one = Outcomes(rows, kind)
    judges = ("ACE", *CANDIDATES, "seeded above clouds", *TRIVIAL)
    first = {row["set"]: row for row in rows if row["kind"] == kind}
    cells = {j: [one.values(j, end) for end in TIES] for j in judges}
    lines = [
        [name, str(first[name]["runs"]), decimal(float(first[name]["spread_ari"])),
         *(" · ".join(decimal(values[i]) for values in cells[j]) for j in judges)]
        for i, name in enumerate(one.sets)
    ]  # fmt: skip
    return table(["set", "runs", "range of ARI", *judges], lines)


def against_trivial(rows: list[dict[str, Any]]) -> str:
    """Sets that ACE and the proposed consensus win, tie and lose against rules that see only K."""
    lines = []
    for kind in KINDS:
        one = Outcomes(rows, kind)
        for rule in TRIVIAL:
            cells = [kind, rule]
            for end in TIES:
                cells.append(decimal(one.mean(rule, end)))
                for judge in ("ACE", "seeded"):
                    duel = one.duel(judge, end, rule)
                    told = "/".join(map(str, duel))
                    cells.append(f"{told}, p {probability(sign_test(duel))}")
            lines.append(cells)
    head = ["runs", "rule", "its r_s", "ACE against it", "seeded against it", "its regret",
            "ACE against it", "seeded against it"]  # fmt: skip
    return table(head, lines)


def by_measure(rows: list[dict[str, Any]], measure: str) -> str:
    """Mean r_s · regret of every judge in every kind of runs."""
    at = {kind: Outcomes(rows, kind, measure) for kind in KINDS}
    lines = [
        [judge, *(" · ".join(decimal(at[kind].mean(judge, end)) for end in TIES) for kind in KINDS)]
        for judge in ("ACE", *CANDIDATES, *OTHERS)
    ]
    return table(["judge", *KINDS], lines)


def nothing(rows: list[dict[str, Any]]) -> str:
    """E of every set, and spaces past the dip test."""
    of = {(row["set"], row["task"]): row for row in rows}
    sets = sorted({(row["empty"], row["set"]) for row in rows})
    lines = []
    for empty, name in sets:
        cells = [f"*{name}*" if empty else name]
        for task in ("vary", "fixed", "noise"):
            row = of.get((name, task))
            if row is None:
                cells += ["", ""]
                continue
            value = decimal(float(row["E"]))
            cells += [
                f"**{value}**" if row["E"] < NEARLY_NOTHING else value,
                f"{row['past_dip']} of {row['spaces']}",
            ]
        lines.append(cells)
    head = ["set", "E, K varies", "past the dip test", "E, K fixed", "past the dip test",
            "E, UMAP", "past the dip test"]  # fmt: skip
    return table(head, lines)


def copied(rows: list[dict[str, Any]]) -> str:
    """In how many experiments a candidate picks the worst run once it was copied."""
    shares = sorted({row["shuffled"] for row in rows})
    names = {"vary": "K varies", "fixed": "K fixed", "noise": "with noise"}
    lines = []
    for judge in CANDIDATES:
        cells = [f"**{judge}**"]
        for share in shares:
            mine = [r for r in rows if (r["judge"], r["shuffled"]) == (judge, share)]
            cells += [str(sum(r["picked"] for r in mine if r["task"] == task)) for task in names]
        lines.append(cells)
    head = [
        f"{name}, {f'{share:.0%} shuffled' if share else 'equal'}"
        for share in shares
        for name in names.values()
    ]
    return table(["judge", *head], lines)


def found_to_vary(rows: list[dict[str, Any]]) -> str:
    """In how many experiments the rule says that K varies."""
    lines = []
    for kind in KINDS:
        told = {row["set"]: int(row["k_varies"]) for row in rows if row["kind"] == kind}
        lines.append([kind, str(len(told)), str(sum(told.values()))])
    return table(["runs", "sets", "K varies by the rule"], lines)


def power(n: int = 13) -> str:
    """How often a sign test over n sets finds a judge that wins a set this often."""
    needed = min(k for k in range(n + 1) if stats.binomtest(k, n).pvalue < 0.05 and k > n / 2)
    lines = [
        [decimal(rate), decimal(float(stats.binom.sf(needed - 1, n, rate)))]
        for rate in (0.65, 0.75, 0.85, 0.95)
    ]
    return table([f"chance to win a set ({needed} of {n} are needed)", "found in"], lines)


def blocks(place: Path) -> dict[str, str]:
    """Marker -> table of REPORT.md on the fresh runs."""
    rows, empty = read(place / TABLE.name), read(place / NOTHING_TABLE.name)
    makers: dict[str, Any] = {
        "voting-decided": lambda: decided(rows),
        "voting-left-out": lambda: left_out(rows),
        **{
            f"voting-{kind.replace(' ', '-')}": lambda kind=kind: by_judge(rows, kind)
            for kind in KINDS
        },
        "voting-sets": lambda: by_set(rows, "K varies"),
        "voting-sets-high": lambda: by_set(rows, "K high"),
        "voting-sets-fixed": lambda: by_set(rows, "K fixed"),
        "voting-trivial": lambda: against_trivial(rows),
        "voting-rule": lambda: found_to_vary(rows),
        "voting-power": power,
        "voting-nmi": lambda: by_measure(rows, "nmi"),
        "voting-acc": lambda: by_measure(rows, "acc"),
    }
    found = {marker: make() if rows else NOTHING for marker, make in makers.items()}
    copies = read(place / COPIES_TABLE.name)
    return found | {
        "voting-nothing": nothing(empty) if empty else NOTHING,
        "voting-copies": copied(copies) if copies else NOTHING,
    }
