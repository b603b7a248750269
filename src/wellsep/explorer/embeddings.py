"""The embeddings that candidates are made in, besides the data: components and neighbours."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.manifold import TSNE
from sklearn.preprocessing import normalize

from wellsep._checks.arrays import check_choice
from wellsep._checks.values import check_names
from wellsep.distances.base import PairSpace
from wellsep.spaces.drawing_planes import umap
from wellsep.spaces.projections import centred_gram, scaled_components

COMPONENTS, VARIANCE = 50, 0.9  # of a table: the first that hold this share of the variance
AXES = 10  # of distances
NEIGHBOURS, WIDTH = 15, 5  # of each object in UMAP's graph; columns of its embedding
FEWEST = 20  # objects that neighbours are found among
MOST_GIVEN = 3  # given embeddings up to which each gets a neighbour embedding by default
KINDS = ("pca", "umap", "tsne")


def embedding_kinds(asked: Iterable[str] | None, n_given: int) -> tuple[str, ...]:
    """The kinds of embeddings to make: those asked for, or what suits the data."""
    if asked is not None:
        kinds = [asked] if isinstance(asked, str) else check_names("embeddings", asked)
        return tuple(check_choice("embeddings", kind, KINDS) for kind in dict.fromkeys(kinds))
    graph = "tsne" if importlib.util.find_spec("umap") is None else "umap"
    return ("pca", graph) if n_given == 1 else (graph,) if n_given <= MOST_GIVEN else ()


def embed(space: Any, kind: str, seed: int) -> np.ndarray | None:
    """One embedding of a space; None where it would be the space itself, or objects are too few."""
    if kind == "pca":
        return _components(space, seed)
    if space.shape[0] < FEWEST:
        return None
    pairs = isinstance(space, PairSpace)
    table, metric = _rows_or_pairs(space, seed), "precomputed" if pairs else "euclidean"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of UMAP: one thread, distances instead of rows
        if kind == "umap":
            n, width = len(table), min(WIDTH, max(2, table.shape[1]), len(table) - 2)
            graph = {"n_neighbors": min(NEIGHBOURS, n - 1), "n_components": width, "min_dist": 0.0}
            return umap(table, metric, seed, **graph).astype(np.float64)
        near = min(30.0, (len(table) - 1) / 4)
        start = "random" if pairs or table.shape[1] < 2 else "pca"
        model = TSNE(2, perplexity=near, init=start, metric=metric, random_state=seed)
        return np.asarray(model.fit_transform(table), dtype=np.float64)


def _components(space: Any, seed: int, share: float = VARIANCE) -> np.ndarray | None:
    """Principal components; of sparse rows singular vectors, of distances classical scaling."""
    n, d = space.shape
    if isinstance(space, PairSpace):
        return scaled_components(centred_gram(space, np.arange(n)), min(AXES, n - 1)).scores
    most = min(COMPONENTS, d - sp.issparse(space), n - 1)
    if most < 2 or d <= 3:
        return None
    if sp.issparse(space):
        vectors = TruncatedSVD(most, random_state=seed).fit_transform(sp.csr_matrix(space))
        return np.asarray(normalize(vectors))
    model = PCA(most, random_state=seed).fit(space)
    variance = np.cumsum(model.explained_variance_ratio_)
    used = min(most, max(2, int(np.searchsorted(variance, share)) + 1))
    return None if used >= d else model.transform(space)[:, :used]


def _rows_or_pairs(space: Any, seed: int) -> np.ndarray:
    """Rows of at most 50 columns, or distances, that neighbours are found in."""
    if isinstance(space, PairSpace):
        return space.matrix()
    if min(space.shape[0] - 1, COMPONENTS) < space.shape[1]:
        space = _components(space, seed, 1.0)
    return np.asarray(space.toarray() if sp.issparse(space) else space)
