"""Scatter plots of the spaces: which objects are drawn, their colours, names and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from wellsep.evaluate import PartitionDetails
from wellsep.partitions import Partitions, encode, shared_sizes
from wellsep.report.pack import Section, pack, pack_codes, pack_plane
from wellsep.spaces.drawing_planes import drawn_objects, plane, spread_colours

MOST_DRAWN = 2000
BYTES = 600_000  # of planes and labels before base64; the page stays under 1.5 MB
LONGEST_NAME = 120
LONGEST_TEXT = 160
MOST_KINDS = 40  # categories that get a colour each


class Labels(NamedTuple):
    """The clusters of some objects in one partition."""

    codes: np.ndarray  # (s,) -1 = noise
    clusters: tuple[str, ...]
    sizes: np.ndarray  # (K,) of all objects


class Part(NamedTuple):
    """A partition of the drawn objects; how its clusters are called and coloured, and how large."""

    codes: np.ndarray  # (s,) -1 = noise
    clusters: tuple[str, ...]
    colours: np.ndarray  # (K,)
    sizes: np.ndarray  # (K,) of all objects


@dataclass(frozen=True, eq=False)
class Scatters:
    """Some objects in every space, with the clusters of every partition."""

    objects: np.ndarray  # (s,) positions of the drawn objects
    names: list[str]  # what they are called
    n_objects: int
    spaces: tuple[str, ...]
    planes: tuple[np.ndarray, ...]  # (s, 2) of each space
    axes: tuple[str, ...]  # what each shows
    labels: Mapping[str, Part]  # of each partition
    truth: Part | None = None
    values: Mapping[str, np.ndarray] = field(default_factory=dict)  # (s,) in the chosen partition
    layout: tuple[np.ndarray, str] | None = None  # a plane for every partition, and what it is
    known: Mapping[str, np.ndarray] = field(default_factory=dict)  # (s,) about the objects
    # (n, 2) all objects in the layout, and their clusters in the best partition.
    whole: tuple[np.ndarray, np.ndarray] | None = None


def affordable(n_spaces: int, n_partitions: int) -> int:
    """How many objects fit: three bytes a plane, one a partition.

    Examples
    --------
    >>> affordable(42, 42), affordable(200, 200)
    (2000, 749)
    """
    return min(MOST_DRAWN, max(200, BYTES // (3 * n_spaces + n_partitions + 1)))


def label_parts(
    labels: Mapping[str, Labels], rows: np.ndarray, reference: np.ndarray, best: np.ndarray
) -> dict[str, Part]:
    """Codes, clusters, colours and sizes of partitions; colours follow the reference's clusters.

    ``rows`` are those of the drawn objects to take, ``reference`` the clusters of all of them in
    the best partition, and ``best`` the colours of its clusters.
    """
    return {
        name: Part(codes[rows], clusters, matched(codes, reference, best), sizes)
        for name, (codes, clusters, sizes) in labels.items()
    }


def one_part(labels: Any, objects: np.ndarray, reference: np.ndarray, best: np.ndarray) -> Part:
    """The same for one vector of true classes."""
    whole = labels_of(encode(labels, name="truth"))
    return label_parts(whole, objects, reference, best)["truth"]


def matched(codes: np.ndarray, reference: np.ndarray, best: np.ndarray | None = None) -> np.ndarray:
    """Number for the colour of each cluster, so that it keeps the colour of the one it overlaps.

    Clusters are matched one to one with those of a reference so that most objects keep their
    colour; those left over take the next free numbers.

    Examples
    --------
    >>> import numpy as np
    >>> matched(np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 1, 1])).tolist()
    [1, 0, 2]
    """
    table = shared_sizes(codes, reference)[1:, 1:]
    k, r = table.shape
    colours = np.full(k, -1)
    rows, columns = linear_sum_assignment(-table)
    hit = table[rows, columns] > 0
    best = np.arange(r) if best is None else best
    colours[rows[hit]] = best[columns[hit]]
    taken, new = set(colours.tolist()), np.flatnonzero(colours < 0)
    colours[new] = [c for c in range(2 * k) if c not in taken][: len(new)]
    return colours


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the values, evenly spaced."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(np.intp)]


def labels_of(partitions: Partitions) -> dict[str, Labels]:
    """The clusters of all objects in each partition."""
    classes = [tuple(map(str, known)) for known in partitions.classes]
    parts = map(Labels, partitions.codes, classes, partitions.sizes)
    return dict(zip(partitions.names, parts, strict=True))


def object_values(details: PartitionDetails) -> dict[str, np.ndarray]:
    """Widths, margins and disagreements of the objects, those that are known; noise has none."""
    named = {"width": details.widths, "margin": details.margins, "lcd": details.disagreements}
    return {
        name: np.where(details.codes < 0, np.nan, values)
        for name, values in named.items()
        if np.isfinite(values).any()
    }


def draw_one_space(
    X: Any,
    ids: Any,
    partitions: Partitions,
    details: PartitionDetails,
    classes: np.ndarray | None,
    layout: str,
) -> Scatters:
    """All partitions in the only space there is, the data."""
    n = partitions.n_objects
    objects = drawn_objects(n, affordable(1, len(partitions)))
    xy, axes = plane(X, objects, layout)
    best = spread_colours(xy, details.codes[objects], len(details.clusters))
    return Scatters(
        objects=objects,
        names=object_names(ids, objects),
        n_objects=n,
        spaces=(details.space,),
        planes=(xy,),
        axes=(axes,),
        labels=label_parts(labels_of(partitions), objects, details.codes, best),
        truth=None if classes is None else one_part(classes, objects, details.codes, best),
        values={key: values[objects] for key, values in object_values(details).items()},
    )


def map_section(scatters: Scatters, sides: Mapping[str, list[int]]) -> Section:
    """The scatter plots; ``sides`` are the spaces that give the answer, and the others."""
    found = {
        "n": scatters.n_objects,
        "objects": pack(scatters.objects, "i4"),
        "names": scatters.names,
        "spaces": [
            {"name": name, "axes": axes, "plane": pack_plane(xy)}
            for name, axes, xy in zip(scatters.spaces, scatters.axes, scatters.planes, strict=True)
        ],
        "labels": {name: _packed(part) for name, part in scatters.labels.items()},
        "truth": None if scatters.truth is None else _packed(scatters.truth),
        "values": {name: pack(values, "f4") for name, values in scatters.values.items()},
        "layout": None
        if scatters.layout is None
        else {"name": scatters.layout[1], "plane": pack_plane(scatters.layout[0])},
        "known": {
            name: known_payload(values)
            for name, values in scatters.known.items()
            if values.ndim == 1
        },
    }
    if scatters.whole is not None:
        xy, codes = scatters.whole
        found["whole"] = {"plane": pack_plane(xy), "codes": pack_codes(codes, int(codes.max()) + 1)}
    why = "Without the runs there are no labels to colour the objects by."
    missing = "" if scatters.labels else why
    return Section("plots", {"scatters": found, "sides": sides}, {"missing": missing})


def known_payload(values: np.ndarray) -> dict[str, Any]:
    """A column about the objects: numbers, or categories with a colour each, or plain texts.

    Examples
    --------
    >>> import numpy as np
    >>> known_payload(np.array(["b", "a", "b"]))["clusters"]
    ['a', 'b']
    >>> sorted(known_payload(np.array([0.5, 2.0, 7.0])))
    ['values']
    """
    if values.dtype.kind == "f" or (values.dtype.kind in "iu" and len(set(values)) > MOST_KINDS):
        return {"values": pack(values, "f4")}
    texts = np.array([str(value)[:LONGEST_TEXT] for value in values])
    kinds, codes = np.unique(texts, return_inverse=True)
    if len(kinds) > MOST_KINDS:
        return {"texts": texts.tolist()}
    return _packed(Part(codes, tuple(kinds.tolist()), np.arange(len(kinds)), np.bincount(codes)))


def _packed(part: Part) -> dict[str, Any]:
    return {
        "codes": pack_codes(part.codes, len(part.clusters)),
        "clusters": [cluster[:LONGEST_NAME] for cluster in part.clusters],
        "colours": np.asarray(part.colours).tolist(),
        "sizes": np.asarray(part.sizes).tolist(),
    }


def object_names(ids: Any, objects: np.ndarray) -> list[str]:
    """Names of some objects, cut where they are very long: their ids, or "object 7"."""
    if ids is None:
        return [f"object {int(i)}" for i in objects]
    return [str(ids[int(i)])[:LONGEST_NAME] for i in objects]
