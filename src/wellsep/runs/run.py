"""Run: a partition, the space it was made in, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wellsep.runs.arrays import Part
from wellsep.runs.names import check_name
from wellsep.runs.plain import plain_mapping


class _Opened:
    """A field given as an array or as something stored, read as an array opened on demand."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}"

    def __get__(self, run: Any, owner: type | None = None) -> Any:
        part = None if run is None else run.__dict__[self.slot]
        return part.open() if isinstance(part, Part) else part

    def __set__(self, run: Any, value: Any) -> None:
        run.__dict__[self.slot] = value


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A partition, the space it was made in, or both, with a name.

    Parameters
    ----------
    name : str
        Any text; unique among the runs judged together.
    labels : array-like of shape (n_objects,), optional
        Integers, text or categories; -1 marks noise. Kept as a read-only NumPy array.
    embedding : array-like of shape (n_objects, n_features), optional
        The space. It is not copied. NaN and infinity are refused when it is first opened.
    params, metadata : mapping, optional
        Settings that made the run, and anything else worth keeping: JSON data.
    ids : array-like of shape (n_objects,), optional
        What the objects are called, to prove that runs agree on their order.
    space : str, optional
        Name of the run whose embedding the labels were made in, when this run has none itself.

    Examples
    --------
    >>> from wellsep.runs import Run
    >>> run = Run("k2", labels=[0, 0, 1], embedding=[[0.0], [0.1], [5.0]], params={"k": 2})
    >>> run
    Run('k2', 3 objects, space of 1 feature (float64), 2 clusters)
    >>> run.embedding.shape, run.params
    ((3, 1), {'k': 2})
    """

    name: str
    labels: Any = _Opened()
    embedding: Any = _Opened()
    params: Any = None
    metadata: Any = None
    ids: Any = _Opened()
    space: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        known = self.__dict__
        for kind in ("labels", "embedding", "ids"):
            value = known[f"_{kind}"]
            if value is not None:
                # A part taken over from another run speaks of itself under this name.
                value = (
                    value.renamed(self.name)
                    if isinstance(value, Part)
                    else Part(kind, value, self.name)
                )
            known[f"_{kind}"] = value
        if not (self.has_labels or self.has_embedding):
            raise ValueError(f"run {self.name!r} must have labels or an embedding, got neither.")
        for kind in ("params", "metadata"):
            known[kind] = plain_mapping(known[kind], f"{kind} of run {self.name!r}")
        if self.space is not None:
            check_name(self.space, f"space of run {self.name!r}")
            if self.has_embedding and self.space != self.name:
                raise ValueError(
                    f"space of run {self.name!r} must be left out when the run has an embedding, "
                    f"got {self.space!r}."
                )
        self._check_lengths()

    def _check_lengths(self) -> None:
        sizes = {p.kind: p.shape[0] for p in (self._part(k) for k in _KINDS) if p is not None}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{count} in {kind}" for kind, count in sizes.items())
            raise ValueError(
                f"run {self.name!r} must have the same number of objects throughout, got {listed}."
            )

    def _part(self, kind: str) -> Part | None:
        return self.__dict__[f"_{kind}"]

    @property
    def has_labels(self) -> bool:
        """Whether the run has a partition."""
        return self._part("labels") is not None

    @property
    def has_embedding(self) -> bool:
        """Whether the run has an embedding."""
        return self._part("embedding") is not None

    @property
    def n_objects(self) -> int:
        """Number of objects, known without opening a file."""
        return next(p.shape[0] for p in (self._part(k) for k in _KINDS) if p is not None)

    @property
    def n_features(self) -> int | None:
        """Number of columns of the embedding, without opening it; None without one."""
        part = self._part("embedding")
        return None if part is None else part.shape[1]

    def digest(self) -> str:
        """SHA-256 of the embedding's type, shape and values: equal spaces have equal digests."""
        part = self._part("embedding")
        if part is None:
            raise ValueError(f"run {self.name!r} must have an embedding to be digested, got none.")
        return part.digest()

    def _with(self, **changes: Any) -> Run:
        """A copy that shares what is open; a field of arrays can only be dropped."""
        given = {k: self._part(k) for k in _KINDS}
        others = {k: getattr(self, k) for k in ("name", "params", "metadata", "space")}
        return Run(**{**given, **others, **changes})

    def __repr__(self) -> str:
        from wellsep.runs.view import describe_run

        return f"Run({self.name!r}, {describe_run(self)})"


_KINDS = ("labels", "embedding", "ids")
