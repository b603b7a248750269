"""KeptCodes: the clusters of some objects, so that a judgement can be shown without its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wellsep._files.records import Record, freeze
from wellsep.partitions import Partitions

MOST_BYTES = 50_000_000
MOST_DRAWN = 2000  # objects, where none are drawn already


@dataclass(frozen=True, eq=False)
class KeptCodes(Record):
    """Clusters of drawn objects in all D distinct partitions, of all objects in the contenders.

    A cluster is its number among the user's labels of this partition; -1 is noise. Distinct
    partitions are numbered as in ``judgement.answer.classes``.

    Attributes
    ----------
    objects : ndarray of shape (s,)
        Positions of the drawn objects.
    drawn : ndarray of shape (D, s)
        The cluster of each drawn object.
    contenders : ndarray of shape (C,)
        The distinct partitions that are best, or come first in some draw.
    whole : ndarray of shape (C, n)
        The cluster of each object in the contenders.
    n_clusters : ndarray of shape (D,)
    labels, sizes : ndarray of shape (ΣK,)
        Label and size of every cluster, partition by partition.
    """

    objects: np.ndarray
    drawn: np.ndarray
    contenders: np.ndarray
    whole: np.ndarray
    n_clusters: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray

    @classmethod
    def keep(
        cls, distinct: Partitions, objects: np.ndarray, contenders: Sequence[int]
    ) -> KeptCodes | None:
        """Take the codes of distinct partitions; None where they take more than 50 MB."""
        clusters = distinct.clusters_only()
        n_clusters = clusters.n_clusters
        kind = np.min_scalar_type(-1 - int(n_clusters.max()))
        cells = len(distinct) * len(objects) + len(contenders) * distinct.n_objects
        labels = np.array([str(v) for known in clusters.classes for v in known], dtype=str)
        if cells * kind.itemsize + labels.nbytes + 8 * len(labels) > MOST_BYTES:
            return None
        sizes = [
            np.bincount(codes[codes >= 0], minlength=k)
            for codes, k in zip(clusters.codes, n_clusters, strict=True)
        ]
        return cls(
            freeze(objects),
            drawn=freeze(clusters.codes[:, objects], kind),
            contenders=freeze(contenders, np.intp),
            whole=freeze(clusters.codes[list(contenders)], kind),
            n_clusters=freeze(n_clusters, np.intp),
            labels=freeze(labels),
            sizes=freeze(np.concatenate(sizes), np.intp),
        )

    def _of(self, m: int) -> slice:
        """Where the clusters of a distinct partition stand among all."""
        end = int(self.n_clusters[: m + 1].sum())
        return slice(end - int(self.n_clusters[m]), end)

    def labels_of(self, m: int) -> tuple[str, ...]:
        """The labels of the clusters of a distinct partition."""
        return tuple(self.labels[self._of(m)].tolist())

    def sizes_of(self, m: int) -> np.ndarray:
        """(K,) objects of each cluster of a distinct partition."""
        sizes: np.ndarray = self.sizes[self._of(m)]
        return sizes

    def whole_of(self, m: int) -> np.ndarray | None:
        """(n,) the cluster of each object in a distinct partition; None if it is no contender."""
        place = np.flatnonzero(self.contenders == m)
        return self.whole[int(place[0])] if len(place) else None
