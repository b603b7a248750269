"""What an index is: its formula, the statistics it needs, the laws it obeys; the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wellsep._checks.arrays import UndefinedIndex, check_choice, check_number
from wellsep._checks.values import check_flag, check_mapping, check_names, check_text
from wellsep._plugins import new_plugins
from wellsep._text.sentences import in_short, shown
from wellsep.compute.metrics.table import find
from wellsep.compute.requests import Want, want
from wellsep.distances.base import PRECOMPUTED
from wellsep.indices.noise_prices import PRICES, Price
from wellsep.partitions import Partitions

# What does not matter: names of clusters, order of objects, and changes of the coordinates.
LAWS = ("labels", "order", "translation", "rotation", "scale")
COSTS = ("n·d", "n·K·d", "n²·d", "fits")
Score = float | np.ndarray  # (B,) where the statistics are those of B half-samples


@dataclass(frozen=True, repr=False)
class Index:
    """A validity index, ready to be computed among many in one pass.

    Attributes
    ----------
    name : str
        As used in ``score_partitions(indices=...)``.
    title, words, citation, caution : str
        Name for people; the formula in words; where it comes from; when not to trust it.
    formula : callable
        ``formula(**statistics, **params) -> float``, or raises ``UndefinedIndex`` with the reason.
    wants : callable
        ``wants(**params) -> {parameter of the formula: Want}``.
    params : mapping
        Parameters with their defaults.
    direction : {1, -1}
        1 if greater is better.
    range : tuple of float
    cost : str
        How work grows: "n·d", "n·K·d" or "n²·d".
    laws : tuple of str
        Changes of the input that leave the value alone.
    sparse, weighted, distances : bool
        Whether sparse X, sample weights, and `Distances` in place of coordinates are accepted.
    price : str or None
        What noise costs under ``noise="penalize"``: "zero", "variance", "inverse", "included" (the
        value counts noise already), or None where it has no rule for noise.
    """

    name: str
    title: str
    formula: Callable[..., Score]
    wants: Callable[..., dict[str, Want]]
    direction: int
    range: tuple[float, float]
    cost: str
    citation: str
    params: Mapping[str, Any] = field(default_factory=dict)
    laws: tuple[str, ...] = LAWS
    metrics: tuple[str, ...] = ("euclidean",)
    sparse: bool = False
    sparse_sums: bool = False  # sparse X is accepted under metrics that sum without pairs
    weighted: bool = True
    distances: bool = False
    minimum_clusters: int = 2
    price: str | None = None
    caution: str = ""
    words: str = ""

    def __repr__(self) -> str:
        better = "greater" if self.direction > 0 else "smaller"
        low, high = (f"{end:g}".replace("inf", "∞") for end in self.range)
        params = "".join(f", {key}={in_short(value)}" for key, value in self.params.items())
        return f"Index({self.name!r}, {self.title}, {better} is better, {low} … {high}{params})"

    def with_params(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the index with the given ones in place of their defaults."""
        check_mapping("given", given)
        unknown = sorted(set(check_names("given", list(given))) - set(self.params))
        if unknown:
            names = ", ".join(self.params) or "none"
            raise ValueError(
                f"parameters of {self.name!r} must be among: {names}; got {unknown[0]!r}."
            )
        if "metric" in given:
            find(given["metric"])  # refuses what is no metric
        return {**self.params, **given}

    def in_space(self, params: Mapping[str, Any], own_metric: str | None) -> dict[str, Any]:
        """Return the parameters in a space of distances (``own_metric`` None: of coordinates)."""
        if own_metric is None:
            return dict(params)
        if not self.distances:
            usable = ", ".join(name for name in INDICES if INDICES[name].distances)
            raise ValueError(
                f"X must have coordinates for {self.name!r}, got distances; indices that take "
                f"distances: {usable}."
            )
        given = params["metric"]
        # PRECOMPUTED says no more than that X holds distances.
        if find(given) not in map(find, (self.params["metric"], own_metric, PRECOMPUTED)):
            raise ValueError(
                f"metric must be left out for {self.name!r} where X holds distances, got {given!r}."
            )
        return {**params, "metric": own_metric}

    def price_for(self, partitions: Partitions, m: int) -> Price:
        """What the noise of a partition costs; nothing where it has none, or is not priced."""
        costs = partitions.priced and partitions.coverage[m] < 1
        return PRICES[self.price if costs and self.price is not None else "included"]

    def label(self, params: Mapping[str, Any]) -> str:
        """The name as shown: parameters that differ from the default are spelled out."""
        changed = [f"{k}={v}" for k, v in params.items() if v != self.params[k]]
        return f"{self.name}({', '.join(changed)})" if changed else self.name


