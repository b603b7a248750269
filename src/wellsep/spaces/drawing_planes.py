"""A plane to draw a space in: which objects are drawn, and their two coordinates."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from sklearn.manifold import TSNE
from sklearn.utils.extmath import svd_flip

from wellsep._checks.arrays import check_choice, in_safe_units
from wellsep._checks.values import check_generator
from wellsep._text.sentences import CLUSTERS
from wellsep.distances.base import PairSpace
from wellsep.partitions import cluster_sizes
from wellsep.spaces.projections import centred_gram, has_columns, scaled_components

LAYOUTS = ("pca", "tsne", "umap")
_FEW = 30  # objects under which neighbours say little
_NEAR = 3  # drawn neighbours that an object is put between
_BLOCK = 4096
_WIDE = 50  # columns that t-SNE and UMAP are given at most


def drawn_objects(n: int, most: int, random_state: Any = 0) -> np.ndarray:
    """Positions of at most `most` objects, in order."""
    if n <= most:
        return np.arange(n)
    rng = check_generator(random_state)
    return np.sort(rng.choice(n, most, replace=False))


def plane(X: Any, objects: np.ndarray, layout: str = "pca") -> tuple[np.ndarray, str]:
    """(s, 2) float32 coordinates of some objects of a space, and what the axes are.

    Spaces of one or two columns are shown as they are, those of distances by classical scaling.
    Of wider ones "pca" shows the first two principal components of the drawn objects, the largest
    loading positive so that the picture never flips; "tsne" and "umap" show an embedding of them.

    >>> xy, axes = plane(np.eye(5), np.arange(4))
    >>> xy.shape, axes
    ((4, 2), 'principal components')
    """
    check_choice("layout", layout, LAYOUTS)
    linear = layout == "pca" or len(objects) < 4
    axes, metric = "principal components", "euclidean"
    if has_columns(X):
        table, _ = in_safe_units(np.asarray(X[objects], dtype=np.float64))  # float32 must hold it
        if table.shape[1] <= 2:
            return _two_columns(table), "columns"
        if linear:
            return _two_columns(_principal_components(table)), axes
    else:
        gram = centred_gram(X, objects)
        if linear:
            axes = "axes of classical scaling" if isinstance(X, PairSpace) else axes
            return _two_columns(scaled_components(gram, 2).scores), axes
        squares = gram.diagonal() + gram.diagonal()[:, None] - 2 * gram
        table, metric = np.sqrt(np.maximum(squares, 0.0)), "precomputed"
        np.fill_diagonal(table, 0.0)
    if layout == "umap":
        return umap(table, metric), "UMAP"
    near, init = min(30.0, (len(table) - 1) / 3), "pca" if metric == "euclidean" else "random"
    model = TSNE(2, perplexity=near, init=init, metric=metric, random_state=0)
    return np.asarray(model.fit_transform(table)), "t-SNE"


def _two_columns(table: np.ndarray) -> np.ndarray:
    """The columns of a table of at most two in float32, with zeros for those that are missing."""
    return np.pad(table, ((0, 0), (0, 2 - table.shape[1]))).astype(np.float32)


def lay_out(X: Any, objects: np.ndarray, layout: str = "auto") -> tuple[np.ndarray, str]:
    """(s, 2) coordinates of some objects for the eye, and how they were made.

    "auto" is UMAP where it is installed, else t-SNE; few objects are shown by principal components.

    >>> lay_out(np.eye(5), np.arange(4))[1]
    'principal components'
    """
    if layout == "auto":
        has_umap = importlib.util.find_spec("umap") is not None
        layout = "pca" if len(objects) < _FEW else "umap" if has_umap else "tsne"
    if not has_columns(X):
        return plane(X, objects, layout)
    drawn = np.asarray(X[objects], dtype=np.float64).reshape(len(objects), -1)
    if layout != "pca" and drawn.shape[1] > _WIDE:
        drawn = _principal_components(drawn, _WIDE)
    return plane(drawn, np.arange(len(drawn)), layout)


def place_others(X: Any, objects: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """(n, 2) coordinates of all objects of a space, of which some are laid out already.

    Every other object is put between its three nearest ones among these, in the space.

    >>> X = np.array([[0.0], [1], [2], [9]])
    >>> place_others(X, np.array([0, 1, 2]), np.array([[0, 0], [3, 0], [6, 0]]))[3].tolist()
    [3.0, 0.0]
    """
    whole = np.empty((X.shape[0], 2))
    whole[objects] = xy
    others = np.setdiff1d(np.arange(X.shape[0]), objects)
    drawn, unit = in_safe_units(np.asarray(X[objects], dtype=np.float64).reshape(len(objects), -1))
    middle = drawn.mean(axis=0)
    drawn = drawn - middle
    squares = (drawn**2).sum(axis=1)
    for start in range(0, len(others), _BLOCK):
        some = others[start : start + _BLOCK]
        rows = np.asarray(X[some], dtype=np.float64).reshape(len(some), -1) / unit - middle
        far = squares - 2 * rows @ drawn.T  # the square of the row itself changes no order
        near = np.argpartition(far, min(_NEAR, far.shape[1]) - 1, axis=1)[:, :_NEAR]
        whole[some] = xy[near].mean(axis=1)
    return whole


def spread_colours(xy: np.ndarray, codes: np.ndarray, k: int) -> np.ndarray:
    """(k,) numbers of colours for clusters in a plane, so that neighbours look least alike.

    The largest cluster comes first; each takes the free colour that differs most from those of
    the clusters near it. Beyond the colours there are, they come again, far from each other.

    >>> spread_colours(np.array([[0.0, 0], [1, 0], [9, 0]]), np.array([0, 1, 2]), 3).tolist()
    [0, 1, 9]
    """
    hues = np.array([list(bytes.fromhex(hue[1:])) for hue in CLUSTERS["light"]]) / 255
    apart = np.sqrt((((hues[:, None] - hues[None]) * [1.0, 1.4, 0.8]) ** 2).sum(axis=2))
    sizes = cluster_sizes(codes, k)[:k]
    centres = np.array(
        [np.median(xy[codes == c], axis=0) if n else (0, 0) for c, n in enumerate(sizes)]
    )
    colours = np.full(k, -1)
    for c in np.argsort(-sizes, kind="stable"):
        taken = np.flatnonzero(colours >= 0)
        lap = len(taken) // len(hues)
        free = np.setdiff1d(np.arange(len(hues)), colours[colours >= lap * len(hues)] % len(hues))
        free = free[: max(8, len(taken) + 1)]
        far = np.sqrt(((centres[taken] - centres[c]) ** 2).sum(axis=1)) + 1e-9
        near = far.min(initial=np.inf) / far
        cost = (near[:, None] / (apart[colours[taken] % len(hues)][:, free] + 0.02)).sum(axis=0)
        colours[c] = lap * len(hues) + free[cost.argmin()]
    return colours


def _principal_components(drawn: np.ndarray, n: int = 2) -> np.ndarray:
    """The scores on the first n axes, or on as many as there are; largest loading positive."""
    drawn = drawn - drawn.mean(axis=0)
    scores, _, axes = np.linalg.svd(drawn, full_matrices=False)
    _, axes = svd_flip(scores, axes, u_based_decision=False)
    return drawn @ axes[:n].T


def umap(table: np.ndarray, metric: str, seed: int = 0, **settings: Any) -> np.ndarray:
    """UMAP's embedding of rows or, with metric "precomputed", of distances."""
    try:
        from umap import UMAP
    except ImportError:
        raise ImportError(
            "'umap' needs the package umap-learn; install it, or choose 'pca' or 'tsne'."
        ) from None
    return np.asarray(UMAP(metric=metric, random_state=seed, **settings).fit_transform(table))
