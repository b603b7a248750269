"""Problem: all that is decided once before anything is scored, from whatever judge is given.

The source becomes Runs, labels are encoded, copies of embeddings leave, and the draws are made.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._checks.values import check_generator, check_names, check_path
from wellsep._files.maps import maps_held
from wellsep._text.sentences import shown
from wellsep.adapters import load_any
from wellsep.evaluate.certainty.half_samples import Draws, draw_plan
from wellsep.evaluate.options import Options, ScoreOptions
from wellsep.evaluate.scores import NothingToRank
from wellsep.indices.registry import refuse_unpriced
from wellsep.partitions import Classes, Partitions
from wellsep.runs import Runs
from wellsep.runs.run import Part
from wellsep.runs.space_files import digest_space

_LOOK = 16  # rows that are compared before an embedding is read through


@dataclass(frozen=True, eq=False)
class Problem:
    """What is judged: runs, partitions, draws and options."""

    runs: Runs  # as they are scored: of all spaces those drawn, in a judgement each once
    given: Runs  # with the spaces that were drawn, copies included
    copies: Mapping[str, str]  # embeddings that were left out, and which one each equals
    partitions: Partitions  # all M
    draws: Draws | None
    options: Any  # ScoreOptions; of a judgement Options
    notes: tuple[str, ...] = ()
    maps: Any = None  # memory maps of embeddings, held so that each file is opened once

    @classmethod
    def open(cls, source: Any, options: ScoreOptions) -> Problem:
        """Read, check, encode and draw; for a judgement each embedding is kept once."""
        runs = open_runs(source, options)
        if not isinstance(runs, Runs):
            raise TypeError(
                f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
            )
        if not runs.partitions or not (runs.spaces or isinstance(options, Options)):
            missing = "embedding" if not runs.spaces else "clustering (labels)"
            raise NothingToRank(f"There must be at least one {missing} among the runs, got none.")
        if isinstance(options, Options) and options.judge == "ace" and not runs.spaces:
            raise ValueError(
                "judge must be 'auto' or 'consensus' where runs have no embedding, got 'ace'; load "
                "runs with their embeddings."
            )
        partitions = Partitions.from_labels(dict(runs.partitions), noise=options.noise)
        if runs.spaces and partitions.priced:
            refuse_unpriced(options.parsed.values(), partitions)
        if isinstance(options, Options):  # what kind X is of is checked where it is opened
            X, n = options.X, partitions.n_objects
            listed = isinstance(X, list | tuple)
            shape: tuple[Any, ...] = (len(X), 0) if listed else getattr(X, "shape", ())
            if len(shape) == 2 and isinstance(shape[0], int) and shape[0] != n:
                raise ValueError(
                    f"X must have a row for each of the {n} objects of the runs, got {shape[0]}."
                )
        given, notes = _with_drawn_spaces(runs, options)
        if not isinstance(options, Options):
            return cls(given, given, {}, partitions, None, options, notes)
        with maps_held() as maps:
            once, copies = spaces_once(given)
        draws = None
        if options.n_draws and len(partitions.distinct) > 1:
            index, params = next(iter(options.parsed.values()))
            draws = draw_plan(
                partitions,
                tuple(once.spaces),
                options.n_draws,
                options.random_state,
                (index.name, params) if once.spaces else None,
                projection=options.projection,
                test=options.dip,
            )
        return cls(once, given, copies, partitions, draws, options, notes, maps)

    @property
    def classes(self) -> Classes:
        """Which partitions are equal."""
        return self.partitions.distinct

    @cached_property
    def distinct(self) -> Partitions:
        """The D distinct partitions."""
        if len(self.classes) == len(self.partitions):
            return self.partitions
        return self.partitions.subset(self.classes.first.tolist())


def _with_drawn_spaces(runs: Runs, options: ScoreOptions) -> tuple[Runs, tuple[str, ...]]:
    """The runs with as many of their spaces as are wanted, drawn at random; all partitions."""
    spaces = list(runs.spaces)
    if options.max_spaces is None or len(spaces) <= options.max_spaces:
        return runs, runs.notes
    rng = check_generator(options.random_state)
    drawn = sorted(rng.choice(len(spaces), options.max_spaces, replace=False).tolist())
    note = (
        f"The clusterings were scored in {len(drawn):,} of {len(spaces):,} embeddings, drawn at "
        "random (max_spaces)."
    )
    return runs.subset(spaces=[spaces[i] for i in drawn]), (*runs.notes, note)


def open_runs(source: Any, options: ScoreOptions) -> Runs:
    """Read the chosen spaces and partitions of a source; what is none is left for the check."""
    chosen = {"spaces": options.spaces, "labels": options.labels, "pairs": options.pairs}
    if isinstance(source, Mapping):
        check_names("runs", list(source))
        pairs = (v if isinstance(v, tuple) and len(v) == 2 else (None, v) for v in source.values())
        source = [(name, *pair) for name, pair in zip(source, pairs, strict=True)]
    if isinstance(source, Iterator | list | tuple):
        source = Runs.from_iterator(source)
    plain = all(choice is None for choice in chosen.values())
    elsewhere = isinstance(source, str | os.PathLike)
    if elsewhere:
        check_path("runs", source)
    foreign = type(source).__module__.partition(".")[0] in ("anndata", "optuna")
    if elsewhere or foreign or (isinstance(source, Runs) and not plain):
        return load_any(source, **chosen)
    return source


def partitions_of(runs: Any) -> Mapping[str, Any]:
    """The labels of some runs by name, or a mapping that holds them already."""
    labels = runs.partitions if isinstance(runs, Runs) else runs
    if not isinstance(labels, Mapping):
        raise TypeError(f"runs must be Runs or labels by name, got {shown(runs)}.")
    return labels


def spaces_once(runs: Runs) -> tuple[Runs, dict[str, str]]:
    """The runs with each embedding once, and which embedding each copy equals."""

    def look_of(part: Part) -> tuple[Any, ...]:
        """Shape, type and a few rows: most embeddings that differ, differ here."""
        rows = np.unique(np.linspace(0, part.shape[0] - 1, _LOOK).astype(np.intp))
        return part.shape, part.dtype.str, part.look(rows)

    parts = {run.name: part for run in runs if (part := run._part("embedding")) is not None}
    copies: dict[str, str] = {}
    for alike in _groups(parts, list(parts), look_of):
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
