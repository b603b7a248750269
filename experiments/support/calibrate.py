"""Fit the map from support to "is a class", leave one set out, and ship it with the package.

    python experiments/support/calibrate.py

Reads clusters.csv.gz and agreed.csv; writes the table of the package (support_table.json beside
`wellsep/evaluate/clusters/support.py`), calibration.csv, reliability.png and the tables of
REPORT.md.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.support.collect import BEST, CLASS, HERE, TABLE
from wellsep.evaluate.clusters import support

SHIPPED = Path(support.__file__).with_name("support_table.json")
REPORT, FIGURE, RESULTS = HERE / "REPORT.md", HERE / "reliability.png", HERE / "calibration.csv"
BANDS = (0, 0.25, 0.5, 0.75, 0.9, 1.0)
STEP = 0.05  # width of the bins that are fitted
REAL = ("deep", "fixed K", "noise", "varying K", "wide grid")
CURVES = {"several embeddings": REAL, "one embedding": ("one embedding", "one method")}
Model = Callable[[pd.DataFrame], np.ndarray]


def clusters(order: str = "like K") -> pd.DataFrame:
    """The clusters of the best runs; each set weighs the same in each curve."""
    rows = pd.read_csv(TABLE)
    rows = rows[(rows.order == order) & (rows["rank"] <= BEST)].copy()
    rows["is_class"] = (rows.jaccard >= CLASS).astype(float)
    return rows.reset_index(drop=True)


def weigh(rows: pd.DataFrame) -> np.ndarray:
    """Weights by which every set counts once."""
    return (1 / rows.groupby("unit").support.transform("size")).to_numpy()


def fit_bins(values: np.ndarray, is_class: np.ndarray, weights: np.ndarray) -> tuple[Any, Any]:
    """Middles of bins of support, and the share of classes in each, made to rise."""
    bins = np.minimum((values / STEP).astype(int), round(1 / STEP) - 1)
    filled = np.unique(bins)
    mass = np.array([weights[bins == b].sum() for b in filled])
    share = np.array([np.average(is_class[bins == b], weights=weights[bins == b]) for b in filled])
    middle = np.array([np.average(values[bins == b], weights=weights[bins == b]) for b in filled])
    rising = IsotonicRegression(y_min=0.01, y_max=0.99).fit(filled, share, mass).predict(filled)
    return middle, rising


def binned(column: str) -> Callable[[pd.DataFrame], Model]:
    def fit(rows: pd.DataFrame) -> Model:
        known = rows.dropna(subset=[column])
        knots = fit_bins(
            known[column].clip(0, 1).to_numpy(), known.is_class.to_numpy(), weigh(known)
        )
        return lambda new: np.interp(new[column].fillna(0), *knots)

    return fit


def logistic(*columns: str) -> Callable[[pd.DataFrame], Model]:
    def read(rows: pd.DataFrame) -> np.ndarray:
        values = rows[list(columns)].fillna(0).to_numpy()
        logs = np.log(np.clip(values, 0.01, 0.99) / (1 - np.clip(values, 0.01, 0.99)))
        return np.where(
            [c in ("support", "all", "like_k") for c in columns], logs, np.log1p(np.abs(values))
        )

    def fit(rows: pd.DataFrame) -> Model:
        model = LogisticRegression(C=1e3, max_iter=1000)
        model.fit(read(rows), rows.is_class, sample_weight=weigh(rows))
        return lambda new: model.predict_proba(read(new))[:, 1]

    return fit


def constant(rows: pd.DataFrame) -> Model:
    share = np.average(rows.is_class, weights=weigh(rows))
    return lambda new: np.full(len(new), share)


VARIANTS = {
    "a constant": constant,
    "support, rising bins": binned("support"),
    "support, logistic": logistic("support"),
    "without near copies of the run": binned("apart"),
    "runs of like K only": binned("like_k"),
    "all other runs": binned("all"),
    "corrected for chance by size": binned("corrected"),
    "support and size": logistic("support", "size"),
    "support and K": logistic("support", "K"),
    "support, all runs, like K": logistic("support", "all", "like_k"),
}
WIDTH = {"support and width": logistic("support", "width"), "width alone": logistic("width")}


def left_out(rows: pd.DataFrame, fit: Callable[[pd.DataFrame], Model]) -> np.ndarray:
    """(clusters,) the share that a map fitted on all other sets gives."""
    shares = np.empty(len(rows))
    for unit in rows.unit.unique():
        out = (rows.unit == unit).to_numpy()
        shares[out] = fit(rows[~out])(rows[out])
    return shares


def brier(rows: pd.DataFrame, shares: np.ndarray) -> tuple[float, float]:
    """Mean squared error over clusters, and over sets."""
    error = (shares - rows.is_class) ** 2
    return float(error.mean()), float(error.groupby(rows.unit).mean().mean())


def bands(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """How many clusters of each band are a class, for a cluster of a set drawn at random."""
    table, weights = [], weigh(rows)
    for low, high in pairwise(BANDS):
        chosen = (rows.support >= low) & ((rows.support < high) | (high == 1))
        inside = rows[chosen]
        share = np.average(inside.is_class, weights=weights[chosen]) if len(inside) else np.nan
        by_set = inside.groupby("unit").is_class.mean()
        table.append(
            {
                "low": low,
                "high": high,
                "share": None if np.isnan(share) else round(float(share), 3),
                "of_all": None if np.isnan(share) else round(float(inside.is_class.mean()), 3),
                "of_sets": None if np.isnan(share) else round(float(by_set.mean()), 3),
                "clusters": len(inside),
                "sets": int(inside.unit.nunique()),
            }
        )
    return table


def shipped(rows: pd.DataFrame) -> dict[str, Any]:
    """The table of the package."""
    curves = {}
    for name, collections in CURVES.items():
        own = rows[rows.collection.isin(collections)]
        knots = fit_bins(own.support.to_numpy(), own.is_class.to_numpy(), weigh(own))
        curves[name] = {
            "sets": int(own.unit.nunique()),
            "clusters": len(own),
            "support": np.round(knots[0], 3).tolist(),
            "share": np.round(knots[1], 3).tolist(),
            "bands": [{k: v for k, v in band.items() if k[:3] != "of_"} for band in bands(own)],
        }
    return {"made_by": "experiments/support/calibrate.py", "class_from": CLASS, "curves": curves}


def draw(rows: pd.DataFrame, shares: np.ndarray) -> None:
    """The reliability diagram: what was said of clusters of sets left out, and what they were."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", lw=1)
    for said, real, low, high, size in reliability(rows, shares):
        axes.plot([said, said], [low, high], color="tab:blue", lw=1)
        axes.scatter(said, real, s=10 + 200 * size, color="tab:blue")
    axes.set(
        xlabel="share of classes said (set left out)",
        ylabel="share of classes",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    figure.savefig(FIGURE, dpi=100)


def reliability(rows: pd.DataFrame, shares: np.ndarray) -> Iterator[tuple[float, ...]]:
    """By tenths of what was said: said, real, a 90 % interval over sets, share of the clusters."""
    rng, weights = np.random.default_rng(0), weigh(rows)
    for low in np.arange(0, 1, 0.1):
        inside = (shares >= low) & (shares < low + 0.1)
        if inside.sum() < 20:
            continue
        own, mass = rows[inside], weights[inside]
        sums = pd.DataFrame({"unit": own.unit, "mass": mass, "right": mass * own.is_class})
        by_set = sums.groupby("unit")[["right", "mass"]].sum().to_numpy()
        drawn = [by_set[rng.integers(0, len(by_set), len(by_set))].sum(axis=0) for _ in range(1000)]
        yield (
            float(np.average(shares[inside], weights=mass)),
            float(by_set[:, 0].sum() / by_set[:, 1].sum()),
            *np.quantile([right / total for right, total in drawn], [0.05, 0.95]),
            float(inside.mean()),
        )


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def markdown(columns: str, rows: Iterable[Iterable[str]]) -> str:
    """A table; the names of its columns are separated by semicolons."""
    head = columns.split("; ")
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def band_table(rows: pd.DataFrame) -> str:
    alone = bands(rows[rows.collection.isin(CURVES["one embedding"])])
    lines = [
        [
            f"{band['low']:g} to {band['high']:g}", percent(band["share"]), percent(band["of_all"]),
            percent(band["of_sets"]), f"{band['clusters']:,}", str(band["sets"]),
            percent(one["share"]), f"{one['clusters']:,}",
        ]
        for band, one in zip(bands(rows[rows.collection.isin(REAL)]), alone, strict=True)
    ]  # fmt: skip
    columns = "support; a class; of all clusters; mean over sets; clusters; sets"
    return markdown(f"{columns}; one embedding: a class; clusters", lines)


def kind_table(rows: pd.DataFrame) -> str:
    lines = [
        [kind, *(f"{percent(band['of_all'])} of {band['clusters']:,}" for band in bands(own))]
        for kind, own in rows.groupby("collection")
    ]
    return markdown("runs; below .25; .25 to .5; .5 to .75; .75 to .9; .9 and more", lines)


def variant_table(results: list[dict[str, Any]]) -> str:
    of = {(row["group"], row["map"]): f"{row['brier']}, {row['brier_of_sets']}" for row in results}
    lines = [
        [name, of.get(("all", name), "–"), of.get(("wide grids", name), "–")]
        for name in [*VARIANTS, *WIDTH]
    ]
    return markdown("map; all runs: clusters, sets; wide grids: clusters, sets", lines)


def reliability_table(rows: pd.DataFrame, shares: np.ndarray) -> str:
    lines = [
        [percent(said), percent(real), f"{percent(low)} to {percent(high)}", percent(size)]
        for said, real, low, high, size in reliability(rows, shares)
    ]
    return markdown("said; was; 90 % interval over sets; share of the clusters", lines)


def agreed_table() -> str:
    """What thresholds of the smallest overlap with every contender give."""
    rows = pd.read_csv(HERE / "agreed.csv")
    nothing, real = rows[rows.collection == "nothing to find"], rows[rows.collection.isin(REAL)]
    lines = []
    for threshold in (0.6, 0.7, 0.75, 0.8, 0.9):
        both = real[real.overlap >= threshold], real[real.overlap < threshold]
        lines.append(
            [
                f"{threshold:g}",
                f"{len(both[0])} of {len(real)}",
                ", ".join(f"{own.jaccard.mean():.2f}" for own in both),
                ", ".join(f"{own.purity.mean():.2f}" for own in both),
                ", ".join(percent((own.jaccard >= CLASS).mean()) for own in both),
                f"{(nothing.overlap >= threshold).sum()} of {len(nothing)}",
            ]
        )
    columns = "threshold; agreed; Jaccard with a class: agreed, others; purity; are a class"
    return markdown(f"{columns}; agreed where there is nothing to find", lines)


def replace_block(text: str, name: str, table: str) -> str:
    """The text with the table between two marks of this name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


def main() -> None:
    rows = clusters()
    rows["corrected"] = ((rows.support - rows.chance) / (1 - rows.chance)).clip(0, 1)
    SHIPPED.write_text(json.dumps(shipped(rows), indent=1) + "\n", encoding="utf-8")
    real = rows[rows.collection.isin(REAL)].reset_index(drop=True)
    wide = real[(real.collection == "wide grid") & real.width.notna()].reset_index(drop=True)
    results, said = [], {}
    for group, own, maps in (("all", real, VARIANTS), ("wide grids", wide, VARIANTS | WIDTH)):
        for name, fit in maps.items():
            said[group, name] = left_out(own, fit)
            scores = [f"{score:.4f}" for score in brier(own, said[group, name])]
            columns = ("group", "map", "clusters", "brier", "brier_of_sets")
            results.append(dict(zip(columns, (group, name, len(own), *scores), strict=True)))
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(results[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)
    shares = said["all", "support, rising bins"]
    draw(real, shares)
    tables = {
        "bands": band_table(rows),
        "collections": kind_table(rows),
        "reliability": reliability_table(real, shares),
        "variants": variant_table(results),
        "agreed": agreed_table(),
    }
    text = REPORT.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = replace_block(text, name, table)
    REPORT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
