"""
Which index fails on which shape?
=================================

Every validity index is made for some shape of clusters: round and far from others, or dense and
connected. Where the data have another shape, the index prefers a wrong clustering to the right
one. There is no index for all shapes.

Eight shapes are clustered in many ways: k-means, Ward's and single linkage with several numbers of
clusters, HDBSCAN with several sizes. Each index picks the clustering that it scores best, and the
picture shows what it picked. The right clustering is always among the candidates, so that it is
the index that fails.

The shapes are generated, so that the truth is known. We print the truth, our pick (the vote of the
clusterings in ``judge``), what six indices pick, and how near each pick is to the truth.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering
from sklearn.datasets import make_blobs, make_circles, make_moons

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_OBJECTS = 120 if SMALL else 400
NUMBERS = (2, 3, 4) if SMALL else (2, 3, 4, 5, 6, 8)
LEAST_SIZES = (10,) if SMALL else (5, 10, 20, 40)
SEED = 0
INDICES = {
    "silhouette": "silhouette",
    "Calinski-Harabasz": "calinski_harabasz",
    "Davies-Bouldin": "davies_bouldin",
    "DBCV": "dbcv",
    "DISCO": "disco",
    "CFQ": "cfq",
}

# %%
# Shapes
# ------
rng = np.random.default_rng(SEED)
n = N_OBJECTS
four = np.array([[0, 0], [7, 0], [0, 7], [7, 7]])
round_X, round_y = make_blobs(n, centers=four, random_state=SEED)
unequal = [n * 3 // 4, n // 8, n - n * 3 // 4 - n // 8]
long_X, long_y = make_blobs(n, centers=[[0, 0], [0, 5], [0, 10]], random_state=SEED)
n_noise = n // 5
few_X, few_y = make_blobs(n - n_noise, centers=four, cluster_std=0.6, random_state=SEED)
shapes = {
    "round": (round_X, round_y),
    "unequal sizes": make_blobs(unequal, centers=four[:3], random_state=SEED),
    "unequal spread": make_blobs(
        n, centers=[[0, 0], [9, 0], [9, 5]], cluster_std=[2.5, 0.7, 0.7], random_state=SEED
    ),
    "elongated": (long_X * [6, 1], long_y),
    "moons": make_moons(n, noise=0.06, random_state=SEED),
    "rings": make_circles(n, noise=0.05, factor=0.4, random_state=SEED),
    "with noise": (
        np.vstack([few_X, rng.uniform(-4, 11, size=(n_noise, 2))]),
        np.append(few_y, np.full(n_noise, -1)),
    ),
    "overlapping": make_blobs(n, centers=four, cluster_std=2.0, random_state=SEED),
}
if SMALL:
    shapes = {name: shapes[name] for name in ("round", "moons", "with noise")}
told = ", ".join(f"{name} {len(np.unique(y[y >= 0]))}" for name, (_, y) in shapes.items())
print(f"The truth: {len(shapes)} shapes with these numbers of clusters: {told}.")


# %%
# Candidates
# ----------
# Columns are not scaled: that would make elongated clusters round.
def candidates(X: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Clusterings of many kinds, with the truth among them."""
    found = {"truth": truth}
    for k in NUMBERS:
        found[f"k-means {k}"] = ws.KMeans(k, n_init=5, random_state=SEED).fit_predict(X)
        for linkage in ("ward", "single"):
            model = AgglomerativeClustering(k, linkage=linkage)
            found[f"{linkage} {k}"] = model.fit_predict(X)
    for size in LEAST_SIZES:
        found[f"HDBSCAN {size}"] = HDBSCAN(min_cluster_size=size, copy=True).fit_predict(X)
    return {name: y for name, y in found.items() if len(np.unique(y[y >= 0])) > 1}


# %%
# What each index picks, and our pick
# -----------------------------------
# Objects without a cluster are priced where an index has a price for them. ``judge`` does not know
# which candidate is the truth.
FIRST = "our pick"
LAST = "best candidate, known only with the truth"
picked: dict[str, dict[str, str]] = {}  # shape: rule: candidate
ari: dict[str, dict[str, float]] = {}
partitions = {shape: candidates(X, truth) for shape, (X, truth) in shapes.items()}
for shape, (X, truth) in shapes.items():
    runs = ws.Runs.from_parts({"plane": X}, partitions[shape])
    scores = ws.score_partitions(X, partitions[shape], list(INDICES.values()))
    ari[shape] = {name: ws.ari_score(truth, y) for name, y in partitions[shape].items()}
    picked[shape] = {FIRST: ws.judge(runs, n_draws=0, details=False).ranking.best}
    picked[shape] |= {rule: scores.best(index) for rule, index in INDICES.items()}
    picked[shape]["k-means with 3 clusters"] = "k-means 3"
    picked[shape][LAST] = max(ari[shape], key=ari[shape].__getitem__)

mean_ari = {
    rule: float(np.mean([ari[shape][picked[shape][rule]] for shape in shapes]))
    for rule in picked["round"]
}
print("\nAgreement (ARI) of each pick with the truth, and the mean over the shapes:")
print(f"{'':<44}" + "".join(f"{shape:>16}" for shape in shapes) + f"{'ARI with truth':>16}")
for rule, mean in mean_ari.items():
    values = "".join(f"{ari[shape][found[rule]]:>16.2f}" for shape, found in picked.items())
    print(f"{rule:<44}{values}{mean:>16.3f}")

# %%
# Who won
# -------
# DBCV and DISCO won, because moons and rings need an index of density. Round clusters that do not
# overlap are easy for all.
# Where clusters overlap, most indices prefer an HDBSCAN that leaves the edges out to the truth,
# although noise lowers its score. The vote fails where most candidates do: few methods find rings.
ours = mean_ari[FIRST]
ahead = [rule for rule, mean in mean_ari.items() if mean > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")
for rule in (FIRST, *INDICES):
    failed = [shape for shape in shapes if ari[shape][picked[shape][rule]] < 0.8]
    print(f"ARI below 0.8, {rule}: {', '.join(failed) or 'no shape'}.")

# %%
# Picture
# -------
# A row for each shape, a column for each index; objects without a cluster are grey.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import CLUSTERS

    colours = np.array([*CLUSTERS["light"], "0.7"])
    shown = (FIRST, *INDICES)
    fig = plt.figure(figsize=(1.7 * (len(shown) + 1), 1.7 * len(shapes)), layout="constrained")
    axes = fig.subplots(len(shapes), len(shown) + 1, squeeze=False)
    for row, (shape, (X, truth)) in zip(axes, shapes.items(), strict=True):
        columns = {"truth": truth}
        columns |= {rule: partitions[shape][picked[shape][rule]] for rule in shown}
        for ax, (rule, labels) in zip(row, columns.items(), strict=True):
            codes = np.where(labels < 0, -1, labels % (len(colours) - 1))
            ax.scatter(*X.T, s=2, c=colours[codes])
            ax.set(xticks=[], yticks=[])
            value = f" {ws.ari_score(truth, labels):.2f}" if rule != "truth" else ""
            ax.set_title(f"{rule}{value}", fontsize=7)
        row[0].set_ylabel(shape, fontsize=8)
    plt.show()
else:
    print("No picture: matplotlib is not installed. Run pip install matplotlib.")
