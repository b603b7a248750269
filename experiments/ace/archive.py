"""What is kept of scored experiments: one zip per collection, a folder per experiment in it.

The scores lie there as plain arrays and JSON, apart from the format of the library's own records:
they stay readable when that changes.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import wellsep as ws
from experiments.bookkeeping import parse

MADE = "made.json"  # which runs, by which code; an experiment without it does not count
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # equal contents make equal archives
# Name in the archive -> name in the record.
ARRAYS = {"pairing": "made_in", "coverage": "coverage", "n_clusters": "n_clusters", "dims": "dims"}
FACTS = ("directions", "spaces", "partitions", "reasons", "params", "n_objects")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One experiment of a collection."""

    archive: Path
    name: str

    def exists(self) -> bool:
        """Whether the experiment was scored."""
        return self.name in names(self.archive)

    def read(self, file: str) -> bytes:
        """One of its files."""
        with zipfile.ZipFile(self.archive) as stored:
            return stored.read(f"{self.name}/{file}")

    def sizes(self) -> dict[str, int]:
        """File -> bytes it takes in the archive."""
        with zipfile.ZipFile(self.archive) as stored:
            return {
                info.filename.split("/", 1)[1]: info.compress_size
                for info in stored.infolist()
                if info.filename.startswith(f"{self.name}/")
            }

    def json(self, file: str) -> Any:
        """One of its JSON files."""
        return json.loads(self.read(file))

    def rows(self, file: str) -> list[dict[str, Any]]:
        """Rows of one of its CSVs, as `bookkeeping.read` gives them."""
        return parse(self.read(file).decode())

    def arrays(self, file: str) -> dict[str, np.ndarray]:
        """Arrays of one of its npz files."""
        with np.load(io.BytesIO(self.read(file)), allow_pickle=False) as stored:
            return dict(stored)

    def scores(self) -> ws.Scores:
        """Every index, every partition, every space."""
        return unpacked(self.arrays("scores.npz"), self.json("scores.json"))

    def replace(self, folder: Path) -> None:
        """Keep the files of a folder as this experiment, in place of what was kept of it."""
        files: dict[str, bytes] = {}
        if self.archive.is_file():
            with zipfile.ZipFile(self.archive) as stored:
                files = {
                    name: stored.read(name)
                    for name in stored.namelist()
                    if not name.startswith(f"{self.name}/")
                }
        files |= {f"{self.name}/{path.name}": path.read_bytes() for path in folder.iterdir()}
        write(self.archive, files)


def names(archive: Path) -> list[str]:
    """The experiments of a collection, in alphabetical order; none where there is no archive."""
    if not archive.is_file():
        return []
    with zipfile.ZipFile(archive) as stored:
        return sorted(n.split("/")[0] for n in stored.namelist() if n.endswith(f"/{MADE}"))


def write(archive: Path, files: Mapping[str, bytes]) -> None:
    """Write an archive whole or not at all."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=archive.parent, prefix=f".{archive.name}.")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as stored:
            for name in sorted(files):
                member = zipfile.ZipInfo(name, LONG_AGO)
                member.external_attr = 0o644 << 16
                stored.writestr(member, files[name], zipfile.ZIP_DEFLATED, 9)
        Path(scratch).chmod(0o644)
        os.replace(scratch, archive)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def write_scores(folder: Path, scores: ws.Scores) -> None:
    """Write scores.npz and scores.json into a folder."""
    arrays = {f"values/{label}": scores.values[label] for label in scores.indices}
    arrays |= {stored: getattr(scores, name) for stored, name in ARRAYS.items()}
    facts = {name: getattr(scores, name) for name in FACTS}
    if scores.dip is not None:
        arrays |= {"dip/statistic": scores.dip.statistic, "dip/pvalue": scores.dip.pvalue}
        facts["dip"] = {"notes": scores.dip.notes, "reduction": scores.dip.projection}
    np.savez_compressed(folder / "scores.npz", **arrays)
    text = json.dumps(facts, allow_nan=False, separators=(",", ":"), default=dict)
    (folder / "scores.json").write_text(text + "\n", encoding="utf-8")


def unpacked(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> ws.Scores:
    """The record of which `write_scores` wrote the parts."""
    values = {key[7:]: value for key, value in arrays.items() if key.startswith("values/")}
    told = {name: facts[name] for name in FACTS}
    told |= {name: tuple(facts[name]) for name in ("spaces", "partitions")}
    first, matrix = next(iter(values.items()))
    scores = ws.Scores.from_matrix(matrix, index=first, dip_pvalues=arrays.get("dip/pvalue"))
    dip = scores.dip
    if dip is not None:
        dip = dataclasses.replace(
            dip,
            statistic=arrays["dip/statistic"],
            notes=tuple(facts["dip"]["notes"]),
            projection=facts["dip"]["reduction"],
        )
    own = {name: arrays[stored] for stored, name in ARRAYS.items()}
    return dataclasses.replace(scores, values=values, dip=dip, **own, **told)
