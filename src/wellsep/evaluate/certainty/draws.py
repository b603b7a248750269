"""What every draw takes, drawn before any space is opened: objects, spaces and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._checks.values import check_generator
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Want
from wellsep.compute.statistics.half_samples import Halves
from wellsep.evaluate.scores import NothingToRank
from wellsep.indices import INDICES
from wellsep.partitions import Partitions, by_appearance
from wellsep.runs.folder_names import natural_key

LEAVE_OUT = 0.2  # share of the spaces that each draw leaves out; none if there are fewer than three
N_GROUPS = 12  # of objects; even: half of them are a half-sample, 924 different ones
MOST_TREE_DRAWS = 20  # trees are grown anew in every half-sample


@dataclass(frozen=True, eq=False)
class Draws:
    """What every draw takes, and what is computed in it."""

    halves: Halves
    spaces: tuple[str, ...]
    kept: np.ndarray  # (B, L - left_out) positions of the spaces of each draw
    left_out: int
    seed: int  # for the runs that take part in each draw
    index: str = ""  # computed in every half-sample; none where there is no space
    params: Mapping[str, Any] = field(default_factory=dict)
    projection: str = "pca"
    test: bool = False  # whether each space is tested for modes in the draws that it is in

    def __len__(self) -> int:
        return len(self.halves.chosen)

    @property
    def n_groups(self) -> int:
        """Groups of objects, of which a half-sample has half."""
        return int(self.halves.chosen.shape[1])

    def of(self, space: str) -> np.ndarray:
        """The draws that a space takes part in."""
        return np.flatnonzero((self.kept == self.spaces.index(space)).any(axis=1))

    def halves_of(self, space: str) -> Halves:
        """The half-samples that a space takes part in."""
        return self.halves._replace(chosen=self.halves.chosen[self.of(space)])

    @property
    def half_size(self) -> int:
        """Objects of a half-sample."""
        return int(self.halves.chosen[0][self.halves.group].sum())

    @property
    def objects_per_draw(self) -> int:
        """Objects of a half-sample that are looked at again; the others keep their widths."""
        if not self.index or widths_before(self.index, self.params, self.halves) is None:
            return self.half_size
        return int(self.halves.chosen[0][self.halves.group[self.halves.seen]].sum())


def widths_of(index: str, params: Mapping[str, Any]) -> Want | None:
    """The widths that an index averages, where they follow from sums kept apart by group."""
    wants = INDICES[index].wants(**params)
    if set(wants) == {"widths"} and Halves.sums_known(wants["widths"]):
        return wants["widths"]
    return None


def widths_before(index: str, params: Mapping[str, Any], halves: Halves) -> Want | None:
    """The widths that are computed on all objects first, where a half-sample looks at some only."""
    return None if len(halves.seen) == len(halves.group) else widths_of(index, params)


def grows_trees(index: str, params: Mapping[str, Any]) -> bool:
    """Whether an index grows trees, which no half-sample shares."""
    wanted = INDICES[index].wants(**params).values()
    metrics = [find(want.get("metric", "euclidean")) for want in wanted]
    return any(want.name in ("density_trees", "minimax") for want in wanted) or any(
        # Distances that are made anew in every half-sample.
        metric.whole and metric.finish is None
        for metric in metrics
    )


def draw_halves(
    n: int, n_draws: int, n_groups: int, rng: np.random.Generator, most_clusters: int = 0
) -> Halves:
    """Random groups of equal size; draws come as halves and their complements."""
    group = rng.permutation(np.arange(n) % n_groups)
    chosen = np.zeros((n_draws, n_groups), dtype=bool)
    for draw in range(0, n_draws, 2):
        chosen[draw, rng.permutation(n_groups)[: n_groups // 2]] = True
        if draw + 1 < n_draws:
            chosen[draw + 1] = ~chosen[draw]
    return Halves(group, chosen, most_clusters)


def draw_plan(
    partitions: Partitions,
    spaces: Sequence[str],
    n_draws: int,
    random_state: Any,
    spec: tuple[str, Mapping[str, Any]] | None = None,
    *,
    projection: str = "pca",
    test: bool = False,
) -> Draws:
    """Draw the half-samples, then, by name, the spaces that each of them leaves out."""
    n, n_spaces = partitions.n_objects, len(spaces)
    if n < 4:
        raise NothingToRank(f"Half-samples need at least 4 objects, got {n}.")
    if spec is not None and grows_trees(*spec):
        n_draws = min(n_draws, MOST_TREE_DRAWS)
    ordered = np.array(sorted(range(n_spaces), key=lambda i: natural_key(spaces[i])), dtype=np.intp)
    n_groups = min(N_GROUPS, n - n % 2)
    rng = check_generator(random_state)
    halves = draw_halves(n, n_draws, n_groups, rng, int(partitions.n_clusters.max()))
    left_out = max(1, round(LEAVE_OUT * n_spaces)) if n_spaces > 2 else 0
    drawn = (rng.permutation(n_spaces)[left_out:] for _ in range(n_draws))
    kept = np.stack([np.sort(ordered[some]) for some in drawn])
    index, params = ("", {}) if spec is None else spec
    seed = int(rng.integers(2**32))
    return Draws(halves, tuple(spaces), kept, left_out, seed, index, dict(params), projection, test)


def draw_panels(codes: np.ndarray, n_draws: int, *, least: int, seed: int) -> np.ndarray:
    """(B, P) which partitions take part in each draw: half of them, at least ``least``."""
    # By what is together, so that order, names and copies of the runs change no draw.
    keys = [by_appearance(row).tobytes() for row in codes]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
    n = len(order)
    size = min(n, max(least, -(-n // 2)))
    rng = np.random.default_rng(seed)
    drawn = [np.sort(order[rng.permutation(n)[:size]]) for _ in range(n_draws)]
    return np.array(drawn, dtype=np.intp).reshape(n_draws, size)
