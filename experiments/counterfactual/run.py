"""The counterfactual poster, replicated."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from experiments import common  # noqa: E402
from experiments.counterfactual import deep  # noqa: E402

DEEP_QUICK = {"preset": "small", "pretrain_epochs": 8, "epochs": 4}


def run_deep(options: argparse.Namespace) -> bool:
    origin = common.provenance("experiments/counterfactual")
    if options.commit:
        origin["commit"] = options.commit
    results = Path(options.results) if options.results else HERE / "results_deep.csv"
    plan = deep.Plan(
        results,
        sets=tuple(options.sets.split(",")) if options.sets else deep.SETS,
        seeds=tuple(range(options.seeds)),
        weights=tuple(map(float, options.weights.split(","))) if options.weights else deep.WEIGHTS,
        balances=tuple(options.balances.split(",")) if options.balances else deep.BALANCES,
        device=options.device,
        end=time.time() + 60 * options.minutes,
        origin=origin,
    )
    if options.quick:
        plan = replace(
            plan, sets=("digits",), seeds=(0,), weights=(0.3,), keep=500, options=DEEP_QUICK
        )
    return deep.run(plan, options.jobs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stage", choices=("deep",))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--results", help="CSV of the deep stage")
    parser.add_argument("--sets", help="of the deep stage, comma-separated")
    parser.add_argument("--seeds", type=int, default=10, help="of the deep stage")
    parser.add_argument("--weights", help="of the separation in the deep stage, comma-separated")
    parser.add_argument("--balances", help="of the losses in the deep stage: printed,means")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--commit")
    options = parser.parse_args()
    common.data_folder()
    return 0 if run_deep(options) else 1


if __name__ == "__main__":
    sys.exit(main())
