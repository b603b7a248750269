"""scikit-learn's tests of metrics with true labels hold for ours."""

from __future__ import annotations

import pytest
from sklearn_own.adopt import load_tests

import wellsep as ws

pytestmark = pytest.mark.sklearn
HOME = "sklearn.metrics.cluster"
OURS = {
    f"{HOME}:adjusted_rand_score": ws.ari_score,
    f"{HOME}:adjusted_mutual_info_score": ws.ami_score,
    f"{HOME}:normalized_mutual_info_score": ws.nmi_score,
}
globals().update(load_tests("metrics/cluster/tests/test_supervised.py", OURS))
