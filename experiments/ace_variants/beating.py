"""Can ACE be beaten? Variants of its parts, judged by leaving one data set out: beat.csv.

A family is one part of ACE with its alternatives; the first variant is ACE as published. The
variant is chosen on all other sets and judged on the one left out, so a family that only fits the
sets at hand gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import wellsep as ws
from experiments.ace.archive import Entry, names
from experiments.ace.evaluating import (
    correlation,
    experiments,
    kept,
    regret,
    stamped,
    write_csv,
)
from experiments.ace.paper import HERE as PAPER
from experiments.ace.paper import MAIN, split
from experiments.ace_variants import cpu_runs
from experiments.ace_variants.variants import Case, both, combined, variants
from experiments.bookkeeping import ROOT, provenance, read, say

KINDS = {"deep": "deep runs", "cpu": "k-means runs", "simulation": "simulation"}
# The one hypothesis tried on fresh sets: (family, variant, against).
HYPOTHESIS = ("screen and index", "all ten, distances", "silhouette, scaled component")
# Score matrices of the authors' simulation; the README there names their source.
HERE = Path(__file__).resolve().parent
SIMULATION = ROOT / "tests" / "oracles" / "ace" / "simulation"
SIMULATED = {
    "S_euclidean": ("silhouette", 1),
    "S_cosine": ("silhouette_cosine", 1),
    "S_ch": ("calinski_harabasz", 1),
    "S_dav": ("davies_bouldin", 1),  # stored with its sign turned
}
TESTED = {(HYPOTHESIS[0], HYPOTHESIS[1]), (HYPOTHESIS[0], HYPOTHESIS[2])}
# A win by a margin: at least this much more r_s on the sets left out, p < .05, no more regret.
MARGIN = 0.02
LEVEL = 0.05


def folder(place: Path) -> Path:
    """Where this study's files lie: here, or with all others in a folder that was named."""
    return HERE if place == PAPER else place


def cases(place: Path) -> Iterable[Case]:
    """Deep runs, k-means runs, and the authors' simulation."""
    for entry in experiments(place / "scores.zip"):
        one = kept(entry)
        yield _from_kept("deep", one, split(one.name)[2])
    for kind in ("cpu", "fresh"):
        archive = folder(place) / f"{kind}_scores.zip"
        for name in names(archive):
            one = kept(Entry(archive, name))
            yield _from_kept(kind, one, f"{kind} {one.name.split('-', 2)[2]}")
    for path in sorted(SIMULATION.glob("sim_*.npz")):
        stored = np.load(path)
        scores = {
            index: (
                ws.Scores.from_matrix(
                    stored[key], index=index, direction=sign, dip_pvalues=stored["dip_pvalue"]
                ),
                index,
            )
            for key, (index, sign) in SIMULATED.items()
        }
        screens = {"pca-scaled": stored["dip_pvalue"]}
        name = f"simulation, spread {path.stem.split('_')[2]}"
        yield Case("simulation", path.stem, name, scores, screens, stored["nmi"])


def _from_kept(kind: str, one: Any, name: str) -> Case:
    scores = {index: (one.scores, label) for index, label in one.labels.items()}
    return Case(kind, one.name, name, scores, one.screens, one.truth["nmi"])


def rows_of(case: Case) -> list[dict[str, Any]]:
    """Every variant of every family on one experiment."""
    found = [
        (family, index, variant, scores)
        for index in MAIN
        for family, variant, scores in variants(case, index)
    ]
    for make in (combined, both):
        found += [(family, "", variant, scores) for family, variant, scores in make(case)]
    rows = []
    for family, index, variant, scores in found:
        r, tau = correlation(scores, case.nmi)
        rows.append(
            {
                "kind": case.kind, "experiment": case.name, "set": case.set, "family": family,
                "index": index, "variant": variant, "r_s": _cell(r), "tau_b": _cell(tau),
                "regret": _cell(regret(scores, case.nmi)),
            }
        )  # fmt: skip
    return rows


def _cell(value: float) -> float | str:
    return round(float(value), 4) if np.isfinite(value) else ""


def write_beat(place: Path, *, small: bool = False) -> list[dict[str, Any]]:
    """Score what is missing of the k-means runs and write beat.csv anew."""
    sets = ("wine", "digits") if small else None
    cpu_runs.score_all(folder(place) / "cpu_scores.zip", sets)
    cpu_runs.score_all(folder(place) / "fresh_scores.zip", ("iris",) if small else cpu_runs.FRESH)
    rows: list[dict[str, Any]] = []
    for case in cases(place):
        found = rows_of(case)
        if case.kind == "fresh":  # for one test alone
            found = [r for r in found if (r["family"], r["variant"]) in TESTED]
        rows += found
    origin = provenance("experiments/ace/*.py", "experiments/ace_variants/*.py")
    rows = stamped(rows, folder(place) / "beat.csv", origin)
    write_csv(folder(place) / "beat.csv", rows)
    say(f"beat.csv: {len(rows)} rows")
    return rows


DEFAULTS = {
    "weights": "PageRank",
    "choice": "largest mean",
    "screen": "scaled component",
    "shrinkage": "ACE",
    "pooling": "ACE",
    "index": "ACE, silhouette",
    "screen and index": "silhouette, scaled component",
}


