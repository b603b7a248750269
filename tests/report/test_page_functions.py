"""The functions of the page's scripts that need no page: numbers, tables and the filter."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from browsing import NEEDS_CHROMIUM
from golden import ROOT
from pages import unpack_plane

from wellsep.report.pack import pack, pack_bits, pack_codes, pack_plane

pytestmark = NEEDS_CHROMIUM
FOLDER = ROOT / "src" / "wellsep" / "report" / "template"


@pytest.fixture(scope="module")
def run(browser):
    """A function that evaluates an expression with the pure scripts loaded, and an argument."""
    context = browser.new_context()
    page = context.new_page()
    page.set_content('<script type="application/json" id="data">{}</script>')
    scripts = ("core.js", "charts.js", "filter.js")
    page.add_script_tag(content="\n".join((FOLDER / name).read_text("utf-8") for name in scripts))
    yield lambda expression, given=None: page.evaluate(f"(given) => {expression}", given)
    context.close()


@pytest.mark.parametrize(
    ("packed", "values"),
    [
        (pack([0, 7, 255], "u1"), [0, 7, 255]),
        (pack([0, 65535], "u2"), [0, 65535]),
        (pack([-5, 2_000_000_000], "i4"), [-5, 2_000_000_000]),
        (pack([0.5, -2.25], "f4"), [0.5, -2.25]),
        (pack_bits([True] * 3 + [False] * 6 + [True]), [1, 1, 1, 0, 0, 0, 0, 0, 0, 1]),
    ],
)
def test_packed_arrays_come_back_as_they_were(run, packed, values):
    assert run("Array.from(W.decode(given))", packed) == values


def test_noise_is_minus_one_in_one_byte_and_in_two(run):
    for k in (3, 300):
        assert run("Array.from(W.codes(given))", pack_codes([0, -1, 2], k)) == [0, -1, 2]


def test_a_plane_comes_back_to_half_a_step_of_its_grid(run):
    packed = pack_plane(np.random.default_rng(0).normal(size=(20, 2)) * [3, 40])
    found = run(
        "(({x, y, toX, toY}) => [...x].map((v, i) => [toX(v), toY(y[i])]))(W.decode(given))", packed
    )
    np.testing.assert_allclose(found, unpack_plane(packed), rtol=1e-12)


def test_the_place_of_a_pair_is_that_of_the_upper_triangle(run):
    rows, columns = np.triu_indices(6, 1)
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert run("given.map(([i, j]) => W.pairAt(i, j, 6))", pairs) == list(range(15))
    assert run("given.map(([i, j]) => W.pairAt(j, i, 6))", pairs) == list(range(15))


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (None, None, "–"),
        (0.123456, None, "0.1235"),
        (12, None, "12"),
        (0.5, "share", "50%"),
        ([1, 4], "interval", "1–4"),
        (True, None, "yes"),
    ],
)
def test_a_cell_is_shown_as_text(run, value, kind, shown):
    assert run("W.show(...given)", [value, kind]) == shown


def test_ticks_are_round_numbers_inside_the_range(run):
    assert run("W.ticks(0, 1, 5)") == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert run("W.ticks(-130, 90, 4)") == [-100, 0]
    assert run("W.ticks(2, 10, 5)") == [2, 4, 6, 8, 10]


def test_a_range_passes_over_what_is_no_number_and_is_never_empty(run):
    assert run("W.range([3, null, NaN, -1])") == [-1, 3]
    assert run("W.range([2, 2])") == [1.5, 2.5]
    assert run("W.range([])") == [0, 1]
    assert run("W.scale(0, 10, 100, 200)(2.5)") == 125


def test_long_names_are_cut_and_signs_that_turn_text_are_marked(run):
    assert run("W.cut('abcdef', 4)") == "abc…"
    assert run("W.cut('abcd', 4)") == "abcd"
    assert run("W.plain('a\\u202Eb')") == "a␣b"


def test_csv_keeps_quotes_and_lines_and_disarms_formulas(run):
    table = {
        "columns": ["a", "b"],
        "rows": [['x "y", z', "=1+1"], [None, 0.5], ["-3", "two\nlines"]],
    }
    found = list(csv.reader(io.StringIO(run("W.csv(given)", table), newline="")))
    assert found[1:] == [['x "y", z', "'=1+1"], ["", "0.5"], ["'-3", "two\nlines"]]
    assert run("W.records(given)", table)[1] == {"a": None, "b": 0.5}


FILTER = """(() => {
  const column = (label, kind, values) => ({label, kind, values});
  const all = [column('run', 'name', ['net a', 'net b', 'other']), column('K', 'int', [3, 5, 10]),
    column('first in', 'share', [0.5, 0.25, null]),
    column('space', 'text', ['PCA 20', 'UMAP', 'PCA 2']),
    column('rank interval', 'interval', [[1, 3], [2, 4], [3, 3]])];
  const known = all.map((c) => [c.label.toLowerCase(), c]);
  const texts = ['net a pca 20', 'net b umap', 'other pca 2'];
  const {wrong, any} = W.understand(given, known, (i) => texts[i]);
  return [[0, 1, 2].filter((i) => any.some((tests) => tests.every((test) => test(i)))), wrong];
})()"""


@pytest.mark.parametrize(
    ("text", "rows", "wrong"),
    [
        ("", [0, 1, 2], []),
        ("net", [0, 1], []),
        ("-net", [2], []),
        ('"net b"', [1], []),
        ("K>=5", [1, 2], []),
        ("K >= 5 space=pca", [2], []),
        ("K=3 OR K=10", [0, 2], []),
        ("-K=3", [1, 2], []),
        ('"first in">20%', [0, 1], []),
        ("first in > .3", [0], []),
        ("rank interval<=2", [0, 1], []),
        ('space="PCA 20"', [0], []),
        ("space!=pca", [1], []),
        ("colour=red", [0, 1, 2], ["there is no column colour"]),
        ("K>many", [0, 1, 2], ['"many" is no number']),
        ("space>3", [0, 1, 2], ["space holds words, which > does not compare"]),
    ],
)
def test_the_filter_understands_words_and_comparisons(run, text, rows, wrong):
    assert run(FILTER, text) == [rows, wrong]
