"""
How many clusters? Elbow, gap, silhouette and choose_k
======================================================

Five usual answers to one question: the elbow of the sum of squares, the silhouette,
Calinski-Harabasz, the gap statistic and prediction strength. All but the last two always find two
clusters or more, also in data that have none. ``choose_k`` asks first whether there is more than
one cluster, and lets indices vote only then.

Six data sets are generated, so that the truth is known: separate clusters, overlapping ones,
unequal sizes, ten dimensions, uniform noise and one Gaussian cloud. We print the truth, our pick,
what the five pick, and how near the clusterings are to the truth. Where the truth is one cluster,
the agreement (ARI) is 1 for the answer 1 and 0 for any other.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
from sklearn.datasets import make_blobs

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_OBJECTS = 120 if SMALL else 400
RANGE = range(2, 6) if SMALL else range(2, 11)
SEED = 0

# %%
# Data
# ----
rng = np.random.default_rng(SEED)
n = N_OBJECTS
five = np.array([[0, 0], [8, 0], [0, 8], [8, 8], [4, 16]])
data = {
    "separate": make_blobs(n, centers=five, cluster_std=1.0, random_state=SEED),
    "overlapping": make_blobs(n, centers=five, cluster_std=2.2, random_state=SEED),
    "unequal": make_blobs(
        [n * 7 // 10, n // 5, n // 10], centers=five[:3], cluster_std=[2, 1, 0.5], random_state=SEED
    ),
    "10 dimensions": make_blobs(n, 10, centers=4, cluster_std=4.0, random_state=SEED),
    "uniform noise": (rng.uniform(size=(n, 2)), np.zeros(n, dtype=int)),
    "one cloud": (rng.normal(size=(n, 5)), np.zeros(n, dtype=int)),
}
if SMALL:
    data = {name: data[name] for name in ("separate", "uniform noise")}
true_k = {name: len(np.unique(truth)) for name, (_, truth) in data.items()}
told = ", ".join(f"{name} {k}" for name, k in true_k.items())
print(f"The truth: {len(data)} data sets with these numbers of clusters: {told}.")

# %%
# Our pick
# --------
# In the shell: ``wellsep choose-k data.csv``.
chosen = {name: ws.choose_k(X, RANGE, random_state=SEED) for name, (X, _) in data.items()}
for name, found in chosen.items():
    print(f"{name}: {found.explain().splitlines()[0]}")

# %%
# What simple rules pick
# ----------------------
# The rules see the same k-means partitions.
rules = {
    "elbow of the sum of squares": "elbow",
    "best silhouette": "silhouette",
    "best Calinski-Harabasz": "calinski_harabasz",
    "gap statistic": "gap",
    "prediction strength": "prediction_strength",
}
voted = {
    name: ws.choose_k(X, RANGE, indices=list(rules.values()), gate=False, random_state=SEED)
    for name, (X, _) in data.items()
}


def labels_for(name: str, k: int) -> np.ndarray:
    """The k-means partition of a data set; all zero for one cluster."""
    return voted[name].labels_for(k) if k > 1 else np.zeros(n, dtype=int)


ari = {
    name: {k: ws.ari_score(truth, labels_for(name, k)) for k in (1, *RANGE)}
    for name, (_, truth) in data.items()
}
picks = {"our pick": {name: found.best for name, found in chosen.items()}}
for rule, index in rules.items():
    picks[rule] = {name: found.picks[index] for name, found in voted.items()}
picks["always 3"] = dict.fromkeys(data, 3)
picks["best K, known only with the truth"] = {
    name: max(values, key=values.__getitem__) for name, values in ari.items()
}
mean_ari = {
    rule: float(np.mean([ari[name][k] for name, k in found.items()]))
    for rule, found in picks.items()
}
print("\nK picked in each data set, and the mean over them:")
print(f"{'':<36}" + "".join(f"{name:>15}" for name in data) + f"{'ARI with truth':>16}")
for rule, found in picks.items():
    print(f"{rule:<36}" + "".join(f"{k:>15}" for k in found.values()) + f"{mean_ari[rule]:>16.3f}")

# %%
# Who won
# -------
# We won, because ``choose_k`` asks first whether there is more than one cluster. Most simple rules
# find clusters in noise, and the gap statistic alone joins clusters that are apart.
ours = mean_ari["our pick"]
ahead = [rule for rule in picks if mean_ari[rule] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")
wrong = [name for name, found in chosen.items() if found.best != true_k[name]]
print(f"Our K is not the true one for: {', '.join(wrong) or 'no data set'}.")

# %%
# Pictures
# --------
# Each rule over the number of clusters, for separate clusters and for uniform noise. A large dot is
# what a rule picks. The dashed line is the K to show: in noise, where the answer is 1, the best
# above 1.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import CurvesDisplay

    for name in ("separate", "uniform noise"):
        display = CurvesDisplay.from_result(voted[name])
        answer = f"{name}: the truth is {true_k[name]}, choose_k says {chosen[name].best}"
        display.figure_.suptitle(answer)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
