"""The command that trains deep clusterers, with one setting or many."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from wellsep.cli.printing import (
    JsonOption,
    check_folder,
    console,
    print_error,
    print_json,
    print_line,
    print_table,
    told_when_interrupted,
)
from wellsep.cli.reading import ColumnsOption, IdsOption, NoHeaderOption, TableReader, choices
from wellsep.cli.reading_runs import literal
from wellsep.cli.wording import flags_of, in_shell_words

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
SHORT_NAMES = {"lr": "learning_rate", "k": "n_clusters", "batch": "batch_size"}


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
        typer.Option("--set", "-s", help="Set one value for all trainings: epochs=50."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            help="Draw this many settings with Optuna, from ranges such as lr=1e-5:1e-2:log."
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="URL of the Optuna storage. The default is a SQLite file in --out."),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="Values of all other settings: auto, paper or small.")
    ] = "auto",
    device: Annotated[
        str, typer.Option(help="Device to train on: auto, cpu, cuda or cuda:N.")
    ] = "auto",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Number of trainings to run at the same time.")
    ] = 1,
    checkpoints: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints. An interrupted training continues from it."),
    ] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Save a checkpoint as a run every so many epochs.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option(help="Train settings again that failed before, unchanged.")
    ] = False,
    seed: Annotated[
        int, typer.Option(help="Random seed. The same seed gives the same result.")
    ] = 0,
    ids: IdsOption = None,
    no_header: NoHeaderOption = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a deep clusterer with one setting or many, and write each result as a run.

    A repeated call skips finished settings. Several methods may share a folder: runs are called
    after method, number of clusters and settings. Rank the runs with wellsep rank.

    \b
    Examples:
      wellsep train --data digits --method dec -k 10 --out runs/
      wellsep train --data usps.npz --method depict --grid lr=1e-4,1e-3 balance=0.1,1,10 -k 10 --out runs/
      wellsep train -d usps.npz -m jule -g lr=5e-4:1e-1:log unfolding_rate=0.2,0.5,0.9 --trials 20 -o runs/
      wellsep rank runs/
    """  # noqa: E501
    from wellsep._checks.arrays import check_choice

    check_choice("method", method, METHODS)
    check_folder("out", out)
    from wellsep import deep

    options: dict[str, Any] = {"device": device, "preset": preset, "random_state": seed}
    options |= {"checkpoint_dir": checkpoints, "checkpoint_every": checkpoint_every}
    model: Any = deep.METHODS[METHODS[method]](k, **options)
    words = [*(grid or []), *(more or [])]
    settings = parse_grid(words)
    if trials is None:
        refuse_ranges(words, settings)
    total = trials if trials is not None else _product(settings)
    reader = TableReader()
    X, names = _read(reader, data, ids, no_header, columns)
    with told_when_interrupted(lambda: _what_is_kept(out)), _progress(method, total) as seen:
        result = deep.sweep(
            model,
            X,
            settings,
            out=out,
            sampler="grid" if trials is None else "optuna",
            n_trials=trials,
            storage=storage,
            n_jobs=jobs,
            ids=names,
            fixed=parse_settings(fixed or []),
            retry_failed=retry_failed,
            on_trial=seen.ended,
            on_start=seen.began,
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


class _Bar:
    """Counts runs: a bar in a terminal, else a line of stderr for each run."""

    def __init__(self, method: str, total: int, bar: Any = None) -> None:
        self.method, self.total, self.done = method, total, 0
        self.bar = bar
        self.task = None if bar is None else bar.add_task(self._title(), total=total)
        self.name = ""

    def began(self, name: str) -> None:
        self.name = name
        self._show()

    def ended(self, trial: Any) -> None:
        self.done += 1
        if self.bar is None:
            why = f": {_why(trial)}" if trial.error else ""
            print_error(
                f"{self.done} of {self.total} runs: {trial.name} {trial.status} "
                f"({trial.seconds:.1f} s){why}"
            )
        self._show()

    def _title(self) -> str:
        return f"Training {self.method}: {self.done} of {self.total} runs"

    def _show(self) -> None:
        if self.bar is not None:
            from rich.markup import escape

            now = f", now {escape(self.name)}" if self.done < self.total and self.name else ""
            self.bar.update(self.task, completed=self.done, description=self._title() + now)


@contextlib.contextmanager
def _progress(method: str, total: int) -> Iterator[_Bar]:
    stderr = console(stderr=True)
    if not stderr.is_terminal:
        yield _Bar(method, total)
        return
    from rich.progress import Progress

    with Progress(console=stderr, transient=True) as bar:
        yield _Bar(method, total, bar)


def refuse_ranges(words: list[str], settings: dict[str, Any]) -> None:
    """Refuse ranges without --trials, which only draws from them."""
    for word in words:
        if isinstance(settings[_split(word)[0]], tuple):
            raise ValueError(
                f"grid must list values such as lr=1e-4,1e-3 without --trials, got the range "
                f"{word!r}; add --trials 20 to draw 20 settings from it."
            )


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
        name, text = _split(word)
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


def parse_settings(words: list[str]) -> dict[str, Any]:
    """Read ``["epochs=50", "hidden=(64,32)"]`` as {"epochs": 50, "hidden": (64, 32)}."""
    return {name: literal(text) for name, text in map(_split, words)}


def _split(word: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    if not equals or not name or not text:
        raise ValueError(
            f"a setting must read like lr=1e-4, a grid like lr=1e-4,1e-3, got {word!r}."
        )
    return SHORT_NAMES.get(name, name), text


def _read(
    reader: TableReader, data: str, ids: str | None, no_header: bool, columns: str | None
) -> tuple[Any, Any]:
    """The objects of a file or of a named set, and their ids."""
    from wellsep.datasets import list_datasets, load_dataset
    from wellsep.tables.reading import is_table

    path = Path(data)
    if not path.exists() and (not path.suffix or data in list_datasets()):
        found = load_dataset(data)
        reader.said.append(f"{found.name}: {len(found.X):,} objects, from {found.source}.")
        return found.X, None
    if not is_table(path):
        return read_objects(path), None
    (choice,) = choices([path], ids=ids, no_header=no_header, columns=columns)
    return reader.data(path, choice)


def read_objects(path: Path) -> Any:
    """Read an npy or npz file; its array keeps its shape, as images need."""
    from wellsep.tables.reading import read_array

    return read_array(path)


def _product(settings: dict[str, Any]) -> int:
    total = 1
    for values in settings.values():
        total *= len(values)
    return total


def _show(result: Any) -> None:
    rows = [
        (trial.name, trial.status, round(trial.seconds, 1), _why(trial)) for trial in result.trials
    ]
    print_table(rows, ["run", "status", "seconds", "error"])
    running = sum(trial.status == "running" for trial in result.trials)
    done = len(result.trials) - len(result.failed) - running
    print_line(f"{done} of {len(result.trials)} runs are in {result.folder}.")
    if running:
        print_line(f"Another process trains {running} of them. Repeat the command to see the end.")
    if done:
        print_line(f"Next: wellsep rank {result.folder}")
