"""What is in a cluster: its size, how good it is, the features that make it, objects to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from wellsep._checks.arrays import (
    UndefinedIndex,
    check_choice,
    check_count,
    check_data,
    in_safe_units,
    is_frame,
    open_frame,
    to_numpy,
)
from wellsep._checks.labels import as_vector, in_order_of
from wellsep._checks.values import check_names
from wellsep._files.records import freeze
from wellsep._text.sentences import count, listing, shown
from wellsep.compute.data.mixed_columns import read_columns as read_mixed
from wellsep.compute.data.mixed_table import MixedTable
from wellsep.compute.data.opening import open_space
from wellsep.compute.requests import Task, want
from wellsep.compute.statistics.centre_pairs import centre_distances
from wellsep.distances.base import PairSpace
from wellsep.evaluate.clusters.description import ClusterDescription
from wellsep.evaluate.clusters.objects import PartitionDetails, computed, lcd_of, object_details
from wellsep.evaluate.clusters.rules import MOST_OBJECTS, NO_RULE, find_rule
from wellsep.indices import cfq_clusters, dbcv_clusters
from wellsep.indices.centroid import BORDERLINE
from wellsep.indices.scoring import values_of_objects
from wellsep.partitions import VALUE_POLICIES, Partitions, cluster_sizes, encode
from wellsep.runs.collection import Features
from wellsep.spaces.drawing_planes import drawn_objects
from wellsep.spaces.projections import has_columns, take_objects

MOST_CATEGORIES = 20  # of a column of texts that becomes one column of shares for each
BLOCK = 1 << 22  # numbers whose ranks are found at a time


class Columns(NamedTuple):
    """Features ready to be compared."""

    values: np.ndarray  # (n, F) float64; 0 and 1 where a feature is a share
    names: tuple[str, ...]
    shares: np.ndarray  # (F,) bool
    notes: tuple[str, ...]


class Differences(NamedTuple):
    """Each cluster against all other counted objects."""

    inside: np.ndarray  # (K, F) mean, or share
    outside: np.ndarray  # (K, F); NaN where there is no other object
    difference: np.ndarray  # (K, F) over the pooled standard deviation; of shares as they are
    auc: np.ndarray  # (K, F) share of pairs in which the inside value is larger, ties half


def read_columns(table: Any, names: Any, n: int, what: str) -> Columns:
    """The columns of a frame or array; constant ones are left out and counted."""
    notes: list[str] = []
    if is_frame(table) or isinstance(table, MixedTable):
        values, called, shares = _of_frame(table, what, notes)
    else:
        values = to_numpy(check_data(table, name=what)).astype(np.float64, copy=False)
        called = [f"feature {number}" for number in range(values.shape[1])]
        shares = [False] * len(called)
    if len(values) != n:
        raise ValueError(f"{what} must have one row per object ({n}), got {len(values)}.")
    if names is not None:
        given = check_names("feature_names", names)
        if len(given) != len(called):
            raise ValueError(
                f"feature_names must have one name per column ({len(called)}), got {len(given)}."
            )
        called = given
    constant = (values == values[:1]).all(axis=0) if n else np.zeros(len(called), dtype=bool)
    if constant.any():
        left_out = [name for name, same in zip(called, constant, strict=True) if same]
        constant_ones = count(len(left_out), "feature is constant", "features are constant")
        notes.append(f"{constant_ones} and left out: {listing(left_out)}.")
    kept = np.flatnonzero(~constant)
    return Columns(
        values[:, kept],
        tuple(called[at] for at in kept),
        np.asarray(shares, dtype=bool)[kept],
        tuple(notes),
    )


def _of_frame(table: Any, what: str, notes: list[str]) -> tuple[np.ndarray, list[str], list[bool]]:
    """Columns, their names, and which are shares; cells that are missing are filled and counted."""
    columns, names, shares, left_out, gaps = [], [], [], [], []
    if isinstance(table, MixedTable):
        found = table.values()
    else:
        frame = open_frame(table, what)
        left_out = [c for c, dtype in frame.schema.items() if dtype.is_temporal()]
        found = read_mixed(frame.drop(left_out).to_native())
    for name, values in found.items():
        if isinstance(values, np.ndarray):
            known = ~np.isnan(values)
            gaps += [name] * (not known.all())
            fill = values[known].mean() if known.any() else 0.0
            columns.append(np.where(known, values, fill))
            names.append(name)
            shares.append(False)
            continue
        gaps += [name] * any(value is None for value in values)
        words = sorted({str(value) for value in values if value is not None})
        if set(words) <= {"False", "True"}:
            words = ["True"]
        if len(words) > MOST_CATEGORIES:
            left_out.append(name)
            continue
        texts = np.array([str(value) for value in values])
        columns += [(texts == word).astype(np.float64) for word in words]
        names += [name if word == "True" else f"{name} = {word}" for word in words]
        shares += [True] * len(words)
    if gaps:
        notes.append(
            f"Cells are missing in {listing(gaps)}: numbers count there as the mean of their "
            "column, categories as none."
        )
    if left_out:
        notes.append(
            f"Left out, neither numbers nor up to {MOST_CATEGORIES} categories: "
            f"{listing(left_out)}."
        )
    if not columns:
        raise ValueError(f"{what} must have columns of numbers or categories, got none.")
    return np.column_stack(columns), names, shares


def compare(columns: Columns, codes: np.ndarray, k: int, *, pairs: bool = True) -> Differences:
    """Effect sizes of all clusters and features; objects with a negative code do not count.

    Without ``pairs`` there is no `auc`, which takes most of the time.
    """
    counted = codes >= 0
    values, codes = columns.values[counted], codes[counted]
    n, f = values.shape
    size = np.bincount(codes, minlength=k).astype(np.float64)
    members = sp.csr_array((np.ones(n), codes, np.arange(n + 1)), shape=(n, k)).T
    shift = values.mean(axis=0)
    about = values - shift
    exponent = np.frexp(np.abs(about).max(axis=0, initial=0.0))[1]
    # Squares of such columns overflow or vanish: they are divided by a power of two.
    unit = np.ldexp(1.0, np.where(np.abs(exponent) > 400, np.minimum(exponent, 1023), 0))
    about /= unit
    sums, squares = members @ about, members @ about**2
    rest, others = n - size, about.sum(axis=0) - sums
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = sums / size[:, None], others / rest[:, None]
        scatter = squares - size[:, None] * inside**2
        scatter += (about**2).sum(axis=0) - squares - rest[:, None] * outside**2
        spread = np.sqrt(np.maximum(scatter, 0) / (n - 2)) if n > 2 else np.full((k, f), np.nan)
        difference = (inside - outside) / np.where(columns.shares, 1.0, spread)
    auc = np.full((k, f), np.nan)
    both = size * rest
    step = max(1, BLOCK // max(n, 1))
    for part in (slice(at, at + step) for at in range(0, f if pairs else 0, step)):
        ranks = members @ rankdata(values[:, part], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            auc[:, part] = (ranks - (size * (size + 1) / 2)[:, None]) / both[:, None]
    return Differences(inside * unit + shift, outside * unit + shift, difference, auc)


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
    names = np.arange(n) if ids is None else as_vector(ids, "ids")
    if len(names) != n:
        raise ValueError(f"ids must have one entry per object ({n}), got {len(names)}.")
    found = describe_partition(data, partition, columns, names, n_exemplars)
    if stability is not None:
        found = _with_stability(found, stability)
    inside = found.sizes / found.sizes.sum()
    if features is not None or not (inside @ found.negative > MOST_NEGATIVE):
        return found
    return replace(found, notes=(*found.notes, OTHER_COLUMNS))


def describe_partition(
    X: Any,
    partition: Partitions,
    columns: Columns,
    ids: np.ndarray,
    n_exemplars: int = 3,
    *,
    thorough: bool = True,
) -> ClusterDescription:
    """Describe one partition of a space by some columns; rules and DBCV only if ``thorough``."""
    codes, k = partition.codes[0], len(partition.classes[0])
    counted = codes >= 0
    notes = list(columns.notes)
    quality = _quality(X, partition, n_exemplars, thorough, notes)
    apart = compare(columns, codes, k)
    rules = [NO_RULE] * k
    if thorough:
        rules = [find_rule(columns.values[counted], codes[counted] == code) for code in range(k)]
        if counted.sum() > MOST_OBJECTS:
            notes.append(f"Rules are made from {count(MOST_OBJECTS, 'object')} drawn at random.")
    if k == 1:
        notes.append("There is one cluster: nothing lies outside it to compare it with.")
    never = freeze(np.zeros(k, dtype=int))
    return ClusterDescription(
        clusters=tuple(str(label) for label in partition.classes[0]),
        n_objects=partition.n_objects,
        sizes=freeze(partition.sizes[0]),
        stability=freeze(np.full(k, np.nan)),
        dissolved=never,
        n_draws=never,
        features=columns.names,
        shares=freeze(columns.shares),
        rules=tuple(rule.in_words(columns.names, columns.shares) for rule in rules),
        precision=freeze([rule.precision for rule in rules]),
        recall=freeze([rule.recall for rule in rules]),
        ids=freeze(ids),
        notes=tuple(notes),
        **{name: freeze(values) for name, values in (quality | apart._asdict()).items()},
    )


def _quality(
    X: Any, partition: Partitions, n_exemplars: int, thorough: bool, notes: list[str]
) -> dict[str, Any]:
    """How good each cluster is, and the objects that show it: fields of a description."""
    codes, k = partition.codes[0], len(partition.classes[0])
    details = object_details(X, partition, "X", connectivity=False)
    relative = widths = details.widths
    unknown = np.full(k, np.nan)
    fields = {"dbcv": unknown, "cfq": unknown, "nearest": np.full(k, -1), "gap": unknown}
    if has_columns(X):  # distances alone have no means, and so no margins
        notes += details.notes
        about, unit = in_safe_units(X - X.mean(axis=0))
        means = np.array([about[codes == code].mean(axis=0) for code in range(k)])
        apart = centre_distances(means) * unit
        np.fill_diagonal(apart, np.inf)
        if k > 1:
            fields |= {"nearest": apart.argmin(axis=1), "gap": apart.min(axis=1)}
        rival = details.nearest
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = details.margins / (np.where(rival >= 0, apart[codes, rival], np.nan) / 2)
        parts: dict[str, Any] = {"cfq": cfq_clusters}
        if thorough and len(X) <= MOST_FOR_DBCV:
            parts = {"dbcv": dbcv_clusters, **parts}
        elif thorough:
            notes.append(f"DBCV is left out above {count(MOST_FOR_DBCV, 'object')}.")
        for name, function in parts.items():
            values = computed(f"{name.upper()} is", notes, function, X, partition)
            if values is not None and (name == "cfq" or k > 1):
                fields[name] = values
    metric = X.metric if isinstance(X, PairSpace) else "euclidean"
    wanted = want("within_distances", metric=metric)
    sums = values_of_objects(Task(open_space(X), partition, None), wanted)
    negative = np.where(np.isnan(widths), np.nan, widths < 0)
    members = [codes == code for code in range(k)]
    margins = [details.margins[mine] for mine in members]
    return fields | {
        "silhouette": [float(np.mean(widths[mine])) for mine in members],
        "negative": [float(np.mean(negative[mine])) for mine in members],
        "margin": [float(np.median(some)) if len(some) else np.nan for some in margins],
        "borderline": [int((relative[mine] < BORDERLINE).sum()) for mine in members],
        "medoid": [_first(sums, mine, 1)[0] for mine in members],
        "typical": [_first(-widths, mine, n_exemplars) for mine in members],
        "doubtful": [_first(relative, mine, n_exemplars) for mine in members],
    }


def _first(values: np.ndarray, mine: np.ndarray, most: int) -> np.ndarray:
    """Positions of the smallest values among some objects; -1 where there are no more."""
    at = np.flatnonzero(mine & ~np.isnan(values))
    order = at[np.argsort(values[at], kind="stable")][:most]
    return np.concatenate([order, np.full(most - len(order), -1)])


def _with_stability(found: ClusterDescription, record: Any) -> ClusterDescription:
    """The same with the stability of each cluster, from a record of the same clusters."""
    wanted = ("clusters", "sizes", "jaccard", "dissolved", "n_draws")
    if not all(hasattr(record, name) for name in wanted):
        raise TypeError(
            f"stability must be what wellsep.stability returns, got {shown(record)}; "
            "leave it out if there is none."
        )
    given = tuple(str(label) for label in record.clusters)
    if given != found.clusters or not np.array_equal(record.sizes, found.sizes):
        raise ValueError(
            "stability must be that of these labels, got one of "
            f"{count(len(given), 'other cluster')}; call wellsep.stability with the same labels."
        )
    return replace(
        found,
        stability=freeze(record.jaccard, float),
        dissolved=freeze(record.dissolved),
        n_draws=freeze(np.broadcast_to(record.n_draws, len(given))),
    )


MOST_DESCRIBED = 5  # distinct partitions
MOST_SAMPLED = 600  # that one is described by; the pairs of these take most of the time
LEAST_OBJECTS = 5  # of each cluster, where it has so many
MOST_FEATURES = 200  # that are kept: those that differ most


def describe_best(
    spaces: Any,
    partitions: Partitions,
    chosen: Sequence[tuple[str, str]],
    *,
    X: Any = None,
    ids: Any = None,
    details: PartitionDetails | None = None,
    stability: Any = None,
) -> dict[str, ClusterDescription]:
    """Describe some partitions, each in its own space, without rules and without DBCV.

    The features are the columns of ``X``, the data that the runs were made from. Without it there
    are none: the axes of an embedding say nothing by their names. Of many objects a sample is
    described; sizes are those of all objects. Where ``details`` are of one of the partitions, its
    silhouette widths are taken from them.

    ``chosen`` are pairs of partition and space; partitions without any cluster are left out.
    ``stability`` is that of the one partition.

    Examples
    --------
    >>> import numpy as np
    >>> spaces = {"flat": np.array([[0.0, 7], [1, 8], [5, 8], [6, 7]])}
    >>> partitions = Partitions.from_labels({"good": [0, 0, 1, 1]})
    >>> describe_best(spaces, partitions, [("good", "flat")])["good"].features
    ()
    >>> data = spaces["flat"]
    >>> describe_best(spaces, partitions, [("good", "flat")], X=data)["good"].features
    ('feature 0', 'feature 1')
    """
    names = np.arange(partitions.n_objects) if ids is None else np.asarray(ids)
    found = {}
    for name, space in chosen[:MOST_DESCRIBED]:
        partition = partitions[partitions.names.index(name)]
        if len(partition.classes[0]) == 0:
            continue
        objects = described_objects(partition.codes[0])
        described = _describe(spaces[space], partition, objects, X, names)
        if stability is not None:
            described = _with_stability(described, stability)
        known = "sizes"
        if details is not None and (details.partition, details.space) == (name, space):
            whole = _with_widths(described, details)
            known = known if whole is described else "sizes and widths"
            described = whole
        if len(objects) < partition.n_objects:
            drawn = f"{len(objects):,} of {count(partition.n_objects, 'object')}"
            note = f"All but the {known} comes from {drawn}, drawn at random."
            described = replace(described, notes=(*described.notes, note))
        found[name] = described
    return found


def _describe(
    space: Any,
    partition: Partitions,
    objects: np.ndarray,
    X: Any,
    ids: np.ndarray,
) -> ClusterDescription:
    """What some objects tell; sizes are those of all."""
    rows = take_objects(space, objects)
    if has_columns(space):
        rows = np.asarray(rows, dtype=np.float64)
    part = partition.take(objects)
    columns = _columns(X, objects)._replace(notes=())  # constant columns are no news here
    if len(columns.names) > MOST_FEATURES:
        columns = _strongest(columns, part)
    found = describe_partition(rows, part, columns, ids, thorough=False)
    lcd = computed("", [], lcd_of, rows, part)
    full = np.append(objects, -1)  # the last: none
    return replace(
        found,
        n_objects=partition.n_objects,
        sizes=freeze(partition.sizes[0]),
        medoid=freeze(full[found.medoid]),
        typical=freeze(full[found.typical]),
        doubtful=freeze(full[found.doubtful]),
        lcd=None if lcd is None else freeze(lcd.clusters),
    )


def described_objects(codes: np.ndarray) -> np.ndarray:
    """Positions of some objects in order: a sample, and a few more of each small cluster.

    Examples
    --------
    >>> codes = np.repeat([0, 1], [5000, 3])
    >>> len(described_objects(codes)), described_objects(codes)[-3:].tolist()
    (603, [5000, 5001, 5002])
    """
    drawn = drawn_objects(len(codes), MOST_SAMPLED)
    if len(drawn) == len(codes):
        return drawn
    here = cluster_sizes(codes[drawn], codes.max() + 1)
    scarce = np.flatnonzero(here < LEAST_OBJECTS)
    more = [np.flatnonzero(codes == code)[:LEAST_OBJECTS] for code in scarce]
    return np.unique(np.concatenate([drawn, *more]))


def _columns(X: Any, objects: np.ndarray) -> Columns:
    """The features of some objects; none of distances, and none where X was not given."""
    if isinstance(X, Features):
        return read_columns(X.rows(objects), X.names, len(objects), "X")
    if isinstance(X, PairSpace) or not (is_frame(X) or sp.issparse(X) or np.ndim(X) == 2):
        return Columns(np.empty((len(objects), 0)), (), np.empty(0, dtype=bool), ())
    if is_frame(X):
        table = open_frame(X)[objects.tolist()].to_native()
    elif sp.issparse(X):
        table = X.tocsr()[objects].toarray()
    else:
        table = np.asarray((X if hasattr(X, "shape") else np.asarray(X))[objects])
    return read_columns(table, None, len(objects), "X")


def _strongest(columns: Columns, partition: Partitions) -> Columns:
    """The features that differ most between the clusters, in their order."""
    codes, k = partition.codes[0], len(partition.classes[0])
    size = np.nan_to_num(np.abs(compare(columns, codes, k, pairs=False).difference)).max(axis=0)
    kept = np.sort(np.argsort(-size, kind="stable")[:MOST_FEATURES])
    return columns._replace(
        values=columns.values[:, kept],
        names=tuple(columns.names[at] for at in kept),
        shares=columns.shares[kept],
    )


def _with_widths(found: ClusterDescription, details: PartitionDetails) -> ClusterDescription:
    """The same with the widths of all objects, where they are defined."""
    own = [details.widths[details.codes == code] for code in range(len(details.clusters))]
    if details.clusters != found.clusters or any(np.isnan(widths).any() for widths in own):
        return found
    return replace(
        found,
        silhouette=freeze([widths.mean() for widths in own]),
        negative=freeze([(widths < 0).mean() for widths in own]),
    )
