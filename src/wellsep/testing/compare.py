"""Small data sets, and comparisons that say which promise was broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SEEDS = (0, 1, 2, 3)


def make_blobs(seed: int, n: int = 60, d: int = 3, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping, unequal blobs without ties, away from the origin, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    centres = rng.normal(size=(k, d)) * 3 + 1
    scales = rng.uniform(0.5, 1.5, k)
    return centres[labels] + scales[labels, None] * rng.normal(size=(n, d)), labels


def make_ugly_rows(seed: int = 0, n: int = 90, d: int = 5) -> np.ndarray:
    """Two zero rows, duplicates, parallel rows, a tiny and a far row, an offset."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1
    X[[7, 50]] = 0
    X[11] = X[12]
    X[60:70] = X[60]
    X[3] = 4 * X[4]
    X[20] *= 1e-9
    X[21] *= 50
    return X


def need(holds: bool, sentence: str) -> None:
    """Raise ``AssertionError`` with the sentence where something does not hold."""
    if not holds:
        raise AssertionError(sentence)


def need_close(found: Any, expected: Any, sentence: str, *, rel: float, abs: float = 1e-12) -> None:
    """Raise where values differ; two NaN are equal."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    same = found.shape == expected.shape and np.allclose(
        found, expected, rtol=rel, atol=abs, equal_nan=True
    )
    if not same:
        raise AssertionError(f"{sentence}, got {found} and {expected}.")


def need_error(call: Callable[[], Any], words: str, sentence: str) -> None:
    """Raise where a call is not refused with an error that holds some words."""
    try:
        call()
    except (TypeError, ValueError) as error:
        need(words in str(error), f"{sentence}, got the error {error}.")
        return
    raise AssertionError(f"{sentence}.")
