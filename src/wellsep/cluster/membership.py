"""Objects that fit their cluster badly: borderline ones, and ones without neighbours in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import (
    check_choice,
    check_count,
    check_number,
    check_positions,
    to_numpy,
)
from wellsep._checks.labels import in_order_of
from wellsep._checks.values import check_jobs
from wellsep._text.sentences import Views, count, need_pandas
from wellsep.compute.statistics.cluster_prototypes import Around, open_around
from wellsep.indices.centroid import BORDERLINE
from wellsep.indices.lcd import checked_objects, measure
from wellsep.partitions import VALUE_POLICIES, encode


@dataclass(frozen=True, eq=False)
class MembershipReport(Views, row_names="id"):
    """Margins and neighbours of each object, and the objects that fit their cluster worst.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        Name of each object.
    labels : ndarray of shape (n,)
        Its cluster.
    margins : ndarray of shape (n,)
        Its distance to the nearest plane between its prototype and a rival's; negative where the
        rival's prototype is nearer.
    relative_margins : ndarray of shape (n,)
        The margin over half the distance of the two prototypes: 1 at its own prototype or beyond,
        0 halfway between them.
    rivals : ndarray of shape (n,)
        The cluster beyond that plane.
    disagreements : ndarray of shape (n,)
        LCD, see ``local_connectivity``: how far its neighbours pull aside.
    n_witnesses : ndarray of shape (n,)
        How many neighbours stand between it and its prototype.
    better_cluster : ndarray of shape (n,)
        The cluster that would suit it best: the one whose members among its nearest neighbours
        back it most, its own if none does better (as in ``local_connectivity``).
    borderline : ndarray of int
        Positions of objects with a relative margin below .1, the smallest first; at most
        ``n_worst`` of the `n_borderline`.
    isolated : ndarray of int
        Positions of objects whose nearest neighbours back another cluster, the highest
        `disagreements` first; at most ``n_worst`` of the `n_isolated`.
    n_neighbors : int
    noise : ndarray of int
        Positions of the objects without a cluster (label -1), the surest first; none where
        ``noise=`` makes clusters of them.
    noise_cluster : ndarray
        The cluster that each of them could go to: that of most of its `n_neighbors` nearest
        neighbours that have one; of several the one with the nearest neighbour.
    noise_share : ndarray
        The share of these neighbours that is in it: how sure that is.
    noise_distance : ndarray
        Distance to the nearest member of that cluster.
    noise_margin : ndarray
        The relative margin it would have there, as in `relative_margins`; negative where another
        prototype is nearer.
    """

    ids: np.ndarray
    labels: np.ndarray
    margins: np.ndarray
    relative_margins: np.ndarray
    rivals: np.ndarray
    disagreements: np.ndarray
    n_witnesses: np.ndarray
    better_cluster: np.ndarray
    borderline: np.ndarray
    isolated: np.ndarray
    n_neighbors: int
    noise: np.ndarray
    noise_cluster: np.ndarray
    noise_share: np.ndarray
    noise_distance: np.ndarray
    noise_margin: np.ndarray

    @property
    def n_borderline(self) -> int:
        """How many objects have a relative margin below .1."""
        return int((self.relative_margins < BORDERLINE).sum())

    @property
    def n_isolated(self) -> int:
        """How many objects have nearest neighbours that back another cluster."""
        return int((self.better_cluster != self.labels).sum())

    @property
    def worst(self) -> np.ndarray:
        """Positions of the objects of either list, those of both lists first."""
        both = self.borderline[np.isin(self.borderline, self.isolated)]
        listed = [*both, *self.borderline, *self.isolated]
        return np.array(list(dict.fromkeys(int(p) for p in listed)), dtype=np.intp)

    def columns(self, positions: np.ndarray | None = None) -> dict[str, list[Any]]:
        """The table as named columns; the worst objects unless positions are given."""
        rows = self.worst
        if positions is not None:
            rows = check_positions("positions", positions, len(self.labels))
        return {
            "id": self.ids[rows].tolist(),
            "label": self.labels[rows].tolist(),
            "better_cluster": self.better_cluster[rows].tolist(),
            "margin": self.margins[rows].tolist(),
            "relative_margin": self.relative_margins[rows].tolist(),
            "rival": self.rivals[rows].tolist(),
            "lcd": self.disagreements[rows].tolist(),
            "n_witnesses": self.n_witnesses[rows].tolist(),
            "reason": [self.reason(int(row)) for row in rows],
        }

    def noise_columns(self) -> dict[str, list[Any]]:
        """The objects without a cluster as named columns, the surest first."""
        return {
            "id": self.ids[self.noise].tolist(),
            "cluster": self.noise_cluster.tolist(),
            "share": self.noise_share.tolist(),
            "distance": self.noise_distance.tolist(),
            "relative_margin": self.noise_margin.tolist(),
        }

    def assign_noise(self, least: float = 0.5) -> np.ndarray:
        """The labels with noise put into clusters where at least this share of neighbours agrees.

        Examples
        --------
        >>> import wellsep as ws
        >>> X, labels = [[0.0], [1.0], [2.0], [9.0], [10.0], [11.0], [5.4]], [0, 0, 0, 1, 1, 1, -1]
        >>> report = ws.membership_report(X, labels, n_neighbors=2)
        >>> report.assign_noise().tolist(), report.assign_noise(0.8).tolist()
        ([0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1, -1])
        """
        least = check_number("least", least, 0.0, 1.0)
        sure = self.noise_share >= least
        labels = self.labels.copy()
        labels[self.noise[sure]] = self.noise_cluster[sure]
        return labels

    def reason(self, position: int) -> str:
        """One object's case in a sentence."""
        check_count("position", position, -len(self.labels), len(self.labels) - 1)
        among = np.flatnonzero(self.noise == position % len(self.labels))
        if len(among):
            i = int(among[0])
            return (
                f"noise; {self.noise_share[i]:.0%} of its nearest neighbours are in "
                f"{self.noise_cluster[i]}"
            )
        label, rival = self.labels[position], self.rivals[position]
        better = self.better_cluster[position]
        parts = []
        if self.margins[position] < 0:
            parts.append(f"nearer to the prototype of {rival}")
        elif self.relative_margins[position] < BORDERLINE:
            parts.append(f"borderline with {rival}")
        if better != label:
            parts.append(f"its nearest neighbours back {better}")
        return ", ".join(parts) or "fits"

    def to_frame(self, *, every: bool = False) -> Any:
        """Return a pandas DataFrame of the worst objects, or of every object."""
        if not every:
            return super().to_frame()
        table = self.columns(np.arange(len(self.labels)))
        return need_pandas().DataFrame(table).set_index(self.row_names)

    def sentences(self) -> Iterator[str]:
        """Say how many objects fit badly, and which fits worst."""
        counted = len(self.labels) - len(self.noise)
        wrong = int((self.margins < 0).sum())
        yield (
            f"{self.n_isolated} of {counted} objects would suit another cluster better; "
            f"{wrong} lie nearer to another prototype; {self.n_borderline} are borderline."
        )
        if len(self.noise):
            all_in_one = int((self.noise_share == 1).sum())
            yield (
                f"{count(len(self.noise), 'object')} of {len(self.labels)} "
                f"{'is' if len(self.noise) == 1 else 'are'} noise; {all_in_one} of them "
                f"{'has' if all_in_one == 1 else 'have'} all of their "
                f"{self.n_neighbors} nearest neighbours in one cluster and could go there."
            )
        if len(self.borderline):
            first = self.borderline[0]
            yield f"Most borderline: {self.ids[first]} ({self.reason(int(first))})."
        if len(self.isolated):
            first = self.isolated[0]
            yield (
                f"Most isolated: {self.ids[first]}, LCD {self.disagreements[first]:.3g} of at "
                f"most {self.n_neighbors / 2:g}."
            )

    def _tables(self) -> tuple[dict[str, list[Any]], ...]:
        return (self.columns(), self.noise_columns())[: 1 + bool(len(self.noise))]


