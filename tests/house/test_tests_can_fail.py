"""Every test can fail, uses seeded data and gives a reason where it skips, beyond ruff's rules."""

from __future__ import annotations

import pytest
from deadtests import defects, unseeded
from golden import ROOT

TESTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "experiments").rglob("test_*.py")]
}


def test_every_test_can_fail():
    found = {name: defects(source) for name, source in TESTS.items()}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_all_random_data_are_seeded():
    found = {name: unseeded(source) for name, source in TESTS.items()}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


PLANTED = {
    "nothing asserted": "def test_a():\n    f()",
    "nothing asserted in a class": "class TestA:\n    def test_a(self):\n        f()",
    "bare and": "def test_a():\n    f() == 3 and h() == 4\n    assert g()",
    "bare not": "def test_a():\n    not f()\n    assert g()",
    "allclose dropped": "def test_a():\n    np.allclose(f(), 3)\n    assert g()",
    "approx dropped": "def test_a():\n    pytest.approx(f())\n    assert g()",
    "array_equal dropped": "def test_a():\n    np.array_equal(f(), 3)\n    assert g()",
    "all dropped": "def test_a():\n    (f() == 3).all()\n    assert g()",
    "assert True": "def test_a():\n    assert True",
    "assert a number": "def test_a():\n    assert 1",
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
    "import or skip without reason": "torch = pytest.importorskip('torch')",
    "import or skip of our own": "x = pytest.importorskip('wellsep.x', reason='no y')",
    "import or skip of all tests": "np = pytest.importorskip('numpy', reason='no y')",
    "helper that does not assert": "def h(x):\n    return x\ndef test_a():\n    h(1)",
}

SOUND = {
    "assert": "def test_a():\n    assert f() == 3",
    "raises": "def test_a():\n    with pytest.raises(ValueError):\n        f()",
    "must raise": "def test_a():\n    with pytest.raises(TypeError):\n        not f()",
    "warns": "def test_a():\n    with pytest.warns(UserWarning, match='x'):\n        f()",
    "numpy": "def test_a():\n    np.testing.assert_allclose(f(), 3)",
    "estimator": "def test_a():\n    check_estimator(f())",
    "own helper": "def h(x):\n    assert x\ndef g(x):\n    h(x)\ndef test_a():\n    g(1)",
    "if with else": "def test_a():\n    if f():\n        assert g()\n    else:\n        assert h()",
    "loop": "def test_a():\n    for x in (1, 2):\n        assert f(x)",
    "same call twice": "def test_a():\n    assert f(1) == f(1)",
    "skip with reason": "@pytest.mark.skipif(x, reason='no y')\ndef test_a():\n    assert f()",
    "skip call with reason": "def test_a():\n    pytest.skip('no y')\n    assert f()",
    "import or skip": "torch = pytest.importorskip('torch', reason='no y')",
    "import or skip of any": "def test_a(x):\n    assert pytest.importorskip(x, reason='no y').y",
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
        ("rng = np.random.RandomState()", 1),
        ("rng = np.random.default_rng(0)", 0),
        ("rng = np.random.RandomState(3)", 0),
        ("X = rng.random((3, 2))", 0),
    ],
)
def test_unseeded_random_numbers_are_found(source, count):
    assert len(unseeded(source)) == count
