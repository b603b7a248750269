"""ConsensusPartition: one partition made from many runs, as a frozen record, and its sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wellsep._checks.labels import NOISE
from wellsep._checks.values import check_kind
from wellsep._files.records import Result
from wellsep._text.sentences import count
from wellsep.partitions import Classes
from wellsep.runs import Run, Runs
from wellsep.runs.folder_names import best_first

_NAME = "consensus"  # of the run that it becomes


@dataclass(frozen=True, eq=False)
class ConsensusPartition(Result):
    """One partition made from many runs by how often they put two objects together.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Clusters 0, 1 … from the largest to the smallest; -1: most votes call the object noise.
    classes : Classes
        The M runs it was made from (``partitions``), and which of the D distinct ones each is.
    agreement : ndarray of shape (M,)
        Adjusted Rand index with each run; noise counts as one cluster.
    weights : ndarray of shape (D,)
        What the vote of each distinct partition weighs; they add up to 1.
    run_clusters : ndarray of shape (M,)
        Number of clusters of each run, without noise.
    tried : dict of int to float
        Numbers of clusters that were compared, and the mean agreement with the runs at each.
    linkage : {"average", "single"}
    noise : {"cluster", "singletons"}
        What the label -1 of a run counts as.
    n_profiles : int
        Groups of objects that no run tells apart, without objects that are noise.
    n_compared : int
        Those that were compared with each other; fewer than `n_profiles` if a sample was drawn.
    """

    labels: np.ndarray
    classes: Classes
    agreement: np.ndarray
    weights: np.ndarray
    run_clusters: np.ndarray
    tried: Mapping[int, float]
    linkage: str
    noise: str
    n_profiles: int
    n_compared: int

    @property
    def partitions(self) -> tuple[str, ...]:
        """The runs it was made from."""
        return self.classes.names

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, noise left out."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> np.ndarray:
        """(K,) objects of each cluster."""
        return np.bincount(self.labels[self.labels != NOISE])

    @property
    def is_sampled(self) -> bool:
        """Whether a sample was clustered and the other objects joined the nearest cluster."""
        return self.n_compared < self.n_profiles

    @property
    def mean_agreement(self) -> float:
        """Mean agreement with the distinct runs, weighted by their votes."""
        return float(np.dot(self.weights, self.agreement[self.classes.first]))

    def added_to(self, runs: Runs) -> Runs:
        """The runs, and this partition as one more that is called "consensus".

        Examples
        --------
        >>> import wellsep as ws
        >>> runs = ws.Runs.from_parts(partitions={"a": [0, 0, 1, 1], "b": [0, 0, 0, 1]})
        >>> ws.consensus_partition(runs).added_to(runs).names
        ('a', 'b', 'consensus')
        """
        check_kind("runs", runs, Runs, "load a folder with load_runs")
        if _NAME in runs.names:
            raise ValueError(
                f"runs must not hold a run called {_NAME!r} where one is made, got one; rename it."
            )
        how = {"made_by": "wellsep.consensus_partition", "linkage": self.linkage}
        made = Run(_NAME, labels=self.labels, params=how | {"n_clusters": self.n_clusters})
        return replace(runs, runs=(*runs, made))

    @property
    def order(self) -> np.ndarray:
        """Positions of the runs, the one that agrees best first; ties by name."""
        return best_first(-self.agreement, self.partitions)

    def columns(self) -> dict[str, list[Any]]:
        """Return agreement, weight and number of clusters of each run, the closest first."""
        order = self.order
        return {
            "partition": [self.partitions[m] for m in order],
            "agreement": self.agreement[order].tolist(),
            "weight": self.weights[self.classes.of][order].tolist(),
            "clusters": self.run_clusters[order].tolist(),
        }

    def sentences(self) -> Iterator[str]:
        """Say how the partition was made and what it cannot show."""
        return (" ".join(step) for step in (_made(self), _chosen(self), _limits(self)))


def _made(found: ConsensusPartition) -> Iterator[str]:
    n_distinct = len(found.weights)
    alike = "the same" if np.ptp(found.weights) < 1e-12 else "differently"
    yield (
        f"{count(found.n_clusters, 'cluster')} of {count(found.n_objects, 'object')} were made "
        f"from {count(len(found.partitions), 'run')} ({count(n_distinct, 'different partition')}, "
        f"weighted {alike}) by how often they put two objects together ({found.linkage} linkage)."
    )
    n_noise = int((found.labels == NOISE).sum())
    if n_noise:
        yield f"{count(n_noise, 'object')} are noise (-1): most votes call them so."
    groups = "groups of objects that no run tells apart"
    if found.is_sampled:
        yield (
            f"There are {found.n_profiles:,} {groups}. A sample with {found.n_compared:,} of them "
            "was clustered; every other object joined the cluster that it is together with most."
        )
    else:
        yield f"All {found.n_profiles:,} {groups} were compared."


def _chosen(found: ConsensusPartition) -> Iterator[str]:
    if len(found.tried) > 1:
        listed = ", ".join(f"{k}: {value:.3f}" for k, value in found.tried.items())
        yield f"Mean agreement (ARI) with the runs by number of clusters: {listed}."
    else:
        yield f"Mean agreement (ARI) with the runs: {found.mean_agreement:.3f}."
    best, worst = found.order[[0, -1]]
    yield (
        f"The closest run is {found.partitions[best]!r} ({found.agreement[best]:.3f}), the "
        f"farthest {found.partitions[worst]!r} ({found.agreement[worst]:.3f})."
    )


def _limits(found: ConsensusPartition) -> Iterator[str]:
    yield (
        "It is made to agree with the runs, so agreement with them is no proof of quality: a "
        "mistake that most runs share is in it too."
    )
