"""Files from others: nothing outside their folder is read, and sizes are checked before memory."""

from __future__ import annotations

import io
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest
from golden import ROOT

import wellsep as ws
from wellsep._files.arrays import members, read_json, stored_member, stored_npy
from wellsep._files.limits import inside
from wellsep.cli.main import main
from wellsep.records import Judgement
from wellsep.tables.reading import read_labels, read_matrix, read_table

X = np.random.default_rng(0).normal(size=(12, 2))
LABELS = np.arange(12) % 3


def saved(folder):
    runs = ws.Runs.from_parts({"a": X, "b": X * 2}, {"a": LABELS, "b": LABELS % 2})
    runs.save(folder)
    return runs


# -- paths ---------------------------------------------------------------------------------------


def test_a_record_names_files_of_its_own_folder_only(tmp_path):
    judgement = ws.judge(saved(tmp_path / "runs"), n_draws=0)
    for name in ("one", "other"):
        judgement.save(tmp_path / name)
    manifest = tmp_path / "one" / "record.json"
    facts = json.loads(manifest.read_text())
    facts["parts"]["arrays.npz"]["file"] = "../other/" + facts["parts"]["arrays.npz"]["file"]
    manifest.write_text(json.dumps(facts))
    with pytest.raises(ValueError, match="must name files in its own folder, got '../other/"):
        Judgement.load(tmp_path / "one")


@pytest.mark.parametrize("name", ["../secret.npy", "/etc/passwd", "a/../../b", "a\0b"])
def test_a_name_from_a_file_does_not_lead_out_of_the_folder(tmp_path, name):
    with pytest.raises(ValueError, match="artifact_id must be a file inside"):
        inside(tmp_path, name, "artifact_id")


def test_a_link_does_not_lead_out_of_the_folder(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "secret.npy").touch()
    (tmp_path / "store" / "link").symlink_to(tmp_path / "secret.npy")
    with pytest.raises(ValueError, match="must be a file inside"):
        inside(tmp_path / "store", "link", "artifact_id")


def test_an_artifact_of_optuna_outside_the_store_is_refused(tmp_path):
    optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
    from wellsep.adapters import runs_from_optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    np.save(tmp_path / "secret.npy", LABELS)
    (tmp_path / "store").mkdir()
    study = optuna.create_study()
    trial = study.ask()
    facts = {
        "artifact_id": "../secret.npy",
        "filename": "labels.npy",
        "mimetype": "",
        "encoding": None,
    }
    study._storage.set_trial_system_attr(trial._trial_id, "artifacts:x", json.dumps(facts))
    study.tell(trial, 1.0)
    with pytest.raises(ValueError, match="artifact_id of run 'trial-0' must be a file inside"):
        runs_from_optuna(study, artifacts=tmp_path / "store")


