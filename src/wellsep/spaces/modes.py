"""Is there more than one group in this space? The dip test on one-dimensional views of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_choice, check_count, check_data, to_numpy
from wellsep._checks.values import check_generator
from wellsep._text.sentences import Views, listing
from wellsep.distances.base import PairSpace
from wellsep.spaces.dip import dip_test, holm
from wellsep.spaces.projections import (
    MOST_OBJECTS,
    MOST_SPARSE,
    centred_gram,
    given_pairs,
    has_columns,
    pairwise_distances,
    principal_components,
    scaled_components,
)

PROJECTIONS = ("pca", "pca-scaled", "components", "distances")
# Eigenvalues closer than this are equal up to the rounding of the data, and a component between
# them has no direction. PCA scores stored in float32 come out with gaps near 1e-7.
SMALLEST_GAP = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}


@dataclass(frozen=True)
class Multimodality(Views):
    """The result of the dip test of a space.

    Attributes
    ----------
    statistic, pvalue : float
        The dip and its p-value; NaN where the test is undefined. With several components: those of
        the component with the smallest p, after Holm's correction.
    projection : str
        How the space was brought to one dimension.
    scaled : bool
        Whether columns were brought to unit variance.
    relative_gap : float
        (λ₁ − λ₂)/λ₁ of the two largest eigenvalues, the smallest such gap with several components;
        NaN where there is none.
    defined : bool
        False where the gap is no more than rounding: then there is no first component to test.
    note : str
        What to know about this answer, with the remedy; empty if nothing.
    statistics, pvalues : tuple of float
        One per component, before correction; empty where the test is undefined.
    n_objects, n_values : int
        Objects used, and values handed to the test.
    constant_columns : tuple of int
        Positions of the columns that have one value.
    """

    statistic: float
    pvalue: float
    projection: str
    scaled: bool
    relative_gap: float
    defined: bool
    note: str
    statistics: tuple[float, ...]
    pvalues: tuple[float, ...]
    n_objects: int
    n_values: int
    constant_columns: tuple[int, ...] = ()

    def sentences(self) -> Iterator[str]:
        """Say whether the space has more than one mode."""
        if self.defined:
            yield f"The dip is {self.statistic:.4g}, p = {self.pvalue:.3g} ({self.projection})."
        else:
            yield f"The relative gap is {self.relative_gap:.1e}."
        yield from filter(None, [self.note])
        if self.constant_columns:
            yield f"Constant columns: {listing(map(str, self.constant_columns), most=8)}."


def multimodality(
    X: Any,
    *,
    projection: str = "pca",
    n_components: int = 5,
    max_pairs: int = 2_000_000,
    random_state: Any = None,
) -> Multimodality:
    r"""Test a space for more than one mode with the dip test.

    The space is brought to one dimension, :math:`z = Xw`, and the test answers
    :math:`p = P(D_n \ge D(z))` (see :func:`dip_test`). A small p says that the space has
    groups. A large p does not prove the opposite: one direction need not show all groups.

    Parameters
    ----------
    X : array-like, sparse matrix or Distances of shape (n, d)
        The space; at least two objects. float32 is read in float64, block by block. Of `Distances`
        the principal components are the axes of classical scaling, from at most 500 objects, and
        whole numbers get uniform noise of one step first: their ties would look like modes. Of
        sparse rows at most 2,000 objects are tested.
    projection : {"pca", "pca-scaled", "components", "distances"}
        ``"pca"``: the first principal component. Undefined where the two largest eigenvalues are
        equal, as those of whitened features are: the answer then says so.
        ``"pca-scaled"``: the same of columns scaled to unit variance, or not at all if one is
        constant (the rule of the ACE paper). Undefined for uncorrelated columns such as PCA scores.
        ``"components"``: the first ``n_components`` without scaling, corrected by Holm.
        ``"distances"``: those of all pairs of standardised objects, tested as if independent.
    n_components : int
        For ``"components"``; fewer are used where the rank is smaller.
    max_pairs : int
        For ``"distances"``: above so many pairs, a random part of the objects is taken.
    random_state : int, Generator or None
        Draws the objects where some are left out, and the noise of whole distances.

    Returns
    -------
    Multimodality

    References
    ----------
    J. A. Hartigan and P. M. Hartigan, "The dip test of unimodality", The Annals of Statistics
    13(1), 1985, 70-84. A. Adolfsson, M. Ackerman and N. C. Brownstein, "To cluster, or not to
    cluster: an analysis of clusterability methods", Pattern Recognition 88, 2019, 13-26.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from wellsep import multimodality
    >>> result = multimodality(load_iris().data)
    >>> round(result.statistic, 4), result.pvalue < 0.001
    (0.1108, True)
    """
    check_choice("projection", projection, PROJECTIONS)
    check_count("n_components", n_components)
    check_count("max_pairs", max_pairs)
    rng = check_generator(random_state)
    if not isinstance(X, PairSpace):
        X = check_data(X, minimum=2, sparse=True)
    dense = has_columns(X)
    X = to_numpy(X) if dense else X
    n, k = X.shape[0], n_components if projection == "components" else 1
    if not dense:
        many = MOST_OBJECTS if isinstance(X, PairSpace) else MOST_SPARSE
        objects = np.arange(n) if n <= many else np.sort(rng.choice(n, many, replace=False))
        gram = centred_gram(X, objects, rng)
        view = given_pairs(gram) if projection == "distances" else scaled_components(gram, k)
    elif projection == "distances":
        view = pairwise_distances(X, max_pairs, rng)
    else:
        view = principal_components(X, k, scale=projection == "pca-scaled")
    results, gap = [dip_test(scores) for scores in view.scores.T], view.gaps.min()
    # NaN is no gap at all: nothing to choose from
    defined = not gap < SMALLEST_GAP[np.dtype(X.dtype)]
    pvalues = [result.pvalue for result in results]
    adjusted = holm(pvalues, 1.0).adjusted
    best = int(np.argmin(adjusted))
    return Multimodality(
        statistic=results[best].statistic if defined else np.nan,
        pvalue=float(adjusted[best]) if defined else np.nan,
        projection=projection,
        scaled=view.scaled,
        relative_gap=np.nan if np.isnan(gap) else float(gap),  # one NaN, which equals itself
        defined=defined,
        note=" ".join(_notes(view.constant, projection, defined, view.n_objects, n, dense)),
        statistics=tuple(result.statistic for result in results) if defined else (),
        pvalues=tuple(pvalues) if defined else (),
        n_objects=view.n_objects,
        n_values=results[best].n_values,
        constant_columns=tuple(np.flatnonzero(view.constant).tolist()) if dense else (),
    )


REMEDY = {
    "pca-scaled": "use projection='pca' if the columns differ in variance, else 'distances'",
    "pca": "use projection='distances'",
    "components": "use projection='distances', or fewer components",
}


def _notes(
    constant: np.ndarray, projection: str, defined: bool, n_used: int, n: int, dense: bool
) -> list[str]:
    notes = []
    if constant.all():
        return ["All objects coincide, so there is nothing to split and p is 1."]
    if constant.any() and projection in ("pca-scaled", "distances"):
        notes.append("A column is constant, so no column was scaled.")
    if not defined:
        which = "a" if projection == "components" else "the first"
        notes.append(
            f"Undefined, because the eigenvalue of {which} principal component equals the next "
            f"one, so the component has no direction; {REMEDY[projection]}."
        )
    if not dense and projection == "pca-scaled":
        notes.append("There are no columns to scale: the first axis was tested as it is.")
    if n_used < n:
        remedy = "; raise max_pairs to use more" if dense else ""
        where = "distances" if dense else "test"
        notes.append(f"Only {n_used} of {n} objects, drawn at random, entered the {where}{remedy}.")
    return notes
