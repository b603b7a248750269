"""One trial of a sweep: its name, its training, its record; several at a time in processes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from wellsep._files.arrays import digest, to_json
from wellsep.deep.sweeps.claims import claimed
from wellsep.runs.folder import read_run_folder
from wellsep.runs.folder_names import safe_name
from wellsep.runs.folder_places import set_aside

_PAUSE = 0.5  # seconds between looks at a trial that another process trains
JOURNAL = "sweep.jsonl"


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


def trial_name(method: str, settings: Mapping[str, Any]) -> str:
    """The run's name: method, number of clusters, then its settings in order of their names.

    Examples
    --------
    >>> trial_name("IDEC", {"n_clusters": 10, "learning_rate": 0.001, "balance": 1})
    'IDEC,K=10,balance=1,learning_rate=0.001'
    """
    others = sorted(key for key in settings if key != "n_clusters")
    clusters = [f"K={settings['n_clusters']}"] if "n_clusters" in settings else []
    return ",".join([method, *clusters, *(f"{key}={_short(settings[key])}" for key in others)])


def _short(value: Any) -> str:
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


class TrialJob:
    """What every trial needs; travels to the worker processes once."""

    def __init__(
        self,
        estimator: Any,
        X: np.ndarray,
        folder: Path,
        ids: Any,
        objective: Any,
        fixed: Mapping[str, Any],
    ) -> None:
        self.estimator = clone(estimator).set_params(**fixed)
        self.fixed = dict(fixed)
        self.X = X
        self.folder = folder
        self.ids = ids
        self.objective = objective
        self.data = digest(X)
        self.wait = False  # for a trial that another process trains

    def name_of(self, params: Mapping[str, Any]) -> str:
        """The name of a trial: method, K, and what was set."""
        clusters = getattr(self.estimator, "n_clusters", None)
        known = {} if clusters is None else {"n_clusters": clusters}
        return trial_name(type(self.estimator).__name__, {**known, **self.fixed, **params})

    def settings_of(self, params: Mapping[str, Any]) -> str:
        """A digest of all settings of a trial, device included, and of the data."""
        model = clone(self.estimator).set_params(**params)._plain_params()
        model.pop("checkpoint_dir", None)  # where, not what; machines may share a study
        facts = {"method": type(self.estimator).__name__, "data": self.data, "settings": model}
        text = json.dumps(to_json(facts, nan="text", other=str), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def is_done(self, params: Mapping[str, Any]) -> bool:
        """Whether the run exists; one of the same name from other settings is refused."""
        name = self.name_of(params)
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
        name = self.name_of(params)
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
        entry = to_json(vars(trial), nan="null", other=str)
        entry |= {"params": params, "settings": self.settings_of(trial.params)}
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


def run_trials(
    job: TrialJob,
    settings: Sequence[Mapping[str, Any]],
    n_jobs: int,
    on_start: Callable[[str], None] | None = None,
) -> Any:
    """Trials as they end: one after another here, or several at a time in fresh processes.

    The processes end with this one, and when it is interrupted: each watches a pipe whose other
    end is here. What they are writing then is removed by the next writer.
    """
    names = iter([job.name_of(params) for params in settings])

    def begin(count: int = 1) -> None:  # processes take trials in their order
        for name in itertools.islice(names, count):
            if on_start is not None:
                on_start(name)

    if n_jobs == 1 or len(settings) < 2:
        for params in settings:
            begin()
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
        begin(n_jobs)
        for future in as_completed(waiting):
            try:
                trial = future.result()
            except Exception as error:  # the process died, of memory for example
                params = waiting[future]
                trial = Trial(job.name_of(params), dict(params), "failed", 0.0, repr(error))
                job.record(trial)
            begin()
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
