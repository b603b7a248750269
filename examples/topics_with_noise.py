"""
Topics: which UMAP and HDBSCAN settings, when much of it is noise?
==================================================================

Texts are embedded, reduced by UMAP and clustered by HDBSCAN, which leaves objects without a
cluster (label −1). Every setting gives other topics and another share of noise. Which setting
should be believed?

The texts are docstrings of NumPy, SciPy, scikit-learn and the standard library as they are
installed here, without names and code. The truth is the part of the library that each comes from.
Without umap-learn, scikit-learn's spectral embedding takes its place. We print the truth, our
pick, what simple rules pick, and how near each pick is to the truth. Noise counts as a class of
its own in the ARI, so that leaving objects out is no way to a better value.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import warnings

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import SpectralEmbedding
from sklearn.preprocessing import normalize

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
MOST_TEXTS = 25 if SMALL else 120  # of one class
NEIGHBOURS = (10, 30) if SMALL else (5, 15, 40)
DIMENSIONS = (2,) if SMALL else (2, 5)
LEAST_SIZES = (5, 10) if SMALL else (5, 10, 20, 40, 80)
SEED = 0
CLASSES = {
    "statistics": ["scipy.stats"],
    "signals": ["scipy.signal"],
    "images": ["scipy.ndimage"],
    "linear algebra": ["scipy.linalg", "numpy.linalg"],
    "sparse matrices": ["scipy.sparse", "scipy.sparse.csgraph"],
    "optimisation": ["scipy.optimize"],
    "special functions": ["scipy.special"],
    "interpolation": ["scipy.interpolate", "scipy.integrate"],
    "strings": ["numpy.strings"],
    "learning": ["sklearn.linear_model", "sklearn.ensemble", "sklearn.svm", "sklearn.neighbors"],
    "metrics": ["sklearn.metrics"],
    "files": ["os", "shutil", "tempfile", "zipfile", "tarfile"],
}


# %%
# Texts
# -----
def texts_of(module_name: str) -> list[str]:
    """The docstrings of a module's functions and classes: the words before the parameters."""
    module = importlib.import_module(module_name)
    found = []
    for name in sorted(name for name in dir(module) if not name.startswith("_")):
        thing = getattr(module, name)
        if not callable(thing):
            continue
        text = re.split(r"\n(?:Parameters|Attributes|Returns)\n-+", inspect.getdoc(thing) or "")[0]
        text = re.sub(r"`+[^`]*`+|:[a-z]+:|[^A-Za-z ]", " ", text.replace(name, " "))
        words = [word.lower() for word in text.split() if len(word) > 2]
        if len(words) >= 12:
            found.append(" ".join(words[:160]))
    return found


texts: dict[str, str] = {}  # text: class; a text that two modules share is taken once
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of names that the libraries will remove
    for topic, modules in CLASSES.items():
        new = dict.fromkeys(t for module in modules for t in texts_of(module) if t not in texts)
        texts |= dict.fromkeys(list(new)[:MOST_TEXTS], topic)
truth = np.array(list(texts.values()))
print(f"{len(texts)} texts. The truth: {len(np.unique(truth))} topics.")

# %%
# Settings
# --------
vectorizer = TfidfVectorizer(stop_words="english", min_df=2, sublinear_tf=True)
words = vectorizer.fit_transform(texts)
vectors = normalize(TruncatedSVD(50, random_state=SEED).fit_transform(words))


