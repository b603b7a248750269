"""Local connectivity straight from its definition: one object, one neighbour at a time."""

from __future__ import annotations

import math

import numpy as np


def lcd_by_definition(X, labels, centers, t):
    """LCD(x, c) and |N(x)| of every object; `centers` maps a label to its prototype."""
    values, sizes = [], []
    for i, (x, label) in enumerate(zip(X, labels, strict=True)):
        c = centers[label]
        own = math.dist(x, c)
        between = []
        for j, (s, other) in enumerate(zip(X, labels, strict=True)):
            to_center, to_object = math.dist(s, c), math.dist(x, s)
            if j == i or other != label or to_center > own or to_object >= own:
                continue
            deviation = max(0.0, (to_center + to_object) / own - 1)
            between.append((to_object, deviation * to_object / (to_center + to_object)))
        nearest = sorted(between)[:t]
        values.append(sum(term for _, term in nearest))
        sizes.append(len(nearest))
    return np.array(values), np.array(sizes)


def lcd_of_integers(X, labels, t):
    """The same about the means of integer data, every comparison in whole numbers."""
    X = np.asarray(X, dtype=np.int64)
    values, sizes = np.zeros(len(X)), np.zeros(len(X), dtype=int)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        members, m = X[rows], len(rows)
        # m² times the squared distance to the mean is whole.
        radius = ((m * members - members.sum(axis=0)) ** 2).sum(axis=1)
        for i, x in enumerate(members):
            square = ((members - x) ** 2).sum(axis=1)
            between = (radius <= radius[i]) & (m * m * square < radius[i])
            between[i] = False
            s = np.flatnonzero(between)
            # For one distance the term grows with the neighbour's radius.
            nearest = s[np.lexsort((radius[s], square[s]))][:t]
            own = math.sqrt(radius[i]) / m
            for j in nearest:
                to_object, to_center = math.sqrt(square[j]), math.sqrt(radius[j]) / m
                path = to_center + to_object
                values[rows[i]] += max(0.0, path / own - 1) * to_object / path
            sizes[rows[i]] = len(nearest)
    return values, sizes
