"""Every test of this project can fail, uses seeded data, and gives a reason where it skips."""

from __future__ import annotations

from pathlib import Path

import pytest
from deadtests import defects, unseeded
from golden import ROOT

TESTS = sorted(
    path for folder in ("tests", "experiments/tests") for path in (ROOT / folder).rglob("*.py")
)


def name_of(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_the_tests_of_this_file_can_fail(path):
    assert defects(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_the_random_data_of_this_file_are_seeded(path):
    assert unseeded(path.read_text(encoding="utf-8")) == []


PLANTED = {
    "nothing asserted": "def test_a():\n    f()",
    "nothing asserted in a class": "class TestA:\n    def test_a(self):\n        f()",
    "bare comparison": "def test_a():\n    f() == 3\n    assert g()",
    "bare comparison chain": "def test_a():\n    0 < f() < 3\n    assert g()",
    "bare and": "def test_a():\n    f() == 3 and h() == 4\n    assert g()",
    "bare not": "def test_a():\n    not f()\n    assert g()",
    "allclose dropped": "def test_a():\n    np.allclose(f(), 3)\n    assert g()",
    "approx dropped": "def test_a():\n    pytest.approx(f())\n    assert g()",
    "array_equal dropped": "def test_a():\n    np.array_equal(f(), 3)\n    assert g()",
    "all dropped": "def test_a():\n    (f() == 3).all()\n    assert g()",
    "assert True": "def test_a():\n    assert True",
    "assert a number": "def test_a():\n    assert 1",
    "assert a string": "def test_a():\n    assert 'works'",
    "assert a tuple": "def test_a():\n    assert (f() == 3, 'message')",
    "assert a list": "def test_a():\n    assert [f() == 3]",
    "assert a generator": "def test_a():\n    assert (x > 0 for x in f())",
    "assert a lambda": "def test_a():\n    assert lambda: f() == 3",
    "assert approx alone": "def test_a():\n    assert pytest.approx(f())",
    "assert an uncalled method": "def test_a():\n    assert (f() == 3).all",
    "or True": "def test_a():\n    assert f() == 3 or True",
    "itself": "def test_a():\n    x = f()\n    assert x.y == x.y",
    "only under if": "def test_a():\n    if f():\n        assert g()",
    "only under nested if": "def test_a():\n    for x in f():\n        if x:\n            assert x",
    "swallowed": "def test_a():\n    try:\n        assert f()\n    except Exception:\n        pass",
    "bare except": "def test_a():\n    try:\n        assert f()\n    except:\n        pass",
    "skip mark without reason": "@pytest.mark.skip\ndef test_a():\n    assert f()",
    "skipif without reason": "@pytest.mark.skipif(x)\ndef test_a():\n    assert f()",
    "xfail without reason": "@pytest.mark.xfail(strict=True)\ndef test_a():\n    assert f()",
    "skip call without reason": "def test_a():\n    pytest.skip()\n    assert f()",
    "helper that does not assert": "def h(x):\n    return x\ndef test_a():\n    h(1)",
}

SOUND = {
    "assert": "def test_a():\n    assert f() == 3",
    "raises": "def test_a():\n    with pytest.raises(ValueError):\n        f()",
    "must raise": "def test_a():\n    with pytest.raises(TypeError):\n        f() < 3",
    "warns": "def test_a():\n    with pytest.warns(UserWarning, match='x'):\n        f()",
    "numpy": "def test_a():\n    np.testing.assert_allclose(f(), 3)",
    "estimator": "def test_a():\n    check_estimator(f())",
    "own helper": "def h(x):\n    assert x\ndef g(x):\n    h(x)\ndef test_a():\n    g(1)",
    "if with else": "def test_a():\n    if f():\n        assert g()\n    else:\n        assert h()",
    "loop": "def test_a():\n    for x in (1, 2):\n        assert f(x)",
    "same call twice": "def test_a():\n    assert f(1) == f(1)",
    "skip with reason": "@pytest.mark.skipif(x, reason='no y')\ndef test_a():\n    assert f()",
    "skip call with reason": "def test_a():\n    pytest.skip('no y')\n    assert f()",
    "skip by and": "def test_a():\n    f() and pytest.skip('no y')\n    assert g()",
    "not a test": "def build():\n    return 3",
    "cleanup in try": "def test_a():\n    try:\n        assert f()\n    finally:\n        g()",
    "docstring": "def test_a():\n    'Says what.'\n    assert f()",
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_a_planted_test_that_cannot_fail_is_found(source):
    assert len(defects(source)) == 1


@pytest.mark.parametrize("source", SOUND.values(), ids=SOUND)
def test_a_sound_test_is_let_through(source):
    assert defects(source) == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("rng = np.random.default_rng()", 1),
        ("X = np.random.rand(3)", 1),
        ("np.random.seed(0)", 1),
        ("rng = np.random.default_rng(0)", 0),
        ("rng = np.random.RandomState(3)", 0),
        ("X = rng.random((3, 2))", 0),
    ],
)
def test_unseeded_random_numbers_are_found(source, count):
    assert len(unseeded(source)) == count
