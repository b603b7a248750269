"""Does ACE find the good runs of deep clusterers, as its paper says, and can it be beaten?

    python experiments/ace/run.py --quick                     every stage at reduced size
    python experiments/ace/run.py RUNS                        all stages; RUNS as train.py leaves it
    python experiments/ace/run.py --stages figures,report     from the committed CSVs

RUNS holds a folder of runs per experiment, <task>-<method>-<set>. Stages: score (embeddings to
Scores, minutes per experiment, finished ones are skipped), evaluate (ACE, baselines and ablations
to results.csv, seconds), beat (variants of ACE to beat.csv), figures, report (the tables of
REPORT.md and TABLES.md). --pages FOLDER adds an HTML page per experiment.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace import drawing, quick, reporting, scoring
from experiments.ace.evaluating import experiments, kept, write_results
from experiments.ace.paper import HERE, METHODS, SETS, TASKS, is_experiment, split
from experiments.ace_variants import beating
from experiments.bookkeeping import data_folder, say
from wellsep.records import Judgement

STAGES = ("score", "evaluate", "beat", "figures", "report")


def to_score(runs: Path, only: str | None) -> list[str]:
    """Names of the experiments in the folder; refused where there is none."""
    form = "folders of runs named <task>-<method>-<set>, as tuning-depict-usps_11000"
    if not runs.is_dir():
        raise ValueError(f"RUNS must be a folder that holds {form}, got {runs}, which is none.")
    there = sorted(p.name for p in runs.iterdir() if p.is_dir() and is_experiment(p.name))
    if not there:
        known = f"tasks: {', '.join(TASKS)}; methods: {', '.join(METHODS)}; sets: {', '.join(SETS)}"
        raise ValueError(f"RUNS must hold {form}, got none in {runs} ({known}).")
    names = [name for name in there if only is None or only in name]
    if not names:
        raise ValueError(
            f"--only must be part of a name in RUNS ({', '.join(there)}), got {only!r}."
        )
    return names


def score(runs: Path, place: Path, names: list[str], device: str | None) -> None:
    """Score these experiments of the folder."""
    for name in names:
        X, truth = scoring.input_of(name)
        found = ws.load_runs(runs / name)
        archive, cache = place / "scores.zip", runs / ".cache"
        scoring.score_experiment(found, name, X, truth, archive, cache, device=device)


def check_kept(place: Path, stages: tuple[str, ...]) -> None:
    """Refuse stages that have nothing to begin from."""
    if "evaluate" in stages:
        archive = place / "scores.zip"
        if not experiments(archive):
            raise ValueError(f"evaluate needs scored experiments, got none in {archive}.")
    elif {"figures", "report"} & set(stages) and not (place / "results.csv").is_file():
        raise ValueError(f"figures and report need results.csv, got none in {place}.")


def pages(place: Path, out: Path) -> None:
    """A report page per experiment, drawn with the sampled objects."""
    out.mkdir(parents=True, exist_ok=True)
    for entry in experiments(place / "scores.zip"):
        one = kept(entry)
        task, method, name = split(one.name)
        runs, truth = scoring.sampled_runs(entry)
        title = (
            f"{TASKS[task]}, {METHODS[method]} on {SETS[name][0]} (pictures: {len(truth)} objects)"
        )
        answer = ws.ace(one.scores, index=one.labels["silhouette"])
        labels = {name: runs.partitions[name] for name in one.scores.partitions}
        vote = ws.consensus(labels, index=answer.baselines["mean_all"])
        judged = Judgement(one.scores, {"ace": {answer.index: answer}, "consensus": {"ari": vote}})
        ws.render_report(judged, out / f"{one.name}.html", runs=runs, truth=truth, title=title)
        say(f"page {one.name}.html")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="?", type=Path, help="folder of experiments")
    parser.add_argument("--quick", action="store_true", help="every stage at reduced size")
    parser.add_argument("--stages", default=None, help=f"some of {','.join(STAGES)}")
    parser.add_argument("--only", help="score only experiments whose name contains this")
    parser.add_argument(
        "--out", type=Path, help="where results go (default: this folder; --quick: a new one)"
    )
    parser.add_argument("--device", help="where to score, as cuda (default: the processor)")
    parser.add_argument("--pages", type=Path, help="also write report pages into this folder")
    options = parser.parse_args()
    stages = STAGES if options.stages is None else tuple(options.stages.split(","))
    unknown = set(stages) - set(STAGES)
    if unknown:
        parser.error(f"stages must be among {', '.join(STAGES)}, got {', '.join(sorted(unknown))}.")

    place = HERE if options.out is None else options.out
    names: list[str] = []
    if options.quick:
        place, stages = quick.prepare(options.out), STAGES[1:]
    elif "score" in stages and options.runs is None and options.stages is not None:
        parser.error("score needs RUNS, the folder of experiments.")
    else:
        try:
            if "score" in stages and options.runs is not None:
                names = to_score(options.runs, options.only)
            elif options.only is not None:
                raise ValueError("--only needs RUNS and the stage score.")
            else:
                check_kept(place, stages)
        except ValueError as reason:
            parser.error(str(reason))
        if names and data_folder() is None:
            parser.error("score needs the data sets; name their folder in WELLSEP_DATA.")
    try:
        work(options, place, stages, names)
    except KeyboardInterrupt:
        again = f"--quick --out {place}" if options.quick else "the same command"
        say(f"stopped; {again} goes on")
        raise SystemExit(130) from None
    say(f"done; see {place}")


def work(
    options: argparse.Namespace, place: Path, stages: tuple[str, ...], names: list[str]
) -> None:
    """The stages one after the other."""
    if options.quick:
        say(quick.SMALL)
        quick.train_and_score(place)
    score(options.runs, place, names, options.device)
    if "evaluate" in stages:
        rows = write_results(place / "scores.zip", place / "results.csv")
        say(f"results.csv: {len(rows)} rows")
    if "beat" in stages:
        beating.write_beat(place, small=options.quick)
    if "figures" in stages:
        drawing.draw_all(place)
    if "report" in stages:
        reporting.write_reports(place)
    if options.pages is not None or options.quick:
        pages(place, options.pages or place / "pages")
    if options.quick:
        say(quick.SMALL)


if __name__ == "__main__":
    main()
