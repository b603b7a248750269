"""How much each space of a group counts: PageRank and HITS, solved rather than iterated."""

from __future__ import annotations

import numpy as np


def pagerank(weights: np.ndarray, *, damping: float = 0.9) -> np.ndarray:
    """PageRank of a weighted graph, from its linear system.

    p = (1 - damping) / L + damping (P' p), P = weights with unit row sums; a node without edges
    links to all nodes alike.

    Parameters
    ----------
    weights : (L, L) non-negative
    damping : share of the steps that follow an edge, in [0, 1)

    References
    ----------
    Brin, Page (1998), "The anatomy of a large-scale hypertextual web search engine".

    Examples
    --------
    >>> import numpy as np
    >>> pagerank(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])).round(4)
    array([0.4912, 0.2544, 0.2544])
    """
    n = len(weights)
    out = weights.sum(axis=1, keepdims=True)
    steps = np.divide(weights, out, out=np.full((n, n), 1.0 / n), where=out > 0)
    rank = np.linalg.solve(np.eye(n) - damping * steps.T, np.full(n, (1.0 - damping) / n))
    shares: np.ndarray = rank / rank.sum()
    return shares


def hits(weights: np.ndarray) -> np.ndarray:
    """HITS authorities: where power iteration from equal weights ends; no edges: equal weights.

    The start is projected on the top eigenspace of W'W, so that a repeated top eigenvalue (a pair,
    a ring) leaves nothing to chance.

    References
    ----------
    Kleinberg (1999), "Authoritative sources in a hyperlinked environment", J. ACM 46(5).

    Examples
    --------
    >>> import numpy as np
    >>> hits(np.array([[0.0, 0.7], [0.7, 0.0]]))
    array([0.5, 0.5])
    """
    n = len(weights)
    if not (weights > 0).any():
        return np.full(n, 1.0 / n)
    values, vectors = np.linalg.eigh(weights.T @ weights)
    top = vectors[:, values >= values[-1] * (1 - 1e-10)]
    authority = np.clip(top @ top.sum(axis=0), 0.0, None)
    shares: np.ndarray = authority / authority.sum()
    return shares


LINKS = {"pagerank": pagerank, "hits": hits}
