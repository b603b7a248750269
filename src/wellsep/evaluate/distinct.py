"""Copies count once: equal embeddings, embeddings that score alike, and equal partitions.

They leave before ACE is asked, and every run then gets the score of the partition it equals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wellsep._files.records import freeze
from wellsep.evaluate.ace_method.answer import AceResult
from wellsep.evaluate.ace_method.baselines import fill_undefined
from wellsep.evaluate.ace_method.steps import judge_by_ace
from wellsep.evaluate.options import Ace
from wellsep.evaluate.ranks import tied_classes
from wellsep.evaluate.scores import Coordinates, Dip, NothingToRank, Scores, Spectrum
from wellsep.evaluate.vote.weights import first_of_class, number_classes
from wellsep.runs import Runs
from wellsep.runs.run import Part
from wellsep.runs.space_files import digest_space

SAME_SCORE = 1e-9  # relative; a turned or moved embedding in float64 scores alike to about 1e-13
_LOOK = 16  # rows that are compared before an embedding is read through


def spaces_once(runs: Runs) -> tuple[Runs, dict[str, str]]:
    """The runs with each embedding once, and which embedding each copy equals.

    A run whose embedding is a copy keeps its labels and refers to the first run that has it.
    """
    parts = {run.name: part for run in runs if (part := run._part("embedding")) is not None}
    copies: dict[str, str] = {}
    for alike in _groups(parts, list(parts), _look_of):
        for equal in _groups(parts, alike, lambda part: digest_space(part.raw())):
            copies |= dict.fromkeys(equal[1:], equal[0])
    if not copies:
        return runs, copies
    once = []
    for run in runs:
        if run.name in copies and not run.has_labels:
            continue
        if run.name in copies:
            once.append(run._with(embedding=None, space=copies[run.name]))
        elif run.space in copies:
            once.append(run._with(space=copies[run.space]))
        else:
            once.append(run)
    return Runs(tuple(once)), copies


def _groups(parts: Mapping[str, Part], names: Sequence[str], key: Any) -> list[list[str]]:
    """Names of parts with the same key, where there are several."""
    found = defaultdict(list)
    for name in names:
        found[key(parts[name])].append(name)
    return [group for group in found.values() if len(group) > 1]


def _look_of(part: Part) -> tuple[Any, ...]:
    """Shape, type and a few rows: most embeddings that differ, differ here."""
    rows = np.unique(np.linspace(0, part.shape[0] - 1, _LOOK).astype(np.intp))
    return part.shape, part.dtype.str, part.look(rows)


def rows_once(scores: Scores, copies: Mapping[str, str] | None = None) -> Scores:
    """The scores without spaces that score every partition as an earlier space does.

    Such a space is a turned, moved or rescaled copy. Scores that are undefined, or the same for
    all partitions, mark no copy.
    """
    found = dict(copies or {})
    kept: list[int] = []
    place = np.empty(len(scores.spaces), dtype=np.intp)  # of each space among the kept ones
    rows = np.concatenate(list(scores.values.values()), axis=1)
    size = np.concatenate([_size(m) for m in scores.values.values()], axis=1)
    telling = np.isfinite(rows).all(axis=1) & np.all(
        [[tied_classes(row).any() for row in m] for m in scores.values.values()], axis=0
    )
    for i, name in enumerate(scores.spaces):
        same = [
            k
            for k, j in enumerate(kept)
            if telling[i] and telling[j]
            and (np.abs(rows[i] - rows[j]) <= SAME_SCORE * np.maximum(size[i], size[j])).all()
        ]  # fmt: skip
        if same:
            place[i] = same[0]
            found[name] = scores.spaces[kept[same[0]]]
        else:
            place[i] = len(kept)
            kept.append(i)
    if len(kept) == len(scores.spaces):
        return replace(scores, copies=found) if found else scores
    gone = {name: found[name] for name in scores.spaces if name in found}
    found = {name: gone.get(first, first) for name, first in found.items()}
    made_in = np.where(scores.made_in >= 0, place[scores.made_in], -1)
    return replace(_of_spaces(scores, kept), made_in=freeze(made_in), copies=found)


def _size(matrix: np.ndarray) -> np.ndarray:
    """(L, M) the largest magnitude of each row."""
    with np.errstate(invalid="ignore"):
        largest = np.abs(matrix).max(axis=1, keepdims=True)
    return np.broadcast_to(largest, matrix.shape)


def _of_spaces(scores: Scores, kept: list[int]) -> Scores:
    dip, drawn, seen = scores.dip, scores.plot_coordinates, scores.spectrum
    if dip is not None:
        notes = tuple(dip.notes[i] for i in kept) if dip.notes else ()
        dip = Dip(freeze(dip.statistic[kept]), freeze(dip.pvalue[kept]), notes, dip.projection)
    if drawn is not None and drawn.planes:
        planes = tuple(drawn.planes[i] for i in kept)
        drawn = Coordinates(drawn.objects, planes, tuple(drawn.axes[i] for i in kept))
    if seen is not None:
        seen = Spectrum(freeze(seen.rankme[kept]), freeze(seen.alpha_req[kept]))
    return replace(
        scores,
        values={name: freeze(matrix[kept]) for name, matrix in scores.values.items()},
        spaces=tuple(scores.spaces[i] for i in kept),
        dip=dip,
        dims=None if scores.dims is None else freeze(scores.dims[kept]),
        plot_coordinates=drawn,
        spectrum=seen,
    )


def of_partitions(scores: Scores, which: np.ndarray) -> Scores:
    """The scores of some of the partitions."""
    return replace(
        scores,
        values={name: matrix[:, which] for name, matrix in scores.values.items()},
        partitions=tuple(scores.partitions[m] for m in which),
        made_in=scores.made_in[which],
        coverage=None if scores.coverage is None else scores.coverage[which],
        n_clusters=None if scores.n_clusters is None else scores.n_clusters[which],
        class_of=None,
    )


def judge_distinct(
    scores: Scores, options: Ace, index: str | None = None, *, dip: bool
) -> AceResult:
    """ACE's answer on the distinct partitions; every run gets the score of its own.

    ``scores.class_of`` says which partitions are equal.
    """
    class_of = scores.class_of
    if class_of is None:
        return judge_by_ace(scores, options, index, dip=dip)
    first = first_of_class(class_of)
    if len(first) == 1 and len(class_of) > 1:
        raise NothingToRank(
            f"The partitions are identical: all {len(class_of)} runs are the same partition, "
            "whatever their clusters are called; add runs that differ."
        )
    result = judge_by_ace(of_partitions(scores, first), options, index, dip=dip)
    baselines = {name: freeze(values[class_of]) for name, values in result.baselines.items()}
    baselines.pop("own_space", None)
    if scores.is_paired:
        own = own_space_by_class(scores, result.index, options.undefined)
        baselines = {"own_space": freeze(own), **baselines}
    members = {
        scores.partitions[m]: [scores.partitions[i] for i in np.flatnonzero(class_of == c)]
        for c, m in enumerate(first)
    }
    return replace(
        result,
        partitions=scores.partitions,
        scores=freeze(result.scores[class_of]),
        baselines=baselines,
        subgroups=tuple(replace(s, scores=freeze(s.scores[class_of])) for s in result.subgroups),
        n_clusters=scores.n_clusters,
        coverage=scores.coverage,
        undefined=tuple(
            (space, name, why) for space, m, why in result.undefined for name in members[m]
        ),
        class_of=class_of,
    )


def own_space_by_class(scores: Scores, index: str, undefined: str) -> np.ndarray:
    """(M,) mean score of equal partitions over the spaces they were made in, each space once."""
    matrix = fill_undefined(scores, index, undefined=undefined).matrix
    class_of = np.arange(len(scores.partitions)) if scores.class_of is None else scores.class_of
    pairs = np.unique(np.stack([class_of, scores.made_in]), axis=1)
    first = first_of_class(class_of)
    values = matrix[pairs[1], first[pairs[0]]]
    means: np.ndarray = np.bincount(pairs[0], values) / np.bincount(pairs[0])
    return means[class_of]


def class_numbers(first_equal: np.ndarray) -> np.ndarray | None:
    """(M,) which distinct partition each one is, numbered as they appear; None if all differ."""
    class_of = number_classes(first_equal)
    return None if class_of.max() + 1 == len(class_of) else freeze(class_of)
