"""What a matrix of distances must be: square, symmetric, not negative, zero on its diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wellsep._checks import to_numpy

if TYPE_CHECKING:
    from wellsep.compute.space import Space

# Share of the largest distance by which a given matrix may fail to be symmetric, or its diagonal to
# be zero: what float32 leaves of distances that were computed from products.
SLACK = 1e-5


def refuse_other_matrices(space: Space) -> None:
    """Raise for what is no matrix of distances; gone through in blocks."""
    X, xp = space.X, space.xp
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            "X must be a square matrix of distances with metric='precomputed', "
            f"got shape {tuple(X.shape)}."
        )
    top = max(
        (float(xp.max(xp.abs(X[rows, :]))) for rows in space.row_blocks(space.n)), default=0.0
    )
    for rows in space.row_blocks(space.n):
        part, across = X[rows, :], X[:, rows].T
        places = np.arange(rows.start, rows.stop)
        itself = to_numpy(X[rows, rows]).diagonal()
        if np.abs(itself).max() > SLACK * top:
            at = int(np.abs(itself).argmax())
            raise ValueError(
                "X must have zeros on its diagonal with metric='precomputed', got "
                f"{itself[at]} at {places[at]}."
            )
        if float(xp.min(part)) < -SLACK * top:
            raise ValueError(
                "X must not have negative distances with metric='precomputed', got "
                f"{float(xp.min(part))}; turn similarities into distances."
            )
        apart = to_numpy(xp.abs(part - across))
        if apart.max() > SLACK * top:
            r, c = divmod(int(apart.argmax()), apart.shape[1])
            raise ValueError(
                "X must be symmetric with metric='precomputed', got "
                f"{float(part[r, c])} at ({places[r]}, {c}) and {float(across[r, c])} at "
                f"({c}, {places[r]}); (X + X.T) / 2 is."
            )
