"""Figures and tables of what is in the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wellsep._text.sentences import count
from wellsep.evaluate import ClusterDescription
from wellsep.partitions import best_matches
from wellsep.report.pack import Section
from wellsep.report.sections.scatter import LONGEST_NAME, Labels, object_names

MOST_ROWS = 60  # clusters of a table, the largest
MOST_OTHERS = 100  # clusterings that a cluster is looked for in
N_EXEMPLARS = 2


def cluster_table(
    found: ClusterDescription,
    mine: Labels | None = None,
    others: Mapping[str, Labels] | None = None,
) -> dict[str, list[Any]]:
    """One row per cluster: size, quality, what makes it, the nearest one, overlap, examples.

    ``mine`` are the labels of the partition that was described; its clusters are compared with
    those of the first of the ``others`` and looked for in all of them.

    Examples
    --------
    >>> import wellsep as ws
    >>> X, labels = [[0.0, 7], [1, 8], [5, 8], [6, 7]], [0, 0, 1, 1]
    >>> table = cluster_table(ws.describe_clusters(X, labels, ["height", "age"]))
    >>> table["objects"], table["nearest cluster"]
    ([2, 2], ['1', '0'])
    >>> table["what makes it"][0]
    'low height (0.5 against 5.5)'
    """
    others = {} if mine is None or others is None else others
    table: dict[str, list[Any]] = {
        "cluster": list(found.clusters),
        "objects": found.sizes.tolist(),
        "share": [f"{share:.1%}" for share in found.share],
    }
    if np.isfinite(found.silhouette).any():
        table["mean width"] = _known(found.silhouette)
        table["negative"] = [None if np.isnan(v) else f"{v:.0%}" for v in found.negative]
    if found.n_draws.any():
        table["stability"] = _known(found.stability)
    if mine is not None and others:
        again, alike = find_again(mine, list(others.values()))
    if len(others) > 1:
        table["in other runs"] = [again.get(name) for name in found.clusters]
    if found.features:
        told = [", ".join(found.in_words(at)) for at in range(len(found.clusters))]
        table["what makes it"] = [words or "no feature stands out" for words in told]
    if (found.nearest >= 0).any():
        names = [*found.clusters, None]  # the last: none
        table["nearest cluster"] = [names[at] for at in found.nearest]
    if others:
        table[f"in {next(iter(others))}"] = [alike.get(name) for name in found.clusters]
    for name in ("medoid", "typical", "doubtful"):
        lists = getattr(found, name).reshape(len(found.clusters), -1)[:, :N_EXEMPLARS]
        table[name] = [", ".join(object_names(found.ids, row[row >= 0])) for row in lists]
    kept = _largest(found.sizes)
    return {name: [values[at] for at in kept] for name, values in table.items()}


def _known(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _largest(sizes: np.ndarray) -> np.ndarray:
    """Positions of the largest clusters, as many as a table shows."""
    return np.sort(np.argsort(-sizes, kind="stable")[:MOST_ROWS])


def find_again(mine: Labels, others: Sequence[Labels]) -> tuple[dict[str, float], dict[str, str]]:
    """Of each cluster the mean over other clusterings of its largest Jaccard similarity.

    With it the most similar cluster of the first of them, in words. Of many only some are searched.

    Examples
    --------
    >>> mine = Labels(np.array([0, 0, 1, 1]), ("a", "b"), np.array([2, 2]))
    >>> find_again(mine, [mine, Labels(np.zeros(4, int), ("all",), np.array([4]))])
    ({'a': 0.75, 'b': 0.75}, {'a': 'a (100%)', 'b': 'b (100%)'})
    """
    similarity, match = best_matches(mine.codes, [one.codes for one in others[:MOST_OTHERS]])
    again, alike = {}, {}
    for c in np.unique(mine.codes[mine.codes >= 0]):  # a cluster may have none of the objects
        name = mine.clusters[c]
        again[name] = float(similarity[c].mean())
        if match[c, 0] >= 0:
            there = others[0].clusters[match[c, 0]]
            alike[name] = f"{there[:LONGEST_NAME]} ({similarity[c, 0]:.0%})"
    return again, alike


def clusters_section(
    descriptions: Mapping[str, ClusterDescription], labels: Mapping[str, Labels] | None = None
) -> Section:
    """The tables of the described clusterings, and of all others the sizes of their clusters.

    ``labels`` are those of the distinct clusterings, best first.
    """
    labels = labels or {}
    described: dict[str, Any] = {}
    for name, found in descriptions.items():
        others = {other: one for other, one in labels.items() if other != name}
        more = len(found.clusters) - MOST_ROWS
        cut = [f"{count(more, 'smaller cluster')} left out."] if more > 0 else []
        table = cluster_table(found, labels.get(name), others)
        described[name] = {"table": table, "notes": [*cut, *found.notes]}
    sizes = {}
    for name, (_, clusters, counts) in labels.items():
        if name not in described:
            kept = _largest(counts)
            sizes[name] = [[clusters[at][:40] for at in kept], counts[kept].tolist()]
    said, first = "", next(iter(described))
    if len(labels) > len(described):
        which = f"{first} alone"
        if len(described) > 1:
            which = f"the best {len(described)} distinct clusterings"
        said = f"Quality, features and examples are stored for {which}."
    data = {"clusters": {"described": described, "sizes": sizes}}
    return Section("clusters", data, {"partition": first, **described[first], "said": said})
