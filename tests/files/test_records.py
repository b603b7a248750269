"""Records are on disk entirely or not at all, and read back what was written."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

import wellsep
from wellsep._files.arrays import digest_file
from wellsep._files.records import MANIFEST, Record
from wellsep.evaluate import Ranking, Scores, ace, rank


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
        mapping={"k": {"x": np.float32(2.5)}, "list": [1, 2], (2, "cfq"): "why"},
    )
    again = Everything.load(first.save(tmp_path / "all"))
    np.testing.assert_array_equal(again.array, first.array)
    assert again.array.dtype == np.int16
    assert again.text.tolist() == ["ß", "b"]
    assert again.number == float("-inf")
    assert again.nested[:2] == (1, ("a", None, [1.5, True]))
    assert np.isnan(again.nested[2][0])
    assert again.mapping == {"k": {"x": 2.5}, "list": [1, 2], (2, "cfq"): "why"}
    assert again.nothing is None


def test_scores_come_back_with_names_gaps_and_pairing(tmp_path):
    first = example()
    again = Scores.load(first.save(tmp_path / "scores"))
    np.testing.assert_array_equal(again.values["silhouette"], first.values["silhouette"])
    assert again.partitions == ("ä", "y", "z")
    assert again.spaces == ("a", "b/<i>")
    np.testing.assert_array_equal(again.made_in, first.made_in)
    assert again.why("a", "y") == "the value was given as NaN"
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


STEPS = ("fsync", "replace", "unlink")


def steps_of_a_save(folder) -> int:
    """How often a save that replaces a record calls what changes the disk."""
    taken = []

    def counting(real):
        return lambda *args, **kwargs: (taken.append(real), real(*args, **kwargs))[1]

    with pytest.MonkeyPatch.context() as patch:
        for step in STEPS:
            patch.setattr(os, step, counting(getattr(os, step)))
        Scores.from_matrix([[1.0, 2.0]]).save(folder)
    return len(taken)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_save_stopped_at_any_step_leaves_the_old_record_or_the_new(tmp_path, error):
    example().save(tmp_path / "counted")
    steps = steps_of_a_save(tmp_path / "counted")
    assert steps >= 6
    found = []
    for stop in range(steps):
        folder = tmp_path / str(stop)
        example().save(folder)
        left = [stop]

        def stopping(real, left=left):
            def call(*args, **kwargs):
                left[0] -= 1
                if left[0] == -1:
                    raise error
                return real(*args, **kwargs)

            return call

        with pytest.MonkeyPatch.context() as patch:
            for step in STEPS:
                patch.setattr(os, step, stopping(getattr(os, step)))
            with contextlib.suppress(type(error)):
                Scores.from_matrix([[1.0, 2.0]]).save(folder)
        found.append(Scores.load(folder).partitions)
        assert not [p for p in folder.iterdir() if p.name.startswith(".")]
    old, new = ("ä", "y", "z"), ("partition 0", "partition 1")
    assert set(found) == {old, new}
    assert found == sorted(found, key=[old, new].index)


KILLED = """
import os, signal, sys
from wellsep.evaluate import Scores

after = 0
while True:
    child = os.fork()
    if child == 0:
        left = [after]
        def deadly(real):
            def call(*args, **kwargs):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return real(*args, **kwargs)
            return call
        for step in ("fsync", "replace", "unlink"):
            setattr(os, step, deadly(getattr(os, step)))
        Scores.from_matrix([[1.0, 2.0]]).save(f"{sys.argv[1]}/{after}")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    after += 1
    if status == 0:
        break
print(after)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to kill a writer at every step")
def test_a_writer_killed_at_any_step_leaves_the_old_record_or_the_new(tmp_path):
    for after in range(20):
        example().save(tmp_path / str(after))
    source = os.path.dirname(os.path.dirname(wellsep.__file__))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    steps = int(done.stdout)
    assert 6 < steps <= 20
    found = [Scores.load(tmp_path / str(after)).partitions for after in range(steps)]
    old, new = ("ä", "y", "z"), ("partition 0", "partition 1")
    assert found == sorted(found, key=[old, new].index)
    assert (found[0], found[-1]) == (old, new)
    for after in range(steps):
        example().save(tmp_path / str(after))
        assert not [p for p in (tmp_path / str(after)).iterdir() if p.name.startswith(".")]


def test_each_distinct_array_is_stored_once(tmp_path):
    table = np.arange(12.0).reshape(3, 4)
    twice = Everything(table, np.array(["a"]), 0.0, (table.copy(), table[:2]), {"again": table})
    folder = twice.save(tmp_path / "twice")
    (archive,) = folder.glob("arrays-*.npz")
    with np.load(archive) as stored:
        assert len(stored.files) == 3
    again = Everything.load(folder)
    np.testing.assert_array_equal(again.mapping["again"], table)
    np.testing.assert_array_equal(again.nested[1], table[:2])


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    foreign = {"arrays-1.npz": b"mine", "arrays-0123456789abcdef.npz": b"mine", "notes": b"text"}
    for name, data in foreign.items():
        (tmp_path / name).write_bytes(data)
    example().save(tmp_path)
    Scores.from_matrix([[1.0, 2.0]]).save(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in foreign} == foreign
    assert len(list(tmp_path.iterdir())) == len(foreign) + 2


