"""score_runs: open every space once, score all partitions by all indices in one pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wellsep import __version__
from wellsep._checks import check_choice
from wellsep._files import digest
from wellsep._records import Record, freeze
from wellsep.compute.dask.client import open_client
from wellsep.evaluate.halves import Resampled, Resampling, resample, score_and_resample
from wellsep.evaluate.remote import named, over_spaces
from wellsep.evaluate.scores import Coordinates, Dip, NothingToRank, Scores, reason_key
from wellsep.indices import score_partitions
from wellsep.indices.scoring import Asked, IndexSpec, parse_indices
from wellsep.partitions import NOISE_POLICIES, Partitions
from wellsep.runs import Runs
from wellsep.spaces import multimodality
from wellsep.spaces.planes import drawn_objects, plane

Progress = Callable[[int, int, str], None]
_Found = tuple["SpaceScores", Resampled | None]


@dataclass(frozen=True, eq=False)
class SpaceScores(Record):
    """Scores of some partitions in one space; the unit of the cache."""

    digests: tuple[str, ...]  # of the partitions
    values: np.ndarray  # (partitions, indices)
    reasons: Mapping[str, str] = field(default_factory=dict)  # "digest index" -> why undefined
    dip: Dip | None = None
    plane: np.ndarray | None = None
    axes: str = ""


def score_runs(
    runs: Runs,
    indices: Sequence[IndexSpec] | IndexSpec = ("silhouette",),
    *,
    noise: str = "error",
    convention: str | None = None,
    dip: bool = True,
    projection: str = "pca",
    n_plotted: int = 2000,
    n_jobs: int | None = None,
    device: Any = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    random_state: Any = 0,
    scheduler: Any = None,
) -> Scores:
    """Score every partition in every space.

    Parameters
    ----------
    runs : Runs
        From :func:`wellsep.load_runs`, or made of parts: L spaces, M partitions.
    indices : sequence of str or (str, dict)
        Names from ``wellsep.INDICES``. The first index decides the ranking.
    noise : {"error", "exclude", "cluster", "singletons"}
        What the label -1 means. An error by default: a run that calls most objects noise must not
        win unnoticed. With "exclude" the coverage of each partition is shown.
    convention : {None, "ace"}
        "ace" computes what the authors of ACE computed.
    dip : bool
        Also test every space for more than one mode.
    projection : {"pca", "pca-scaled", "components", "distances"}
        How the dip test sees a space, see :func:`wellsep.multimodality`.
    n_plotted : int
        Objects whose coordinates are kept for drawing; 0 for none.
    n_jobs, device : as in :func:`wellsep.score_partitions`
    cache : path, optional
        Folder that keeps finished spaces by content; an interrupted call continues from it, and
        only new partitions are scored again.
    progress : callable, optional
        Called as ``progress(done, total, space)`` before each space, and at the end.
    random_state : int or Generator
        Chooses the objects whose coordinates are kept.
    scheduler : str or distributed.Client, optional
        A Dask cluster that scores the spaces, each in a task of its own; an active client is
        used by default. Embeddings in files are read by the workers.

    Returns
    -------
    Scores

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, (30, 2)) for m in (0, 9)])
    >>> halves, mixed = np.arange(60) // 30, np.arange(60) % 2
    >>> runs = ws.Runs.from_parts({"flat": X}, {"good": halves, "bad": mixed})
    >>> scores = ws.score_runs(runs, ["silhouette", "davies_bouldin"])
    >>> scores.values["silhouette"].round(2)
    array([[ 0.88, -0.03]])
    """
    return score_spaces(
        runs, indices, None, noise=noise, convention=convention, dip=dip, projection=projection,
        n_plotted=n_plotted, n_jobs=n_jobs, device=device, cache=cache, progress=progress,
        random_state=random_state, scheduler=scheduler,
    )[0]  # fmt: skip


def check_runs(runs: Any) -> None:
    """Refuse what are no runs."""
    if not isinstance(runs, Runs):
        raise TypeError(
            f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
        )


def score_spaces(
    runs: Runs,
    indices: Sequence[IndexSpec] | IndexSpec,
    resampling: Resampling | None,
    *,
    noise: str,
    convention: str | None,
    dip: bool,
    projection: str,
    n_jobs: int | None,
    device: Any,
    cache: str | os.PathLike[str] | None,
    progress: Progress | None,
    random_state: Any,
    scheduler: Any,
    n_plotted: int = 2000,
) -> tuple[Scores, dict[str, Resampled]]:
    """Open every space once: its scores and, where asked for, its half-samples."""
    check_runs(runs)
    check_choice("noise", noise, NOISE_POLICIES)
    asked = parse_indices(indices, convention)
    spaces, names = tuple(runs.spaces), tuple(runs.partitions)
    if not spaces or not names:
        missing = "space (embedding)" if not spaces else "partition (labels)"
        raise NothingToRank(f"There must be at least one {missing} among the runs, got none.")
    partitions = Partitions.from_labels(dict(runs.partitions), noise=noise)
    digests = tuple(digest(codes) for codes in partitions.codes)
    drawn = drawn_objects(runs.n_objects, n_plotted, random_state)
    labels = tuple(index.label(params) for index, params in asked)

    job = _Job(labels, asked, dip, projection, drawn, n_jobs, device, resampling)
    with open_client(scheduler) as client:
        if client is not None:
            both = _score_remotely(client, runs, spaces, partitions, digests, job, cache, progress)
        else:
            both = _score_here(runs, spaces, partitions, digests, job, cache, progress)
    found = [scored for scored, _ in both]
    resampled = {s: one for s, (_, one) in zip(spaces, both, strict=True) if one is not None}

    tables = np.stack([one.values for one in found])  # (L, M, I)
    reasons: dict[str, dict[str, str]] = {label: {} for label in labels}
    for space, one in zip(spaces, found, strict=True):
        for partition, key in zip(names, digests, strict=True):
            for label in labels:
                why = one.reasons.get(f"{key} {label}")
                if why:
                    reasons[label][reason_key(space, partition)] = why
    scores = Scores(
        values={label: freeze(tables[:, :, i]) for i, label in enumerate(labels)},
        directions={
            label: index.direction for label, (index, _) in zip(labels, asked, strict=True)
        },
        spaces=spaces,
        partitions=names,
        made_in=freeze(runs.made_in),
        reasons={label: why for label, why in reasons.items() if why},
        coverage=freeze(partitions.coverage),
        n_clusters=freeze(partitions.n_clusters),
        dip=_join_dips(found) if dip else None,
        params={run.name: run.params for run in runs if run.params},
        ids=None if runs.ids is None else freeze(runs.ids),
        n_objects=runs.n_objects,
        dims=freeze([runs[name].n_features for name in spaces]),
        plot_coordinates=_join_planes(drawn, found) if len(drawn) else None,
        settings={
            "indices": {label: (i.name, p) for label, (i, p) in zip(labels, asked, strict=True)},
            "noise": noise,
            "convention": convention,
            "projection": projection if dip else None,
            "version": __version__,
        },
    )
    return scores, resampled


@dataclass(frozen=True, eq=False)
class _Job:
    labels: tuple[str, ...]
    asked: list[Asked]
    dip: bool
    projection: str
    drawn: np.ndarray
    n_jobs: int | None
    device: Any
    resampling: Resampling | None

    def key(self, embedding_digest: str) -> str:
        """Everything but the partitions that the values of a space depend on."""
        facts = (__version__, embedding_digest, self.labels, self.dip and self.projection,
                 digest(self.drawn), str(self.device))  # fmt: skip
        return digest(repr(facts))


def _score_here(
    runs: Runs, spaces: tuple[str, ...], partitions: Partitions, digests: tuple[str, ...],
    job: _Job, cache: Any, progress: Progress | None,
) -> list[_Found]:  # fmt: skip
    found = []
    for done, name in enumerate(spaces):
        if progress is not None:
            progress(done, len(spaces), name)
        try:
            found.append(_score_space(runs, name, partitions, digests, job, cache))
        except (ValueError, TypeError) as error:
            raise named(error, name) from error
    if progress is not None:
        progress(len(spaces), len(spaces), "")
    return found


def _score_remotely(
    client: Any, runs: Runs, spaces: tuple[str, ...], partitions: Partitions,
    digests: tuple[str, ...], job: _Job, cache: Any, progress: Progress | None,
) -> list[_Found]:  # fmt: skip
    """The same with a task per space; this process alone reads and writes the cache."""
    folders: dict[str, Path | None] = dict.fromkeys(spaces)
    known: dict[str, SpaceScores | None] = dict.fromkeys(spaces)
    resampled: dict[str, Resampled | None] = dict.fromkeys(spaces)
    if cache is not None:
        for name, key in over_spaces(client, runs, spaces, digest):
            folders[name] = Path(cache) / job.key(key)
            known[name] = _read_cache(folders[name])  # type: ignore[arg-type]
    missing = {name: _missing(known[name], digests) for name in spaces}
    again = job.resampling is not None
    left = tuple(name for name in spaces if missing[name] or known[name] is None or again)
    own = {name: (name, missing[name], _without_values(known[name])) for name in left}
    done = len(spaces) - len(left)
    if progress is not None:
        progress(0, len(spaces), "")
    for name, (fresh, resampled[name]) in over_spaces(
        client, runs, left, _compute, partitions, digests, job, own=own
    ):
        known[name] = _joined(known[name], fresh, folders[name])
        done += 1
        if progress is not None:
            progress(done, len(spaces), name)
    if progress is not None and not left:
        progress(done, len(spaces), "")
    return [(_in_order(known[name], digests), resampled[name]) for name in spaces]  # type: ignore[arg-type]


def _without_values(known: SpaceScores | None) -> SpaceScores | None:
    """What a worker needs of a known space: its dip and its plane."""
    if known is None:
        return None
    return SpaceScores((), np.empty((0, 0)), {}, known.dip, known.plane, known.axes)


def _missing(known: SpaceScores | None, digests: tuple[str, ...]) -> list[int]:
    seen = set() if known is None else set(known.digests)
    return [m for m, digest in enumerate(digests) if digest not in seen]


def _in_order(known: SpaceScores, digests: tuple[str, ...]) -> SpaceScores:
    """The known scores of these partitions, in their order."""
    place = {digest: i for i, digest in enumerate(known.digests)}
    order = [place[digest] for digest in digests]
    return SpaceScores(
        digests, known.values[order], known.reasons, known.dip, known.plane, known.axes
    )


def _score_space(
    runs: Runs, name: str, partitions: Partitions, digests: tuple[str, ...], job: _Job, cache: Any
) -> _Found:
    """Scores of all partitions in one space, in their order; what the cache knows is taken."""
    folder = None if cache is None else Path(cache) / job.key(runs[name].digest())
    known = None if folder is None else _read_cache(folder)
    missing = _missing(known, digests)
    resampled = None
    if missing or known is None or job.resampling is not None:
        fresh, resampled = _compute(
            runs.spaces[name], partitions, digests, job, name, missing, known
        )
        known = _joined(known, fresh, folder)
    return _in_order(known, digests), resampled


def _joined(
    known: SpaceScores | None, fresh: SpaceScores | None, folder: Path | None
) -> SpaceScores:
    """What was known with what is new, kept in the cache."""
    if fresh is None:
        return known  # type: ignore[return-value]
    both = fresh if known is None else _merge(known, fresh)
    if folder is not None:
        both.save(folder)
    return both


def _compute(
    X: np.ndarray, partitions: Partitions, digests: tuple[str, ...], job: _Job, space: str,
    which: list[int], known: SpaceScores | None,
) -> tuple[SpaceScores | None, Resampled | None]:  # fmt: skip
    """Scores of some partitions and the half-samples of all; one pass where these are the same."""
    resampled = None
    by = (job.n_jobs, job.device)
    if job.resampling is not None and len(which) == len(partitions):
        result, resampled = score_and_resample(X, partitions, job.asked, job.resampling, space, *by)
    else:
        if job.resampling is not None:
            resampled = resample(X, partitions, job.resampling, space, *by)
        if known is not None and not which:
            return None, resampled
        specs = [(index.name, params) for index, params in job.asked]
        result = score_partitions(
            X, partitions.subset(which), specs, device=job.device, n_jobs=job.n_jobs
        )
    new = tuple(digests[m] for m in which)
    place = dict(zip(result.names, new, strict=True))
    reasons = {f"{place[p]} {index}": why for (p, index), why in result.reasons.items()}
    if known is not None:
        return SpaceScores(
            new, result.values, reasons, known.dip, known.plane, known.axes
        ), resampled
    test = None
    if job.dip:
        seen = multimodality(X, projection=job.projection, random_state=0)
        one = freeze([seen.statistic]), freeze([seen.pvalue])
        test = Dip(*one, (seen.note,), job.projection)
    flat, axes = plane(X, job.drawn) if len(job.drawn) else (None, "")
    return SpaceScores(new, result.values, reasons, test, flat, axes), resampled


def _merge(old: SpaceScores, new: SpaceScores) -> SpaceScores:
    return SpaceScores(
        old.digests + new.digests, np.vstack([old.values, new.values]),
        {**old.reasons, **new.reasons}, old.dip, old.plane, old.axes,
    )  # fmt: skip


def _read_cache(folder: Path) -> SpaceScores | None:
    try:
        return SpaceScores.load(folder)
    except (FileNotFoundError, ValueError):  # absent, or damaged: computed again
        return None


def _join_dips(found: list[SpaceScores]) -> Dip:
    tests = [one.dip for one in found if one.dip is not None]
    return Dip(
        freeze(np.concatenate([t.statistic for t in tests])),
        freeze(np.concatenate([t.pvalue for t in tests])),
        tuple(t.notes[0] for t in tests),
        tests[0].projection,
    )


def _join_planes(drawn: np.ndarray, found: list[SpaceScores]) -> Coordinates:
    planes = tuple(freeze(one.plane) for one in found if one.plane is not None)
    return Coordinates(freeze(drawn), planes, tuple(one.axes for one in found))
