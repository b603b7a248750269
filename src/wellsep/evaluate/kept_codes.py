"""KeptCodes: the clusters of some objects, so that a judgement can be shown without its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wellsep._files.records import Record, freeze
from wellsep.partitions import Partitions, is_noise

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
        """Take the codes of distinct partitions; None where they take more than 50 MB.

        Examples
        --------
        >>> two = Partitions.from_labels({"a": ["x", "x", "y"], "b": [4, -1, 4]})
        >>> codes = KeptCodes.keep(two, np.array([0, 2]), [1])
        >>> codes.drawn.tolist(), codes.whole_of(1).tolist(), codes.labels_of(1)
        ([[0, 1], [0, 0]], [0, -1, 0], ('4',))
        """
        real = [~is_noise(labels) for labels in distinct.classes]
        kind = np.min_scalar_type(-1 - max(int(r.sum()) for r in real))
        cells = len(distinct) * len(objects) + len(contenders) * distinct.n_objects
        labels = [str(v) for c, r in zip(distinct.classes, real, strict=True) for v in c[r]]
        names = np.array(labels, dtype=str)
        if cells * kind.itemsize + names.nbytes + 8 * len(names) > MOST_BYTES:
            return None
        places = {m: place for place, m in enumerate(contenders)}
        drawn = np.empty((len(distinct), len(objects)), dtype=kind)
        whole = np.empty((len(contenders), distinct.n_objects), dtype=kind)
        sizes = []
        for m, (codes, counted) in enumerate(zip(distinct.codes, real, strict=True)):
            number = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1)
            own = number[codes]  # the last is that of -1
            drawn[m] = own[objects]
            if m in places:
                whole[places[m]] = own
            sizes.append(np.bincount(own[own >= 0], minlength=int(counted.sum())))
        return cls(
            freeze(objects),
            freeze(drawn),
            freeze(contenders, np.intp),
            freeze(whole),
            freeze([int(counted.sum()) for counted in real], np.intp),
            freeze(names),
            freeze(np.concatenate(sizes), np.intp),
        )

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.append(0, np.cumsum(self.n_clusters))

    def labels_of(self, m: int) -> tuple[str, ...]:
        """The labels of the clusters of a distinct partition."""
        return tuple(self.labels[self._ends[m] : self._ends[m + 1]].tolist())

    def sizes_of(self, m: int) -> np.ndarray:
        """(K,) objects of each cluster of a distinct partition."""
        sizes: np.ndarray = self.sizes[self._ends[m] : self._ends[m + 1]]
        return sizes

    def whole_of(self, m: int) -> np.ndarray | None:
        """(n,) the cluster of each object in a distinct partition; None if it is no contender."""
        place = np.flatnonzero(self.contenders == m)
        return self.whole[int(place[0])] if len(place) else None
