"""Which columns of a table look like clusterings, and in which embedding a column was made."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wellsep._checks.values import check_mapping
from wellsep._text.sentences import meant, quoted, shown

SPACE = "{space}"
_METHODS = re.compile(
    r"leiden|louvain|cluster|k[-_ ]?means|dbscan|phenograph|flowsom|mclust|gmm|mixture|ward|"
    r"spectral|birch|topic",
    re.IGNORECASE,
)


def why_no_clustering(values: Any) -> str | None:
    """Say why a column is no clustering, or None where it may be one.

    >>> why_no_clustering(np.array([0.5, 1.5, 0.5])), why_no_clustering(np.array(["a", "b", "a"]))
    ('measurements', None)
    """
    values = np.asarray(values)
    if values.dtype.kind == "f" and not (np.mod(values, 1) == 0).all():  # NaN is not whole either
        return "measurements"
    if values.dtype.kind in "mM":
        return "dates"
    n_classes = len(set(values.tolist()))
    if n_classes == len(values):
        return "a class per object"
    return "one class only" if n_classes < 2 else None


def propose(columns: Mapping[str, Any]) -> str:
    """Write the patterns that choose the columns which look like clusterings; empty if none do.

    Columns that bear the name of a clustering method go first: classes, batches and samples look
    like clusterings too.

    >>> columns = {"batch": ["a", "b", "a"], "leiden_1": [0, 1, 1], "leiden_2": [0, 0, 1]}
    >>> propose(columns)
    'leiden_*'
    """
    usable = [name for name, values in columns.items() if why_no_clustering(values) is None]
    chosen = [name for name in usable if _METHODS.search(name)] or usable
    families = defaultdict(list)
    for name in chosen:
        families[re.match(r"[^\W\d_]*[-_. ]?", name)[0]].append(name)  # type: ignore[index]
    patterns: list[str] = []
    for start, names in families.items():
        others = [name for name in columns if name.startswith(start) and name not in names]
        together = bool(start) and len(names) > 1 and not others
        patterns += [f"{start}*"] if together else names
    return ",".join(patterns)


def made_in(
    pairs: Any, partitions: Iterable[str], spaces: Iterable[str], *, partly: bool = False
) -> dict[str, str]:
    """Partition → space, from a pattern with {space} or from a mapping of patterns to spaces.

    In a pattern {space} stands for the name of a space, with or without the X_ before it. What
    fits nothing is refused, unless ``partly``: then other sources may have it.

    >>> made_in("leiden_{space}_*", ["leiden_pca_1", "leiden_scvi_1"], ["X_pca", "X_scvi"])
    {'leiden_pca_1': 'X_pca', 'leiden_scvi_1': 'X_scvi'}
    >>> made_in({"leiden_*": "X_pca"}, ["leiden_1", "kmeans"], ["X_pca"])
    {'leiden_1': 'X_pca'}
    """
    partitions, spaces = list(partitions), list(spaces)
    if isinstance(pairs, str):
        return _by_pattern(pairs, partitions, spaces, partly)
    check_mapping("pairs", pairs)
    found: dict[str, str] = {}
    for pattern, space in pairs.items():
        fits = [pattern] if pattern in partitions else fnmatch.filter(partitions, str(pattern))
        if partly and not (fits and space in spaces):
            continue
        if not fits:
            near = meant(pattern, partitions)
            raise ValueError(
                f"pairs must name partitions, got {shown(pattern)}; there are "
                f"{quoted(partitions)}{near}"
            )
        if space not in spaces:
            raise ValueError(
                f"pairs must name embeddings, got {shown(space)}; there are "
                f"{quoted(spaces)}{meant(space, spaces)}"
            )
        found |= dict.fromkeys(fits, space)
    return found


def _by_pattern(
    pattern: str, partitions: list[str], spaces: list[str], partly: bool
) -> dict[str, str]:
    if SPACE not in pattern:
        raise ValueError(
            f"pairs must hold {SPACE}, where the name of the embedding stands, got {pattern!r}; "
            "write for instance 'leiden_{space}_*'."
        )
    found: dict[str, str] = {}
    # The longest name is tried last and stays: X_pca_harmony before X_pca.
    for space in sorted(spaces, key=len):
        for word in {space, space.removeprefix("X_")}:
            exact = re.sub(r"([*?[])", r"[\1]", word)
            fits = fnmatch.filter(partitions, pattern.replace(SPACE, exact))
            found |= dict.fromkeys(fits, space)
    if not found and not partly:
        raise ValueError(
            f"pairs must fit a partition, got {pattern!r}; there are the partitions "
            f"{quoted(partitions)} and the embeddings {quoted(spaces)}."
        )
    return {name: found[name] for name in partitions if name in found}
