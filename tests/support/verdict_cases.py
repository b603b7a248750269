"""Generated runs that call for each of the six verdicts; tests and pictures use them."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from wellsep.runs import Runs


def cloud(gap, n=200):
    """One Gaussian cloud, or two at a distance; k-means with several K in three spaces."""
    rng = np.random.default_rng(0)
    side = np.outer(np.arange(n) % 2, [gap, 0, 0])
    spaces = {f"space {i}": rng.normal(size=(n, 3)) + side for i in range(3)}
    labels, pairs = {}, {}
    for space, X in spaces.items():
        for k in (2, 3, 4, 6):
            name = f"{space}, K={k}"
            labels[name] = KMeans(k, n_init=2, random_state=0).fit_predict(X)
            pairs[name] = space
    return Runs.from_parts(spaces, labels, pairs=pairs)


def input_of(runs):
    """The embeddings side by side, as the data that the runs were made from."""
    return np.hstack(list(runs.spaces.values()))


def noisy(labels, share, rng):
    """Labels with those of some objects exchanged among them."""
    found = labels.copy()
    which = rng.permutation(len(labels))[: int(share * len(labels))]
    found[which] = found[rng.permutation(which)]
    return found


def crowd(moved, n=240):
    """The spaces show one clustering; six others agree on one in which some objects moved."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    spaces = {s: rng.normal(size=(n, 2)) + 5 * np.eye(3)[truth, :2] for s in "abc"}
    centre = truth.copy()
    which = rng.permutation(n)[: int(moved * n)]
    centre[which] = (truth[which] + 1) % 3
    others = {f"crowd {i}": noisy(centre, 0.05, rng) for i in range(6)}
    return Runs.from_parts(spaces, {"own": truth, **others})


def square(stretch, n=240):
    """Four corners: left or right and up or down are as good if the square is no rectangle."""
    rng = np.random.default_rng(0)
    x, y = np.arange(n) % 2, np.arange(n) % 4 // 2
    corners = np.column_stack([stretch * 4 * x, 4 * y])
    spaces = {s: rng.normal(size=(n, 2)) + corners for s in "abc"}
    labels = {"left or right": x, "up or down": y}
    labels |= {f"left or right, {i}0% moved": noisy(x, i / 10, rng) for i in (1, 2, 3, 4)}
    return Runs.from_parts(spaces, labels)


def equals(copies=15, n=150):
    """One clustering found many times, its clusters called otherwise, and five worse ones."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    spaces = {s: rng.normal(size=(n, 2)) + 6 * np.eye(3)[truth, :2] for s in "abc"}
    labels = {f"same {i}": (truth + i) % 3 for i in range(copies)}
    labels |= {f"other {i}": noisy(truth, 0.15 * (i + 1), rng) for i in range(5)}
    return Runs.from_parts(spaces, labels)


def camps(batch=5, n=240, shared=0.0):
    """Eight runs find three kinds, some find two batches; `shared`: how far a batch is a kind."""
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 3
    lot = np.where(rng.random(n) < shared, kind > 0, np.arange(n) // 3 % 2).astype(int)
    labels, spaces, pairs = {}, {}, {}
    for i in range(8 + batch):
        truth, name = (kind, f"kind {i}") if i < 8 else (lot, f"batch {i - 8}")
        spaces[name] = rng.normal(size=(n, 3)) + 5 * np.eye(3)[truth]
        labels[name], pairs[name] = noisy(truth, 0.05 + 0.01 * i, rng), name
    return Runs.from_parts(spaces, labels, pairs=pairs)


def six():
    """Kind of verdict → runs that call for it, and the options of judge."""
    return {
        "nothing to cluster": (cloud(0), {"X": input_of(cloud(0))}),
        "two camps": (camps(), {}),
        "judges disagree": (crowd(0.25), {}),
        "practically tied": (cloud(3), {}),
        "stands alone": (crowd(0.15), {"judge": "ace"}),
        "clear": (equals(), {}),
    }
