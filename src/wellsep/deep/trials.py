"""Many trainings: a grid or an Optuna study, each trial is written as a run when it ends."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from wellsep._arguments import check_flag, check_function, check_mapping, check_path, check_text
from wellsep._checks import (
    check_choice,
    check_count,
    to_numpy,
    to_table,
)
from wellsep._display import shown
from wellsep._files import digest, to_json
from wellsep.deep.claims import claimed, drop_dead_claims
from wellsep.runs.folder import read_run_folder
from wellsep.runs.names import safe_name
from wellsep.runs.places import set_aside

_PAUSE = 0.5  # seconds between looks at a trial that another process trains
JOURNAL = "sweep.jsonl"
SAMPLERS = ("grid", "optuna")


@dataclass(frozen=True)
class Trial:
    """One setting and how its training ended."""

    name: str
    params: dict[str, Any]
    # "done", "failed", "kept" (it was there already) or "running" (another process trains it)
    status: str
    seconds: float = 0.0
    error: str | None = None
    value: float | None = None


@dataclass(frozen=True)
class Sweep:
    """All trials of a sweep; the runs lie in `folder` for `wellsep.load_runs`."""

    folder: Path
    trials: tuple[Trial, ...] = field(default_factory=tuple)

    @property
    def failed(self) -> tuple[Trial, ...]:
        """Trials that raised an error."""
        return tuple(t for t in self.trials if t.status == "failed")

    def to_frame(self) -> Any:
        """The trials as a pandas frame, a column per parameter."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"name": t.name, **t.params, "status": t.status, "seconds": t.seconds}
                | {"value": t.value, "error": t.error}
                for t in self.trials
            ]
        )


def trial_name(params: Mapping[str, Any]) -> str:
    """The run's name: its settings in order of their names.

    Examples
    --------
    >>> trial_name({"learning_rate": 0.001, "balance": 1})
    'balance=1,learning_rate=0.001'
    """
    return ",".join(f"{key}={_short(params[key])}" for key in sorted(params)) or "default"


def _short(value: Any) -> str:
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


def sweep(
    estimator: Any,
    X: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    out: Any,
    sampler: str = "grid",
    n_trials: int | None = None,
    objective: Callable[[Any, Any], float] | None = None,
    storage: str | None = None,
    n_jobs: int = 1,
    ids: Any = None,
    retry_failed: bool = False,
    on_trial: Callable[[Trial], None] | None = None,
) -> Sweep:
    """Fit an estimator under many settings and write each result as a run.

    A trial is saved by `wellsep.save_run` when it ends, under a name that lists its settings. One
    that raises is recorded with its error in ``sweep.jsonl`` next to the runs. A repeated call
    with the same folder skips finished trials; a second call at the same time takes those that
    nobody trains. A damaged run is set aside and trained again. `wellsep rank` then ranks them.

    Parameters
    ----------
    estimator : DeepClusterer
        Cloned for each trial.
    X : array
        Data, see `DeepKMeans.fit`.
    grid : dict
        Values to try for each parameter. For Optuna a pair of numbers as a tuple,
        ``(low, high)`` or ``(low, high, "log")``, is a range; a list is a choice.
    out : path
        Folder of runs.
    sampler : {"grid", "optuna"}
        All combinations, or an Optuna study.
    n_trials : int, optional
        Number of finished trials after which a study ends; required for Optuna.
    objective : callable, optional
        Value a study maximises, given the fitted estimator and X. Without it settings are drawn
        at random, which suits a later ranking best.
    storage : str, optional
        URL of the study's storage; by default SQLite in `out`. With PostgreSQL many machines may
        work on one study.
    n_jobs : int
        Trainings at a time, each in a process of its own; they share the device. On an NVIDIA GPU
        processes take turns unless its multi-process service runs (start it by
        ``nvidia-cuda-mps-control -d``).
    ids : array, optional
        Names of the objects, kept with each run.
    retry_failed : bool
        Whether trials recorded as failed are tried again.
    on_trial : callable, optional
        Told about each trial when it ends.

    Returns
    -------
    Sweep
        The trials in order of the grid, or as the study drew them.

    Examples
    --------
    >>> import tempfile
    >>> from wellsep.deep import DeepKMeans
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = DeepKMeans(2, pretrain_epochs=1, epochs=1, device="cpu", random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = sweep(model, X, {"kmeans_weight": [0.1, 1.0]}, out=folder)
    >>> [(trial.name, trial.status) for trial in result.trials]
    [('kmeans_weight=0.1', 'done'), ('kmeans_weight=1', 'done')]
    """
    check_choice("sampler", sampler, SAMPLERS)
    check_count("n_jobs", n_jobs)
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must be a deep clusterer, got {shown(estimator)}.")
    check_mapping("grid", grid)
    _check_grid(estimator, grid)
    check_flag("retry_failed", retry_failed)
    check_function("objective", objective)
    check_function("on_trial", on_trial)
    if storage is not None:
        check_text("storage", storage)
    if n_trials is not None:
        check_count("n_trials", n_trials)
    array = to_table(X)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"X must be numeric, got an array of type {array.dtype}.")
    called = None if ids is None else to_numpy(ids, "ids")
    if called is not None and called.shape != (len(array),):
        raise ValueError(
            f"ids must have one entry per object ({len(array)}), got shape {called.shape}."
        )
    folder = check_path("out", out)
    folder.mkdir(parents=True, exist_ok=True)
    drop_dead_claims(folder)
    job = TrialJob(estimator, array, folder, called, objective)
    if sampler == "optuna":
        from wellsep.deep.study import run_study

        count = check_count("n_trials", n_trials)
        trials = run_study(job, grid, count, storage=storage, n_jobs=n_jobs, on_trial=on_trial)
        return Sweep(folder, tuple(trials))
    settings = [
        dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
    ]
    return Sweep(folder, tuple(_run_grid(job, settings, n_jobs, retry_failed, on_trial)))


