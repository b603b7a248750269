"""Command lines that work, and the ways in which a file or a flag may be damaged."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from faults.calls import LABELS, X, runs
from faults.outcomes import TookTooLong, limited

ODD_TEXTS = (
    "", " ", "-1", "0", "nan", "inf", "1e400", "99999999999999999999999", "None", "[/red]", "[red]",
    "\x1b[31m", "=1+1", "../..", "/dev/null", "no/such", "a\tb", "ä\u202e", "x" * 4000, "{}", "(",
    "name(=)", "silhouette(metric=None)", "lr=", "lr=1:2:3", "k=()", "http://127.0.0.1:9/",
    "sqlite:///no.db", "file://", "*", "[", "epochs=[/red]",
)  # fmt: skip


def write_files(folder: Path) -> None:
    """The files that the command lines read."""
    rng = np.random.default_rng(0)
    table = "a,b\n" + "\n".join(f"{x:.3f},{y:.3f}" for x, y in X) + "\n"
    (folder / "x.csv").write_text(table)
    (folder / "x.tsv").write_text(table.replace(",", "\t"))
    np.save(folder / "x.npy", X)
    np.savez(folder / "x.npz", X=X)
    np.savez_compressed(folder / "packed.npz", X=np.repeat(X, 50, axis=0))
    (folder / "y.csv").write_text("k3,k2\n" + "\n".join(f"{a},{a % 2}" for a in LABELS) + "\n")
    (folder / "t.csv").write_text("class\n" + "\n".join(map(str, LABELS)) + "\n")
    np.savez(folder / "y.npz", k3=LABELS, noise=rng.integers(0, 2, len(LABELS)))
    runs().save(folder / "runs")
    runs().save(folder / "runs.npz")
    import wellsep as ws

    ws.judge(runs(), n_draws=2).save(folder / "judgement")
    (folder / "answers.json").write_text("{}")
    ws.choose_k(X, [2, 3], random_state=0).save(folder / "chosen")


# Texts of Python and NumPy that tell a user nothing.
INTERNAL = re.compile(
    r"object has no attribute|not subscriptable|unhashable|NoneType|to unpack|list index|"
    r"must be integers or slices|truth value|not iterable|broadcast|Error: \S+$|Error: \[Errno",
    re.MULTILINE,
)
LINES: tuple[tuple[str, ...], ...] = (
    ("score", "x.csv", "y.csv", "-i", "silhouette", "-i", "cfq"),
    ("score", "x.tsv", "y.npz", "--json"),
    ("score", "x.npy", "y.csv", "-o", "s.csv"),
    ("score", "x.npz", "y.csv", "--noise", "cluster"),
    ("cluster", "x.csv", "-k", "2", "-o", "l.csv", "--seed", "1"),
    ("cluster", "x.npz", "-k", "2"),
    ("stability", "x.csv", "-k", "2", "--draws", "3", "--set", "n_splits=1"),
    ("stability", "x.npy", "y.csv", "--draws", "3"),
    ("describe", "x.csv", "t.csv"),
    ("describe", "x.npy", "y.csv", "--labels", "k3", "--json"),
    ("resolutions", "y.csv", "-o", "t.csv"),
    ("resolutions", "chosen", "--json"),
    ("explore", "x.csv", "--k", "2:3", "--draws", "0", "--cache", "none", "-m", "ward"),
    ("choose-k", "x.csv", "--k", "2:4"),
    ("choose-k", "packed.npz", "--k", "2:3", "--json"),
    ("rank", "runs", "--cache", "none", "--draws", "2"),
    ("rank", "runs.npz", "--cache", "none", "--draws", "2", "--json"),
    ("rank", "runs", "--cache", "none", "--draws", "0", "--truth", "t.csv", "--input", "x.npy"),
    ("explain", "judgement"),
    ("explain", "judgement", "--json"),
    ("settle", "judgement", "--json"),
    ("settle", "judgement", "--answers", "answers.json", "-o", "l.csv"),
    ("report", "judgement", "-o", "r.html"),
    ("report", "chosen", "-o", "r.html"),
    ("indices",),
    ("train", "-d", "x.npy", "-m", "no", "-o", "t", "-s", "epochs=1"),
)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))] if data else data


def _noise(data: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 7, 64, 300)))


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 3, 20))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _double(data: bytes, rng: random.Random) -> bytes:
    return data + data[rng.randrange(len(data) + 1) :]


def _swap(data: bytes, rng: random.Random) -> bytes:
    words = (b"nan", b"=1+1", b"\x1b[31m", b"-", b"null", b"[[[[", b'{"a":', b"1e999", b'"', b"\0")
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(words) + data[at + rng.choice((0, 1, 5)) :]


def _deep_json(data: bytes, rng: random.Random) -> bytes:
    return b"[" * rng.choice((500, 100_000))


def _other_json(data: bytes, rng: random.Random) -> bytes:
    values = (None, 3, [], {}, {"files": 3}, {"name": 7, "files": {"labels": []}}, "x", [[1]] * 3)
    try:
        known = json.loads(data)
    except ValueError:
        return json.dumps(rng.choice(values)).encode()
    if isinstance(known, dict) and known:
        known[rng.choice(sorted(known))] = rng.choice(values)
    return json.dumps(known).encode()


def _bomb(data: bytes, rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))) as packed:
        packed.writestr("X.npy", bytes(1 << 20))
    return buffer.getvalue()


def _huge_shape(data: bytes, rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    shape = rng.choice(((10**12, 2), (2**62, 4), (-3, 2), (3,) * 40, ()))
    head = {"descr": rng.choice(("<f8", "|O", "<U9")), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(buffer, head)
    return buffer.getvalue() + bytes(16)


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _cut, _noise, _flip, _flip, _double, _swap, _swap, _deep_json, _other_json, _other_json, _bomb,
    _huge_shape,
)  # fmt: skip


def damaged_lines(good: Path, work: Path, count: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    """Command lines to be run in ``work``: a damaged file or an odd word in each."""
    rng = random.Random(seed)
    for _ in range(count):
        words = list(rng.choice(LINES))
        if rng.random() < 0.7:
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(good, work)
            named = [w for w in words if (work / w).exists() and w]
            place = work / rng.choice(named or ["x.csv"])
            files = (
                sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
            )
            victim = rng.choice(files)
            kind = rng.choice(DAMAGES)
            if rng.random() < 0.05:
                victim.unlink()
                os.mkfifo(victim)
                note = f"pipe for {victim.relative_to(work)}"
            else:
                victim.write_bytes(kind(victim.read_bytes(), rng))
                note = f"{kind.__name__} of {victim.relative_to(work)}"
        else:
            at = rng.randrange(1, len(words) + 1)
            words[at : at + 1] = [rng.choice(ODD_TEXTS)]
            note = "odd word"
        yield note, words


def command_fault(words: list[str]) -> str | None:
    """None if a command line ends as it should: done, no answer, or one sentence and exit 2."""
    from wellsep.cli.clustering import ONE_CLUSTER
    from wellsep.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with limited():
                code = main(words)
        except TookTooLong as error:
            return str(error)
        except Exception as error:
            return f"{type(error).__name__} escaped"
    told = err.getvalue()
    if "\x1b[31m" in out.getvalue() + told:
        return "an escape sequence was printed"
    if code == 0 or (code == ONE_CLUSTER and words[0] in ("choose-k", "explore")):
        return None
    if code == 1 and re.search(r"\w+Error: .*--debug", told) is None:
        return None
    if code == 2 and told.strip() and "Traceback" not in told and not INTERNAL.search(told):
        return None
    return f"exit {code}: {told[-200:]}"
