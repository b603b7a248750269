"""Features of clusters: columns of a table, and how much each differs inside and outside."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from wellsep._checks.arrays import check_data, is_frame, open_frame, to_numpy
from wellsep._checks.values import check_names
from wellsep._text.sentences import count, listing
from wellsep.compute.data.mixed_columns import read_columns as read_mixed
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.data.rows import one_hot

MOST_CATEGORIES = 20  # of a column of texts that becomes one column of shares for each
BLOCK = 1 << 22  # numbers whose ranks are found at a time


class Columns(NamedTuple):
    """Features ready to be compared."""

    values: np.ndarray  # (n, F) float64; 0 and 1 where a feature is a share
    names: tuple[str, ...]
    shares: np.ndarray  # (F,) bool
    notes: tuple[str, ...]


class Differences(NamedTuple):
    """Each cluster against all other counted objects."""

    inside: np.ndarray  # (K, F) mean, or share
    outside: np.ndarray  # (K, F); NaN where there is no other object
    difference: np.ndarray  # (K, F) over the pooled standard deviation; of shares as they are
    auc: np.ndarray  # (K, F) share of pairs in which the inside value is larger, ties half


def read_columns(table: Any, names: Any, n: int, what: str) -> Columns:
    """The columns of a frame or array; constant ones are left out and counted."""
    notes: list[str] = []
    if is_frame(table) or isinstance(table, MixedTable):
        values, called, shares = _of_frame(table, what, notes)
    else:
        values = to_numpy(check_data(table, name=what)).astype(np.float64, copy=False)
        called = [f"feature {number}" for number in range(values.shape[1])]
        shares = [False] * len(called)
    if len(values) != n:
        raise ValueError(f"{what} must have one row per object ({n}), got {len(values)}.")
    if names is not None:
        given = check_names("feature_names", names)
        if len(given) != len(called):
            raise ValueError(
                f"feature_names must have one name per column ({len(called)}), got {len(given)}."
            )
        called = given
    constant = (values == values[:1]).all(axis=0) if n else np.zeros(len(called), dtype=bool)
    if constant.any():
        left_out = [name for name, same in zip(called, constant, strict=True) if same]
        are = "is" if len(left_out) == 1 else "are"
        notes.append(
            f"{count(len(left_out), 'feature')} {are} constant and left out: {listing(left_out)}."
        )
    kept = np.flatnonzero(~constant)
    return Columns(
        values[:, kept],
        tuple(called[at] for at in kept),
        np.asarray(shares, dtype=bool)[kept],
        tuple(notes),
    )


def _of_frame(table: Any, what: str, notes: list[str]) -> tuple[np.ndarray, list[str], list[bool]]:
    """Columns, their names, and which are shares; cells that are missing are filled and counted."""
    columns, names, shares, left_out, gaps = [], [], [], [], []
    if isinstance(table, MixedTable):
        found = table.values()
    else:
        frame = open_frame(table, what)
        left_out = [c for c, dtype in frame.schema.items() if dtype.is_temporal()]
        found = read_mixed(frame.drop(left_out).to_native())
    for name, values in found.items():
        if isinstance(values, np.ndarray):
            known = ~np.isnan(values)
            gaps += [name] * (not known.all())
            fill = values[known].mean() if known.any() else 0.0
            columns.append(np.where(known, values, fill))
            names.append(name)
            shares.append(False)
            continue
        gaps += [name] * any(value is None for value in values)
        words = sorted({str(value) for value in values if value is not None})
        if set(words) <= {"False", "True"}:
            words = ["True"]
        if len(words) > MOST_CATEGORIES:
            left_out.append(name)
            continue
        texts = np.array([str(value) for value in values])
        columns += [(texts == word).astype(np.float64) for word in words]
        names += [name if word == "True" else f"{name} = {word}" for word in words]
        shares += [True] * len(words)
    if gaps:
        notes.append(
            f"Cells are missing in {listing(gaps)}: numbers count there as the mean of their "
            "column, categories as none."
        )
    if left_out:
        notes.append(
            f"Left out, neither numbers nor up to {MOST_CATEGORIES} categories: "
            f"{listing(left_out)}."
        )
    if not columns:
        raise ValueError(f"{what} must have columns of numbers or categories, got none.")
    return np.column_stack(columns), names, shares


def compare(columns: Columns, codes: np.ndarray, k: int, *, pairs: bool = True) -> Differences:
    """Effect sizes of all clusters and features; objects with a negative code do not count.

    Without ``pairs`` there is no `auc`, which takes most of the time.
    """
    counted = codes >= 0
    values, codes = columns.values[counted], codes[counted]
    n, f = values.shape
    size = np.bincount(codes, minlength=k).astype(np.float64)
    members = one_hot(codes[None], np.array([k]), None).T  # (K, n)
    shift = values.mean(axis=0)
    about = values - shift
    sums, squares = members @ about, members @ about**2
    rest, others = n - size, about.sum(axis=0) - sums
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = sums / size[:, None], others / rest[:, None]
        scatter = squares - size[:, None] * inside**2
        scatter += (about**2).sum(axis=0) - squares - rest[:, None] * outside**2
        spread = np.sqrt(np.maximum(scatter, 0) / (n - 2)) if n > 2 else np.full((k, f), np.nan)
        difference = (inside - outside) / np.where(columns.shares, 1.0, spread)
    auc = np.full((k, f), np.nan)
    both = size * rest
    step = max(1, BLOCK // max(n, 1))
    for part in (slice(at, at + step) for at in range(0, f if pairs else 0, step)):
        ranks = members @ rankdata(values[:, part], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            auc[:, part] = (ranks - (size * (size + 1) / 2)[:, None]) / both[:, None]
    return Differences(inside + shift, outside + shift, difference, auc)
