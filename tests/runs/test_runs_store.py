"""A saved run comes back as it was, and is complete or not there."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellsep as ws
from wellsep._files import maps
from wellsep._files import replace as _replace
from wellsep._files.arrays import Stored
from wellsep.runs import NoRuns, Run, Runs, load_runs, save_run
from wellsep.runs import folder as folder_module
from wellsep.runs.folder_names import natural_key, safe_name

RNG = np.random.default_rng(0)
SPACE = RNG.normal(size=(6, 3)).astype(np.float32)
LABELS = np.array([0, 0, 1, 1, 2, -1])


def names_in(folder) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_run_comes_back_as_it_was_saved(tmp_path):
    params, metadata = {"k": 3, "rates": [0.1, 0.2]}, {"note": "ä", "seconds": 1.5}
    path = save_run(
        tmp_path, SPACE, LABELS, name="first", params=params, metadata=metadata, ids=list("abcdef")
    )
    assert path == tmp_path / "first"
    assert names_in(path) == ["embedding.npy", "ids.npy", "labels.npy", "run.json"]
    runs = load_runs(tmp_path)
    run = runs["first"]
    np.testing.assert_array_equal(run.embedding, SPACE)
    np.testing.assert_array_equal(run.labels, LABELS)
    assert (run.embedding.dtype, run.labels.dtype) == (SPACE.dtype, LABELS.dtype)
    assert (run.params, run.metadata) == (params, metadata)
    assert runs.ids.tolist() == list("abcdef")


def test_the_manifest_is_plain_json_with_version_shapes_and_checksums(tmp_path):
    path = save_run(tmp_path, SPACE, LABELS, name="a")
    manifest = json.loads((path / "run.json").read_text("utf-8"))
    assert (manifest["format"], manifest["version"], manifest["name"]) == ("wellsep-run", 1, "a")
    entry = manifest["files"]["embedding"]
    assert (entry["file"], entry["shape"], entry["dtype"]) == ("embedding.npy", [6, 3], "<f4")
    assert entry["sha256"] == Run("a", embedding=SPACE).digest()


def test_text_labels_are_stored_without_pickle(tmp_path):
    path = save_run(tmp_path, None, np.array(["b", "ä", "b"], dtype=object), name="a")
    assert np.load(path / "labels.npy", allow_pickle=False).dtype.kind == "U"
    assert load_runs(tmp_path)["a"].labels.tolist() == ["b", "ä", "b"]


def test_embeddings_are_mapped_and_shared_while_held(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="a")
    runs = load_runs(tmp_path)
    first = runs.spaces["a"]
    assert isinstance(first, np.memmap)
    assert not first.flags.writeable
    assert runs.spaces["a"] is first


def handles_of(path) -> int:
    """Count the handles by which this process holds the file open."""
    handles = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    # The handle by which the folder was listed is closed by now; so may others be.
    return sum(os.readlink(h) == str(path) for h in handles if os.path.islink(h))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to count open files")
def test_a_space_that_nobody_holds_costs_no_file_handle(tmp_path):
    embedding = (save_run(tmp_path, SPACE, LABELS, name="a") / "embedding.npy").resolve()
    runs = load_runs(tmp_path)
    assert handles_of(embedding) == 0
    space = runs.spaces["a"]
    assert handles_of(embedding) == 1
    del space
    gc.collect()
    assert handles_of(embedding) == 0


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc to count open files")
def test_maps_that_are_held_are_one_each_and_closed_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "_MOST_OPEN", 3)
    names = "abc"
    paths = [save_run(tmp_path, SPACE, LABELS, name=name) / "embedding.npy" for name in names]
    with maps.maps_held():
        runs = load_runs(tmp_path)
        with maps.maps_held():
            spaces = [runs.spaces[name] for name in names]
        assert [handles_of(path.resolve()) for path in paths] == [1, 1, 1]
        for space in spaces:
            np.testing.assert_array_equal(space, SPACE)
        del spaces, space
        gc.collect()
        held = [handles_of(path.resolve()) for path in paths]
        assert held == [1, 0, 0]  # two labels and one embedding are held
        os.truncate(paths[0], 100)
        with pytest.raises(OSError, match="the file was changed since it was loaded"):
            _ = runs["a"].embedding
        del runs
    gc.collect()
    assert [handles_of(path.resolve()) for path in paths] == [0, 0, 0]


def test_loading_opens_no_embedding(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="a")
    runs = load_runs(tmp_path)
    (tmp_path / "a" / "embedding.npy").unlink()
    assert runs["a"].n_features == 3
    with pytest.raises(FileNotFoundError, match="embedding of run 'a' could not be read"):
        runs.spaces["a"]


def test_loaded_runs_survive_pickle(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="a")
    runs = load_runs(tmp_path)
    opened = runs.spaces["a"]
    copy = pickle.loads(pickle.dumps(runs))
    assert isinstance(copy.spaces["a"], np.memmap)
    np.testing.assert_array_equal(copy.spaces["a"], opened)


def test_a_space_and_a_partition_may_be_saved_apart(tmp_path):
    save_run(tmp_path, SPACE, None, name="pca")
    save_run(tmp_path, None, LABELS, name="k3", space="pca")
    runs = load_runs(tmp_path)
    assert list(runs.spaces) == ["pca"]
    assert list(runs.partitions) == ["k3"]
    assert runs.paired


def test_an_embedding_with_nan_is_kept_and_refused_when_opened(tmp_path):
    space = SPACE.copy()
    space[4, 2] = np.nan
    save_run(tmp_path, space, LABELS, name="diverged")
    runs = load_runs(tmp_path)
    with pytest.raises(
        ValueError, match="embedding of run 'diverged' must be finite, got nan at row 4"
    ):
        runs.spaces["diverged"]


def test_runs_without_a_name_are_numbered(tmp_path):
    for k in range(3):
        save_run(tmp_path, None, LABELS + k)
    assert load_runs(tmp_path).names == ("run-1", "run-2", "run-3")


def test_a_number_taken_meanwhile_is_passed_over(tmp_path, monkeypatch):
    import wellsep.runs.folder as folder

    taken = iter(["run-1", "run-2"])
    monkeypatch.setattr(folder, "_free_name", lambda *taken_by: next(taken))
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / "something").touch()
    assert save_run(tmp_path, None, LABELS).name == "run-2"
    assert load_runs(tmp_path).names == ("run-2",)


def test_names_are_sorted_as_people_count(tmp_path):
    for name in ("k10", "k9", "k2", "b"):
        save_run(tmp_path, None, LABELS, name=name)
    assert load_runs(tmp_path).names == ("b", "k2", "k9", "k10")
    assert sorted(["1", "a1", "a", "10", "2"], key=natural_key) == ["1", "2", "10", "a", "a1"]
    assert natural_key("9" * 5000) > natural_key("8" * 5000)


def test_runs_are_opened_from_where_they_were_loaded(tmp_path, monkeypatch):
    save_run(tmp_path / "runs", SPACE, LABELS, name="a")
    monkeypatch.chdir(tmp_path)
    runs = load_runs("runs")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(runs.spaces["a"], SPACE)


def test_writers_that_replace_the_same_run_at_once_all_succeed(tmp_path):
    def write(number):
        for _ in range(20):
            save_run(tmp_path, None, np.full(6, number), name="a", overwrite=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    runs = load_runs(tmp_path, verify=True)
    assert len(set(runs["a"].labels.tolist())) == 1
    assert names_in(tmp_path) == ["a"]


def test_writers_without_names_share_a_folder(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: save_run(tmp_path, None, np.full(6, number)), range(40)))
    runs = load_runs(tmp_path, verify=True)
    assert runs.names == tuple(f"run-{number}" for number in range(1, 41))
    assert {labels[0] for labels in runs.partitions.values()} == set(range(40))


@pytest.mark.parametrize(
    "name",
    [
        "a/b",
        "../up",
        "..",
        ".hidden",
        "<script>alert(1)</script>",
        "naïve 鳥",
        "CON",
        "nul.txt",
        "a\\b",
        "%2F",
        "dot.",
        "x" * 500,
        "a:b|c?*",
        " ",
        "~home",
    ],
)
def test_any_name_lives_in_the_manifest_and_its_folder_is_safe(tmp_path, name):
    path = save_run(tmp_path / "runs", None, LABELS, name=name)
    assert path.parent == tmp_path / "runs"
    assert names_in(tmp_path) == ["runs"]
    assert set(path.name) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%-_.+=,@~"
    )
    assert load_runs(tmp_path / "runs").names == (name,)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_safe_names_are_visible_short_and_fit_for_every_file_system(name):
    safe = safe_name(name)
    assert 0 < len(safe) <= 200
    assert safe.isascii() and "/" not in safe and "\\" not in safe
    assert not safe.startswith(".") and not safe.endswith((".", " "))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), unique=True))
def test_different_names_get_different_folders(names):
    assert len({safe_name(name) for name in names}) == len(names)


def test_a_run_is_not_overwritten_unasked(tmp_path):
    save_run(tmp_path, None, LABELS, name="a/b")
    with pytest.raises(FileExistsError, match="run 'a/b' must be new in .*overwrite=True"):
        save_run(tmp_path, None, LABELS[::-1], name="a/b")
    np.testing.assert_array_equal(load_runs(tmp_path)["a/b"].labels, LABELS)
    save_run(tmp_path, None, LABELS[::-1], name="a/b", overwrite=True)
    np.testing.assert_array_equal(load_runs(tmp_path)["a/b"].labels, LABELS[::-1])
    assert names_in(tmp_path) == ["a%2Fb"]


def test_a_run_may_be_overwritten_with_itself_while_mapped(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="a")
    run = load_runs(tmp_path)["a"]
    save_run(tmp_path, run.embedding, run.labels, name="a", params={"again": 1}, overwrite=True)
    again = load_runs(tmp_path)["a"]
    assert again.params == {"again": 1}
    np.testing.assert_array_equal(again.embedding, SPACE)


KILLED = """
import os, signal, sys
import numpy as np
import shutil
import wellsep._files.replace as files
import wellsep.runs.folder as writing

