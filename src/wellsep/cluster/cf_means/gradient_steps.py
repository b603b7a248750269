"""The counterfactual pull: its objective, its gradient, and one scale-free step of all centres.

A point x whose nearest centre is μ_c and second nearest μ_a would have to travel d/‖v‖, with
v = μ_c − μ_a and d = (‖x−μ_a‖² − ‖x−μ_c‖²)/2, to change sides: its counterfactual distance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep.compute.kmeans.prepared_points import Points

SCHEDULES = ("oscillate", "attract", "repel")

# What is left of the weight after the last step of "attract" and "repel".
_LAST = 0.02
# Pairs of centres are skipped if their squared gap is below this share of the mean variance.
_COINCIDE = 1e-12


class Pull(NamedTuple):
    """SSE + λΣq and −½ of its gradient by the centres, with the mass that acts on each."""

    objective: float
    inertia: float
    direction: np.ndarray  # (k, d)
    mass: np.ndarray  # (k,)
    caught: np.ndarray  # (k,) weight of the points nearest to each centre


def weights_of(schedule: str, weight: float, n_steps: int) -> np.ndarray:
    """λ_t of each step t = 0 … T−1; positive attracts runner-up centres, negative repels them.

    "oscillate": λ(1−t/T)cos(4πt/T); "attract": λγᵗ; "repel": −λγᵗ, where γ leaves 2 % at t = T.

    >>> weights_of("repel", 1.0, 2).round(3).tolist()
    [-1.0, -0.141]
    """
    course = np.arange(n_steps) / max(n_steps, 1)
    if schedule == "oscillate":
        return weight * (1.0 - course) * np.cos(4.0 * np.pi * course)
    sign = 1.0 if schedule == "attract" else -1.0
    return sign * weight * _LAST**course


def pull(points: Points, nearest: Any, centers: np.ndarray, weight: float) -> Pull:
    """Both gradients from nearest and second nearest centres; all of it adds up over points.

    With q = d²/‖v‖² and w = d/‖v‖²:

        ∂q/∂μ_c = 2w(x−μ_c) − 2w²v        ∂q/∂μ_a = −2w(x−μ_a) + 2w²v

    The terms in x are one sparse product with two entries per point; the terms in v need only
    the k×k table of Σw² over pairs (c, a). No v is ever built for a point.
    """
    k, space = len(centers), points.space
    xp, unit = space.xp, points.device_weights
    first, second = (space.index(codes) for codes in nearest[:2])
    near, far = (xp.astype(squares, xp.float64) for squares in nearest[2:])

    def summed(codes: Any, weights: Any, n_codes: int) -> Any:
        return xp.astype(xp.bincount(codes, weights, n_codes), xp.float64)

    pair = first * k + second
    places = space.asarray(centers)
    apart = _squared_gaps(places).reshape(-1)
    distinct = apart > _COINCIDE * points.frame.spread
    apart[~distinct] = 1.0
    w = xp.take(0.5 * distinct / apart, pair, axis=0)
    w *= far - near
    shares = w if unit is None else unit * w
    lengths = summed(pair, shares, k * k).reshape(k, k)  # Σw of (c, a)
    squares = summed(pair, shares * w, k * k).reshape(k, k)  # Σw²
    caught = to_numpy(summed(first, unit, k))
    drawn = to_numpy(lengths.sum(axis=0))

    # (unit − λw)·x under the nearest centre, λw·x under the second
    pulled = weight * shares
    codes = xp.stack([first, second], axis=1)
    parts = xp.stack([(1.0 if unit is None else unit) - pulled, pulled], axis=1)
    sums = space.code_sums(codes, space.beside(parts), k)
    total = caught + weight * (drawn - to_numpy(lengths.sum(axis=1)))
    both = squares + squares.T
    turn = to_numpy(both.sum(axis=1)[:, None] * places - both @ places)
    inertia = float(near.sum() if unit is None else (near * unit).sum())
    separation = float(squares.reshape(-1) @ apart)  # Σ w²‖v‖² = Σ q
    return Pull(
        inertia + weight * separation,
        inertia,
        sums - total[:, None] * centers + weight * turn,
        caught + abs(weight) * drawn,
        caught,
    )


def step(points: Points, centers: np.ndarray, weight: float) -> tuple[np.ndarray, Pull]:
    """All centres moved by −½∇(SSE + λΣq) over the mass that acts on them; λ = 0 is Lloyd's step.

    Centres without points of their own are re-seeded from the farthest points, as in Lloyd's.
    """
    nearest = points.nearest_two(centers)
    force = points.fold(pull, centers, weight, beside=[nearest])
    if weight == 0.0:
        return points.update(nearest, centers), force
    moved = centers + force.direction / np.where(force.mass > 0.0, force.mass, 1.0)[:, None]
    empty = force.caught == 0.0
    if empty.any():
        moved[empty] = points.update(nearest, centers)[empty]
    return np.where(np.isfinite(moved), moved, centers), force


def _squared_gaps(centers: Any) -> Any:
    norms = (centers * centers).sum(axis=1)
    gaps = (norms[:, None] + norms[None, :] - 2 * (centers @ centers.T)).clip(0.0)
    each = range(len(centers))
    gaps[each, each] = 0.0
    return gaps
