"""Some numbers of clusters, fitted in every repeat, with what every index says on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wellsep.cluster.fitting import Fitted, fit_each, is_tree
from wellsep.cluster.k_choice.criteria import Voter
from wellsep.cluster.k_choice.evidence import (
    NO_GAP,
    GapCurve,
    Sample,
    cut_rows,
    gap_curve,
    mixture_bics,
    strengths,
)
from wellsep.cluster.worker_processes import Progress, in_workers
from wellsep.indices.gap import within_sums
from wellsep.indices.scoring import score_partitions
from wellsep.partitions import Partitions


class Job(NamedTuple):
    """What one call asks for, checked."""

    X: Any
    scored: Any
    model: Any
    parameter: str
    voters: list[Voter]
    rows: list[np.ndarray | None]
    seeds: list[Any]
    weights: np.ndarray | None
    noise: str
    warm: bool
    pairwise: bool
    square_space: bool
    sample: Sample
    gate: bool
    seed: int
    n_jobs: int | None
    progress: Progress | None


class Tried(NamedTuple):
    """Some numbers of clusters, fitted and scored."""

    ks: list[int]
    runs: list[list[Fitted]]  # by repeat and K
    values: np.ndarray  # (R, nK, I)
    at_one: np.ndarray  # (I,)
    n_clusters: np.ndarray  # (R, nK)
    coverage: np.ndarray  # (R, nK)
    reasons: dict[tuple[int, str], str]
    failures: dict[int, str]
    errors: list[Exception]


def gap_of(job: Job, ks: list[int]) -> GapCurve:
    """The gap statistic, where it is asked for and can be computed."""
    if not (job.gate or any(voter.name == "gap" for voter in job.voters)):
        return NO_GAP
    if job.sample.untestable or max(ks) < 2:
        return NO_GAP
    return gap_curve(job.sample, ks, job.seed, job.n_jobs, job.progress)


def try_numbers(job: Job, ks: list[int], gap: GapCurve) -> Tried:
    """Fit some numbers of clusters in every repeat, and compute what the voters say on them."""
    together = job.warm or is_tree(job.model)
    groups = [ks] if together else [[k] for k in ks]
    tasks = [
        (
            job.model,
            job.parameter,
            group,
            cut_rows(job.X, job.rows[r], job.pairwise),
            _of_rows(job.weights, job.rows[r]),
            job.seeds[r],
            job.warm,
        )
        for r in range(len(job.rows))
        for group in groups
    ]
    found = in_workers(fit_each, tasks, job.n_jobs, job.progress, "fits")
    flat = [fitted for group in found for fitted in group]
    fits = [flat[r * len(ks) : (r + 1) * len(ks)] for r in range(len(job.rows))]
    failures: dict[int, str] = {}
    for at, k in enumerate(ks):
        failed = [run[at] for run in fits if isinstance(run[at], Exception)]
        if failed:
            failures[k] = f"{type(failed[0]).__name__}: {failed[0]}"
    kept = [at for at, k in enumerate(ks) if k not in failures]
    ks, runs = [ks[at] for at in kept], [[run[at] for at in kept] for run in fits]
    errors = [one for one in flat if isinstance(one, Exception)]
    values = np.full((len(runs), len(ks), len(job.voters)), np.nan)
    if not ks:
        none, nothing = np.full(len(job.voters), np.nan), np.zeros((len(runs), 0))
        return Tried(ks, runs, values, none, nothing.astype(int), nothing, {}, failures, errors)
    n_clusters, coverage, reasons = _score(job, ks, runs, values)
    at_one = _criteria(job, ks, runs, gap, values, reasons)
    return Tried(ks, runs, values, at_one, n_clusters, coverage, reasons, failures, errors)


def _score(
    job: Job, ks: list[int], runs: list[list[Fitted]], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, dict[tuple[int, str], str]]:
    """Put the scores of validity indices into the table: one pass, or one per subsample."""
    asked = [at for at, voter in enumerate(job.voters) if voter.validity is not None]
    specs = [job.voters[at].spec for at in asked]
    repeats = range(len(runs))
    groups = [list(repeats)] if job.rows[0] is None else [[r] for r in repeats]
    shape = (len(runs), len(ks))
    n_clusters, coverage = np.zeros(shape, dtype=int), np.zeros(shape)
    reasons: dict[tuple[int, str], str] = {}
    for group in groups:
        rows = job.rows[group[0]]
        labels = {f"{r}/{k}": one.labels for r in group for k, one in zip(ks, runs[r], strict=True)}
        partitions = Partitions.from_labels(labels, noise=job.noise)
        n_clusters[group] = partitions.n_clusters.reshape(len(group), -1)
        coverage[group] = partitions.coverage.reshape(len(group), -1)
        if not asked:
            continue
        scores = score_partitions(
            cut_rows(job.scored, rows, job.pairwise and job.square_space),
            labels,
            specs,
            sample_weight=_of_rows(job.weights, rows),
            noise=job.noise,
            n_jobs=job.n_jobs,
        )
        values[np.ix_(group, range(len(ks)), asked)] = scores.values.reshape(
            len(group), len(ks), -1
        )
        for (name, index), why in scores.reasons.items():
            reasons.setdefault((int(name.partition("/")[2]), index), why)
    return n_clusters, coverage, reasons


def _criteria(
    job: Job,
    ks: list[int],
    runs: list[list[Fitted]],
    gap: GapCurve,
    values: np.ndarray,
    reasons: dict[tuple[int, str], str],
) -> np.ndarray:
    """Put the values of the criteria into the table; return those for one cluster."""
    at_one = np.full(len(job.voters), np.nan)
    calling = (job.seed, job.n_jobs, job.progress)
    for position, (name, validity) in enumerate(job.voters):
        if validity is not None:
            continue
        why: dict[int, str] = {}
        if name == "prediction_strength":
            values[0, :, position], why = strengths(job.sample, ks, *calling)
            at_one[position] = 1.0
        elif name == "mixture_bic":
            none = _no_table(job)
            if none:
                why = dict.fromkeys(ks, none)
            else:
                found, why = mixture_bics(job.sample, [1, *ks], *calling)
                at_one[position], values[0, :, position] = found[0], found[1:]
        elif name == "gap":
            known = dict(zip(gap.k.tolist(), gap.gap.tolist(), strict=True))
            values[0, :, position] = [known.get(k, np.nan) for k in ks]
            at_one[position] = known.get(1, np.nan)
            why = {k: job.sample.untestable or "too few objects" for k in ks if k not in known}
        else:
            at_one[position], values[:, :, position], why = _inertias(job, ks, runs)
        reasons.update({(k, name): text for k, text in why.items()})
    return at_one


def _no_table(job: Job) -> str:
    if isinstance(job.sample.table, str):
        return job.sample.table
    return "objects have weights" if job.weights is not None else ""


def _inertias(
    job: Job, ks: list[int], runs: list[list[Fitted]]
) -> tuple[float, np.ndarray, dict[int, str]]:
    """The inertia of one cluster, of each partition of each repeat, and why some have none."""
    values = np.full((len(runs), len(ks)), np.nan)
    if job.pairwise and job.square_space:
        return np.nan, values, dict.fromkeys(ks, "X holds distances, not coordinates")
    totals: list[float] = []
    why: dict[int, str] = {}
    for r, run in enumerate(runs):
        X = cut_rows(job.scored, job.rows[r], False)
        labels = [np.zeros(X.shape[0], dtype=int), *(one.labels for one in run)]
        noisy = [at for at, one in enumerate(run) if (np.asarray(one.labels) < 0).any()]
        why |= {ks[at]: "noise has no inertia" for at in noisy}
        sums = within_sums(X, labels, _of_rows(job.weights, job.rows[r]))
        values[r], total = sums[1:], sums[0]
        values[r, noisy] = np.nan
        totals.append(total)
    return float(np.mean(totals)), values, why


def equal_objects(job: Job, ks: list[int]) -> Tried:
    """Nothing to fit: all objects are equal, and in one cluster whatever K is."""
    shape = (len(job.rows), len(ks))
    sizes = [job.X.shape[0] if rows is None else len(rows) for rows in job.rows]
    one = [[Fitted(None, np.zeros(n, dtype=np.int32), 0.0)] * len(ks) for n in sizes]
    why = "all objects are equal"
    return Tried(
        ks=ks,
        runs=one,
        values=np.full((*shape, len(job.voters)), np.nan),
        at_one=np.full(len(job.voters), np.nan),
        n_clusters=np.ones(shape, dtype=int),
        coverage=np.ones(shape),
        reasons={(k, voter.name): why for k in ks for voter in job.voters},
        failures={},
        errors=[],
    )


def _of_rows(weights: np.ndarray | None, rows: np.ndarray | None) -> np.ndarray | None:
    return weights if weights is None or rows is None else weights[rows]
