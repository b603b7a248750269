"""Deep clusterers are dataclasses: signature, docstring and type checkers name each parameter."""

from __future__ import annotations

import inspect
import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="deep clusterers need torch")

from sklearn.base import clone

from wellsep import deep
from wellsep.deep import DEC, METHODS, DeepClusterer

EVERY = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
SHARED = {
    "n_clusters": 8, "network": "auto", "epochs": None, "learning_rate": None, "batch_size": None,
    "preset": "auto", "device": "auto", "random_state": None, "checkpoint_dir": None,
    "checkpoint_every": None, "resume": True, "deterministic": False,
}  # fmt: skip


def defaults(cls):
    return {name: p.default for name, p in inspect.signature(cls).parameters.items()}


def entries(cls, title):
    """Names and sentences of a section, read without the code under test."""
    lines = inspect.getdoc(cls).splitlines()
    start = lines.index(title) + 2
    found = []
    for line in lines[start:]:
        if not line:
            break
        if line[0] != " ":
            found.append((line.split(" : ")[0], []))
        else:
            found[-1][1].append(line.strip())
    return [(name, " ".join(words)) for names, words in found for name in names.split(", ")]


def test_the_base_lists_the_twelve_parameters_all_methods_share():
    assert defaults(DeepClusterer) == SHARED
    common = set.intersection(*(set(defaults(method)) for method in METHODS.values()))
    assert common == set(SHARED)


@EVERY
def test_shared_parameters_have_the_shared_defaults(method):
    assert {name: defaults(method)[name] for name in SHARED} == SHARED
    assert method().get_params() == defaults(method)


@EVERY
def test_every_parameter_is_documented_once_in_the_order_of_the_signature(method):
    found = entries(method, "Parameters")
    assert [name for name, _ in found] == list(inspect.signature(method).parameters)
    assert all(sentence.endswith(".") for _, sentence in found)


@pytest.mark.parametrize("title", ["Parameters", "Attributes"])
@EVERY
def test_an_entry_that_refers_to_a_class_is_spelled_out_there(method, title):
    for name, sentence in entries(method, title):
        while referred := re.fullmatch(r"See `(\w+)`\.", sentence):
            there = getattr(deep, referred[1])
            assert there in method.__mro__[1:]
            sentence = dict(entries(there, title))[name]


@EVERY
def test_every_attribute_of_a_fitted_model_that_all_share_is_documented(method):
    names = [name for name, _ in entries(method, "Attributes")]
    assert len(names) == len(set(names))
    assert {name for name, _ in entries(DeepClusterer, "Attributes")} <= set(names)


@EVERY
def test_parameters_are_set_and_cloned_flat(method):
    model = method(10, epochs=3, device="cpu")
    assert (model.n_clusters, model.epochs, model.resume) == (10, 3, True)
    model.set_params(epochs=4, batch_size=32)
    expected = defaults(method) | {
        "n_clusters": 10, "epochs": 4, "batch_size": 32, "device": "cpu",
    }  # fmt: skip
    assert vars(model) == expected
    assert clone(model).get_params() == expected
    assert pickle.loads(pickle.dumps(model)).get_params() == expected


def test_an_unknown_parameter_is_refused_with_its_name_and_the_method_s():
    with pytest.raises(TypeError, match=r"^DEC\.\S+ got an unexpected keyword argument 'epoch'"):
        DEC(epoch=3)
    with pytest.raises(TypeError, match=r"^DEC\.\S+ takes from 1 to 2 positional arguments"):
        DEC(10, "auto")


def test_a_method_may_have_its_own_default():
    @dataclass(eq=False, repr=False, kw_only=True)
    class Patient(DEC):
        epochs: int | None = 500
        patience: int = 7

    assert defaults(Patient) == defaults(DEC) | {"epochs": 500, "patience": 7}
    assert defaults(DEC)["epochs"] is None
    assert clone(Patient(2, patience=1)).get_params()["patience"] == 1


@EVERY
def test_a_model_is_shown_as_scikit_learn_shows_it_and_equals_itself_alone(method):
    model = method(3, epochs=2)
    assert repr(model) == f"{method.__name__}(epochs=2, n_clusters=3)"
    assert model != method(3, epochs=2)
    assert len({model, method(3, epochs=2)}) == 2


def test_a_subclass_may_write_its_constructor_by_hand():
    class Mine(DEC):
        def __init__(self, n_clusters=5, *, depth=2, tol=0.1):
            super().__init__(n_clusters, tol=tol)
            self.depth = depth

    model = clone(Mine(3, depth=4))
    assert model.get_params() == {"n_clusters": 3, "depth": 4, "tol": 0.1}
    assert model.epochs is None


def test_no_module_bears_the_name_of_what_the_package_exports():
    assert not [name for name in deep.__all__ if isinstance(getattr(deep, name), ModuleType)]
    hidden = {name for name in deep.__all__ if f"wellsep.deep.{name}" in sys.modules}
    assert hidden == set()


SNIPPET = """
from wellsep.deep import DEC, JULE

DEC(10, epochs=3, tol=0.1, device="cpu")
DEC(epoch=3)
DEC(10, tol="small")
JULE(10, "auto")
reveal_type(JULE(10).epochs)
reveal_type(DEC().soft_labels_)
reveal_type(DEC().labels_)
DEC().fit([[0.0]]).predict([[0.0]])
DEC().set_params(tol=0.1).get_params()
"""


@pytest.mark.slow
def test_type_checkers_see_the_flat_parameters(tmp_path):
    pytest.importorskip("mypy", reason="the type checker is not installed")
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET)
    options = ["--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    said = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(file)],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    found = dict(re.findall(r"snippet.py:(\d+): (?:error|note): (.*?)(?:  \[|$)", said, re.M))
    assert set(found) == {"5", "6", "7", "8", "9", "10"}, said
    assert 'Unexpected keyword argument "epoch" for "DEC"' in found["5"]
    assert 'Argument "tol" to "DEC" has incompatible type "str"; expected "float"' in found["6"]
    assert "Too many positional arguments" in found["7"]
    assert found["8"] == 'Revealed type is "int | None"'
    assert "numpy.ndarray" in found["9"]
    assert "numpy.ndarray" in found["10"]
