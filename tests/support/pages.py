"""Small results that the tests of the page and of the plots share; made once."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

import wellsep as ws
from wellsep.records import Judgement

INJECTION = "<img src=x onerror=alert(1)>"
CLOSING = "</script><script>alert(2)</script>"
FORMULA = '=HYPERLINK("http://example.invalid")'


@functools.cache
def small_runs(n_runs: int = 8, n: int = 240) -> tuple[ws.Runs, np.ndarray]:
    """Runs of three blobs in four columns, good and poor; the last two spaces have one mode."""
    rng = np.random.default_rng(7)
    truth = np.arange(n) % 3
    centres = np.array([[0.0, 0, 0, 0], [20, 0, 9, 2], [0, 20, 0, 9]])
    runs = []
    for i in range(n_runs):
        flat = i >= n_runs - 2
        spread = 1 + 0.25 * (i % 3)
        means = 0.0 if flat else centres[truth]
        space = means + rng.normal(0, spread, (n, 4))
        labels = truth.copy()
        moved = rng.permutation(n)[: 12 * i]
        labels[moved] = rng.integers(0, 3 + i % 2, len(moved))
        runs.append(
            ws.Run(
                NAMES[i] if i < len(NAMES) else f"run {i}",
                labels=labels,
                embedding=space,
                params={"lr": 10.0**-i, "model": ("jule", "depict")[i % 2], "epochs": 50},
                ids=[f"object <{j}>" for j in range(n)],
            )
        )
    return ws.Runs(runs), truth


NAMES = ("first", INJECTION, CLOSING, FORMULA, 'quoted "&" \u2028 {{ 7 * 7 }}')


@functools.cache
def small_judgement():
    """A judgement of `small_runs` by two indices, with half-samples."""
    runs, _ = small_runs()
    return ws.judge(runs, ["silhouette", "davies_bouldin"], n_draws=6)


@functools.cache
def small_choice():
    """K chosen on three blobs: (ChosenK, data, truth)."""
    runs, truth = small_runs()
    X = np.asarray(runs.spaces["first"])
    indices = ["silhouette", "davies_bouldin"]
    return ws.choose_k(X, range(2, 6), indices=indices, n_repeats=2, random_state=0), X, truth


@functools.cache
def small_stability():
    """The stability of four clusters on three blobs; one blob is cut in two."""
    X = np.asarray(small_runs()[0].spaces["first"])
    model = ws.KMeans(4, n_init=3, random_state=0)
    return ws.stability(model, X, n_draws=12, n_splits=4, random_state=0)


def judged_by_ace(scores: ws.Scores, **options: Any) -> Judgement:
    """The judgement of a table of scores: ACE alone, no vote, no half-samples."""
    answer = ws.ace(scores, **options)
    return Judgement(scores, {"ace": {answer.index: answer}})


def grouped_scores() -> ws.Scores:
    """Six spaces in two groups that contradict each other, one constant, one without modes."""
    good, bad = np.array([0.1, 0.5, 0.3, 0.4, 0.2]), np.array([0.4, 0.1, 0.2, 0.0, 0.3])
    ripple = 0.01 * np.array([[0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
    rows = [*(good + ripple + 0.3), *(bad + ripple), np.full(5, 0.2), good]
    pvalues = [1e-4] * 7 + [0.9]
    return ws.Scores.from_matrix(
        rows, index="silhouette", partitions=list("abcde"), dip_pvalues=pvalues, paired=False,
        spaces=[*(f"good {i}" for i in range(3)), *(f"bad {i}" for i in range(3)), "flat", "plain"],
    )  # fmt: skip


def unpack_plane(packed: Mapping[str, Any]) -> np.ndarray:
    """The coordinates that `pack_plane` packed, to within half a step of the grid."""
    three = np.frombuffer(base64.b64decode(packed["b"]), np.uint8).reshape(-1, 3).astype(int)
    x = three[:, 0] << 4 | three[:, 1] >> 4
    y = (three[:, 1] & 15) << 8 | three[:, 2]
    return np.column_stack([packed["x"] + x * packed["s"], packed["y"] + y * packed["s"]])
