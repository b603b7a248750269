"""CFQ, cf-means and deep cf-means: the poster's table 2 and figures 23 and 24, and beyond.

    python experiments/counterfactual/run.py                   # all; deep trainings only with CUDA
    python experiments/counterfactual/run.py --quick           # every stage, small; about a minute
    python experiments/counterfactual/run.py table2 figure23   # some stages
    python experiments/counterfactual/run.py deep --device cuda --jobs 4 --minutes 8
    python experiments/counterfactual/run.py report            # figures and tables from the CSVs

Every trial, start or training is appended to a CSV when it is done and skipped when it is there:
stop at any time, run again to go on. The data lie in the folder that WELLSEP_DATA names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import wellsep as ws  # noqa: E402
from experiments import bookkeeping  # noqa: E402
from experiments.counterfactual import deep, pages, picks, starts  # noqa: E402

STAGES = ("table2", "figure23", "study", "deep", "report")
COLLECTIONS = {"figure23": (starts.SIGNS,), "study": (starts.STUDY, starts.WHOLE, starts.CHOICE)}
EMBEDDED = {"iris": (3, 150), "wine": (3, 178), "digits": (10, 300)}
SMALL_NETWORK = {"preset": "small", "hidden": (64,), "pretrain_epochs": 8, "epochs": 4}


@dataclass(frozen=True)
class Sizes:
    """How much of everything is run."""

    picked_from: tuple[str, ...] = picks.SETS
    protocols: dict[str, int] | None = None
    cap: int = picks.CAP
    keep: int | None = None  # objects of a set for the sums of squares
    n_starts: int | None = None
    most_sets: int | None = None
    embedded: bool = False

    def of(self, collection: starts.Collection) -> starts.Collection:
        """The collection at this size."""
        sets = EMBEDDED if self.embedded else collection.sets
        sets = dict(list(sets.items())[: self.most_sets])
        if self.keep is not None:
            sets = {name: (k, min(n, self.keep)) for name, (k, n) in sets.items()}
        count = collection.n_starts if self.n_starts is None else self.n_starts
        return collection._replace(sets=sets, n_starts=count)


def quick(embedded: bool) -> Sizes:
    """Every stage in about a minute."""
    sets = tuple(EMBEDDED) if embedded else picks.SETS
    return Sizes(sets, {"classes": 3, "seeds": 2}, 300, 300, 2, 3, embedded)


def run(
    stages: list[str],
    sizes: Sizes,
    training: deep.Plan | None,
    out: Path,
    origin: dict[str, str],
    *,
    in_time: Callable[[], bool] = lambda: True,
    n_jobs: int = 1,
) -> bool:
    """The stages in order; False when trainings are missing."""
    whole = True
    for number, stage in enumerate(stages, 1):
        bookkeeping.say(f"{number} of {len(stages)}: {stage}")
        if stage == "table2":
            picks.run(
                out / pages.FILES["table2"],
                sets=sizes.picked_from,
                protocols=sizes.protocols or picks.PROTOCOLS,
                cap=sizes.cap,
                in_time=in_time,
                origin=origin,
            )
        elif stage in COLLECTIONS:
            for collection in map(sizes.of, COLLECTIONS[stage]):
                starts.run(collection, out / collection.file, in_time=in_time, origin=origin)
        elif stage == "deep" and training is None:
            bookkeeping.say(
                "no CUDA device: trainings left out; name --device cpu to have them here"
            )
        elif stage == "deep":
            whole = deep.run(training, n_jobs)
        else:
            pages.write(out)
    return whole


def training_plan(options: argparse.Namespace, out: Path, origin: dict[str, str]) -> deep.Plan:
    """The trainings that the command line asks for."""
    plan = deep.Plan(
        Path(options.results) if options.results else out / pages.FILES["figure24"],
        seeds=tuple(range(options.seeds)),
        device=options.device,
        end=time.time() + 60 * options.minutes,
        origin=origin,
    )
    if options.quick:
        plan = replace(
            plan, sets=("digits",), seeds=(0, 1), weights=(0.3,), keep=400, options=SMALL_NETWORK
        )
    asked = {name: getattr(options, name) for name in ("sets", "weights", "balances")}
    return replace(plan, **{name: value for name, value in asked.items() if value})


def has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def words(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated option."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, words(text)))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be numbers separated by commas, got {text}"
        ) from None


def refused(options: argparse.Namespace) -> str | None:
    """Why these options cannot be followed, or None."""
    unknown = [stage for stage in options.stages if stage not in STAGES]
    if unknown:
        return f"STAGE must be one of {', '.join(STAGES)}, got {', '.join(unknown)}"
    if options.stages == ["report"]:
        out = options.out or HERE
        if any((out / file).is_file() for file in pages.FILES.values()):
            return None
        return f"--out must be a folder with results ({', '.join(pages.FILES.values())}), got {out}"
    if not options.embedded and bookkeeping.data_folder() is None:
        return "name the folder of the data sets in WELLSEP_DATA, or ask for --embedded"
    known: dict[str, Sequence[str]] = {"balances": deep.BALANCES}
    if options.sets:
        # Trainings read what is at hand and download nothing.
        known["sets"] = [name for name, home in ws.list_datasets().items() if home != "openml"]
    for name, names in known.items():
        unknown = [word for word in getattr(options, name) or () if word not in names]
        if unknown:
            return f"--{name} must be of {', '.join(names)}, got {', '.join(unknown)}"
    return None


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}")
    parser.add_argument("--quick", action="store_true", help="every stage at reduced size")
    parser.add_argument("--embedded", action="store_true", help="scikit-learn's sets as stand-ins")
    parser.add_argument("--out", type=Path, help="folder of the results; a new one for --quick")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after these")
    parser.add_argument("--commit", help="commit to record where there is no repository")
    trainings = parser.add_argument_group("deep")
    trainings.add_argument("--device", default="auto")
    trainings.add_argument("--jobs", type=int, default=1, help="sets and seeds at a time")
    trainings.add_argument("--sets", type=words, help="comma-separated")
    trainings.add_argument("--seeds", type=int, default=10, help="their number")
    trainings.add_argument("--weights", type=numbers, help="of the separation, comma-separated")
    trainings.add_argument("--balances", type=words, help="of the losses: printed,means")
    trainings.add_argument("--results", help="CSV, where not in the folder of the results")
    options = parser.parse_args(arguments)
    options.stages = options.stages or list(STAGES)
    reason = refused(options)
    if reason:
        parser.error(reason)
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    small = (options.quick or options.embedded) and options.stages != ["report"]
    out = options.out or (Path(tempfile.mkdtemp(prefix="counterfactual_")) if small else HERE)
    origin = bookkeeping.provenance("experiments/bookkeeping.py", "experiments/counterfactual/*.py")
    if options.commit:
        origin["commit"] = options.commit
    training = None
    if "deep" in options.stages:
        asked = options.stages == ["deep"] or options.device != "auto" or options.quick
        if asked or has_cuda():
            training = training_plan(options, out, origin)
    end = time.time() + 60 * options.minutes
    sizes = quick(options.embedded) if small else Sizes()
    try:
        whole = run(
            options.stages, sizes, training, out, origin,
            in_time=lambda: time.time() < end, n_jobs=options.jobs,
        )  # fmt: skip
    except KeyboardInterrupt:
        named = f" with --out {out}" if small and not options.out else ""
        bookkeeping.say(f"stopped; the same command{named} goes on")
        return 130
    if small:
        bookkeeping.say(f"small: the stages, not the poster's numbers; they lie in {out}")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
