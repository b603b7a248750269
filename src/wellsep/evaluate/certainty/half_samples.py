"""Half-samples: what each draw takes, drawn before any space is opened, and an index on each."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, to_numpy
from wellsep._checks.values import check_generator
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Task, Want
from wellsep.compute.statistics.centre_distances import Clusters
from wellsep.compute.statistics.cluster_moments import Noise
from wellsep.compute.statistics.half_samples import Halves
from wellsep.evaluate.options import Computing
from wellsep.evaluate.scores import NothingToRank
from wellsep.indices import INDICES, PartitionScores, score_partitions
from wellsep.indices.index_names import ParsedIndex
from wellsep.indices.scoring import as_distances, evaluate_and_keep, open_task
from wellsep.partitions import Partitions, by_appearance
from wellsep.runs.folder_names import natural_key
from wellsep.spaces.dip_half_samples import half_dips

LEAVE_OUT = 0.2  # share of the spaces that each draw leaves out; none if there are fewer than three
N_GROUPS = 12  # of objects; even: half of them are a half-sample, 924 different ones
MOST_TREE_DRAWS = 20  # trees are grown anew in every half-sample
MOMENTS = {"clusters", "within", "radii"}  # statistics that follow from sums kept by group


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


class Resampled(NamedTuple):
    """One space on all half-samples."""

    values: np.ndarray  # (draws, M)
    pvalues: np.ndarray | None  # (draws,) of the dip tests


def resample(
    X: Any,
    computing: Computing,
    partitions: Partitions,
    draws: Draws,
    space: str,
    asked: Sequence[ParsedIndex] = (),
) -> tuple[PartitionScores | None, Resampled]:
    """The half-samples of one space; where indices are asked for, its scores by the same pass."""
    drawn = [(INDICES[draws.index], dict(draws.params))]
    X, scored = as_distances(X, drawn), list(asked) or drawn
    opened = open_task(X, partitions, scored, device=computing.device, n_jobs=computing.n_jobs)
    task = cast(Task, opened)._replace(groups=draws.halves.group)  # no run is a Dask array
    params = INDICES[draws.index].in_space(draws.params, task.space.own_metric)
    keep = widths_before(draws.index, params, draws.halves)
    scores, full = None, [None] * len(partitions)
    if asked or keep is not None:
        scores, full = evaluate_and_keep(task, scored, keep)
    of = draws.of(space)
    halves = draws.halves._replace(chosen=draws.halves.chosen[of])
    values = _half_values(task, draws.index, params, halves, full)
    pvalues = None
    if draws.test:
        pvalues = half_dips(X, draws.halves, of, draws.projection, computing.n_jobs)
    return scores if asked else None, Resampled(values, pvalues)


def _half_values(
    task: Task, index: str, params: Mapping[str, Any], halves: Halves, full: list[Any]
) -> np.ndarray:
    """(B, M) values, given the widths in the full sample where not all objects are looked at."""
    values = np.full((len(halves.chosen), len(task.partitions)), np.nan)
    some = np.flatnonzero(task.partitions.n_clusters).tolist()  # of noise only nothing follows
    if not len(halves.chosen) or not some:
        return values
    part = task if len(some) == len(task.partitions) else task.subset(some)
    widths = widths_of(index, params)
    if widths is not None:
        known = [full[m] for m in some]
        values[:, some] = _width_values(part, index, params, halves, widths, known)
    elif {want.name for want in INDICES[index].wants(**params).values()} <= MOMENTS:
        values[:, some] = _moment_values(part, index, params, halves)
    else:
        values[:, some] = _values_again(part, index, params, halves)
    return values


def _values_again(task: Task, index: str, params: Mapping[str, Any], halves: Halves) -> np.ndarray:
    """The index computed anew on every half-sample."""
    rows_of: Any = task.space.some
    if "metric" in params and find(params["metric"]).whole and find(params["metric"]).finish:
        # The matrix of all objects is in the prepared rows; that of a half would be another.
        rows_of = to_numpy(task.space.on_host(params["metric"]).X).__getitem__
        params = {**params, "metric": "euclidean"}
    spec = ((index, params),)
    values = []
    for objects in map(halves.objects, range(len(halves.chosen))):
        part, X = task.partitions.take(objects), rows_of(objects)
        values.append(score_partitions(X, part, spec, n_jobs=task.space.n_jobs).values[:, 0])
    return np.stack(values)


def _width_values(
    task: Task,
    index: str,
    params: Mapping[str, Any],
    halves: Halves,
    widths: Want,
    full: list[Any],
) -> np.ndarray:
    """Means of widths that follow from sums kept apart by group."""
    every = len(halves.seen) == len(halves.group)
    which = [m for m, known in enumerate(full) if every or known is not None]
    values = np.full((len(halves.chosen), len(task.partitions)), np.nan)
    if not which:
        return values
    part = task._replace(partitions=task.partitions.subset(which))
    every_half = halves.widths(part, widths, [full[m] for m in which])
    size = halves.chosen @ np.bincount(halves.group, minlength=halves.chosen.shape[1])  # (B,)
    for m, (a, b) in zip(which, pairwise(part.partitions.offsets), strict=True):
        usable = _defined(every_half.mass[:, a:b])
        if usable.any():
            found = every_half.cut(usable, slice(a, b))
            value = INDICES[index].formula(widths=found, **params)
            price = INDICES[index].price_for(task.partitions, m)
            if price.wants:
                counted = found.mass.sum(axis=1)
                value = price.apply(value, {"noise": Noise(size[usable] - counted, counted)})
            values[usable, m] = value
    return values


def _defined(counts: np.ndarray) -> np.ndarray:
    """(B,) whether a half-sample has at least two clusters, and one of several objects."""
    present = (counts > 0).sum(axis=1)
    return (present >= 2) & (present < counts.sum(axis=1))


def _moment_values(task: Task, index: str, params: Mapping[str, Any], halves: Halves) -> np.ndarray:
    """Indices of cluster means and scatter around them, per half-sample."""
    wants = INDICES[index].wants(**params)
    power = next((w.get("q", 1) for w in wants.values() if w.name == "radii"), None)
    counts, sums, within, radii = halves.moments(task, power)
    values = np.full((len(counts), len(task.partitions)), np.nan)
    prices = [INDICES[index].price_for(task.partitions, m) for m in range(len(task.partitions))]
    apart = None
    if any(price.wants for price in prices):  # the noise of each partition, as one cluster
        apart = halves.moments(task._replace(partitions=task.partitions.noise_only()))
    for m, (a, b) in enumerate(pairwise(task.partitions.offsets)):
        for draw in np.flatnonzero(_defined(counts[:, a:b])).tolist():
            keep = a + np.flatnonzero(counts[draw, a:b])
            mass, total = counts[draw, keep], sums[draw, keep]
            mean = total.sum(axis=0) / mass.sum()
            known: dict[str, Any] = {
                "clusters": Clusters(mass, mass, total / mass[:, None], mean, task.space.shift),
                "within": within[draw, keep],
                "radii": None if radii is None else radii[draw, keep],
            }
            statistics = {name: known[w.name] for name, w in wants.items()}
            with contextlib.suppress(UndefinedIndex):
                value = INDICES[index].formula(**statistics, **params)
                price = prices[m]
                if price.wants and apart is not None:
                    known["noise"] = apart.noise(draw, m, mean, float(mass.sum()))
                    value = price.apply(value, {name: known[name] for name in price.wants})
                values[draw, m] = value
    return values
