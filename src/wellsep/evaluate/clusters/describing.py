"""What is in a cluster: its size, how good it is, the features that make it, objects to look at."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_count, check_data, to_numpy
from wellsep._checks.labels import as_vector, in_order_of
from wellsep._files.records import freeze
from wellsep._text.sentences import count, shown
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.data.opening import open_space
from wellsep.compute.requests import Task
from wellsep.compute.statistics.distance_sums import own_sums
from wellsep.distances.base import PairSpace
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.features import Columns, compare, read_columns
from wellsep.evaluate.clusters.objects import object_details
from wellsep.evaluate.clusters.rules import MOST_OBJECTS, Rule, find_rule, in_words
from wellsep.indices import cfq_clusters, dbcv_clusters
from wellsep.indices.centroid import BORDERLINE
from wellsep.partitions import VALUE_POLICIES, Partitions, encode
from wellsep.spaces.classical_scaling import has_columns

MOST_FOR_DBCV = 20_000  # objects
MOST_NEGATIVE = 0.2  # share of negative silhouette widths from which X may be the wrong columns
OTHER_COLUMNS = (
    "Silhouettes are computed in the columns of X. If the clusters were made in other columns "
    "(scaled, logarithms, an embedding), pass those as X and these as features."
)


def describe_clusters(
    X: Any,
    labels: Any,
    feature_names: Any = None,
    *,
    stability: Any = None,
    features: Any = None,
    ids: Any = None,
    n_exemplars: int = 3,
    noise: str = "exclude",
) -> ClusterDescription:
    """Describe every cluster: size, quality, nearest cluster, features that differ, examples.

    There are no p-values: clusters were made from the same data, so that every feature differs
    "significantly". Effect sizes are given instead, and rules are scored on objects that they were
    not made from.

    Parameters
    ----------
    X : array-like or frame of shape (n, d), MixedTable, or Distances with ``features``
        The objects as they were clustered: silhouettes, margins and examples are those of X.
    labels : array-like of shape (n,)
        Cluster of each object.
    feature_names : sequence of str, optional
        Names of the columns; by default those of a frame.
    stability : Stability, optional
        What ``wellsep.stability`` found for these labels.
    features : array-like or frame of shape (n, F), optional
        Other columns to describe the clusters by, such as the unscaled ones; by default X. Texts,
        categories and true/false become shares. Missing numbers count as the mean of their column.
    ids : array-like of shape (n,), optional
        Names of the objects; by default the index of a pandas frame, or 0, 1, ….
    n_exemplars : int, default 3
        How many typical and how many doubtful objects are named for each cluster.
    noise : {"exclude", "cluster", "singletons", "error"}
        What noise (the labels -1, -2, -3) means. Excluded objects are counted and in no cluster;
        they are neither inside nor outside.

    Returns
    -------
    ClusterDescription
        A table by ``to_frame()``, its features by ``feature_frame()``, sentences by ``explain()``.

    Notes
    -----
    The difference of a feature is (mean inside − mean outside) / s, with s² the pooled variance
    of both groups; 0.8 is called large. A rule is the path to one leaf of a decision tree of depth
    2, the cluster against the rest. It is made from all objects. For its precision and recall
    the objects are cut into fifths: a rule made from four of them judges the fifth.

    DBCV's parts are no verdict in more than a few dimensions.

    Examples
    --------
    >>> import wellsep as ws
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris()
    >>> found = ws.describe_clusters(iris.data, iris.target, iris.feature_names)
    >>> found.sizes.tolist(), found.rules[0]
    ([50, 50, 50], 'petal width (cm) <= 0.8')
    >>> found.precision.round(2).tolist()[0], found.recall.round(2).tolist()[0]
    (1.0, 1.0)
    """
    if ids is None:
        ids = X.index if hasattr(X, "iloc") else getattr(X, "names", None)
    table = X if features is None else features
    if isinstance(X, MixedTable) or (isinstance(X, PairSpace) and features is not None):
        data: Any = X
    else:
        data = to_numpy(check_data(X, minimum=2)).astype(np.float64, copy=False)
    n = len(data)
    check_count("n_exemplars", n_exemplars)
    check_choice("noise", noise, VALUE_POLICIES)
    partition = encode(in_order_of(X, labels), n_objects=n, noise=noise)
    if len(partition.classes[0]) == 0:
        raise UndefinedIndex(
            f"labels must have at least one cluster, got noise (-1) for all {n} objects."
        )
    columns = read_columns(table, feature_names, n, "X" if features is None else "features")
    found = describe_partition(
        data,
        partition,
        columns,
        ids=_ids(ids, n),
        stability=stability,
        n_exemplars=n_exemplars,
    )
    inside = found.sizes / found.sizes.sum()
    if features is not None or not (inside @ found.negative > MOST_NEGATIVE):
        return found
    return replace(found, notes=(*found.notes, OTHER_COLUMNS))


def describe_partition(
    X: Any,
    partition: Partitions,
    columns: Columns,
    *,
    ids: np.ndarray,
    stability: Any = None,
    n_exemplars: int = 3,
    thorough: bool = True,
) -> ClusterDescription:
    """Describe one partition of a space by some columns; rules and DBCV only if ``thorough``."""
    codes, k = partition.codes[0], len(partition.classes[0])
    clusters = tuple(str(label) for label in partition.classes[0])
    notes = list(columns.notes)
    quality = _quality(X, partition, notes, thorough)
    apart = compare(columns, codes, k)
    again = found_again(stability, partition, clusters)
    counted = codes >= 0
    rules: list[Rule | None] = [None] * k
    if thorough:
        rules = [find_rule(columns.values[counted], codes[counted] == code) for code in range(k)]
        if counted.sum() > MOST_OBJECTS:
            notes.append(f"Rules are made from {count(MOST_OBJECTS, 'object')} drawn at random.")
    if k == 1:
        notes.append("There is one cluster: nothing lies outside it to compare it with.")
    sizes = np.bincount(codes[counted], minlength=k)
    negative = np.where(np.isnan(quality.widths), np.nan, quality.widths < 0)
    examples = _exemplars(X, partition, quality, n_exemplars)
    return ClusterDescription(
        clusters=clusters,
        n_objects=partition.n_objects,
        sizes=freeze(sizes),
        silhouette=freeze(_means(quality.widths, codes, k)),
        negative=freeze(_means(negative, codes, k)),
        dbcv=freeze(quality.dbcv),
        cfq=freeze(quality.cfq),
        **again,
        nearest=freeze(quality.nearest),
        gap=freeze(quality.gap),
        margin=freeze(
            [
                float(np.median(margins)) if len(margins) else np.nan
                for margins in (quality.margins[codes == code] for code in range(k))
            ]
        ),
        borderline=freeze(
            [int((quality.relative[codes == code] < BORDERLINE).sum()) for code in range(k)]
        ),
        features=columns.names,
        shares=freeze(columns.shares),
        inside=freeze(apart.inside),
        outside=freeze(apart.outside),
        difference=freeze(apart.difference),
        auc=freeze(apart.auc),
        rules=tuple(
            "" if rule is None else in_words(rule.conditions, columns.names, columns.shares)
            for rule in rules
        ),
        precision=freeze([np.nan if rule is None else rule.precision for rule in rules]),
        recall=freeze([np.nan if rule is None else rule.recall for rule in rules]),
        **examples,
        ids=freeze(ids),
        notes=tuple(notes),
    )


class _Quality(NamedTuple):
    widths: np.ndarray  # (n,)
    margins: np.ndarray  # (n,)
    relative: np.ndarray  # (n,) margin over half the distance of the two means; else the width
    dbcv: np.ndarray  # (K,)
    cfq: np.ndarray  # (K,)
    nearest: np.ndarray  # (K,)
    gap: np.ndarray  # (K,)


def _quality(X: Any, partition: Partitions, notes: list[str], thorough: bool) -> _Quality:
    codes, k = partition.codes[0], len(partition.classes[0])
    details = object_details(X, partition, "X", connectivity=False)
    unknown = np.full(k, np.nan)
    if not has_columns(X):  # distances alone: no means, and so no margins
        nowhere = np.full(k, -1)
        widths = details.widths
        return _Quality(widths, details.margins, widths, unknown, unknown, nowhere, unknown)
    data = to_numpy(X).astype(np.float64, copy=False)
    notes += details.notes
    about = data - data.mean(axis=0)
    means = np.array([about[codes == code].mean(axis=0) for code in range(k)])
    apart = np.sqrt(((means[:, None] - means) ** 2).sum(axis=-1))
    np.fill_diagonal(apart, np.inf)
    nearest = apart.argmin(axis=1) if k > 1 else np.array([-1])
    gap = apart.min(axis=1) if k > 1 else np.array([np.nan])
    rival = details.nearest
    between = np.where(rival >= 0, apart[codes, rival], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = details.margins / (between / 2)

    def parts(what: str, function: Callable[[], np.ndarray]) -> np.ndarray:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                return function()
        except UndefinedIndex as reason:
            notes.append(f"{what} is undefined: {str(reason).rstrip('.')}.")
            return unknown

    if not thorough:
        dbcv = unknown
    elif len(data) > MOST_FOR_DBCV:
        dbcv = unknown
        notes.append(f"DBCV is left out above {count(MOST_FOR_DBCV, 'object')}.")
    else:
        dbcv = parts("DBCV", lambda: dbcv_clusters(data, partition))
    cfq = parts("CFQ", lambda: cfq_clusters(data, partition))
    if k == 1:
        dbcv = unknown
    return _Quality(details.widths, details.margins, relative, dbcv, cfq, nearest, gap)


def _exemplars(
    X: Any, partition: Partitions, quality: _Quality, most: int
) -> dict[str, np.ndarray]:
    codes, k = partition.codes[0], len(partition.classes[0])
    task = Task(open_space(X), partition, None)
    sums = own_sums(task, X.metric) if isinstance(X, PairSpace) else own_sums(task)
    medoid = np.array([_first(sums, codes == code, 1)[0] for code in range(k)])
    typical = np.array([_first(-quality.widths, codes == code, most) for code in range(k)])
    doubtful = np.array([_first(quality.relative, codes == code, most) for code in range(k)])
    return {
        "medoid": freeze(medoid),
        "typical": freeze(typical),
        "doubtful": freeze(doubtful),
    }


def _first(values: np.ndarray, mine: np.ndarray, most: int) -> np.ndarray:
    """Positions of the smallest values among some objects; -1 where there are no more."""
    at = np.flatnonzero(mine & ~np.isnan(values))
    order = at[np.argsort(values[at], kind="stable")][:most]
    return np.concatenate([order, np.full(most - len(order), -1)])


def _means(values: np.ndarray, codes: np.ndarray, k: int) -> np.ndarray:
    return np.array([float(np.mean(values[codes == code])) for code in range(k)])


def _ids(ids: Any, n: int) -> np.ndarray:
    if ids is None:
        return np.arange(n)
    names = as_vector(ids, "ids")
    if len(names) != n:
        raise ValueError(f"ids must have one entry per object ({n}), got {len(names)}.")
    return names


def found_again(record: Any, partition: Partitions, clusters: tuple[str, ...]) -> dict[str, Any]:
    """Stability of each cluster, from a record that has the same clusters."""
    k = len(clusters)
    if record is None:
        none = freeze(np.zeros(k, dtype=int))
        return {"stability": freeze(np.full(k, np.nan)), "dissolved": none, "n_draws": none}
    wanted = ("clusters", "sizes", "jaccard", "dissolved", "n_draws")
    if not all(hasattr(record, name) for name in wanted):
        raise TypeError(
            f"stability must be what wellsep.stability returns, got {shown(record)}; "
            "leave it out if there is none."
        )
    sizes = np.bincount(partition.codes[0][partition.codes[0] >= 0], minlength=k)
    given = tuple(str(label) for label in record.clusters)
    if given != clusters or not np.array_equal(record.sizes, sizes):
        raise ValueError(
            "stability must be that of these labels, got one of "
            f"{count(len(given), 'other cluster')}; call wellsep.stability with the same labels."
        )
    return {
        "stability": freeze(record.jaccard, float),
        "dissolved": freeze(record.dissolved),
        "n_draws": freeze(np.broadcast_to(record.n_draws, k)),
    }