folder, steps = sys.argv[1], ("open", "fsync", "rename", "rmtree")
labels = np.full(6, 9)

def arm(after):
    left = [after]
    def deadly(real):
        def call(*args, **kwargs):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*args, **kwargs)
        return call
    os.fsync, os.rename = deadly(os.fsync), deadly(os.rename)
    shutil.rmtree = deadly(shutil.rmtree)
    files.open = writing.open = deadly(open)

after = 0
while True:
    child = os.fork()
    if child == 0:
        arm(after)
        writing.save_run(f"{folder}/{after}", np.ones((6, 2)), labels, name="a", overwrite=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    after += 1
    if status == 0:
        break
print(after)
"""


def run_killed(folder) -> int:
    source = os.path.dirname(os.path.dirname(sys.modules["wellsep"].__file__))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def runs_in(folder) -> list[Run]:
    try:
        return list(load_runs(folder, verify=True))
    except NoRuns:
        return []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to kill a writer at every step")
def test_a_writer_killed_at_any_step_leaves_all_or_nothing(tmp_path):
    steps = run_killed(tmp_path)
    assert steps > 8
    found = [runs_in(tmp_path / str(after)) for after in range(steps)]
    seen = [run for runs in found for run in runs]
    assert all(run.labels.tolist() == [9] * 6 and run.n_features == 2 for run in seen)
    complete = [bool(runs) for runs in found]
    assert complete == sorted(complete)
    assert (complete[0], complete[-1]) == (False, True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to kill a writer at every step")
def test_a_writer_killed_while_replacing_leaves_the_old_run_or_the_new(tmp_path):
    for after in range(30):
        save_run(tmp_path / str(after), SPACE, LABELS, name="a")
    steps = run_killed(tmp_path)
    assert 10 < steps <= 30
    news = []
    for after in range(steps):
        run = load_runs(tmp_path / str(after), verify=True)["a"]
        news.append(run.labels.tolist() == [9] * 6)
        assert news[-1] or np.array_equal(run.embedding, SPACE)
    assert news == sorted(news)
    assert (news[0], news[-1]) == (False, True)


def age(folder, seconds: float) -> None:
    then = time.time() - seconds
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))


def test_what_a_killed_writer_left_is_ignored_and_removed_by_the_next_save(tmp_path):
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    token, here = "0" * 32, _replace.machine()
    dead, alive = f".{token}.{here}-{gone}.tmp", f".{token}.{here}-{os.getpid()}.tmp"
    elsewhere, just_now = f".{token}.ffffffff-1.tmp", f".{token}.eeeeeeee-1.tmp"
    foreign = ".dead.tmp"
    for name in (dead, alive, elsewhere, just_now, foreign):
        (tmp_path / name).mkdir()
        (tmp_path / name / "labels.npy").write_bytes(b"half")
    age(tmp_path / elsewhere, 4000)
    age(tmp_path / foreign, 4000)
    save_run(tmp_path, None, LABELS, name="a")
    assert names_in(tmp_path) == sorted([alive, just_now, foreign, "a"])
    assert load_runs(tmp_path).names == ("a",)


def test_a_hidden_folder_that_is_no_run_is_never_removed(tmp_path):
    (tmp_path / ".a.old").mkdir()
    (tmp_path / ".a.old" / "notes.txt").write_text("kept")
    save_run(tmp_path, None, LABELS, name="a")
    save_run(tmp_path, None, LABELS, name="b")
    assert (tmp_path / ".a.old" / "notes.txt").read_text() == "kept"


def test_a_folder_that_is_no_run_is_never_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.txt").write_text("kept")
    with pytest.raises(FileExistsError, match="choose another name: it holds no run"):
        save_run(tmp_path, None, LABELS, name="thesis", overwrite=True)
    assert (tmp_path / "thesis" / "draft.txt").read_text() == "kept"
    assert names_in(tmp_path) == ["thesis"]


@pytest.mark.parametrize("file", ["labels.npy", "run.json", "notes.txt"])
def test_only_a_folder_that_holds_a_saved_run_and_nothing_else_is_replaced(tmp_path, file):
    if file == "notes.txt":
        save_run(tmp_path, SPACE, LABELS, name="src")
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src" / file).write_bytes(b"{}")
    before = {path.name: path.read_bytes() for path in (tmp_path / "src").iterdir()}
    why = "beside the run it holds 'notes.txt'" if file == "notes.txt" else "it holds no run that"
    with pytest.raises(FileExistsError, match=f"choose another name: {why}"):
        save_run(tmp_path, None, LABELS, name="src", overwrite=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "src").iterdir()} == before
    assert names_in(tmp_path) == ["src"]


def test_a_hidden_folder_of_the_users_is_never_removed(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="a")
    (tmp_path / ".a.old").mkdir()
    np.save(tmp_path / ".a.old" / "labels.npy", LABELS)
    with pytest.raises(FileExistsError, match=r"a folder '\.a\.old' there already; .* no run that"):
        save_run(tmp_path, SPACE, LABELS[::-1], name="a", overwrite=True)
    assert names_in(tmp_path / ".a.old") == ["labels.npy"]
    np.testing.assert_array_equal(load_runs(tmp_path)["a"].labels, LABELS)


@pytest.mark.parametrize("name", ["m.zarr", "M.ZARR", "m.npz", "run.json", "labels.npy", ".a.old"])
def test_no_name_is_taken_for_something_else(tmp_path, name):
    save_run(tmp_path, SPACE, LABELS, name=name)
    save_run(tmp_path, SPACE, LABELS, name="n")
    assert set(load_runs(tmp_path).names) == {name, "n"}


def test_a_file_that_was_replaced_since_is_refused_and_one_that_is_open_stays(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="a")
    runs, held = load_runs(tmp_path), load_runs(tmp_path)
    space = held["a"].embedding
    save_run(tmp_path, SPACE + 1, LABELS + 1, name="a", overwrite=True)
    with pytest.raises(OSError, match="embedding of run 'a' could not be read: the file was rep"):
        _ = runs["a"].embedding
    np.testing.assert_array_equal(runs["a"].labels, LABELS)  # read when the runs were loaded
    np.testing.assert_array_equal(space, SPACE)
    assert held["a"].embedding is space


def test_a_mapped_file_that_was_written_anew_in_place_is_not_read(tmp_path):
    path = save_run(tmp_path, SPACE, LABELS, name="a") / "embedding.npy"
    run = load_runs(tmp_path)["a"]
    space = run.embedding
    os.truncate(path, 100)  # to read the map now would kill the process
    with pytest.raises(OSError, match="the file was changed since it was loaded. Restore the file"):
        run.digest()
    del space
    with pytest.raises(OSError, match="the file is shorter than when it was loaded"):
        run.digest()


def test_a_reader_takes_all_parts_from_one_version(tmp_path, monkeypatch):
    save_run(tmp_path, SPACE, LABELS, name="a", params={"version": 0})
    real, writes = folder_module.stored_space, []

    def beside(path, what):
        if len(writes) < 3:  # another process replaces the run between two files
            writes.append(what)
            version = {"version": len(writes)}
            save_run(
                tmp_path, SPACE, LABELS + len(writes), name="a", params=version, overwrite=True
            )
        return real(path, what)

    monkeypatch.setattr(folder_module, "stored_space", beside)
    run = load_runs(tmp_path)["a"]
    assert run.params == {"version": 3}
    np.testing.assert_array_equal(run.labels, LABELS + 3)


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_full_disk_gives_a_sentence_and_keeps_the_old_run(tmp_path, monkeypatch, step):
    save_run(tmp_path, SPACE, LABELS, name="a")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, full_disk)
        sentence = r"Saving run '[ab]' in .* failed: No space left on device\. Nothing was written"
        with pytest.raises(OSError, match=sentence) as caught:
            save_run(tmp_path, SPACE, LABELS, name="b")
        assert caught.value.errno == errno.ENOSPC
        with pytest.raises(OSError, match=sentence):
            save_run(tmp_path, None, LABELS[::-1], name="a", overwrite=True)
    assert names_in(tmp_path) == ["a"]
    np.testing.assert_array_equal(load_runs(tmp_path, verify=True)["a"].labels, LABELS)


def test_a_full_disk_keeps_the_old_archive_and_says_so(tmp_path, monkeypatch):
    runs, path = Runs([Run("a", labels=LABELS)]), tmp_path / "all.npz"
    runs.save(path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        sentence = r"Writing .*all\.npz failed: No space left on device\. Nothing was"
        with pytest.raises(OSError, match=sentence):
            runs.save(path, overwrite=True)
    assert path.read_bytes() == before


def test_a_full_disk_reported_without_a_number_is_told_too(tmp_path, monkeypatch):
    def short(*args, **kwargs):
        raise OSError("16 requested and 3 written")

    monkeypatch.setattr("numpy.lib.format.write_array", short)
    with pytest.raises(OSError, match="Saving run 'a' in .* failed: 16 requested and 3"):
        save_run(tmp_path, None, LABELS, name="a")
    assert names_in(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_numpy_reports_a_device_that_is_full():
    from numpy.lib import format as npy_format

    def write():
        with open("/dev/full", "wb") as stream:
            npy_format.write_array(stream, np.zeros(10_000), allow_pickle=False)
            stream.flush()

    with pytest.raises(OSError, match="No space left|requested"):
        write()


def test_a_read_only_folder_gives_a_sentence(tmp_path, monkeypatch):
    def refuse(self, *args, **kwargs):
        if self.name.endswith(".tmp"):
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return None

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(PermissionError, match="Saving run 'a' in .* failed: Permission denied"):
        save_run(tmp_path, None, LABELS, name="a")


def test_saving_into_a_file_gives_a_sentence(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("kept")
    with pytest.raises(FileExistsError, match="folder must be a folder, got the file"):
        save_run(file, None, LABELS, name="a")
    assert file.read_text() == "kept"


def test_bad_input_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="run 'a' must have the same number of objects"):
        save_run(tmp_path / "runs", SPACE, LABELS[:3], name="a")
    assert names_in(tmp_path) == []


def test_all_runs_are_saved_to_a_folder_and_back(tmp_path):
    runs = Runs(
        [
            Run("a/1", SPACE, LABELS, params={"k": 3}, ids=range(6)),
            Run("b", labels=LABELS, space="a/1"),
        ]
    )
    runs.save(tmp_path / "runs")
    again = load_runs(tmp_path / "runs")
    assert again.names == ("a/1", "b")
    assert again.paired and again.params["a/1"] == {"k": 3}
    with pytest.raises(FileExistsError, match="run 'a/1' must be new"):
        runs.save(tmp_path / "runs")


def write_files_of_every_kind(folder):
    from wellsep.evaluate.scoring.spaces import SpaceScores
    from wellsep.tables.writing import write_array, write_table

    save_run(folder, np.ones((6, 2)), np.arange(6), name="a", ids=list("abcdef"))
    Runs.from_parts({"s": np.ones((6, 2))}, {"p": np.arange(6)}).save(folder / "all.npz")
    SpaceScores(("a",), np.ones((1, 1))).save(folder / "record")
    write_array(folder / "x.npy", np.ones(3))
    write_table(folder / "t.csv", {"a": [1]})
    with contextlib.suppress(ImportError):
        import torch

        from wellsep.deep.checkpoints import write_tensors

        write_tensors(folder / "t.safetensors", {"a": torch.ones(3)}, {})


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_every_file_and_folder_gets_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_files_of_every_kind(tmp_path)
    finally:
        os.umask(before)
    written = list(tmp_path.rglob("*"))
    assert len(written) >= 10
    modes = {str(p.relative_to(tmp_path)): oct(p.stat().st_mode & 0o777) for p in written}
    wanted = {str(p.relative_to(tmp_path)): "0o750" if p.is_dir() else "0o640" for p in written}
    assert modes == wanted


def test_a_label_file_is_read_once_however_often_a_judgement_and_a_page_ask(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    ws.save_run(tmp_path / "runs", rng.normal(size=(60, 2)) + 5 * np.eye(3, 2)[truth], name="space")
    for i in range(12):
        labels = np.where(rng.random(60) < i / 20, rng.integers(0, 3, 60), truth)
        ws.save_run(tmp_path / "runs", None, labels, name=f"run {i}", space="space")
    opened = []
    read = Stored.open

    def counted(stored):
        opened.append(stored)
        return read(stored)

    monkeypatch.setattr(Stored, "open", counted)
    runs = ws.load_runs(tmp_path / "runs")
    judgement = ws.judge(runs, n_draws=3)
    ws.render_report(judgement, tmp_path / "page.html", runs=runs, truth=truth)
    assert len([stored for stored in opened if stored.ndim == 1]) == 12
    assert not runs["run 0"].labels.flags.writeable
