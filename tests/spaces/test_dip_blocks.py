"""Leaving out blocks of points, and compiling, change no dip: each is that of every point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from wellsep.compute.engine import kernel_choice
from wellsep.spaces import dip_statistic, dip_test
from wellsep.spaces.dip import nearest_unimodal
from wellsep.spaces.dip_hulls import BLOCK, FEW, MANY, dip_of_steps, majorant, minorant

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "bimodal": lambda rng, n: rng.normal(size=n) + 4 * rng.integers(0, 2, size=n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "rounded": lambda rng, n: rng.normal(size=n).round(2),
    "clumped": lambda rng, n: np.where(rng.random(n) < 0.4, 0.3, rng.exponential(size=n)),
    "lattice": lambda rng, n: np.arange(n) * 0.1 + rng.integers(0, 3, size=n),
    "quantiles": lambda rng, n: norm.ppf((np.arange(n) + 0.5) / n) + 1e-9 * rng.random(n),
    "arcs": lambda rng, n: np.cumsum(np.abs(np.sin(np.arange(n) / 900)) + 1e-3),
}
SIZES = [2, 3, FEW, FEW + 1, FEW + BLOCK, 1000, MANY - 1, MANY, MANY + 1, MANY + 2, 30_011]


def scanned(v, y) -> list:
    """Vertices of the convex minorant, every point in turn."""
    hull = [0]
    for i in range(1, len(v)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (v[i] - v[b]) < (y[i] - y[b]) * (v[b] - v[a]):
                break
            hull.pop()
        hull.append(i)
    return hull


def looked_at_everywhere(v, below, upto) -> tuple[float, int, int]:
    """The same rounds, with hulls scanned and heights taken at every point."""
    first, last, height = 0, len(v) - 1, 1.0
    while first < last:
        x, low, high = v[first : last + 1], below[first : last + 1], upto[first : last + 1]
        g = np.array(scanned(x.tolist(), low.tolist()))
        m = np.array(scanned(x.tolist(), (-high).tolist()))
        apart_g = np.interp(x[g], x[m], high[m]) - low[g]
        apart_m = high[m] - np.interp(x[m], x[g], low[g])
        if max(apart_g.max(), apart_m.max()) <= height:
            break
        if apart_g.max() > apart_m.max():
            start = int(g[apart_g.argmax()])
            stop = int(m[m >= start][0])
        else:
            stop = int(m[apart_m.argmax()])
            start = int(g[g <= stop][-1])
        over = (high - np.interp(x, x[g], low[g]))[:start]
        under = (np.interp(x, x[m], high[m]) - low)[stop + 1 :]
        height = max([height, *over, *under])
        first, last = first + start, first + stop
    return height, first, last


def steps(x):
    v, counts = np.unique(x, return_counts=True)
    upto = np.cumsum(counts).astype(float)
    return v, upto - counts, upto


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_dip_and_its_interval_are_those_of_looking_at_every_point(kind, n):
    v, below, upto = steps(KINDS[kind](np.random.default_rng(n), n))
    height, first, last = looked_at_everywhere(v, below, upto)
    found = dip_of_steps(v, below, upto)
    assert found.height == pytest.approx(height, abs=1e-15 * n * len(v) + 1e-12)
    assert (found.first, found.last) == (first, last)


@pytest.mark.parametrize("kind", ["normal", "rounded", "cauchy", "arcs"])
def test_hulls_found_by_blocks_are_those_of_a_scan(kind):
    v, below, upto = steps(KINDS[kind](np.random.default_rng(1), 20_000))
    assert minorant(v, below).tolist() == scanned(v.tolist(), below.tolist())
    assert majorant(v, upto).tolist() == scanned(v.tolist(), (-upto).tolist())


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_compiled_twin_finds_the_same_dip_and_interval(kind, n, monkeypatch):
    pytest.importorskip("numba", reason="the compiled twin is the extra `fast`")
    x = KINDS[kind](np.random.default_rng(n), n)
    monkeypatch.setattr(kernel_choice, "PAYS_FROM", 0)
    compiled = dip_test(x)
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    plain = dip_test(x)
    assert compiled.statistic == pytest.approx(plain.statistic, abs=1e-15)
    assert compiled.modal_interval == plain.modal_interval


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("exponent", [-1074, 1014])
def test_whole_numbers_have_the_same_dip_in_the_smallest_and_largest_unit(
    exponent, compiled, monkeypatch
):
    if compiled:
        pytest.importorskip("numba", reason="the compiled twin is the extra `fast`")
    monkeypatch.setenv("WELLSEP_KERNELS", "1" if compiled else "0")
    monkeypatch.setattr(kernel_choice, "PAYS_FROM", 0)
    x = np.random.default_rng(0).integers(-500, 500, 300).astype(float)
    unit = 2.0**exponent
    whole, scaled = dip_test(x), dip_test(x * unit)
    assert scaled.statistic == whole.statistic
    assert scaled.modal_interval == tuple(end * unit for end in whole.modal_interval)
    (heights, places), (same, moved) = nearest_unimodal(x), nearest_unimodal(x * unit)
    assert (same == heights).all()
    assert (moved == places * unit).all()


def test_a_sample_is_never_changed(monkeypatch):
    x = np.sort(np.random.default_rng(0).normal(size=500).round(1))
    before = x.copy()
    monkeypatch.setattr(kernel_choice, "PAYS_FROM", 0)
    dip_statistic(x)
    assert (x == before).all()


def test_single_dips_load_the_compiler_once_it_pays_and_not_before():
    pytest.importorskip("numba", reason="the compiled twin is the extra `fast`")
    code = (
        "import sys; from wellsep.spaces import dip_statistic, dip_null\n"
        "from wellsep.compute.engine import kernel_choice\n"
        "kernel_choice.PAYS_FROM = 3 * dip_null.ADDITIONS * (dip_null.PER_SAMPLE + 9)\n"
        "for _ in range(3): dip_statistic(range(9)); print('numba' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "WELLSEP_KERNELS": "1"},
    )
    assert answer.stdout.split() == ["False", "False", "True"]
