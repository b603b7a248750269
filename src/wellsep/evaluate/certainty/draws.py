"""What every draw takes, drawn before any space is opened: objects, spaces and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.values import check_generator
from wellsep.compute.statistics.half_samples import Halves
from wellsep.evaluate.certainty.half_samples import Resampling, draw_halves, draws_of_index
from wellsep.evaluate.scores import NothingToRank
from wellsep.partitions import Partitions, by_appearance
from wellsep.runs.folder_names import natural_key

LEAVE_OUT = 0.2  # share of the spaces that each draw leaves out; none if there are fewer than three
N_GROUPS = 12  # of objects; even: half of them are a half-sample, 924 different ones
LEVEL = 0.9  # share of the draws that an interval covers


class Plan(NamedTuple):
    """What every draw takes, drawn before any space is opened."""

    halves: Halves
    kept: np.ndarray  # (B, L - left_out) spaces of each draw
    left_out: int
    seed: int  # for the runs that take part in each draw

    def resampling(
        self, index: str, params: Any, spaces: tuple[str, ...], projection: str, *, test: bool
    ) -> Resampling:
        """The work on each space; with ``test`` it is tested for modes in the draws it is in."""
        kept_in = [np.flatnonzero((self.kept == i).any(axis=1)) for i in range(len(spaces))]
        draws = dict(zip(spaces, kept_in, strict=True))
        return Resampling(index, dict(params), self.halves, projection, test, draws)


def draw_plan(
    partitions: Partitions,
    spaces: Sequence[str],
    n_draws: int,
    random_state: Any,
    spec: tuple[str, Mapping[str, Any]] | None = None,
) -> Plan:
    """Draw the half-samples, then the spaces that each of them leaves out, by name.

    The same spaces are left out in whatever order they come. ``spec``: the index that is computed
    in every half-sample; one that grows trees takes fewer of them.
    """
    n_spaces = len(spaces)
    ordered = np.array(sorted(range(n_spaces), key=lambda i: natural_key(spaces[i])), dtype=np.intp)
    n = partitions.n_objects
    n_draws = n_draws if spec is None else draws_of_index(*spec, n_draws)
    n_groups = min(N_GROUPS, n)
    n_groups -= n_groups % 2
    if n < 4:
        raise NothingToRank(f"Half-samples need at least 4 objects, got {n}.")
    most_clusters = int(partitions.n_clusters.max())
    rng = check_generator(random_state)
    halves = draw_halves(n, n_draws, n_groups, rng, most_clusters)
    left_out = max(1, round(LEAVE_OUT * n_spaces)) if n_spaces > 2 else 0
    drawn = (rng.permutation(n_spaces)[left_out:] for _ in range(n_draws))
    kept = np.stack([np.sort(ordered[some]) for some in drawn])
    return Plan(halves, kept, left_out, int(rng.integers(2**32)))


def draw_panels(codes: np.ndarray, n_draws: int, *, least: int, seed: int) -> np.ndarray:
    """(B, P) positions of the partitions that take part in each draw.

    P is half of them, and at least ``least``. They are drawn in an order that depends on nothing
    but which objects are together, so the same ones are drawn whatever the order and names of the
    runs, and whether or not there are copies.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 1, 1, 1]])
    >>> draw_panels(codes, 3, least=2, seed=0).shape
    (3, 2)
    """
    keys = [by_appearance(row).tobytes() for row in codes]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
    n = len(order)
    size = min(n, max(least, -(-n // 2)))
    rng = np.random.default_rng(seed)
    drawn = [np.sort(order[rng.permutation(n)[:size]]) for _ in range(n_draws)]
    return np.array(drawn, dtype=np.intp).reshape(n_draws, size)
