"""Runs from Optuna: trials that point at run folders or carry artifacts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wellsep._checks.values import check_names, check_path, check_text
from wellsep._files.arrays import stored_npy
from wellsep._files.limits import inside
from wellsep._text.sentences import quoted, shown
from wellsep.adapters.stores import require, scratch_folder, sqlite_file
from wellsep.runs import NoRuns, Run, Runs, save_run
from wellsep.runs.folder import FILES, read_run_folder, write_run_files
from wellsep.runs.folder_names import safe_name

ATTRIBUTE = "wellsep_run"


def runs_from_optuna(
    study: Any,
    name: str | None = None,
    *,
    artifacts: Any = None,
    states: Iterable[str] = ("COMPLETE",),
    cache: str | os.PathLike[str] | None = None,
) -> Runs:
    """Load the runs that the trials of an Optuna study left, called trial-0, trial-1, …

    A trial leaves a run with `attach_run`, or by hand: a user attribute ``wellsep_run`` with the
    path of a run folder, or uploaded artifacts called ``labels.npy`` and ``embedding.npy``.

    Parameters
    ----------
    study : Study, storage or str
        A study, or the storage or its URL (``sqlite:///study.db``), or a journal file.
    name : str, optional
        Name of the study in the storage; may be left out when there is only one.
    artifacts : path or artifact store, optional
        Where the artifacts, or run folders with relative paths, are. Files in a folder are
        memory-mapped, what another store holds is downloaded first.
    states : iterable of str
        Only trials in these states.
    cache : path, optional
        Folder for downloads, used again the next time; by default a temporary one.

    Returns
    -------
    Runs
        Params of the trials as params; values, number, study and user attributes as metadata.

    Examples
    --------
    >>> import optuna, tempfile
    >>> from wellsep.adapters import attach_run, runs_from_optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> folder = tempfile.TemporaryDirectory()
    >>> def objective(trial):
    ...     k = trial.suggest_int("k", 2, 4)
    ...     attach_run(trial, None, [i % k for i in range(12)], folder=folder.name)
    ...     return k
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    >>> study.optimize(objective, n_trials=2)
    >>> runs = runs_from_optuna(study)
    >>> runs.names, runs.params["trial-1"] == study.trials[1].params
    (('trial-0', 'trial-1'), True)
    """
    require("optuna")
    if name is not None:
        check_text("name", name)
    states = check_names("states", states)
    if cache is not None:
        check_path("cache", cache)
    opened = _study(study, name)
    runs, passed = [], 0
    for trial in opened.get_trials(deepcopy=False):
        run = _read(opened, trial, artifacts, cache) if trial.state.name in states else None
        if run is None:
            passed += 1
        else:
            runs.append(run)
    if not runs:
        raise NoRuns(
            f"study {opened.study_name!r} must have trials with a run, got {passed} without; "
            "attach runs with wellsep.adapters.attach_run."
        )
    return Runs(tuple(runs))


def attach_run(
    trial: Any,
    embedding: Any,
    labels: Any = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    artifact_store: Any = None,
    metadata: Any = None,
    ids: Any = None,
) -> None:
    """Save embedding and labels of a trial so that `runs_from_optuna` finds them.

    Parameters
    ----------
    trial : optuna.Trial
        The trial inside its objective.
    embedding : array-like of shape (n_objects, n_features) or None
        The space in which the clustering was made.
    labels : array-like of shape (n_objects,) or None
        The clustering.
    metadata : mapping, optional
        JSON data, such as the version of a program.
    ids : array-like of shape (n_objects,), optional
        Names of the objects; compared between runs when they are loaded.
    folder : path, optional
        Save a run folder here, under a folder of the study's name (so that ``load_runs`` reads
        that too), and note its place in the user attribute ``wellsep_run``.
    artifact_store : optuna artifact store, optional
        Upload the arrays there instead.
    """
    if (folder is None) == (artifact_store is None):
        raise ValueError(
            "folder or artifact_store must be given, and not both, got "
            f"folder={shown(folder)}, artifact_store={shown(artifact_store)}."
        )
    if not all(hasattr(trial, fact) for fact in ("number", "params")):
        raise TypeError(f"trial must be an Optuna trial, got {shown(trial)}.")
    called = f"trial-{trial.number}"
    given = {"params": trial.params, "metadata": metadata, "ids": ids}
    if folder is not None:
        folder = check_path("folder", folder)
        parent = folder / safe_name(trial.study.study_name)
        place = save_run(parent, embedding, labels, name=called, overwrite=True, **given)
        relative = place.relative_to(folder).as_posix()
        trial.set_user_attr(ATTRIBUTE, {"folder": str(place.resolve()), "relative": relative})
        return
    upload = require("optuna.artifacts").upload_artifact
    with tempfile.TemporaryDirectory() as scratch:
        write_run_files(Path(scratch), Run(called, embedding, labels, **given))
        for file in sorted(os.listdir(scratch)):
            path = os.path.join(scratch, file)
            upload(artifact_store=artifact_store, file_path=path, study_or_trial=trial)


def _study(study: Any, name: str | None) -> Any:
    optuna = require("optuna")
    if isinstance(study, optuna.study.Study):
        return study
    storage = study
    if isinstance(study, str | os.PathLike):
        storage = _storage(optuna, str(study))
    elif not isinstance(study, optuna.storages.BaseStorage):
        raise TypeError(
            f"study must be an Optuna study, its storage or a path, got {shown(study)}."
        )
    names = sorted(optuna.get_all_study_names(storage))
    if name is None and len(names) != 1:
        raise ValueError(
            f"name must say which study is meant, got None; there are {quoted(names, 20)}."
        )
    if name is not None and name not in names:
        raise ValueError(f"name must be one of {quoted(names, 20)}, got {name!r}.")
    return optuna.load_study(study_name=name or names[0], storage=storage)


def _storage(optuna: Any, source: str) -> Any:
    if "://" in source:
        sqlite_file(source)
        return source
    if not os.path.isfile(source):
        raise FileNotFoundError(f"study must be a storage URL or a journal file, got {source!r}.")
    backend = optuna.storages.journal.JournalFileBackend(source)
    return optuna.storages.JournalStorage(backend)


def _read(study: Any, trial: Any, artifacts: Any, cache: Any) -> Run | None:
    name = f"trial-{trial.number}"
    noted = trial.user_attrs.get(ATTRIBUTE)
    if noted is not None:
        run = read_run_folder(_noted_folder(noted, artifacts, name), name=name)
    else:
        files = _artifact_files(study, trial, artifacts, cache, name)
        if not files:
            return None
        arrays: dict[str, Any] = {
            kind: stored_npy(path, f"{kind} of run {name!r}") for kind, path in files.items()
        }
        run = Run(name, **arrays)
    others = {k: v for k, v in trial.user_attrs.items() if k != ATTRIBUTE}
    known = {"values": trial.values, "number": trial.number, "study": study.study_name}
    metadata = {**run.metadata, **known, "user_attrs": others}
    return run._with(params=dict(trial.params), metadata=metadata)


def _noted_folder(noted: Any, artifacts: Any, name: str) -> Path:
    """The run folder; what the given folder holds goes before the place it was saved at."""
    noted = {"folder": noted, "relative": noted} if isinstance(noted, str) else noted
    if not isinstance(noted, dict) or not all(isinstance(v, str) for v in noted.values()):
        raise TypeError(f"{ATTRIBUTE} of run {name!r} must be a path, got {noted!r}.")
    places = []
    if isinstance(artifacts, str | os.PathLike) and "relative" in noted:
        relative = noted["relative"]
        if os.path.isabs(relative):  # as attach_run made it
            places.append(Path(relative))
        else:
            places.append(inside(artifacts, relative, f"{ATTRIBUTE} of run {name!r}"))
    places += [Path(noted["folder"])] if "folder" in noted else []
    for place in places:
        if place.is_dir():
            return place
    raise FileNotFoundError(
        f"The folder of run {name!r} was not found at "
        f"{' or '.join(str(place) for place in places)}. Pass artifacts=<the folder it is in now>."
    )


def _artifact_files(
    study: Any, trial: Any, artifacts: Any, cache: Any, name: str
) -> dict[str, Path]:
    tools = require("optuna.artifacts")
    uploaded = tools.get_all_artifact_meta(trial, storage=study._storage)
    kinds = {file: kind for kind, file in FILES.items()}
    wanted = {kinds[m.filename]: m.artifact_id for m in uploaded if m.filename in kinds}
    if not {"labels", "embedding"} & set(wanted):
        return {}
    if artifacts is None:
        raise ValueError(
            f"artifacts must be the folder or artifact store that holds the files of run {name!r}, "
            "got None."
        )
    if isinstance(artifacts, str | os.PathLike):
        what = f"artifact_id of run {name!r}"
        return {kind: inside(artifacts, key, what) for kind, key in wanted.items()}
    target = scratch_folder(cache, f"{safe_name(study.study_name)}-{name}")
    files = {kind: target / f"{safe_name(key)}.npy" for kind, key in wanted.items()}
    for kind, path in files.items():
        if not path.is_file():
            beside = path.with_suffix(".part")
            tools.download_artifact(
                artifact_store=artifacts, artifact_id=wanted[kind], file_path=str(beside)
            )
            os.replace(beside, path)
    return files
