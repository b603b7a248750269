"""Many label vectors over one set of objects, encoded once; the policy for noise lives here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_positions,
    is_frame,
    is_series,
    open_frame,
    to_numpy,
)
from wellsep._checks.labels import MISSING_TEXTS, NOISE, as_labels, merge_noise
from wellsep._files.records import Record, freeze
from wellsep._text.sentences import count, listing, shown

VALUE_POLICIES = ("exclude", "cluster", "singletons", "error")  # where objects have values
NOISE_POLICIES = ("penalize", *VALUE_POLICIES)  # a price is of scores
DENSE = 8  # a table with more cells than this times the objects is counted by sorting


@dataclass(frozen=True, eq=False)
class Classes(Record):
    """Which of M named partitions are equal: judges see D distinct ones, tables show all M."""

    names: tuple[str, ...]  # of the M partitions
    of: np.ndarray  # (M,) which distinct partition each one is, numbered as they appear

    @classmethod
    def from_equal(cls, names: tuple[str, ...], first_equal: np.ndarray) -> Classes:
        """Number the classes; ``first_equal`` is the first partition that each one equals."""
        return cls(names, freeze(np.unique(first_equal, return_inverse=True)[1].reshape(-1)))

    @classmethod
    def all_differ(cls, names: tuple[str, ...]) -> Classes:
        """Each partition is a class of its own."""
        return cls(names, freeze(np.arange(len(names))))

    def __len__(self) -> int:
        return int(self.of.max(initial=-1)) + 1

    @cached_property
    def first(self) -> np.ndarray:
        """(D,) position of the first partition of each class."""
        return np.unique(self.of, return_index=True)[1]

    @cached_property
    def sizes(self) -> np.ndarray:
        """(D,) number of partitions of each class."""
        return np.bincount(self.of)

    @property
    def members(self) -> tuple[tuple[str, ...], ...]:
        """The names of equal partitions, class by class."""
        names = np.array(self.names, dtype=object)
        return tuple(tuple(names[self.of == c]) for c in range(len(self)))

    def equal_to(self, m: int) -> np.ndarray:
        """(M,) which partitions equal the m-th, itself included."""
        return self.of == self.of[m]


@dataclass(frozen=True, eq=False, repr=False)
class Partitions:
    """M partitions of the same n objects."""

    codes: np.ndarray  # (M, n) int32: cluster of each object, 0 … K-1; -1: not counted
    classes: tuple[np.ndarray, ...]  # of each partition the user's label of each code
    names: tuple[str, ...]
    coverage: np.ndarray  # (M,) share of the objects that are counted
    priced: bool = False  # whether objects that are not counted lower the scores

    def __repr__(self) -> str:
        clusters = (
            f"{shown(n, 24)}: {k}" for n, k in zip(self.names, self.n_clusters, strict=True)
        )
        return (
            f"Partitions({count(len(self.names), 'partition')} of "
            f"{count(self.codes.shape[1], 'object')}; clusters: {listing(clusters, 6)})"
        )

    @classmethod
    def from_labels(
        cls, labels: Any, *, n_objects: int | None = None, noise: str = "exclude"
    ) -> Partitions:
        """Encode one label vector, several in a list, dict or frame, or the rows of an array."""
        if isinstance(labels, Partitions):
            _check_length(labels.codes.shape[1], n_objects, "labels")
            return labels
        check_choice("noise", noise, NOISE_POLICIES)
        if n_objects is not None:
            check_count("n_objects", n_objects)
        vectors = _named_vectors(labels, n_objects)
        if not vectors:
            raise ValueError("labels must hold at least one clustering, got none.")
        length = n_objects if n_objects is not None else _common_length(vectors)
        codes = np.empty((len(vectors), length), dtype=np.int32)
        classes = []
        for m, (name, vector) in enumerate(vectors.items()):
            codes[m], known = _encode(vector, length, noise, name)
            classes.append(known)
        return cls(
            codes=codes,
            classes=tuple(classes),
            names=tuple(vectors),
            coverage=np.array([np.count_nonzero(row >= 0) for row in codes]) / length,
            priced=noise == "penalize",
        )

    @property
    def n_objects(self) -> int:
        """Number of objects, noise included."""
        return int(self.codes.shape[1])

    @cached_property
    def n_clusters(self) -> np.ndarray:
        """Number of clusters of each partition, noise left out."""
        return np.array([len(k) for k in self.classes], dtype=np.intp)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each partition's clusters begin in a list of all; the last is their total."""
        return offsets_of(self.n_clusters)

    @cached_property
    def sizes(self) -> tuple[np.ndarray, ...]:
        """(K,) objects of each cluster, partition by partition."""
        return tuple(map(cluster_sizes, self.codes, self.n_clusters))

    @cached_property
    def n_counted(self) -> np.ndarray:
        """(M,) objects that each partition counts."""
        counted: np.ndarray = (self.codes >= 0).sum(axis=1)
        return counted

    @cached_property
    def distinct(self) -> Classes:
        """Which partitions are equal, whatever their clusters are called."""
        numbers: dict[bytes, int] = {}
        of = [
            numbers.setdefault(by_appearance(codes).tobytes(), len(numbers)) for codes in self.codes
        ]
        return Classes(self.names, freeze(of, np.intp))

    def noise_as_cluster(self) -> Partitions:
        """The same partitions with all objects counted: those that are noise are one cluster."""
        codes, classes = self.codes.copy(), []
        for m, known in enumerate(self.classes):
            alone = is_noise(known)
            real = known[~alone]
            noisy = codes[m] < 0
            if alone.any():
                noisy |= alone[codes[m]]
                codes[m] = (np.cumsum(~alone) - 1)[codes[m]]
            codes[m, noisy] = len(real)
            classes.append(np.append(real, NOISE) if noisy.any() else real)
        return Partitions(codes, tuple(classes), self.names, np.ones(len(self)))

    def clusters_only(self) -> Partitions:
        """The same partitions with noise in no cluster (-1), whatever it counts as."""
        codes = np.empty_like(self.codes)
        real = [~is_noise(known) for known in self.classes]
        for row, own, counted in zip(codes, self.codes, real, strict=True):
            row[:] = np.append(np.where(counted, np.cumsum(counted) - 1, -1), -1)[own]
        classes = tuple(known[counted] for known, counted in zip(self.classes, real, strict=True))
        return Partitions(codes, classes, self.names, (codes >= 0).mean(axis=1), self.priced)

    def subset(self, which: Sequence[int]) -> Partitions:
        """Some of the partitions."""
        rows = check_positions("which", which, len(self))
        return Partitions(
            self.codes[rows],
            tuple(self.classes[m] for m in rows),
            tuple(self.names[m] for m in rows),
            self.coverage[rows],
            self.priced,
        )

    def noise_only(self) -> Partitions:
        """The objects that each partition does not count, as its only cluster."""
        codes = np.where(self.codes < 0, 0, -1).astype(np.int32)
        classes = (np.array([NOISE]),) * len(self)
        return Partitions(codes, classes, self.names, 1 - self.coverage)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, m: int) -> Partitions:
        return self.subset([range(len(self))[m]])

    def __iter__(self) -> Iterator[Partitions]:
        return (self[m] for m in range(len(self)))

    def take(self, objects: np.ndarray) -> Partitions:
        """The same partitions of a subset of the objects; clusters left empty disappear."""
        objects = check_positions("objects", objects, self.n_objects)
        parts = [_compact(c[objects], k) for c, k in zip(self.codes, self.classes, strict=True)]
        codes = np.stack([c for c, _ in parts])
        classes = tuple(k for _, k in parts)
        return Partitions(codes, classes, self.names, (codes >= 0).mean(axis=1), self.priced)


