"""The fixtures that scikit-learn's tests ask for."""

from __future__ import annotations

import pytest
from sklearn.conftest import global_dtype  # noqa: F401


@pytest.fixture
def global_random_seed() -> int:
    """The one seed of scikit-learn's own default runs."""
    return 42
