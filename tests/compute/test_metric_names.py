"""Every metric name of scikit-learn and SciPy gives its distances, or a sentence on what to do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import distance
from sklearn.metrics import pairwise, silhouette_score

import wellsep as ws

SKLEARN = {*pairwise.PAIRWISE_DISTANCE_FUNCTIONS, *pairwise._VALID_METRICS}
SCIPY = set(distance._METRICS_NAMES)
KERNELS = set(pairwise.PAIRWISE_KERNEL_FUNCTIONS) - SKLEARN
BOOLEAN = {
    "dice", "hamming", "jaccard", "matching", "rogerstanimoto", "russellrao", "sokalmichener",
    "sokalsneath", "yule",
}  # fmt: skip
# What two rows do not decide, or what this version of either library no longer has.
REFUSED = {"wminkowski", "kulsinski", "kulczynski1"}


def rows(name):
    rng = np.random.default_rng(0)
    if name in BOOLEAN:
        return rng.random((60, 9)) > 0.5
    table = rng.uniform(0.1, 1.5, (60, 4))
    return table[:, :2] if name == "haversine" else table


def expected(name, X, y):
    """By scikit-learn, or by SciPy for a name that scikit-learn lacks."""
    if name in SKLEARN and name not in ("sokalmichener", "minkowski"):
        return silhouette_score(X, y, metric=name)
    table = distance.cdist(X, X, name)
    np.fill_diagonal(table, 0.0)
    return silhouette_score(table, y, metric="precomputed")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted((SKLEARN | SCIPY) - REFUSED - {"precomputed"}))
def test_a_name_of_scikit_learn_or_scipy_gives_its_distances(name):
    X, y = rows(name), np.arange(60) % 3
    found = ws.silhouette_score(X.astype(float), y, metric=name)
    assert found == pytest.approx(expected(name, X, y), abs=1e-9)
    assert found != 0


@pytest.mark.parametrize("name", sorted(KERNELS | REFUSED | {"levenshtein", "dtw", "Euclidean"}))
def test_what_is_no_metric_of_two_rows_is_refused_with_a_sentence_that_names_distances(name):
    with pytest.raises(ValueError, match=f"got '{name}'; .* pass wellsep.Distances"):
        ws.silhouette_score(rows(name), np.arange(60) % 3, metric=name)