def encode(
    labels: Any, *, n_objects: int | None = None, noise: str = "exclude", name: str = "labels"
) -> Partitions:
    """One label vector as Partitions with M = 1; a partition is taken as it is."""
    if isinstance(labels, Partitions):
        if len(labels) != 1:
            raise ValueError(f"{name} must be one clustering, got {len(labels)}.")
        _check_length(labels.n_objects, n_objects, name)
        return labels
    return Partitions.from_labels({name: labels}, n_objects=n_objects, noise=noise)


def known_classes(truth: Any) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the classes that are known, and for each object whether its class is."""
    values = to_numpy(truth, "truth").reshape(-1)
    known = ~is_unknown(values)
    if not known.any():
        raise ValueError(f"truth must give objects a class, got none for {len(values)} objects.")
    codes = encode(values[known].tolist(), noise="cluster", name="truth").codes[0]
    if len(codes) > 1 and len(np.unique(codes)) == len(codes):
        raise ValueError(
            f"truth must have classes with several objects, got {len(codes)} classes of one object "
            "each; is it a column of ids?"
        )
    return codes, known


def is_unknown(values: np.ndarray) -> np.ndarray:
    """For each true class whether it is missing: NaN, an empty text, None."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "U":
        return np.asarray(values == "")
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([_is_blank(value) for value in values], dtype=bool)


