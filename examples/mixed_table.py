"""
A mixed table: numbers, categories and missing values
=====================================================

A table of people has ages and incomes, but also jobs, regions, yes/no answers and gaps. k-means
takes none of these columns but the first two. Three ways out are usual. One keeps the numbers only.
One replaces categories by codes 0, 1, 2, …. One makes a column of zeros and ones for each
category. Gower's distance is made for such tables: it takes each column as what it is and leaves
gaps out.

``MixedTable`` (or ``metric="gower"``) gives that distance to every function that takes X. Here the
four ways are clustered with several numbers of clusters: which way, and which number?

The people are generated, so that the truth is known: five groups. We print the truth, our pick,
what simple rules pick, and how near each pick is to the truth. It needs pandas.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_PEOPLE = 120 if SMALL else 700
NUMBERS = (3, 5) if SMALL else (2, 3, 4, 5, 6, 7, 8, 10)
SEED = 0
SCHOOLING = ("basic", "middle", "high", "degree", "doctorate")
GROUPS = {  # share, age, income, job, way to work, schooling (0 to 4), owns a home
    "students": (0.20, 24, 12, "none", "bicycle", 2, 0.02),
    "workers": (0.30, 41, 32, "trade", "car", 1, 0.50),
    "office": (0.25, 39, 40, "office", "train", 3, 0.50),
    "doctors": (0.10, 47, 80, "health", "car", 4, 0.80),
    "retired": (0.15, 68, 24, "none", "none", 1, 0.80),
}
JOBS = ("none", "trade", "office", "health")
WAYS = ("bicycle", "car", "train", "none")


# %%
# A table with gaps
# -----------------
# One value in twelve is missing. Job and way to work are drawn at random for every fifth person.
# ``region`` has nothing to do with the groups.
def people(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """The table, and the group of each row."""
    groups = rng.choice(list(GROUPS), size=N_PEOPLE, p=[group[0] for group in GROUPS.values()])
    _, age, income, job, way, schooling, home = map(
        np.array, zip(*(GROUPS[group] for group in groups), strict=True)
    )
    level = np.clip(schooling + rng.integers(-1, 2, N_PEOPLE), 0, 4)
    table = pd.DataFrame(
        {
            "age": np.maximum(np.round(rng.normal(age, 8)), 18),
            "income": np.round(income * rng.lognormal(0, 0.4, N_PEOPLE), 1),
            "job": np.where(rng.random(N_PEOPLE) < 0.8, job, rng.choice(JOBS, N_PEOPLE)),
            "way to work": np.where(rng.random(N_PEOPLE) < 0.8, way, rng.choice(WAYS, N_PEOPLE)),
            "schooling": pd.Categorical.from_codes(level, SCHOOLING, ordered=True),
            "home": pd.array(rng.random(N_PEOPLE) < home, dtype="boolean"),
            "region": rng.choice(["north", "east", "south", "west"], N_PEOPLE),
        }
    )
    return table.mask(rng.random(table.shape) < 1 / 12), groups


table, truth = people(np.random.default_rng(SEED))
print(table.head(3).to_string())
print(f"{len(table)} people, {table.isna().to_numpy().mean():.0%} of the values missing.")
print(f"The truth: {len(np.unique(truth))} groups.")

# %%
# Four ways to use it
# -------------------
# All but Gower's distance need gaps filled: numbers by the median, categories by a level "missing".
numbers = table[["age", "income"]].fillna(table[["age", "income"]].median()).to_numpy(float)
others = table.drop(columns=["age", "income"]).astype("string").fillna("missing")
codes = np.column_stack([pd.factorize(others[name], sort=True)[0] for name in others])
dummies = pd.get_dummies(others).to_numpy(float)
spaces = {
    "Gower": ws.MixedTable(table),
    "numbers only": StandardScaler().fit_transform(numbers),
    "codes": StandardScaler().fit_transform(np.hstack([numbers, codes])),
    "zeros and ones": StandardScaler().fit_transform(np.hstack([numbers, dummies])),
}

# %%
# Clusterings
# -----------
partitions, made_in = {}, {}
for space, Z in spaces.items():
    for k in NUMBERS:
        name = f"{space}, K = {k}"
        model = ws.KMedoids(k, random_state=SEED) if space == "Gower" else ws.KMeans(k, n_init=5)
        partitions[name] = model.set_params(random_state=SEED).fit_predict(Z)
        made_in[name] = space

# %%
# Our pick
# --------
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


def best_in_own_space(index: str, spaces_tried: tuple[str, ...] = tuple(spaces)) -> str:
    """The partition with the best score in the space that it was made in."""
    own = {
        name: ws.score_partitions(spaces[made_in[name]], {name: labels}, [index]).values[0, 0]
        for name, labels in partitions.items()
        if made_in[name] in spaces_tried
    }
    return max(own, key=own.__getitem__)


by_ari = sorted(names, key=ari.__getitem__)
picks = {
    "our pick": judgement.ranking.best,
    "best silhouette in its own space": best_in_own_space("silhouette"),
    "best Calinski-Harabasz, likewise": best_in_own_space("calinski_harabasz"),
    "best silhouette, Gower": best_in_own_space("silhouette", ("Gower",)),
    "best silhouette, zeros and ones": best_in_own_space("silhouette", ("zeros and ones",)),
    "best silhouette, numbers only": best_in_own_space("silhouette", ("numbers only",)),
    "median run": by_ari[len(names) // 2],
    "best run, known only with the truth": by_ari[-1],
}
print(f"\n{'':<42}{'run':<24}{'K':>3}{'ARI with truth':>16}")
for rule, name in picks.items():
    print(f"{rule:<42}{name:<24}{clusters[name]:>3}{ari[name]:>16.3f}")
means = {s: np.mean([ari[n] for n in names if made_in[n] == s]) for s in spaces}
print(f"Mean ARI made in each: {', '.join(f'{s} {mean:.3f}' for s, mean in means.items())}.")

# %%
# Who won
# -------
# We won: our pick is the best run, made from scaled zeros and ones. They give more weight to the
# categories, which tell more in this table. Gower's distance is better than numbers or codes.
ours = ari[judgement.ranking.best]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# What is in the clusters
# -----------------------
# Means for numbers, shares for categories. Gaps are filled here as above.
best = partitions[judgement.ranking.best]
filled = others.assign(age=numbers[:, 0], income=numbers[:, 1])
described = ws.describe_clusters(spaces["zeros and ones"], best, features=filled)
print(described.explain())

# %%
# Pictures
# --------
# What is high or low in each cluster, and the silhouette widths by Gower's distance.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import ClusterProfileDisplay, SilhouetteDisplay

    ClusterProfileDisplay.from_result(described, n_features=3)
    SilhouetteDisplay.from_predictions(spaces["Gower"], best)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