def membership_report(
    X: Any,
    labels: Any,
    *,
    centers: Any = None,
    n_neighbors: int = 5,
    ids: Any = None,
    n_worst: int = 20,
    noise: str = "exclude",
    n_jobs: int | None = None,
) -> MembershipReport:
    """Find the borderline and the isolated objects, and where they would fit better.

    The counterfactual margin min_l (‖x−μ_l‖² − ‖x−μ_j‖²) / (2‖μ_j−μ_l‖) is the distance that x of
    cluster j would have to move to become another's. An object is borderline where its margin is
    less than a tenth of that of its prototype. It is isolated where its nearest neighbours back
    another cluster than its own; such objects are listed by their local connectivity
    disagreement, see ``local_connectivity``. Clusters far apart have neither.

    Parameters
    ----------
    X : array-like of shape (n, d), Distances or MixedTable
        Objects.
    labels : array-like of shape (n,)
        Cluster of each object.
    centers : array-like of shape (K, d), or int of shape (K,), optional
        Prototypes of the clusters, in the order of the sorted labels; by default the means. Where
        X holds distances, positions of objects (``KMedoids.medoid_indices_``).
    n_neighbors : int
        Number of nearest neighbours to use.
    ids : array-like of shape (n,), optional
        Names of the objects; by default the names of ``Distances``, the index of a pandas frame,
        or 0, 1, ….
    n_worst : int
        Greatest length of either list; all are counted.
    noise : {"exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. Excluded objects are not judged; the report says
        to which cluster each could go.
    n_jobs : int, optional
        Threads of the neighbour searches.

    Returns
    -------
    MembershipReport
        A table by ``to_frame()`` or ``columns()``, ``explain()``, and all values per object.

    References
    ----------
    .. [1] Vardakas, Karra, Pitoura & Likas, Discovery Science 2025 (counterfactual distance).
    .. [2] Deepak P, "Local connectivity in centroid clustering", IDEAS 2020 (LCD).

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0], [1.0], [2.0], [5.8], [9.0], [10.0], [11.0]]
    >>> report = ws.membership_report(X, [0, 0, 0, 0, 1, 1, 1], n_worst=1, n_neighbors=2)
    >>> report.columns()["id"], report.columns()["reason"]
    ([3], ['borderline with 1'])
    >>> report.margins.round(2).tolist()
    [6.1, 5.1, 4.1, 0.3, 2.9, 3.9, 4.9]
    """
    if ids is None:
        ids = X.index if hasattr(X, "iloc") else getattr(X, "names", None)
    labels = in_order_of(X, labels)
    X = checked_objects(X)
    check_jobs(n_jobs)
    names = np.arange(len(X)) if ids is None else to_numpy(ids, "ids")
    if names.shape != (len(X),):
        got = len(names) if names.ndim == 1 else f"shape {names.shape}"
        raise ValueError(f"ids must have one entry per object ({len(X)}), got {got}.")
    n_worst = check_count("n_worst", n_worst)
    check_choice("noise", noise, VALUE_POLICIES)
    partition = encode(labels, n_objects=len(X), noise=noise)
    codes, classes = partition.codes[0], partition.classes[0]
    around, unit = open_around(X, classes, codes, centers)
    connectivity = measure(around, unit, partition, n_neighbors, n_jobs)
    better, counted = connectivity.better_cluster, codes >= 0
    margins, gaps, rivals = around.planes(np.arange(len(codes)), codes)
    relative = margins / (gaps / 2)
    labels = np.where(counted, classes[codes], -1) if not counted.all() else classes[codes]
    t = connectivity.n_neighbors
    free, free_codes, share, distance, margin = _place_noise(around, t, n_jobs)
    return MembershipReport(
        ids=names,
        labels=labels,
        margins=margins * unit,
        relative_margins=relative,
        rivals=np.where(np.isnan(margins), labels, classes[rivals]),
        disagreements=connectivity.objects,
        n_witnesses=connectivity.n_witnesses,
        better_cluster=better,
        borderline=_first(np.where(relative < BORDERLINE, relative, np.nan), n_worst),
        isolated=_first(np.where(better != labels, -connectivity.objects, np.nan), n_worst),
        n_neighbors=t,
        noise=free,
        noise_cluster=classes[free_codes],
        noise_share=share,
        noise_distance=distance * unit,
        noise_margin=margin,
    )


