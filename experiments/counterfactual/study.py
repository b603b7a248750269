"""Does cf-means find lower sums of squares than k-means, and at what price?

    WELLSEP_DATA=<folder of npz files> python experiments/counterfactual/study.py choose
    WELLSEP_DATA=<folder of npz files> python experiments/counterfactual/study.py run
    WELLSEP_DATA=<folder of npz files> python experiments/counterfactual/study.py whole
    python experiments/counterfactual/study.py report

``choose`` compares settings on sets that the study itself does not use; ``run`` is the study, on
paired starts and cut sets; ``whole`` repeats it with fewer starts on whole sets. All append to
their CSV and go on where they stopped. ``report`` prints the tables of STUDY.md. One thread; time
is processor time.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import wellsep as ws

HERE = Path(__file__).resolve().parent
CHOICES = HERE / "results_choose.csv"
RESULTS = HERE / "results_sse.csv"
WHOLE_RESULTS = HERE / "results_whole.csv"
COLUMNS = ("set", "n", "d", "k", "start", "arm", "inertia", "seconds", "runs")

# name -> (number of classes, points kept)
STUDIED = {
    "wifi_localization": (4, 5000),
    "yeast": (10, 5000),
    "segment": (7, 5000),
    "avila": (12, 5000),
    "pendigits": (10, 5000),
    "mnist_embeddings10": (10, 5000),
    "optdigits": (10, 5000),
    "usps_9298": (10, 2000),
    "mnist_test": (10, 2000),
}
WHOLE = {
    "optdigits": (10, 5620),
    "pendigits": (10, 10992),
    "avila": (12, 20867),
    "usps_9298": (10, 9298),
    "mnist_test": (10, 10000),
    "mnist_embeddings10": (10, 70000),
}
DEVELOPED_ON = {
    "vehicle": (4, 2000),
    "glass": (6, 2000),
    "ecoli": (8, 2000),
    "mnist_umap3": (10, 3000),
    "usps_11000": (10, 1500),
    "fashion_mnist_test": (10, 1000),
}
TIE = 0.01  # thousandths of the SSE: less is where the tolerance happened to stop a refinement
N_STARTS = 50  # of the arms the study is about
N_STARTS_ASIDE = 10  # of the arms that show what each part is worth
ASIDE = {
    "oscillate alone": {"schedule": "oscillate", "weight": 1.5, "n_steps": 80, "n_moves": 0},
    "attract alone": {"schedule": "attract", "weight": 1.0, "n_steps": 120, "n_moves": 0},
    "repel alone": {"schedule": "repel", "weight": 1.0, "n_steps": 40, "n_moves": 0},
    "moves alone": {"n_steps": 0},
    "attract and moves": {"schedule": "attract"},
    "repel and moves": {"schedule": "repel"},
    "oscillate and moves": {"schedule": "oscillate"},
}

Row = dict[str, Any]


def load(name: str, keep: int) -> np.ndarray:
    X = ws.load_dataset(name, flatten=True, download=False).X.astype(np.float64)
    return X[np.random.default_rng(0).permutation(len(X))[:keep]]


def fitted(model: Any, X: np.ndarray) -> tuple[float, float]:
    """Inertia and processor seconds of one fit."""
    begin = time.process_time()
    model.fit(X)
    return model.inertia_, time.process_time() - begin


def random_start(X: np.ndarray, k: int, start: int) -> np.ndarray:
    return X[np.random.default_rng(start).choice(len(X), k, replace=False)]


def restarts_within(X: np.ndarray, k: int, start: int, seconds: float) -> tuple[float, float, int]:
    """k-means++ as often as begins within the time; the last one may finish late."""
    draws = np.random.RandomState(100_000 + start)
    best, spent, runs = np.inf, 0.0, 0
    while spent < seconds:
        inertia, taken = fitted(ws.KMeans(k, random_state=draws), X)
        best, spent, runs = min(best, inertia), spent + taken, runs + 1
    return best, spent, runs


def study_arms(X: np.ndarray, k: int, start: int) -> Iterator[tuple[str, float, float, int]]:
    given = random_start(X, k, start)
    yield ("k-means", *fitted(ws.KMeans(k, init=given), X), 1)
    yield ("k-means++", *fitted(ws.KMeans(k, random_state=start), X), 1)
    for arm, init in (("cf-means", given), ("cf-means from k-means++", "k-means++")):
        inertia, seconds = fitted(ws.CFMeans(k, init=init, random_state=start), X)
        yield arm, inertia, seconds, 1
        best, spent, runs = restarts_within(X, k, start, seconds)
        yield f"restarts for {arm}", best, spent, runs


def all_arms(X: np.ndarray, k: int, start: int) -> Iterator[tuple[str, float, float, int]]:
    yield from study_arms(X, k, start)
    if start < N_STARTS_ASIDE:
        given = random_start(X, k, start)
        for arm, options in ASIDE.items():
            model = ws.CFMeans(k, init=given, random_state=start, **options)
            yield (arm, *fitted(model, X), 1)


def choice_arms(X: np.ndarray, k: int, start: int) -> Iterator[tuple[str, float, float, int]]:
    given = random_start(X, k, start)
    settings: list[Row] = [{"n_steps": 0}]
    for n_steps in (4, 8, 16):
        settings += [
            {"schedule": "oscillate", "weight": 1.0, "n_steps": n_steps},
            {"schedule": "oscillate", "weight": 1.5, "n_steps": n_steps},
            {"schedule": "attract", "weight": 1.0, "n_steps": n_steps},
            {"schedule": "repel", "weight": 1.0, "n_steps": n_steps},
            {"schedule": "repel", "weight": 0.5, "n_steps": n_steps},
        ]
    yield ("k-means++", *fitted(ws.KMeans(k, random_state=start), X), 1)
    for options in settings:
        arm = " ".join(str(value) for value in options.values())
        yield (arm, *fitted(ws.CFMeans(k, init=given, random_state=start, **options), X), 1)


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {
                **row,
                "k": int(row["k"]),
                "start": int(row["start"]),
                "runs": int(row["runs"]),
                "inertia": float(row["inertia"]),
                "seconds": float(row["seconds"]),
            }
            for row in csv.DictReader(file)
        ]


def collect(path: Path, sets: dict[str, tuple[int, int]], n_starts: int, arms: Callable) -> None:
    done = {(row["set"], row["k"], row["start"]) for row in read(path)}
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        for name, (classes, keep) in sets.items():
            X = load(name, keep)
            for k in (classes, 2 * classes):
                for start in range(n_starts):
                    if (name, k, start) in done:
                        continue
                    known = {"set": name, "n": len(X), "d": X.shape[1], "k": k, "start": start}
                    rows = [
                        {
                            **known,
                            "arm": arm,
                            "inertia": f"{inertia:.10g}",
                            "seconds": f"{seconds:.4f}",
                            "runs": runs,
                        }
                        for arm, inertia, seconds, runs in arms(X, k, start)
                    ]
                    writer.writerows(rows)  # one start at a time, so that a break loses little
                    file.flush()


def cells(rows: list[Row]) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Per set and K: for every arm the table (start, inertia, seconds, runs), by start."""
    found: dict[tuple[str, int], dict[str, list[tuple[float, ...]]]] = {}
    for row in rows:
        arms = found.setdefault((row["set"], row["k"]), {})
        arms.setdefault(row["arm"], []).append(
            (row["start"], row["inertia"], row["seconds"], row["runs"])
        )
    return {
        cell: {arm: np.array(sorted(table)) for arm, table in arms.items()}
        for cell, arms in found.items()
    }


