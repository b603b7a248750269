"""One trial of a sweep: its name, its training, its record; several at a time in processes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone

from wellsep._files.arrays import digest, to_json
from wellsep._files.replace import locked, try_lock
from wellsep.cluster.worker_processes import ending_with_parent
from wellsep.runs.folder import read_run_folder, set_aside
from wellsep.runs.folder_names import safe_name

_PAUSE = 0.5  # seconds between looks at a trial that another process trains
_IDLE = 5.0  # seconds after which a process without a trial ends
_CLAIM = ".claim"
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


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Claim a trial inside this block; gives False if another process has it.

    A claim is a lock on a file of its own. The system gives it back when its process ends, however
    it ends. Where the file system has no locks, every process has every trial.
    """
    with locked(path.parent):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        mine = try_lock(handle)
    try:
        yield mine
    finally:
        if mine:
            with locked(path.parent):  # or another could lock the removed file
                path.unlink(missing_ok=True)
        os.close(handle)


def drop_dead_claims(folder: Path) -> None:
    """Remove the files of claims whose processes have ended."""
    for path in folder.glob(f".*{_CLAIM}"):
        with claimed(path):
            pass


@dataclass
class TrialJob:
    """What every trial needs; travels to the worker processes."""

    estimator: Any
    X: np.ndarray
    folder: Path
    ids: Any
    objective: Any
    fixed: Mapping[str, Any]  # settings of all trials
    wait: bool = False  # for a trial that another process trains

    def __post_init__(self) -> None:
        self.estimator = self.model_of(self.fixed)
        self.data = digest(self.X)

    def model_of(self, params: Mapping[str, Any]) -> Any:
        """The estimator to fit in a trial."""
        return clone(self.estimator).set_params(**params)

    def name_of(self, params: Mapping[str, Any]) -> str:
        """The name of a trial: method, K, and what was set."""
        clusters = getattr(self.estimator, "n_clusters", None)
        known = {} if clusters is None else {"n_clusters": clusters}
        return trial_name(type(self.estimator).__name__, {**known, **self.fixed, **params})

    def settings_of(self, params: Mapping[str, Any]) -> str:
        """A digest of all settings of a trial, device included, and of the data."""
        model = self.model_of(params)._plain_params()
        model.pop("checkpoint_dir", None)  # where, not what; machines may share a study
        facts = {"method": type(self.estimator).__name__, "data": self.data, "settings": model}
        text = json.dumps(to_json(facts, nan="text", other=str), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def kept(self, params: Mapping[str, Any]) -> Trial | None:
        """The trial if its run exists; one of the same name from other settings is refused."""
        name = self.name_of(params)
        run = self.folder / safe_name(name)
        if not (run / "run.json").is_file():
            return None
        try:
            found = read_run_folder(run)
        except (ValueError, TypeError, FileNotFoundError) as error:
            set_aside(run, f"{error} The trial is trained again.")
            return None
        wanted = self.model_of(params)._run_params()
        known = {**found.params, "data": found.metadata.get("data")}
        differing = [
            key for key, value in (wanted | {"data": self.data}).items() if known.get(key) != value
        ]
        if differing:
            raise ValueError(
                f"out must hold runs of the same estimator and data, got {name!r} with another "
                f"{', '.join(differing)}; choose another folder."
            )
        value = found.metadata.get("value")
        if self.objective is not None and value is None:
            raise ValueError(
                f"out must hold runs whose objective is known, got {name!r} of a sweep without "
                "one; choose another folder."
            )
        return Trial(name, dict(params), "kept", value=value)

    def run(self, params: Mapping[str, Any]) -> Trial:
        """Fit one setting and save it, unless another process does; an error becomes a record."""
        name = self.name_of(params)
        while True:
            with claimed(self.folder / f".{safe_name(name)}{_CLAIM}") as mine:
                if mine:  # another process may have trained it since this sweep began
                    return self.kept(params) or self._train(name, dict(params))
            if not self.wait:
                return Trial(name, dict(params), "running")
            time.sleep(_PAUSE)

    def _train(self, name: str, params: dict[str, Any]) -> Trial:
        start = time.perf_counter()
        value = None
        try:
            model = self.model_of(params)
            if model.checkpoint_dir is not None:
                model.set_params(checkpoint_dir=Path(model.checkpoint_dir) / safe_name(name))
            model.fit(self.X)
            metadata: dict[str, Any] = {"data": self.data}
            if self.objective is not None:
                value = metadata["value"] = float(self.objective(model, self.X))
            model.save_run(self.folder, name=name, ids=self.ids, metadata=metadata)
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
        line = f"{json.dumps(entry | {'params': params})}\n".encode()
        journal = self.folder / JOURNAL
        try:
            with open(journal, "ab+", buffering=0) as stream:
                stream.seek(max(0, stream.tell() - 1))
                if stream.read(1) not in (b"", b"\n"):  # cut short by a full disk
                    line = b"\n" + line
                if stream.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            if journal.exists() and not journal.stat().st_size:
                journal.unlink()
            raise OSError(
                error.errno,
                f"Writing {journal} failed: {error.strerror}. Finished runs are kept. "
                "Free space, then repeat the call.",
            ) from error


def run_trials(
    job: TrialJob,
    settings: Sequence[Mapping[str, Any]],
    n_jobs: int,
    on_start: Callable[[str], Any],
) -> Iterator[Trial]:
    """Trials as they end: one after another here, or several at a time in processes of joblib."""
    waiting = {job.name_of(params): dict(params) for params in settings}
    names = iter(list(waiting))

    def begin(count: int = 1) -> None:  # processes take trials in their order
        for name in itertools.islice(names, count):
            on_start(name)

    if n_jobs == 1 or len(settings) < 2:
        for params in settings:
            begin()
            yield job.run(params)
        return
    # Processes share the cores, so each has one thread. They keep memory of the device while idle.
    # They end with this one, and when it is interrupted; the next writer removes what they leave.
    with parallel_config("loky", inner_max_num_threads=1, idle_worker_timeout=_IDLE):
        workers = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
    run = ending_with_parent(partial(_run_in_worker, os.getpid(), job))
    with _without_interrupts():
        trials = workers(delayed(run)(params) for params in settings)
    begin(n_jobs)
    try:
        for trial in trials:
            del waiting[trial.name]
            begin()
            yield trial
    except BrokenProcessPool as error:  # a process died, of memory for example
        for name, params in waiting.items():
            trial = Trial(name, params, "failed", 0.0, repr(error))
            job.record(trial)
            yield trial


def _run_in_worker(parent: int, job: TrialJob, params: Mapping[str, Any]) -> Trial:
    if parent not in (os.getpid(), os.getppid()):  # it ended while this process started
        os._exit(1)
    return job.run(params)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach; it reaches this one after the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # joblib would start it in the block, which lets signals in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
