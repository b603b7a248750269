"""The part of a page that shows objects: planes, labels, names and values, packed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep.report.packing import pack, pack_plane
from wellsep.report.planes import encoded, matched, object_names, thinned

MOST_DRAWN = 2000
BYTES = 600_000  # of planes and labels before base64; the page stays under 1.5 MB
LONGEST_NAME = 120


@dataclass(frozen=True, eq=False)
class Look:
    """Some objects in every space, with the clusters of every partition.

    Attributes
    ----------
    objects : (s,) positions of the drawn objects
    names : what they are called
    n_objects : how many there are
    spaces : tuple of names, `planes` one (s, 2) array for each, `axes` what is shown
    labels : dict of partition name to (codes of the drawn objects, clusters, colour numbers)
    truth : the same for the true classes, or None
    values : dict of name to (s,) values of the chosen partition, for hovering
    """

    objects: np.ndarray
    names: list[str]
    n_objects: int
    spaces: tuple[str, ...]
    planes: tuple[np.ndarray, ...]
    axes: tuple[str, ...]
    labels: Mapping[str, tuple[np.ndarray, tuple[str, ...], np.ndarray]]
    truth: tuple[np.ndarray, tuple[str, ...], np.ndarray] | None = None
    values: Mapping[str, np.ndarray] = field(default_factory=dict)


def affordable(n_drawn: int, n_spaces: int, n_partitions: int) -> int:
    """How many objects fit: three bytes a plane, one a partition.

    Examples
    --------
    >>> affordable(10_000, 42, 42), affordable(10_000, 200, 200), affordable(150, 3, 3)
    (2000, 749, 150)
    """
    return min(n_drawn, MOST_DRAWN, max(200, BYTES // (3 * n_spaces + n_partitions + 1)))


def label_parts(
    partitions: Mapping[str, Any], objects: np.ndarray, reference: np.ndarray | None
) -> dict[str, tuple[np.ndarray, tuple[str, ...], np.ndarray]]:
    """Codes, clusters and colours of partitions; colours follow the reference's clusters."""
    found = {}
    for name, labels in partitions.items():
        codes, clusters = encoded(labels, name)
        colours = (
            np.arange(len(clusters)) if reference is None else matched(codes, np.asarray(reference))
        )
        found[name] = (codes[objects], clusters, colours)
    return found


def draw_objects(n: int, n_spaces: int, n_partitions: int, given: np.ndarray | None) -> np.ndarray:
    """The objects to draw: those given, thinned; else evenly spread over a seeded shuffle."""
    if given is None:
        most = affordable(n, n_spaces, n_partitions)
        given = np.sort(np.random.default_rng(0).permutation(n)[:most])
    return given[thinned(given, affordable(len(given), n_spaces, n_partitions))]


def look_payload(look: Look) -> dict[str, Any]:
    """The look as the page's script reads it."""
    return {
        "n": look.n_objects,
        "objects": pack(look.objects, "i4"),
        "names": [name[:LONGEST_NAME] for name in look.names],
        "spaces": [
            {"name": name, "axes": axes, "plane": pack_plane(xy)}
            for name, axes, xy in zip(look.spaces, look.axes, look.planes, strict=True)
        ],
        "labels": {name: _packed(part) for name, part in look.labels.items()},
        "truth": None if look.truth is None else _packed(look.truth),
        "values": {name: pack(values, "f4") for name, values in look.values.items()},
    }


def _packed(part: tuple[np.ndarray, tuple[str, ...], np.ndarray]) -> dict[str, Any]:
    codes, clusters, colours = part
    wide = len(clusters) > 254
    return {
        "codes": pack(np.where(codes < 0, 65535 if wide else 255, codes), "u2" if wide else "u1"),
        "clusters": [cluster[:LONGEST_NAME] for cluster in clusters],
        "colours": np.asarray(colours).tolist(),
    }


def names_of(ids: Any, objects: np.ndarray) -> list[str]:
    """Names of objects, cut where they are very long."""
    return [name[:LONGEST_NAME] for name in object_names(ids, objects)]
