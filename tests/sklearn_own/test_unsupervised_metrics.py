"""scikit-learn's tests of unsupervised metrics hold for ours."""

from __future__ import annotations

import pytest
from sklearn_own.adopt import load_tests

import wellsep as ws

pytestmark = pytest.mark.sklearn
HOME = "sklearn.metrics.cluster"
OURS = {
    f"{HOME}:{name}": getattr(ws, name)
    for name in (
        "silhouette_score",
        "silhouette_samples",
        "calinski_harabasz_score",
        "davies_bouldin_score",
    )
}
globals().update(load_tests("metrics/cluster/tests/test_unsupervised.py", OURS))
