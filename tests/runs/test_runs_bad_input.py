"""What cannot be loaded is refused with a sentence that names the run."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import warnings

import numpy as np
import pytest

from wellsep.cli.main import main
from wellsep.runs import NoRuns, load_runs, save_run

LABELS = np.array([0, 0, 1, 1])
SPACE = np.arange(8.0).reshape(4, 2)


@pytest.fixture
def folder(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="good")
    save_run(tmp_path, SPACE, LABELS, name="bad")
    return tmp_path


def plain_run(folder, name="bad"):
    """A run folder without manifest, so that the arrays speak for themselves."""
    (folder / name).mkdir()
    np.save(folder / name / "labels.npy", LABELS)
    np.save(folder / name / "embedding.npy", SPACE)
    return folder / name


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    with pytest.raises(
        NoRuns, match="at least one run, got .*, an empty folder; .*NAME.labels.csv.*save_run"
    ):
        load_runs(tmp_path)


def test_a_folder_without_runs_says_what_it_holds(tmp_path):
    (tmp_path / "notes.txt").touch()
    (tmp_path / "sub").mkdir()
    with pytest.raises(NoRuns, match="got .*, with 'notes.txt', 'sub'; call tables"):
        load_runs(tmp_path)


def test_one_run_is_loaded(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="only")
    assert load_runs(tmp_path).names == ("only",)


def test_a_path_that_is_not_there_or_not_known_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="path must be a folder of runs or an .npz file"):
        load_runs(tmp_path / "nowhere")
    (tmp_path / "data.h5ad").touch()
    with pytest.raises(
        ValueError, match="got the file 'data.h5ad'; wellsep.adapters reads AnnData"
    ):
        load_runs(tmp_path / "data.h5ad")


@pytest.mark.parametrize("kind", ["labels", "embedding"])
def test_a_missing_file_is_named_with_its_run(folder, kind):
    (folder / "bad" / f"{kind}.npy").unlink()
    with pytest.raises(FileNotFoundError, match=f"{kind} of run 'bad' must exist, got no file"):
        load_runs(folder, damaged="raise")


def test_a_wrong_number_of_objects_names_the_run(tmp_path):
    for name in ("a", "b"):
        save_run(tmp_path, SPACE, LABELS, name=name)
    save_run(tmp_path, SPACE[:3], LABELS[:3], name="A-short")
    with pytest.raises(
        ValueError, match="run 'A-short' must have the 4 objects that run 'a' has, got 3"
    ):
        load_runs(tmp_path)


def test_ids_in_another_order_name_the_run_and_the_position(tmp_path):
    save_run(tmp_path, None, LABELS, name="a", ids=list("pqrs"))
    save_run(tmp_path, None, LABELS, name="b", ids=list("pqsr"))
    with pytest.raises(
        ValueError, match="ids of run 'b' must equal .*'s' in place of 'r' at position 2"
    ):
        load_runs(tmp_path)


@pytest.mark.parametrize(
    ("array", "error", "sentence"),
    [
        (SPACE.astype(complex), TypeError, "real number type, got complex128"),
        (SPACE.astype(str), TypeError, "real number type, got <U"),
        (SPACE.astype(np.longdouble), TypeError, "real number type, got"),
        (SPACE[0], ValueError, "table of objects × features, got shape"),
        (np.zeros(4, dtype=[("x", float)]), TypeError, "real number type, got"),
    ],
)
def test_an_embedding_of_wrong_type_or_shape_is_refused(tmp_path, array, error, sentence):
    np.save(plain_run(tmp_path) / "embedding.npy", array)
    with pytest.raises(error, match=f"embedding of run 'bad' must be .*{sentence}"):
        load_runs(tmp_path)


def test_labels_of_wrong_type_are_refused(tmp_path):
    np.save(plain_run(tmp_path) / "labels.npy", LABELS.astype("datetime64[s]"))
    with pytest.raises(
        TypeError, match="labels of run 'bad' must be integers or text, got datetime"
    ):
        load_runs(tmp_path)


def test_float_labels_are_checked_when_loaded(tmp_path):
    np.save(plain_run(tmp_path) / "labels.npy", np.array([0.0, 1.0, np.nan, 1.0]))
    with pytest.raises(ValueError, match="labels of run 'bad' must have a value for every object"):
        load_runs(tmp_path)


class Trap:
    """Would leave a trace if ever unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("sprung",))