@pytest.mark.parametrize("kind", ["external storage", "external link", "virtual"])
def test_an_h5ad_that_takes_values_from_another_file_is_refused(tmp_path, kind):
    pytest.importorskip("anndata", reason="needs the extra anndata")
    h5py = pytest.importorskip("h5py", reason="needs the extra anndata")
    import anndata
    import pandas as pd

    from wellsep.adapters import runs_from_anndata

    obs = pd.DataFrame({"k": LABELS.astype(str)}, index=[f"c{i}" for i in range(12)])
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(obs=obs, obsm={"X_pca": X}).write_h5ad(path)
    (tmp_path / "secret.bin").write_bytes(X.tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = X
    with h5py.File(path, "r+") as file:
        del file["obsm/X_pca"]
        if kind == "external storage":
            where = [(str(tmp_path / "secret.bin"), 0, X.nbytes)]
            file["obsm"].create_dataset("X_pca", X.shape, "f8", external=where)
        elif kind == "external link":
            file["obsm/X_pca"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/x")
        else:
            layout = h5py.VirtualLayout(X.shape, "f8")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", X.shape)
            file["obsm"].create_virtual_dataset("X_pca", layout)
    with pytest.raises(ValueError, match="source must hold its own data.*obsm/X_pca"):
        runs_from_anndata(path, labels="k")


# HDF5 itself ends the process (SIGSEGV) or does not end on some damaged files, and no caller can
# catch that: each file is read in a process of its own, with a time limit.
READ_DAMAGED = """
import json, os, signal, sys, warnings
import numpy as np
from wellsep.adapters import runs_from_anndata

def read(path):
    try:
        for run in runs_from_anndata(path, labels="leiden_*", spaces="X_*,X"):
            run.labels, run.embedding
    except Exception as error:
        return [type(error).__name__, str(error)]

warnings.simplefilter("ignore")
path, seeds = sys.argv[1], range(int(sys.argv[2]))
sound = open(path, "rb").read()
assert read(path) is None  # also imports all that the children need
for seed in seeds:
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        rng = np.random.default_rng(seed)
        data = bytearray(sound)
        for place in rng.integers(len(data), size=rng.integers(1, 20)):
            data[place] = rng.integers(256)
        open(path, "wb").write(bytes(data))
        os.write(w, json.dumps(read(path)).encode())
        os._exit(0)
    os.close(w)
    told = open(r, "rb").read()
    os.waitpid(child, 0)
    print(json.dumps("ended" if not told else json.loads(told)))
"""


def read_damaged(path, n_files):
    done = subprocess.run(
        [sys.executable, "-c", READ_DAMAGED, str(path), str(n_files)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process for each file is forked")
@pytest.mark.parametrize(
    "n_files", [24, pytest.param(300, marks=pytest.mark.slow, id="more files")]
)
def test_a_damaged_h5ad_is_refused_by_a_sentence_that_names_it(tmp_path, n_files):
    anndata = pytest.importorskip("anndata", reason="needs the extra anndata")
    import pandas as pd

    obs = {f"leiden_{k}": pd.Categorical((np.arange(12) % k).astype(str)) for k in (2, 3)}
    obs = pd.DataFrame({**obs, "size": np.arange(12.0)}, index=[f"c{i}" for i in range(12)])
    cells = anndata.AnnData(X, obs, obsm={"X_pca": X, "X_umap": X[:, :2]})
    cells.uns["leiden_2"] = {"params": {"resolution": 1.0}}
    cells.write_h5ad(tmp_path / "cells.h5ad", compression="gzip")
    outcomes = read_damaged(tmp_path / "cells.h5ad", n_files)
    assert len(outcomes) == n_files
    refusals = [outcome for outcome in outcomes if outcome not in (None, "ended")]
    assert len(refusals) > n_files / 3
    assert outcomes.count("ended") <= 1 + n_files // 20
    for kind, sentence in refusals:
        assert kind in ("ValueError", "TypeError")
        of_run = sentence.startswith(("embedding of run", "labels of run"))
        assert "cells.h5ad" in sentence or of_run, sentence
        assert "\n" not in sentence


# -- sizes ---------------------------------------------------------------------------------------


@pytest.fixture
def peak():
    """Bytes of Python's memory at its highest since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def header(shape, version=(2, 0)):
    buffer = io.BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(buffer, facts)
    return buffer.getvalue()


@pytest.mark.parametrize("shape", [(10**12, 2), (2**62, 4), (-3, 2)])
def test_the_shape_of_an_array_is_compared_with_its_file(tmp_path, shape):
    (tmp_path / "x.npy").write_bytes(header(shape) + bytes(64))
    with pytest.raises(ValueError, match=r"x.npy must (be complete|have a shape)"):
        read_matrix(tmp_path / "x.npy")


DESCRIPTIONS = [
    "|V0", "<U0", "|S0", [], [("a", "<f8", (0,))], ("<f8", (0,)), "<f8", "<f2", "<i8", "|b1", "<U1",
    "<c16", "<M8[s]", "|V8", "|O", ("<f8", (3,)), [("a", "<f8")], "<U1000000", "<U-1", "x", "",
]  # fmt: skip
SIZES = [0, 3, 10**6, 10**30, -1, True]
SHAPES = [
    (),
    *((n,) for n in SIZES),
    *itertools.product(SIZES, SIZES),
    (2**31, 2**31, 4),
    (1,) * 70,
]


@pytest.mark.parametrize("descr", DESCRIPTIONS, ids=str)
def test_a_header_never_brings_more_values_than_its_file_has_bytes(tmp_path, peak, descr):
    vague = []

    def size_of(read, name):
        try:
            values = read(tmp_path / name)
        except ValueError as error:
            vague.extend([] if name in str(error) else [f"{shape}: {error}"])
            return 0
        arrays = list(values.values()) if isinstance(values, dict) else [values]
        return sum(array.size for array in arrays) + len(arrays)

    for shape in SHAPES:
        facts = f"{ {'descr': descr, 'fortran_order': False, 'shape': shape} }\n".encode()
        data = b"\x93NUMPY\x02\x00" + struct.pack("<I", len(facts)) + facts + bytes(64)
        (tmp_path / "x.npy").write_bytes(data)
        with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("X.npy", data)
        assert size_of(read_matrix, "x.npy") <= len(data)
        assert size_of(read_matrix, "x.npz") <= len(data)
        assert size_of(read_labels, "x.npy") <= len(data)
    assert vague == []
    assert peak() < 3e6


def test_a_long_header_is_not_read(tmp_path, peak):
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x02\x00" + b"\xff\xff\xff\xff" + bytes(1 << 20))
    tracemalloc.reset_peak()
    with pytest.raises(ValueError, match="x must be a plain .npy array"):
        stored_npy(tmp_path / "x.npy", "x")
    assert peak() < 1 << 19


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_is_unpacked_as_a_whole_is_refused(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", method) as archive:
        archive.writestr("X.npy", header((1 << 20, 16)) + bytes(1 << 24))
    assert (tmp_path / "x.npz").stat().st_size < 1 << 14
    with pytest.raises(ValueError, match="x.npz must be stored or deflated"):
        read_matrix(tmp_path / "x.npz")


def test_a_member_does_not_promise_more_than_its_bytes_hold(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, X=X)
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02") + 24  # the size that the table of contents gives
    data[place : place + 4] = (1 << 31).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="must not unpack to more than its bytes can hold"):
        members(path, "x")
    with pytest.raises(ValueError, match="must not unpack to more than its bytes can hold"):
        stored_member(path, "X.npy", "x")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 900 + "1" + "}" * 900, "1" * 10_000])
def test_json_that_is_too_deep_or_too_long_is_refused(text):
    with pytest.raises(ValueError, match="run.json must"):
        read_json(text, "run.json")


def test_a_run_with_endless_json_is_named(tmp_path):
    saved(tmp_path)
    (tmp_path / "a" / "run.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="run.json of run folder 'a'"):
        ws.load_runs(tmp_path, damaged="raise")


# -- what is no file -----------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
@pytest.mark.parametrize("name", ["p.npz", "a/labels.npy", "a/run.json", "c.labels.csv"])
def test_a_pipe_in_a_folder_of_runs_is_named_and_not_waited_for(tmp_path, name):
    saved(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=r"must be a file, got a pipe \(FIFO\)"):
        ws.load_runs(tmp_path, damaged="raise")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no such device here")
def test_a_device_is_not_read(tmp_path):
    (tmp_path / "x.csv").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="must be a file, got a device"):
        read_table(tmp_path / "x.csv")


def test_a_server_that_never_answers_is_told_in_seconds(monkeypatch):
    pytest.importorskip("mlflow", reason="needs the extra mlflow")
    from wellsep.adapters import load_any, stores

    monkeypatch.setattr(stores, "ANSWER_SECONDS", 0.3)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(ConnectionError, match="answers within 0.3 seconds, got none at http"):
            load_any(url)


def test_a_server_that_refuses_is_told_at_once(capsys):
    pytest.importorskip("mlflow", reason="needs the extra mlflow")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert main(["rank", f"http://127.0.0.1:{port}/"]) == 2
    told = capsys.readouterr().err
    assert "SOURCE must be a server that answers within 10 seconds" in told
    assert told.count("\n") == 1


def test_a_server_that_answers_at_all_is_asked(monkeypatch):
    from wellsep.adapters.stores import check_server

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 401 no\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        check_server(f"http://127.0.0.1:{port}/", 5)
        thread.join()
