"""The papers' data sets: members of collections in the folder WELLSEP_DATA, and wellsep's own sets.

A collection is an npz file with `<member>/X` and `<member>/labels0`, such as `sipu/s3/X`.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import wellsep as ws
from wellsep.datasets import Dataset


def load_dataset(name: str) -> Dataset:
    """A member of a collection by its name, such as "sipu/s3"; any other set as wellsep reads it.

    Images become rows, and nothing is downloaded.
    """
    if "/" not in name:
        return ws.load_dataset(name, flatten=True, download=False)
    folder = Path(os.environ.get("WELLSEP_DATA", ""))
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            if f"{name}/X" in arrays.files:
                # Collections count clusters from 1 and write 0 for noise.
                y = arrays[f"{name}/labels0"].astype(np.int64) - 1
                return Dataset(name, arrays[f"{name}/X"], y, "folder")
    raise FileNotFoundError(f"WELLSEP_DATA must name a folder with a collection that has {name!r}.")
