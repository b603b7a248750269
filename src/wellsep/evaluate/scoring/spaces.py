"""Scores in every space: each is opened once, in threads here or in tasks on a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wellsep import __version__
from wellsep._files.arrays import digest
from wellsep._files.records import Record, freeze
from wellsep._text.sentences import count
from wellsep._threads import budget_bytes, effective_jobs, some_at_once
from wellsep.compute.engine.dask.client import open_client
from wellsep.evaluate.certainty.half_samples import Draws, Resampled, grows_trees, resample
from wellsep.evaluate.options import Calling, Computing, Options, Progress, ScoreOptions, Settings
from wellsep.evaluate.problem import Problem, partitions_of
from wellsep.evaluate.ranks import tied_classes
from wellsep.evaluate.scores import Coordinates, Dip, Scores, Spectrum, reason_key
from wellsep.indices import score_partitions
from wellsep.indices.index_names import IndexSpec, ParsedIndex, parse_indices
from wellsep.indices.scoring import as_distances
from wellsep.partitions import Partitions
from wellsep.runs import Runs
from wellsep.runs.run import Part
from wellsep.runs.space_files import digest_space
from wellsep.spaces import multimodality
from wellsep.spaces.drawing_planes import drawn_objects, plane
from wellsep.spaces.effective_rank import spectrum_of

SAME_SCORE = 1e-9  # relative; a turned or moved embedding in float64 scores alike to about 1e-13
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
    dip: tuple[float, float, str] | None = None  # statistic, p-value and note
    plane: np.ndarray | None = None
    axes: str = ""
    spectrum: tuple[float, ...] = ()  # RankMe, alpha-ReQ

    def joined_with(self, other: SpaceScores) -> SpaceScores:
        """The scores of both; what is known of the space is that of the first."""
        digests, values = self.digests + other.digests, np.vstack([self.values, other.values])
        return replace(
            self, digests=digests, values=values, reasons={**self.reasons, **other.reasons}
        )


def score_runs(
    runs: Any,
    indices: Sequence[IndexSpec] | IndexSpec = ("silhouette",),
    *,
    noise: str = "penalize",
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
    indices, noise
        Which validity indices, and what noise means, see :func:`wellsep.judge`.
    dip : bool
        Also test every space for more than one mode.
    details : bool
        Also keep the coordinates of at most 2,000 objects in every space, for drawing.
    spaces, labels, pairs, max_spaces
        Which embeddings and partitions, see :func:`wellsep.judge`.
    projection : {"pca", "pca-scaled", "components", "distances"}
        How the dip test sees a space, see :func:`wellsep.multimodality`.
    convention : {None, "ace"}
        "ace" computes what the authors of ACE computed.
    cache, device, n_jobs, scheduler, progress
        A folder that keeps finished spaces, and what computes, see :func:`wellsep.judge`.
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
    return score_spaces(Problem.open(runs, options))[0]


def input_scores(
    X: Any, runs: Any, *, index: Any = "silhouette", noise: str = "penalize"
) -> np.ndarray:
    """Return the score of every partition in the data that the runs were made from.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The data that the runs were made from.
    runs : Runs, or a mapping of names to label vectors
        The runs that were scored.
    index : str or (str, dict)
        A name from ``wellsep.INDICES``, alone or with options.
    noise : {"penalize", "exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means, see :func:`wellsep.judge`.

    Returns
    -------
    ndarray of shape (M,), larger is better, NaN where undefined

    Examples
    --------
    >>> from wellsep.evaluate import input_scores
    >>> X = [[0.0, 0], [0, 1], [5, 0], [5, 1]]
    >>> input_scores(X, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]}).round(3)
    array([ 0.802, -0.39 ])
    """
    partitions = Partitions.from_labels(dict(partitions_of(runs)), noise=noise)
    parse_indices((index,), what="index")
    return oriented_scores(X, partitions, index)


def oriented_scores(X: Any, partitions: Partitions, index: Any, **options: Any) -> np.ndarray:
    """(M,) scores of encoded partitions in one space, larger is better."""
    result = score_partitions(X, partitions, (index,), **options)
    return np.asarray(result.values[:, 0], dtype=float) * result.directions[0]


def score_spaces(problem: Problem) -> tuple[Scores, dict[str, Resampled]]:
    """Scores in every space, the same for equal partitions, and half-samples of draws."""
    options, runs, classes = problem.options, problem.runs, problem.classes
    spaces, draws = tuple(runs.spaces), problem.draws
    facts: dict[str, Any] = {
        "coverage": freeze(problem.partitions.coverage),
        "n_clusters": freeze(problem.partitions.n_clusters),
        "params": {run.name: run.params for run in runs if run.params},
        "ids": None if runs.ids is None else freeze(runs.ids),
        "n_objects": runs.n_objects,
        "settings": options.part(Settings),
        "version": __version__,
    }
    if not spaces:
        return Scores({}, {}, (), classes.names, freeze(np.full(len(classes.of), -1)), **facts), {}
    digests = tuple(digest(codes) for codes in problem.distinct.codes)
    most = N_PLOTTED if options.details else 0
    drawn = drawn_objects(runs.n_objects, most, options.random_state)
    job = _Job(options.parsed, options.part(Settings), options.device, drawn, draws)
    with open_client(options.scheduler) as client:
        if client is None:
            _warn_if_long(problem)
        team = Team(client, runs, problem.distinct, options)
        scored, resampled = _score_all(team, job, digests, options.cache)

    labels = tuple(options.parsed)
    reasons: dict[str, dict[str, str]] = {label: {} for label in labels}
    for space, one in zip(spaces, scored, strict=True):
        for partition, equal in zip(digests, classes.members, strict=True):
            for label in labels:
                if why := one.reasons.get(f"{partition} {label}"):
                    reasons[label] |= {reason_key(space, name): why for name in equal}
    tables = np.stack([one.values for one in scored])  # (L, D, I)
    first = np.arange(len(spaces))
    if isinstance(options, Options):
        first = first_alike(tables)
    once = np.unique(first)  # of spaces that score alike the first
    scored, names = [scored[i] for i in once], tuple(spaces[i] for i in once)
    tables = tables[once][:, classes.of]
    made_in = np.append(np.searchsorted(once, first), -1)[runs.made_in]  # the last: in none
    dip = planes = None
    if options.dip:
        statistic, pvalue, notes = zip(*(one.dip for one in scored if one.dip), strict=True)
        dip = Dip(freeze(statistic), freeze(pvalue), notes, options.projection)
    if len(drawn):
        flat = tuple(freeze(one.plane) for one in scored if one.plane is not None)
        planes = Coordinates(freeze(drawn), flat, tuple(one.axes for one in scored))
    return Scores(
        values={label: freeze(tables[:, :, i]) for i, label in enumerate(labels)},
        directions={label: index.direction for label, (index, _) in options.parsed.items()},
        spaces=names,
        partitions=classes.names,
        made_in=freeze(made_in),
        reasons={label: why for label, why in reasons.items() if why},
        dip=dip,
        dims=freeze([runs[name].n_features or 0 for name in names]),
        plot_coordinates=planes,
        index_specs={label: (index.name, p) for label, (index, p) in options.parsed.items()},
        spectrum=Spectrum(*map(freeze, zip(*(one.spectrum for one in scored), strict=True))),
        copies=trace_copies(problem.copies, spaces, first),
        **facts,
    ), resampled


def first_alike(tables: np.ndarray) -> np.ndarray:
    """(L,) the first space that scores every partition as each does, by (L, D, I) scores."""
    # One that is not the first is a turned, moved or rescaled copy. Scores that are undefined, or
    # the same for all partitions, mark no copy.
    size = np.abs(tables).max(axis=1, keepdims=True)
    telling = np.isfinite(tables).all(axis=(1, 2))
    for i in np.flatnonzero(telling):
        telling[i] = all(tied_classes(column).any() for column in tables[i].T)
    first = np.arange(len(tables))
    for i in np.flatnonzero(telling):
        before = np.flatnonzero(telling[:i] & (first[:i] == np.arange(i)))
        bound = SAME_SCORE * np.maximum(size[before], size[i])
        alike = before[(np.abs(tables[before] - tables[i]) <= bound).all(axis=(1, 2))]
        first[i] = alike[0] if len(alike) else i
    return first


def trace_copies(
    copies: Mapping[str, str], spaces: Sequence[str], first: np.ndarray
) -> dict[str, str]:
    """Copies by digest and by scores, each with the first space that it equals."""
    of = {name: spaces[i] for name, i in zip(spaces, first, strict=True)}
    by_scores = {name: same for name, same in of.items() if name != same}
    return {name: of[same] for name, same in copies.items()} | by_scores


def _warn_if_long(problem: Problem) -> None:
    """Warn of work that takes minutes, by its pairs of objects, partitions and spaces."""
    options, partitions, n_spaces = problem.options, problem.distinct, len(problem.runs.spaces)
    parsed = options.parsed.values()
    wanted = {want.name for index, params in parsed for want in index.wants(**params).values()}
    pairs = float(partitions.n_objects) ** (1 if wanted <= _ROW_STATISTICS else 2) * len(partitions)
    if any(grows_trees(index.name, params) for index, params in parsed):
        pairs *= _TREE
    if n_spaces * (pairs + _SPACE) < _LONG:
        return
    kept = " Spaces scored before are taken from the cache." if options.cache is not None else ""
    draws = "" if problem.draws is None else " So do fewer half-samples (n_draws)."
    warnings.warn(
        f"Scoring {count(len(partitions), 'clustering')} in {count(n_spaces, 'embedding')} can "
        f"take many minutes.{kept} Some of the embeddings, drawn at random, take less time "
        f"(max_spaces).{draws}",
        stacklevel=2,
    )


@dataclass(frozen=True, eq=False)
class _Job:
    indices: Mapping[str, ParsedIndex]
    settings: Settings
    device: Any
    drawn: np.ndarray
    draws: Draws | None

    def key(self, embedding_digest: str) -> str:
        """Everything but the partitions that the values of a space depend on."""
        settings = self.settings
        facts = (__version__, "spectrum", embedding_digest, tuple(self.indices),
                 settings.noise == "penalize",  # "exclude" has the same codes
                 settings.dip and settings.projection, digest(self.drawn),
                 str(self.device))  # fmt: skip
        return digest(repr(facts))


def _score_all(
    team: Team, job: _Job, digests: tuple[str, ...], cache: Any
) -> tuple[list[SpaceScores], dict[str, Resampled]]:
    """Scores of all partitions in every space, and the half-samples; this process has the cache."""
    spaces = tuple(team.runs.spaces)
    folders: dict[str, Path] = {}
    known: dict[str, SpaceScores] = {}
    if cache is not None:
        quiet = replace(team, options=replace(team.options, progress=None))
        for name, key in over_spaces(quiet, spaces, digest_embedding):
            folders[name] = Path(cache) / job.key(key)
            # Absent, out of reach or damaged: computed again.
            with contextlib.suppress(OSError, ValueError):
                known[name] = SpaceScores.load(folders[name])
    own = {}
    for name in spaces:
        seen = set(known[name].digests) if name in known else set()
        missing = [m for m, partition in enumerate(digests) if partition not in seen]
        if missing or job.draws is not None:
            own[name] = name, missing, name not in known
    resampled = {}
    shared = team.partitions, digests, job
    finished = len(spaces) - len(own)
    outcomes = over_spaces(team, tuple(own), _compute, *shared, own=own, finished=finished)
    for name, (fresh, halves) in outcomes:
        if fresh is not None:
            known[name] = known[name].joined_with(fresh) if name in known else fresh
            if cache is not None:
                _keep(known[name], folders[name])
        if halves is not None:
            resampled[name] = halves
    scored = []
    for name in spaces:  # of many partitions that a cache knows, these in their order
        place = {partition: i for i, partition in enumerate(known[name].digests)}
        order = [place[partition] for partition in digests]
        scored.append(replace(known[name], digests=digests, values=known[name].values[order]))
    return scored, resampled


def digest_embedding(X: Any, computing: Computing) -> str:
    """The digest of an embedding, by whoever has it."""
    return digest_space(X)


def _keep(scores: SpaceScores, folder: Path) -> None:
    """Save the scores of a space in the cache, or warn."""
    try:
        scores.save(folder)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "another file is in the way"
        warnings.warn(
            f"Scores cannot be kept in {folder.parent}: {why}. They are computed without the "
            "cache. Name another folder with cache.",
            stacklevel=2,
        )


def _compute(
    X: Any, computing: Computing, partitions: Partitions, digests: tuple[str, ...], job: _Job,
    space: str, which: list[int], is_new: bool,
) -> tuple[SpaceScores | None, Resampled | None]:  # fmt: skip
    """Scores of some partitions and the half-samples of all; one pass where these are the same.

    Of a space that is new, its dip, plane and spectrum too.
    """
    asked = list(job.indices.values())
    X = as_distances(X, asked)
    result = resampled = None
    if job.draws is not None:
        together = asked if len(which) == len(partitions) else ()
        result, resampled = resample(X, computing, partitions, job.draws, space, together)
    if not which:
        return None, resampled
    if result is None:
        specs = [(index.name, params) for index, params in asked]
        by = {"device": computing.device, "n_jobs": computing.n_jobs}
        result = score_partitions(X, partitions.subset(which), specs, **by)
    new = tuple(digests[m] for m in which)
    place = dict(zip(result.names, new, strict=True))
    reasons = {f"{place[p]} {index}": why for (p, index), why in result.reasons.items()}
    if not is_new:
        return SpaceScores(new, result.values, reasons), resampled
    test = None
    if job.settings.dip:
        modes = multimodality(X, projection=job.settings.projection, random_state=0)
        test = float(modes.statistic), float(modes.pvalue), modes.note
    flat, axes = plane(X, job.drawn) if len(job.drawn) else (None, "")
    seen = spectrum_of(X)
    spectrum = (seen.rankme, seen.alpha_req)
    return SpaceScores(new, result.values, reasons, test, flat, axes, spectrum), resampled


@dataclass(frozen=True, eq=False)
class Team:
    """Those who work on the spaces of some runs."""

    client: Any  # of a Dask cluster, or None: this process
    runs: Runs
    partitions: Partitions  # whose clusters take room
    options: Calling


def over_spaces(
    team: Team,
    spaces: tuple[str, ...],
    function: Callable[..., Any],
    *shared: Any,
    own: Mapping[str, tuple[Any, ...]] | None = None,
    finished: int = 0,
) -> Iterator[tuple[str, Any]]:
    """``function(X, computing, *shared, *own[space])`` of each; ``finished`` were done before."""
    progress, total = team.options.progress, finished + len(spaces)
    given = dict.fromkeys(spaces, ()) if own is None else own
    if not spaces:
        tell(progress, total, total, "")
        return
    here = team.client is None
    if here:
        each = _here(team, spaces, lambda X, by, name: function(X, by, *shared, *given[name]))
    else:
        each = _on_cluster(team, spaces, function, shared, given)
    tell(progress, finished, total, spaces[0] if here else "")
    for done, (name, result) in enumerate(each, 1):
        yield name, result
        following = "" if done == len(spaces) else spaces[done] if here else name
        tell(progress, finished + done, total, following)


def _here(
    team: Team, spaces: tuple[str, ...], function: Callable[[Any, Computing, str], Any]
) -> Iterator[tuple[str, Any]]:
    """In order: several small spaces at once, large ones one by one, as the data alone decide."""
    computing = team.options.part(Computing)

    def work(name: str, computing: Computing) -> Any:
        return function(team.runs.spaces[name], computing, name)

    # Spaces whose distance sums and rows fit the memory budget together.
    widest = max(team.runs[name].n_features or 0 for name in spaces)
    columns = int(team.partitions.offsets[-1]) + 4 * widest
    room = int(budget_bytes() / (8.0 * team.runs.n_objects * columns))
    if room < 2:
        results: Generator[Any, None, None] = (work(name, computing) for name in spaces)
    else:
        jobs = effective_jobs(computing.n_jobs)
        at_once = min(jobs, room, len(spaces))
        share = replace(computing, n_jobs=jobs // at_once)
        items = ((name, share) for name in spaces)
        results = some_at_once(at_once, work, items, first_alone=computing.device is not None)
    with contextlib.closing(results):
        for name in spaces:
            try:
                result = next(results)
            except (ValueError, TypeError) as error:
                raise named(error, name) from error
            yield name, result


def tell(progress: Progress | None, done: int, total: int, name: str) -> None:
    """Report how many spaces are done, and the one that comes next."""
    if progress is not None:
        progress(done, total, name)


def named(error: Exception, space: str) -> Exception:
    """The error with the name of the space in it."""
    text = str(error)
    if repr(space) in text:
        return error
    return type(error)(f"embedding {space!r}: {text}")


def _on_cluster(
    team: Team,
    spaces: tuple[str, ...],
    function: Callable[..., Any],
    shared: tuple[Any, ...],
    own: Mapping[str, tuple[Any, ...]],
) -> Iterator[tuple[str, Any]]:
    """As each is done. A worker opens the embedding itself where it lies in a file."""
    from distributed import CancelledError, as_completed
    from distributed.scheduler import KilledWorker

    client, computing = team.client, team.options.part(Computing)
    # A task, not scattered data: what a task made can be made again.
    common = client.submit(_kept, (computing, *shared), pure=False)
    futures = {
        client.submit(
            _on_space, team.runs[name]._part("embedding"), function, common, own[name], pure=False
        ): name
        for name in spaces
    }
    try:
        for future in as_completed(list(futures), loop=client.loop):
            name = futures.pop(future)
            try:
                result = future.result()
            except KilledWorker:
                raise MemoryError(
                    f"Several workers were lost while they computed on embedding {name!r}. With a "
                    "cache, finished embeddings are kept. Give the workers more memory and repeat "
                    "the call."
                ) from None
            except CancelledError:
                raise ConnectionError(
                    "The Dask scheduler went away after "
                    f"{len(spaces) - len(futures) - 1} of {len(spaces)} embeddings. With a cache, "
                    "finished embeddings are kept. Start it again and repeat the call."
                ) from None
            except (ValueError, TypeError, OSError) as error:
                raise named(error, name) from error
            # Released, or the scheduler would compute it again if its worker were lost later.
            future.release()
            yield name, result
    finally:
        client.cancel(list(futures))


def _kept(shared: tuple[Any, ...]) -> tuple[Any, ...]:
    return shared


def _on_space(
    part: Part, function: Callable[..., Any], shared: tuple[Any, ...], own: tuple[Any, ...]
) -> Any:
    return function(part.open(), *shared, *own)
