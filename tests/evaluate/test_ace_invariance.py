"""ACE's answer knows nothing of how clusters are called, objects ordered, or spaces turned."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from ace_golden import case_names, case_runs
from scipy.stats import ortho_group

from wellsep.evaluate import AceResult, NothingToRank, ace, score_runs
from wellsep.runs import Run, Runs

# all three keep their values when a space is turned or moved; the dip's projection does too
INDICES = ("silhouette", "calinski_harabasz", "davies_bouldin")


def answers(runs: Runs) -> dict[str, AceResult | None]:
    scores = score_runs(runs, INDICES, projection="pca", details=False)
    found: dict[str, AceResult | None] = {}
    for index in INDICES:
        try:
            found[index] = ace(scores, index=index)
        except NothingToRank:
            found[index] = None
    return found


@functools.cache
def plain(case: str) -> dict[str, AceResult | None]:
    return answers(case_runs(case))


def differences(first: dict, second: dict) -> list:
    wrong = []
    for index in INDICES:
        a, b = first[index], second[index]
        if (a is None) != (b is None):
            wrong.append((index, a, b))
        elif a is not None and a.winner.spaces != b.winner.spaces:
            wrong.append((index, a.winner.spaces, b.winner.spaces))
        elif a is not None and np.abs(a.scores - b.scores).max() > 1e-8 * np.abs(a.scores).max():
            wrong.append((index, a.scores, b.scores))
    return wrong


# Half of the cases tell as much; the others run with the slow tests.
FEW = [
    pytest.param(case, marks=[] if i % 2 == 0 else [pytest.mark.slow])
    for i, case in enumerate(case_names())
]


@pytest.mark.parametrize("case", case_names())
def test_names_of_clusters_change_nothing(case):
    rng = np.random.default_rng(1)
    renamed = []
    for run in case_runs(case):
        names = np.array([f"cluster {i}" for i in rng.permutation(run.labels.max() + 1)])
        renamed.append(Run(run.name, labels=names[run.labels], embedding=run.embedding))
    assert differences(plain(case), answers(Runs(renamed))) == []


@pytest.mark.parametrize("case", FEW)
def test_order_of_objects_changes_nothing(case):
    runs = case_runs(case)
    order = np.random.default_rng(2).permutation(runs.n_objects)
    moved = [Run(r.name, labels=r.labels[order], embedding=r.embedding[order]) for r in runs]
    assert differences(plain(case), answers(Runs(moved))) == []


@pytest.mark.parametrize("case", FEW)
def test_turning_and_moving_a_space_changes_nothing(case):
    rng = np.random.default_rng(3)
    turned = []
    for run in case_runs(case):
        d = run.embedding.shape[1]
        turn = ortho_group.rvs(d, random_state=rng) if d > 1 else np.array([[-1.0]])
        space = run.embedding @ turn + rng.normal(size=d) * run.embedding.std()
        turned.append(Run(run.name, labels=run.labels, embedding=space))
    assert differences(plain(case), answers(Runs(turned))) == []
