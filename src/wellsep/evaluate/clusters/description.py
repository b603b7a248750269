"""ClusterDescription: what is in each cluster, as tables and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellsep._checks.arrays import check_choice, check_count
from wellsep._files.records import Result
from wellsep._text.sentences import count, listing, need_pandas, printable, rows_of

RULE_FROM = 0.6  # F1 below which no rule is told
LARGE = 0.8  # a standardised difference from here on is called high or low
LARGE_SHARE = 0.2  # the same of a difference of shares
_MOST_TOLD = 10  # clusters that get a sentence
_MOST_FEATURES = 3  # named in a sentence


@dataclass(frozen=True, eq=False)
class ClusterDescription(Result, row_names="cluster"):
    """What `describe_clusters` found; K clusters, F features, n objects.

    Attributes
    ----------
    clusters : tuple of str
        Label of each cluster.
    n_objects : int
        All objects, noise included.
    sizes : ndarray of shape (K,)
    silhouette, negative : ndarray of shape (K,)
        Mean silhouette width, and share of the objects whose width is negative.
    dbcv, cfq : ndarray of shape (K,)
        The part of each cluster in these indices.
    stability : ndarray of shape (K,)
        Mean Jaccard similarity over samples; NaN where no record of stability was given.
    dissolved, n_draws : ndarray of shape (K,), int
        In how many samples the cluster dissolved, and of how many.
    nearest : ndarray of shape (K,), int
        Position of the cluster whose mean is nearest, -1 where there is none.
    gap : ndarray of shape (K,)
        Distance of the two means.
    margin : ndarray of shape (K,)
        Median distance of the objects to the nearest plane between means.
    borderline : ndarray of shape (K,), int
        Objects whose margin is below a tenth of half the distance of the two means.
    features : tuple of str
    shares : ndarray of shape (F,), bool
        Which features are shares of a category and not numbers.
    inside, outside : ndarray of shape (K, F)
        Mean or share of each feature in the cluster, and in all other clusters.
    difference : ndarray of shape (K, F)
        Their difference over the pooled standard deviation; of shares the plain difference.
    auc : ndarray of shape (K, F)
        Share of pairs (one object inside, one outside) in which the inside value is larger.
    rules : tuple of str
        A short rule for each cluster; empty where there is none.
    precision, recall : ndarray of shape (K,)
        Of rules made in the same way, on objects that they were not made from.
    medoid : ndarray of shape (K,), int
        Position of the object with the smallest summed distance to its cluster.
    typical, doubtful : ndarray of shape (K, E), int
        Positions of the objects with the largest silhouette widths, and of those with the smallest
        relative margins; -1 where a cluster has fewer.
    ids : ndarray of shape (n,)
        Names of the objects.
    notes : tuple of str
        What was left out and why.
    lcd : ndarray of shape (K,) or None
        Highest local connectivity disagreement of each cluster, in a judgement.
    """

    clusters: tuple[str, ...]
    n_objects: int
    sizes: np.ndarray
    silhouette: np.ndarray
    negative: np.ndarray
    dbcv: np.ndarray
    cfq: np.ndarray
    stability: np.ndarray
    dissolved: np.ndarray
    n_draws: np.ndarray
    nearest: np.ndarray
    gap: np.ndarray
    margin: np.ndarray
    borderline: np.ndarray
    features: tuple[str, ...]
    shares: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    difference: np.ndarray
    auc: np.ndarray
    rules: tuple[str, ...]
    precision: np.ndarray
    recall: np.ndarray
    medoid: np.ndarray
    typical: np.ndarray
    doubtful: np.ndarray
    ids: np.ndarray
    notes: tuple[str, ...] = ()
    lcd: np.ndarray | None = None

    @property
    def share(self) -> np.ndarray:
        """(K,) share of all objects."""
        return self.sizes / self.n_objects

    @property
    def n_noise(self) -> int:
        """Objects without a cluster."""
        return self.n_objects - int(self.sizes.sum())

    @property
    def f1(self) -> np.ndarray:
        """(K,) harmonic mean of the rules' precision and recall."""
        total = self.precision + self.recall
        both = 2 * self.precision * self.recall
        return np.divide(both, total, out=np.zeros(len(total)), where=total > 0)

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as named columns, a row per cluster."""
        names = [*self.clusters, None]  # the last: none
        table: dict[str, list[Any]] = {"cluster": list(self.clusters), "size": self.sizes.tolist()}
        table |= self._numbers("share", "silhouette", "negative", "dbcv", "cfq")
        if self.n_draws.any():
            draws = zip(self.dissolved, self.n_draws, strict=True)
            table |= self._numbers("stability")
            table["dissolved"] = [f"{gone} of {drawn}" for gone, drawn in draws]
        table["nearest"] = [names[at] for at in self.nearest]
        table |= self._numbers("gap", "margin", "borderline")
        table["rule"] = list(self.rules)
        table |= self._numbers("precision", "recall")
        for name in ("medoid", "typical", "doubtful"):
            first = getattr(self, name).reshape(len(self.clusters), -1)[:, 0]
            table[name] = self.names_of(first)
        return table

    def _numbers(self, *names: str) -> dict[str, list[Any]]:
        return {name: getattr(self, name).tolist() for name in names}

    def names_of(self, positions: np.ndarray) -> list[Any]:
        """Names of the objects at some positions; None for -1."""
        names = self.ids.tolist()
        return [names[at] if at >= 0 else None for at in positions]

    def to_dict(self, n_features: int = 5) -> dict[str, Any]:
        """Return the clusters with their features and examples, as ``--json`` prints them."""
        rows = self.to_rows()
        for k, row in enumerate(rows):
            features = self.feature_columns(self.clusters[k], n_features)
            features.pop("cluster")
            row["features"] = rows_of(features)
            for name in ("typical", "doubtful"):
                examples = self.names_of(getattr(self, name)[k])
                row[name] = [example for example in examples if example is not None]
        return {
            "n_objects": self.n_objects,
            "n_noise": self.n_noise,
            "clusters": rows,
            "notes": list(self.notes),
        }

    def feature_columns(self, cluster: str | None = None, most: int = 5) -> dict[str, list[Any]]:
        """The features that differ most as named columns, a row per cluster and feature.

        Parameters
        ----------
        cluster : str, optional
            Only this one.
        most : int
            Features per cluster, from the largest difference.
        """
        check_count("most", most)
        if cluster is not None:
            check_choice("cluster", cluster, self.clusters)
        chosen = [k for k, name in enumerate(self.clusters) if cluster in (None, name)]
        rows = [(k, f) for k in chosen for f in self.order(k)[:most]]
        table: dict[str, list[Any]] = {
            "cluster": [self.clusters[k] for k, _ in rows],
            "feature": [self.features[f] for _, f in rows],
        }
        for name in ("inside", "outside", "difference", "auc"):
            table[name] = [float(getattr(self, name)[row]) for row in rows]
        return table

    def feature_frame(self, cluster: str | None = None, most: int = 5) -> Any:
        """`feature_columns` as a pandas DataFrame."""
        return need_pandas().DataFrame(self.feature_columns(cluster, most))

    def order(self, k: int) -> list[int]:
        """Features of the cluster at position k, from the one that differs most.

        By how far the share of pairs (`auc`) lies from a half, then by the difference: shares and
        numbers can be compared by it.
        """
        if np.isnan(self.difference[k]).all():
            return []
        apart = np.nan_to_num(np.abs(self.auc[k] - 0.5))
        size = np.nan_to_num(np.abs(self.difference[k]))
        mixed = self.shares.any()
        return np.lexsort((-size, -apart) if mixed else (-apart, -size)).tolist()

    def sentences(self) -> Iterator[str]:
        """Say what makes each cluster, and how far to trust it."""
        order = np.argsort(-self.sizes, kind="stable")
        text = f"{count(len(self.clusters), 'cluster')} of {count(self.n_objects, 'object')}."
        if self.n_noise:
            noisy = count(self.n_noise, "object is noise", "objects are noise")
            text += f" {noisy} and in no cluster."
        yield text
        yield from (self.sentence(int(k)) for k in order[:_MOST_TOLD])
        if len(order) > _MOST_TOLD:
            yield f"{count(len(order) - _MOST_TOLD, 'smaller cluster')} more."
        yield from self.notes

    def sentence(self, k: int) -> str:
        """What is in the cluster at position k."""
        name = printable(self.clusters[k])
        size = count(int(self.sizes[k]), "object")
        parts = [f"Cluster {name} ({size}, {self.share[k]:.0%})"]
        features = self.in_words(k)
        parts[0] += f": {listing(features)}." if features else ": no feature stands out."
        parts.append(self._rule_in_words(k))
        if self.n_draws[k]:
            parts.append(
                f"Found again with a mean Jaccard similarity of {self.stability[k]:.2f}; dissolved "
                f"in {self.dissolved[k]} of {self.n_draws[k]} samples."
            )
        if self.nearest[k] >= 0:
            parts.append(f"Nearest: cluster {printable(self.clusters[self.nearest[k]])}.")
        if self.negative[k] > 0:
            parts.append(f"{self.negative[k]:.0%} of its silhouette widths are negative.")
        return " ".join(part for part in parts if part)

    def in_words(self, k: int) -> list[str]:
        """The features that stand out in the cluster at position k, three at most."""
        found = [self._in_words(k, f) for f in self.order(k)[:_MOST_FEATURES]]
        return [text for text in found if text]

    def _in_words(self, k: int, f: int) -> str:
        name, size = printable(self.features[f]), self.difference[k, f]
        if abs(size) < (LARGE_SHARE if self.shares[f] else LARGE):
            return ""
        inside, outside = self.inside[k, f], self.outside[k, f]
        if self.shares[f]:
            often = "often" if size > 0 else "seldom"
            return f"{often} {name} ({abs(inside):.0%} against {abs(outside):.0%})"
        return f"{'high' if size > 0 else 'low'} {name} ({inside:.4g} against {outside:.4g})"

    def _rule_in_words(self, k: int) -> str:
        if not self.rules[k] or self.f1[k] < RULE_FROM:
            return "No short rule describes this cluster."
        return (
            f"Rule: {printable(self.rules[k])}. Cross-validated: recall {self.recall[k]:.0%}, "
            f"precision {self.precision[k]:.0%}."
        )

    def _tables(self) -> tuple[dict[str, list[Any]], ...]:
        return self.columns(), self.feature_columns()
