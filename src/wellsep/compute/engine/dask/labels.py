"""Labels and weights that lie in chunks beside the rows: encoded without being gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np

from wellsep._checks.arrays import check_choice, is_dask, to_numpy
from wellsep._checks.labels import NOISE, as_labels, merge_noise
from wellsep.compute.engine.dask.chunks import Chunks, aligned, with_sizes
from wellsep.partitions import NOISE_POLICIES, Partitions


@dataclass(frozen=True, eq=False)
class ChunkedPartitions(Partitions):
    """Partitions whose codes are a dask array (M, n), cut as the rows are."""

    counted: np.ndarray = None  # type: ignore[assignment]  # (M,)

    @property
    def n_counted(self) -> np.ndarray:
        return self.counted

    def subset(self, which: Sequence[int]) -> ChunkedPartitions:
        chosen = Partitions.subset(self, list(which))
        return ChunkedPartitions(**chosen.__dict__, counted=self.counted[list(which)])


def encode_chunks(
    labels: Any, weights: da.Array | None, chunks: Chunks, noise: str
) -> ChunkedPartitions:
    """Labels in memory or on Dask as partitions of the rows; an object of weight 0 is not counted.

    Labels on Dask are gone through once for their distinct values, and again wherever the codes
    are used; only the distinct values ever leave the workers.
    """
    check_choice("noise", noise, NOISE_POLICIES)
    if not _on_dask(labels):
        given = Partitions.from_labels(labels, n_objects=chunks.n, noise=noise)
        return _from_memory(given, weights, chunks)
    vectors = {name: aligned(v, chunks, name) for name, v in _named(labels, chunks.n).items()}
    encoded = [_encode(name, v, weights, noise, chunks) for name, v in vectors.items()]
    return ChunkedPartitions(
        codes=da.stack([codes for codes, *_ in encoded]).rechunk({0: -1}),
        classes=tuple(classes for _, classes, *_ in encoded),
        names=tuple(vectors),
        coverage=np.array([covered for *_, covered, _ in encoded]),
        counted=np.array([counted for *_, counted in encoded]),
        priced=noise == "penalize",
    )


def _on_dask(labels: Any) -> bool:
    if isinstance(labels, Mapping):
        labels = list(labels.values())
    return any(map(is_dask, labels if isinstance(labels, list | tuple) else [labels]))


def _named(labels: Any, n: int) -> dict[str, Any]:
    if isinstance(labels, Mapping):
        return {str(name): v for name, v in labels.items()}
    if isinstance(labels, list | tuple):
        return {str(m): v for m, v in enumerate(labels)}
    if getattr(labels, "ndim", 1) == 1:
        return {"labels": labels}
    if hasattr(labels, "columns"):
        return {str(column): labels[column] for column in labels.columns}
    labels = with_sizes(labels)
    if labels.shape[1] != n == labels.shape[0]:
        raise ValueError(
            f"labels must have one entry per object ({n}), got {labels.shape[1]}; "
            "each row must be a clustering: transpose it."
        )
    return {str(m): labels[m] for m in range(labels.shape[0])}


def _from_memory(given: Partitions, weights: da.Array | None, chunks: Chunks) -> ChunkedPartitions:
    codes, classes = given.codes, given.classes
    if weights is not None:
        counted = replace(given, codes=np.where(to_numpy(weights.compute()) > 0, codes, -1))
        filled = counted.take(np.arange(chunks.n))
        codes, classes = filled.codes, filled.classes
    return ChunkedPartitions(
        codes=da.from_array(codes, chunks=((len(codes),), chunks.sizes)),
        classes=classes,
        names=given.names,
        coverage=given.coverage,
        counted=(codes >= 0).sum(axis=1),
        priced=given.priced,
    )


def _encode(
    name: str, vector: da.Array, weights: da.Array | None, noise: str, chunks: Chunks
) -> tuple[da.Array, np.ndarray, float, int]:
    """Codes, classes, share that is not noise, and number of counted objects."""
    label = f"labels[{name}]" if name.isdigit() else name
    column = Chunks(vector, None)
    apart = noise == "singletons"  # then each chunk's share of the noise is needed
    looked = column.each(_distinct, label, beside=[weights], whole=apart)
    classes, counts = _join([(c, k) for c, k, _, _ in looked])
    noisy = np.array([weighed for *_, weighed, _ in looked])  # of positive weight
    n_noise = int(sum(every for *_, every in looked))
    has_noise = classes.dtype.kind == "i" and n_noise > 0
    if has_noise and noise == "error":
        raise ValueError(
            f"{label} must not hold noise (-1, -2 or -3), got {n_noise} such objects; "
            "choose noise='penalize', 'exclude', 'cluster' or 'singletons'."
        )
    counted, covered, before = int(counts.sum()), 1.0, None
    if has_noise and noise != "cluster":
        labelled = classes != NOISE
        classes = classes[labelled]
        if apart:
            before = dict(zip(column.starts.tolist(), np.cumsum(noisy) - noisy, strict=True))
        else:
            counted, covered = int(counts[labelled].sum()), 1 - n_noise / chunks.n
    codes = column.lazy(_codes, classes, before, beside=[weights], dtype=np.int32, checked=False)
    if before is not None:
        classes = np.concatenate([classes, np.full(noisy.sum(), NOISE)])
    return codes, classes, covered, counted


def _distinct(
    vector: np.ndarray, weights: np.ndarray | None, name: str, start: int
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Labels of the objects with weight, how many of each; noise with weight, and all noise."""
    vector = merge_noise(as_labels(vector, name, start))
    weighed = vector if weights is None else vector[weights > 0]
    noise = [int((v == NOISE).sum()) if vector.dtype.kind == "i" else 0 for v in (weighed, vector)]
    return *np.unique(weighed, return_counts=True), *noise  # type: ignore[return-value]


def _join(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    labels = np.concatenate([c for c, _ in parts])
    counts = np.concatenate([k for _, k in parts])
    classes, place = np.unique(labels, return_inverse=True)
    return classes, np.bincount(place.reshape(-1), counts, len(classes)).astype(np.int64)


def _codes(
    vector: np.ndarray,
    weights: np.ndarray | None,
    classes: np.ndarray,
    before: dict[int, int] | None,
    start: int,
) -> np.ndarray:
    """Place of each label among the classes, -1 where it is none of them or has no weight.

    With ``before`` (noise in earlier chunks) each noise object is a cluster of its own.
    """
    vector = merge_noise(as_labels(vector, "labels", start))
    codes = np.full(len(vector), -1, dtype=np.int32)
    if len(classes):
        place = np.minimum(np.searchsorted(classes, vector), len(classes) - 1)
        codes = np.where(classes[place] == vector, place, -1).astype(np.int32)
    weighed = np.ones(len(vector), dtype=bool) if weights is None else weights > 0
    if before is not None:
        alone = (vector == NOISE) & weighed
        codes[alone] = len(classes) + before[start] + np.arange(alone.sum(), dtype=np.int32)
    return np.where(weighed, codes, -1).astype(np.int32)
