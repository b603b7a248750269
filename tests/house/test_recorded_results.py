"""Public results are those recorded: 1e-9 for float64, 1e-4 for float32, equal where not floats."""

from __future__ import annotations

import importlib.util

import pytest
import recorded_results as record


def skip_without_packages(group):
    for package in record.GROUPS[group][1]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{group} needs the package {package}, which is not installed")


# Two data sets have all that the others have: zero rows and duplicates, and a far offset.
LARGE = ("indices", "clusterers")
LATER = {"plain", "zeros", "duplicates", "all far"}


@pytest.mark.parametrize("group", record.GROUPS)
def test_the_results_of_a_group_are_as_they_were_recorded(group, monkeypatch):
    later = LATER if group in LARGE else set()
    monkeypatch.setattr(record, "SETS", [name for name in record.SETS if name not in later])
    assert_as_recorded(group, later)


@pytest.mark.slow
@pytest.mark.parametrize("group", LARGE)
def test_the_results_of_a_large_group_are_as_they_were_recorded_on_every_data_set(group):
    assert_as_recorded(group, set())


def assert_as_recorded(group, later):
    """Every case of the record is computed anew, but for those of the data sets named."""
    skip_without_packages(group)
    found, kept = record.computed(group), record.recorded(group)
    kept = {case: value for case, value in kept.items() if not later & set(case.split("/"))}
    assert sorted(found) == sorted(kept)
    differ = {
        case: record.differences(found[case], kept[case], record.tolerance(f"{group}/{case}"))
        for case in kept
    }
    assert {case: wrong for case, wrong in differ.items() if wrong} == {}


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (1.0 + 1e-8, 1.0),
        (1.0, float("nan")),
        ([1.0, 2.0], [1.0, 2.0, 3.0]),
        ([1, 2], [1, 3]),
        ({"a": [0.5, 1.0]}, {"a": [0.5, 1.1]}),
        ({"a": 1}, {"b": 1}),
        ("a", "b"),
        (True, 1),
        ([["a", 1.0]], [["a", 1.1]]),
    ],
)
def test_a_different_value_is_noticed(found, kept):
    assert record.differences(found, kept, 1e-9)
    assert not record.differences(kept, kept, 1e-9)


@pytest.mark.parametrize("kind", [float, int, str])
def test_an_exchange_of_two_values_in_a_long_list_is_noticed(kind):
    values = [kind(i * i) for i in range(2 * record.MOST_VALUES)]
    exchanged = [values[1], values[0], *values[2:]]
    kept = record.briefly(values)
    assert not isinstance(kept, list)
    assert record.differences(record.briefly(exchanged), kept, 1e-6)
