"""The same seed gives the same bits, however many threads there are."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FIT = """
import hashlib, sys, warnings
import numpy as np, wellsep as ws
warnings.simplefilter("ignore")
def digest(*parts):
    return hashlib.sha256(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest()
rng = np.random.default_rng(0)
for n, d, k, dtype in SIZES:
    X, weight = rng.normal(size=(n, d)).astype(dtype), rng.uniform(1, 2, n)
    makes = [ws.KMeans, lambda *a, **o: ws.KMeans(*a, metric="cosine", **o)]
    makes += [lambda *a, **o: ws.CFMeans(*a, max_moves=MOVES, **o), ws.LOFKMeans]
    for make in makes:
        for given in (None, weight):
            model = make(k, max_iter=4, random_state=0).fit(X, sample_weight=given)
            found = [model.cluster_centers_, model.labels_, model.inertia_, model.transform(X)]
            print(digest(*found, model.score(X)))
"""
TRAIN = """
import hashlib
import numpy as np, torch
from wellsep.deep import METHODS
X = np.random.default_rng(0).normal(size=(200, 30)).astype("f4")
for name in ("DEC", "DeepKMeans", "DeepCFMeans", "IDEC"):
    options = dict(epochs=2, pretrain_epochs=2, device="cpu", random_state=0)
    model = METHODS[name](3, deterministic=True, **options).fit(X)
    print(hashlib.sha256(model.embedding_.tobytes() + model.labels_.tobytes()).hexdigest())
"""


def _digests(code: str, threads: int) -> list[str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    "size",
    [(2000, 16, 12, "f8"), pytest.param((8000, 36, 30, "f4"), marks=pytest.mark.slow)],
    ids=lambda size: f"{size[0]} objects",
)
def test_clusterers_find_the_same_bits_with_one_thread_and_two(size):
    code = FIT.replace("SIZES", f"({size},)").replace("MOVES", "10" if size[0] < 8000 else "None")
    one = _digests(code, 1)
    assert len(one) == 8
    assert one == _digests(code, 2)


@pytest.mark.slow
def test_a_deterministic_training_ends_in_the_same_bits_with_one_thread_and_two():
    pytest.importorskip("torch", reason="deep clusterers need torch")
    one = _digests(TRAIN, 1)
    assert len(one) == 4
    assert one == _digests(TRAIN, 2)


def test_our_own_threads_are_as_many_as_blas_had():
    from wellsep._threads import effective_jobs, own_threads

    before = effective_jobs(None)
    with own_threads(), own_threads():
        assert effective_jobs(None) == before
    assert effective_jobs(None) == before
