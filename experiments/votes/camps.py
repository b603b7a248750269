"""Two camps on runs they were not found on: as they are, and with a planted nuisance family.

    python -m experiments.votes.camps FOLDER ...

Takes files of `wide_runs.py`. A share of the runs is replaced by noisy copies of one random
partition, 10 to 50 % of whose labels are shuffled.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import wellsep as ws
from experiments.votes.compare import DRAWN

SHARES = (0.3, 0.5)


def planted(labels: np.ndarray, clusters: int, share: float, rng: np.random.Generator):
    """The runs, of which a share shows something else."""
    nuisance = rng.integers(0, clusters, labels.shape[1])
    changed = labels.copy()
    for run in rng.permutation(len(labels))[: round(share * len(labels))]:
        n_shuffled = round(rng.uniform(0.1, 0.5) * labels.shape[1])
        some = rng.choice(labels.shape[1], n_shuffled, replace=False)
        changed[run] = nuisance
        changed[run, some] = nuisance[rng.permutation(some)]
    return changed


def main(folders: list[str]) -> None:
    told = {0.0: 0, **dict.fromkeys(SHARES, 0)}
    paths = [path for folder in folders for path in sorted(Path(folder).glob("[!.]*.npz"))]
    paths = [path for path in paths if not path.name.startswith(DRAWN)]
    for path in paths:
        with np.load(path) as file:
            labels, clusters = file["labels"].astype(int), int(np.median(file["K"]))
        rng = np.random.default_rng(0)
        told[0.0] += ws.consensus(labels).camps is not None
        for share in SHARES:
            told[share] += ws.consensus(planted(labels, clusters, share, rng)).camps is not None
    for share, times in told.items():
        print(f"{share:.0%} replaced: two camps in {times} of {len(paths)}")


if __name__ == "__main__":
    main(sys.argv[1:])
