"""scikit-learn's part of a deep clusterer, typed for mypy, which finds no types in scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

MYPY = False  # mypy takes this name for True

if MYPY:
    # Under a base of unknown type mypy would let any keyword of a constructor pass.
    class Contract:
        """The parts of scikit-learn's estimators that the deep clusterers use, with types."""

        n_features_in_: int
        feature_names_in_: np.ndarray

        def fit(self, X: Any, y: Any = None) -> Any: ...
        def fit_predict(self, X: Any, y: Any = None, **options: Any) -> np.ndarray: ...
        def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any: ...
        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...
        def get_metadata_routing(self) -> Any: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_callbacks(self, *callbacks: Any) -> Self: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def _init_callback_context(self, **options: Any) -> Any: ...
else:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        TransformerMixin,
    )

    from wellsep._sklearn_callbacks import CallbackSupportMixin

    class Contract(
        CallbackSupportMixin,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
        ClusterMixin,
        BaseEstimator,
    ):
        """A clusterer that also transforms and calls back while it trains."""
