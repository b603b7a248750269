"""Many partitions, many indices, one pass over the space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.arrays import (
    UndefinedIndex,
    check_choice,
    check_count,
    check_data,
    check_weights,
    is_dask,
    is_torch,
    to_numpy,
)
from wellsep._checks.labels import as_labels, in_order_of
from wellsep._checks.values import check_random_state
from wellsep._text.sentences import shown
from wellsep.compute.data.opening import open_space
from wellsep.compute.kernels import load
from wellsep.compute.metrics.table import find
from wellsep.compute.plan import IN_CHUNKS, gather
from wellsep.compute.requests import Task, Want
from wellsep.distances.base import PairSpace
from wellsep.indices.index_names import (
    DEFAULT_INDICES,
    IndexSpec,
    ParsedIndex,
    parse_indices,
    takes_distances,
)
from wellsep.indices.noise_prices import Price
from wellsep.indices.registry import INDICES, Index, refuse_unpriced
from wellsep.indices.score_table import PartitionScores
from wellsep.partitions import VALUE_POLICIES, Partitions

if TYPE_CHECKING:
    from wellsep.compute.plan import AnyTask


def score_partitions(
    X: Any,
    labels: Any,
    indices: Sequence[IndexSpec] | IndexSpec = DEFAULT_INDICES,
    *,
    convention: str | None = None,
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
    n_jobs: int | None = None,
) -> PartitionScores:
    """Score many partitions of one space by many indices, computing distances once.

    Parameters
    ----------
    X : array-like, dataframe, sparse matrix, tensor or dask collection of shape (n, d)
        The space. Of float32, distances of pairs are computed in float32 with sums in float64,
        close pairs and all else in float64. A dask array or dataframe is never gathered.
    labels : array-like, list of array-like, (M, n) array, dict or dataframe
        One or more partitions of the n objects (rows of an array, columns of a frame).
    indices : sequence of str or (str, dict)
        Names from ``wellsep.INDICES``, with parameters where needed:
        ``("davies_bouldin", {"q": 2})``. Where X has no coordinates (`Distances`, `MixedTable`),
        the default leaves out those that need them.
    convention : {None, "ace"}
        "ace" computes what the authors of ACE computed.
    sample_weight : array-like of shape (n,), optional
        An object of weight 0 is left out.
    noise : {"exclude", "penalize", "cluster", "singletons", "error"}
        Noise (the labels -1, -2, -3) is left out, lowers the score (an index without a rule for it
        is refused), is one cluster, is a cluster per object, or is refused, in this order.
    device : str, optional
        "cuda" moves NumPy data to the GPU through PyTorch.
    n_jobs : int, optional
        Threads; by default as many as BLAS would use. The result does not depend on it.

    Returns
    -------
    PartitionScores

    Examples
    --------
    >>> import wellsep as ws
    >>> X = [[0.0, 0], [0, 1], [5, 0], [5, 1]]
    >>> scores = ws.score_partitions(X, {"good": [0, 0, 1, 1], "bad": [0, 1, 0, 1]},
    ...                              ["silhouette", "calinski_harabasz"])
    >>> scores.values.round(3).tolist()
    [[0.802, 50.0], [-0.39, 0.08]]
    >>> scores.best("silhouette")
    'good'
    """
    if indices is DEFAULT_INDICES and isinstance(X, PairSpace):
        indices = [name for name in DEFAULT_INDICES if INDICES[name].distances]
    asked = parse_indices(indices, convention)
    task = open_task(X, labels, asked, sample_weight, noise, device, n_jobs)
    return evaluate_and_keep(task, asked)[0]


def open_task(
    X: Any,
    labels: Any,
    asked: list[ParsedIndex],
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
    n_jobs: int | None = None,
    centers: Any = None,
) -> AnyTask:
    """Check X, labels, weights and centres for these indices; in memory or on Dask."""
    if is_dask(X):
        task = _task_on_dask(X, labels, asked, sample_weight, noise, device)
        return task if centers is None else _with_centers(task, centers, task.partitions)
    data, weights = as_distances(X, asked), None
    if not isinstance(data, PairSpace):
        data = check_data(data, sparse=True)
    if sp.issparse(data):
        _refuse_sparse(asked)
    if sample_weight is not None:
        weights = check_weights(sample_weight, data.shape[0])
        _refuse_weights(asked)
    labels = in_order_of(X, labels)
    partitions = Partitions.from_labels(labels, n_objects=data.shape[0], noise=noise)
    counted = partitions if weights is None else drop_weightless(partitions, weights)
    space = open_space(data, device=device, n_jobs=n_jobs)
    task = Task(space, counted, weights)
    if centers is None:
        return task
    if is_torch(centers) != is_torch(data) and not isinstance(centers, list):
        kind = f"{type(data).__module__}.{type(data).__name__}"
        raise TypeError(f"centers must be of X's array kind {kind}, got {type(centers).__name__}.")
    return _with_centers(task, centers, partitions)


def _with_centers(task: AnyTask, centers: Any, given: Partitions) -> AnyTask:
    """The task with these centres, one per cluster of the given partition, in place of means."""
    table: np.ndarray = check_data(to_numpy(centers, "centers"), name="centers").astype(np.float64)
    classes, shape = given.classes[0], (len(given.classes[0]), task.space.d)
    if table.shape != shape:
        raise ValueError(
            f"centers must have one row per cluster and X's columns, {shape}, "
            f"got {table.shape}; rows follow the sorted labels."
        )
    table = table[np.isin(classes, task.partitions.classes[0])]  # the others have no weight
    return task._replace(centers=(table / task.space.unit,))


def _task_on_dask(
    X: Any, labels: Any, asked: list[ParsedIndex], sample_weight: Any, noise: str, device: Any
) -> AnyTask:
    """Rows, codes and weights in chunks; nothing but the distinct labels is gathered."""
    for index, params in asked:
        if not on_dask(index, params):
            usable = ", ".join(name for name in INDICES if on_dask(INDICES[name]))
            raise TypeError(
                f"X must be in memory for {index.label(params)!r}, got a dask collection; "
                f"pass X.compute() if it fits, or choose among: {usable}."
            )
        for wanted in index.wants(**params).values():
            metric = find(wanted.get("metric", "euclidean"))
            metric.need_rows("where X is a dask collection", TypeError)
    if device is not None and str(device) != "cpu":
        raise ValueError(f"device must be None for a dask array, got {device!r}.")
    if sample_weight is not None:
        _refuse_weights(asked)
    engine = load("wellsep.compute.engine.dask.engine")
    task: AnyTask = engine.open_task(X, labels, sample_weight, noise)
    return task


def on_dask(index: Index, params: Mapping[str, Any] | None = None) -> bool:
    """Whether an index can be computed without gathering X."""
    wanted = index.wants(**(index.params if params is None else params)).values()
    return {w.name for w in wanted} <= IN_CHUNKS


def as_distances(X: Any, asked: list[ParsedIndex]) -> Any:
    """A matrix or a mixed table as a space of distances, where an index says that it is one.

    Tensors stay what they are: they are checked where they lie.
    """
    if not takes_distances(*asked[0]):
        return X
    foreign = hasattr(X, "__array_namespace__") and not isinstance(X, np.ndarray)
    if isinstance(X, PairSpace) or foreign or is_torch(X) or is_dask(X):
        return X
    return find(asked[0][1]["metric"]).opens(X)  # type: ignore[misc]


def drop_weightless(partitions: Partitions, weights: np.ndarray) -> Partitions:
    """An object of weight 0 is not counted; a cluster of such objects does not exist."""
    if (weights > 0).all():
        return partitions
    bare = replace(partitions, codes=np.where(weights > 0, partitions.codes, -1))
    return replace(bare.take(np.arange(bare.n_objects)), coverage=partitions.coverage)


def evaluate_and_keep(
    task: AnyTask, asked: list[ParsedIndex], keep: Want | None = None
) -> tuple[PartitionScores, list[Any]]:
    """The scores, and one statistic of the same pass for each partition; None if not scored."""
    partitions = task.partitions
    if partitions.priced:
        refuse_unpriced(asked, partitions)
    labels = tuple(index.label(params) for index, params in asked)
    asked = [(index, index.in_space(params, task.space.own_metric)) for index, params in asked]
    values = np.full((len(partitions), len(asked)), np.nan)
    reasons: dict[tuple[int, int], str] = {}
    defined: dict[int, list[int]] = {}  # partition → indices that its number of clusters suits
    for m, i in np.ndindex(values.shape):
        if reason := _not_scorable(partitions, m, asked[i][0]):
            reasons[m, i] = reason
        else:
            defined.setdefault(m, []).append(i)
    extra: list[Any] = [None] * len(partitions)  # the statistic `keep` of each partition
    if defined:
        scored = task if len(defined) == len(partitions) else task.subset(list(defined))
        needs = [index.wants(**params) for index, params in asked]
        noisiest = int(partitions.coverage.argmin())
        prices = [index.price_for(partitions, noisiest) for index, _ in asked]
        wants = [w for wanted in (*needs, *(p.wants for p in prices)) for w in wanted.values()]
        statistics = gather(scored, wants if keep is None else [*wants, keep])
        for place, m in enumerate(defined):  # a partition, and where its statistics are
            extra[m] = None if keep is None else statistics[keep][place]
            for i in defined[m]:
                try:
                    price = asked[i][0].price_for(partitions, m)
                    values[m, i] = _value(asked[i], needs[i], price, statistics, place)
                except UndefinedIndex as error:
                    reasons[m, i] = str(error)
    scores = PartitionScores(
        values=values,
        names=partitions.names,
        indices=labels,
        directions=np.array([index.direction for index, _ in asked]),
        coverage=partitions.coverage,
        n_clusters=partitions.n_clusters,
        reasons={(partitions.names[m], labels[i]): why for (m, i), why in reasons.items()},
    )
    return scores, extra


def _value(asked: ParsedIndex, needs: dict[str, Want], price: Price, stats: Any, place: int) -> Any:
    """The formula on the statistics of one partition; noise is paid for where it has a price."""
    index, params = asked
    value = index.formula(**{name: stats[w][place] for name, w in needs.items()}, **params)
    if not price.wants:
        return value
    return price.apply(value, {name: stats[w][place] for name, w in price.wants.items()})


def _not_scorable(partitions: Partitions, m: int, index: Index) -> str:
    """Why a partition has too few or too many clusters for an index; empty if it has not."""
    k, counted = len(partitions.classes[m]), int(partitions.n_counted[m])
    if k < index.minimum_clusters:
        if counted == 0:
            return "no object is counted"
        return f"{index.name} needs at least {index.minimum_clusters} clusters, got {k}"
    if index.minimum_clusters > 1 and k == counted:
        return f"every one of the {k} objects is a cluster of its own"
    return ""


def _refuse_sparse(asked: list[ParsedIndex]) -> None:
    for index, params in asked:
        summed = index.sparse_sums and find(params["metric"]).takes_sparse
        if not index.sparse and not summed:
            usable = ", ".join(name for name in INDICES if INDICES[name].sparse)
            raise TypeError(
                f"X must be dense for {index.name!r}, got a sparse matrix; "
                f"indices that take sparse data: {usable}."
            )


def _refuse_weights(asked: list[ParsedIndex]) -> None:
    for index, _ in asked:
        if not index.weighted:
            raise ValueError(
                f"sample_weight must be None for {index.name!r}: its definition knows no weights."
            )


def score_one(
    name: str,
    X: Any,
    labels: Any,
    params: Mapping[str, Any],
    *options: Any,
    undefined: str = "raise",
) -> float:
    """One index of one partition; where it has no value, raises ``UndefinedIndex`` or gives NaN.

    The options are those of `one_task`.
    """
    check_choice("undefined", undefined, ("raise", "nan"))
    task, index, full = one_task(name, X, labels, params, *options)
    if task.partitions.priced:
        refuse_unpriced([(index, full)], task.partitions)
    reason = _not_scorable(task.partitions, 0, index)
    try:
        if reason:
            # The second sentence is scikit-learn's, which programs look for.
            raise UndefinedIndex(
                f"{reason}. Number of labels is {len(task.partitions.classes[0])}. Valid values "
                "are 2 to n_samples - 1 (inclusive)"
            )
        needs, price = index.wants(**full), index.price_for(task.partitions, 0)
        statistics = gather(task, [*needs.values(), *price.wants.values()])
        return float(_value((index, full), needs, price, statistics, 0))
    except UndefinedIndex as error:
        if undefined == "nan":
            return float("nan")
        raise UndefinedIndex(f"{error}.") from None


def draw_objects(
    X: Any, labels: Any, sample_weight: Any, size: int, random_state: Any, metric: Any
) -> tuple[Any, Any, Any, Any]:
    """Some objects at random, with their labels and weights; and the metric between them.

    What a metric takes from all objects (ranges, variances) is taken before the draw.
    """
    if is_dask(X):
        raise TypeError(
            f"sample_size must be None where X is on Dask, got {shown(size)}; take the rows "
            "yourself, or use wellsep.silhouette_estimate."
        )
    entry, labels = find(metric), in_order_of(X, labels)
    if entry.opens is not None and not isinstance(X, PairSpace):
        X = entry.opens(X)
    if isinstance(X, PairSpace):
        metric = "euclidean"
    else:
        X = check_data(X, sparse=True)
        if entry.whole and entry.finish is not None:
            X, metric = open_space(X).on_host(entry).X, "euclidean"
    n = X.shape[0]
    chosen = check_random_state(random_state).permutation(n)[: check_count("sample_size", size)]
    vector = as_labels(labels, "labels")
    if len(vector) != n:
        raise ValueError(f"labels must have one entry per object ({n}), got {len(vector)}.")
    weights = check_weights(sample_weight, n)
    X = X.take(chosen) if isinstance(X, PairSpace) else X[chosen]
    return X, vector[chosen], None if weights is None else weights[chosen], metric


def one_task(
    name: str,
    X: Any,
    labels: Any,
    params: Mapping[str, Any],
    sample_weight: Any = None,
    noise: str = "exclude",
    device: Any = None,
    centers: Any = None,
) -> tuple[AnyTask, Index, dict[str, Any]]:
    """Open one partition for one index, whose parameters come back complete."""
    index = INDICES[name]
    full = {**index.params, **params}
    task = open_task(X, labels, [(index, full)], sample_weight, noise, device, centers=centers)
    if len(task.partitions) != 1:
        raise ValueError(
            f"labels must be one clustering here, got {len(task.partitions)}; score many with "
            "wellsep.score_partitions."
        )
    if task.space.own_metric is not None:
        full = index.in_space(full, task.space.own_metric)
    return task, index, full


def one_task_of_values(
    name: str,
    X: Any,
    labels: Any,
    params: Mapping[str, Any],
    sample_weight: Any,
    noise: str,
    *options: Any,
    minimum: int = 0,
) -> tuple[AnyTask, Index, dict[str, Any]]:
    """`one_task` whose objects or clusters get a value each: noise has no price there."""
    check_choice("noise", noise, VALUE_POLICIES)
    opened = one_task(name, X, labels, params, sample_weight, noise, *options)
    if (k := opened[0].partitions.n_clusters[0]) < minimum:
        raise UndefinedIndex(f"labels must hold at least {minimum} clusters, got {k}.")
    return opened


def statistics_of_one(task: AnyTask, index: Index, params: dict[str, Any]) -> dict[str, Any]:
    """What a formula takes from the only partition of a task."""
    if not len(task.partitions.classes[0]):
        raise UndefinedIndex("no object is counted.")
    wanted = index.wants(**params)
    statistics = gather(task, wanted.values())
    return {name: statistics[w][0] for name, w in wanted.items()}


def values_of_objects(task: AnyTask, wanted: Want) -> Any:
    """(n,) one value per object of the only partition; a lazy dask array where X is one."""
    each = wanted.each()
    return gather(task, [each])[each][0]
