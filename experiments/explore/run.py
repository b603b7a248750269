"""From data alone: `explore` on labelled sets, against what people do instead.

    python -m experiments.explore.run fresh2 CACHE    appends to fresh2.csv beside this file
    python -m experiments.explore.run --report        writes the tables of REPORT.md

A set that is in the files is skipped; CACHE keeps candidates, which do not depend on the rule that
judges them. Needs umap-learn, and the sets in the folder WELLSEP_DATA.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import wellsep as ws
from experiments.bookkeeping import append, done, markdown, provenance, read, replace_between, say
from experiments.explore import sets

HERE = Path(__file__).parent
KS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
OURS = "explore"
KNOWS = "k-means that knows K"
RIVALS = (
    "k-means, K by the silhouette",
    "choose_k, then k-means",
    "mixture by BIC",
    "HDBSCAN with defaults",
    "UMAP, then HDBSCAN",
    "UMAP, then k-means by the silhouette",
)
TIED = 0.005  # of ARI


def rivals(X: np.ndarray, y: np.ndarray, umap: np.ndarray) -> dict[str, np.ndarray]:
    """What people do instead, on scaled columns: name → labels."""
    X = X[:, X.std(axis=0) > 0]
    X = StandardScaler().fit_transform(X) if X.shape[1] <= 200 else X / np.abs(X).max()
    fits = {k: KMeans(k, n_init=4, random_state=0).fit_predict(X) for k in KS}
    in_umap = [KMeans(k, n_init=4, random_state=0).fit_predict(umap) for k in KS]
    mixtures = [
        GaussianMixture(k, covariance_type="diag", reg_covar=1e-4, random_state=0).fit(X)
        for k in KS
    ]
    chosen = ws.choose_k(X, random_state=0)
    density = HDBSCAN(min_cluster_size=15, min_samples=10, copy=True)
    by_name = (
        max(fits.values(), key=lambda labels: silhouette_score(X, labels)),
        chosen.labels_for(),
        min(mixtures, key=lambda model: model.bic(X)).predict(X),
        HDBSCAN(copy=True).fit_predict(X),
        density.fit_predict(umap),
        max(in_umap, key=lambda labels: silhouette_score(umap, labels)),
    )
    true_k = KMeans(len(set(y)), n_init=4, random_state=0).fit_predict(X)
    return {**dict(zip(RIVALS, by_name, strict=True)), KNOWS: true_k}


def explored(name: str, cache: Path) -> ws.records.Exploration:
    """What `explore` finds by default; the draws say how certain it is and choose nothing."""
    X, _ = sets.read(name)
    return ws.explore(X, n_draws=0, cache=cache / name.replace("/", "-"))


def of_rivals(name: str, found: ws.records.Exploration) -> dict[str, Any]:
    """ARI of every rival; they do not change with our rule."""
    X, y = sets.read(name)
    made = rivals(X, y, np.asarray(found.runs.spaces["umap"]))
    return {"set": name} | {way: adjusted_rand_score(y, labels) for way, labels in made.items()}


def of_ours(name: str, found: ws.records.Exploration, seconds: float) -> dict[str, Any]:
    """ARI of the answer, of the best and of the median candidate."""
    _, y = sets.read(name)
    ari = [adjusted_rand_score(y, found.runs.partitions[run]) for run in found.runs.partitions]
    return {
        "set": name,
        "n": len(y),
        "classes": len(set(y)),
        OURS: adjusted_rand_score(y, found.labels_),
        "best candidate": max(ari),
        "median candidate": float(np.median(ari)),
        "candidates": len(ari),
        "run": found.best,
        "n_clusters": found.n_clusters,
        "verdict": found.judgement.verdict.kind,
        "processor seconds": round(seconds, 1),
        **provenance("experiments/explore"),
    }


def main(words: list[str]) -> None:
    if words == ["--report"]:
        report()
        return
    which, cache = words
    ours, others = HERE / f"{which}.csv", HERE / f"{which}-rivals.csv"
    for name in sets.second() if which == "fresh2" else sets.OPEN:
        known = [(name,) in done(path, ["set"]) for path in (ours, others)]
        if all(known):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            found = explored(name, Path(cache))
            if not known[0]:
                row = of_ours(name, found, time.process_time() - start)
                append(ours, [row])
                say(f"{name}: {row[OURS]:.3f}, {found.best!r}, best {row['best candidate']:.3f}")
            if not known[1]:
                append(others, [of_rivals(name, found)])


def results(which: str) -> list[dict[str, Any]]:
    """Our rows with those of the rivals beside them."""
    others = {row["set"]: row for row in read(HERE / f"{which}-rivals.csv")}
    return [others[row["set"]] | row for row in read(HERE / f"{which}.csv") if row["set"] in others]


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean ARI and regret of every way, and against how many sets `explore` wins, ties, loses."""
    best = np.array([row["best candidate"] for row in rows])
    ours = np.array([row[OURS] for row in rows])
    found = []
    for name in (OURS, *RIVALS, KNOWS, "best candidate", "median candidate"):
        if name not in rows[0]:
            continue
        values = np.array([row[name] for row in rows])
        won, lost = int((ours > values + TIED).sum()), int((ours < values - TIED).sum())
        found.append(
            {
                "way": name,
                "mean ARI": f"{values.mean():.3f}",
                "regret": f"{(best - values).mean():.3f}",
                "won–tied–lost": "" if name == OURS else f"{won}–{len(rows) - won - lost}–{lost}",
            }
        )
    return found


def with_tables(text: str) -> str:
    """The report with its tables as the files of results give them."""
    means = summary(read(HERE / "open.csv"))
    text = replace_between(text, "open", markdown(means, list(means[0])))
    rows = results("fresh2")
    if not rows:
        return text
    shown = ("set", "classes", "n_clusters", "run", OURS, RIVALS[0], RIVALS[4], KNOWS)
    means = summary(rows)
    text = replace_between(text, "fresh2", markdown(means, list(means[0])))
    each = markdown(rows, [*shown, "best candidate", "median candidate"], digits=2)
    return replace_between(text, "fresh2 sets", each)


def report() -> None:
    """Write the tables of REPORT.md from the files of results."""
    path = HERE / "REPORT.md"
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
