"""Where a page comes from: how to make it again, with which options, version, date and data."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep import __version__
from wellsep._files.arrays import digest
from wellsep.distances.base import PairSpace
from wellsep.evaluate import Judgement
from wellsep.runs import Runs

_LOOK = 16  # rows of each embedding that the digest reads


def provenance(result: Any, *, runs: Any, command: str | None) -> tuple[tuple[str, str], ...]:
    """Pairs of a word and a text; the first, where it is known, makes the page again.

    Examples
    --------
    >>> import wellsep as ws
    >>> result = ws.ace(ws.Scores.from_matrix([[0.1, 0.5], [0.2, 0.6]]), dip=False)
    >>> [word for word, _ in provenance(result, runs=None, command="wellsep rank runs/")]
    ['Reproduce', 'Version', 'Date']
    """
    found = {}
    again = command or _call(result)
    if again:
        found["Reproduce"] = again
    options = result.options if isinstance(result, Judgement) else {}
    if options:
        found["Options"] = ", ".join(f"{name}={value!r}" for name, value in options.items())
        found["Seed"] = str(options.get("random_state"))
    found["Version"] = f"wellsep {__version__}"
    found["Date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    if isinstance(runs, Runs):
        found["Data"] = (
            f"SHA-256 {data_digest(runs.partitions, runs.spaces)[:16]} of all labels and of "
            f"{_LOOK} rows of each embedding"
        )
    return tuple(found.items())


def data_digest(partitions: Mapping[str, Any], spaces: Mapping[str, Any]) -> str:
    """A digest of all labels, and of names, shapes and a few rows of the embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> one = data_digest({"a": [0, 1]}, {"s": np.eye(2)})
    >>> one == data_digest({"a": [0, 1]}, {"s": np.eye(2)}) != data_digest({"a": [1, 1]}, {})
    True
    """
    parts: list[Any] = []
    for name, labels in partitions.items():
        values = np.asarray(labels)
        plain = values.dtype.kind in "biuf"
        parts += [str(name), values if plain else "\n".join(map(str, values.tolist()))]
    for name, space in spaces.items():
        rows = np.unique(np.linspace(0, max(space.shape[0] - 1, 0), _LOOK).astype(np.intp))
        parts += [str(name), str(tuple(space.shape)), *_some(space, rows)]
    return digest(*parts)


def _some(space: Any, rows: np.ndarray) -> list[Any]:
    """What a few objects of a space are: rows, entries of sparse rows, or distances."""
    if isinstance(space, PairSpace):
        return [space.block(rows, rows)] if space.complete else space.contents()
    if sp.issparse(space):
        part = space[rows]
        return [part.data, part.indices, part.indptr]
    return [np.asarray(space[rows])]


def _call(result: Any) -> str:
    if not isinstance(result, Judgement) or not result.call:
        return ""
    return f'judgement = {result.call}\nwellsep.render_report(judgement, "page.html", runs=runs)'
