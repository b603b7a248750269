"""Labels of objects that were not clustered, by votes of their nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

VOTERS = 5  # nearest neighbours; a vote weighs by the inverse of its distance


def follow(reference: Any, labels: np.ndarray, objects: Any) -> np.ndarray:
    """Labels of objects by the votes of labelled ones; an object that equals one has its label.

    ``reference`` has the rows of the labelled objects, and ``objects`` has rows like them. If it is
    None, ``objects`` has distances to the labelled objects, (m, r).

    >>> follow(np.array([[0.0], [1], [9]]), np.array([4, 4, 7]), np.array([[0.4], [9.0]])).tolist()
    [4, 7]
    """
    r = len(labels)
    metric = "precomputed" if reference is None else "minkowski"
    model = KNeighborsClassifier(min(VOTERS, r), weights="distance", metric=metric)
    model.fit(np.zeros((r, r)) if reference is None else reference, labels)
    return np.asarray(model.predict(objects), dtype=np.int32)
