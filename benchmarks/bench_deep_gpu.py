"""What does the k-means inside IDEC cost where eight processes train on one card?

Forty fits of 1,500 × 16 with 80 + 30 epochs. The baseline is the same training whose centres start
from scikit-learn's k-means on the host. Before anything is timed, both must reach the same cost on
the same latent points. Processes and their first fits on the card are not counted.
"""

from __future__ import annotations

import multiprocessing
import sys
from functools import partial
from typing import Any

import numpy as np
import sklearn.cluster

import wellsep as ws
from benchmarks.device import require_cuda
from benchmarks.harness import report, time_ratio

N, D, K = 1_500, 16, 10
EPOCHS = {"pretrain_epochs": 80, "epochs": 30, "tol": 0.0}  # 0: no training ends before
FITS, PROCESSES, REPEATS = 40, 8, 3
TARGET = 0.95  # the same program twice differs by so much


def blobs() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) + 2 * rng.normal(size=(K, D))[rng.integers(0, K, N)]


def fit(seed: int, *, host: bool, device: str) -> Any:
    """Train one IDEC; with ``host`` its centres start from scikit-learn's k-means."""
    import torch

    from wellsep.deep import IDEC, latent

    torch.set_num_threads(1)  # as in the processes of a sweep
    latent.KMeans = sklearn.cluster.KMeans if host else ws.KMeans
    return IDEC(K, **EPOCHS, device=device, random_state=seed).fit(blobs())


def costs_differ_by(device: str) -> float:
    """Relative difference of the k-means costs on the latent points of one fit."""
    import torch

    from wellsep.deep import latent

    points = fit(0, host=False, device=device).embedding_
    ours = latent.kmeans(torch.tensor(points, device=device), K, n_init=20, seed=0)
    cost = float(((points - ours.cluster_centers_[ours.labels_]) ** 2).sum())
    theirs = sklearn.cluster.KMeans(K, n_init=20, random_state=0).fit(points).inertia_
    return abs(cost - theirs) / theirs


def train_one(seed: int, *, host: bool, device: str) -> None:
    """Train and keep nothing: a fitted model need not come back from its process."""
    fit(seed, host=host, device=device)


def measure(device: str = "cuda", fits: int = FITS, processes: int = PROCESSES) -> bool:
    difference = costs_differ_by(device)
    if difference > 1e-3:
        raise SystemExit(f"k-means must reach scikit-learn's cost, off by {difference:.2g}")
    with multiprocessing.get_context("spawn").Pool(processes) as pool:

        def train(host: bool) -> None:
            pool.map(partial(train_one, host=host, device=device), range(fits), chunksize=1)

        train(host=True)  # contexts and kernels of the card
        measured = time_ratio(partial(train, True), partial(train, False), REPEATS)
    return report(
        f"{fits} fits of IDEC, {N:,} × {D}, {processes} processes on one card",
        measured,
        baseline="the same with scikit-learn's k-means on the host",
        target=TARGET,
        cost_off=difference,
        seed=0,
    )


def main() -> int:
    require_cuda()
    return 0 if measure() else 1


if __name__ == "__main__":
    sys.exit(main())
