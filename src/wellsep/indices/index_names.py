"""Which indices a call names, and with which parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wellsep._checks.arrays import check_choice
from wellsep._checks.values import check_items
from wellsep._text.sentences import meant, shown
from wellsep.compute.metrics.table import find
from wellsep.indices.registry import INDICES, Index

DEFAULT_INDICES = ("silhouette", "calinski_harabasz", "davies_bouldin", "cfq")
IndexSpec = str | tuple[str, Mapping[str, Any]]
ParsedIndex = tuple[Index, dict[str, Any]]
# What the authors of ACE computed where it differs from the definitions.
ACE_CONVENTION: dict[str, dict[str, Any]] = {
    "c_index": {"variant": "nbclust"},
    "s_dbw": {"density": "own"},
    "ccc": {"variant": "nbclust"},
    "cdbw": {"flavour": "fpc", "order": "first"},
}


def parse_indices(
    indices: Any,
    convention: str | None = None,
    *,
    what: str = "indices",
    besides: Sequence[str] = (),
) -> list[ParsedIndex]:
    """Names and (name, parameters) pairs as (Index, full parameters); duplicates collapse.

    ``besides`` are other names that the caller takes; an error names them too.
    """
    check_choice("convention", convention, (None, "ace"))
    if isinstance(indices, str) or is_pair(indices):
        indices = (indices,)
    asked: dict[str, ParsedIndex] = {}
    for spec in check_items(what, indices, "names or (name, parameters) pairs"):
        if not isinstance(spec, str) and not is_pair(spec):
            raise TypeError(f"{what} must be names or (name, parameters) pairs, got {shown(spec)}.")
        name, given = (spec, {}) if isinstance(spec, str) else spec
        if name not in INDICES:
            names = (*INDICES, *besides)
            raise ValueError(
                f"{what} must be among {', '.join(names)}; got {shown(name)}{meant(name, names)}"
            )
        index = INDICES[name]
        usual = ACE_CONVENTION.get(name, {}) if convention == "ace" else {}
        params = index.with_params({**usual, **given})
        asked[index.label(params)] = (index, params)
    if not asked:
        raise ValueError(f"{what} must name at least one index, got none.")
    _refuse_mixture(list(asked.values()))
    return list(asked.values())


def takes_distances(index: Index, params: Mapping[str, Any]) -> bool:
    """Whether X has no coordinates for this index: it is a matrix of distances, or mixed."""
    return "metric" in params and not find(params["metric"]).coordinates


def _refuse_mixture(asked: list[ParsedIndex]) -> None:
    """X cannot be distances for one index and coordinates for another."""
    of_rows = [(index, params) for index, params in asked if not takes_distances(index, params)]
    metrics = {find(params["metric"]) for index, params in asked if takes_distances(index, params)}
    if len(metrics) > 1:
        names = " and ".join(sorted(repr(entry.name) for entry in metrics))
        raise ValueError(f"indices must agree on what X is, got the metrics {names}.")
    if metrics and of_rows:
        index, params = of_rows[0]
        raise ValueError(
            f"indices must all have metric={next(iter(metrics)).name!r} where one has, got "
            f"{index.label(params)!r}, which needs coordinates; score it apart."
        )


def is_pair(spec: Any) -> bool:
    """Whether this is a name with parameters."""
    return (
        isinstance(spec, tuple | list)
        and len(spec) == 2
        and isinstance(spec[0], str)
        and isinstance(spec[1], Mapping)
    )
