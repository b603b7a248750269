"""Values that no argument expects, by name; each is made anew for every call."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


class Unprintable:
    """An object whose repr raises."""

    def __repr__(self) -> str:
        raise RuntimeError("this object has no repr")


class Hostile:
    """An object that raises at every question: truth, equality, length, iteration."""

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ZeroDivisionError("no truth")

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("no equality")

    def __len__(self) -> int:
        raise ZeroDivisionError("no length")

    def __repr__(self) -> str:
        raise ZeroDivisionError("no repr")


def _ring() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def _torch(make: Callable[[Any], Any]) -> Callable[[], Any]:
    def value() -> Any:
        import torch

        return make(torch)

    return value


def _frame(make: Callable[[Any], Any]) -> Callable[[], Any]:
    def value() -> Any:
        import pandas as pd

        return make(pd)

    return value


def _dask() -> Any:
    import dask.array as da

    return da.ones((4, 2), chunks=2)


ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "1.5": lambda: 1.5,
    "huge int": lambda: 2**70,
    "minus huge int": lambda: -(2**70),
    "complex number": lambda: 1 + 2j,
    "fraction": lambda: Fraction(1, 3),
    "decimal": lambda: Decimal("0.1"),
    "NumPy int": lambda: np.int64(3),
    "NumPy NaN": lambda: np.float32("nan"),
    "NumPy bool": lambda: np.True_,
    "empty text": lambda: "",
    "text": lambda: "x",
    "text of digits": lambda: "3",
    "text with NUL": lambda: "a\0b",
    "text with markup": lambda: "[/red]\x1b[31m",
    "lone surrogate": lambda: "\ud800",
    "long text": lambda: "y" * 5000,
    "bytes": lambda: b"ab",
    "absent path": lambda: Path("no/such/file.npy"),
    "folder": lambda: Path("."),
    "empty list": lambda: [],
    "list of text": lambda: ["a", "b"],
    "nested list": lambda: [[1, 2], [3]],
    "list in itself": _ring,
    "tuple": lambda: (1, "a"),
    "empty dict": lambda: {},
    "dict": lambda: {"a": 1, 2: None},
    "set": lambda: {1, 2},
    "generator": lambda: (i for i in range(3)),
    "range": lambda: range(2, 4),
    "object": object,
    "unprintable": Unprintable,
    "hostile": Hostile,
    "type": lambda: int,
    "function": lambda: len,
    "lambda": lambda: lambda *a, **k: None,
    "module": lambda: np,
    "stream": lambda: io.StringIO("x"),
    "ellipsis": lambda: ...,
    "exception": lambda: ValueError("x"),
    "empty array": lambda: np.empty(0),
    "empty rows": lambda: np.empty((0, 2)),
    "no columns": lambda: np.empty((12, 0)),
    "0-d array": lambda: np.array(3.0),
    "0-d int array": lambda: np.array(1),
    "short vector": lambda: np.arange(3),
    "short matrix": lambda: np.ones((3, 2)),
    "wide matrix": lambda: np.ones((12, 7)),
    "3-d array": lambda: np.ones((12, 2, 2)),
    "NaN matrix": lambda: np.full((12, 2), np.nan),
    "infinite vector": lambda: np.full(12, np.inf),
    "complex matrix": lambda: np.ones((12, 2), complex),
    "text array": lambda: np.array(["a", "b"] * 6),
    "object array": lambda: np.array([1, "a", None, [2]] * 3, dtype=object),
    "huge integers": lambda: np.array([[10**400, 1]] * 12, dtype=object),
    "bool array": lambda: np.ones(12, bool),
    "dates": lambda: np.array(["2020-01-01"] * 12, "datetime64[D]"),
    "structured": lambda: np.zeros(12, dtype=[("a", int)]),
    "masked": lambda: np.ma.masked_array(np.ones((12, 2)), mask=np.eye(12, 2)),
    "negative vector": lambda: -np.ones(12),
    "sparse": lambda: sp.csr_array(np.eye(12, 2)),
    "sparse NaN": lambda: sp.csr_array(np.full((12, 2), np.nan)),
    "frame of words": _frame(lambda pd: pd.DataFrame({"a": ["x"] * 12, "b": [1.0] * 12})),
    "frame": _frame(lambda pd: pd.DataFrame({"a": [1, None, 3]})),
    "series": _frame(lambda pd: pd.Series(["a", None] * 6)),
    "sparse tensor": _torch(lambda torch: torch.eye(12, 2).to_sparse()),
    "complex tensor": _torch(lambda torch: torch.ones(12, 2, dtype=torch.complex64)),
    "tensor": _torch(lambda torch: torch.ones(3)),
    "device object": _torch(lambda torch: torch.device("meta")),
    "dask array": _dask,
}
# Needs an optional package.
OPTIONAL = {
    "torch": ("sparse tensor", "complex tensor", "tensor", "device object"),
    "pandas": ("frame of words", "frame", "series"),
    "dask": ("dask array",),
}
