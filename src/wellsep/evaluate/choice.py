"""The chosen partition, object by object: who sits well in it and who does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._records import Record, freeze

from .._checks import UndefinedIndex
from ..indices import margins, silhouette_samples
from ..partitions import encode
from ..runs import Runs
from .explain import ranks
from .result import AceResult


@dataclass(frozen=True, eq=False)
class Choice(Record):
    """One partition seen from one space.

    Attributes
    ----------
    partition, space : names
    codes : (n,) cluster of each object, -1 = not counted
    clusters : tuple of str, the label of each code
    widths : (n,) silhouette widths, NaN where not counted or undefined
    margins : (n,) distance to the nearest separating plane, negative on the wrong side
    notes : sentences on what could not be computed
    """

    partition: str
    space: str
    codes: np.ndarray
    clusters: tuple[str, ...]
    widths: np.ndarray
    margins: np.ndarray
    notes: tuple[str, ...] = ()


def describe_choice(
    runs: Runs,
    result: AceResult,
    *,
    partition: str | None = None,
    space: str | None = None,
    noise: str = "exclude",
    device: Any = None,
) -> Choice:
    """Silhouette width and margin of every object in the chosen partition.

    Parameters
    ----------
    runs : Runs
    result : AceResult
    partition : str, optional
        The best one by default (of several that tie, the first by name).
    space : str, optional
        By default the space that counts most in the answer.
    noise : as in :func:`wellsep.score_partitions`
    device : str, optional

    Returns
    -------
    Choice

    Examples
    --------
    >>> import numpy as np, wellsep as ws
    >>> X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1]])
    >>> runs = ws.Runs.from_parts({"flat": X}, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]})
    >>> result = ws.ace(ws.score_runs(runs), dip=False)
    >>> choice = ws.describe_choice(runs, result)
    >>> choice.partition, choice.widths.round(2).tolist(), choice.margins.tolist()
    ('good', [0.8, 0.8, 0.8, 0.8], [2.5, 2.5, 2.5, 2.5])
    """
    if partition is None:
        place = ranks(result.scores, tolerance=result.options["tie_tolerance"])
        partition = min(result.partitions[i] for i in np.flatnonzero(place == 1))
    if space is None:
        space = result.spaces[result.winning_spaces[int(np.argmax(result.weights))]]
    X, labels = runs.spaces[space], runs.partitions[partition]
    encoded = encode(labels, noise=noise, name=partition)
    notes: list[str] = []
    per_object = []
    for name, function, options in (
        ("silhouette widths", silhouette_samples, {"device": device}),
        ("margins", margins, {}),
    ):
        try:
            values = np.asarray(function(X, labels, noise=noise, **options), dtype=float)
        except UndefinedIndex as reason:
            notes.append(f"The {name} are undefined: {reason}")
            values = np.full(len(labels), np.nan)
        per_object.append(freeze(values))
    return Choice(
        partition,
        space,
        freeze(encoded.codes[0]),
        tuple(str(label) for label in encoded.classes[0]),
        per_object[0],
        per_object[1],
        tuple(notes),
    )
