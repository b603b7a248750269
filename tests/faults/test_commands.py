"""Damaged files and odd words on the command line end in an answer or in one sentence."""

from __future__ import annotations

import pytest
from faults.commands import LINES, command_fault, damaged_lines, write_files

from wellsep.cli.commands import COMMANDS

pytestmark = pytest.mark.faults

SEEDS = range(6)
OF_EACH = 300


def test_every_command_has_a_line():
    # The demo reads no file and takes no value.
    assert {words[0] for words in LINES} == set(COMMANDS) - {"demo"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_file_or_an_odd_word_is_answered_in_a_sentence(tmp_path, monkeypatch, seed):
    good, work = tmp_path / "good", tmp_path / "work"
    good.mkdir()
    write_files(good)
    work.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wrong = []
    for note, words in damaged_lines(good, work, OF_EACH, seed):
        monkeypatch.chdir(work)
        fault = command_fault(words)
        if fault is not None:
            wrong.append((note, words, fault))
    assert wrong == []
