"""Does LOFKM deepen local connectivity, and at what cost? The paper's tables 2 and 3, measured.

K is the number of classes, t the neighbours of LOF and LCD alike, starts are random objects, one
per run, the same for both methods; raw features. Prints a Markdown table beside the paper's.

    python experiments/local_connectivity/replicate.py --starts 100
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import wellsep as ws

SETS = {"yeast": 10, "wifi_localization": 4, "avila": 12}
PAPER = {
    ("yeast", "KM"): ([0.93, 1.18, 1.42], [1.20, 1.57, 2.00], [0.26] * 3, [0.42] * 3),
    ("yeast", "LOFKM"): ([0.92, 1.08, 1.15], [1.15, 1.53, 1.98], [0.27, 0.27, 0.26], [0.41] * 3),
    ("wifi_localization", "KM"): ([1.24, 1.68, 2.04], [1.32, 1.79, 2.24], [0.40] * 3, [0.93] * 3),
    ("wifi_localization", "LOFKM"): (
        [1.18, 1.56, 1.90], [1.31, 1.73, 1.95], [0.39] * 3, [0.77, 0.78, 0.78],
    ),
    ("avila", "KM"): ([1.11, 1.48, 1.83], [1.33, 1.77, 2.19], [0.15] * 3, [0.46] * 3),
    ("avila", "LOFKM"): ([0.99, 1.31, 1.61], [1.32, 1.80, 2.19], [0.18] * 3, [0.45] * 3),
}  # fmt: skip
NEIGHBOURS = (3, 4, 5)


def measure(X, truth, partitions, neighbours):
    """Means over the partitions: AvgLCD and MaxLCD for each t, silhouette, purity."""
    asked = [
        ("lcd", {"n_neighbors": t, "aggregate": how}) for how in ("mean", "max") for t in neighbours
    ]
    scores = ws.score_partitions(X, partitions, [*asked, "silhouette"]).values.mean(axis=0)
    purity = np.mean([ws.purity_score(truth, labels) for labels in partitions])
    half = len(neighbours)
    return [
        (average, most, scores[-1], purity)
        for average, most in zip(scores[:half], scores[half:-1], strict=True)
    ]


def compare(X, truth, k, starts):
    """Method -> one row of means per t; both methods from the same starts."""
    rng = np.random.default_rng(0)
    first = [X[rng.choice(len(X), k, replace=False)] for _ in range(starts)]

    def labels(weights=None):
        return [ws.KMeans(k, init=c).fit(X, sample_weight=weights).labels_ for c in first]

    found = {"KM": measure(X, truth, labels(), NEIGHBOURS), "LOFKM": []}
    for t in NEIGHBOURS:
        # LOFKM is k-means with these weights; LOF need not be searched anew for every start.
        weights = ws.LOFKMeans(k, n_neighbors=t, n_init=1, random_state=0).fit(X).weights_
        found["LOFKM"] += measure(X, truth, labels(weights), [t])
    return found


def row(name, method, found):
    """Measured, with the paper's value in brackets."""
    paper = PAPER[name, method]
    cells = [
        "/".join(f"{value:.2f}" for value in values)
        + " ("
        + "/".join(f"{value:.2f}" for value in (told if len(set(told)) > 1 else told[:1]))
        + ")"
        for values, told in zip(found, paper, strict=True)
    ]
    return f"| {name} {method} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| | AvgLCD t=3/4/5 | MaxLCD t=3/4/5 | silhouette | purity |\n|---|---|---|---|---|")
    for name in options.sets:
        data = ws.load_dataset(name)
        X = np.asarray(data.X, dtype=float)
        for method, per_t in compare(X, data.y, SETS[name], options.starts).items():
            print(row(name, method, list(zip(*per_t, strict=True))), flush=True)


if __name__ == "__main__":
    main()