@pytest.mark.parametrize("kind", ["labels", "embedding", "ids"])
def test_a_pickled_array_is_refused_and_never_run(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    path = plain_run(tmp_path)
    np.save(path / f"{kind}.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(
        ValueError, match=f"{kind} of run 'bad' must be a plain .npy.*pickled Python"
    ):
        load_runs(tmp_path)
    (path / f"{kind}.npy").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match=f"{kind} of run 'bad' must be a plain .npy array"):
        load_runs(tmp_path)
    np.savez(tmp_path / "bad.npz", **{kind: np.array([Trap()], dtype=object)})
    with pytest.raises(
        ValueError, match=f"{kind} of run 'bad' must be a plain .npy.*pickled Python"
    ):
        load_runs(tmp_path / "bad.npz")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("keep", [0, 3, 40, 130])
def test_a_truncated_npy_is_refused(folder, keep):
    file = folder / "bad" / "embedding.npy"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match="embedding of run 'bad' must be .*truncated"):
        load_runs(folder, damaged="raise")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_truncated_anywhere_is_refused(tmp_path, save):
    save(tmp_path / "bad.npz", embedding=np.random.default_rng(0).normal(size=(40, 5)))
    whole = (tmp_path / "bad.npz").read_bytes()
    for keep in range(0, len(whole), 97):
        (tmp_path / "bad.npz").write_bytes(whole[:keep])
        with pytest.raises(ValueError, match="run 'bad' must be in a complete .npz archive"):
            load_runs(tmp_path)


def test_a_damaged_member_is_refused_when_opened(tmp_path):
    path = tmp_path / "bad.npz"
    np.savez_compressed(path, embedding=np.random.default_rng(0).normal(size=(400, 5)))
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 255
    path.write_bytes(bytes(whole))
    runs = load_runs(path)
    with pytest.raises(
        ValueError, match="embedding of run 'bad' must be in a complete .npz archive"
    ):
        runs.spaces["bad"]


def test_an_archive_without_runs_says_what_it_holds(tmp_path):
    np.savez(tmp_path / "bad.npz", X=SPACE)
    with pytest.raises(ValueError, match="run 'bad' must have an entry 'embedding'.*got 'X.npy'"):
        load_runs(tmp_path / "bad.npz")


def test_archive_params_that_are_not_json_are_refused(tmp_path):
    np.savez(tmp_path / "bad.npz", labels=LABELS, params="{k: 2")
    with pytest.raises(ValueError, match="params of run 'bad' must be valid JSON"):
        load_runs(tmp_path)
    np.savez(tmp_path / "bad.npz", labels=LABELS, params=np.array([1, 2]))
    with pytest.raises(TypeError, match="params of run 'bad' must be one text, got int64"):
        load_runs(tmp_path)


def test_duplicate_names_are_refused_across_files(folder):
    np.savez(folder / "other.npz", labels=LABELS, name="good")
    with pytest.raises(ValueError, match="names of runs must be unique, got 'good' twice"):
        load_runs(folder)


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes only on POSIX")
@pytest.mark.parametrize("name", [b"caf\xe9.npz", b"caf\xe9.labels.csv"])
def test_a_file_name_that_is_not_utf8_is_refused_readably(tmp_path, name):
    path = os.path.join(os.fsencode(tmp_path), name)
    try:
        with open(path, "wb") as stream:
            np.savez(stream, labels=LABELS)
    except OSError:
        pytest.skip("this file system refuses names that are not UTF-8")
    with pytest.raises(ValueError, match=r"must be valid UTF-8 text, got 'caf\\udce9'"):
        load_runs(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes only on POSIX")
def test_a_saved_run_whose_folder_was_renamed_to_bytes_keeps_its_name(tmp_path):
    path = save_run(tmp_path, None, LABELS, name="good")
    try:
        os.rename(os.fsencode(path), os.path.join(os.fsencode(tmp_path), b"caf\xe9"))
    except OSError:
        pytest.skip("this file system refuses names that are not UTF-8")
    assert load_runs(tmp_path).names == ("good",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"{", "must be valid JSON"),
        (b"\xff\xfe", "must be UTF-8 text"),
        (b"[1]", "must be a JSON object, got list"),
        (b'{"format": "other"}', "must have the format 'wellsep-run', got 'other'"),
        (b'{"version": 99}', "must have a format version up to 1, got 99; update wellsep"),
        (b'{"name": 3}', "name of run in folder 'bad' must be a string, got 3"),
        (b'{"name": "\\ud800"}', "must be valid UTF-8 text"),
        (b'{"files": [1]}', "must be a JSON object"),
        (b'{"params": [1]}', "params of run 'bad' must be a mapping, got list"),
    ],
)
def test_a_bad_manifest_is_refused_with_its_folder(folder, text, sentence):
    (folder / "bad" / "run.json").write_bytes(text)
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        load_runs(folder, damaged="raise")
    assert "bad" in str(caught.value)


