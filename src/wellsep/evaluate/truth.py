"""How well each way of ranking agrees with true labels. The only place where they enter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._checks.arrays import to_numpy
from wellsep._checks.labels import as_labels, merge_noise
from wellsep._checks.values import check_kind
from wellsep._files.records import Result, freeze
from wellsep.evaluate.problem import partitions_of
from wellsep.evaluate.ranking import Ranking
from wellsep.evaluate.ranks import TIE, rank_correlation, ranks_with_gaps
from wellsep.indices import ari_score, clustering_accuracy, nmi_score
from wellsep.partitions import Partitions, is_unknown, known_classes

# ARI comes first: it decides between judges, and unlike NMI it does not grow with K.
MEASURES = {"ari": ari_score, "nmi": nmi_score, "acc": clustering_accuracy}


@dataclass(frozen=True, eq=False)
class Agreement(Result):
    """Rankings compared with true classes.

    Attributes
    ----------
    partitions : tuple of str
    external : dict of "ari", "nmi" and "acc" to (M,) values of every partition
    correlations : dict of ranking name ("ace", "own_space", "mean_all" …) to a dict with
        ``spearman_ari``, ``kendall_ari`` and the same with ``nmi`` and ``acc``
    picks : dict of ranking name to the partitions it puts first
    scores : dict of ranking name to the (M,) scores that were compared
    n_objects, n_known : int
        How many objects there are, and of how many the class is known; only these are compared.
    """

    partitions: tuple[str, ...]
    external: Mapping[str, np.ndarray]
    correlations: Mapping[str, Mapping[str, float]]
    picks: Mapping[str, tuple[str, ...]]
    scores: Mapping[str, np.ndarray] = field(default_factory=dict)
    n_objects: int = 0
    n_known: int = 0

    @property
    def heading(self) -> str:
        """What the table shows, and for how many objects if the class of some is unknown."""
        some = f" (known for {self.n_known:,} of {self.n_objects:,} objects)"
        return "Agreement with the true labels" + some * (self.n_known < self.n_objects)

    def columns(self) -> dict[str, list[Any]]:
        """Return each way of ranking, its correlations, and the partition it ranks first."""
        names = list(self.correlations)
        columns: dict[str, list[Any]] = {"ranking": names}
        for key in self.correlations[names[0]]:
            columns[key] = [self.correlations[name][key] for name in names]
        columns["pick"] = [_few(self.picks[name]) for name in names]
        for measure in self.external:
            columns[f"{measure}_of_pick"] = [self._mean_of_picks(measure, name) for name in names]
        return columns

    def _mean_of_picks(self, measure: str, name: str) -> float:
        values = [self.external[measure][self.partitions.index(p)] for p in self.picks[name]]
        return float(np.mean(values)) if values else float("nan")

    def sentences(self) -> Iterator[str]:
        """Say which partition agrees best with the true labels, and which is ranked first."""
        ari, first = self.external["ari"], next(iter(self.picks))
        best = int(ari.argmax())
        yield (
            f"{self.partitions[best]!r} agrees best with the true labels (ARI {ari[best]:.2f}); "
            f"{first!r} ranks {_few(self.picks[first])} first "
            f"(ARI {self._mean_of_picks('ari', first):.2f})."
        )


def agreement(ranking: Ranking, runs: Any, truth: Any) -> Agreement:
    """Compare ACE and every baseline with the true classes.

    ARI, NMI and clustering accuracy of every partition are compared with the scores, by Spearman's
    r_s and Kendall's τ_b. NMI has the arithmetic mean, accuracy the best one-to-one match. Read ARI
    first: NMI favours many clusters. Besides the baselines there are two rules that see the number
    of clusters alone: "more_clusters" and "middle_k". Noise (-1) counts as one more cluster, so
    that leaving objects out is no advantage.

    Parameters
    ----------
    ranking : Ranking
        From :func:`wellsep.judge` or :func:`wellsep.evaluate.rank`.
    runs : Runs, or a mapping of partition names to label vectors
        The runs that were scored.
    truth : array-like of shape (n,)
        The class of each object. Objects without one (NaN, None, an empty text) are left out.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> import wellsep as ws
    >>> from wellsep.evaluate import rank
    >>> scores = ws.Scores.from_matrix([[0.9, 0.1], [0.8, 0.2]], partitions=["good", "bad"],
    ...                                paired=False)
    >>> labels = {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]}
    >>> found = ws.agreement(rank(ws.ace(scores, dip=False)), labels, [0, 0, 1, 1])
    >>> found.picks["ace"], found.external["ari"].round(2).tolist()
    (('good',), [1.0, -0.5])
    """
    check_kind("ranking", ranking, Ranking, "make one with rank or judge")
    partitions = partitions_of(runs)
    for name in ranking.names:
        if name not in partitions:
            raise ValueError(f"runs must have the clusterings that were ranked, got no {name!r}.")
    labels = {name: partitions[name] for name in ranking.names}
    others = {f"ace_by_{name}": scores for name, scores in ranking.by_other_index.items()}
    rankings = {ranking.judge: ranking.score, **ranking.baselines, **others}
    rankings |= trivial_rules(labels)
    return compare_with_truth(
        rankings, labels, truth, tolerance=ranking.result.options.tie_tolerance
    )


def trivial_rules(labels: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """(M,) scores by K alone: K itself, and minus its distance from the median."""
    clusters = Partitions.from_labels(dict(labels), noise="exclude").n_clusters.astype(float)
    rules = {"more_clusters": clusters, "middle_k": -np.abs(clusters - np.median(clusters))}
    return {name: scores for name, scores in rules.items() if np.ptp(scores) > 0}


def compare_with_truth(
    rankings: Mapping[str, np.ndarray],
    partitions: Mapping[str, Any],
    truth: Any,
    *,
    tolerance: float = TIE,
) -> Agreement:
    """Compare any scores of some partitions, larger is better, with the true classes.

    A partition without a score (NaN) is left out of that ranking's correlations and picks, an
    object without a class of all.
    """
    names = tuple(partitions)
    n = len(to_numpy(truth, "truth").reshape(-1))
    for name, labels in partitions.items():
        if len(labels) != n:
            raise ValueError(
                f"truth must have one class per object ({len(labels)} in {name!r}), got {n}."
            )
    classes, known = known_classes(truth)
    # Noise is one more cluster.
    merged = [merge_noise(as_labels(partitions[name], name))[known] for name in names]
    external = {
        measure: freeze([float(function(classes, labels)) for labels in merged])
        for measure, function in MEASURES.items()
    }
    correlations = {
        name: {
            f"{kind}_{measure}": rank_correlation(kind, scores, truth_scores)
            for measure, truth_scores in external.items()
            for kind in ("spearman", "kendall")
        }
        for name, scores in rankings.items()
    }
    picks = {}
    for name, scores in rankings.items():
        finite = np.where(np.isfinite(scores), scores, np.nan)
        first = (ranks_with_gaps(finite, tolerance) == 1) & np.isfinite(scores)
        picks[name] = tuple(names[i] for i in np.flatnonzero(first))
    return Agreement(
        names,
        external,
        correlations,
        picks,
        scores={name: freeze(scores) for name, scores in rankings.items()},
        n_objects=len(known),
        n_known=int(known.sum()),
    )


def shown_classes(truth: Any) -> np.ndarray:
    """The classes as given; those that are not known are called unknown."""
    values = to_numpy(truth, "truth").reshape(-1)
    unknown = is_unknown(values)
    if not unknown.any():
        return values
    known_classes(truth)  # refuses what holds no classes
    form = "{:g}" if values.dtype.kind == "f" else "{}"
    classes = np.full(len(values), "unknown", dtype=object)
    classes[~unknown] = [form.format(value) for value in values[~unknown].tolist()]
    return classes.astype(np.str_)


def _few(names: tuple[str, ...]) -> str:
    """Tied picks in a row, cut after three; `picks` has them all."""
    shown = ", ".join(names[:3]) or "–"
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
