"""The counterfactual pull: its objective, its gradient, and one scale-free step of all centres.

A point x whose nearest centre is μ_c and second nearest μ_a would have to travel d/‖v‖, with
v = μ_c − μ_a and d = (‖x−μ_a‖² − ‖x−μ_c‖²)/2, to change sides: its counterfactual distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wellsep._checks import to_numpy
from wellsep.cluster.lloyd import update
from wellsep.cluster.points import Points
from wellsep.compute.nearest import Nearest, NearestTwo, code_sums, is_host, nearest_two, to_like

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
    own: np.ndarray  # (k,) weight of the points nearest to each centre
    found: NearestTwo


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


def pull(points: Points, centers: np.ndarray, weight: float) -> Pull:
    """Both gradients in one pass over nearest and second nearest centres.

    With q = d²/‖v‖² and w = d/‖v‖²:

        ∂q/∂μ_c = 2w(x−μ_c) − 2w²v        ∂q/∂μ_a = −2w(x−μ_a) + 2w²v

    The terms in x are one sparse product with two entries per point; the terms in v need only
    the k×k table of Σw² over pairs (c, a). No v is ever built for a point.
    """
    k = len(centers)
    found = nearest_two(points.values, centers, points.norms)
    first, second = to_numpy(found.first), to_numpy(found.second)
    near, unit = to_numpy(found.near).astype(np.float64, copy=False), points.weights

    pair = first * k + second
    apart = _squared_gaps(centers).reshape(-1)
    tiny = _COINCIDE * points.spread
    scale = np.where(apart > tiny, 0.5 / np.where(apart > tiny, apart, 1.0), 0.0)
    w = scale.take(pair)
    w *= to_numpy(found.far) - near
    shares = w if unit is None else unit * w
    lengths = np.bincount(pair, weights=shares, minlength=k * k).reshape(k, k)  # Σw of (c, a)
    squares = np.bincount(pair, weights=shares * w, minlength=k * k).reshape(k, k)  # Σw²
    own = np.bincount(first, weights=unit, minlength=k)
    drawn = lengths.sum(axis=0)

    sums = _signed_sums(points, first, second, weight * shares, k)
    total = own + weight * (drawn - lengths.sum(axis=1))
    both = squares + squares.T
    turn = both.sum(axis=1)[:, None] * centers - both @ centers
    inertia = float(near.sum() if unit is None else near @ unit)
    separation = float(squares.reshape(-1) @ apart)  # Σ w²‖v‖² = Σ q
    return Pull(
        inertia + weight * separation,
        inertia,
        sums - total[:, None] * centers + weight * turn,
        own + abs(weight) * drawn,
        own,
        found,
    )


def step(points: Points, centers: np.ndarray, weight: float) -> tuple[np.ndarray, Pull]:
    """All centres moved by −½∇(SSE + λΣq) over the mass that acts on them; λ = 0 is Lloyd's step.

    Centres without points of their own are re-seeded from the farthest points, as in Lloyd's.
    """
    force = pull(points, centers, weight)
    nearest = Nearest(force.found.first, force.found.near)
    if weight == 0.0:
        return update(points, nearest, centers), force
    moved = centers + force.direction / np.where(force.mass > 0.0, force.mass, 1.0)[:, None]
    empty = force.own == 0.0
    if empty.any():
        moved[empty] = update(points, nearest, centers)[empty]
    return np.where(np.isfinite(moved), moved, centers), force


def _signed_sums(
    points: Points, first: np.ndarray, second: np.ndarray, pulled: np.ndarray, k: int
) -> np.ndarray:
    """Σ over points of (unit − pulled)·x under the nearest centre and pulled·x under the second."""
    codes = np.empty((len(first), 2), dtype=first.dtype)
    codes[:, 0], codes[:, 1] = first, second
    shares = np.empty((len(first), 2))
    shares[:, 1] = pulled
    np.subtract(1.0 if points.weights is None else points.weights, pulled, out=shares[:, 0])
    if is_host(points.values):
        return code_sums(points.values, codes, shares, k)
    on_device = to_like(codes, points.values, integer=True)
    return code_sums(points.values, on_device, to_like(shares, points.values), k)


def _squared_gaps(centers: np.ndarray) -> np.ndarray:
    norms = np.einsum("ij,ij->i", centers, centers)
    gaps = np.maximum(norms[:, None] - 2.0 * centers @ centers.T + norms[None, :], 0.0)
    np.fill_diagonal(gaps, 0.0)
    return gaps
