"""score_runs: open every space once, here or in a task on a Dask cluster, and score all in it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wellsep import __version__
from wellsep._checks.values import check_generator
from wellsep._files.arrays import digest
from wellsep._files.records import Record, freeze
from wellsep._text.sentences import count
from wellsep.compute.engine.dask.client import open_client
from wellsep.evaluate.certainty.half_samples import (
    Resampled,
    Resampling,
    grows_trees,
    resample,
    score_and_resample,
)
from wellsep.evaluate.options import Calling, Computing, Progress, ScoreOptions, Settings
from wellsep.evaluate.problem import open_runs
from wellsep.evaluate.scores import Coordinates, Dip, NothingToRank, Scores, Spectrum, reason_key
from wellsep.evaluate.scoring.workers import SAVING, over_spaces, over_spaces_here, tell
from wellsep.indices import score_partitions
from wellsep.indices.index_names import IndexSpec, ParsedIndex
from wellsep.indices.registry import refuse_unpriced
from wellsep.indices.scoring import as_distances
from wellsep.partitions import Partitions
from wellsep.runs import Runs
from wellsep.runs.space_files import digest_space
from wellsep.spaces import multimodality
from wellsep.spaces.drawing_planes import drawn_objects, plane
from wellsep.spaces.effective_rank import spectrum_of

_Outcome = tuple["SpaceScores", Resampled | None]
_Step = Callable[..., Any]
N_PLOTTED = 2000  # objects whose coordinates are kept for drawing

# When scores take minutes; pairs of objects times partitions, over all spaces.
_LONG = 1e11
_SPACE = 1e8  # pairs that a space costs by itself
_TREE = 30  # pairs that a pair costs where trees are grown
_ROW_STATISTICS = {"clusters", "within", "radii", "separation", "margins", "simplified"}


@dataclass(frozen=True, eq=False)
class SpaceScores(Record):
    """Scores of some partitions in one space; the unit of the cache."""

    digests: tuple[str, ...]  # of the partitions
    values: np.ndarray  # (partitions, indices)
    reasons: Mapping[str, str] = field(default_factory=dict)  # "digest index" -> why undefined
    dip: Dip | None = None
    plane: np.ndarray | None = None
    axes: str = ""
    spectrum: tuple[float, ...] = ()  # RankMe, alpha-ReQ

    def without_scores(self) -> SpaceScores:
        """What is known of the space itself: its dip, its plane, its spectrum."""
        return replace(self, digests=(), values=np.empty((0, 0)), reasons={})


def score_runs(
    runs: Any,
    indices: Sequence[IndexSpec] | IndexSpec = ("silhouette",),
    *,
    noise: str = "priced",
    dip: bool = True,
    details: bool = True,
    spaces: Any = None,
    labels: Any = None,
    pairs: Any = None,
    max_spaces: int | None = None,
    projection: str = "pca",
    convention: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    device: Any = None,
    n_jobs: int | None = None,
    scheduler: Any = None,
    progress: Progress | None = None,
    random_state: Any = 0,
) -> Scores:
    """Score every partition in every space.

    Parameters
    ----------
    runs : Runs, path, AnnData, Optuna study, mapping, or iterable of (name, embedding, labels)
        L spaces and M partitions, see :func:`wellsep.judge`.
    indices : sequence of str or (str, dict)
        Names from ``wellsep.INDICES``. The first index decides the ranking. The others are
        computed and shown next to it.
    noise : {"priced", "exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. By default such objects are not counted and lower
        the score, so that a run that calls most objects noise does not win by it; an index that has
        no price for them is refused. "exclude": they are not counted and cost nothing. "cluster":
        they are one cluster. "singletons": each is a cluster. "error": they are refused.
    dip : bool
        Also test every space for more than one mode.
    details : bool
        Also keep the coordinates of at most 2,000 objects in every space, for drawing.
    spaces : str or iterable of str, optional
        Score in these embeddings only, by name or pattern; a text is split at commas.
    labels : str or iterable of str, optional
        Score these partitions only, by name or pattern, such as ``"leiden_*"``.
    pairs : str or mapping of str to str, optional
        In which embedding a partition was made, see :func:`wellsep.adapters.runs_from_anndata`.
    max_spaces : int, optional
        Score the partitions in at most so many spaces, drawn by ``random_state``. All partitions
        are kept. The work grows with the number of spaces, and that of ACE with its square.
    projection : {"pca", "pca-scaled", "components", "distances"}
        How the dip test sees a space, see :func:`wellsep.multimodality`.
    convention : {None, "ace"}
        "ace" computes what the authors of ACE computed.
    cache : path, optional
        Folder that keeps finished spaces by content; an interrupted call continues from it, and
        only new partitions are scored again.
    device : str, optional
        "cuda" computes on the GPU through PyTorch.
    n_jobs : int, optional
        Threads; by default as many as BLAS would use. The result does not depend on it.
    scheduler : str or distributed.Client, optional
        A Dask cluster that works on the spaces, each in a task of its own; an active client is
        used by default. Embeddings in files are read by the workers.
    progress : callable, optional
        Called as ``progress(done, total, space)`` before each space, and at the end.
    random_state : int or Generator
        Chooses the objects whose coordinates are kept, and the spaces of ``max_spaces``.

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
    options = ScoreOptions(
        indices=indices,
        noise=noise,
        dip=dip,
        details=details,
        spaces=spaces,
        labels=labels,
        pairs=pairs,
        max_spaces=max_spaces,
        projection=projection,
        convention=convention,
        cache=cache,
        device=device,
        n_jobs=n_jobs,
        scheduler=scheduler,
        progress=progress,
        random_state=random_state,
    )
    runs = open_runs(runs, options)
    partitions = encode_runs(runs, options)
    return score_spaces(with_drawn_spaces(runs, options), partitions, options)[0]


def with_drawn_spaces(runs: Runs, options: ScoreOptions) -> Runs:
    """The runs with as many of their spaces as are wanted, drawn at random; all partitions."""
    spaces = list(runs.spaces)
    if options.max_spaces is None or len(spaces) <= options.max_spaces:
        return runs
    rng = check_generator(options.random_state)
    drawn = sorted(rng.choice(len(spaces), options.max_spaces, replace=False).tolist())
    return runs.subset(spaces=[spaces[i] for i in drawn])


def encode_runs(runs: Any, options: ScoreOptions) -> Partitions:
    """The labels of all runs, encoded once; refuses what are no runs, too few, or unpriced."""
    if not isinstance(runs, Runs):
        raise TypeError(
            f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
        )
    if not runs.spaces or not runs.partitions:
        missing = "space (embedding)" if not runs.spaces else "partition (labels)"
        raise NothingToRank(f"There must be at least one {missing} among the runs, got none.")
    partitions = encode_labels(runs, options)
    refuse_unpriced(options.parsed.values(), partitions)
    return partitions


def encode_labels(runs: Runs, options: ScoreOptions) -> Partitions:
    """The labels of all runs, encoded once."""
    return Partitions.from_labels(dict(runs.partitions), noise=options.noise)


def scores_of_labels(runs: Runs, partitions: Partitions, options: ScoreOptions) -> Scores:
    """What is known of partitions without any space: no value."""
    return Scores(
        values={},
        directions={},
        spaces=(),
        partitions=partitions.names,
        made_in=freeze(np.full(len(partitions), -1)),
        **_facts(runs, partitions, options),
    )


def _facts(runs: Runs, partitions: Partitions, options: ScoreOptions) -> dict[str, Any]:
    """The fields of `Scores` that need no space."""
    return {
        "coverage": freeze(partitions.coverage),
        "n_clusters": freeze(partitions.n_clusters),
        "params": {run.name: run.params for run in runs if run.params},
        "ids": None if runs.ids is None else freeze(runs.ids),
        "n_objects": runs.n_objects,
        "settings": options.part(Settings),
        "version": __version__,
    }


def _warn_if_long(
    n_spaces: int, partitions: Partitions, options: ScoreOptions, resampling: Resampling | None
) -> None:
    """Warn of work that takes minutes, by its pairs of objects, partitions and spaces."""
    parsed = options.parsed.values()
    wanted = {want.name for index, params in parsed for want in index.wants(**params).values()}
    pairs = float(partitions.n_objects) ** (1 if wanted <= _ROW_STATISTICS else 2) * len(partitions)
    if any(grows_trees(index.name, params) for index, params in parsed):
        pairs *= _TREE
    if n_spaces * (pairs + _SPACE) < _LONG:
        return
    kept = " Spaces scored before are taken from the cache." if options.cache is not None else ""
    draws = "" if resampling is None else " So do fewer half-samples (n_draws)."
    warnings.warn(
        f"Scoring {count(len(partitions), 'partition')} in {count(n_spaces, 'space')} can take "
        f"many minutes.{kept} Some of the spaces, drawn at random, take less time "
        f"(max_spaces).{draws}",
        stacklevel=2,
    )


def score_spaces(
    runs: Runs,
    partitions: Partitions,
    options: ScoreOptions,
    resampling: Resampling | None = None,
) -> tuple[Scores, dict[str, Resampled]]:
    """Open every space once: its scores and, where they are wanted, its half-samples."""
    spaces, names = tuple(runs.spaces), partitions.names
    digests = tuple(digest(codes) for codes in partitions.codes)
    most = N_PLOTTED if options.details else 0
    drawn = drawn_objects(runs.n_objects, most, options.random_state)
    labels = tuple(options.parsed)

    job = _Job(options.parsed, options.part(Settings), options.part(Computing), drawn, resampling)
    with open_client(options.scheduler) as client:
        if client is not None:
            both = _score_remotely(client, runs, spaces, partitions, digests, job, options)
        else:
            _warn_if_long(len(spaces), partitions, options, resampling)
            both = _score_here(runs, spaces, partitions, digests, job, options)
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
        directions={label: index.direction for label, (index, _) in options.parsed.items()},
        spaces=spaces,
        partitions=names,
        made_in=freeze(runs.made_in),
        reasons={label: why for label, why in reasons.items() if why},
        dip=_join_dips(found) if options.dip else None,
        dims=freeze([runs[name].n_features or 0 for name in spaces]),
        plot_coordinates=_join_planes(drawn, found) if len(drawn) else None,
        index_specs={label: (index.name, p) for label, (index, p) in options.parsed.items()},
        spectrum=Spectrum(*(freeze(c) for c in zip(*(one.spectrum for one in found), strict=True))),
        **_facts(runs, partitions, options),
    )
    return scores, resampled


