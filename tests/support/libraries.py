"""Turns NumPy arrays into those of another library; skips tests of what is not installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp

needs_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn before 1.9 has no callbacks"
)


def to_tensor(values) -> object:
    """Return the values as a tensor of PyTorch."""
    return pytest.importorskip("torch", reason="needs the extra deep").tensor(values)


def converter(library: str) -> Callable:
    """Return the function that makes an array of the named library from a NumPy array."""
    if library == "torch":
        return pytest.importorskip("torch", reason="needs the extra deep").from_numpy
    return {
        "numpy": np.asarray,
        "array_api_strict": array_api_strict.asarray,
        "csr_array": sp.csr_array,
        "csr_matrix": sp.csr_matrix,
    }[library]