def excess(arms: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """(SSE / lowest SSE seen in the cell − 1) · 1000 of every start of every arm."""
    lowest = min(table[:, 1].min() for table in arms.values())
    return {arm: 1000.0 * (table[:, 1] / lowest - 1.0) for arm, table in arms.items()}


def report_choices() -> None:
    tables = cells(read(CHOICES))
    arms = next(iter(tables.values()))
    print("| setting | mean excess | mean std | time, k-means++ = 1 |\n|---|---|---|---|")
    for arm in arms:
        over = [excess(table)[arm] for table in tables.values()]
        cost = [t[arm][:, 2].mean() / t["k-means++"][:, 2].mean() for t in tables.values()]
        print(
            f"| {arm} | {np.mean([o.mean() for o in over]):.2f} | "
            f"{np.mean([o.std() for o in over]):.2f} | {np.mean(cost):.1f} |"
        )


def report_study(path: Path) -> None:
    tables = cells(read(path))
    main = (
        "k-means",
        "k-means++",
        "cf-means",
        "restarts for cf-means",
        "cf-means from k-means++",
        "restarts for cf-means from k-means++",
    )
    print("| set / K | " + " | ".join(main) + " | restarts | time, k-means++ = 1 |")
    print("|---" * (len(main) + 3) + "|")
    for (name, k), table in tables.items():
        over = excess(table)
        shown = " | ".join(f"{over[a].mean():.1f}±{over[a].std():.1f}" for a in main)
        runs = table["restarts for cf-means"][:, 3].mean()
        cost = table["cf-means"][:, 2].mean() / table["k-means++"][:, 2].mean()
        print(f"| {name} / {k} | {shown} | {runs:.1f} | {cost:.1f} |")
    over = [excess(table) for table in tables.values()]
    means = " | ".join(
        f"{np.mean([o[a].mean() for o in over]):.1f}±{np.mean([o[a].std() for o in over]):.1f}"
        for a in main
    )
    print(f"| mean | {means} | | |\n")

    def share(better: Callable[[dict[str, np.ndarray]], bool]) -> str:
        hits = [cell for cell, o in zip(tables, over, strict=True) if better(o)]
        missed = [f"{n}/{k}" for n, k in tables if (n, k) not in hits]
        return f"{len(hits)} of {len(tables)}" + (f" (not {', '.join(missed)})" if missed else "")

    cf, plus = "cf-means", "k-means++"
    lines = {
        "mean below k-means, same starts": lambda o: o[cf].mean() < o["k-means"].mean(),
        "std below k-means": lambda o: o[cf].std() < o["k-means"].std(),
        "mean at or below k-means++": lambda o: o[cf].mean() <= o[plus].mean(),
        "from k-means++, mean below it": lambda o: o[f"{cf} from {plus}"].mean() < o[plus].mean(),
        "mean at or below restarts of equal cost": (
            lambda o: o[cf].mean() <= o[f"restarts for {cf}"].mean() + TIE
        ),
        "from k-means++, mean at or below restarts of equal cost": (
            lambda o: (
                o[f"{cf} from {plus}"].mean() <= o[f"restarts for {cf} from {plus}"].mean() + TIE
            )
        ),
    }
    for line, better in lines.items():
        print(f"* {line}: {share(better)}")


def report_parts() -> None:
    tables = cells(read(RESULTS))
    over = [excess(table) for table in tables.values()]
    print(f"| part ({N_STARTS_ASIDE} starts) | mean excess | mean std | time, k-means++ = 1 |")
    print("|---|---|---|---|")
    for arm in ("k-means", "k-means++", "cf-means", *ASIDE):
        values = [o[arm][:N_STARTS_ASIDE] for o in over]
        cost = [t[arm][:, 2].mean() / t["k-means++"][:, 2].mean() for t in tables.values()]
        print(
            f"| {arm} | {np.mean([v.mean() for v in values]):.1f} | "
            f"{np.mean([v.std() for v in values]):.1f} | {np.mean(cost):.1f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("choose", "run", "whole", "report"))
    what = parser.parse_args().what
    warnings.simplefilter("ignore", ConvergenceWarning)
    if what == "choose":
        with threadpool_limits(1):
            collect(CHOICES, DEVELOPED_ON, 20, choice_arms)
    elif what == "run":
        with threadpool_limits(1):
            collect(RESULTS, STUDIED, N_STARTS, all_arms)
    elif what == "whole":
        with threadpool_limits(1):
            collect(WHOLE_RESULTS, WHOLE, N_STARTS_ASIDE, study_arms)
    else:
        shown = (
            (report_choices, CHOICES),
            (lambda: report_study(RESULTS), RESULTS),
            (report_parts, RESULTS),
            (lambda: report_study(WHOLE_RESULTS), WHOLE_RESULTS),
        )
        for show, path in shown:
            if path.exists():
                show()
                print()


if __name__ == "__main__":
    main()
