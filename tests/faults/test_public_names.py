"""Malformed arguments of every public name end in a value or in a sentence that names them."""

from __future__ import annotations

import inspect

import pytest
from faults.calls import WITHOUT_A_CALL, adapter_calls, calls, deep_calls
from faults.malformed import faults, malformed

import wellsep as ws
from wellsep.indices.registry import INDICES

pytestmark = pytest.mark.faults

SEED = 16
SHARES = 6
OF_WELLSEP, OF_DEEP, OF_ADAPTERS = 12_000, 4_500, 900  # calls in all


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own: some odd values are names of files, which are then written."""
    monkeypatch.chdir(tmp_path)
    kept = dict(INDICES._entries)
    yield tmp_path
    INDICES._entries.clear()
    INDICES._entries.update(kept)


def test_every_public_name_has_a_call(folder):
    called = {name.partition(".")[0] for name in calls(folder)}
    assert set(ws.__all__) - called - set(WITHOUT_A_CALL) == set()


def test_every_name_of_deep_has_a_call(folder):
    pytest.importorskip("torch", reason="needs the extra deep")
    from wellsep import deep

    called = {name.partition(".")[0] for name in deep_calls(folder)}
    records = {name for name in deep.__all__ if not inspect.isfunction(getattr(deep, name))}
    assert set(deep.__all__) - called <= records - set(deep.METHODS)


@pytest.mark.parametrize("share", range(SHARES))
def test_a_malformed_argument_is_named(folder, share):
    every = calls(folder)
    cases = malformed(every, SEED, OF_WELLSEP)[share::SHARES]
    assert list(faults(every, cases)) == []


@pytest.mark.parametrize("share", range(SHARES))
def test_a_malformed_argument_of_a_deep_clusterer_is_named(folder, share):
    pytest.importorskip("torch", reason="needs the extra deep")
    every = deep_calls(folder)
    cases = malformed(every, SEED, OF_DEEP)[share::SHARES]
    assert list(faults(every, cases)) == []


def test_a_malformed_argument_of_an_adapter_is_named(folder):
    pytest.importorskip("anndata", reason="needs the extra anndata")
    pytest.importorskip("optuna", reason="needs the extra optuna")
    calls(folder)  # writes the runs that are loaded
    every = adapter_calls(folder)
    assert list(faults(every, malformed(every, SEED, OF_ADAPTERS))) == []