def test_a_manifest_of_another_program_is_not_overwritten(tmp_path):
    (tmp_path / MANIFEST).write_text('{"songs": 12}')
    with pytest.raises(FileExistsError, match=r"record\.json that wellsep did not write"):
        example().save(tmp_path)
    assert (tmp_path / MANIFEST).read_text() == '{"songs": 12}'
    assert len(list(tmp_path.iterdir())) == 1


def test_two_savers_into_one_folder_leave_one_whole_record(tmp_path):
    def save(number):
        for _ in range(15):
            Scores.from_matrix(np.full((1, number), 0.5)).save(tmp_path / "same")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(save, (2, 3, 4)))
    assert len(Scores.load(tmp_path / "same").partitions) in (2, 3, 4)


def test_a_record_may_be_read_while_it_is_replaced(tmp_path):
    example().save(tmp_path / "same")

    def save(number):
        for _ in range(30):
            Scores.from_matrix(np.full((1, 2), 0.5)).save(tmp_path / "same")

    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(save, 0)
        seen = {Scores.load(tmp_path / "same").partitions}
        while not saving.done():
            seen.add(Scores.load(tmp_path / "same").partitions)
        saving.result()
    assert seen <= {("ä", "y", "z"), ("partition 0", "partition 1")}


def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    first, second = example().save(tmp_path / "a"), example().save(tmp_path / "b")
    (one,), (other,) = first.glob("arrays-*.npz"), second.glob("arrays-*.npz")
    Scores.from_matrix([[1.0, 2.0]]).save(second)
    (other,) = second.glob("arrays-*.npz")
    one.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match="is not the file that its manifest was saved with"):
        Scores.load(first)


def test_a_record_of_an_older_version_is_refused_and_may_be_replaced(tmp_path):
    np.savez(tmp_path / "arrays-0123456789abcdef.npz", a0=np.zeros(2))
    old = {"wellsep": "record", "format": 1, "arrays": "arrays-0123456789abcdef.npz", "record": 0}
    (tmp_path / MANIFEST).write_text(json.dumps(old))
    with pytest.raises(ValueError, match="saved by an older version of wellsep; make it again"):
        Scores.load(tmp_path)
    example().save(tmp_path)
    assert Scores.load(tmp_path).partitions == ("ä", "y", "z")
    assert len(list(tmp_path.iterdir())) == 2


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
    with pytest.raises(ValueError, match="is not the file that its manifest was saved with"):
        Scores.load(folder)


def test_a_missing_archive_is_named(tmp_path):
    folder = example().save(tmp_path / "scores")
    next(folder.glob("arrays-*.npz")).unlink()
    with pytest.raises(FileNotFoundError, match="is missing, but its manifest names it"):
        Scores.load(folder)


def test_pickled_objects_are_never_loaded(tmp_path):
    folder = example().save(tmp_path / "scores")
    manifest = json.loads((folder / MANIFEST).read_text())
    part = manifest["parts"]["arrays.npz"]
    np.savez(folder / part["file"], a0=np.array([{"any": "object"}], dtype=object))
    part["sha256"] = digest_file(folder / part["file"])
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="pickled Python objects, which are never loaded"):
        Scores.load(folder)


def test_python_objects_are_never_saved(tmp_path):
    bad = Everything(np.array([object()]), np.array([""]), 0.0, (), {})
    with pytest.raises(TypeError, match=r"record\.array must be an array of numbers or text"):
        bad.save(tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "must be valid JSON"),
        ("[]", "manifest written by wellsep"),
        ('{"wellsep": "record", "format": 99}', "must have format 4, got 99"),
    ],
)
def test_another_manifest_is_refused(tmp_path, text, sentence):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ValueError, match=sentence):
        Scores.load(tmp_path)


def test_a_record_of_another_kind_is_named(tmp_path):
    folder = rank(ace(example(), dip=False)).save(tmp_path / "ranking")
    assert Ranking.load(folder).names == ("ä", "y", "z")
    with pytest.raises(ValueError, match="must hold a saved Scores, got a saved Ranking"):
        Scores.load(folder)


def test_matrices_must_fit_the_names():
    with pytest.raises(ValueError, match="spaces must have 2 names, one per space, got 1"):
        Scores.from_matrix([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], spaces=["a"])
    with pytest.raises(ValueError, match="got 'a' twice"):
        Scores.from_matrix([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]], spaces=["a", "a"])
    with pytest.raises(ValueError, match="spaces as rows"):
        Scores.from_matrix([1.0, 2.0])


def test_a_matrix_with_gaps_says_that_they_were_given():
    scores = Scores.from_matrix([[1.0, np.nan], [2.0, 3.0]])
    assert scores.why("run 0", "run 1") == "the value was given as NaN"
    assert scores.why("run 0", "run 0") is None
    with pytest.raises(ValueError, match="space must be one of 'run 0', 'run 1', got 'x'"):
        scores.why("x", "run 0")
    with pytest.raises(ValueError, match="dip_pvalues must lie between 0 and 1, got 2.0 at 1"):
        Scores.from_matrix([[1.0, 2.0], [2.0, 3.0]], dip_pvalues=[0.5, 2.0])
