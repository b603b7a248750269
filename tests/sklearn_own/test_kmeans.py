"""scikit-learn's tests of KMeans hold for ours."""

from __future__ import annotations

import pytest
from sklearn_own.adopt import load_tests

import wellsep as ws

pytestmark = pytest.mark.sklearn
globals().update(load_tests("cluster/tests/test_k_means.py", {"sklearn.cluster:KMeans": ws.KMeans}))
