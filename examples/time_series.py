"""
Time series: clusters from a matrix of DTW distances
====================================================

Two machines may show the same pattern, one earlier or slower than the other. The Euclidean distance
of the two series is then large. Dynamic time warping (DTW) stretches time first and finds them
close. But DTW gives distances only, no coordinates: k-means and most indices cannot use it.

``wellsep.Distances`` takes such a matrix in place of X, and ``KMedoids`` clusters it. Here series
are clustered by four distances with several numbers of clusters: which distance, and which number?

The series are generated, so that the truth is known: six patterns with shifts, stretches and noise.
We print the truth, our pick, what simple rules pick, and how near each pick is to the truth.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
from scipy.spatial.distance import pdist

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_SERIES = 60 if SMALL else 240
LENGTH = 40 if SMALL else 80
NUMBERS = (3, 6) if SMALL else (2, 3, 4, 5, 6, 7, 8, 10, 12)
SEED = 0


# %%
# Series
# ------
# Every pattern lives on [0, 1]. Where it begins, and how fast it goes, differs from series to
# series.
def bump(t: np.ndarray, at: float, width: float) -> np.ndarray:
    """One smooth bump."""
    return np.exp(-(((t - at) / width) ** 2))


PATTERNS = {
    "one bump": lambda t: bump(t, 0.5, 0.12),
    "two bumps": lambda t: bump(t, 0.3, 0.08) + bump(t, 0.7, 0.08),
    "bump, then dip": lambda t: bump(t, 0.3, 0.1) - bump(t, 0.7, 0.1),
    "plateau": lambda t: ((t > 0.25) & (t < 0.75)).astype(float),
    "slow rise, fall": lambda t: np.where((t > 0.2) & (t < 0.8), (t - 0.2) / 0.6, 0.0),
    "step up": lambda t: (t > 0.5).astype(float),
}
rng = np.random.default_rng(SEED)
truth = rng.choice(list(PATTERNS), size=N_SERIES)
t = np.linspace(0, 1, LENGTH)
series = np.empty((N_SERIES, LENGTH))
for i, pattern in enumerate(truth):
    warped = t ** np.exp(rng.normal(0, 0.35)) + rng.normal(0, 0.06)
    series[i] = rng.normal(1, 0.15) * PATTERNS[pattern](warped) + rng.normal(0, 0.12, LENGTH)
print(f"{N_SERIES} series of {LENGTH} steps.")
print(f"The truth: {len(np.unique(truth))} patterns.")


# %%
# Four distances
# --------------
# The table of dynamic time warping is filled step by step, for all pairs of series at a time. A
# step of one series may meet a step of the other that is at most a quarter of the length away.
def dtw(series: np.ndarray, band: int) -> np.ndarray:
    """Condensed distances, in the order of SciPy's ``pdist``."""
    n, length = series.shape
    one, other = np.triu_indices(n, 1)
    A, B = series[one].T, series[other].T  # a row per step, a column per pair
    before = np.full((length + 1, len(one)), np.inf)
    before[0] = 0
    for i in range(length):
        now = np.full_like(before, np.inf)
        for j in range(max(0, i - band), min(length, i + band + 1)):
            cheapest = np.minimum(np.minimum(before[j], before[j + 1]), now[j])
            now[j + 1] = (A[i] - B[j]) ** 2 + cheapest
        before = now
    return np.sqrt(before[length])


spectrum = np.abs(np.fft.rfft(series - series.mean(axis=1, keepdims=True), axis=1))[:, :12]
spaces = {
    "DTW": ws.Distances(dtw(series, band=LENGTH // 4)),
    "Euclidean": ws.Distances(pdist(series)),
    "correlation": ws.Distances(pdist(series, "correlation")),
    "spectrum": ws.Distances(pdist(spectrum)),
}
print(spaces["DTW"])

# %%
# Clusterings
# -----------
partitions, made_in = {}, {}
for space, D in spaces.items():
    for k in NUMBERS:
        name = f"{space}, K = {k}"
        partitions[name] = ws.KMedoids(k, random_state=SEED).fit_predict(D)
        made_in[name] = space

# %%
# Our pick
# --------
# Distances go into ``Runs`` like embeddings.
runs = ws.Runs.from_parts(spaces, partitions, pairs=made_in)
judgement = ws.judge(runs, random_state=SEED)
print(judgement)
print(judgement.embeddings.explain())

# %%
# What simple rules pick
# ----------------------
names = list(partitions)
clusters = {name: len(np.unique(labels)) for name, labels in partitions.items()}
ari = {name: ws.ari_score(truth, labels) for name, labels in partitions.items()}


def best_in_own_space(index: str) -> str:
    """The partition with the best score by the distances that it was made from."""
    own = {
        name: ws.score_partitions(spaces[made_in[name]], {name: labels}, [index]).values[0, 0]
        for name, labels in partitions.items()
    }
    return max(names, key=own.__getitem__)


chosen = ws.choose_k(spaces["DTW"], NUMBERS, estimator=ws.KMedoids(), random_state=SEED)
by_ari = sorted(names, key=ari.__getitem__)
picks = {
    "our pick": judgement.ranking.best,
    "choose_k by DTW alone": f"DTW, K = {chosen.best_above_one}",
    "best silhouette by its own distances": best_in_own_space("silhouette"),
    "best Calinski-Harabasz, likewise": best_in_own_space("calinski_harabasz"),
    "best Dunn index, likewise": best_in_own_space("dunn"),
    "best silhouette, Euclidean": max(
        (name for name in names if made_in[name] == "Euclidean"),
        key=lambda name: ws.silhouette_score(spaces["Euclidean"], partitions[name]),
    ),
    "median run": by_ari[len(names) // 2],
    "best run, known only with the truth": by_ari[-1],
}
print(f"\n{'':<42}{'run':<22}{'K':>3}{'ARI with truth':>16}")
for rule, name in picks.items():
    print(f"{rule:<42}{name:<22}{clusters[name]:>3}{ari[name]:>16.3f}")

# %%
# Who won
# -------
# We won: our pick is the best run, because runs with about as many clusters agree on it, while the
# silhouette and Calinski-Harabasz find two clusters. The verdict says that the methods disagree.
ours = ari[judgement.ranking.best]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# Pictures
# --------
# The series of each cluster of our pick with the medoid, which is a series itself. Then the
# silhouette widths by the distances that it was made from.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import SilhouetteDisplay

    best = judgement.ranking.best
    D, labels = spaces[made_in[best]], partitions[best]
    medoids = ws.KMedoids(clusters[best], random_state=SEED).fit(D).medoid_indices_
    rows = -(-len(medoids) // 4)
    fig = plt.figure(figsize=(9, 2 * rows), layout="constrained")
    axes = fig.subplots(rows, 4, squeeze=False, sharey=True)
    for ax, medoid in zip(axes.flat, medoids, strict=False):
        members = labels == labels[medoid]
        ax.plot(t, series[members].T, color="0.8", lw=0.5)
        ax.plot(t, series[medoid], lw=2)
        ax.set_title(f"{members.sum()} series", fontsize="medium", loc="left")
    for ax in axes.flat[len(medoids) :]:
        ax.set_axis_off()
    SilhouetteDisplay.from_predictions(D, labels)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