@dataclass(frozen=True, eq=False)
class _Job:
    indices: Mapping[str, ParsedIndex]
    settings: Settings
    computing: Computing
    drawn: np.ndarray
    resampling: Resampling | None

    def key(self, embedding_digest: str) -> str:
        """Everything but the partitions that the values of a space depend on."""
        settings = self.settings
        facts = (__version__, "spectrum", embedding_digest, tuple(self.indices),
                 settings.noise == "priced",  # "exclude" has the same codes
                 settings.dip and settings.projection, digest(self.drawn),
                 str(self.computing.device))  # fmt: skip
        return digest(repr(facts))


def _score_here(
    runs: Runs, spaces: tuple[str, ...], partitions: Partitions, digests: tuple[str, ...],
    job: _Job, options: ScoreOptions,
) -> list[_Outcome]:  # fmt: skip
    def score(name: str, computing: Computing) -> _Outcome:
        mine = replace(job, computing=computing)
        return _score_space(runs, name, partitions, digests, mine, options.cache)

    return [one for _, one in over_spaces_here(runs, spaces, partitions, score, options)]


def _score_remotely(
    client: Any, runs: Runs, spaces: tuple[str, ...], partitions: Partitions,
    digests: tuple[str, ...], job: _Job, options: ScoreOptions,
) -> list[_Outcome]:  # fmt: skip
    """The same with a task per space; this process alone reads and writes the cache."""
    folders: dict[str, Path | None] = dict.fromkeys(spaces)
    known: dict[str, SpaceScores | None] = dict.fromkeys(spaces)
    resampled: dict[str, Resampled | None] = dict.fromkeys(spaces)
    if options.cache is not None:
        for name, key in over_spaces(client, runs, spaces, digest_space):
            folders[name] = Path(options.cache) / job.key(key)
            known[name] = _read_cache(folders[name])  # type: ignore[arg-type]
    missing = {name: _missing(known[name], digests) for name in spaces}
    again = job.resampling is not None
    left = tuple(name for name in spaces if missing[name] or known[name] is None or again)
    own = {name: (name, missing[name], _without_values(known[name])) for name in left}
    done = len(spaces) - len(left)
    tell(options.progress, 0, len(spaces), "")
    for name, (fresh, resampled[name]) in over_spaces(
        client, runs, left, _compute, partitions, digests, job, own=own
    ):
        known[name] = _joined(known[name], fresh, folders[name])
        done += 1
        tell(options.progress, done, len(spaces), name)
    if not left:
        tell(options.progress, done, len(spaces), "")
    return [(_in_order(known[name], digests), resampled[name]) for name in spaces]  # type: ignore[arg-type]