def _is_blank(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, str | float | np.generic) and str(value) in ("", *MISSING_TEXTS)


def _named_vectors(labels: Any, n_objects: int | None) -> dict[str, np.ndarray]:
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        return {"labels": as_labels(labels, "labels")}
    if is_frame(labels):
        labels = {c.name: c.to_native() for c in open_frame(labels, "labels").iter_columns()}
    if isinstance(labels, Mapping):
        vectors: dict[str, np.ndarray] = {}
        for name, values in labels.items():
            if str(name) in vectors:
                raise ValueError(f"labels must have names that differ, got {str(name)!r} twice.")
            vectors[str(name)] = as_labels(values, str(name))
        return vectors
    if _is_one_vector(labels):
        return {"labels": as_labels(labels, "labels")}
    if isinstance(labels, Sequence):
        return {str(m): as_labels(v, f"labels[{m}]") for m, v in enumerate(labels)}
    array = to_numpy(labels, "labels")
    if array.ndim != 2:
        raise ValueError(
            "labels must be one vector, or an array with one clustering per row, "
            f"got {array.ndim} dimension(s)."
        )
    if array.shape[1] != n_objects == array.shape[0]:
        raise ValueError(
            f"labels must have one entry per object ({n_objects}), got {array.shape[1]}; "
            "each row must be a clustering: transpose it."
        )
    return {str(m): as_labels(row, f"labels[{m}]") for m, row in enumerate(array)}


def _is_one_vector(labels: Any) -> bool:
    if is_series(labels) or type(labels).__name__ == "Categorical":
        return True
    if isinstance(labels, Sequence):
        return (
            len(labels) == 0
            or isinstance(labels[0], str)
            or to_numpy(labels[0], "labels").ndim == 0
        )
    return getattr(labels, "ndim", 1) == 1


def _common_length(vectors: Mapping[str, np.ndarray]) -> int:
    """The number of objects, the same in every vector."""
    first, *others = vectors
    for name in others:
        if len(vectors[name]) != len(vectors[first]):
            raise ValueError(
                f"{_called(name)} must have the {len(vectors[first]):,} objects that "
                f"{_called(first)} has, got {len(vectors[name]):,}; all must describe the same "
                "objects in the same order."
            )
    return len(vectors[first])


def _called(name: str) -> str:
    return f"labels[{name}]" if name.isdigit() else repr(name)


def _check_length(got: int, expected: int | None, name: str) -> None:
    if expected is not None and got != expected:
        remedy = "; is the first one a header?" if got == expected + 1 else "."
        raise ValueError(f"{name} must have one entry per object ({expected}), got {got}{remedy}")


