"""
Single cells: which Leiden resolution, in which embedding?
==========================================================

A common analysis leaves one AnnData file with several embeddings of the same cells, and in each of
them a clustering for every resolution that was tried. Nobody knows the cell types yet. Which
column of ``obs`` should be annotated?

The cells are simulated, so that the truth is known. There are eight types in four lineages, from
30 % of the cells to 2 %. They have a cell cycle, two batches and mostly zeros among the counts.
Three embeddings are clustered at eight resolutions each, by Louvain's algorithm on the graph of
nearest neighbours. We print the truth, our pick, what simple rules pick, and how near each pick is
to the truth.

A caution: do not use the silhouette to judge how well *batches* were removed. It compares each cell
with its nearest other batch alone, so that a bad correction can score well, and it prefers round
cell types to real ones. Rautenstrauch and Ohler (2025, `Nature Biotechnology
<https://doi.org/10.1038/s41587-025-02743-4>`_) show this and propose BRAS in its place. Here no
label of a batch or cell type is scored: wellsep compares clusterings of the same cells. An
embedding that lost cell types during correction can still win. Look at marker genes as well.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF, PCA
from sklearn.neighbors import kneighbors_graph

import wellsep as ws

SMALL = bool(os.environ.get("WELLSEP_SMALL_EXAMPLES"))  # a quick run, to see that it runs
N_CELLS, N_GENES = (300, 400) if SMALL else (900, 800)
RESOLUTIONS = (0.5, 1.0, 2.0) if SMALL else (0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0)
SEED = 0
LINEAGES = {  # type: lineage
    "CD4 T": 0,
    "CD14 mono": 1,
    "B": 2,
    "CD8 T": 0,
    "NK": 0,
    "FCGR3A mono": 1,
    "DC": 1,
    "platelet": 3,
}
SHARES = (0.30, 0.22, 0.15, 0.12, 0.09, 0.06, 0.04, 0.02)


# %%
# Counts
# ------
# Genes that mark a lineage are strong, those that mark a type are weaker and fewer.
def simulated_counts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts, cells × genes, and the type of each cell."""
    lineage = np.array(list(LINEAGES.values()))
    types = rng.choice(len(SHARES), size=N_CELLS, p=SHARES)
    rate = np.tile(np.log(rng.gamma(0.35, 1.0, size=N_GENES) + 1e-4), (len(SHARES), 1))
    genes = iter(np.split(rng.permutation(N_GENES)[: 13 * (N_GENES // 15)], 13))
    for group in range(4):
        rate[np.ix_(lineage == group, next(genes))] += rng.normal(1.8, 0.5, N_GENES // 15)
    for kind in range(8):
        markers = next(genes)[: N_GENES // 40]
        rate[kind, markers] += rng.normal(1.5, 0.5, len(markers))
    cycle = np.zeros(N_GENES)
    cycle[next(genes)] = rng.normal(0.9, 0.3, N_GENES // 15)
    cycling = np.where(rng.random(N_CELLS) < 0.25, rng.random(N_CELLS), 0)
    batch = rng.normal(0, 0.15, size=(2, N_GENES))[rng.integers(2, size=N_CELLS)]
    share = np.exp(rate[types] + np.outer(cycling, cycle) + batch)
    share /= share.sum(axis=1, keepdims=True)
    depth = np.exp(rng.normal(np.log(900), 0.45, size=(N_CELLS, 1)))
    return rng.poisson(rng.gamma(2.0, share * depth / 2.0)), np.array(list(LINEAGES))[types]


counts, truth = simulated_counts(np.random.default_rng(SEED))
print(f"{len(counts)} cells, {counts.shape[1]} genes, {np.mean(counts == 0):.0%} zeros.")
print(f"The truth: {len(np.unique(truth))} cell types.")

# %%
# Three embeddings
# ----------------
# Principal components of log counts, the same of Pearson residuals, and a matrix factorisation.
total = counts.sum(axis=1, keepdims=True)
logs = np.log1p(1e4 * counts / total)
expected = total * counts.sum(axis=0) / counts.sum()
residuals = (counts - expected) / np.sqrt(expected + expected**2 / 100 + 1e-9)
spaces = {
    "X_pca": PCA(20, random_state=SEED).fit_transform(logs),
    "X_pearson": PCA(20, random_state=SEED).fit_transform(np.clip(residuals, -30, 30)),
    "X_nmf": NMF(12, init="nndsvda", max_iter=300, tol=1e-2).fit_transform(logs),
}


# %%
# Eight resolutions in each
# -------------------------
# Louvain's algorithm moves cells, then communities, to the neighbouring community that gains most
# modularity. Where scanpy and igraph are installed (``pip install ".[examples]"``),
# ``sc.tl.leiden`` takes its place.
def communities(graph: sparse.csr_array, resolution: float, rng: np.random.Generator) -> np.ndarray:
    """The community of every node of a weighted graph."""
    of_node = np.arange(graph.shape[0])
    while True:
        strength = graph.sum(axis=1)
        mine = np.arange(graph.shape[0])
        mass = strength.copy()
        moved = True
        while moved:
            moved = False
            for node in rng.permutation(graph.shape[0]):
                part = slice(graph.indptr[node], graph.indptr[node + 1])
                near, weights = graph.indices[part], graph.data[part]
                there, which = np.unique(
                    np.append(mine[near[near != node]], mine[node]), return_inverse=True
                )
                links = np.bincount(which[:-1], weights[near != node], minlength=len(there))
                mass[mine[node]] -= strength[node]
                gain = links - resolution * strength[node] * mass[there] / strength.sum()
                best = there[gain.argmax()]
                if gain.max() > gain[there == mine[node]][0] + 1e-9:
                    mine[node], moved = best, True
                mass[mine[node]] += strength[node]
        _, mine = np.unique(mine, return_inverse=True)
        of_node = mine[of_node]
        if mine.max() + 1 == graph.shape[0]:
            return of_node
        member = sparse.csr_array((np.ones(len(mine)), (np.arange(len(mine)), mine)))
        graph = sparse.csr_array(member.T @ graph @ member)


def leiden(graph: sparse.csr_array, resolution: float) -> np.ndarray:
    """The community of every cell as scanpy finds it."""
    import scanpy as sc

    cells = sc.AnnData(obs={"cell": np.arange(graph.shape[0])})
    sc.tl.leiden(
        cells,
        resolution,
        adjacency=sparse.csr_matrix(graph),
        flavor="igraph",
        n_iterations=2,
        directed=False,
        random_state=SEED,
    )
    return cells.obs["leiden"].astype(int).to_numpy()


HAS_LEIDEN = all(importlib.util.find_spec(package) for package in ("scanpy", "igraph"))
print(f"Communities by {'Leiden (scanpy)' if HAS_LEIDEN else 'Louvain (no scanpy here)'}.")
partitions = {}
for space, Z in spaces.items():
    neighbours = sparse.csr_array(kneighbors_graph(Z, 15))
    graph = sparse.csr_array(neighbours + neighbours.T)
    for resolution in RESOLUTIONS:
        name = f"leiden_{space.removeprefix('X_')}_{resolution}"
        if HAS_LEIDEN:
            partitions[name] = leiden(graph, resolution)
        else:
            partitions[name] = communities(graph, resolution, np.random.default_rng(SEED))

# %%
# Our pick
# --------
# AnnData goes into ``judge`` as it is. In the shell: ``wellsep rank cells.h5ad --labels 'leiden_*'
# --pairs 'leiden_{space}_*'``. Without AnnData, `Runs.from_parts` takes the arrays.
pairs = {name: f"X_{name.split('_')[1]}" for name in partitions}
runs = ws.Runs.from_parts(spaces, partitions, pairs=pairs)
if importlib.util.find_spec("anndata"):
    import anndata
    import pandas as pd

    obs = pd.DataFrame(partitions, index=[f"CELL{i:04d}" for i in range(len(truth))])
    source = anndata.AnnData(obs=obs.astype("category"), obsm=spaces)
    judgement = ws.judge(source, labels="leiden_*", pairs="leiden_{space}_*", random_state=SEED)
else:
    judgement = ws.judge(runs, random_state=SEED)
print(judgement)

# %%
# Which clusters can be annotated?
# --------------------------------
# A cluster that the better runs find again is worth a name. The markers are the genes that differ
# most; a batch would have support too, so look at them.
print(f"\n{judgement.verdict.groups or judgement.agreed.why}")
of_clusters, own_labels = judgement.clusters, partitions[judgement.ranking.best].astype(str)
genes = [f"gene {i}" for i in range(counts.shape[1])]
table = ws.describe_clusters(logs, own_labels, genes)
for row in of_clusters.of(judgement.ranking.best):
    label, at = of_clusters.clusters[row], table.clusters.index(of_clusters.clusters[row])
    markers = ", ".join(genes[g] for g in np.argsort(-table.difference[at])[:3])
    print(f"cluster {label}: support {of_clusters.support[row]:.2f}, markers {markers}")

# %%
# What simple rules pick
# ----------------------
names = list(partitions)
clusters = {name: len(np.unique(labels)) for name, labels in partitions.items()}
ari = {name: ws.ari_score(truth, labels) for name, labels in partitions.items()}


def best_in_own_space(index: str) -> str:
    """The partition with the best score in the embedding that it was made in."""
    own = {
        name: ws.score_partitions(spaces[f"X_{name.split('_')[1]}"], {name: labels}, [index])
        for name, labels in partitions.items()
    }
    return max(names, key=lambda name: own[name].values[0, 0])


counted = list(clusters.values())
usual = max(set(counted), key=counted.count)
by_ari = sorted(names, key=ari.__getitem__)
picks = {
    "our pick": judgement.ranking.best,
    "best silhouette in its own embedding": best_in_own_space("silhouette"),
    "best Calinski-Harabasz in its own embedding": best_in_own_space("calinski_harabasz"),
    f"most frequent number of clusters ({usual}), first": names[counted.index(usual)],
    "most clusters": max(names, key=clusters.__getitem__),
    "resolution 1 in X_pca, the usual default": "leiden_pca_1.0",
    "median run": by_ari[len(names) // 2],
    "best run, known only with the truth": by_ari[-1],
}
print(f"\n{'':<48}{'partition':<22}{'K':>3}{'ARI with truth':>16}")
for rule, name in picks.items():
    print(f"{rule:<48}{name:<22}{clusters[name]:>3}{ari[name]:>16.3f}")

# %%
# Which embedding?
# ----------------
means = {s: np.mean([ari[n] for n in names if f"X_{n.split('_')[1]}" == s]) for s in spaces}
found = judgement.embeddings.best
print(f"\nOur pick among the embeddings: {found}.")
print(f"Mean ARI made in each: {', '.join(f'{s} {mean:.3f}' for s, mean in means.items())}.")

# %%
# Who won
# -------
# The usual resolution of 1 won, because the vote supports a coarser clustering: ours has six
# clusters, the usual one seven, the truth eight.
ours = ari[judgement.ranking.best]
ahead = [rule for rule, name in picks.items() if ari[name] > ours and "truth" not in rule]
print(f"{'; '.join(ahead) or 'No simple rule'} did better than our pick.")

# %%
# Pictures
# --------
# On the left the embedding with the largest weight, on the right one that was left out, both
# coloured by our pick. Then the silhouette widths of our pick, cluster by cluster.
if importlib.util.find_spec("matplotlib"):
    import matplotlib.pyplot as plt

    from wellsep.plot import SilhouetteDisplay, SpacesDisplay

    best = judgement.ranking.best
    SpacesDisplay.from_result(judgement, runs, labels=best)
    SilhouetteDisplay.from_predictions(spaces[f"X_{best.split('_')[1]}"], partitions[best])
    plt.show()
else:
    print("No pictures: matplotlib is not installed. Run pip install matplotlib.")
