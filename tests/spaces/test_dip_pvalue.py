"""The p-value of the dip test: near R's where R is right, near simulation everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from golden import ROOT, read_arrays, read_json
from scipy.stats import kstest

from wellsep.compute.engine import kernel_choice
from wellsep.spaces import dip_null as null
from wellsep.spaces import dip_statistic, dip_test, null_dips
from wellsep.spaces.dip_null import NullTable, null_table, smallest_share, table_pvalue

LARGER_THAN_TEN = [
    *["unif_n50", "normal_n200", "bimodal_n150", "trimodal_n300", "expo_n100", "ties_n120"],
    *["weak_bimodal_n1000", "two_values_n20", "equispaced_n30", "cauchy_n500", "big_n20000"],
    *["beyond_table_n80000", "table_n100", "table_n72000"],
]
SIMULATED_ELSEWHERE = [
    *["unif_n50", "normal_n200", "bimodal_n150", "trimodal_n300", "expo_n100", "ties_n120"],
    *["weak_bimodal_n1000", "n4", "n5", "constant_n10", "two_values_n20", "equispaced_n30"],
    *["cauchy_n500", "table_n100"],
]


def sample(name):
    golden = read_json("indices/dip_samples.json")["samples"][name]
    return read_arrays("indices/dip_samples.npz")[name], golden


@pytest.mark.parametrize("name", LARGER_THAN_TEN)
def test_the_table_agrees_with_that_of_r_to_a_hundredth(name):
    x, golden = sample(name)
    assert dip_test(x).pvalue == pytest.approx(golden["R_p_table"], abs=0.01)


@pytest.mark.parametrize("name", SIMULATED_ELSEWHERE)
def test_the_table_agrees_with_a_hundred_thousand_simulations_of_another_program(name):
    # Four standard errors of those simulations at most; R's own table is off by up to .009.
    x, golden = sample(name)
    assert dip_test(x).pvalue == pytest.approx(golden["py_p_boot_1e5_seed12345"], abs=0.0065)


@pytest.mark.parametrize("name", ["unif_n50", "bimodal_n150", "n4", "n5", "weak_bimodal_n1000"])
def test_simulated_dips_agree_with_the_two_thousand_simulations_of_r(name):
    x, golden = sample(name)
    p = np.mean(null_dips(len(x), 2000, random_state=0) >= dip_statistic(x) * (1 - 1e-9))
    expected = float(golden["R_p_mc2000_seed1"])
    error = np.sqrt(2 * max(expected * (1 - expected), 1e-4) / 2000)
    assert p == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("n", [4, 5, 7, 11, 18, 33, 64, 150, 420])
def test_p_values_of_uniform_samples_are_uniform(n):
    dips = null_dips(n, 3000, random_state=n)
    p = np.array([table_pvalue(n, dip) for dip in dips])
    # Where the smallest dip has positive probability p jumps from below to 1: look below it.
    jump = np.mean(p == 1)
    assert kstest(p[p < 1] / (1 - jump), "uniform").statistic < 0.035


@pytest.mark.parametrize("n", [4, 5, 6, 8])
def test_the_smallest_dip_of_small_samples_has_p_one(n):
    # R averages tied quantiles here and answers .903 for five equally spaced values.
    assert dip_test(np.arange(n)).pvalue == 1
    dips = null_dips(n, 20_000, random_state=1)
    smallest = np.mean(dips * 2 * n <= 1 + 1e-9)
    assert smallest == pytest.approx(2 ** (n - 2) / factorial(n - 1), abs=0.012)
    assert smallest_share(n) == pytest.approx(2 ** (n - 2) / factorial(n - 1))
    assert table_pvalue(n, 1.0001 / (2 * n)) == pytest.approx(1 - smallest_share(n), abs=1e-3)


def test_the_share_of_smallest_dips_is_that_of_orders_with_one_valley():
    orders = list(permutations(range(5)))
    positions = [np.cumsum([0, *(1.7 ** np.array(order))]) for order in orders]
    smallest = [dip_statistic(x) * 12 <= 1 + 1e-9 for x in positions]
    valleys = [all(np.diff(np.sign(np.diff(order))) >= 0) for order in orders]
    assert smallest == valleys
    assert np.mean(smallest) == pytest.approx(smallest_share(6))


@pytest.mark.parametrize("x", [[1], [1, 2], [1, 1, 9], [0, 1, 50], [7] * 3])
def test_up_to_three_values_prove_nothing(x):
    assert dip_test(x).pvalue == 1
    assert (null_dips(len(x), 10, random_state=0) >= dip_statistic(x) * (1 - 1e-9)).all()


@pytest.mark.parametrize("n", [4, 13, 30, 47, 900, 49_999, 50_000, 10**7])
def test_p_falls_as_the_dip_grows_and_never_reaches_zero(n):
    dips = np.linspace(1 / (2 * n), 0.25, 3000)
    p = np.array([table_pvalue(n, dip) for dip in dips])
    assert p[0] == 1
    assert (np.diff(p) <= 1e-12).all()
    assert p[-1] == null_table().bound == 1e-5


def test_beyond_the_last_row_the_last_row_is_used():
    n = int(null_table().n[-1])
    assert table_pvalue(4 * n, 0.5 * 0.0018) == pytest.approx(table_pvalue(n, 0.0018), rel=1e-9)
    assert 0.01 < table_pvalue(n, 0.0018) < 0.99


def test_a_p_value_at_the_bound_says_so():
    two = np.repeat([0.0, 1.0], 50)
    assert dip_test(two).at_bound
    assert not dip_test(np.arange(100)).at_bound


@pytest.mark.parametrize("state", [5, np.random.RandomState(5)])
def test_one_seed_gives_one_answer(state):
    first = null_dips(20, 30, random_state=5)
    again = null_dips(20, 30, random_state=5)
    other = null_dips(20, 30, random_state=state)
    assert np.array_equal(first, again)
    assert np.array_equal(first, other) == isinstance(state, int)


def test_the_table_is_what_it_promises():
    table = null_table()
    assert isinstance(table, NullTable)
    assert (np.diff(table.n) > 0).all()
    assert table.n[0] == 4
    assert table.n[-1] == 50_000
    assert table.simulations.min() >= 100_000
    assert (table.simulations[table.n <= 200] >= 1_000_000).all()
    assert (np.diff(table.quantiles, axis=1) >= 0).all()
    assert (ROOT / "src/wellsep/spaces/dip_null.csv").stat().st_size < 100_000


def test_smoothing_moves_no_quantile_by_more_than_its_error():
    # Fifty thousand fresh samples at a smoothed size: the table must not be a picture of itself.
    pytest.importorskip("numba", reason="fifty thousand samples need the extra `fast`")
    dips = null_dips(300, 50_000, random_state=12)
    for p in (0.0005, 0.01, 0.1, 0.5, 0.9, 0.99):
        error = np.sqrt(p * (1 - p) / 50_000)
        assert table_pvalue(300, np.quantile(dips, 1 - p)) == pytest.approx(p, abs=4 * error)


@pytest.mark.parametrize("n", [4, 5, 17, 250, 3000])
def test_the_compiled_twin_equals_its_reference(n, monkeypatch):
    pytest.importorskip("numba", reason="the compiled twin is the extra `fast`")
    monkeypatch.setattr(kernel_choice, "PAYS_FROM", 0)
    compiled = null_dips(n, 40, random_state=n)
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    assert null.quickest_dips(10**6, n) is null.dips_of_rows
    assert compiled == pytest.approx(null_dips(n, 40, random_state=n), abs=1e-13)


def test_ties_and_modes_are_the_same_to_the_compiled_twin():
    pytest.importorskip("numba", reason="the compiled twin is the extra `fast`")
    from wellsep.spaces import dip_numba as twin
    from wellsep.spaces.dip_hulls import dip_of_steps

    rng = np.random.default_rng(11)
    for _ in range(200):
        x = rng.integers(0, 30, size=rng.integers(2, 60)) ** rng.uniform(0.3, 3)
        v, counts = np.unique(x, return_counts=True)
        upto = np.cumsum(counts).astype(float)
        scratch = np.empty((4, len(v)), np.int32)
        height, first, last = twin.dip_of_steps(v, upto - counts, upto, scratch)
        expected = dip_of_steps(v, upto - counts, upto)
        assert height == pytest.approx(expected.height, abs=1e-11)
        assert (first, last) == (expected.first, expected.last)


def test_a_dip_test_by_table_loads_no_compiler():
    code = "import sys, wellsep.spaces as s; s.dip_test(range(99)); print('numba' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert answer.stdout.strip() == "False"


@pytest.mark.slow
@pytest.mark.parametrize("n", [37, 170, 600, 2400, 16_000])
def test_between_its_rows_the_table_agrees_with_simulation(n):
    pytest.importorskip("numba", reason="twenty thousand samples need the extra `fast`")
    dips = null_dips(n, 20_000, random_state=2 * n)
    for p in (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95):
        error = np.sqrt(p * (1 - p) / 20_000)
        assert table_pvalue(n, np.quantile(dips, 1 - p)) == pytest.approx(p, abs=5 * error)
