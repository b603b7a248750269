"""The dip statistic is Hartigan's: equal to R's, to its definition, and to arithmetic by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from golden import read_arrays, read_json
from hypothesis import given
from hypothesis import strategies as st
from libraries import to_tensor
from scipy.optimize import linprog
from scipy.stats import beta, cauchy, expon, norm

from wellsep.spaces import dip_statistic, dip_test

SAMPLES = [
    *["unif_n50", "normal_n200", "bimodal_n150", "trimodal_n300", "expo_n100", "ties_n120"],
    *["weak_bimodal_n1000", "n4", "n5", "n3", "n1", "constant_n10", "two_values_n20"],
    *["equispaced_n30", "cauchy_n500", "big_n20000", "beyond_table_n80000", "table_n100"],
    "table_n72000",
]
# R takes the mirror image of the interval when both are equally good.
SAME_INTERVAL = sorted(set(SAMPLES) - {"n4", "two_values_n20"})


def dip_by_definition(x) -> float:
    """min over unimodal G of sup |F − G|, one linear program for each place of the mode.

    G is continuous and convex before the mode, concave after it, and may jump there. The unknowns
    are G at the distinct values, its left limit at the mode, and the distance.
    """
    v, counts = np.unique(x, return_counts=True)
    upto = np.cumsum(counts) / len(x)
    below = upto - counts / len(x)
    return min(_distance_with_mode(v, below, upto, mode) for mode in range(len(v)))


def _distance_with_mode(v, below, upto, mode) -> float:
    m = len(v)
    limit, distance = m, m + 1
    rows, right = [], []

    def require(terms, bound):
        row = np.zeros(m + 2)
        for column, factor in terms:
            row[column] += factor
        rows.append(row)
        right.append(bound)

    def rising(points, sign):
        """Slopes along the points rise (sign 1) or fall (sign −1), none is negative."""
        for (i, _), (j, _) in pairwise(points):
            require([(i, 1), (j, -1)], 0)
        for (i, a), (j, b), (k, c) in zip(points[:-2], points[1:-1], points[2:], strict=True):
            require(
                [(i, -sign / (b - a)), (j, sign / (b - a) + sign / (c - b)), (k, -sign / (c - b))],
                0,
            )

    for i in range(m):
        left = limit if i == mode else i
        require([(left, 1), (distance, -1)], below[i])
        require([(left, -1), (distance, -1)], -below[i])
        require([(i, 1), (distance, -1)], upto[i])
        require([(i, -1), (distance, -1)], -upto[i])
    require([(limit, 1), (mode, -1)], 0)
    rising([*enumerate(v[:mode]), (limit, v[mode])], 1)
    rising([(i, v[i]) for i in range(mode, m)], -1)
    cost = np.eye(m + 2)[distance]
    answer = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=[(0, 1)] * (m + 2))
    assert answer.status == 0
    return answer.fun


@pytest.mark.parametrize("name", SAMPLES)
def test_the_statistic_equals_that_of_r(name):
    expected = read_json("indices/dip_samples.json")["samples"][name]["R_dip"]
    x = read_arrays("indices/dip_samples.npz")[name]
    assert dip_statistic(x) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", SAME_INTERVAL)
def test_the_modal_interval_equals_that_of_r(name):
    x = read_arrays("indices/dip_samples.npz")[name]
    expected = read_json("indices/dip_samples.json")["samples"][name]["R_xl_xu"]
    assert dip_test(x).modal_interval == pytest.approx(np.atleast_1d(expected)[[0, -1]], rel=1e-12)


@pytest.mark.parametrize("seed", range(25))
def test_the_statistic_equals_its_definition_solved_as_linear_programs(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rng.integers(4, 16)) + 3 * rng.integers(0, 3)
    assert dip_statistic(x) == pytest.approx(dip_by_definition(x), abs=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_with_ties_the_statistic_equals_its_definition(seed):
    rng = np.random.default_rng(seed)
    x = rng.choice([0.0, 1.0, 1.5, 4.0, 9.0, 9.1], size=14, p=rng.dirichlet(np.ones(6)))
    # A constant sample alone departs: R's least value 1/(2n) stands for 0.
    assert dip_statistic(x) == pytest.approx(max(dip_by_definition(x), 1 / 28), abs=1e-9)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([5.0], 1 / 2),
        ([3.0, 3.0, 3.0], 1 / 6),
        ([0, 1], 1 / 4),
        ([0, 0, 1], 1 / 6),
        ([0, 1, 2, 3, 4], 1 / 10),
        # a point mass at the mode costs nothing, one elsewhere half its height
        ([0, *[1] * 100, 2], 1 / 204),
        ([0, 0, 1, 1], 1 / 4),
        ([0, 0, 0, 1], 1 / 8),
        # the majorant from (.1, 2) to (10.1, 4) passes 2·9.9/10 over the lower corner (10, 2)
        ([0, 0.1, 10, 10.1], 1.98 / 8),
    ],
)
def test_small_samples_agree_with_arithmetic_by_hand(x, expected):
    assert dip_statistic(x) == pytest.approx(expected, abs=1e-14)


def test_quantiles_of_unimodal_distributions_have_the_smallest_dip():
    q = (np.arange(3000) + 0.5) / 3000
    for x in (norm.ppf(q), expon.ppf(q), cauchy.ppf(q), q, q**2, np.sqrt(q), 1.01 ** -(3000 * q)):
        assert dip_statistic(x) == pytest.approx(1 / 6000, rel=1e-9)


def test_a_u_shape_is_far_from_one_mode():
    q = (np.arange(3000) + 0.5) / 3000
    assert dip_statistic(beta.ppf(q, 0.5, 0.5)) > 0.05


values = st.lists(
    st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3)),
    min_size=1,
    max_size=40,
)


@given(values)
def test_the_statistic_lies_between_its_bounds(x):
    assert 1 / (2 * len(x)) <= dip_statistic(x) <= max(0.25, 1 / (2 * len(x)))


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(x, random):
    shuffled = random.sample(x, len(x))
    assert dip_statistic(shuffled) == dip_statistic(x)


@given(values, st.sampled_from([-1.0, 0.25, -1024.0]))
def test_reversing_and_stretching_change_nothing(x, factor):
    assert dip_statistic(np.array(x) * factor) == pytest.approx(dip_statistic(x), abs=1e-13)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=60), st.integers(-(10**9), 10**9))
def test_shifting_changes_nothing(x, shift):
    assert dip_statistic(np.array(x) + shift) == pytest.approx(dip_statistic(x), abs=1e-13)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30), st.integers(2, 5))
def test_repeating_every_value_changes_only_the_floor(x, times):
    once, often = dip_statistic(x), dip_statistic(x * times)
    assert often == pytest.approx(once, abs=1e-13) or len(set(x)) == 1


def test_the_largest_and_the_smallest_floats_are_measured():
    huge = np.finfo(float).max
    assert dip_statistic([-huge, -huge, huge, huge]) == 0.25
    assert dip_statistic(np.array([0, 0, 5e-324, 5e-324])) == 0.25


def test_a_sample_with_many_hull_vertices_is_measured_in_linear_steps():
    # A zigzag on a parabola leaves points that only the stack scan removes.
    t = np.linspace(0, 1, 4001)
    x = np.sort(t**2 + 1e-7 * np.random.default_rng(3).random(4001))
    assert 1 / 8002 <= dip_statistic(x) < 3 / 8002


@pytest.mark.parametrize("kind", [list, tuple, np.float32, pl.Series, to_tensor])
def test_every_kind_of_vector_is_welcome(kind):
    assert dip_statistic(kind([0.0, 0.0, 0.0, 2.0, 2.0, 2.5])) == dip_statistic(
        [0, 0, 0, 2, 2, 2.5]
    )


@pytest.mark.parametrize(
    ("x", "error", "sentence"),
    [
        ([], ValueError, "x must have at least 1 value, got 0."),
        ([[1, 2], [3, 4]], ValueError, r"x must be one-dimensional, got shape \(2, 2\); reduce"),
        (3.0, ValueError, r"x must be one-dimensional, got shape \(\)"),
        ([1, float("nan")], ValueError, "x must be finite, got nan at 1; drop or impute it"),
        ([float("-inf"), 1], ValueError, "x must be finite, got -inf at 0"),
        (["a", "b"], TypeError, "x must be numeric, got an array of type"),
        ([1j, 2], TypeError, "x must be numeric, got an array of type complex128"),
    ],
)
def test_bad_samples_are_refused_with_a_sentence(x, error, sentence):
    with pytest.raises(error, match=sentence):
        dip_statistic(x)
