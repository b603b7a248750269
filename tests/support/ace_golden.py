"""Golden run sets made with the ACE authors' code, as Scores and Runs."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from golden import ORACLES, read_arrays, read_json

from wellsep.evaluate import Scores
from wellsep.runs import Run, Runs

# the authors' name of an index -> ours
INDEX_NAMES = {
    "euclidean": "silhouette",
    "cosine": "silhouette_cosine",
    "ch": "calinski_harabasz",
    "dav": "davies_bouldin",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "no_dip": {"dip": False},
    "alpha05": {"alpha": 0.05},
    "hits": {"links": "hits"},
    "dbscan05": {"grouping": "dbscan", "eps": 0.05},
    "dbscan10": {"grouping": "dbscan", "eps": 0.1},
    "dbscan20": {"grouping": "dbscan", "eps": 0.2},
    "keep_outliers": {"outliers": "compete"},
    "no_dip_keep_outliers": {"dip": False, "outliers": "compete"},
    "dbscan10_keep_outliers": {"grouping": "dbscan", "outliers": "compete"},
}


class Cell(NamedTuple):
    """One index under one variant of one case; `part` is "" or "__f64"."""

    case: str
    part: str
    index: str
    variant: str

    @property
    def stored(self) -> dict[str, Any]:
        return matrix_record(self.case, self.part, self.index)["variants"][self.variant]

    @property
    def options(self) -> dict[str, Any]:
        return VARIANTS[self.variant]

    def __str__(self) -> str:
        return f"{self.case}{self.part}/{self.index}/{self.variant}"


@functools.cache
def case_names() -> list[str]:
    return sorted(path.stem for path in (ORACLES / "ace").glob("*.json"))


def record(case: str) -> dict[str, Any]:
    return read_json(f"ace/{case}.json")


def arrays(case: str) -> dict[str, np.ndarray]:
    return read_arrays(f"ace/{case}.npz")


def matrix_record(case: str, part: str, index: str) -> dict[str, Any]:
    return record(case)["indices_float64" if part else "indices"][index]


@functools.cache
def matrices() -> list[tuple[str, str, str]]:
    """(case, part, index) of every stored score matrix."""
    return [
        (case, part, index)
        for case in case_names()
        for part, key in (("", "indices"), ("__f64", "indices_float64"))
        for index in record(case).get(key, {})
    ]


@functools.cache
def cells() -> list[Cell]:
    return [
        Cell(case, part, index, variant)
        for case, part, index in matrices()
        for variant in matrix_record(case, part, index)["variants"]
    ]


def filled(case: str, part: str, index: str) -> Scores:
    """The authors' filled matrix (larger is better) with R's dip p-values."""
    return Scores.from_matrix(
        arrays(case)[f"Sfill_{index}{part}"],
        index=index,
        dip_pvalues=record(case)["dip"]["pvalue"],
        paired=True,
    )


def case_runs(case: str, *, dtype: Any = np.float64) -> Runs:
    """The embeddings and partitions of a case."""
    stored = arrays(case)
    return Runs(
        tuple(
            Run(f"run {m}", labels=stored["labels"][m], embedding=stored[f"Z{m:02d}"].astype(dtype))
            for m in range(record(case)["M"])
        )
    )
