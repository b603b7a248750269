"""Reads the golden values, found beside the checkout or in the folder WELLSEP_SHARED names."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
WHY_ABSENT = "no folder `shared` with golden values beside the checkout or in WELLSEP_SHARED"


def _find_shared() -> Path | None:
    named = os.environ.get("WELLSEP_SHARED")
    candidates = [Path(named)] if named else [ROOT.parent / "shared", ROOT / "shared"]
    return next((folder for folder in candidates if (folder / "reference").is_dir()), None)


SHARED = _find_shared()
needs_shared = pytest.mark.skipif(SHARED is None, reason=WHY_ABSENT)


@dataclass(frozen=True)
class Case:
    """One reference data set: data, labellings, and what each software computed for each.

    `values[labelling][index][software_key]` is a float, a list of floats, or
    `{"error": sentence}` where that software fails. Non-finite numbers are decoded.
    """

    name: str
    X: np.ndarray
    labels: dict[str, np.ndarray]
    values: dict[str, dict[str, dict[str, Any]]]
    definition: dict[str, dict[str, Any]]
    record: dict[str, Any]


def number(value: Any) -> Any:
    """Decode numbers stored as strings ("NaN", "Inf", "0.5034"), inside lists and mappings too."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    if isinstance(value, list):
        return [number(item) for item in value]
    if isinstance(value, dict):
        return {key: number(item) for key, item in value.items()}
    return value


@functools.cache
def read_json(relative: str) -> Any:
    """A file of `reference/`, such as "cfq.json" or "indices/sas_iris.json", as stored."""
    if SHARED is None:
        pytest.skip(WHY_ABSENT)
    return json.loads((SHARED / "reference" / relative).read_text())


@functools.cache
def read_arrays(relative: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file of `reference/`."""
    if SHARED is None:
        pytest.skip(WHY_ABSENT)
    with np.load(SHARED / "reference" / relative, allow_pickle=False) as arrays:
        return dict(arrays)


@functools.cache
def read_case(name: str) -> Case:
    """The reference case `indices/<name>`."""
    record = read_json(f"indices/{name}.json")
    arrays = read_arrays(f"indices/{name}.npz")
    labelings = record["labelings"]
    return Case(
        name=name,
        X=arrays["X"],
        labels={key: arrays[entry["npz_key"]] for key, entry in labelings.items()},
        values={key: number(entry["values"]) for key, entry in labelings.items()},
        definition={
            key: number(entry.get("definition_by_check_py", {})) for key, entry in labelings.items()
        },
        record=record,
    )


def case_names() -> list[str]:
    """Names of all reference cases that hold labellings; empty where the folder is absent."""
    if SHARED is None:
        return []
    paths = sorted((SHARED / "reference" / "indices").glob("*.json"))
    return [path.stem for path in paths if "labelings" in json.loads(path.read_text())]


def labelled_cases() -> list[tuple[str, str]]:
    """All (case, labelling) pairs, for parametrising a test."""
    return [(name, labelling) for name in case_names() for labelling in read_case(name).labels]
