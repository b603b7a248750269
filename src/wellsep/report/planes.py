"""Planes to look at spaces in: which objects, which coordinates, which colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from wellsep._checks import check_choice, to_numpy
from wellsep.evaluate.coordinates import plane
from wellsep.partitions import encode

LAYOUTS = ("pca", "tsne", "umap")


def coordinates(X: Any, objects: np.ndarray, layout: str = "pca") -> tuple[np.ndarray, str]:
    """(s, 2) coordinates of some objects of a space, and what the axes are.

    Spaces of one or two columns are shown as they are. Of wider ones "pca" shows the first two
    principal components, "tsne" and "umap" an embedding of the drawn objects.

    Examples
    --------
    >>> import numpy as np
    >>> xy, axes = coordinates(np.eye(5), np.arange(4))
    >>> xy.shape, axes
    ((4, 2), 'principal components')
    """
    check_choice("layout", layout, LAYOUTS)
    if layout == "pca" or np.shape(X)[1] <= 2 or len(objects) < 4:
        return plane(X, objects)
    drawn = np.asarray(X[objects], dtype=np.float64)
    if layout == "tsne":
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(drawn) - 1) / 3)
        flat = TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(drawn)
        return flat, "t-SNE"
    try:
        from umap import UMAP
    except ImportError:
        raise ImportError(
            "layout 'umap' needs the package umap-learn; install it, or choose 'pca' or 'tsne'."
        ) from None
    return UMAP(random_state=0).fit_transform(drawn), "UMAP"


def matched(codes: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Number for the colour of each cluster, so that it keeps the colour of the one it overlaps.

    Clusters are matched one to one with those of a reference so that most objects keep their
    colour; those left over take the next free numbers.

    Examples
    --------
    >>> import numpy as np
    >>> matched(np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 1, 1])).tolist()
    [1, 0, 2]
    """
    k, r = int(codes.max(initial=-1)) + 1, int(reference.max(initial=-1)) + 1
    both = (codes >= 0) & (reference >= 0)
    table = np.zeros((k, r), dtype=np.int64)
    np.add.at(table, (codes[both], reference[both]), 1)
    colours = np.full(k, -1)
    rows, columns = linear_sum_assignment(-table)
    hit = table[rows, columns] > 0
    colours[rows[hit]] = columns[hit]
    free = iter(c for c in range(k + r) if c not in set(colours.tolist()))
    for cluster in np.flatnonzero(colours < 0):
        colours[cluster] = next(free)
    return colours


def encoded(labels: Any, name: str = "labels") -> tuple[np.ndarray, tuple[str, ...]]:
    """(n,) numbers of the clusters, -1 = noise, and what they are called."""
    found = encode(to_numpy(labels), noise="exclude", name=name)
    return found.codes[0], tuple(str(label) for label in found.classes[0])


def object_names(ids: Any, objects: Sequence[int] | np.ndarray) -> list[str]:
    """Names of some objects: their ids, or "object 7"."""
    if ids is None:
        return [f"object {int(i)}" for i in objects]
    return [str(ids[int(i)]) for i in objects]


def thinned(objects: np.ndarray, most: int) -> np.ndarray:
    """Positions, evenly spread, of at most `most` of the given objects."""
    if len(objects) <= most:
        return np.arange(len(objects))
    return np.unique(np.linspace(0, len(objects) - 1, most).round().astype(np.intp))
