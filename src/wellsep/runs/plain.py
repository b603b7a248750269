"""Params and metadata as plain JSON data."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np


def plain_mapping(value: Any, what: str) -> dict[str, Any]:
    """A deep copy of a mapping in JSON's own types; ``None`` is empty.

    NumPy scalars and arrays become numbers and lists, paths text. JSON has no NaN and no infinity:
    they become the texts "nan", "inf" and "-inf", which ``float`` reads back.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} must be a mapping, got {type(value).__name__}.")
    return _plain(value, what, "")


def _plain(value: Any, what: str, where: str) -> Any:
    if value is None or isinstance(value, str | bool):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v, what, f"{where}/{k}") for k, v in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
        if not isinstance(value, list):
            return _plain(value, what, where)
    if isinstance(value, list | tuple):
        return [_plain(v, what, f"{where}/{i}") for i, v in enumerate(value)]
    raise TypeError(
        f"{what} must be numbers, text, lists and mappings, got {type(value).__name__} "
        f"at {where.lstrip('/')!r}; store its repr or leave it out."
    )


def read_json(text: bytes | str, what: str) -> Any:
    """Parse JSON; ``what`` opens the sentence of the error."""
    try:
        return json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except UnicodeDecodeError:
        raise ValueError(f"{what} must be UTF-8 text, got other bytes; save it again.") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{what} must be valid JSON, got {error}.") from None