def _encode(
    vector: np.ndarray, length: int, noise: str, name: str
) -> tuple[np.ndarray, np.ndarray]:
    label = name if not name.isdigit() else f"labels[{name}]"
    _check_length(len(vector), length, label)
    if len(vector) == 0:
        raise ValueError(f"{label} must not be empty.")
    classes, codes = _distinct(vector)
    if vector.dtype.kind == "i" and classes[0] < NOISE:
        vector = merge_noise(vector)
        classes, codes = _distinct(vector)
    if vector.dtype.kind != "i" or classes[0] != NOISE:
        return codes, classes
    noisy = codes == 0
    if noise == "cluster":
        return codes, classes
    if noise == "error":
        raise ValueError(
            f"{label} must not hold noise (-1, -2 or -3), got {int(noisy.sum())} such objects; "
            "choose noise='penalize', 'exclude', 'cluster' or 'singletons'."
        )
    codes = codes - 1
    classes = classes[1:]
    if noise == "singletons":
        codes[noisy] = len(classes) + np.arange(noisy.sum(), dtype=np.int32)
        classes = np.concatenate([classes, np.full(noisy.sum(), NOISE)])
    return codes, classes


def _distinct(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels and the place of each entry among them."""
    if vector.dtype.kind in "iu":
        low, high = int(vector.min()), int(vector.max())
        if high < 2**63 and high - low < 4 * len(vector):  # small integers need no sorting
            shifted = vector.astype(np.int64, copy=False)
            shifted = shifted - low if low else shifted
            present = np.bincount(shifted).nonzero()[0]
            if len(present) > high - low:  # none is missing: they are their own codes
                return (present + low).astype(vector.dtype), shifted.astype(np.int32)
            place = np.empty(high - low + 1, dtype=np.int32)
            place[present] = np.arange(len(present), dtype=np.int32)
            return (present + low).astype(vector.dtype), place[shifted]
    classes, inverse = np.unique(vector, return_inverse=True)
    return classes, inverse.reshape(-1).astype(np.int32)


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Where each of consecutive groups of so many begins, and where the last ends."""
    offsets = np.zeros(len(counts) + 1, dtype=np.intp)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def cluster_sizes(codes: np.ndarray, n_clusters: int = 0) -> np.ndarray:
    """(K,) objects of each cluster, at least so many; codes below 0 are in none."""
    return np.bincount(codes[codes >= 0], minlength=n_clusters)


def shared_sizes(
    first: np.ndarray,
    second: np.ndarray,
    n_clusters: int = 0,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """(1 + K, 1 + L) objects that clusters of two partitions share; row and column 0 are noise.

    The first has at least ``n_clusters``. With weights, sizes are sums of weights.

    >>> shared_sizes(np.array([0, 0, 1, -1]), np.array([0, 1, 1, 1])).tolist()
    [[0, 0, 1], [0, 1, 1], [0, 0, 1]]
    """
    height = max(int(first.max(initial=-1)) + 1, n_clusters) + 1
    width = int(second.max(initial=-1)) + 2
    cells = np.multiply(first, width, dtype=np.int64)
    cells += second
    cells += width + 1
    return np.bincount(cells, weights, height * width).reshape(height, width)


def shared_cells(
    first: np.ndarray,
    second: np.ndarray,
    n_first: int,
    n_second: int,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The cells of the table of two vectors of codes that are not empty, and what is in them.

    A cell is a · n_second + b. Codes are whole numbers from 0; the table is not made where it
    would have many more cells than there are objects.
    """
    keys = np.multiply(first, n_second, dtype=np.int64)
    keys += second
    if n_first * n_second > DENSE * max(len(keys), 1024):
        if weights is None:
            return np.unique(keys, return_counts=True)
        cells, place = np.unique(keys, return_inverse=True)
        return cells, np.bincount(place, weights)
    counts = np.bincount(keys, weights)
    cells = np.flatnonzero(counts)
    return cells, counts[cells]


def best_matches(
    first: np.ndarray,
    others: Sequence[np.ndarray] | np.ndarray,
    n_clusters: int = 0,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(K, B) for each cluster of one partition its best Jaccard similarity with B others.

    |A∩B| / |A∪B| over the clusters B of the other. Codes below 0 are in no cluster, but their
    objects count in the clusters of the other side; a cluster without objects has 0. With weights,
    sizes are sums of weights. K is at least ``n_clusters``. The second array has the code of the
    cluster that matches best, -1 where none has a common object.

    >>> similarity, match = best_matches(np.array([0, 0, 1, 1, 1]), [np.array([0, 0, 0, 1, 1])], 3)
    >>> similarity[:, 0].round(3).tolist(), match[:, 0].tolist()
    ([0.667, 0.667, 0.0], [0, 1, -1])
    """
    own = np.bincount(first + 1, weights, n_clusters + 1)  # the first is noise
    similarity = np.zeros((len(own), len(others)))
    match = np.full((len(own), len(others)), -1, dtype=np.intp)
    for b, other in enumerate(others):
        width = int(other.max(initial=-1)) + 2
        if len(own) * width > DENSE * max(len(first), 1024):
            _match_cells(first, other, weights, own, similarity[:, b], match[:, b])
            continue
        table = shared_sizes(first, other, len(own) - 1, weights)
        theirs = table.sum(axis=0)
        if weights is not None:  # object by object: sums of cells differ in the last digit
            theirs = np.bincount(other + 1, weights, width)
        common = table.astype(np.float64)
        common[:, 0] = 0
        union = own[:, None] + theirs - common
        shares = common / np.maximum(union, np.finfo(float).tiny)  # clusters may be empty
        best = shares.argmax(axis=1)
        match[:, b] = best - 1
        similarity[:, b] = shares[np.arange(len(own)), best]
    return similarity[1:], match[1:]


def _match_cells(
    first: np.ndarray,
    other: np.ndarray,
    weights: np.ndarray | None,
    own: np.ndarray,
    similarity: np.ndarray,
    match: np.ndarray,
) -> None:
    """The best matches with one partition, from the cells that are not empty, written in place."""
    theirs = np.bincount(other + 1, weights)
    cells, common = shared_cells(first + 1, other + 1, len(own), len(theirs), weights)
    i, j = np.divmod(cells, len(theirs))
    some = (i > 0) & (j > 0) & (common > 0)
    i, j, common = i[some], j[some], common[some]
    shares = common / (own[i] + theirs[j] - common)
    order = np.lexsort((-j, shares))  # of each cluster the largest share is written last
    similarity[i[order]], match[i[order]] = shares[order], j[order] - 1


def is_noise(classes: np.ndarray) -> np.ndarray:
    """Which labels of clusters mean noise."""
    return classes == NOISE if classes.dtype.kind in "iu" else np.zeros(len(classes), dtype=bool)


def by_appearance(codes: np.ndarray) -> np.ndarray:
    """The same partition with clusters numbered as they first appear; -1 stays."""
    counted = np.flatnonzero(codes >= 0)
    if not len(counted):
        return codes
    first = np.empty(int(codes.max()) + 1, dtype=np.intp)
    first[codes[counted[::-1]]] = counted[::-1]  # the last one written is the first object
    number = np.empty(len(first), dtype=codes.dtype)
    number[np.argsort(first)] = np.arange(len(first), dtype=codes.dtype)
    fresh = codes.copy()
    fresh[counted] = number[codes[counted]]
    return fresh


def _compact(codes: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    counted = codes >= 0
    present = np.zeros(len(classes), dtype=bool)
    present[codes[counted]] = True
    renumber = np.cumsum(present) - 1
    fresh = np.full_like(codes, -1)
    fresh[counted] = renumber[codes[counted]]
    return fresh, classes[present]
