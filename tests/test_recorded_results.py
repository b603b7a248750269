"""Public results are those recorded: 1e-9 for float64, 1e-4 for float32, equal where not floats."""

from __future__ import annotations

import functools
import importlib.util

import pytest
import recorded_results as record

KEPT = {group: record.recorded(group) for group in record.GROUPS}


@functools.cache
def computed(group):
    return record.computed(group)


def skip_without_packages(group):
    for package in record.GROUPS[group][1]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{group} needs the package {package}, which is not installed")


@pytest.mark.parametrize(
    ("group", "case"), [(group, case) for group, cases in KEPT.items() for case in cases]
)
def test_a_result_is_as_it_was_recorded(group, case):
    skip_without_packages(group)
    found = computed(group)
    assert case in found
    rtol = record.tolerance(f"{group}/{case}")
    assert record.differences(found[case], KEPT[group][case], rtol) == []


@pytest.mark.parametrize("group", record.GROUPS)
def test_every_case_of_a_group_is_recorded(group):
    skip_without_packages(group)
    assert sorted(computed(group)) == sorted(KEPT[group])


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