def _check_grid(estimator: Any, grid: Mapping[str, Sequence[Any]]) -> None:
    known = estimator.get_params()
    for name, values in grid.items():
        if name not in known:
            raise ValueError(
                f"grid must name parameters of {type(estimator).__name__}, got {shown(name)}; "
                f"there are {', '.join(sorted(known))}."
            )
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise ValueError(f"grid must give {name} a list of values, got {shown(values)}.")


class TrialJob:
    """What every trial needs; travels to the worker processes once."""

    def __init__(
        self, estimator: Any, X: np.ndarray, folder: Path, ids: Any, objective: Any
    ) -> None:
        self.estimator = estimator
        self.X = X
        self.folder = folder
        self.ids = ids
        self.objective = objective
        self.data = digest(X)
        self.wait = False  # for a trial that another process trains

    def is_done(self, params: Mapping[str, Any]) -> bool:
        """Whether the run exists; one of the same name from other settings is refused."""
        name = trial_name(params)
        run = self.folder / safe_name(name)
        if not (run / "run.json").is_file():
            return False
        try:
            found = read_run_folder(run)
        except (ValueError, TypeError, FileNotFoundError) as error:
            set_aside(run, f"{error} The trial is trained again.")
            return False
        wanted = clone(self.estimator).set_params(**params)._run_params()
        known = {**found.params, "data": found.metadata.get("data")}
        differing = [
            key for key, value in (wanted | {"data": self.data}).items() if known.get(key) != value
        ]
        if differing:
            raise ValueError(
                f"out must hold runs of the same estimator and data, got {name!r} with another "
                f"{', '.join(differing)}; choose another folder."
            )
        return True

    def run(self, params: Mapping[str, Any]) -> Trial:
        """Fit one setting and save it, unless another process does; an error becomes a record."""
        name = trial_name(params)
        while True:
            with claimed(self.folder, name) as mine:
                if mine:
                    if self.is_done(params):  # by another process, since this sweep began
                        return Trial(name, dict(params), "kept")
                    return self._train(name, dict(params))
            if not self.wait:
                return Trial(name, dict(params), "running")
            time.sleep(_PAUSE)

    def _train(self, name: str, params: dict[str, Any]) -> Trial:
        start = time.perf_counter()
        value = None
        try:
            model = clone(self.estimator).set_params(**params)
            if model.checkpoint_dir is not None:
                model.set_params(checkpoint_dir=Path(model.checkpoint_dir) / safe_name(name))
            model.fit(self.X)
            if self.objective is not None:
                value = float(self.objective(model, self.X))
            model.save_run(self.folder, name=name, ids=self.ids, metadata={"data": self.data})
        except Exception as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            trial = Trial(name, params, "failed", time.perf_counter() - start, text)
        else:
            trial = Trial(name, params, "done", time.perf_counter() - start, value=value)
        self.record(trial)
        return trial

    def record(self, trial: Trial) -> None:
        """One line in the journal, in one write, so that processes do not mix theirs."""
        params = to_json(trial.params, nan="text", other=str)
        entry = to_json(vars(trial), nan="null", other=str) | {"params": params}
        line = f"{json.dumps(entry)}\n".encode()
        journal = self.folder / JOURNAL
        try:
            handle = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                size = os.fstat(handle).st_size
                os.lseek(handle, max(0, size - 1), os.SEEK_SET)
                if size and os.read(handle, 1) != b"\n":  # cut short by a full disk
                    line = b"\n" + line
                if os.write(handle, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(handle)
        except OSError as error:
            raise OSError(
                error.errno,
                f"Writing {journal} failed: {error.strerror}. Finished runs are kept. "
                "Free space, then repeat the call.",
            ) from error

    def recorded(self) -> dict[str, dict[str, Any]]:
        """The last record of each trial."""
        journal = self.folder / JOURNAL
        if not journal.exists():
            return {}
        found = {}
        for line in journal.read_bytes().splitlines():
            with contextlib.suppress(ValueError, RecursionError):  # cut short by a full disk
                entry = json.loads(line)
                if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                    found[entry["name"]] = entry
        return found


def _run_grid(
    job: TrialJob,
    settings: Sequence[Mapping[str, Any]],
    n_jobs: int,
    retry_failed: bool,
    on_trial: Callable[[Trial], None] | None,
) -> list[Trial]:
    recorded = job.recorded()
    trials: dict[str, Trial] = {}
    todo: dict[str, Mapping[str, Any]] = {}
    for params in settings:
        name = trial_name(params)
        last = recorded.get(name, {})
        if job.is_done(params):
            trials[name] = Trial(name, dict(params), "kept", last.get("seconds", 0.0))
        elif last.get("status") == "failed" and not retry_failed:
            trials[name] = Trial(
                name, dict(params), "failed", last.get("seconds", 0.0), last.get("error")
            )
        else:
            todo[name] = params
    for last_round in (False, True):
        for trial in run_trials(job, list(todo.values()), n_jobs):
            trials[trial.name] = trial
            if on_trial is not None and (trial.status != "running" or last_round):
                on_trial(trial)
        # What others had is looked at once more: their trial has ended, or their process.
        todo = {name: params for name, params in todo.items() if trials[name].status == "running"}
    return [trials[trial_name(params)] for params in settings]


_worker_job: TrialJob | None = None


def _start_worker(job: TrialJob, parent: Any) -> None:
    global _worker_job
    _worker_job = job
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import torch

    # Processes share the cores; each training gets one, and CUDA work needs no more.
    torch.set_num_threads(1)


def _end_with(parent: Any) -> None:
    """End this process at once when the other end of a pipe is closed, by whatever cause."""
    multiprocessing.connection.wait([parent])
    os._exit(1)


def _run_in_worker(params: Mapping[str, Any]) -> Trial:
    if _worker_job is None:
        raise RuntimeError("the worker was not started with a job")
    return _worker_job.run(params)


def run_trials(job: TrialJob, settings: Sequence[Mapping[str, Any]], n_jobs: int) -> Any:
    """Trials as they end: one after another here, or several at a time in fresh processes.

    The processes end with this one, and when it is interrupted: each watches a pipe whose other
    end is here. What they are writing then is removed by the next writer.
    """
    if n_jobs == 1 or len(settings) < 2:
        for params in settings:
            yield job.run(params)
        return
    # Fresh processes: CUDA does not survive a fork.
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        min(n_jobs, len(settings)), context, initializer=_start_worker, initargs=(job, theirs)
    )
    try:
        with _without_interrupts():
            waiting = {pool.submit(_run_in_worker, params): params for params in settings}
        for future in as_completed(waiting):
            try:
                yield future.result()
            except Exception as error:  # the process died, of memory for example
                params = waiting[future]
                trial = Trial(trial_name(params), dict(params), "failed", 0.0, repr(error))
                job.record(trial)
                yield trial
    except BaseException:
        # One that still imports torch does not watch the pipe yet.
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)
        theirs.close()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach; it reaches this one after the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
