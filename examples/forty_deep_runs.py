"""
Forty deep runs: which one to keep?
===================================

Deep clustering has many settings and no validation set. Here two methods, DEC and deep k-means,
are trained on handwritten digits with several numbers of clusters, learning rates and widths of
the embedding: forty runs. Each has an embedding of its own, so that its own score says little.

The networks are small and the training is short, so that the example ends within a minute. We
print the truth, our pick, what simple rules pick, and how near each pick is to the truth. It needs
PyTorch: ``pip install ".[deep]"``.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile

import numpy as np

import wellsep as ws
from wellsep.deep import DEC, DeepKMeans, sweep

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_OBJECTS = 200 if SMALL else 600
GRID = {
    "n_clusters": [5, 10] if SMALL else [5, 8, 10, 12, 15],
    "learning_rate": [1e-3] if SMALL else [1e-3, 1e-2],
    "n_latent": [5, 10],
}
SEED = 0

# %%
# Data
# ----
X, truth = ws.load_dataset("digits", return_X_y=True)
X, truth = X[:N_OBJECTS] / 16, truth[:N_OBJECTS]
print(f"{len(X)} images. The truth: {len(np.unique(truth))} digits.")

# %%
# Forty runs
# ----------
# Both methods write into one folder. In the shell: ``wellsep train --data digits --method dec
# --grid lr=1e-3,1e-2 n_latent=5,10 n_clusters=5,8,10,12,15 --out runs/``.
folder = tempfile.TemporaryDirectory()
for method in (DEC, DeepKMeans):
    model = method(
        hidden=(64,),
        pretrain_epochs=1 if SMALL else 6,
        epochs=1 if SMALL else 4,
        device="cpu",
        random_state=SEED,
    )
    sweep(model, X, GRID, out=folder.name)
runs = ws.load_runs(folder.name)
print(f"{len(runs.partitions)} runs.")

# %%
# Our pick
# --------
# ``wellsep rank runs/`` does the same.
judgement = ws.judge(runs, random_state=SEED)
print(judgement)

# %%
# What simple rules pick
# ----------------------
names = list(runs.partitions)
clusters = {name: len(np.unique(labels)) for name, labels in runs.partitions.items()}
ari = {name: ws.ari_score(truth, labels) for name, labels in runs.partitions.items()}


def best(index: str, space: np.ndarray | None = None) -> str:
    """The run with the best score in one space, or in its own embedding."""
    values = []
    for name, labels in runs.partitions.items():
        Z = runs.spaces[name] if space is None else space
        values.append(ws.score_partitions(Z, {name: labels}, [index]).values[0, 0])
    return names[int(np.nanargmax(values))]


counted = list(clusters.values())
usual = max(set(counted), key=counted.count)
by_ari = sorted(names, key=ari.__getitem__)
picks = {
    "our pick": judgement.ranking.best,
    "best silhouette in its own embedding": best("silhouette"),
    "best Calinski-Harabasz, likewise": best("calinski_harabasz"),
    "best silhouette in the pixels": best("silhouette", X),
    f"most frequent number of clusters ({usual})": names[counted.index(usual)],
    "most clusters": max(names, key=clusters.__getitem__),
    "median run": by_ari[len(names) // 2],
    "best run, known only with the truth": by_ari[-1],
}
width = max(map(len, names)) + 2
print(f"\n{'':<42}{'run':<{width}}{'K':>4}{'ARI with truth':>16}")
for rule, name in picks.items():
    print(f"{rule:<42}{name:<{width}}{clusters[name]:>4}{ari[name]:>16.3f}")

# %%
# Who won
# -------
# The silhouette in the pixels won by a little, because no training can shape the pixels to suit a
# clustering. The verdict says that the methods disagree and that many runs are tied.
ours = ari[judgement.ranking.best]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# Pictures
# --------
# How much the runs agree with each other. Then the embedding with the largest weight and one that
# was left out, both coloured by the true digits.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import RunAgreementDisplay, SpacesDisplay

    RunAgreementDisplay.from_result(judgement)
    SpacesDisplay.from_result(judgement, runs, labels=truth)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
folder.cleanup()
