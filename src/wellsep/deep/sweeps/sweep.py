"""Many trainings: a grid or an Optuna study, each trial is written as a run when it ends."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wellsep._checks.arrays import check_count, check_finite_objects, to_numpy, to_table
from wellsep._checks.values import check_function, check_mapping, check_path, check_text
from wellsep._files.replace import is_running
from wellsep._text.sentences import meant, need, need_pandas, shown
from wellsep.deep.sweeps.trial import Trial, TrialJob, drop_dead_claims, run_trials

STUDY = "wellsep-sweep"  # and the settings of all its trials, shortened


@dataclass(frozen=True)
class Sweep:
    """All trials of a sweep; the runs lie in `folder` for `wellsep.load_runs`."""

    folder: Path
    trials: tuple[Trial, ...] = ()

    @property
    def failed(self) -> tuple[Trial, ...]:
        """Trials that raised an error."""
        return tuple(t for t in self.trials if t.status == "failed")

    def to_frame(self) -> Any:
        """The trials as a pandas frame, a column per parameter."""
        return need_pandas(instead=".trials").DataFrame(
            [
                {"name": t.name, **t.params, "status": t.status, "seconds": t.seconds}
                | {"value": t.value, "error": t.error}
                for t in self.trials
            ]
        )


def sweep(
    estimator: Any,
    X: Any,
    grid: Mapping[str, Sequence[Any]],
    *,
    out: Any,
    n_trials: int | None = None,
    objective: Callable[[Any, Any], float] | None = None,
    storage: str | None = None,
    n_jobs: int = 1,
    ids: Any = None,
    fixed: Mapping[str, Any] | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    on_start: Callable[[str], None] | None = None,
) -> Sweep:
    """Fit an estimator under many settings and write each result as a run.

    A trial is saved by `wellsep.save_run` when it ends, under a name that lists method, number of
    clusters and settings, so that several methods may share a folder. One that raises is recorded
    with its error in ``sweep.jsonl`` next to the runs. A repeated call with the same folder skips
    finished trials and trains the others, also those that failed. A second call at the same time
    takes those that nobody trains. A damaged run is set aside and trained again. `wellsep rank`
    then ranks them.

    Parameters
    ----------
    estimator : DeepClusterer
        Cloned for each trial.
    X : array
        Data, see `DeepKMeans.fit`.
    grid : dict
        Lists of values to try for each parameter. A tuple, ``(low, high)`` or
        ``(low, high, "log")``, is a range that a study draws from.
    out : path
        Folder of runs.
    n_trials : int, optional
        Number of ended trials of an Optuna study, which draws the settings. Without it all
        combinations are trained.
    objective : callable, optional
        Value a study maximises, given the fitted estimator and X. Without it settings are drawn
        at random, which suits a later ranking best.
    storage : str, optional
        URL of the study's storage; by default SQLite in `out`. With PostgreSQL many machines may
        work on one study. Refused without `n_trials`.
    n_jobs : int
        Trainings at a time, each in a process of its own; they share the device. On an NVIDIA GPU
        processes take turns unless its multi-process service runs (start it by
        ``nvidia-cuda-mps-control -d``).
    ids : array, optional
        Names of the objects, kept with each run.
    fixed : dict, optional
        Settings of all trials that are part of their names. Those of `estimator` are not.
    on_trial : callable, optional
        Told about each trial when it ends, and first about those that had ended before.
    on_start : callable, optional
        Told the name of each trial when its training begins.

    Returns
    -------
    Sweep
        The trials in order of the grid, or as the study drew them.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from wellsep.deep import DeepKMeans
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = DeepKMeans(2, pretrain_epochs=1, epochs=1, device="cpu", random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = sweep(model, X, {"kmeans_weight": [0.1, 1.0]}, out=folder)
    >>> [(trial.name, trial.status) for trial in result.trials]
    [('DeepKMeans,K=2,kmeans_weight=0.1', 'done'), ('DeepKMeans,K=2,kmeans_weight=1', 'done')]
    """
    check_count("n_jobs", n_jobs)
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must be a deep clusterer, got {shown(estimator)}.")
    check_mapping("grid", grid)
    _check_grid(estimator, grid)
    fixed = {} if fixed is None else fixed
    check_mapping("fixed", fixed)
    _check_grid(estimator, {name: [value] for name, value in fixed.items()}, "fixed")
    if n_trials is not None:
        check_count("n_trials", n_trials)
    for name, values in grid.items() if n_trials is None else ():
        if isinstance(values, tuple):
            raise ValueError(
                f"grid must list the values of {name}, got the range {values!r}; only studies "
                "draw from ranges (n_trials)."
            )
    check_function("objective", objective)
    check_function("on_trial", on_trial)
    check_function("on_start", on_start)
    if storage is not None:
        check_text("storage", storage)
        if n_trials is None:
            raise ValueError(
                f"storage must be left out without a study (n_trials), got {storage!r}; all "
                "combinations are trained then, and their runs lie in the folder."
            )
    array = to_table(X)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"X must be numeric, got an array of type {array.dtype}.")
    if array.size:
        check_finite_objects(array)
    called = None if ids is None else to_numpy(ids, "ids")
    if called is not None and called.shape != (len(array),):
        raise ValueError(
            f"ids must have one entry per object ({len(array)}), got shape {called.shape}."
        )
    folder = check_path("out", out)
    folder.mkdir(parents=True, exist_ok=True)
    drop_dead_claims(folder)
    job = TrialJob(estimator, array, folder, called, objective, fixed)
    told: tuple[int, Any, Any] = (n_jobs, on_trial or _nothing, on_start or _nothing)
    if n_trials is not None:
        return Sweep(folder, _run_study(job, grid, n_trials, storage, *told))
    settings = [
        dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
    ]
    return Sweep(folder, _run_grid(job, settings, *told))


def _nothing(told: Any) -> None:
    """What is called where nobody asked to be told."""


def _check_grid(estimator: Any, grid: Mapping[str, Sequence[Any]], called: str = "grid") -> None:
    known = estimator.get_params()
    for name, values in grid.items():
        if name not in known:
            raise ValueError(
                f"{called} must name parameters of {type(estimator).__name__}: "
                f"{', '.join(sorted(known))}; got {shown(name)}{meant(name, known)}"
            )
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise ValueError(f"grid must give {name} a list of values, got {shown(values)}.")


def _run_grid(
    job: TrialJob,
    settings: Sequence[Mapping[str, Any]],
    n_jobs: int,
    on_trial: Callable[[Trial], Any],
    on_start: Callable[[str], Any],
) -> tuple[Trial, ...]:
    todo = {job.name_of(params): params for params in settings}
    trials = {name: trial for name, params in todo.items() if (trial := job.kept(params))}
    todo = {name: params for name, params in todo.items() if name not in trials}
    for trial in trials.values():
        on_trial(trial)
    for last_round in (False, True):
        for trial in run_trials(job, list(todo.values()), n_jobs, on_start):
            trials[trial.name] = trial
            if trial.status != "running" or last_round:
                on_trial(trial)
        # What others had is looked at once more: their trial has ended, or their process.
        todo = {name: params for name, params in todo.items() if trials[name].status == "running"}
    return tuple(trials[job.name_of(params)] for params in settings)


def _run_study(
    job: TrialJob,
    grid: Mapping[str, Sequence[Any]],
    n_trials: int,
    storage: str | None,
    n_jobs: int,
    on_trial: Callable[[Trial], Any],
    on_start: Callable[[str], Any],
) -> tuple[Trial, ...]:
    """Ask for settings and tell results until `n_trials` of the study have ended."""
    optuna = need("optuna", "n_trials")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    job.wait = True  # settings that another process trains are told when it is done
    url = storage or f"sqlite:///{job.folder / 'study.db'}"
    # Trials of another call count, if all settings are equal but those drawn.
    study = optuna.create_study(
        study_name=f"{STUDY}-{job.name_of({})}-{job.settings_of({})}",
        storage=url,
        direction="maximize",
        load_if_exists=True,
    )
    # A new seed at each start: a continued study must not draw the same settings again.
    study.sampler = _sampler(optuna, job, len(study.get_trials(deepcopy=False)))
    states = optuna.trial.TrialState
    _take_up_abandoned(study, states)
    for trial in _ended(study, states):
        on_trial(_read(job, trial, states, complete="kept"))
    while (missing := n_trials - len(_ended(study, states))) > 0:
        asked: dict[str, tuple[dict[str, Any], list[Any]]] = {}
        for _ in range(min(missing, n_jobs)):
            trial = study.ask()
            trial.set_user_attr("worker", [socket.gethostname(), os.getpid()])
            params = {name: _suggest(trial, name, values) for name, values in grid.items()}
            asked.setdefault(job.name_of(params), (params, []))[1].append(trial)
        kept = [trial for params, _ in asked.values() if (trial := job.kept(params))]
        done = {trial.name for trial in kept}
        fresh = [params for name, (params, _) in asked.items() if name not in done]
        for result in [*kept, *run_trials(job, fresh, n_jobs, on_start)]:
            for trial in asked[result.name][1]:
                _tell(study, trial, result, states)
            on_trial(result)
    trials = study.get_trials(deepcopy=False)
    counted = [trial for trial in trials if "abandoned" not in trial.user_attrs]
    return tuple(_read(job, trial, states) for trial in counted)


def _sampler(optuna: Any, job: TrialJob, begun: int) -> Any:
    seed = job.estimator.random_state
    seed = seed + begun if isinstance(seed, int) else None
    if job.objective is None:
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed)


def _suggest(trial: Any, name: str, values: Sequence[Any]) -> Any:
    if not isinstance(values, tuple):
        return trial.suggest_categorical(name, list(values))
    low, high, *rest = values
    log = rest == ["log"]
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=log)
    return trial.suggest_float(name, float(low), float(high), log=log)


def _ended(study: Any, states: Any) -> list[Any]:
    trials = study.get_trials(deepcopy=False, states=(states.COMPLETE, states.FAIL))
    return [trial for trial in trials if "abandoned" not in trial.user_attrs]


def _take_up_abandoned(study: Any, states: Any) -> None:
    """Trials that a process of this machine left unfinished: ended, and their settings queued."""
    for trial in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
        host, process = trial.user_attrs.get("worker", (None, None))
        if host != socket.gethostname() or is_running(process):
            continue
        study._storage.set_trial_user_attr(trial._trial_id, "abandoned", True)
        study.tell(trial.number, state=states.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)


def _tell(study: Any, trial: Any, result: Trial, states: Any) -> None:
    trial.set_user_attr("run", result.name)
    trial.set_user_attr("seconds", result.seconds)
    if result.status == "failed":
        trial.set_user_attr("error", result.error)
        study.tell(trial, state=states.FAIL)
    else:
        study.tell(trial, 0.0 if result.value is None else result.value)


def _read(job: TrialJob, trial: Any, states: Any, complete: str = "done") -> Trial:
    attributes = trial.user_attrs
    status = {states.COMPLETE: complete, states.FAIL: "failed"}.get(trial.state, "running")
    return Trial(
        attributes.get("run", job.name_of(trial.params)),
        dict(trial.params),
        status,
        attributes.get("seconds", 0.0),
        attributes.get("error"),
        trial.value if trial.state == states.COMPLETE else None,
    )
