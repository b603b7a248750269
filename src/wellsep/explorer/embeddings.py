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
from wellsep.spaces.classical_scaling import centred_gram, scaled_components

COMPONENTS, VARIANCE = 50, 0.9  # of a table: the first that hold this share of the variance
AXES = 10  # of distances
NEIGHBOURS, WIDTH = 15, 5  # of each object in the graph; columns of the embedding made from it
FEWEST = 20  # objects that a graph of neighbours is made of
MOST_GIVEN = 3  # given embeddings up to which each gets a neighbour embedding by default
KINDS = ("pca", "umap", "tsne")


def umap_installed() -> bool:
    """Whether umap-learn can be imported."""
    return importlib.util.find_spec("umap") is not None


def embedding_kinds(asked: Iterable[str] | None, n_given: int) -> tuple[str, ...]:
    """The kinds of embeddings to make: those asked for, or what suits the data."""
    if asked is not None:
        kinds = [asked] if isinstance(asked, str) else check_names("embeddings", asked)
        return tuple(check_choice("embeddings", kind, KINDS) for kind in dict.fromkeys(kinds))
    graph = "umap" if umap_installed() else "tsne"
    return ("pca", graph) if n_given == 1 else (graph,) if n_given <= MOST_GIVEN else ()


def embed(space: Any, kind: str, seed: int) -> np.ndarray | None:
    """One embedding of a space; None where it would be the space itself, or objects are too few."""
    n = space.shape[0]
    if kind == "pca":
        return _components(space, seed)
    if n < FEWEST:
        return None
    table = _graph_table(space, seed)
    metric = "precomputed" if isinstance(space, PairSpace) else "euclidean"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of UMAP: one thread, distances instead of rows
        if kind == "umap":
            return _umap(table, metric, seed)
        return _tsne(table, metric, seed)


def _components(space: Any, seed: int) -> np.ndarray | None:
    """Principal components; of sparse rows singular vectors, of distances classical scaling."""
    n, d = space.shape
    if isinstance(space, PairSpace):
        return scaled_components(centred_gram(space, np.arange(n)), min(AXES, n - 1)).scores
    most = min(COMPONENTS, d, n - 1)
    if sp.issparse(space):
        most = min(most, d - 1)
        return None if most < 2 else normalize(_svd(space, most, seed))
    if d <= 3 or most < 2:
        return None
    model = PCA(most, random_state=seed).fit(space)
    shares = np.cumsum(model.explained_variance_ratio_)
    used = max(2, int(np.searchsorted(shares, VARIANCE)) + 1)
    return None if used >= d else model.transform(space)[:, :used]


def _svd(space: Any, width: int, seed: int) -> np.ndarray:
    return np.asarray(TruncatedSVD(width, random_state=seed).fit_transform(sp.csr_matrix(space)))


def _graph_table(space: Any, seed: int) -> np.ndarray:
    """Rows, or distances, that neighbours are found in: at most 50 columns of rows."""
    if isinstance(space, PairSpace):
        return space.matrix()
    n, d = space.shape
    most = min(COMPONENTS, n - 1)
    if sp.issparse(space):
        return normalize(_svd(space, min(most, d - 1), seed)) if d > most else space.toarray()
    return PCA(most, random_state=seed).fit_transform(space) if d > most else space


def _umap(table: np.ndarray, metric: str, seed: int) -> np.ndarray:
    try:
        from umap import UMAP
    except ImportError:
        raise ImportError(
            "embeddings must not name 'umap' without the package umap-learn; install it with: "
            "pip install umap-learn, or use 'tsne'."
        ) from None
    near = min(NEIGHBOURS, len(table) - 1)
    width = min(WIDTH, max(2, table.shape[1]), len(table) - 2)
    model = UMAP(
        n_components=width, n_neighbors=near, min_dist=0.0, metric=metric, random_state=seed
    )
    return np.asarray(model.fit_transform(table), dtype=np.float64)


def _tsne(table: np.ndarray, metric: str, seed: int) -> np.ndarray:
    """t-SNE in a plane; Laplacian eigenmaps keep fewer clusters apart."""
    init = "pca" if metric == "euclidean" else "random"
    near = min(30.0, (len(table) - 1) / 4)
    model = TSNE(2, perplexity=near, init=init, metric=metric, random_state=seed)
    return np.asarray(model.fit_transform(table), dtype=np.float64)
