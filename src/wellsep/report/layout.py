"""Where the nodes of a small graph go: from their distances, then pushed apart; no chance in it."""

from __future__ import annotations

import numpy as np

_STEPS = 200


def place_nodes(correlation: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """Coordinates in the unit square: linked nodes near each other, all nodes apart.

    Classical scaling of 1 − r gives the start, springs along the edges and a push between all
    nodes do the rest (Fruchterman and Reingold 1991). Nothing is drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> r = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]])
    >>> xy = place_nodes(r, np.where(r == 0.9, r, 0))
    >>> bool(np.linalg.norm(xy[0] - xy[1]) < np.linalg.norm(xy[0] - xy[2]))
    True
    """
    n = len(correlation)
    if n == 1:
        return np.array([[0.5, 0.5]])
    xy = _scaling(np.sqrt(np.maximum(2 * (1 - correlation), 0.0)))
    turn = 2 * np.pi * np.arange(n) / n * 7.3  # parts nodes that coincide
    xy = xy / max(float(np.abs(xy).max()), 1e-9)
    xy = xy + 0.02 * np.column_stack([np.cos(turn), np.sin(turn)])
    ideal = 1.6 / np.sqrt(n)
    for step in range(_STEPS):
        gap = xy[:, None] - xy[None]
        far = np.sqrt((gap**2).sum(axis=2)) + 1e-9
        push = ideal**2 / far**2
        np.fill_diagonal(push, 0.0)
        pull = strength**2 * far / ideal / np.maximum(strength.sum(axis=1), 1.0)[:, None] * 4
        force = ((push - pull)[:, :, None] * gap).sum(axis=1) - 0.6 * xy
        size = np.sqrt((force**2).sum(axis=1))[:, None] + 1e-9
        heat = 0.12 * (1 - step / _STEPS)
        xy = xy + force / size * np.minimum(size, heat)
    low, high = xy.min(axis=0), xy.max(axis=0)
    span = max(float((high - low).max()), 1e-9)
    return 0.5 + (xy - (low + high) / 2) / span * 0.9


def _scaling(distance: np.ndarray) -> np.ndarray:
    """Classical scaling into the plane; signs fixed by the largest entry."""
    n = len(distance)
    centring = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ distance**2 @ centring)
    top = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    if top.shape[1] < 2:
        top = np.column_stack([top, np.zeros(n)])
    sign = np.sign(np.take_along_axis(top, np.abs(top).argmax(axis=0)[None], axis=0))
    return top * np.where(sign == 0, 1.0, sign)
