"""Passes over a space: named statistics of all partitions at once.

``gather`` takes what the asked-for indices want and makes each pass once. ``PROVIDERS`` names the
pass that serves each statistic; pairwise ones share one pass over the distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from wellsep._threads import check_square
from wellsep.compute.metrics.dc_distance import provide_minimax
from wellsep.compute.requests import Task, Want, run_together
from wellsep.compute.statistics.cluster_moments import provide_spectrum
from wellsep.compute.statistics.cluster_representatives import provide_represented
from wellsep.compute.statistics.density_trees import provide_density_trees
from wellsep.compute.statistics.distance_sums import NAMES as SUMS
from wellsep.compute.statistics.distance_sums import provide_pairs
from wellsep.compute.statistics.extreme_pairs import NAMES as EXTREMES
from wellsep.compute.statistics.extreme_pairs import provide_extremes
from wellsep.compute.statistics.gaussian_borders import provide_quadric_separation
from wellsep.compute.statistics.linkage_distances import provide_linkage
from wellsep.compute.statistics.ranked_sums import provide_selected
from wellsep.compute.statistics.row_statistics import NAMES as ROW_STATISTICS
from wellsep.compute.statistics.row_statistics import provide_rows

if TYPE_CHECKING:
    from wellsep.compute.engine.dask.engine import OnDask

    AnyTask: TypeAlias = Task | OnDask


class Objects(NamedTuple):
    """The objects themselves, with their clusters under one partition."""

    X: Any
    codes: np.ndarray  # (n,), -1 where not counted
    weights: np.ndarray  # (n,)
    n_clusters: int


def provide_objects(task: Task, wants: list[Want]) -> dict[Want, list[Any]]:
    """The data, codes and weights themselves, for formulas that reduce per-object values."""
    each = zip(task.partitions.codes, task.partitions.n_clusters.tolist(), strict=True)
    weights = task.weights_or_ones()
    entries = [Objects(task.space.given, codes, weights, k) for codes, k in each]
    return {one: entries for one in wants}


# Serves statistics in one go: their values, or steps that end with them.
Provider = Callable[[Any, list[Want]], Any]
PROVIDERS: dict[str, Provider] = {
    "objects": provide_objects,
    **dict.fromkeys(ROW_STATISTICS, provide_rows),
    "spectrum": provide_spectrum,
    **dict.fromkeys(SUMS, provide_pairs),
    **dict.fromkeys(EXTREMES, provide_extremes),
    "linkage": provide_linkage,
    "selected_sums": provide_selected,
    "density_trees": provide_density_trees,
    "minimax": provide_minimax,
    "represented": provide_represented,
    "quadric_separation": provide_quadric_separation,
}
# Statistics that are computed where the chunks of a dask collection lie.
IN_CHUNKS = {*ROW_STATISTICS, "spectrum", *SUMS, *EXTREMES, "selected_sums"}
# Statistics that hold (K, K) tables, at most about eight of them at a time.
SQUARE = ("balls", "between_distances", "quadric_separation", "represented", "to_centres")


def gather(task: AnyTask, wants: Iterable[Want]) -> dict[Want, list[Any]]:
    """Every wanted statistic, as a list with one entry per partition."""
    asked = list(dict.fromkeys(wants))
    if any(one.name in SQUARE for one in asked):
        check_square(int(task.partitions.n_clusters.max(initial=0)))
    by_provider: dict[Provider, list[Want]] = {}
    for one in asked:
        by_provider.setdefault(PROVIDERS[one.name], []).append(one)
    found: dict[Want, list[Any]] = {}
    steps = []
    for provider, mine in by_provider.items():
        served = provider(task, mine)
        if isinstance(served, dict):
            found.update(served)
        else:
            steps.append(served)
    for served in run_together(task, steps):
        found.update(served)
    return found
