"""The command that trains deep clusterers, with one setting or many."""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import wellsep as ws
from wellsep._checks.arrays import check_choice
from wellsep.cli import options
from wellsep.cli.deliver import check_target, print_json
from wellsep.cli.options import literal, parse_settings, split_setting
from wellsep.cli.printing import (
    print_error,
    print_line,
    print_table,
    progress_bar,
    told_when_interrupted,
)
from wellsep.cli.reading import TableReader
from wellsep.cli.wording import flags_of, in_shell_words
from wellsep.tables.reading import is_table, read_array

METHODS = {
    "deep-k-means": "DeepKMeans",
    "deep-cf-means": "DeepCFMeans",
    "dec": "DEC",
    "idec": "IDEC",
    "depict": "DEPICT",
    "jule": "JULE",
    "deepcluster": "DeepCluster",
}
_COMMA = r",(?![^()]*\))"  # not those inside parentheses
# Parameters of the estimator that are no part of a run's name.
UNNAMED = ("preset", "checkpoint_dir", "checkpoint_every")


def train(
    data: Annotated[
        str,
        typer.Option(
            "--data",
            "-d",
            help="Data file (npz with an array X, npy, csv, parquet) or a named set like digits.",
        ),
    ],
    method: Annotated[
        str, typer.Option("--method", "-m", help=f"Method to train: {', '.join(METHODS)}.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the runs to.")],
    k: Annotated[int, typer.Option("--clusters", "-k", help="Number of clusters.")] = 10,
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", "-g", help="Values to try: lr=1e-4,1e-3. More settings may follow."),
    ] = None,
    more: Annotated[
        list[str] | None, typer.Argument(help="More settings to try: balance=0.1,1,10")
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            help="Set one value for all trainings: epochs=50, preset=small, checkpoint_dir=FOLDER; "
            "storage=URL of another Optuna storage than a SQLite file in --out.",
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            help="Draw this many settings with Optuna, from ranges such as lr=1e-5:1e-2:log."
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="Device to train on: auto, cpu, cuda or cuda:N.")
    ] = "auto",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Number of trainings to run at the same time.")
    ] = 1,
    seed: options.Seed = 0,
    ids: options.Ids = None,
    no_header: options.NoHeader = False,
    columns: options.Columns = None,
    as_json: options.Json = False,
) -> None:
    """Train a deep clusterer with one setting or many, and write each result as a run.

    A repeated call trains what is not finished. Several methods may share a folder: runs are called
    after method, number of clusters and settings. Rank the runs with wellsep rank.

    \b
    Examples:
      wellsep train --data digits --method dec -k 10 --out runs/
      wellsep train --data usps.npz --method depict --grid lr=1e-4,1e-3 balance=0.1,1,10 -k 10 --out runs/
      wellsep train -d usps.npz -m jule -g lr=5e-4:1e-1:log unfolding_rate=0.2,0.5,0.9 --trials 20 -o runs/
      wellsep rank runs/
    """  # noqa: E501
    check_choice("method", method, METHODS)
    check_target("out", out, None)
    deep = importlib.import_module("wellsep.deep")  # needs torch, an optional package
    for_all = parse_settings(fixed)
    storage = for_all.pop("storage", None)
    unnamed = {name: for_all.pop(name) for name in UNNAMED if name in for_all}
    model: Any = deep.METHODS[METHODS[method]](k, device=device, random_state=seed, **unnamed)
    settings = parse_grid([*(grid or []), *(more or [])])
    total = trials if trials is not None else math.prod(map(len, settings.values()))
    reader = TableReader([Path(data)], ids, no_header, columns)
    X, names = _read(reader, data)
    with told_when_interrupted(lambda: _what_is_kept(out)), progress_bar() as told:
        seen = _Counter(method, total, told)
        result = deep.sweep(
            model,
            X,
            settings,
            out=out,
            n_trials=trials,
            storage=storage,
            n_jobs=jobs,
            ids=names,
            fixed=for_all,
            on_trial=seen.ended,
            on_start=seen.show,
        )
    reader.tell()
    if as_json:
        print_json({"folder": str(result.folder), "trials": [vars(t) for t in result.trials]})
    else:
        _show(result)
    if result.trials and len(result.failed) == len(result.trials):
        print_error(f"Error: every trial failed. {_why(result.failed[0])}")
        raise typer.Exit(1)