def _place_noise(around: Around, t: int, n_jobs: int | None) -> tuple[np.ndarray, ...]:
    """Objects without a cluster, the surest first: their clusters, share, distance and margin.

    The nearest neighbours that have a cluster are asked; of equal votes the nearest one decides.
    """
    codes = around.codes
    free, counted = np.flatnonzero(codes < 0), np.flatnonzero(codes >= 0)
    if not len(free):
        empty = np.empty(0)
        return free, free, empty, empty, empty
    t = min(t, len(counted))
    distances, neighbours = around.nearest(free, counted, t, n_jobs)
    best, chosen, votes = most_voted(codes[counted[neighbours]])
    rows, share = np.arange(len(free)), votes / t
    planes = around.planes(free, best)
    margin = planes.distances / (planes.gaps / 2)
    nearest = distances[rows, chosen]
    order = np.lexsort((nearest, -share))
    return free[order], best[order], share[order], nearest[order], margin[order]


def most_voted(voted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per object the code that most have in ``voted`` (n, t), the place of the first, its votes."""
    votes = (voted[:, :, None] == voted[:, None, :]).sum(axis=2)  # for the code of each
    places = votes.argmax(axis=1)
    rows = np.arange(len(voted))
    return voted[rows, places], places, votes[rows, places]


def _first(values: np.ndarray, count: int) -> np.ndarray:
    """Positions of the smallest values that are numbers; of equals the first in order."""
    order = np.argsort(values, kind="stable")
    return order[: min(count, int((~np.isnan(values)).sum()))]