def _without_values(known: SpaceScores | None) -> SpaceScores | None:
    """What a worker needs of a known space: its dip and its plane."""
    if known is None:
        return None
    return known.without_scores()


def _missing(known: SpaceScores | None, digests: tuple[str, ...]) -> list[int]:
    seen = set() if known is None else set(known.digests)
    return [m for m, digest in enumerate(digests) if digest not in seen]


def _in_order(known: SpaceScores, digests: tuple[str, ...]) -> SpaceScores:
    """The known scores of these partitions, in their order."""
    place = {digest: i for i, digest in enumerate(known.digests)}
    order = [place[digest] for digest in digests]
    return replace(known, digests=digests, values=known.values[order])


def _score_space(
    runs: Runs, name: str, partitions: Partitions, digests: tuple[str, ...], job: _Job, cache: Any
) -> _Outcome:
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
        try:
            with SAVING:
                both.save(folder)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else "another file is in the way"
            warnings.warn(
                f"Scores cannot be kept in {folder.parent}: {why}. They are computed without the "
                "cache. Name another folder with cache.",
                stacklevel=2,
            )
    return both


def _compute(
    X: Any, partitions: Partitions, digests: tuple[str, ...], job: _Job, space: str,
    which: list[int], known: SpaceScores | None,
) -> tuple[SpaceScores | None, Resampled | None]:  # fmt: skip
    """Scores of some partitions and the half-samples of all; one pass where these are the same."""
    X = as_distances(X, list(job.indices.values()))
    resampled = None
    if job.resampling is not None and len(which) == len(partitions):
        result, resampled = score_and_resample(
            X, partitions, list(job.indices.values()), job.resampling, space, job.computing
        )
    else:
        if job.resampling is not None:
            resampled = resample(X, partitions, job.resampling, space, job.computing)
        if known is not None and not which:
            return None, resampled
        specs = [(index.name, params) for index, params in job.indices.values()]
        result = score_partitions(
            X,
            partitions.subset(which),
            specs,
            device=job.computing.device,
            n_jobs=job.computing.n_jobs,
        )
    new = tuple(digests[m] for m in which)
    place = dict(zip(result.names, new, strict=True))
    reasons = {f"{place[p]} {index}": why for (p, index), why in result.reasons.items()}
    if known is not None:
        fresh = replace(known, digests=new, values=result.values, reasons=reasons)
        return fresh, resampled
    test = None
    if job.settings.dip:
        modes = multimodality(X, projection=job.settings.projection, random_state=0)
        one = freeze([modes.statistic]), freeze([modes.pvalue])
        test = Dip(*one, (modes.note,), job.settings.projection)
    flat, axes = plane(X, job.drawn) if len(job.drawn) else (None, "")
    seen = spectrum_of(X)
    spectrum = (seen.rankme, seen.alpha_req)
    return SpaceScores(new, result.values, reasons, test, flat, axes, spectrum), resampled


