"""Figures and tables of what is in the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wellsep._text.sentences import count, listing
from wellsep.evaluate import ClusterDescription
from wellsep.evaluate.clusters.support import best_matches
from wellsep.report.parts import Section
from wellsep.report.sections.scatter import LONGEST_NAME

MOST_ROWS = 60  # clusters of a table, the largest
MOST_OTHERS = 100  # clusterings that a cluster is looked for in
N_EXEMPLARS = 2


def cluster_table(
    found: ClusterDescription, mine: Any = None, others: Mapping[str, Any] | None = None
) -> dict[str, list[Any]]:
    """One row per cluster: size, quality, what makes it, the nearest one, overlap, examples.

    ``mine`` are the (codes, clusters, sizes) of the partition that was described; its clusters are
    compared with those of the first of the ``others`` and looked for in all of them.

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
    k = len(found.clusters)
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
    if mine is not None and others and len(others) > 1:
        again = again_in(mine, list(others.values()))
        table["in other runs"] = [again.get(name) for name in found.clusters]
    if found.features:
        told = [", ".join(found.in_words(at)) for at in range(k)]
        table["what makes it"] = [words or "no feature stands out" for words in told]
    if (found.nearest >= 0).any():
        names = [*found.clusters, None]  # the last: none
        table["nearest cluster"] = [names[at] for at in found.nearest]
    if mine is not None and others:
        name, other = next(iter(others.items()))
        nearest = _nearest(mine, other)
        table[f"in {name}"] = [nearest.get(name) for name in found.clusters]
    for name in ("medoid", "typical", "doubtful"):
        lists = getattr(found, name).reshape(k, -1)[:, :N_EXEMPLARS]
        table[name] = [", ".join(_name(found, at) for at in row if at >= 0) for row in lists]
    if k > MOST_ROWS:
        kept = np.sort(np.argsort(-found.sizes, kind="stable")[:MOST_ROWS])
        table = {name: [values[at] for at in kept] for name, values in table.items()}
    return table


def _known(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _name(found: ClusterDescription, at: int) -> str:
    return str(found.ids[at])[:LONGEST_NAME]


def _nearest(mine: Any, other: Any) -> dict[str, str]:
    """Of each cluster the most similar one of another clustering, with the Jaccard similarity."""
    codes, names = _counted(mine)
    similarity, match = best_matches(codes, [other[0]])
    return {
        name: f"{other[1][there][:LONGEST_NAME]} ({share:.0%})"
        for name, share, there in zip(names, similarity[:, 0], match[:, 0].tolist(), strict=True)
        if there >= 0
    }


def again_in(mine: Any, others: Sequence[Any]) -> dict[str, float]:
    """Of each cluster the mean over other clusterings of its largest Jaccard similarity.

    Examples
    --------
    >>> mine = np.array([0, 0, 1, 1]), ("a", "b"), np.array([2, 2])
    >>> again_in(mine, [mine, (np.zeros(4, int), ("all",), np.array([4]))])
    {'a': 0.75, 'b': 0.75}
    """
    codes, names = _counted(mine)
    mean = best_matches(codes, [one[0] for one in others[:MOST_OTHERS]])[0].mean(axis=1)
    return dict(zip(names, mean.tolist(), strict=True))


def _counted(mine: Any) -> tuple[np.ndarray, list[str]]:
    """Codes without gaps: a cluster may have none of the drawn objects."""
    codes, clusters, _ = mine
    seen, dense = np.unique(codes, return_inverse=True)
    return dense - int(seen[0] < 0), [clusters[c] for c in seen if c >= 0]


def clusters_section(
    descriptions: Mapping[str, ClusterDescription], labels: Mapping[str, Any] | None = None
) -> Section:
    """The tables of the described clusterings, and of all others the sizes of their clusters.

    ``labels`` are (codes, clusters, sizes) of the distinct clusterings, best first.
    """
    labels = labels or {}
    described = {}
    for name, found in descriptions.items():
        others = {other: one for other, one in labels.items() if other != name}
        described[name] = {
            "table": cluster_table(found, labels.get(name), others),
            "notes": [*_cut(found), *found.notes],
        }
    sizes = {name: _sizes(one) for name, one in labels.items() if name not in described}
    said = described_in_words(list(described)) if len(labels) > len(described) else ""
    data = {"clusters": {"described": described, "sizes": sizes, "said": said}}
    first = next(iter(described))
    return Section("clusters", data, {"partition": first, **described[first], "said": said})


def _cut(found: ClusterDescription) -> list[str]:
    more = len(found.clusters) - MOST_ROWS
    return [f"{count(more, 'smaller cluster')} left out."] if more > 0 else []


def _sizes(labels: Any) -> list[list[Any]]:
    _, clusters, counts = labels
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_ROWS])
    return [[clusters[at][:40] for at in kept], counts[kept].tolist()]


def described_in_words(names: Sequence[str]) -> str:
    """Which clusterings have a full table, for a caption.

    Examples
    --------
    >>> described_in_words(["a", "b"])
    'Quality, features and examples are stored for the best 2 distinct clusterings.'
    """
    if len(names) == 1:
        return f"Quality, features and examples are stored for {listing(names)} alone."
    return (
        f"Quality, features and examples are stored for the best {len(names)} distinct clusterings."
    )
