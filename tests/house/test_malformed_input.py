"""A small sample of the malformed input of tests/faults, so that every change meets some of it."""

from __future__ import annotations

import pytest
from faults.calls import calls
from faults.commands import command_fault, damaged_lines, write_files
from faults.malformed import faults, malformed

from wellsep.indices.registry import INDICES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="some odd values are tensors")
    pytest.importorskip("pandas", reason="some odd values are frames")
    pytest.importorskip("dask", reason="some odd values are dask arrays")
    monkeypatch.chdir(tmp_path)
    kept = dict(INDICES._entries)
    yield tmp_path
    INDICES._entries.clear()
    INDICES._entries.update(kept)


def test_a_malformed_argument_is_named(folder):
    every = calls(folder)
    assert list(faults(every, malformed(every, 1, 400))) == []


def test_a_damaged_file_is_answered_in_a_sentence(tmp_path, monkeypatch):
    good, work = tmp_path / "good", tmp_path / "work"
    good.mkdir()
    write_files(good)
    work.mkdir()
    wrong = []
    for note, words in damaged_lines(good, work, 25, 0):
        monkeypatch.chdir(work)
        fault = command_fault(words)
        if fault is not None:
            wrong.append((note, words, fault))
    assert wrong == []