def _merge(old: SpaceScores, new: SpaceScores) -> SpaceScores:
    return replace(
        old,
        digests=old.digests + new.digests,
        values=np.vstack([old.values, new.values]),
        reasons={**old.reasons, **new.reasons},
    )


def _read_cache(folder: Path) -> SpaceScores | None:
    try:
        return SpaceScores.load(folder)
    except (OSError, ValueError):  # absent, out of reach or damaged: computed again
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


def resample_spaces(
    runs: Runs, partitions: Partitions, job: Resampling, options: Calling
) -> Iterator[tuple[str, Resampled]]:
    """The half-samples of every space that has draws, in order or as a cluster is done with it."""
    spaces = tuple(job.draws)

    def here(name: str, computing: Computing) -> Resampled:
        return resample(runs.spaces[name], partitions, job, name, computing)

    with open_client(options.scheduler) as client:
        if client is None:
            yield from over_spaces_here(runs, spaces, partitions, here, options)
            return
        tell(options.progress, 0, len(spaces), "")
        own = {name: (name, options.part(Computing)) for name in spaces}
        found = over_spaces(client, runs, spaces, resample, partitions, job, own=own)
        for done, (name, result) in enumerate(found, 1):
            yield name, result
            if done < len(spaces):
                tell(options.progress, done, len(spaces), name)
        tell(options.progress, len(spaces), len(spaces), "")
