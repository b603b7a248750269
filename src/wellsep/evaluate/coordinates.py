"""A plane for each space, so that a page can draw it without opening the space again."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks import check_count
from wellsep._records import freeze


def drawn_objects(n: int, most: int, random_state: Any = 0) -> np.ndarray:
    """Positions of at most `most` objects, in order."""
    check_count("n_plotted", most, minimum=0)
    if n <= most:
        return np.arange(n)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n, most, replace=False))


def plane(X: Any, objects: np.ndarray) -> tuple[np.ndarray, str]:
    """(s, 2) float32 coordinates of some objects, and what the axes are.

    One or two columns are taken as they are; of more, the first two principal components of the
    drawn objects, with the largest loading positive so that the picture never flips.

    Examples
    --------
    >>> import numpy as np
    >>> flat, axes = plane(np.eye(3)[:, :2], np.arange(3))
    >>> flat.shape, axes
    ((3, 2), 'columns')
    """
    drawn = np.asarray(X[objects], dtype=np.float64)
    if drawn.shape[1] == 1:
        return freeze(np.column_stack([drawn, np.zeros(len(drawn))]), np.float32), "columns"
    if drawn.shape[1] == 2:
        return freeze(drawn, np.float32), "columns"
    drawn = drawn - drawn.mean(axis=0)
    _, _, axes = np.linalg.svd(drawn, full_matrices=False)
    axes = axes[:2]
    if len(axes) < 2:
        axes = np.vstack([axes, np.zeros((2 - len(axes), drawn.shape[1]))])
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes = axes * np.where(largest < 0, -1.0, 1.0)
    return freeze(drawn @ axes.T, np.float32), "principal components"
