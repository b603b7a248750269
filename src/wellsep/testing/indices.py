"""The promises of an index: its declared laws, one or many partitions, noise and weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._text.sentences import shown
from wellsep.indices.registry import COSTS, INDICES, Index
from wellsep.indices.scoring import score_partitions
from wellsep.testing.compare import SEEDS, make_blobs, need, need_close, need_error


def value_of(name: str, X: Any, labels: Any, **options: Any) -> float:
    """The score of one partition."""
    return float(score_partitions(X, labels, [name], **options).values[0, 0])


def check_facts(name: str) -> None:
    """Title, cost and citation are there, and the range has its lower end first."""
    index = INDICES[name]
    need(index.range[0] < index.range[1], f"{name}: range must have its lower end first.")
    need(bool(index.title), f"{name}: title must not be empty.")
    need(bool(index.citation), f"{name}: citation must not be empty.")
    need(index.cost in COSTS, f"{name}: cost must be one of {', '.join(COSTS)}.")


def _rotated(X: np.ndarray, seed: int) -> np.ndarray:
    return X @ np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1],) * 2))[0]


def _in_order(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


# By law: a change of X and y, given a seed, that must not change the value; the relative error.
LAWS: dict[str, tuple[Callable[..., tuple[Any, Any]], float]] = {
    "labels": (lambda X, y, seed: (X, np.array(["zebra", "ant", "mole"])[y]), 1e-9),
    "order": (lambda X, y, seed: _in_order(X, y, seed + 1), 1e-9),
    "translation": (lambda X, y, seed: (X + np.array([1.0, -20.0, 300.0]), y), 1e-7),
    "rotation": (lambda X, y, seed: (_rotated(X, seed), y), 1e-8),
    "scale": (lambda X, y, seed: (0.5 * X, y), 1e-8),
}


def check_law(name: str, law: str, seed: int, factor: float | None = None) -> None:
    """A change of the data that the law names changes no value; `factor` is another scale."""
    change, rel = LAWS[law]
    X, y = make_blobs(seed)
    changed = change(X, y, seed) if factor is None else (factor * X, y)
    sentence = f"{name}: the law {law!r} must hold"
    need_close(value_of(name, *changed), value_of(name, X, y), sentence, rel=rel)


def check_far_translation(name: str) -> None:
    """Law "translation", far away."""
    X, y = make_blobs(7)
    sentence = f"{name}: the law 'translation' must hold far away"
    need_close(value_of(name, X + 1e6, y), value_of(name, X, y), sentence, rel=1e-6)


def check_range(name: str, seed: int) -> None:
    """A value lies in the declared range."""
    value = value_of(name, *make_blobs(seed))
    low, high = INDICES[name].range
    need(low <= value <= high, f"{name}: a value must lie in [{low}, {high}], got {value}.")


def check_one_and_many(name: str) -> None:
    """One partition gets the value that it gets among others."""
    X, y = make_blobs(5, n=90)
    rng = np.random.default_rng(0)
    many = [rng.integers(0, k, len(y)) for k in (2, 5)] + [y]
    together = score_partitions(X, many, [name]).values[:, 0]
    alone = [value_of(name, X, labels) for labels in many]
    need_close(together, alone, f"{name}: values together and alone must be equal", rel=1e-10)


def check_float32(name: str, seed: int) -> None:
    """Single precision loses digits and no more."""
    X, y = make_blobs(seed)
    X = X.astype(np.float32)
    found, expected = value_of(name, X, y), value_of(name, X.astype(np.float64), y)
    need_close(found, expected, f"{name}: float32 must be close to float64", rel=1e-4, abs=1e-5)


def check_sparse(name: str) -> None:
    """Sparse data give the value of dense ones, or are refused, as declared."""
    X, y = make_blobs(10)
    X[np.abs(X) < 1] = 0
    if INDICES[name].sparse or INDICES[name].sparse_sums:
        found = value_of(name, sp.csr_array(X), y)
        need_close(found, value_of(name, X, y), f"{name}: sparse must equal dense", rel=1e-9)
        return
    refused = f"{name}: sparse data must be refused where they are not declared"
    need_error(lambda: value_of(name, sp.csr_array(X), y), "must be dense", refused)


def check_weight_zero(name: str, seed: int) -> None:
    """An object of weight 0 is as good as absent."""
    X, y = make_blobs(seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(y))
    weight[::7] = 0
    kept = weight > 0
    found = value_of(name, X, y, sample_weight=weight)
    expected = value_of(name, X[kept], y[kept], sample_weight=weight[kept])
    need_close(found, expected, f"{name}: an object of weight 0 must not count", rel=1e-9)


def check_weights_of_one(name: str) -> None:
    """Equal weights of 1 are no weights."""
    X, y = make_blobs(11)
    found = value_of(name, X, y, sample_weight=np.ones(len(y)))
    need_close(found, value_of(name, X, y), f"{name}: weights of 1 must not count", rel=1e-12)


def check_weights_refused(name: str) -> None:
    """An index whose definition knows no weights says so."""
    X, y = make_blobs(11)
    refused = f"{name}: weights must be refused where weighted=False"
    weights = np.ones(len(y))
    need_error(
        lambda: value_of(name, X, y, sample_weight=weights), "sample_weight must be None", refused
    )


def check_excluded_noise(name: str) -> None:
    """Noise that is excluded scores as if it were not there."""
    X, y = make_blobs(13)
    y = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    kept = y >= 0
    scores = score_partitions(X, y, [name], noise="exclude")
    expected = value_of(name, X[kept], y[kept])
    need_close(scores.values[0, 0], expected, f"{name}: excluded noise must not count", rel=1e-9)
    need_close(scores.coverage[0], kept.mean(), f"{name}: coverage", rel=1e-12)


def check_noise_labels(name: str, noise: str) -> None:
    """−2 and −3 score as −1 does, and ``noise="error"`` refuses them."""
    X, y = make_blobs(13)
    one = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    three = with_three_kinds_of_noise(one)
    scores = score_partitions(X, {"one": one, "three": three}, [name], noise=noise)
    first, second = scores.values[:, 0]
    need_close(first, second, f"{name}: -1 and -3 must mean the same", rel=0, abs=0)
    need(scores.coverage[0] == scores.coverage[1], f"{name}: coverage must be the same.")
    need(scores.n_clusters[0] == scores.n_clusters[1], f"{name}: K must be the same.")
    noisy = np.where(three == -2, -2, y)
    need_error(
        lambda: score_partitions(X, noisy, [name], noise="error"),
        "must not hold noise",
        f"{name}: noise='error' must refuse noise",
    )


def with_three_kinds_of_noise(labels: np.ndarray) -> np.ndarray:
    """The same labels with noise written as HDBSCAN does: −1, −2 (infinite), −3 (missing)."""
    noise = np.flatnonzero(labels == -1)
    found = labels.copy()
    found[noise] = -1 - np.arange(len(noise)) % 3
    return found


NOISE_CHECKED = ("exclude", "cluster", "singletons")


def check_index(index: str | Index) -> None:
    """Check that an index keeps its promises.

    Checked are: what it declares; its laws; its range; that one partition scores as it does among
    many; float32; sparse data; weights; noise. All data are drawn here from fixed seeds.

    Parameters
    ----------
    index : str or Index
        A name of ``wellsep.INDICES``, or an index that need not be there.

    Raises
    ------
    AssertionError
        With the promise that was broken.

    Examples
    --------
    >>> from wellsep.testing import check_index
    >>> check_index("davies_bouldin")
    """
    if not isinstance(index, str | Index):
        raise TypeError(f"index must be a name or an Index, got {shown(index)}.")
    with _registered(index) as name:
        declared = INDICES[name]
        check_facts(name)
        check_one_and_many(name)
        check_sparse(name)
        if "translation" in declared.laws:
            check_far_translation(name)
        for seed in SEEDS:
            check_range(name, seed)
            check_float32(name, seed)
            for law in declared.laws:
                check_law(name, law, seed)
            if declared.weighted:
                check_weight_zero(name, seed)
        if declared.weighted:
            check_weights_of_one(name)
        else:
            check_weights_refused(name)
        if declared.price != "included":
            check_excluded_noise(name)
        for noise in NOISE_CHECKED:
            check_noise_labels(name, noise)


@contextlib.contextmanager
def _registered(index: str | Index) -> Iterator[str]:
    """The name under which the index can be scored meanwhile."""
    if isinstance(index, str):
        yield index
        return
    before = INDICES._entries.get(index.name)
    INDICES.add(index, overwrite=True)
    try:
        yield index.name
    finally:
        del INDICES._entries[index.name]
        if before is not None:
            INDICES._entries[index.name] = before
