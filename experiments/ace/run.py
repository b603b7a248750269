"""Does ACE find the good runs of deep clusterers, as its paper says, and can it be beaten?

    python experiments/ace/run.py --quick             every stage at reduced size, no data needed
    python experiments/ace/run.py RUNS                all stages; RUNS as train.py leaves it
    python experiments/ace/run.py --stages report     tables and figures from the committed CSVs

RUNS holds a folder of runs per experiment, <task>-<method>-<set>. Stages: score (embeddings to
Scores, minutes per experiment, finished ones are skipped), evaluate (ACE, baselines and ablations
to results.csv, seconds), beat (variants of ACE to beat.csv), figures, report (REPORT.md and
TABLES.md), pages (an HTML page per experiment, in --pages).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import wellsep as ws
from experiments.ace import beating, drawing, quick, reporting, scoring
from experiments.ace.evaluating import experiments, kept, write_results
from experiments.ace.paper import HERE, METHODS, SETS, TASKS, is_experiment, split
from experiments.bookkeeping import data_folder, say

STAGES = ("score", "evaluate", "beat", "figures", "report")


def score(runs: Path, place: Path, only: str | None) -> None:
    """Score every experiment of the folder."""
    if data_folder() is None:
        raise SystemExit("Scoring needs the data sets; name their folder in WELLSEP_DATA.")
    names = sorted(p.name for p in runs.iterdir() if p.is_dir() and is_experiment(p.name))
    for name in names:
        if only is None or only in name:
            X, truth = scoring.input_of(name)
            found = ws.load_runs(runs / name)
            out = place / "scores"
            scoring.score_experiment(found, name, X, truth, out, runs / ".cache")


def pages(place: Path, out: Path) -> None:
    """A report page per experiment, drawn with the sampled objects."""
    out.mkdir(parents=True, exist_ok=True)
    for folder in experiments(place / "scores"):
        one = kept(folder)
        task, method, name = split(one.name)
        runs, truth = scoring.sampled_runs(folder)
        title = (
            f"{TASKS[task]}, {METHODS[method]} on {SETS[name][0]} (pictures: {len(truth)} objects)"
        )
        answer = ws.ace(one.scores, index=one.labels["silhouette"])
        ws.render_report(
            ws.rank(answer), out / f"{one.name}.html", runs=runs, truth=truth, title=title
        )
        say(f"page {one.name}.html")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="?", type=Path, help="folder of experiments")
    parser.add_argument("--quick", action="store_true", help="every stage at reduced size")
    parser.add_argument("--stages", default=None, help=f"some of {','.join(STAGES)}")
    parser.add_argument("--only", help="score only experiments whose name contains this")
    parser.add_argument("--out", type=Path, help="where results go (default: this folder)")
    parser.add_argument("--pages", type=Path, help="also write report pages into this folder")
    options = parser.parse_args()
    data_folder()
    stages = STAGES if options.stages is None else tuple(options.stages.split(","))
    unknown = set(stages) - set(STAGES)
    if unknown:
        parser.error(f"stages must be among {', '.join(STAGES)}, got {', '.join(sorted(unknown))}.")

    place = HERE if options.out is None else options.out
    if options.quick:
        place = quick.prepare(options.out)
        quick.train_and_score(place)
        stages = STAGES[1:]
    elif "score" in stages:
        if options.runs is not None:
            score(options.runs, place, options.only)
        elif options.stages is not None:
            parser.error("score needs RUNS, the folder of experiments.")
    if "evaluate" in stages:
        rows = write_results(place / "scores", place / "results.csv")
        say(f"results.csv: {len(rows)} rows")
    if "beat" in stages:
        beating.write_beat(place, small=options.quick)
    if "figures" in stages:
        drawing.draw_all(place)
    if "report" in stages:
        reporting.write_reports(place)
    if options.pages is not None or options.quick:
        pages(place, options.pages or place / "pages")
    say(f"done; see {place}")


if __name__ == "__main__":
    main()
