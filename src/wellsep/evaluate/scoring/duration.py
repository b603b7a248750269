"""How long the scores of many spaces will take, said before the first of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from wellsep._text.sentences import count
from wellsep.compute.engine.threads import effective_jobs
from wellsep.evaluate.certainty.half_samples import Resampling, grows_trees
from wellsep.evaluate.options import ScoreOptions
from wellsep.indices import score_partitions
from wellsep.indices.index_names import ParsedIndex
from wellsep.partitions import Partitions
from wellsep.runs import Runs
from wellsep.spaces import multimodality
from wellsep.spaces.classical_scaling import take_objects

LONG = 60.0  # seconds from which it is said
WORTH_A_TRIAL = (
    1e10  # pairs of objects × partitions × spaces; spaces count as pairs, for their cost
)
PER_SPACE = 1e8  # of these pairs
OBJECTS, PARTITIONS = 400, 40  # of the trial
HALF_SAMPLES = 1.6  # times as long with half-samples; see benchmarks/bench_judge.py
HALF_TREES = 1 / 3  # of the time of all objects, for the trees of one half-sample
TREE = 30  # pairs that a pair costs where trees are grown
ROW_STATISTICS = {"clusters", "within", "radii", "separation", "margins", "simplified"}


def tell_duration(
    runs: Runs,
    spaces: tuple[str, ...],
    partitions: Partitions,
    options: ScoreOptions,
    resampling: Resampling | None,
) -> None:
    """Warn, if it is long, how long the scores of these spaces will take."""
    seconds = expected_seconds(runs, spaces, partitions, options, resampling)
    if seconds is None or seconds < LONG:
        return
    kept = " Spaces scored before are taken from the cache." if options.cache is not None else ""
    trees = ""
    if _tree_draws(resampling):
        trees = (
            f" {resampling.index} grows trees anew in each of "  # type: ignore[union-attr]
            f"{count(_tree_draws(resampling), 'half-sample')}; fewer take less time (n_draws)."
        )
    warnings.warn(
        f"Scoring {count(len(partitions), 'partition')} in {count(len(spaces), 'space')} will take "
        f"about {in_words(seconds)}.{kept}{trees} Some of the spaces, drawn at random, take less "
        "time (max_spaces).",
        stacklevel=2,
    )


def _tree_draws(resampling: Resampling | None) -> int:
    """Half-samples in which an index grows its trees anew."""
    if resampling is None or not grows_trees(resampling.index, resampling.params):
        return 0
    return len(resampling.halves.chosen)


def _times(resampling: Resampling | None) -> float:
    """How many times as long the scores take with the half-samples."""
    trees = _tree_draws(resampling)
    return 1 + trees * HALF_TREES if trees else 1.0 if resampling is None else HALF_SAMPLES


def expected_seconds(
    runs: Runs,
    spaces: tuple[str, ...],
    partitions: Partitions,
    options: ScoreOptions,
    resampling: Resampling | None = None,
) -> float | None:
    """An estimate from a trial on some objects and partitions of the first space.

    None where there is surely little to do, and where the trial fails: the work itself will say
    why.
    """
    n, m = partitions.n_objects, len(partitions)
    trees = any(grows_trees(index.name, params) for index, params in options.parsed.values())
    pairs = float(n) ** 2 * m * (TREE * _times(resampling) if trees else 1)
    if len(spaces) * (pairs + PER_SPACE) < WORTH_A_TRIAL:
        return None
    objects = np.linspace(0, n - 1, min(n, OBJECTS)).round().astype(int)
    which = np.linspace(0, m - 1, min(m, PARTITIONS)).round().astype(int).tolist()
    few = partitions.subset(which).take(objects)
    try:
        X = take_objects(runs.spaces[spaces[0]], objects)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, some = (_seconds(X, part, options) for part in (few.subset([0]), few))
            dip = _timed(lambda: multimodality(X, projection=options.projection, random_state=0))
    except (ValueError, TypeError, OSError):
        return None
    larger = n / len(objects)
    each = max(0.0, (some - one) / max(1, len(few) - 1)) * (m - 1)
    seconds = (one + each) * larger ** (1 if _over_rows(options.parsed) else 2)
    seconds += dip * larger if options.dip else 0.0
    return seconds * len(spaces) * _times(resampling) / effective_jobs(options.n_jobs)


def _seconds(X: Any, partitions: Partitions, options: ScoreOptions) -> float:
    """Of the second call: the first loads what it needs."""
    specs = [(index.name, params) for index, params in options.parsed.values()]
    trial = partial(score_partitions, X, partitions, specs, device=options.device, n_jobs=1)
    trial()
    return _timed(trial)


def _timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _over_rows(parsed: Mapping[str, ParsedIndex]) -> bool:
    """Whether the work grows with the objects, and not with their pairs."""
    wanted = {w.name for index, params in parsed.values() for w in index.wants(**params).values()}
    return wanted <= ROW_STATISTICS


def in_words(seconds: float) -> str:
    """A length of time, rounded.

    Examples
    --------
    >>> in_words(45.2), in_words(600.0), in_words(20_000.0)
    ('45 seconds', '10 minutes', '6 hours')
    """
    if seconds <= 90:
        return f"{seconds:.0f} seconds"
    if seconds <= 180 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:,.0f} hours"
