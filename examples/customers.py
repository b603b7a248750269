"""
Customers: how many segments, and what is in them?
==================================================

A shop has a list of purchases: who bought when, and for how much. It wants groups of customers
that it can write to. Three numbers per customer are usual. *Recency* is the days since the last
purchase. *Frequency* is the number of purchases. *Monetary value* is the mean amount. Together
they are called RFM.

Newcomers begin here. Five steps answer the usual questions:

* ``choose_k``: how many groups are there?
* ``labels_for``: who is in which?
* ``stability``: would other customers of the same shop give the same groups?
* ``describe_clusters``: what makes each group?
* ``plot``: how does it look?

The purchases are generated, so that the truth is known: five kinds of customers. We print the
truth, our pick, what simple rules pick, and how near each pick is to the truth.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
from sklearn.preprocessing import StandardScaler

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_CUSTOMERS = 200 if SMALL else 1500
N_DAYS = 730
RANGE = range(2, 7) if SMALL else range(2, 11)  # numbers of segments
SEED = 0
KINDS = {  # share of customers, days between purchases, mean amount, active from day to day
    "weekly": (0.20, 7, 30, (0, 730)),
    "monthly": (0.30, 40, 45, (0, 730)),
    "big spender": (0.10, 60, 400, (0, 730)),
    "lapsed": (0.25, 35, 40, (0, 330)),
    "new": (0.15, 18, 60, (680, 730)),
}


# %%
# Purchases
# ---------
def purchases(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Customer, day and amount of each purchase, and the kind of each customer."""
    kinds = rng.choice(list(KINDS), size=N_CUSTOMERS, p=[kind[0] for kind in KINDS.values()])
    who, when, amount = [], [], []
    for customer, kind in enumerate(kinds):
        _, every, mean, (begin, end) = KINDS[kind]
        begin, end = begin + rng.uniform(0, 30), end - rng.uniform(0, 15)
        pace = every * rng.lognormal(0, 0.45)
        days = np.cumsum(rng.exponential(pace, size=int(3 * N_DAYS / every)))
        days = np.append(begin, begin + days[begin + days < end])
        who.append(np.full(len(days), customer))
        when.append(days)
        level = mean * rng.lognormal(0, 0.45)
        amount.append(level * rng.lognormal(0, 0.4, size=len(days)))
    return np.concatenate(who), np.concatenate(when), np.concatenate(amount), kinds


customer, day, amount, truth = purchases(np.random.default_rng(SEED))
print(f"{len(day)} purchases of {N_CUSTOMERS} customers.")
print(f"The truth: {len(KINDS)} kinds of customers.")

# %%
# Recency, frequency, monetary value
# ----------------------------------
# A few customers have very large values, and k-means would make clusters of these alone. Logarithms
# bring the values closer together, and scaling gives each of the three the same weight.
recency = np.full(N_CUSTOMERS, np.inf)
np.minimum.at(recency, customer, N_DAYS - day)
frequency = np.bincount(customer, minlength=N_CUSTOMERS)
mean_amount = np.bincount(customer, amount, N_CUSTOMERS) / frequency
columns = {"recency": recency, "frequency": frequency, "mean amount": mean_amount}
rfm = np.column_stack(list(columns.values()))
X = StandardScaler().fit_transform(np.log1p(rfm))

# %%
# How many segments?
# ------------------
# In the shell: ``wellsep choose-k rfm.csv``.
chosen = ws.choose_k(X, RANGE, random_state=SEED)
print(chosen.explain())

# %%
# Would they be found again?
# --------------------------
# ``stability`` clusters 50 random samples of the customers. A mean similarity above .75 says that a
# segment is found again in most of them.
labels = chosen.labels_for()
model = ws.KMeans(chosen.best, n_init=10)
stable = ws.stability(
    model, X, labels, n_draws=5 if SMALL else 50, n_splits=2 if SMALL else 10, random_state=SEED
)
print(stable.explain())

# %%
# What is in them?
# ----------------
# ``features`` are days, purchases and money. The clusters were made from their scaled logarithms,
# which are harder to read.
described = ws.describe_clusters(
    X, labels, features=rfm, feature_names=list(columns), stability=stable
)
print(described.explain())

# %%
# What simple rules pick
# ----------------------
# The rules see the same partitions, one for each K. "Cells of medians" is the table that many
# shops make by hand: above or below the median of each number, eight cells.
rules = {
    "best silhouette": "silhouette",
    "best Calinski-Harabasz": "calinski_harabasz",
    "best Davies-Bouldin": "davies_bouldin",
    "elbow of the sum of squares": "elbow",
}
voted = ws.choose_k(X, RANGE, indices=list(rules.values()), gate=False, random_state=SEED)
cells = (rfm > np.median(rfm, axis=0)) @ [1, 2, 4]
partitions = {f"K = {k}": voted.labels_for(int(k)) for k in voted.k}
partitions["cells of medians"] = cells
ari = {name: ws.ari_score(truth, y) for name, y in partitions.items()}
picks = {"our pick": f"K = {chosen.best}"}
picks |= {rule: f"K = {voted.picks[index]}" for rule, index in rules.items()}
picks |= {
    "four segments, as in many books": "K = 4",
    "cells of medians, no clustering": "cells of medians",
    "best run, known only with the truth": max(partitions, key=ari.__getitem__),
}
print(f"\n{'':<42}{'partition':<22}{'K':>3}{'ARI with truth':>16}")
for rule, name in picks.items():
    n_clusters = len(np.unique(partitions[name]))
    print(f"{rule:<42}{name:<22}{n_clusters:>3}{ari[name]:>16.3f}")

# %%
# Who won
# -------
# The silhouette won, because it finds the five kinds of customers. Our K = 6 is the median of three
# votes (5, 6 and 8).
ours = ari[picks["our pick"]]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# Pictures
# --------
# Votes by K, and the numbers that are high or low in each segment.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import ClusterProfileDisplay, CurvesDisplay

    CurvesDisplay.from_result(chosen)
    ClusterProfileDisplay.from_result(described)
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