def _why(trial: Any) -> str:
    """Why a trial failed, in the words of the shell."""
    sentence = re.sub(r"^(Value|Type)Error: ", "", trial.error or "")
    return in_shell_words(sentence, flags_of("train"))


def _what_is_kept(folder: Path) -> str:
    done = len(list(folder.glob("*/run.json")))
    runs = "run is" if done == 1 else "runs are"
    return f"Interrupted. {done} finished {runs} kept in {folder}. Repeat the command to continue."


class _Counter:
    """Counts runs: in the bar of a terminal, else by a line of stderr for each run."""

    def __init__(self, method: str, total: int, told: Callable[[int, int, str], None]) -> None:
        self.method, self.total, self.told = method, total, told
        self.done = 0

    def ended(self, trial: Any) -> None:
        self.done += 1
        if not sys.stderr.isatty():
            why = f": {_why(trial)}" if trial.error else ""
            print_error(
                f"{self.done} of {self.total} runs: {trial.name} {trial.status} "
                f"({trial.seconds:.1f} s){why}"
            )
        self.show()

    def show(self, name: str = "") -> None:
        """Show how many runs are done, and which one has begun."""
        title = f"Training {self.method}: {self.done} of {self.total} runs"
        self.told(self.done, self.total, title + (f", now {name}" if name else ""))


def parse_grid(words: list[str]) -> dict[str, Any]:
    """Read words such as ``"lr=1e-4,1e-3"`` or ``"k=5:20"`` as a mapping of names to values.

    Commas separate values; low:high and low:high:log are ranges for Optuna. ``lr``, ``k`` and
    ``batch`` are short for ``learning_rate``, ``n_clusters`` and ``batch_size``.

    Examples
    --------
    >>> parse_grid(["lr=1e-4,1e-3", "init=k-means"])
    {'learning_rate': [0.0001, 0.001], 'init': ['k-means']}
    """
    grid: dict[str, Any] = {}
    for word in words:
        name, text = split_setting(word)
        parts = text.split(":")
        values: Any = [literal(part) for part in re.split(_COMMA, text)]
        if len(parts) > 1:
            values = tuple(literal(part) for part in parts)
            numbers = all(isinstance(v, int | float) for v in values[:2])
            if not numbers or len(values) > 3 or values[2:] not in ((), ("log",)):
                raise ValueError(
                    f"a range must read like 1e-5:1e-2 or 1e-5:1e-2:log, got {word!r}."
                )
        grid[name] = values
    return grid


def _read(reader: TableReader, data: str) -> tuple[Any, Any]:
    """The objects of a file or of a named set, and their ids."""
    path = Path(data)
    if not path.exists() and (not path.suffix or data in ws.list_datasets()):
        found = ws.load_dataset(data)
        reader.said.append(f"{found.name}: {len(found.X):,} objects, from {found.source}.")
        return found.X, None
    if not is_table(path):
        return read_array(path), None  # it keeps its shape, as images need
    return reader.data(path)


def _show(result: Any) -> None:
    trials = result.trials
    print_table(
        {
            "run": [trial.name for trial in trials],
            "status": [trial.status for trial in trials],
            "seconds": [round(trial.seconds, 1) for trial in trials],
            "error": [_why(trial) for trial in trials],
        }
    )
    running = sum(trial.status == "running" for trial in trials)
    done = len(trials) - len(result.failed) - running
    print_line(f"{done} of {len(trials)} runs are in {result.folder}.")
    if running:
        print_line(f"Another process trains {running} of them. Repeat the command to see the end.")
    if done:
        print_line(f"Next: wellsep rank {result.folder}")
