"""Checks of arguments that are no arrays: texts, flags, paths, seeds, devices, records."""

from __future__ import annotations

import numbers
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._checks.arrays import MOST, check_count
from wellsep._text.sentences import shown

_MOST_JOBS = 1 << 16
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:\d{1,4})?")


def check_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def check_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {shown(value)}.")
    return value


def check_path(name: str, value: Any) -> Path:
    """A path that a file system can hold; whether there is such a file is asked later."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be a path, got {shown(value)}.")
    place = os.fspath(value)
    if not isinstance(place, str):
        raise TypeError(f"{name} must be a path of text, got {shown(place)}.")
    try:
        place.encode(sys.getfilesystemencoding(), "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be a path of valid characters, got {place!a}.") from None
    if not place or "\0" in place:
        raise ValueError(f"{name} must be a path that can exist, got {shown(place)}.")
    return Path(place)


def check_function(name: str, value: Any) -> None:
    """A function or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be a function or None, got {shown(value)}.")


def check_jobs(n_jobs: Any, name: str = "n_jobs") -> int | None:
    """A number of workers as joblib counts: None, from 1, or from -1 down for all but some."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise TypeError(f"{name} must be an integer or None, got {shown(n_jobs)}.")
    if n_jobs == 0 or abs(int(n_jobs)) > _MOST_JOBS:
        raise ValueError(
            f"{name} must be from 1 to {_MOST_JOBS:,}, or negative (-1 uses all processors), got "
            f"{shown(n_jobs)}."
        )
    return int(n_jobs)


def check_generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """A NumPy generator from None, a number, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state._bit_generator
    kinds = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
    if random_state is not None and not isinstance(random_state, kinds):
        random_state = _seed(random_state, name, "a Generator or a RandomState", MOST)
    return np.random.default_rng(random_state)


def check_random_state(random_state: Any, name: str = "random_state") -> np.random.RandomState:
    """A RandomState from None, a number or a RandomState, as scikit-learn has it."""
    if random_state is None or random_state is np.random:
        return np.random.mtrand._rand  # that NumPy's own functions draw from
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.RandomState(_seed(random_state, name, "a RandomState", 2**32 - 1))


def _seed(value: Any, name: str, others: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be None, an integer, {others}, got {shown(value)}.")
    return check_count(name, value, 0, most)


def check_device(device: Any, name: str = "device", auto: bool = False) -> str | None:
    """The name of a device that PyTorch may have; whether it is there is asked later."""
    if device is None and not auto:
        return None
    if not isinstance(device, str) and type(device).__module__ != "torch":
        raise TypeError(f"{name} must be the name of a device, got {shown(device)}.")
    text = str(device)
    if not (auto and text == "auto") and not _DEVICE.fullmatch(text):
        first = "'auto'" if auto else "None"
        raise ValueError(f"{name} must be {first}, 'cpu', 'cuda' or 'cuda:N', got {shown(text)}.")
    return text


def check_estimator(estimator: Any, name: str = "estimator", remedy: str = "") -> Any:
    """An estimator as scikit-learn has them: parameters, and a fit."""
    if isinstance(estimator, type) or not (
        hasattr(estimator, "get_params") and hasattr(estimator, "fit")
    ):
        raise TypeError(f"{name} must be a scikit-learn estimator, got {shown(estimator)}{remedy}.")
    return estimator


def check_kind(name: str, value: Any, kind: type, source: str) -> None:
    """A record of the library; ``source`` says what makes one."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {kind.__name__}, got {shown(value)}; {source}.")


def check_mapping(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping (dict), got {shown(value)}.")


def check_names(name: str, value: Any) -> list[str]:
    """Several texts; one text is one of them."""
    if isinstance(value, str):
        return [value]
    names = check_items(name, value, "names")
    for one in names:
        if not isinstance(one, str):
            raise TypeError(f"{name} must be a sequence of names, got {shown(one)} in it.")
    return names


def check_items(name: str, value: Any, of: str) -> list[Any]:
    """Several things; ``of`` says what they are."""
    single = isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
    if single or getattr(value, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a sequence of {of}, got {shown(value)}.")
    return list(value)
