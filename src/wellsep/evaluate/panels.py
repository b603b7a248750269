"""Which runs take part in a draw: half of the distinct partitions, drawn anew each time."""

from __future__ import annotations

import numpy as np

from wellsep.partitions import by_appearance


def draw_panels(
    codes: np.ndarray,
    n_draws: int,
    *,
    least: int,
    seed: int,
    among: np.ndarray | None = None,
) -> np.ndarray:
    """(B, P) positions of the partitions that take part in each draw.

    P is half of them, and at least ``least``. They are drawn in an order that depends on nothing
    but which objects are together, so the same ones are drawn whatever the order and names of the
    runs, and whether or not there are copies. Partitions outside ``among`` are never drawn.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 1, 1, 1]])
    >>> draw_panels(codes, 3, least=2, seed=0).shape
    (3, 2)
    """
    keys = [by_appearance(row).tobytes() for row in codes]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
    if among is not None:
        order = order[np.isin(order, among)]
    n = len(order)
    size = min(n, max(least, -(-n // 2)))
    rng = np.random.default_rng(seed)
    drawn = [np.sort(order[rng.permutation(n)[:size]]) for _ in range(n_draws)]
    return np.array(drawn, dtype=np.intp).reshape(n_draws, size)