def by_set(rows: Iterable[dict[str, Any]], family: str, what: str) -> dict[str, dict[str, float]]:
    """variant -> set -> mean over the set's experiments and indices."""
    cells: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["family"] == family and row[what] is not None:
            cells.setdefault((row["variant"], row["set"]), []).append(row[what])
    found: dict[str, dict[str, float]] = {}
    for (variant, name), values in cells.items():
        found.setdefault(variant, {})[name] = float(np.mean(values))
    return found


def kinds_for(family: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The simulation is stored without spaces: it has four indices and one screen."""
    return tuple(
        k
        for k in kinds
        if k != "simulation" or family not in ("screen", "index", "screen and index")
    )


def leave_one_out(
    rows: list[dict[str, Any]], family: str, kinds: tuple[str, ...]
) -> dict[str, Any]:
    """Choose a variant on the other sets, judge it on the one left out."""
    own = [row for row in rows if row["kind"] in kinds_for(family, kinds)]
    r, cost = by_set(own, family, "r_s"), by_set(own, family, "regret")
    base = DEFAULTS[family]
    if base not in r:
        return {}
    sets = sorted(r[base])
    # Only variants that every one of these sets has can be compared.
    there = [v for v in r if all(s in r[v] for s in sets)]
    chosen, gained, saved = [], [], []
    for left in sets:
        rest = [s for s in sets if s != left]
        if not rest:
            return {}
        best = max(there, key=lambda v: (np.mean([r[v][s] for s in rest]), v == base))
        chosen.append(best)
        gained.append(r[best][left] - r[base][left])
        saved.append(cost[base][left] - cost[best][left])
    hindsight = max(there, key=lambda v: np.mean([r[v][s] for s in sets]))
    names = sorted(set(chosen), key=lambda name: (-chosen.count(name), name))
    return {
        "sets": len(sets),
        "default": base,
        "default r_s": float(np.mean([r[base][s] for s in sets])),
        "left-out r_s": float(np.mean([r[base][s] for s in sets]) + np.mean(gained)),
        "gain": float(np.mean(gained)),
        "p": paired_p(gained),
        "won": int(np.sum(np.array(gained) > 1e-9)),
        "lost": int(np.sum(np.array(gained) < -1e-9)),
        "default regret": float(np.mean([cost[base][s] for s in sets])),
        "saved regret": float(np.mean(saved)),
        "chosen": ", ".join(f"{n} ({chosen.count(n)})" for n in names),
        "hindsight": hindsight,
        "hindsight r_s": float(np.mean([r[hindsight][s] for s in sets])),
    }


def confirmation(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The hypothesis on the fresh sets: one variant, one test, nothing chosen."""
    family, variant, base = HYPOTHESIS
    own = [row for row in rows if row["kind"] == "fresh"]
    r, cost = by_set(own, family, "r_s"), by_set(own, family, "regret")
    if variant not in r:
        return {}
    sets = sorted(set(r[variant]) & set(r[base]))
    gained = [r[variant][s] - r[base][s] for s in sets]
    return {
        "sets": len(sets),
        "default r_s": float(np.mean([r[base][s] for s in sets])),
        "r_s": float(np.mean([r[variant][s] for s in sets])),
        "gain": float(np.mean(gained)),
        "p": paired_p(gained),
        "won": int(np.sum(np.array(gained) > 1e-9)),
        "lost": int(np.sum(np.array(gained) < -1e-9)),
        "saved regret": float(np.mean([cost[base][s] - cost[variant][s] for s in sets])),
    }


def paired_p(differences: list[float]) -> float:
    """Two-sided Wilcoxon signed-rank p over sets; 1 where nothing differs."""
    values = np.asarray(differences)
    if np.allclose(values, 0):
        return 1.0
    return float(stats.wilcoxon(values, zero_method="zsplit").pvalue)


def within_reach(n_sets: int) -> bool:
    """Whether so many sets, all of them won, give p < .05 in the two-sided test."""
    return 2.0 ** (1 - n_sets) < LEVEL


def wins_by_margin(found: dict[str, Any]) -> bool:
    """The rule of the README."""
    return bool(
        found and found["gain"] >= MARGIN and found["p"] < LEVEL and found["saved regret"] >= 0
    )


def family_means(rows: list[dict[str, Any]], family: str, kinds: tuple[str, ...]) -> list[dict]:
    """Mean over sets of every variant, with its paired difference to the default."""
    own = [row for row in rows if row["kind"] in kinds_for(family, kinds)]
    r, cost = by_set(own, family, "r_s"), by_set(own, family, "regret")
    base = r.get(DEFAULTS[family], {})
    found = []
    for variant, values in r.items():
        shared = sorted(set(values) & set(base))
        if not shared:
            continue
        gaps = [values[s] - base[s] for s in shared]
        found.append(
            {
                "variant": variant,
                "sets": len(shared),
                "r_s": float(np.mean([values[s] for s in shared])),
                "difference": float(np.mean(gaps)),
                "p": paired_p(gaps),
                "regret": float(np.mean([cost[variant][s] for s in shared])),
            }
        )
    return found


def read_beat(place: Path) -> list[dict[str, Any]]:
    return read(folder(place) / "beat.csv")