def test_a_damaged_run_is_named_and_left_out(folder):
    (folder / "bad" / "run.json").write_text('{"name": ')
    with pytest.warns(
        UserWarning, match=r"left out: .*bad\. run\.json of run folder 'bad'"
    ) as told:
        runs = load_runs(folder)
    assert runs.names == ("good",) and len(told) == 1
    assert runs.notes == (str(told[0].message),)


# -- any value in run.json, any bytes in labels.npy -----------------------------------------------
# A name that another run has is no damage: which of the two is meant, nobody knows (see above).

JSON_VALUES = [
    None, True, 0, -1, 2.5, 1e308, 10**400, float("nan"), "", "x", "bad", "../good", "\ud800",
    "a\0b", [], [1], [None], [[]], {}, {"a": None}, {"file": "../good/labels.npy"},
]  # fmt: skip


def places(value, before=()):
    """The way to each value of nested JSON data, its root first."""
    yield before
    if not isinstance(value, dict | list):
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(one, (*before, key))


def load_beside_good(folder):
    """Names and what is said of the rest, which must name the run's folder and what is wrong."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        runs = load_runs(folder, verify=True)
        labels = [run.labels for run in runs if run.has_labels]
    assert all(len(vector) == len(LABELS) for vector in labels)
    for one in told:
        assert re.search(r"left out: \S*bad\..*(run|files).* (must|could)", str(one.message)), told
    assert "good" in runs.names
    assert len(runs) + len(told) == 2
    return len(told)


@pytest.mark.parametrize("embedding", [SPACE, None], ids=["space", "no space"])
def test_any_value_at_any_place_of_run_json_leaves_the_other_runs(tmp_path, embedding):
    save_run(tmp_path, SPACE, LABELS, name="good")
    space = "good" if embedding is None else None
    options = {"params": {"k": [2]}, "metadata": {"m": 1}, "ids": list("abcd"), "space": space}
    path = save_run(tmp_path, embedding, LABELS, name="bad", **options) / "run.json"
    manifest = json.loads(path.read_text())
    left_out = 0
    for place in places(manifest):
        for value in JSON_VALUES:
            changed = copy.deepcopy({"root": manifest})
            inner = changed
            for key in ("root", *place)[:-1]:
                inner = inner[key]
            inner[("root", *place)[-1]] = value
            path.write_text(json.dumps(changed["root"]))
            left_out += load_beside_good(tmp_path)
    assert left_out > 100


@pytest.mark.parametrize(
    ("descr", "refused"),
    [
        *(("<i8", 21), ("|i1", 21), ("<u8", 0), ("<f8", 24), ("<f2", 24)),
        *(("<U2", 24), (">U2", 24), ("|S4", 22), ("|b1", 0), ("<M8[s]", 25)),
    ],
)
def test_any_bytes_in_labels_leave_the_other_runs(tmp_path, descr, refused):
    save_run(tmp_path, SPACE, LABELS, name="good")
    rng = np.random.default_rng(0)
    dtype = np.dtype(descr)
    some = [bytes([b]) * 4 * dtype.itemsize for b in (0, 1, 0x7F, 0x80, 0xFF)]
    some += [rng.bytes(4 * dtype.itemsize) for _ in range(20)]
    left_out = 0
    (tmp_path / "bad").mkdir()
    for values in some:
        np.save(tmp_path / "bad" / "labels.npy", np.frombuffer(values, dtype))
        left_out += load_beside_good(tmp_path)
    assert left_out == refused  # of 25


def test_a_run_whose_space_is_damaged_is_left_out_with_it(tmp_path):
    save_run(tmp_path, SPACE, LABELS, name="good")
    save_run(tmp_path, SPACE, None, name="space")
    save_run(tmp_path, None, LABELS, name="bad", space="space")
    (tmp_path / "space" / "embedding.npy").write_bytes(b"")
    with pytest.warns(UserWarning, match="^2 runs that cannot be read were left out") as told:
        assert load_runs(tmp_path).names == ("good",)
    assert str(tmp_path / "bad") in str(told[0].message)


def test_the_other_runs_are_ranked_where_labels_hold_no_text(folder, capsys):
    save_run(folder, SPACE * [1, 2], [0, 1, 1, 1], name="third")
    np.save(folder / "bad" / "labels.npy", np.full(4, 0x7FFFFFFF, "<u4").view("<U1"))
    (folder / "bad" / "run.json").unlink()
    assert main(["rank", str(folder), "--draws", "0", "--cache", "none"]) == 0
    shown = capsys.readouterr()
    assert "labels of run 'bad' must be text, got no character at 0" in shown.err
    assert "third" in shown.out


def test_damaged_files_of_every_kind_are_left_out_in_one_sentence(folder):
    (folder / "bad" / "labels.npy").write_bytes(b"\x93NUMPY")
    (folder / "archive.npz").write_bytes(b"PK")
    (folder / "table.labels.csv").write_text("")
    (folder / "below" / "deep").mkdir(parents=True)
    (folder / "below" / "deep" / "run.json").write_text("[")
    with pytest.warns(UserWarning, match="^4 runs that cannot be read were left out") as told:
        assert load_runs(folder).names == ("good",)
    for place in ("bad", "archive.npz", "table.labels.csv", os.path.join("below", "deep")):
        assert str(folder / place) in str(told[0].message)


def test_where_no_run_can_be_read_the_first_error_stands(folder):
    for name in ("bad", "good"):
        (folder / name / "run.json").write_text("[")
    with pytest.raises(ValueError, match="run.json of run folder 'bad' must be valid JSON"):
        load_runs(folder)


def test_the_command_ranks_the_runs_that_can_be_read(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for i in range(3):
        save_run(tmp_path, rng.normal(size=(30, 2)), rng.integers(0, 2, 30), name=f"r{i}")
    (tmp_path / "r1" / "labels.npy").write_bytes(b"")
    assert main(["rank", str(tmp_path), "--draws", "0", "--cache", "none"]) == 0
    told = capsys.readouterr()
    assert f"left out: {tmp_path / 'r1'}" in told.err and "r0" in told.out


def test_files_that_a_manifest_points_elsewhere_are_not_followed(folder):
    manifest = json.loads((folder / "bad" / "run.json").read_text())
    manifest["files"]["labels"]["file"] = "../good/labels.npy"
    (folder / "bad" / "run.json").write_text(json.dumps(manifest))
    (folder / "bad" / "labels.npy").unlink()
    with pytest.raises(FileNotFoundError, match="labels of run 'bad' must exist"):
        load_runs(folder, damaged="raise")


def test_an_array_that_was_exchanged_is_noticed(folder):
    np.save(folder / "bad" / "embedding.npy", SPACE.astype(np.float32))
    with pytest.raises(
        ValueError, match="embedding of run 'bad' must have the dtype <f8 its run.json"
    ):
        load_runs(folder, damaged="raise")


def test_verify_notices_one_changed_value(folder):
    changed = SPACE.copy()
    changed[2, 1] += 1e-9
    np.save(folder / "bad" / "embedding.npy", changed)
    assert len(load_runs(folder)) == 2
    with pytest.raises(ValueError, match="embedding of run 'bad' must have the checksum"):
        load_runs(folder, verify=True, damaged="raise")


def test_a_file_that_shrinks_after_loading_is_noticed(folder):
    runs = load_runs(folder)
    np.save(folder / "bad" / "embedding.npy", SPACE[:2])
    with pytest.raises(OSError, match="embedding of run 'bad' could not be read: .* shorter"):
        runs.spaces["bad"]
