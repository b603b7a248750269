"""Does LOFKM deepen local connectivity, and at what cost? The paper's tables 2 and 3, and beyond.

    python experiments/local_connectivity/run.py            # all; about 20 minutes of one core
    python experiments/local_connectivity/run.py --quick    # every stage, small; under a minute

Every block of starts is appended to a CSV when it is done and skipped when it is there: stop at
any time, run again to go on. The data lie in the folder that WELLSEP_DATA names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
GUIDE = HERE.parents[1] / "docs" / "guides" / "local-connectivity.md"
sys.path.insert(0, str(HERE.parents[1]))

from experiments.bookkeeping import append, data_folder, done, provenance, read, say  # noqa: E402
from experiments.local_connectivity import figures, report, summary  # noqa: E402
from experiments.local_connectivity.measure import KEYS, measure_block, measure_weights  # noqa: E402
from experiments.local_connectivity.protocols import (  # noqa: E402
    CONTROL,
    EMBEDDED_CONTROL,
    EMBEDDED_FURTHER,
    EMBEDDED_PAPER,
    FURTHER,
    GRID,
    NEIGHBOURS,
    PAPER,
    PREFERRED,
    Protocol,
    Source,
    load,
    lof_weights,
    scale,
)

STARTS = ("starts_paper.csv", "starts_further.csv", "weights.csv")
WEIGHT_KEYS = ("set", "scaling", "t")


@dataclass(frozen=True)
class Plan:
    """What is run and how often; starts are numbered from 0, and the number is the seed."""

    paper: tuple[Source, ...] = PAPER
    further: tuple[Source, ...] = FURTHER
    control: tuple[Source, ...] = CONTROL
    grid_starts: tuple[int, ...] = (30, 30, 10)  # per set of the paper; Avila is dear
    starts: int = 100
    further_starts: int = 30
    block: int = 10

    @property
    def grid_seeds(self) -> dict[str, int]:
        return {s.title: n for s, n in zip(self.paper, self.grid_starts, strict=True)}


def quick(plan: Plan, most: int = 300, starts: int = 3) -> Plan:
    """The same stages on small samples of the sets, with few starts."""

    def small(sources: Iterable[Source]) -> tuple[Source, ...]:
        return tuple(replace(source, most=most) for source in sources)

    return Plan(
        small(plan.paper),
        small(plan.further),
        small(plan.control),
        grid_starts=(starts,) * 3,
        starts=starts + 1,
        further_starts=starts,
        block=starts,
    )


def measure(
    source: Source, protocol: Protocol, starts: int, block: int, path: Path, origin: dict[str, str]
) -> None:
    """Append the starts of one data set under one protocol that are not in the CSV."""
    present = done(path, KEYS)
    name = (source.title, protocol.scaling, protocol.starts)
    loaded = None
    for first in range(0, starts, block):
        seeds = range(first, min(first + block, starts))
        missing = [s for s in seeds if any((*name, t, s) not in present for t in NEIGHBOURS)]
        if not missing:
            continue
        if loaded is None:
            X, y = load(source)
            Z = scale(X, protocol.scaling)
            loaded = X, y, {t: lof_weights(Z, len(set(y[y >= 0])), t) for t in NEIGHBOURS}
        X, y, weights = loaded
        rows = measure_block(
            source.title,
            X,
            y,
            protocol,
            missing,
            means=protocol.starts == "objects" and protocol.scaling == source.scaling,
            weights=weights,
        )
        # A block cut off in the middle is measured again; what is there stays.
        new = [row for row in rows if tuple(row[key] for key in KEYS) not in present]
        append(path, [row | origin for row in new])
        say(f"{source.title}: {protocol}: starts {missing[0]} to {missing[-1]}")


def weigh(source: Source, path: Path, origin: dict[str, str]) -> None:
    """Append the LOF weights of one data set in brief, if they are not in the CSV."""
    present = done(path, WEIGHT_KEYS)
    if all((source.title, source.scaling, t) in present for t in NEIGHBOURS):
        return
    rows = measure_weights(source.title, *load(source), source.scaling)
    new = [row for row in rows if tuple(row[key] for key in WEIGHT_KEYS) not in present]
    append(path, [row | origin for row in new])
    say(f"{source.title}: weights")


def run(plan: Plan, out: Path, origin: dict[str, str]) -> list[summary.Row]:
    """All stages; returns the rows of results.csv."""
    paper, further = out / "starts_paper.csv", out / "starts_further.csv"
    say("1 of 4: nine protocols on the paper's sets")
    for source, starts in zip(plan.paper, plan.grid_starts, strict=True):
        for protocol in GRID:
            measure(source, protocol, starts, plan.block, paper, origin)
    say("2 of 4: all starts under our protocol and under the one nearest to the paper")
    tried = read(paper)
    for source in plan.paper:
        best = summary.nearest(tried, source.title, plan.grid_seeds[source.title])
        for protocol in dict.fromkeys((PREFERRED, best)):
            measure(source, protocol, plan.starts, plan.block, paper, origin)
    say("3 of 4: further sets, and Avila without its farthest object")
    for source in (*plan.further, *plan.control):
        protocol = Protocol(source.scaling, "objects")
        measure(source, protocol, plan.further_starts, plan.block, further, origin)
    for source in (*plan.paper, *plan.further, *plan.control):
        weigh(source, out / "weights.csv", origin)
    say("4 of 4: results, figures, report")
    return write(plan, out)


def write(plan: Plan, out: Path) -> list[summary.Row]:
    """results.csv, the figures and the tables of REPORT.md, from the rows of single starts."""
    results = summary.summarise(
        read(out / "starts_paper.csv"),
        read(out / "starts_further.csv"),
        read(out / "weights.csv"),
        grid_seeds=plan.grid_seeds,
        seeds=plan.starts,
        sources=plan.further,
        control=plan.control,
    )
    (out / "results.csv").unlink(missing_ok=True)
    append(out / "results.csv", results)
    results = read(out / "results.csv")
    figures.draw(results, out)
    text = report.fill((HERE / "REPORT.md").read_text(encoding="utf-8"), results)
    if out != HERE:
        text = f"> The sentences around the tables speak of the committed run.\n\n{text}"
    (out / "REPORT.md").write_text(text, encoding="utf-8")
    if out == HERE:
        text = report.fill(GUIDE.read_text(encoding="utf-8"), results)
        GUIDE.write_text(text, encoding="utf-8")
    say(f"written: {out / 'results.csv'}, figures, {out / 'REPORT.md'}")
    return results


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="every stage at reduced size")
    parser.add_argument("--embedded", action="store_true", help="scikit-learn's sets as stand-ins")
    parser.add_argument("--out", type=Path, help="folder of the results; a new one for --quick")
    parser.add_argument("--write", action="store_true", help="only the results and the report")
    options = parser.parse_args(arguments)
    plan = Plan()
    if options.embedded:
        plan = replace(
            plan, paper=EMBEDDED_PAPER, further=EMBEDDED_FURTHER, control=EMBEDDED_CONTROL
        )
    elif data_folder() is None and not options.write:
        parser.error("name the folder of the data sets in WELLSEP_DATA, or ask for --embedded")
    if options.quick:
        plan = quick(plan)
    small = options.quick or options.embedded
    if options.write and small and not options.out:
        parser.error("--write must be told by --out where the starts lie")
    out = options.out or (Path(tempfile.mkdtemp(prefix="local_connectivity_")) if small else HERE)
    missing = [name for name in STARTS if not (out / name).is_file()]
    if options.write and missing:
        parser.error(
            f"--out must be a folder with {', '.join(STARTS)}, got {out}; "
            f"it lacks {', '.join(missing)}: run without --write first"
        )
    origin = provenance("experiments/bookkeeping.py", "experiments/local_connectivity/*.py")
    try:
        if options.write:
            write(plan, out)
        else:
            run(plan, out, origin)
    except KeyboardInterrupt:
        named = f" with --out {out}" if small and not options.out else ""
        say(f"stopped; the same command{named} goes on")
        return 130
    if small:
        say("small: the figures and tables show the stages, not the paper's numbers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
