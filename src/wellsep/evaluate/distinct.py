"""Copies of embeddings count once: those that are equal, and those that score alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wellsep._files.records import freeze
from wellsep.evaluate.ranks import tied_classes
from wellsep.evaluate.scores import Coordinates, Dip, Scores, Spectrum
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
