"""CFQ for Gaussian mixtures: the border between clusters is where two densities are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_numbers
from wellsep._text.sentences import shown
from wellsep.compute.requests import Want, want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.gaussian_borders import Mixture
from wellsep.indices.registry import index

RULES = ("diagonal", "full", "authors")


def cfq_parts(
    clusters: Clusters, within: np.ndarray, separation: np.ndarray
) -> tuple[np.ndarray, float]:
    """S(j), the separation of each cluster from its nearest rival, and TV."""
    total = float(within.sum())
    scale = float((clusters.mass * (clusters.centers**2).sum(axis=1)).sum())
    if total <= 1e-24 * (total + scale):
        raise UndefinedIndex("every object lies on its centre, so that the variance is zero")
    if np.isnan(separation).all():
        raise UndefinedIndex("no cluster has a rival: all centres coincide")
    return np.where(np.isnan(separation), 0, separation), total


def _wants_mixture(covariances: Any = "diagonal", wrong_side: str = "zero") -> dict[str, Want]:
    check_choice("wrong_side", wrong_side, ("zero", "squared"))
    if not isinstance(covariances, Mixture):
        check_choice("covariances", covariances, RULES)
    separation = want("quadric_separation", mixture=covariances, wrong_side=wrong_side)
    return {"clusters": want("clusters"), "within": want("within"), "separation": separation}


@index(
    name="cfq_mixture",
    title="Counterfactual quality of a Gaussian mixture",
    words="As cfq, with the probability of each component in place of the nearest centre: "
    "how far objects must move until another component is more probable, over their "
    "spread.",
    wants=_wants_mixture,
    direction=1,
    range=(0, np.inf),
    cost="n·K·d",
    laws=("labels", "order", "translation", "scale"),
    price="variance",
    citation="Vardakas, Karra, Pitoura & Likas, Evaluating clustering quality in centroid-based "
    "clustering using counterfactual distances, Discovery Science (2025)",
    caution="Variances of small clusters are guesses, and so are the boundaries drawn from them.",
)
def _cfq_mixture(
    clusters: Clusters,
    within: np.ndarray,
    separation: np.ndarray | str,
    *,
    covariances: Any = "diagonal",
    wrong_side: str = "zero",
) -> float:
    if isinstance(separation, str):
        raise UndefinedIndex(separation)
    nearest, total = cfq_parts(clusters, within, separation)
    return float(nearest.sum() / total)


def mixture_options(covariances: Any, weights: Any) -> tuple[str, dict[str, Any]]:
    """The index that serves these arguments of ``cfq_score``, and its parameters."""
    if covariances is None:
        if weights is not None:
            raise ValueError("weights must be None without covariances, got mixing weights.")
        return "cfq", {}
    shares = None if weights is None else _check_mixing(weights)
    if isinstance(covariances, str):
        check_choice("covariances", covariances, RULES)
    else:
        covariances = _check_covariances(covariances)
        if shares is not None and len(shares) != len(covariances):
            raise ValueError(
                f"weights must have one value per component ({len(covariances)}), "
                f"got {len(shares)}."
            )
    return "cfq_mixture", {"covariances": Mixture(covariances, shares)}


def _check_mixing(weights: Any) -> np.ndarray:
    shares = check_numbers("weights", weights)
    if shares.ndim != 1 or not np.isfinite(shares).all() or not (shares > 0).all():
        raise ValueError(f"weights must be a vector of positive numbers, got {shown(weights)}.")
    return shares


def _check_covariances(covariances: Any) -> np.ndarray:
    tables = check_numbers("covariances", covariances)
    square = tables.ndim == 3 and tables.shape[1] == tables.shape[2]
    if not (tables.ndim == 2 or square):
        raise ValueError(
            "covariances must have shape (K, d) for variances or (K, d, d) for matrices, "
            f"got {tables.shape}."
        )
    if not np.isfinite(tables).all():
        raise ValueError("covariances must be finite, got NaN or infinity.")
    if square and not np.allclose(tables, tables.transpose(0, 2, 1), rtol=1e-8, atol=0):
        raise ValueError("covariances must be symmetric matrices, got some that are not.")
    return tables
