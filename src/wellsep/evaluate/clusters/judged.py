"""The clusters of all ranked runs: their support, what is known of the best, codes of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._files.records import Record, Result, freeze
from wellsep._text.sentences import listing
from wellsep.evaluate.answer import Answer
from wellsep.evaluate.clusters.agreed import overlaps
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.support import cluster_support, load_curve, object_support
from wellsep.partitions import Partitions

BEST = 5  # runs whose clusters are compared with those of the contenders
MOST = 1.5e9  # runs × better runs × objects that support is counted on
FEWEST = 5  # distinct clusterings from which on a share of classes is told
MOST_BYTES = 50_000_000  # of the codes that are kept
MOST_DRAWN = 2000  # objects whose codes are kept, where none are drawn already

Partner = tuple[str, tuple[str, ...], tuple[str, ...]]  # run, its clusters, clusters merged there


@dataclass(frozen=True, eq=False)
class JudgedClusters(Result):
    """The R clusters of the distinct runs, best run first.

    Attributes
    ----------
    runs : tuple of str
        The distinct runs, best first.
    run : ndarray of shape (R,)
        Position of each cluster's run.
    clusters : tuple of str
        Labels.
    sizes : ndarray of shape (R,)
    support : ndarray of shape (R,)
        Mean over the better half of the other runs of the best Jaccard similarity with one of
        their clusters; NaN where there is no other run.
    class_share : ndarray of shape (R,)
        Share of clusters with such support that matched a known class on labelled data sets; NaN
        where that cannot be told.
    n_sets : int
        Number of these data sets; 0 where nothing is told.
    object_support : ndarray of shape (n,)
        Of each object, the share of the better runs in which it stays with the match of its
        cluster in the best run; NaN for noise.
    partners : tuple of tuples
        For each cluster of the five best runs and each contender that has no such cluster: the
        contender, its clusters that overlap, and the other clusters of this run that they hold.
    descriptions : dict of run to ClusterDescription
        What is in the clusters of the best runs, five at most, without rules.
    notes : sentences
    """

    runs: tuple[str, ...]
    run: np.ndarray
    clusters: tuple[str, ...]
    sizes: np.ndarray
    support: np.ndarray
    class_share: np.ndarray
    n_sets: int
    object_support: np.ndarray
    partners: tuple[tuple[Partner, ...], ...] = ()
    descriptions: Mapping[str, ClusterDescription] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, run: str) -> np.ndarray:
        """Positions of the clusters of one run."""
        return np.flatnonzero(self.run == self.runs.index(run))

    @property
    def best_support(self) -> dict[str, float]:
        """Support of the clusters of the best run; empty where it was not counted."""
        rows = self.of(self.runs[0])
        counted = not np.isnan(self.support).all()
        return {self.clusters[row]: float(self.support[row]) for row in rows if counted}

    def of_descriptions(self, attribute: str) -> list[float]:
        """One number of the described clusters, such as "silhouette" or "lcd"; NaN of others."""
        values = np.full(len(self.run), np.nan)
        for name, described in self.descriptions.items():
            numbers = getattr(described, attribute)
            if numbers is not None:
                of = dict(zip(described.clusters, numbers, strict=True))
                rows = self.of(name)
                values[rows] = [of.get(self.clusters[row], np.nan) for row in rows]
        return values.tolist()

    def columns(self) -> dict[str, list[Any]]:
        """Return all clusters as named columns, those of the best run first."""
        columns: dict[str, list[Any]] = {
            "run": [self.runs[r] for r in self.run],
            "cluster": list(self.clusters),
            "size": self.sizes.tolist(),
            "support": self.support.tolist(),
            "class_share": self.class_share.tolist(),
        }
        if self.descriptions:
            columns["width"] = self.of_descriptions("silhouette")
            columns["lcd"] = self.of_descriptions("lcd")
        if any(self.partners):
            told = ["; ".join(map(_partner_text, partners)) for partners in self.partners]
            columns["in_contenders"] = told + [""] * (len(self.run) - len(told))
        return columns

    def sentences(self) -> Iterator[str]:
        """Say which clusters of the best run have most support, and what that is worth."""
        rows = self.of(self.runs[0])
        if np.isnan(self.support[rows]).all():
            yield "There is no other run, so no cluster has support."
            return
        rows = rows[np.argsort(-self.support[rows], kind="stable")]
        named = [f"{self.clusters[row]} ({self.support[row]:.2f})" for row in rows]
        yield f"Support of the clusters of {self.runs[0]!r}: {listing(named, most=20)}."
        yield from self.share_sentences()
        yield from self.notes

    def share_sentences(self) -> Iterator[str]:
        """Say how often clusters like the best supported one were a class."""
        rows = self.of(self.runs[0])
        if self.n_sets and len(rows):
            top = rows[int(np.argmax(self.support[rows]))]
            yield (
                f"Clusters with support like that of {self.clusters[top]} "
                f"({self.support[top]:.2f}) matched a known class in "
                f"{100 * self.class_share[top]:.0f} of 100 cases on {self.n_sets} labelled data "
                "sets. A batch or another nuisance that many runs show has support too."
            )


def _partner_text(partner: Partner) -> str:
    run, theirs, merged = partner
    if not theirs:
        return f"{run!r}: noise"
    split = f"split into {listing(theirs)}" if len(theirs) > 1 else ""
    joined = f"merged with {listing(merged)} into {theirs[0]}" if merged else ""
    if split and merged:
        joined = f"with parts of {listing(merged)}"
    return f"{run!r}: {', '.join(filter(None, (split, joined)))}"


def judge_clusters(
    clusters: Partitions,
    answer: Answer,
    agreement_weights: np.ndarray,
    contenders: Sequence[int],
    one_embedding: bool | None,
    *,
    n_jobs: int | None = None,
) -> JudgedClusters:
    """Compute the support of every cluster of the D distinct partitions, which ``answer`` ranks.

    Noise is in none of the ``clusters``. ``contenders`` are positions among the distinct ones.
    ``one_embedding`` says whether all come from one; None where that is not known.
    """
    codes, labels = clusters.codes, [tuple(map(str, known)) for known in clusters.classes]
    first = answer.first_of_each
    order = answer.classes.of[first]
    rank = answer.rank[answer.classes.first]
    notes: tuple[str, ...] = ()
    counted = codes
    most = max(1000, int(MOST / max(1, len(codes) * min(len(codes) / 2, 200))))
    if codes.shape[1] > most:
        counted = codes[:, np.linspace(0, codes.shape[1] - 1, most).round().astype(np.intp)]
        notes = (f"Support was counted on {most:,} of {codes.shape[1]:,} objects.",)
    supports = cluster_support(counted, rank, agreement_weights, n_jobs=n_jobs)
    # NaN for clusters that have no object among the counted ones.
    gaps = [(0, len(labels[d]) - len(supports[d])) for d in range(len(labels))]
    support = np.concatenate([np.pad(supports[d], gaps[d], constant_values=np.nan) for d in order])
    told = one_embedding is not None and len(order) >= FEWEST
    curve = load_curve(one_embedding=bool(one_embedding))
    share = curve.class_share(support) if told else np.full(len(support), np.nan)
    names = tuple(answer.partitions[m] for m in first)
    return JudgedClusters(
        runs=names,
        run=freeze(np.repeat(np.arange(len(order)), [len(labels[d]) for d in order])),
        clusters=tuple(label for d in order for label in labels[d]),
        sizes=freeze(np.concatenate([clusters.sizes[d] for d in order])),
        support=freeze(support),
        class_share=freeze(share),
        n_sets=curve.sets if told else 0,
        object_support=freeze(object_support(codes, rank, agreement_weights, int(order[0]))),
        partners=_partners(codes, labels, order, [d for d in order if d in contenders], names),
        notes=notes,
    )


def _partners(
    codes: np.ndarray,
    labels: list[tuple[str, ...]],
    order: np.ndarray,
    contenders: list[int],
    names: tuple[str, ...],
) -> tuple[tuple[Partner, ...], ...]:
    """For each cluster of the best runs the contenders that have no such cluster."""
    name_of = dict(zip(order.tolist(), names, strict=True))
    partners: list[tuple[Partner, ...]] = []
    for d in order[:BEST].tolist():
        of_run: list[list[Partner]] = [[] for _ in labels[d]]
        for other in contenders:
            if other == d:
                continue
            links = overlaps(codes[d], codes[other])
            for c, linked in links.items():
                merged = [m for m, held in links.items() if m != c and set(held) & set(linked)]
                if len(linked) != 1 or merged:
                    theirs = tuple(labels[other][g] for g in linked)
                    with_these = tuple(labels[d][m] for m in merged)
                    of_run[c].append((name_of[other], theirs, with_these))
        partners += [tuple(one) for one in of_run]
    return tuple(partners)


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
        cls, clusters: Partitions, objects: np.ndarray, contenders: Sequence[int]
    ) -> KeptCodes | None:
        """Take the codes of distinct partitions without noise; None if they exceed 50 MB."""
        n_clusters = clusters.n_clusters
        kind = np.min_scalar_type(-1 - int(n_clusters.max()))
        cells = len(clusters) * len(objects) + len(contenders) * clusters.n_objects
        labels = np.array([str(v) for known in clusters.classes for v in known], dtype=str)
        if cells * kind.itemsize + labels.nbytes + 8 * len(labels) > MOST_BYTES:
            return None
        return cls(
            freeze(objects),
            drawn=freeze(clusters.codes[:, objects], kind),
            contenders=freeze(contenders, np.intp),
            whole=freeze(clusters.codes[list(contenders)], kind),
            n_clusters=freeze(n_clusters, np.intp),
            labels=freeze(labels),
            sizes=freeze(np.concatenate(clusters.sizes), np.intp),
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
        return self.sizes[self._of(m)]

    def whole_of(self, m: int) -> np.ndarray | None:
        """(n,) the cluster of each object in a distinct partition; None if it is no contender."""
        place = np.flatnonzero(self.contenders == m)
        return self.whole[int(place[0])] if len(place) else None
