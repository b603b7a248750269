"""The settings of a search: listed, fitted one by one, and told of where they fail."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid

from wellsep._text.sentences import shown
from wellsep.cluster.fitting import (
    Fitted,
    fit_labels,
)
from wellsep.indices.score_table import PartitionScores


def fit_setting(search, estimator, setting, X, fit_params, context) -> Fitted | Exception:
    """One setting in one worker; a failure comes back as itself."""
    context.call_on_fit_task_begin(estimator=search, X=X)
    try:
        # A setting may hold estimators: they are cloned too, so that no two fits share one.
        estimator.set_params(**{k: clone(v, safe=False) for k, v in setting.items()})
        if not hasattr(estimator, "set_callbacks"):
            return fit_labels(estimator, X, fit_params)
        with context.propagate_callback_context(estimator):
            return fit_labels(estimator, X, fit_params)
    except Exception as error:
        return error
    finally:
        context.call_on_fit_task_end(estimator=search, X=X)


def list_settings(param_grid: Any) -> list[dict[str, Any]]:
    try:
        as_grid = isinstance(param_grid, Mapping | list | tuple)
        settings = list(ParameterGrid(param_grid) if as_grid else param_grid)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"param_grid must be values by parameter, or a list of such: {shown(str(error))}."
        ) from None
    for setting in settings:
        if not isinstance(setting, Mapping):
            raise TypeError(f"param_grid must hold settings (dicts), got {shown(setting)}.")
    if not settings:
        raise ValueError("param_grid must hold at least one setting, got none.")
    return settings


def check_error_score(value: Any) -> Any:
    if isinstance(value, numbers.Real) or (isinstance(value, str) and value == "raise"):
        return value
    raise ValueError(f"error_score must be 'raise' or a number, got {shown(value)}.")


def report_failures(errors: list, settings: list, error_score: Any) -> None:
    failed = [i for i, error in enumerate(errors) if error is not None]
    if not failed:
        return
    first = errors[failed[0]]
    if error_score == "raise" or len(failed) == len(errors):
        first.add_note(f"while fitting {settings[failed[0]]}")
        raise first
    warnings.warn(
        f"{len(failed)} of {len(errors)} settings could not be fitted and have the score "
        f"{error_score}; the first, {settings[failed[0]]}: {type(first).__name__}: {first}",
        FitFailedWarning,
        stacklevel=4,
    )


def results_table(
    settings: list, fitted: dict[int, Fitted], errors: list, scores: PartitionScores, failed: Any
) -> dict[str, Any]:
    """The table, column by column; settings that failed have the error score."""
    n = len(settings)
    rows = np.array(sorted(fitted))
    results: dict[str, Any] = {"params": settings}
    for name in sorted({name for setting in settings for name in setting}):
        column = np.ma.MaskedArray(np.empty(n, dtype=object), mask=True)
        for row, setting in enumerate(settings):
            if name in setting:
                column[row] = setting[name]
        results[f"param_{name}"] = column
    for position, (name, direction) in enumerate(
        zip(scores.indices, scores.directions, strict=True)
    ):
        values = np.full(n, np.nan if failed == "raise" else float(failed))
        values[rows] = scores.values[:, position]
        results[f"score_{name}"] = values
        signed = np.where(np.isnan(values), -np.inf, values * direction)
        results[f"rank_{name}"] = 1 + (signed[None, :] > signed[:, None]).sum(axis=1)
    seconds = np.array([one.seconds for one in fitted.values()])
    facts = {"n_clusters": scores.n_clusters, "coverage": scores.coverage, "fit_time": seconds}
    for name, known in facts.items():
        results[name] = np.full(n, np.nan)
        results[name][rows] = known
    results["error"] = np.array(
        [None if e is None else f"{type(e).__name__}: {e}" for e in errors], dtype=object
    )
    return results
