"""The few largest eigenvalues of a symmetric matrix, with repeated ones marked."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

DENSE_UP_TO = 500  # rows; beyond, a full reduction costs more than some hundred products


def leading_eigenpairs(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, descending, and their vectors (size, k), to full precision."""
    size = len(A)
    k = min(k, size)
    if size > DENSE_UP_TO:
        try:
            return _one_by_one(A, k)
        except ArpackNoConvergence:  # eigenvalues too close for it, yet not equal
            pass
    values, vectors = eigh(A, subset_by_index=(size - k, size - 1))
    if len(values) < k:  # all equal up to rounding: LAPACK's search by index finds none
        values, vectors = eigh(A)
    return values[: -k - 1 : -1], vectors[:, : -k - 1 : -1]


def _one_by_one(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lanczos, each pair found after the ones before are taken out of the matrix.

    Asked for two pairs at once, Lanczos may miss the second copy of a repeated eigenvalue, and a
    component that has no direction would look well defined.
    """
    size = len(A)
    values, vectors = np.zeros(k), np.zeros((size, k))
    rng = np.random.default_rng(0)  # starting points only; the answers do not depend on them

    def product(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        left: np.ndarray = A @ x - vectors @ (values * (vectors.T @ x))
        return left

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    for i in range(k):
        value, vector = eigsh(
            operator, k=1, which="LA", v0=rng.normal(size=size), ncv=40, maxiter=300
        )
        values[i], vectors[:, i] = value[0], vector[:, 0]
    return values, vectors