class Registry(Mapping[str, Index]):
    """Name → Index. Third parties add theirs with ``register_index``, or by an entry point.

    Entry points of ``wellsep.indices`` are read when a name is unknown and when names are listed.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Index] = {}

    def __getitem__(self, name: str) -> Index:
        if name not in self._entries and name not in self:
            raise KeyError(f"index must be one of {', '.join(self)}, got {name!r}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            self._read_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._read_plugins()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._read_plugins()
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self)})"

    def _read_plugins(self) -> None:
        """Add what other packages bring; a name that is taken stays as it is."""
        for index in new_plugins("wellsep.indices", Index, self._entries):
            self.add(index)

    def add(self, index: Index, *, overwrite: bool = False) -> Index:
        """Register an index under its name; an existing one only with `overwrite=True`."""
        if index.name in self._entries and not overwrite:
            raise ValueError(f"index name must be new, got {index.name!r}, which exists already.")
        check_choice("direction", index.direction, (1, -1))
        for law in index.laws:
            check_choice("laws", law, LAWS)
        check_choice("price", index.price, (None, *PRICES))
        if index.price is not None and not PRICES[index.price].suits(index.direction, index.range):
            raise ValueError(
                f"price must be None or suit direction and range of {index.name!r}, got "
                f"{index.price!r}; that is for indices of this kind: {PRICES[index.price].rule}."
            )
        self._entries[index.name] = index
        return index


INDICES = Registry()


def refuse_unpriced(asked: Iterable[tuple[Index, Any]], partitions: Partitions) -> None:
    """Where noise is priced, an index without a price cannot compare partitions that have some."""
    noisy = np.flatnonzero(partitions.coverage < 1)
    for index, _ in asked:
        if index.price is None and len(noisy):
            usable = ", ".join(name for name in INDICES if INDICES[name].price)
            raise ValueError(
                f"noise must not be 'penalize' for {index.name!r}, which has no rule for the noise "
                f"(label -1) in {partitions.names[noisy[0]]!r}; choose noise='exclude', or an "
                f"index that has one: {usable}."
            )


def index(**facts: Any) -> Callable[[Callable[..., Score]], Callable[..., Score]]:
    """Register the decorated formula; its keyword-only parameters are the index's own.

    Its other parameters name the statistics it needs. Only a formula whose own parameters change
    a statistic says so in ``wants``.
    """

    def keep(formula: Callable[..., Score]) -> Callable[..., Score]:
        INDICES.add(make_index(formula, **facts))
        return formula

    return keep


def make_index(formula: Callable[..., Score], **facts: Any) -> Index:
    """The index of a formula, not registered: what an entry point of another package names."""
    signature = inspect.signature(formula).parameters.values()
    params = {p.name: p.default for p in signature if p.kind is p.KEYWORD_ONLY}
    needed = [p.name for p in signature if p.kind is not p.KEYWORD_ONLY]

    def wants(**params: Any) -> dict[str, Want]:
        return {name: want(name) for name in needed}

    return Index(**{"formula": formula, "params": params, "wants": wants, **facts})


def register_index(
    name: str,
    function: Callable[[Any, np.ndarray], float],
    *,
    direction: int,
    title: str | None = None,
    range: tuple[float, float] = (-np.inf, np.inf),
    laws: tuple[str, ...] = (),
    cost: str = "fits",
    citation: str = "",
    price: str | None = None,
    overwrite: bool = False,
) -> Index:
    """Add an index of your own: any ``function(X, labels) -> float``.

    It is called once per partition with the counted objects only; what it raises as
    ``UndefinedIndex`` or returns as NaN counts as undefined.

    Parameters
    ----------
    name : str
        Name of the index in tables and on the command line.
    function : callable
        ``function(X, labels)`` returns the value of one clustering.
    direction : {1, -1}
        1 if greater is better.
    title : str, optional
        Name for people; by default the name.
    range : (float, float)
        Smallest and largest value.
    laws : tuple of str
        Of "labels", "order", "translation", "rotation", "scale".
    cost : str
        How the work grows, such as "n·d".
    citation : str
        The paper that proposes it.
    price : {None, "zero", "variance", "inverse"}
        What noise costs under ``noise="penalize"`` (see the guide on noise); None refuses noise.
    overwrite : bool
        Replace an index of the same name instead of raising.

    Examples
    --------
    >>> import wellsep as ws
    >>> entry = ws.register_index("n_rows", lambda X, labels: float(len(X)), direction=1)
    >>> scores = ws.score_partitions([[0.0], [1.0], [5.0]], [0, 0, 1], ["n_rows"])
    >>> float(scores.values[0, 0])
    3.0
    """
    title = name if title is None else title
    texts: dict[str, Any] = {"name": name, "title": title, "cost": cost, "citation": citation}
    for field_name, text in texts.items():
        check_text(field_name, text)
    if not callable(function):
        raise TypeError(f"function must be a function of X and labels, got {shown(function)}.")
    check_flag("overwrite", overwrite)
    if not isinstance(range, tuple | list) or len(range) != 2:
        raise TypeError(f"range must be a pair of numbers, got {shown(range)}.")
    low, high = (check_number("range", limit, infinite=True) for limit in range)
    if not low < high:
        raise ValueError(f"range must have its lower end first, got {shown(range)}.")

    def formula(objects: Any) -> float:
        counted = objects.codes >= 0
        X = objects.X if counted.all() else objects.X[counted]
        value = float(function(X, objects.codes[counted]))
        if np.isnan(value):
            raise UndefinedIndex(f"{name} returned NaN")
        return value

    made = Index(
        **texts,
        formula=formula,
        wants=lambda: {"objects": want("objects")},
        direction=direction,
        range=(low, high),
        laws=tuple(check_names("laws", laws)),
        sparse=True,
        weighted=False,
        minimum_clusters=1,
        price=price,
    )
    return INDICES.add(made, overwrite=overwrite)
