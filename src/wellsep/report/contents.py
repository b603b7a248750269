"""Figures of what is in the clusters."""

from __future__ import annotations

from wellsep.evaluate import ClusterDescription
from wellsep.report.figures import ClusterProfile


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
