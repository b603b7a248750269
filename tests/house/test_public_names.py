"""Every public name resolves, is documented, and shows an example that the doctests run."""

from __future__ import annotations

import inspect
import pkgutil
import re

import pytest

import wellsep
from wellsep import evaluate, records, runs, spaces

TOP = [name for name in wellsep.__all__ if not name.startswith("__")]
# What users import: from the top level, as records, as steps of a ranking, as tests of a space.
PUBLIC = {
    name: getattr(room, name)
    for room in (wellsep, records, evaluate, spaces)
    for name in room.__all__
    if not name.startswith("__")
}


def test_the_top_level_has_at_most_66_names():
    assert len(TOP) <= 66


def test_no_record_is_at_the_top_level_too():
    assert set(records.__all__) & set(TOP) == set()


def test_what_left_the_top_level_is_in_its_room():
    steps = {"input_scores", "rank", "rank_confidence"}
    assert steps <= set(evaluate.__all__) - set(TOP)
    assert {"dip_statistic", "holm"} <= set(spaces.__all__) - set(TOP)
    assert "NothingToRank" in set(evaluate.__all__) - set(TOP)
    assert "NoRuns" in set(runs.__all__) - set(TOP)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves_and_is_documented(name):
    value = PUBLIC[name]
    documented = value if callable(value) else type(value)
    assert (inspect.getdoc(documented) or "").strip()


def members_without_docstring(cls):
    return [
        name
        for name, member in inspect.getmembers(cls)
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and not inspect.getdoc(member)
    ]


def test_the_methods_and_properties_of_public_classes_are_documented():
    classes = [value for value in PUBLIC.values() if inspect.isclass(value)]
    silent = {cls.__name__: found for cls in classes if (found := members_without_docstring(cls))}
    assert silent == {}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_shows_an_example(name):
    value = PUBLIC[name]
    assert not inspect.isfunction(value) or ">>>" in inspect.getdoc(value)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_takes_few_arguments_by_position(name):
    value = PUBLIC[name]
    kinds = (
        [p.kind for p in inspect.signature(value).parameters.values()]
        if inspect.isfunction(value)
        else []
    )
    assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) <= 3


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = wellsep.no_such_name


def test_dir_lists_the_public_names():
    assert set(TOP) <= set(dir(wellsep))


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert wellsep.__version__ == version("wellsep")


@pytest.mark.parametrize(
    "room", ["adapters", "deep", "evaluate", "indices", "plot", "report", "runs", "spaces"]
)
def test_no_exported_name_hides_a_module(room):
    package = pytest.importorskip(f"wellsep.{room}", reason=f"{room} needs an extra")
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules & set(package.__all__) == set()


def spelled_out(function):
    """Parameter → its text, from the section "Parameters" of a docstring."""
    parts = re.split(r"\nParameters\n-+\n", inspect.getdoc(function) or "", maxsplit=1)
    section = re.split(r"\n\n\w[\w ]*\n-+\n", parts[1] + "\n\n", maxsplit=1)[0] if parts[1:] else ""
    entries = re.split(r"\n(?=\S)", section)
    texts = {}
    for entry in entries:
        names, _, text = entry.partition("\n")
        for name in names.partition(" :")[0].split(","):
            texts[name.strip().lstrip("*")] = text.strip()
    return texts


@pytest.mark.parametrize("name", [n for n, value in PUBLIC.items() if inspect.isfunction(value)])
def test_each_parameter_of_a_public_function_is_spelled_out(name):
    function = PUBLIC[name]
    texts = spelled_out(function)
    assert [p for p in inspect.signature(function).parameters if not texts.get(p)] == []
