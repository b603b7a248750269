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
from wellsep.compute.nearest import Nearest, NearestTwo, code_sums, nearest_two, to_like

SCHEDULES = ("oscillate", "attract", "repel")

# What is left of the weight after the last step of "attract" and "repel".
_LAST = 0.02
# Pairs of centres nearer to each other than this share of the mean squared norm are skipped.
_COINCIDE = 1e-12


class Pull(NamedTuple):
    """SSE + λΣq and −½ of its gradient by the centres, with the mass that acts on each."""

    objective: float
    inertia: float
    direction: np.ndarray  # (k, d)
    mass: np.ndarray  # (k,)
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
    near, far = to_numpy(found.near).astype(np.float64), to_numpy(found.far)
    unit = np.ones(len(near)) if points.weights is None else points.weights

    pair = first.astype(np.intp) * k + second
    apart = _squared_gaps(centers).reshape(-1)
    tiny = _COINCIDE * float(to_numpy(points.norms).mean())
    scale = np.where(apart > tiny, 0.5 / np.where(apart > tiny, apart, 1.0), 0.0)
    w = (far - near) * scale[pair]
    shares = unit * w
    squares = np.bincount(pair, weights=shares * w, minlength=k * k)

    codes = np.stack([first, second], axis=1)
    coefficients = np.stack([unit - weight * shares, weight * shares], axis=1)
    sums, total = code_sums(
        points.values,
        to_like(codes, points.values, integer=True),
        _on_device(coefficients, points),
        k,
    )
    own = np.bincount(first, weights=unit, minlength=k)
    drawn = np.bincount(second, weights=shares, minlength=k)

    inertia = float(near @ unit)
    separation = float(squares @ apart)  # Σ w²‖v‖² = Σ q
    table = squares.reshape(k, k)
    both = table + table.T
    turn = both.sum(axis=1)[:, None] * centers - both @ centers
    direction = sums - total[:, None] * centers + weight * turn
    return Pull(inertia + weight * separation, inertia, direction, own + abs(weight) * drawn, found)


def step(points: Points, centers: np.ndarray, weight: float) -> tuple[np.ndarray, Pull]:
    """All centres moved by −½∇(SSE + λΣq) over the mass that acts on them; λ = 0 is Lloyd's step.

    Centres without points of their own are re-seeded from the farthest points, as in Lloyd's.
    """
    force = pull(points, centers, weight)
    nearest = Nearest(force.found.first, force.found.near)
    if weight == 0.0:
        return update(points, nearest, centers), force
    owners = np.bincount(to_numpy(nearest.first), weights=points.weights, minlength=len(centers))
    moved = centers + force.direction / np.where(force.mass > 0.0, force.mass, 1.0)[:, None]
    if not owners.all():
        reseeded = update(points, nearest, centers)
        moved[owners == 0.0] = reseeded[owners == 0.0]
    return np.where(np.isfinite(moved), moved, centers), force


def _on_device(coefficients: np.ndarray, points: Points) -> np.ndarray:
    return (
        coefficients
        if isinstance(points.norms, np.ndarray)
        else to_like(coefficients, points.values)
    )


def _squared_gaps(centers: np.ndarray) -> np.ndarray:
    norms = np.einsum("ij,ij->i", centers, centers)
    gaps = np.maximum(norms[:, None] - 2.0 * centers @ centers.T + norms[None, :], 0.0)
    np.fill_diagonal(gaps, 0.0)
    return gaps
