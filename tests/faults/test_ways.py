"""Every public call gives the same for any n_jobs, for mapped files and for read-only arrays."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from faults.calls import LABELS, Call, X, calls

from wellsep.indices.registry import INDICES

pytestmark = pytest.mark.faults
TIMES = ("seconds", "fit_time")  # differ from call to call


@pytest.fixture
def every(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = dict(INDICES._entries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield calls(tmp_path)
    INDICES._entries.clear()
    INDICES._entries.update(kept)


def content(value: Any) -> Any:
    """All that a result holds, in types that can be compared."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return (
            array.dtype.str,
            array.shape,
            array.tolist() if array.dtype == object else repr(array.tobytes()),
        )
    if sp.issparse(value):
        return content(value.toarray())
    if isinstance(value, Mapping):
        return {str(key): content(one) for key, one in value.items() if key not in TIMES}
    if isinstance(value, list | tuple | set | frozenset):
        return [content(one) for one in value]
    if hasattr(value, "fit"):  # many estimators are dataclasses: their results are not fields
        return {name: content(one) for name, one in vars(value).items() if name.endswith("_")}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field.name for field in dataclasses.fields(value))
        return {name: content(getattr(value, name)) for name in fields if name not in TIMES}
    if isinstance(value, str | bytes | bool | int | float | None | Path):
        return repr(value)
    return type(value).__name__


def differing(one: Any, other: Any, place: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [w for key in one for w in differing(one[key], other[key], f"{place}/{key}")]
    return [] if one == other else [place or "/"]


def seeded(one: Call) -> dict[str, int]:
    return {"random_state": 0} if "random_state" in one.arguments else {}


def test_two_jobs_change_no_bit(every):
    with_jobs = {name: one for name, one in every.items() if "n_jobs" in one.arguments}
    assert len(with_jobs) >= 13
    found = {
        name: differing(*(content(one(n_jobs=jobs, **seeded(one))) for jobs in (1, 2)))
        for name, one in with_jobs.items()
    }
    assert {name: places for name, places in found.items() if places} == {}


def mapped(folder: Path, array: np.ndarray) -> np.memmap:
    path = folder / "mapped.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def frozen(folder: Path, array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("way", [mapped, frozen])
def test_arrays_that_cannot_be_written_give_the_same(every, tmp_path, way):
    found = {}
    for name, one in every.items():
        given = {key: value for key, value in one.given.items() if value is X or value is LABELS}
        if not given:
            continue
        turned = {}
        for key, value in given.items():
            (tmp_path / key).mkdir(exist_ok=True)
            turned[key] = way(tmp_path / key, value)
        before = [array.tobytes() for array in turned.values()]
        options = seeded(one)
        found[name] = differing(content(one(**options)), content(one(**turned, **options)))
        assert [array.tobytes() for array in turned.values()] == before
    assert len(found) > 40
    assert {name: places for name, places in found.items() if places} == {}
