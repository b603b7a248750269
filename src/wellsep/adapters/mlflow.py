"""Runs from MLflow: arrays logged as artifacts, with params and metrics."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from wellsep._checks.values import check_names, check_path, check_text
from wellsep._files.arrays import stored_npy
from wellsep._text.sentences import quoted
from wellsep.adapters.stores import check_server, require, scratch_folder, sqlite_file
from wellsep.runs import NoRuns, Run, Runs
from wellsep.runs.folder import FILES, read_manifest, write_run_files
from wellsep.runs.folder_names import safe_name
from wellsep.runs.run import plain_mapping


def runs_from_mlflow(
    tracking_uri: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    *,
    embedding: str = "embedding.npy",
    labels: str = "labels.npy",
    ids: str = "ids.npy",
    states: Iterable[str] = ("FINISHED",),
    cache: str | os.PathLike[str] | None = None,
) -> Runs:
    """Load the runs of an MLflow experiment that have labels or an embedding among their artifacts.

    Parameters
    ----------
    tracking_uri : str or path, optional
        A tracking server, a database (``sqlite:///mlflow.db``) or a folder (``mlruns``). By
        default what MLflow is set to.
    experiment : str, optional
        Its name; may be left out when only one experiment has runs.
    embedding, labels, ids : str
        Paths of the artifacts, plain ``.npy`` files. A run with neither labels nor embedding is
        passed over.
    states : iterable of str
        Only runs in these states; a run that is still going may have half its artifacts.
    cache : path, optional
        Folder for artifacts that come from a remote store, used again the next time. By default
        a temporary one. Local artifacts are memory-mapped where they are.

    Returns
    -------
    Runs
        Params as logged (numbers as numbers); metrics, tags and the run's id in metadata. Names
        that MLflow gave twice get the beginning of the run's id behind them.

    Examples
    --------
    >>> import tempfile
    >>> from wellsep.adapters import log_run, runs_from_mlflow
    >>> folder = tempfile.TemporaryDirectory()
    >>> for k in (2, 3):
    ...     labels = [i % k for i in range(6)]
    ...     _ = log_run(None, labels, tracking_uri=folder.name, name=f"k{k}", params={"k": k})
    >>> runs_from_mlflow(folder.name).params
    {'k2': {'k': 2}, 'k3': {'k': 3}}
    """
    for what, value in (("embedding", embedding), ("labels", labels), ("ids", ids)):
        check_text(what, value)
    if experiment is not None:
        check_text("experiment", experiment)
    states = check_names("states", states)
    if cache is not None:
        check_path("cache", cache)
    client = _client(tracking_uri, reading=True)
    chosen = _experiment(client, experiment)
    found = []
    passed: Counter[str] = Counter()
    for logged in _search(client, chosen.experiment_id):
        if logged.info.status not in states:
            passed[logged.info.status] += 1
            continue
        wanted = {"labels": labels, "embedding": embedding, "ids": ids}
        files = _artifacts(client, logged, wanted, cache)
        if "labels" in files or "embedding" in files:
            found.append((logged, files))
        else:
            passed["without artifacts"] += 1
    if not found:
        seen = ", ".join(f"{n} {why}" for why, n in passed.items()) or "none"
        raise NoRuns(
            f"experiment {chosen.name!r} must have runs with an artifact {labels!r} or "
            f"{embedding!r}, got {seen}."
        )
    names = Counter(logged.info.run_name for logged, _ in found)
    return Runs(
        tuple(_read(logged, files, names[logged.info.run_name] > 1) for logged, files in found)
    )


def log_run(
    embedding: Any,
    labels: Any = None,
    *,
    tracking_uri: str | os.PathLike[str] | None = None,
    experiment: str | None = None,
    run_id: str | None = None,
    name: str | None = None,
    params: Any = None,
    metrics: Any = None,
    metadata: Any = None,
    ids: Any = None,
) -> str:
    """Log embedding and labels to MLflow, as `runs_from_mlflow` reads them.

    Inside ``with mlflow.start_run():`` the artifacts are added to that run, which stays open. With
    ``run_id`` they are added to the run it names. Else a new run is made and finished: without an
    active run, or if ``experiment``, ``name`` or ``tracking_uri`` say that another one is meant. A
    run made inside another one is its child. Params, metrics and artifacts go in before a run
    counts as finished.

    Parameters
    ----------
    embedding : array-like of shape (n_objects, n_features) or None
        The space in which the clustering was made.
    labels : array-like of shape (n_objects,) or None
        The clustering.
    params : mapping, optional
        The settings that made the run.
    metadata : mapping, optional
        JSON data, such as the version of a program.
    ids : array-like of shape (n_objects,), optional
        Names of the objects; compared between runs when they are loaded.
    tracking_uri : str or path, optional
        Where to; by default what MLflow is set to.
    experiment : str, optional
        Made when absent. By default the active one: that of the active run, of
        ``mlflow.set_experiment``, of ``MLFLOW_EXPERIMENT_NAME``, or "Default".
    run_id : str, optional
        An existing run.
    name : str, optional
        Name of a new run; MLflow makes one up otherwise.
    metrics : mapping of str to float, optional
        Numbers to log with the run.

    Returns
    -------
    str
        The id of the run.
    """
    client = _client(tracking_uri)
    record = Run(name or "run", embedding, labels, params=params, metadata=metadata, ids=ids)
    active = None if run_id is not None else _active_run(tracking_uri)
    if active is not None:
        there = client.get_experiment(active.info.experiment_id).name
        if experiment in (None, there) and name in (None, active.info.run_name):
            run_id = str(active.info.run_id)
            _refuse_second(client, run_id)
    made = run_id is None
    if run_id is None:
        where = _experiment_id(client, experiment, active)
        child = {} if active is None else {"tags": {"mlflow.parentRunId": active.info.run_id}}
        created = client.create_run(where, run_name=name, **child)
        run_id = str(created.info.run_id)
    try:
        for key, value in record.params.items():
            client.log_param(run_id, key, value if isinstance(value, str) else json.dumps(value))
        for key, value in dict(metrics or {}).items():
            client.log_metric(run_id, key, float(value))
        with tempfile.TemporaryDirectory() as folder:
            write_run_files(Path(folder), record)
            client.log_artifacts(run_id, folder)
    except BaseException:
        if made:
            client.set_terminated(run_id, "FAILED")
        raise
    if made:
        client.set_terminated(run_id, "FINISHED")
    return run_id


def _active_run(tracking_uri: str | os.PathLike[str] | None) -> Any:
    """The run that ``mlflow.start_run`` opened, if it is in the same store; else None."""
    mlflow = require("mlflow")
    same = tracking_uri is None or str(tracking_uri) == mlflow.get_tracking_uri()
    return mlflow.active_run() if same else None


def _refuse_second(client: Any, run_id: str) -> None:
    """A run holds one embedding and one vector of labels; a second would replace the first."""
    there = {entry.path for entry in client.list_artifacts(run_id)}
    if there & {FILES["labels"], FILES["embedding"]}:
        raise ValueError(
            "name must be given for a second embedding or labels inside one active run, got None; "
            "a run with that name is then made as its child."
        )


def _client(tracking_uri: str | os.PathLike[str] | None, reading: bool = False) -> Any:
    mlflow = require("mlflow")
    if tracking_uri is not None and not isinstance(tracking_uri, str):
        tracking_uri = check_path("tracking_uri", tracking_uri)
    uri = None if tracking_uri is None else str(tracking_uri)
    folder = None if uri in (None, "databricks") else _local(uri)
    if uri is not None and urlparse(uri).scheme in ("http", "https"):
        check_server(uri)
    if uri is not None and reading:
        sqlite_file(uri)
    if folder is not None:
        if reading and not folder.is_dir():
            raise FileNotFoundError(
                f"tracking_uri must be an existing folder, got no folder {folder}."
            )
        uri = folder.resolve().as_uri()
    try:
        with _folder_store_allowed(folder is not None):
            return mlflow.MlflowClient(tracking_uri=uri)
    except mlflow.exceptions.MlflowException as error:
        raise ValueError(
            f"tracking_uri must be a tracking store that MLflow can open, got {uri}: {error} "
            "Databases need more: pip install sqlalchemy alembic."
        ) from error


def _local(uri: str) -> Path | None:
    """The path that a URI means on this machine, or None; a drive of Windows is no scheme."""
    parsed = urlparse(uri)
    if parsed.scheme == "file":
        return Path(url2pathname(parsed.path))
    return Path(uri) if len(parsed.scheme) < 2 else None


@contextlib.contextmanager
def _folder_store_allowed(needed: bool) -> Iterator[None]:
    """Recent MLflow opens a folder store only when this variable says it is meant."""
    key = "MLFLOW_ALLOW_FILE_STORE"
    before = os.environ.get(key)
    if needed and before is None:
        os.environ[key] = "true"
    try:
        yield
    finally:
        if needed and before is None:
            os.environ.pop(key, None)


def _experiment(client: Any, name: str | None) -> Any:
    there = list(client.search_experiments())
    names = [experiment.name for experiment in there]
    if name is not None:
        if name not in names:
            raise ValueError(f"experiment must be one of {quoted(names, 20)}, got {name!r}.")
        return there[names.index(name)]
    used = [e for e in there if client.search_runs([e.experiment_id], max_results=1)]
    if not used:
        raise NoRuns(f"tracking_uri must hold runs, got none in the experiments {quoted(names)}.")
    if len(used) > 1:
        raise ValueError(
            f"experiment must be named when several have runs, got None; there are "
            f"{quoted((e.name for e in used), 20)}."
        )
    return used[0]


def _experiment_id(client: Any, name: str | None, active: Any) -> str:
    if name is None and active is not None:
        return str(active.info.experiment_id)
    # mlflow.set_experiment leaves the id in the environment; it may belong to another store.
    known = os.environ.get("MLFLOW_EXPERIMENT_ID")
    if name is None and known in {e.experiment_id for e in client.search_experiments()}:
        return str(known)
    name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"
    there = client.get_experiment_by_name(name)
    return client.create_experiment(name) if there is None else there.experiment_id


def _search(client: Any, experiment_id: str) -> Iterator[Any]:
    token = None
    while True:
        page = client.search_runs(
            [experiment_id],
            max_results=500,
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def _artifacts(client: Any, logged: Any, wanted: dict[str, str], cache: Any) -> dict[str, Path]:
    """The wanted artifacts that exist, as local files; and the manifest next to the labels."""
    parent = wanted["labels"].rpartition("/")[0]
    wanted = {**wanted, "manifest": f"{parent}/run.json".lstrip("/")}
    root = _local(logged.info.artifact_uri)
    if root is not None:
        return {kind: root / path for kind, path in wanted.items() if (root / path).is_file()}
    run_id = logged.info.run_id
    folders = {path.rpartition("/")[0] for path in wanted.values()}
    there = {
        entry.path for folder in folders for entry in client.list_artifacts(run_id, folder or None)
    }
    kinds = [kind for kind, path in wanted.items() if path in there]
    if not kinds:
        return {}
    target = scratch_folder(cache, safe_name(run_id))
    for kind in kinds:
        if not (target / wanted[kind]).is_file():
            _download(client, run_id, wanted[kind], target)
    return {kind: target / wanted[kind] for kind in kinds}


def _download(client: Any, run_id: str, path: str, target: Path) -> None:
    # Into a temporary folder first: an interrupted download must not look like a cached one.
    with tempfile.TemporaryDirectory(dir=target) as beside:
        got = client.download_artifacts(run_id, path, beside)
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        os.replace(got, target / path)


def _read(logged: Any, files: dict[str, Path], ambiguous: bool) -> Run:
    info, data = logged.info, logged.data
    name = f"{info.run_name} ({info.run_id[:8]})" if ambiguous else info.run_name or info.run_id
    what = f"run.json of run {name!r}"
    manifest = read_manifest(files["manifest"], what) if "manifest" in files else {}
    arrays: dict[str, Any] = {
        kind: stored_npy(files[kind], f"{kind} of run {name!r}") for kind in FILES if kind in files
    }
    params, metadata = (
        plain_mapping(manifest.get(kind), f"{kind} of run {name!r}")
        for kind in ("params", "metadata")
    )
    tags = {k: v for k, v in data.tags.items() if not k.startswith("mlflow.")}
    known = {"metrics": dict(data.metrics), "tags": tags, "run_id": info.run_id}
    params = {**{k: _number(v) for k, v in data.params.items()}, **params}
    return Run(name, **arrays, params=params, metadata={**metadata, **known})


def _number(text: str) -> Any:
    """MLflow keeps params as text; numbers become numbers again."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
