"""A file is replaced whole or not at all, with the user's mode; digests and plain JSON are one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from wellsep._files import arrays as files
from wellsep._files import replace as _replace
from wellsep._files.arrays import (
    digest,
    read_npz,
    stored_member,
    stored_npy,
    to_json,
    write_npz,
)
from wellsep._files.replace import replace_file, write_text


def names_in(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_is_there_is_replaced(tmp_path):
    write_text(tmp_path / "new" / "a.txt", "one")
    write_text(tmp_path / "new" / "a.txt", "two")
    assert (tmp_path / "new" / "a.txt").read_text() == "two"
    assert names_in(tmp_path / "new") == ["a.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step):
    write_text(tmp_path / "a.txt", "old")

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left"):
            write_text(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_an_exception_while_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    write_text(tmp_path / "a.txt", "old")

    def interrupted():
        with replace_file(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_the_mode_follows_the_umask_of_the_process(tmp_path, mask):
    code = (
        f"import os, sys; os.umask({mask}); from wellsep._files.replace import write_text;"
        " write_text(sys.argv[1], 'x')"
    )
    source = Path(files.__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a")],
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
    )
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "umask", asked.append)  # it belongs to every thread of the process
    write_text(tmp_path / "a", "x")
    assert asked == []


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(os.name != "posix", reason="asks the system whether a process lives")
def test_files_of_writers_that_are_gone_are_removed_at_the_next_write(tmp_path, gone):
    token, here = "0" * 32, _replace.machine()
    dead, alive = f".{token}.{here}-{gone}.tmp", f".{token}.{here}-{os.getpid()}.tmp"
    for name in (dead, alive, ".someone.tmp", "arrays-1.npz"):
        (tmp_path / name).write_text("half")
    write_text(tmp_path / "a", "x")
    assert names_in(tmp_path) == sorted([alive, ".someone.tmp", "a", "arrays-1.npz"])


@pytest.mark.skipif(os.name != "posix", reason="devices are POSIX")
@pytest.mark.parametrize("kind", ["folder", "device", "pipe"])
def test_only_a_regular_file_is_replaced(tmp_path, kind):
    path = tmp_path / "there"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root may make a device")
    with pytest.raises(ValueError, match="path must be a file, got a (folder|device or pipe) at"):
        write_text(path, "x")
    assert path.exists() and not path.is_file()


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX")
def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "x"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_array_that_does_not_fit_names_the_full_disk():
    def write():
        with open("/dev/full", "wb") as stream:
            files.write_npy(stream, np.zeros(100_000))

    with pytest.raises(OSError, match="No space left on device"):
        write()


@pytest.mark.skipif(os.name != "posix", reason="locks are POSIX")
def test_a_lock_keeps_others_out_and_is_given_back(tmp_path, monkeypatch):
    order = []

    def second():
        with _replace.locked(tmp_path):
            order.append("second")

    thread = threading.Thread(target=second)
    with _replace.locked(tmp_path):
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    monkeypatch.setattr(_replace, "_PATIENCE", 0.02)
    with _replace.locked(tmp_path), _replace.locked(tmp_path):  # a holder that was stopped
        order.append("without")
    assert order[-1] == "without"


def test_many_writers_of_one_file_leave_one_whole_file(tmp_path):
    def write(letter):
        for _ in range(20):
            write_text(tmp_path / "a", letter * 100_000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = (tmp_path / "a").read_text()
    assert len(text) == 100_000
    assert len(set(text)) == 1
    assert names_in(tmp_path) == ["a"]


def test_a_digest_sees_type_shape_and_values_but_not_the_layout():
    table = np.arange(12.0).reshape(3, 4)
    assert digest(table) == digest(np.asfortranarray(table)) == digest(table[::-1][::-1])
    others = [table.reshape(4, 3), table.astype(np.float32), table + 1, table[:2]]
    assert len({digest(table), *map(digest, others)}) == 5
    assert len(digest(np.array("text"))) == len(digest(np.empty((0, 3)))) == 64


def test_a_digest_is_the_one_that_folders_of_runs_hold():
    array = np.arange(5, dtype="<i8")
    assert digest(array) == hashlib.sha256(b"<i8(5,)" + array.tobytes()).hexdigest()


def test_texts_side_by_side_are_not_one_text():
    assert digest("ab", "c") != digest("a", "bc")


def test_a_digest_in_pieces_is_the_digest_of_the_whole(monkeypatch):
    table = np.arange(1000).reshape(100, 10)[:, ::2]
    whole = digest(table)
    monkeypatch.setattr(files, "_VALUES", 7)
    assert digest(table) == whole


@pytest.mark.parametrize(
    ("rule", "shown"), [("null", None), ("text", "nan"), ("keep", float("nan"))]
)
def test_what_is_not_finite_follows_the_rule(rule, shown):
    found = to_json([np.float32("nan")], nan=rule)
    assert repr(found) == repr([shown])


def test_values_become_plain_json():
    value = {
        1: np.arange(2),
        "path": Path("a"),
        "flag": np.bool_(True),
        "nested": ({"x": np.float64(0.5)}, None),
    }
    found = to_json(value, nan="null")
    assert found == {"1": [0, 1], "path": "a", "flag": True, "nested": [{"x": 0.5}, None]}
    json.dumps(found, allow_nan=False)


def test_other_values_are_refused_by_their_place_unless_told_otherwise():
    with pytest.raises(TypeError, match="params must be numbers, .*got set at 'a/1'"):
        to_json({"a": [0, {1, 2}]}, nan="text", name="params")
    assert to_json({"a": int, "b": {3}}, nan="text", other=str) == {"a": str(int), "b": [3]}


def test_digits_and_long_arrays_are_cut_when_asked():
    assert to_json(1 / 3, nan="null", digits=3) == 0.333
    text = to_json(np.zeros((20, 10)), nan="null", longest=100)
    assert text == f"20×10 array {digest(np.zeros((20, 10)))[:16]}"


def test_a_lone_surrogate_can_be_written():
    assert to_json("a\ud800", nan="null").encode("utf-8") == b"a?"


@pytest.mark.parametrize("compress", [False, True])
def test_archives_come_back_and_are_mapped_where_they_can_be(tmp_path, compress):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "names": np.array(["ä", "b"])}
    write_npz(tmp_path / "x.npz", iter(arrays.items()), compress=compress)
    again = read_npz(tmp_path / "x.npz", "x")
    assert again.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array)
    found = stored_member(tmp_path / "x.npz", "a.npy", "x")
    assert found.shape == (2, 3)
    assert isinstance(found.open(), np.memmap) is not compress


def test_a_header_that_promises_more_than_the_file_holds_takes_no_memory(tmp_path):
    with open(tmp_path / "x.npy", "wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 8)}
        )
    with pytest.raises(ValueError, match="x must be complete, got 0 of 70,368,744,177,664 bytes"):
        stored_npy(tmp_path / "x.npy", "x")
