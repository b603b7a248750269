"""
Handwritten digits: which clusters can be trusted?
==================================================

Five ways to embed 1,797 small images, and k-means with 6, 10 and 14 clusters in each of them. No
clustering is right as a whole. But some clusters are found by every clustering that has a claim
to the first place, and the others leave a few questions, such as "6 and 13: one group or two?". We
answer them by a look at eight images on each side, and see whether the labels come nearer to the
true digits than those of the run that the ranking picks.

We print the truth, our pick, the settled labels, what simple rules pick, and how near each is to
the truth. A look at eight images is simulated: it sees the digit that most of them show.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA
from sklearn.manifold import TSNE, Isomap, SpectralEmbedding

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
SEED = 0
CLUSTERS = (6, 10, 14)
LOOK = 8  # images on each side

# %%
# Runs
# ----
digits = load_digits()
X, truth = digits.data, digits.target
if SMALL:
    X, truth = X[:400], truth[:400]
print(f"{len(X)} images. The truth: {len(np.unique(truth))} digits.")
models = {
    "PCA 20": PCA(20, random_state=SEED),
    "NMF 10": NMF(10, max_iter=400, random_state=SEED),
    "Isomap 5": Isomap(n_neighbors=10, n_components=5),
    "spectral 8": SpectralEmbedding(8, n_neighbors=10, random_state=SEED),
    "t-SNE 2": TSNE(2, random_state=SEED),
}
spaces = {name: model.fit_transform(X) for name, model in models.items()}
partitions = {
    f"{name}, K={k}": KMeans(k, n_init=2, random_state=SEED).fit_predict(Z)
    for name, Z in spaces.items()
    for k in CLUSTERS
}
pairs = {name: name.rpartition(",")[0] for name in partitions}
runs = ws.Runs.from_parts(spaces, partitions, pairs=pairs)

# %%
# Agreed groups and questions
# ---------------------------
# Agreed groups are clusters of the best run that every contender has. Support is told for every
# cluster; the share says how often clusters with such support were a class on other data.
judgement = ws.judge(runs, random_state=SEED)
print(judgement.agreed)
best = judgement.ranking.best
labels = partitions[best].astype(str)
columns = judgement.clusters.columns()
for row in judgement.clusters.of(best):
    inside = truth[labels == columns["cluster"][row]]
    print(
        f"cluster {columns['cluster'][row]:>2}: {columns['size'][row]:>3} images, "
        f"support {columns['support'][row]:.2f}, were a class {columns['class_share'][row]:.0%}, "
        f"mostly {np.bincount(inside).argmax()} ({np.bincount(inside).max() / len(inside):.0%})"
    )


# %%
# A look at eight images
# ----------------------
# Of each group we look at the images that most runs keep in it. Groups that show the same digit
# are one; a group that shows the digit of an agreed one belongs to it.
def seen_digit(objects: np.ndarray) -> int:
    """The digit that most of the eight best supported images of a group show."""
    support = judgement.clusters.object_support[objects]
    return int(np.bincount(truth[objects[np.argsort(-support, kind="stable")[:LOOK]]]).argmax())


def answer(question) -> int:
    """The number of the side whose groups show different digits, and whose parts the same."""
    score = []
    for side in question.sides:
        groups = [question.objects[side.codes == g] for g in range(len(side.groups))]
        seen = [seen_digit(objects) for objects in groups if len(objects)]
        beside = [seen_digit(np.flatnonzero(labels == name)) for name in question.beside]
        mixed = 0
        for objects in groups:
            own = np.unique(labels[objects])
            parts = {seen_digit(objects[labels[objects] == name]) for name in own}
            mixed += len(parts) - 1 if len(objects) else 0
        joined = [name for name in side.groups if name in question.beside]
        known = [seen_digit(np.flatnonzero(labels == name)) for name in joined]
        wrong = sum(digit not in seen for digit in known)
        twice = len(seen) - len(set(seen)) + sum(d in seen for d in beside if d not in known)
        score.append(mixed + twice + wrong)
    return int(np.argmin(score))


answers = {question.id: answer(question) for question in judgement.questions}
for question in judgement.questions:
    side = question.sides[answers[question.id]]
    print(
        f"{question.text} {side.words.capitalize()} ({side.share:.0%} of the half-samples say so)."
    )
settled = labels if judgement.agreed.why else judgement.settle(answers)

# %%
# How near to the truth
# ---------------------
names = list(partitions)
clusters = {name: len(np.unique(codes)) for name, codes in partitions.items()}
ari = {name: ws.ari_score(truth, codes) for name, codes in partitions.items()}
own = {name: ws.silhouette_score(spaces[pairs[name]], partitions[name]) for name in names}
by_ari = sorted(names, key=ari.__getitem__)
picks = {
    "our pick": best,
    "best silhouette in its own embedding": max(names, key=own.__getitem__),
    "most clusters": max(names, key=clusters.__getitem__),
    "median run": by_ari[len(names) // 2],
    "best run, known only with the truth": by_ari[-1],
}
print(f"\n{'':<48}{'partition':<22}{'K':>3}{'ARI with truth':>16}")
for rule, name in picks.items():
    print(f"{rule:<48}{name:<22}{clusters[name]:>3}{ari[name]:>16.3f}")

# %%
# Who won
# -------
# We and the silhouette pick the same run, because its embedding keeps most digits apart. Here the
# answers leave its clusters as they are, so the settled labels are as good as the pick, not better.
ours = ari[best]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")
print(f"Settled by looking: {len(set(settled))} groups, ARI {ws.ari_score(truth, settled):.3f}.")

# %%
# Pictures
# --------
# Eight images of each group that the first question is about.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    shown = judgement.questions[0].clusters if judgement.questions else tuple(np.unique(labels)[:2])
    figure, axes = plt.subplots(len(shown), LOOK, figsize=(LOOK, len(shown) + 0.5), squeeze=False)
    for name, row in zip(shown, axes, strict=True):
        members = np.flatnonzero(labels == name)
        support = judgement.clusters.object_support[members]
        typical = members[np.argsort(-support, kind="stable")[:LOOK]]
        for place in row:
            place.set_axis_off()
        for place, image in zip(row, typical, strict=False):
            place.imshow(X[image].reshape(8, 8), cmap="gray_r")
        row[0].set_title(f"group {name}", loc="left")
    if judgement.questions:
        figure.suptitle(judgement.questions[0].text)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
