"""Sweeps as Optuna studies: settings drawn at random, or towards an objective."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wellsep._files.replace import is_running
from wellsep._text.sentences import need
from wellsep.deep.sweeps.trial import Trial, TrialJob, run_trials

STUDY = "wellsep-sweep"  # and the settings of all its trials, shortened


def run_study(
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
