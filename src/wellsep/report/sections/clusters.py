"""Figures and tables of what is in the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wellsep._text.sentences import count, listing
from wellsep.evaluate import ClusterDescription
from wellsep.evaluate.clusters.describing_best import described_objects
from wellsep.partitions import Partitions, encode
from wellsep.report.figures.records import ClusterProfile
from wellsep.report.sections.scatter import LONGEST_NAME

MOST_ROWS = 60  # clusters of a table, the largest
MOST_OTHERS = 100  # clusterings that a cluster is looked for in
N_EXEMPLARS = 2


def profile_figure(description: ClusterDescription, most: int = 5) -> ClusterProfile:
    """The features that differ most in any cluster, ``most`` of each, in the order of clusters.

    Examples
    --------
    >>> import wellsep as ws
    >>> X, labels = [[0.0, 7], [1, 8], [5, 8], [6, 7]], [0, 0, 1, 1]
    >>> figure = profile_figure(ws.describe_clusters(X, labels, ["height", "age"]), most=1)
    >>> figure.features, figure.values.round(2).ravel().tolist()
    (('height',), [-7.07, 7.07])
    """
    chosen = dict.fromkeys(
        feature for k in range(len(description.clusters)) for feature in description.order(k)[:most]
    )
    at = list(chosen)
    return ClusterProfile(
        clusters=description.clusters,
        features=tuple(description.features[f] for f in at),
        values=description.difference[:, at],
        shares=description.shares[at],
    )


def cluster_table(
    found: ClusterDescription,
    labels: Any = None,
    other: tuple[str, Any] | None = None,
    others: Sequence[Any] = (),
) -> dict[str, list[Any]]:
    """One row per cluster: size, quality, what makes it, the nearest one, overlap, examples.

    ``labels`` are those that were described; they are compared with one ``other`` clustering and
    looked for in all ``others``.

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
    if others:
        again = again_in(labels, others)
        table["in other runs"] = [again.get(name) for name in found.clusters]
    if found.features:
        told = [", ".join(found.in_words(at)) for at in range(k)]
        table["what makes it"] = [words or "no feature stands out" for words in told]
    if (found.nearest >= 0).any():
        names = [*found.clusters, None]  # the last: none
        table["nearest cluster"] = [names[at] for at in found.nearest]
    if other is not None:
        there = _overlap(labels, other[1], other[0])
        table[f"in {other[0]}"] = [there.get(name) for name in found.clusters]
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


def _similarities(mine: Partitions, their: Partitions) -> np.ndarray:
    """(K, L) Jaccard similarities of the clusters of two clusterings."""
    (a,), (b,) = mine.codes, their.codes
    k, m = len(mine.classes[0]), len(their.classes[0])
    both = (a >= 0) & (b >= 0)
    shared = np.bincount(a[both] * m + b[both], minlength=k * m).reshape(k, m)
    size_a, size_b = np.bincount(a[a >= 0], minlength=k), np.bincount(b[b >= 0], minlength=m)
    found: np.ndarray = shared / np.maximum(size_a[:, None] + size_b - shared, 1)
    return found


def _overlap(own: Any, their: Any, name: str) -> dict[str, str]:
    """Of each cluster the most similar one of another clustering, with the Jaccard similarity."""
    mine, second = encode(own, noise="exclude"), encode(their, noise="exclude", name=name)
    if not len(second.classes[0]):
        return {}
    table = _similarities(mine, second)
    return {
        str(label): f"{str(second.classes[0][row.argmax()])[:LONGEST_NAME]} ({row.max():.0%})"
        for label, row in zip(mine.classes[0], table, strict=True)
    }


def again_in(labels: Any, others: Sequence[Any]) -> dict[str, float]:
    """Of each cluster the mean over other clusterings of its largest Jaccard similarity.

    Examples
    --------
    >>> again_in([0, 0, 1, 1], [[0, 0, 1, 1], [0, 0, 0, 0]])
    {'0': 0.75, '1': 0.75}
    """
    whole = encode(labels, noise="exclude")
    objects = described_objects(whole.codes[0])
    mine = whole.take(objects)
    best = [
        _similarities(mine, encode(np.asarray(one)[objects])).max(axis=1, initial=0.0)
        for one in others[:MOST_OTHERS]
    ]
    mean = np.mean(best, axis=0)
    return {str(label): float(v) for label, v in zip(mine.classes[0], mean, strict=True)}


def clusters_payload(
    descriptions: Mapping[str, ClusterDescription],
    partitions: Mapping[str, Any],
    distinct: Sequence[str],
) -> dict[str, Any]:
    """The tables of the described clusterings, and of all others the sizes of their clusters.

    ``distinct`` are the names of the distinct clusterings, best first.
    """
    described = {}
    for name, found in descriptions.items():
        rest = [one for one in distinct if one != name and one in partitions]
        given: dict[str, Any] = {}
        if name in partitions and rest:
            given = {
                "labels": partitions[name],
                "other": (rest[0], partitions[rest[0]]),
                "others": [partitions[one] for one in rest] if len(rest) > 1 else (),
            }
        described[name] = {
            "table": cluster_table(found, **given),
            "notes": [*_cut(found), *found.notes],
        }
    sizes = {name: _sizes(partitions[name]) for name in distinct if name in partitions}
    return {
        "described": described,
        "sizes": {name: one for name, one in sizes.items() if name not in described},
    }


def _cut(found: ClusterDescription) -> list[str]:
    more = len(found.clusters) - MOST_ROWS
    return [f"{count(more, 'smaller cluster')} left out."] if more > 0 else []


def _sizes(labels: Any) -> list[list[Any]]:
    found = encode(labels, noise="exclude")
    codes = found.codes[0]
    counts = np.bincount(codes[codes >= 0], minlength=len(found.classes[0]))
    kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_ROWS])
    return [[str(found.classes[0][at])[:40] for at in kept], counts[kept].tolist()]


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