def layout(n_neighbors: int, n_components: int) -> np.ndarray:
    """UMAP where it is installed, else the spectral embedding that it starts from."""
    if importlib.util.find_spec("umap"):
        import umap

        return umap.UMAP(
            n_neighbors=n_neighbors,
            n_components=n_components,
            min_dist=0.0,
            metric="cosine",
            random_state=SEED,
            n_jobs=1,
        ).fit_transform(vectors)
    model = SpectralEmbedding(
        n_components,
        affinity="nearest_neighbors",
        n_neighbors=n_neighbors,
        random_state=SEED,
        eigen_solver="arpack",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the graph of few neighbours falls into parts
        return model.fit_transform(vectors)


method = "UMAP" if importlib.util.find_spec("umap") else "spectral embedding (no umap-learn here)"
spaces, partitions, made_in = {}, {}, {}
for n_neighbors in NEIGHBOURS:
    for d in DIMENSIONS:
        space = f"nn={n_neighbors} d={d}"
        spaces[space] = layout(n_neighbors, d)
        for size in LEAST_SIZES:
            name = f"{space} size={size}"
            model = HDBSCAN(min_cluster_size=size, copy=True)
            partitions[name] = model.fit_predict(spaces[space])
            made_in[name] = space
print(f"{len(partitions)} runs: {method}, then HDBSCAN.")

# %%
# Our pick
# --------
# Noise has its price by default: what a partition leaves out lowers its score. In the shell:
# ``wellsep rank runs/``.
runs = ws.Runs.from_parts(spaces, partitions, pairs=made_in)
judgement = ws.judge(runs, random_state=SEED)
print(judgement)

# %%
# Which topics are found again?
# -----------------------------
# Support says how far the better runs find a cluster again; the words are the heaviest ones.
print(f"\n{judgement.verdict.groups or judgement.agreed.why}")
of_clusters, own_labels = judgement.clusters, partitions[judgement.ranking.best].astype(str)
vocabulary = vectorizer.get_feature_names_out()
for row in of_clusters.of(judgement.ranking.best):
    label = of_clusters.clusters[row]
    weight = np.asarray(words[own_labels == label].mean(axis=0)).ravel()
    heavy = ", ".join(vocabulary[np.argsort(-weight)[:3]])
    print(f"cluster {label}: support {of_clusters.support[row]:.2f}, words {heavy}")

# %%
# What simple rules pick
# ----------------------
names = list(partitions)
clusters = {name: len(np.unique(y[y >= 0])) for name, y in partitions.items()}
coverage = {name: float(np.mean(y >= 0)) for name, y in partitions.items()}
ari = {name: ws.ari_score(truth, y) for name, y in partitions.items()}


def best_in_own_space(index: str, noise: str) -> str:
    """The partition with the best score in the embedding that it was made in."""
    values = [
        ws.score_partitions(spaces[made_in[name]], {name: y}, [index], noise=noise).values[0, 0]
        for name, y in partitions.items()
    ]
    return names[int(np.nanargmax(values))]


several = [k for k in clusters.values() if k > 1]
usual = max(set(several), key=several.count)
by_ari = sorted(names, key=ari.__getitem__)
picks = {
    "our pick": judgement.ranking.best,
    "best silhouette in its own embedding": best_in_own_space("silhouette", "exclude"),
    "the same, noise priced": best_in_own_space("silhouette", "penalize"),
    "best Calinski-Harabasz, likewise": best_in_own_space("calinski_harabasz", "exclude"),
    f"most frequent number of clusters ({usual})": next(n for n in names if clusters[n] == usual),
    "least noise": max(names, key=coverage.__getitem__),
    "most clusters": max(names, key=clusters.__getitem__),
    "median run": by_ari[len(names) // 2],
    "best run, known only with the truth": by_ari[-1],
}
print(f"\n{'':<42}{'run':<20}{'K':>4}{'coverage':>10}{'ARI with truth':>16}")
for rule, name in picks.items():
    facts = f"{clusters[name]:>4}{coverage[name]:>10.0%}{ari[name]:>16.3f}"
    print(f"{rule:<42}{name:<20}{facts}")

# %%
# Who won
# -------
# We won at a low level, because the rules by an index prefer two to five clusters, far fewer than
# the twelve topics. No run is good: the best has an ARI of .31.
ours = ari[judgement.ranking.best]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# Where could the noise go?
# -------------------------
# Objects whose nearest neighbours agree on a cluster can be put there.
best = partitions[judgement.ranking.best]
report = ws.membership_report(spaces[made_in[judgement.ranking.best]], best)
filled = report.assign_noise(0.8)
after = ws.ari_score(truth, filled)
print(f"\nOur pick has {np.mean(best < 0):.0%} noise and ARI {ours:.3f}.")
print(f"With assign_noise(0.8) it has {np.mean(filled < 0):.0%} noise and ARI {after:.3f}.")

# %%
# Pictures
# --------
# An embedding that decides and one that does not, coloured by our pick, with noise in grey. Then
# how much the runs agree with each other: blocks are runs that found the same topics.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import RunAgreementDisplay, SpacesDisplay

    SpacesDisplay.from_result(judgement, runs, labels=judgement.ranking.best)
    RunAgreementDisplay.from_result(judgement)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
