"""Records are on disk entirely or not at all, and read back what was written."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass

import numpy as np
import pytest

from wellsep.evaluate import Ranking, Scores, ace, rank
from wellsep.evaluate import records as records_module
from wellsep.evaluate.records import MANIFEST, Record


@dataclass(frozen=True, eq=False)
class Everything(Record):
    """Holds one of each thing a record may hold."""

    array: np.ndarray
    text: np.ndarray
    number: float
    nested: tuple
    mapping: dict
    nothing: None = None


def example() -> Scores:
    matrix = np.array([[0.1, np.nan, 0.3], [0.2, np.inf, 0.1]])
    return Scores.from_matrix(
        matrix, index="silhouette", spaces=["a", "b/<i>"], partitions=["ä", "y", "z"]
    )


def test_every_kind_of_content_comes_back(tmp_path):
    first = Everything(
        array=np.arange(6, dtype=np.int16).reshape(2, 3),
        text=np.array(["ß", "b"]),
        number=float("-inf"),
        nested=(1, ("a", None, [1.5, True]), np.array([np.nan])),
        mapping={"k": {"x": np.float32(2.5)}, "list": [1, 2]},
    )
    again = Everything.load(first.save(tmp_path / "all"))
    np.testing.assert_array_equal(again.array, first.array)
    assert again.array.dtype == np.int16
    assert again.text.tolist() == ["ß", "b"]
    assert again.number == float("-inf")
    assert again.nested[:2] == (1, ("a", None, [1.5, True]))
    assert np.isnan(again.nested[2][0])
    assert again.mapping == {"k": {"x": 2.5}, "list": [1, 2]}
    assert again.nothing is None


def test_scores_come_back_with_names_gaps_and_pairing(tmp_path):
    first = example()
    again = Scores.load(first.save(tmp_path / "scores"))
    np.testing.assert_array_equal(again.values["silhouette"], first.values["silhouette"])
    assert again.partitions == ("ä", "y", "z")
    assert again.spaces == ("a", "b/<i>")
    np.testing.assert_array_equal(again.made_in, first.made_in)
    assert again.why("a", "y") == "the value is undefined"
    assert again.why("b/<i>", "y") == "the value is infinite"
    assert again.why("a", "z") is None


def test_arrays_of_a_record_cannot_be_changed():
    scores = example()
    with pytest.raises(ValueError, match="read-only"):
        scores.values["silhouette"][0, 0] = 1.0


def test_saving_again_replaces_and_leaves_no_litter(tmp_path):
    folder = tmp_path / "scores"
    example().save(folder)
    Scores.from_matrix([[1.0, 2.0]]).save(folder)
    assert Scores.load(folder).partitions == ("partition 0", "partition 1")
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("step", ["arrays", "manifest"])
def test_a_disk_that_fills_up_keeps_the_old_record(tmp_path, monkeypatch, step):
    folder = tmp_path / "scores"
    example().save(folder)
    original = records_module.os.fsync
    calls = []

    def full(handle):
        calls.append(handle)
        if len(calls) == (1 if step == "arrays" else 2):
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(handle)

    monkeypatch.setattr(records_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        Scores.from_matrix([[1.0, 2.0]]).save(folder)
    monkeypatch.undo()
    assert Scores.load(folder).partitions == ("ä", "y", "z")
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_an_error_of_the_system(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        example().save(tmp_path / "scores")


def test_a_file_where_the_folder_should_be_is_refused(tmp_path):
    (tmp_path / "scores").write_text("something else")
    with pytest.raises(FileExistsError):
        example().save(tmp_path / "scores")


def test_a_missing_record_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=rf"must hold a saved record, got no file {MANIFEST}"
    ):
        Scores.load(tmp_path)


def test_a_truncated_archive_is_named(tmp_path):
    folder = example().save(tmp_path / "scores")
    (archive,) = folder.glob("arrays-*.npz")
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(ValueError, match="must be a whole npz"):
        Scores.load(folder)


def test_a_missing_archive_is_named(tmp_path):
    folder = example().save(tmp_path / "scores")
    next(folder.glob("arrays-*.npz")).unlink()
    with pytest.raises(FileNotFoundError, match="beside its manifest"):
        Scores.load(folder)


def test_pickled_objects_are_never_loaded(tmp_path):
    folder = example().save(tmp_path / "scores")
    manifest = json.loads((folder / MANIFEST).read_text())
    np.savez(folder / manifest["arrays"], a0=np.array([{"any": "object"}], dtype=object))
    with pytest.raises(ValueError, match="without pickled objects"):
        Scores.load(folder)


def test_python_objects_are_never_saved(tmp_path):
    bad = Everything(np.array([object()]), np.array([""]), 0.0, (), {})
    with pytest.raises(TypeError, match=r"record\.array must be an array of numbers or text"):
        bad.save(tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "whole JSON manifest"),
        ("[]", "manifest written by wellsep"),
        ('{"wellsep": "record", "format": 99}', "must have format 1, got 99"),
    ],
)
def test_another_manifest_is_refused(tmp_path, text, sentence):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ValueError, match=sentence):
        Scores.load(tmp_path)


def test_a_record_of_another_kind_is_named(tmp_path):
    folder = rank(ace(example(), dip=False)).save(tmp_path / "ranking")
    assert Ranking.load(folder).names == ("ä", "y", "z")
    with pytest.raises(ValueError, match="must hold a Scores, got a Ranking"):
        Scores.load(folder)


def test_matrices_must_fit_the_names():
    with pytest.raises(ValueError, match="names must be 2, one per space, got 1"):
        Scores.from_matrix([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], spaces=["a"])
    with pytest.raises(ValueError, match="got 'a' twice"):
        Scores.from_matrix([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], spaces=["a", "a"])
    with pytest.raises(ValueError, match="spaces as rows"):
        Scores.from_matrix([1.0, 2.0])
