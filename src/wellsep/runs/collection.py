"""Runs: spaces and partitions of the same objects, and what they must agree on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from wellsep._checks.arrays import check_choice
from wellsep._checks.values import check_flag, check_items, check_mapping, check_names, check_path
from wellsep._text.sentences import count, html_box, html_table, printable, quoted, shown
from wellsep.runs.folder import save_runs
from wellsep.runs.run import Part, Run, clusters_in_words, pieces_of, space_in_words

_MOST_ROWS = 8  # a repr has at most ten lines


class NoRuns(ValueError):
    """No runs were found; the message says where they were expected."""

    exit_code = 1  # of the command line: no answer, rather than bad input


class Features(NamedTuple):
    """What was measured of the objects: the names of the columns, and how to read some rows."""

    names: tuple[str, ...]
    rows: Callable[[np.ndarray], np.ndarray]  # positions of s objects -> (s, F)


@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """L spaces and M partitions of the same objects in the same order.

    A sequence of `Run`. A run with labels is a partition, a run with an embedding a space, a run
    with both is a partition and the space it was made in. Their numbers may differ: twelve
    partitions can be ranked in four spaces.

    Parameters
    ----------
    runs : iterable of Run
        At least one; names unique, equal numbers of objects, equal ids where they are given.
    layouts : mapping of str to array-like of shape (n_objects, 2), optional
        Drawings of the objects, such as UMAP. They are offered for drawing and never judged.
    notes : sequence of str, optional
        Sentences on what was left out when the runs were read.
    objects : mapping of str to array-like of shape (n_objects,), optional
        What else is known about the objects, such as columns of AnnData's ``obs``. The page offers
        them as colours; they are never judged.
    features : Features, optional
        What was measured of the objects, such as the genes of AnnData's ``X``. Clusters are
        described by it, and it is tested whether there are any; it is never judged.

    Examples
    --------
    >>> from wellsep.runs import Run, Runs
    >>> runs = Runs([
    ...     Run("a", labels=[0, 0, 1], embedding=[[0.0], [0.1], [5.0]]),
    ...     Run("b", labels=[0, 1, 1], embedding=[[0.0, 1.0], [3.0, 1.0], [3.1, 1.0]]),
    ... ])
    >>> runs.names, runs.n_objects, runs.paired
    (('a', 'b'), 3, True)
    >>> runs.spaces["b"].shape, runs.partitions["a"].tolist(), runs.made_in.tolist()
    ((3, 2), [0, 0, 1], [0, 1])
    """

    runs: tuple[Run, ...]
    layouts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    objects: Mapping[str, Any] = field(default_factory=dict)
    features: Features | None = None

    def __post_init__(self) -> None:
        check_mapping("layouts", self.layouts)
        check_mapping("objects", self.objects)
        object.__setattr__(self, "notes", tuple(check_names("notes", self.notes)))
        runs = tuple(check_items("runs", self.runs, "Run records"))
        for run in runs:
            if not isinstance(run, Run):
                raise TypeError(f"runs must hold Run records, got {type(run).__name__}.")
        if not runs:
            raise NoRuns("runs must hold at least one run, got none.")
        object.__setattr__(self, "runs", runs)
        _check_names(runs)
        _check_counts(runs)
        spaces = [run.name for run in runs if run.has_embedding]
        for run in runs:
            check_space(run, spaces)
        _ = self.ids  # refused where they differ
        for name, values in self.objects.items():
            if len(values) != self.n_objects:
                raise ValueError(
                    f"objects[{name!r}] must have one value per object ({self.n_objects}), got "
                    f"{len(values)}."
                )

    @classmethod
    def from_parts(
        cls,
        spaces: Mapping[str, Any] | None = None,
        partitions: Mapping[str, Any] | None = None,
        *,
        pairs: Mapping[str, str] | None = None,
        ids: Any = None,
    ) -> Runs:
        """Runs from named spaces and named partitions.

        Parameters
        ----------
        spaces, partitions : mapping of str to array-like
            A name that is in both is one run: the partition made in that space.
        pairs : mapping of partition name to space name, optional
            In which space a partition was made, where the names do not say it.
        ids : array-like, optional
            Names of the objects.

        Examples
        --------
        >>> from wellsep.runs import Runs
        >>> X = [[0.0], [0.1], [5.0]]
        >>> runs = Runs.from_parts({"pca": X}, {"k2": [0, 0, 1], "k3": [0, 1, 2]},
        ...                        pairs={"k2": "pca"})
        >>> runs
        Runs(1 space × 2 partitions of 3 objects, 1 of 2 partitions paired with a space)
          pca  space of 1 feature (float64)
          k2   2 clusters, made in 'pca'
          k3   3 clusters
        """
        for what, given in (("spaces", spaces), ("partitions", partitions), ("pairs", pairs)):
            if given is not None:
                check_mapping(what, given)
                check_names(what, list(given))
        spaces, partitions, pairs = dict(spaces or {}), dict(partitions or {}), dict(pairs or {})
        for name, space in pairs.items():
            if name not in partitions:
                raise ValueError(
                    f"pairs must name partitions, got {name!r}; there are {quoted(partitions)}."
                )
            if isinstance(space, str) and space not in spaces:
                raise ValueError(
                    f"pairs must name spaces, got {space!r} for {name!r}; there are "
                    f"{quoted(spaces)}."
                )
        if ids is not None:
            ids = Part("ids", ids, "all")
        names = [*spaces, *(name for name in partitions if name not in spaces)]
        return cls(
            tuple(
                Run(
                    name,
                    labels=partitions.get(name),
                    embedding=spaces.get(name),
                    ids=ids,
                    space=pairs.get(name),
                )
                for name in names
            )
        )

    @classmethod
    def from_iterator(cls, runs: Iterable[tuple[str, Any, Any]]) -> Runs:
        """Runs from (name, embedding, labels), one after the other.

        Parameters
        ----------
        runs : iterable of (str, array-like or None, array-like or None)
            A list, a generator, or anything else to loop over. A None stands for an embedding or
            labels that a run does not have.

        Examples
        --------
        >>> from wellsep.runs import Runs
        >>> X = [[0.0], [0.1], [5.0], [5.2]]
        >>> Runs.from_iterator((f"k{k}", X, [i % k for i in range(4)]) for k in (2, 3))
        Runs(2 spaces × 2 partitions of 4 objects, paired)
          k2  space of 1 feature (float64), 2 clusters
          k3  space of 1 feature (float64), 3 clusters
        """
        made = []
        for triple in check_items("runs", runs, "(name, embedding, labels)"):
            if not isinstance(triple, tuple | list) or len(triple) != 3:
                raise TypeError(
                    f"runs must hold (name, embedding, labels), got {shown(triple)}; labels alone "
                    "are a mapping {name: labels}, which wellsep.consensus takes as well."
                )
            made.append(Run(*triple))
        return cls(tuple(made))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the runs, in order."""
        return tuple(run.name for run in self.runs)

    @property
    def n_objects(self) -> int:
        """Number of objects, the same in every run."""
        return self.runs[0].n_objects

    @cached_property
    def ids(self) -> np.ndarray | None:
        """Names of the objects, where any run gave them."""
        return _common_ids(self.runs)

    @property
    def spaces(self) -> Mapping[str, np.ndarray]:
        """Name → embedding (n_objects, n_features), memory-mapped where it is on disk.

        It is opened when asked for. The first opening reads it through and refuses NaN and
        infinity, naming run and place.
        """
        return Parts(self.runs, "embedding")

    @property
    def partitions(self) -> Mapping[str, np.ndarray]:
        """Name → labels (n_objects,)."""
        return Parts(self.runs, "labels")

    @property
    def params(self) -> dict[str, dict[str, Any]]:
        """Name → params of the run."""
        return {run.name: run.params for run in self.runs}

    @property
    def metadata(self) -> dict[str, dict[str, Any]]:
        """Name → metadata of the run."""
        return {run.name: run.metadata for run in self.runs}

    @property
    def made_in(self) -> np.ndarray:
        """For every partition the index of the space it was made in, or -1; in their orders."""
        place: dict[str | None, int] = {name: i for i, name in enumerate(self.spaces)}
        made = (run.name if run.has_embedding else run.space for run in self.runs if run.has_labels)
        made_in = np.fromiter((place.get(name, -1) for name in made), np.intp)
        made_in.flags.writeable = False
        return made_in

    @property
    def paired(self) -> bool:
        """Whether every partition has a space it was made in."""
        made_in = self.made_in
        return bool(len(made_in) and (made_in >= 0).all())

    def open_layout(self, name: str) -> np.ndarray:
        """The drawing called ``name``, one of ``layouts``: two coordinates for each object."""
        check_choice("name", name, self.layouts)
        return Part("embedding", self.layouts[name], name).open()

    def subset(
        self,
        names: Iterable[str] | None = None,
        *,
        spaces: Iterable[str] | None = None,
        partitions: Iterable[str] | None = None,
    ) -> Runs:
        """The runs with these names, in the order of ``self``.

        ``spaces`` and ``partitions`` choose separately which embeddings and which labels stay. A
        partition whose space is left out stays, unpaired.

        Examples
        --------
        >>> from wellsep.runs import Runs
        >>> runs = Runs.from_parts({"a": [[0.0], [1.0]], "b": [[2.0], [1.0]]},
        ...                        {"a": [0, 1], "b": [0, 0]})
        >>> judged = runs.subset(spaces=["b"])
        >>> list(judged.spaces), list(judged.partitions), judged.made_in.tolist()
        (['b'], ['a', 'b'], [-1, 0])
        """
        kept = self._chosen(names, self.names, "names")
        with_space = self._chosen(spaces, self.spaces, "spaces") & kept
        with_labels = self._chosen(partitions, self.partitions, "partitions") & kept
        smaller = []
        for run in self.runs:
            dropped: dict[str, Any] = {}
            if run.has_embedding and run.name not in with_space:
                dropped["embedding"] = None
            if run.has_labels and run.name not in with_labels:
                dropped["labels"] = None
            if run.space is not None and run.space not in with_space:
                dropped["space"] = None
            if run.name in with_space or run.name in with_labels:
                smaller.append(run._with(**dropped) if dropped else run)
        return replace(self, runs=tuple(smaller))

    def _chosen(self, wanted: Iterable[str] | None, there: Iterable[str], what: str) -> set[str]:
        there = list(there)
        if wanted is None:
            return set(there)
        wanted = check_names(what, wanted)
        for name in wanted:
            if name not in there:
                raise ValueError(f"{what} must be among {quoted(there)}, got {name!r}.")
        return set(wanted)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write every run under a folder, or all of them to one file that ends in ``.npz``.

        `load_runs` reads both.
        """
        save_runs(check_path("path", path), self, overwrite=check_flag("overwrite", overwrite))

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, slice):
            return self.subset([run.name for run in self.runs[key]])
        if isinstance(key, str):
            for run in self.runs:
                if run.name == key:
                    return run
            raise KeyError(f"no run is called {key!r}; there are {quoted(self.names)}")
        return self.runs[key]

    def __repr__(self) -> str:
        lines = [f"Runs({_summary(self)})"]
        shown = self.runs[:_MOST_ROWS]
        names = [printable(run.name, 40) for run in shown]
        width = max(map(len, names))
        lines += [
            f"  {name:<{width}}  {', '.join(pieces_of(run))}"
            for name, run in zip(names, shown, strict=True)
        ]
        if len(self) > _MOST_ROWS:
            lines.append(f"  … and {len(self) - _MOST_ROWS} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = {
            "run": [run.name for run in self.runs],
            "space": [space_in_words(run) or "–" for run in self.runs],
            "partition": [clusters_in_words(run) or "–" for run in self.runs[:_MOST_ROWS]],
            "params": [
                printable(", ".join(f"{key}={value}" for key, value in run.params.items()), 80)
                for run in self.runs
            ],
        }
        columns["partition"] += ["–"] * (len(self) - len(columns["partition"]))
        return html_box(_summary(self), table=html_table(columns, most=_MOST_ROWS))


def _check_names(runs: Sequence[Run]) -> None:
    seen: set[str] = set()
    for run in runs:
        if run.name in seen:
            raise ValueError(f"names of runs must be unique, got {run.name!r} twice.")
        seen.add(run.name)


def _check_counts(runs: Sequence[Run]) -> None:
    counts = [run.n_objects for run in runs]
    # The odd one out is named against the number most runs have.
    usual = max(dict.fromkeys(counts), key=counts.count)
    model = runs[counts.index(usual)]
    for run in runs:
        if run.n_objects != usual:
            raise ValueError(
                f"run {run.name!r} must have the {usual} objects that run {model.name!r} has, "
                f"got {run.n_objects}; all runs must describe the same objects in the same order."
            )


def check_space(run: Run, spaces: Sequence[str]) -> None:
    """Refuse a run that names a space which is not there."""
    if run.space is not None and run.space not in spaces:
        raise ValueError(
            f"space of run {run.name!r} must be a run with an embedding, got {run.space!r}; "
            f"there are {quoted(spaces)}."
        )


def _common_ids(runs: Sequence[Run]) -> np.ndarray | None:
    """The ids all runs that have any agree on."""
    first, ids = runs[0], None
    for run in runs:
        part = run._part("ids")
        if part is None:
            continue
        if ids is None:
            first, ids = run, part.open()
        else:
            _check_same_ids(first, ids, run, part.open())
    return ids


def _check_same_ids(first: Run, ids: np.ndarray, run: Run, others: np.ndarray) -> None:
    if ids is others:
        return
    if (ids.dtype.kind == "U") != (others.dtype.kind == "U"):  # numbers read from a text file
        ids, others = ids.astype(np.str_), others.astype(np.str_)
    differ = ids != others
    if differ.any():
        where = int(np.flatnonzero(differ)[0])
        same = np.array_equal(np.sort(ids), np.sort(others))
        remedy = "sort its objects alike" if same else "use the same objects in every run"
        raise ValueError(
            f"ids of run {run.name!r} must equal those of run {first.name!r}, got "
            f"{others[where].item()!r} in place of {ids[where].item()!r} at position {where}; "
            f"{remedy}."
        )


class Parts(Mapping[str, np.ndarray]):
    """Name → array, opened when asked for."""

    def __init__(self, runs: Iterable[Run], kind: str):
        self._runs = {run.name: run for run in runs if run._part(kind) is not None}
        self._kind = kind

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            run = self._runs[name]
        except (KeyError, TypeError):
            what = "space" if self._kind == "embedding" else "partition"
            raise KeyError(f"no {what} is called {name!r}; there are {quoted(self)}") from None
        return getattr(run, self._kind)

    def __contains__(self, name: object) -> bool:
        return name in self._runs

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        what = "spaces" if self._kind == "embedding" else "partitions"
        return f"<{len(self)} {what}: {quoted(self)}>"


def _summary(runs: Runs) -> str:
    spaces, partitions = len(runs.spaces), len(runs.partitions)
    known = int((runs.made_in >= 0).sum())
    if known == partitions:
        paired = "paired"
    elif known == 0:
        paired = "not paired"
    else:
        paired = f"{known} of {partitions} partitions paired with a space"
    size = f"{count(spaces, 'space')} × {count(partitions, 'partition')}"
    tail = f", {paired}" if spaces and partitions else ""
    return f"{size} of {count(runs.n_objects, 'object')}{tail}"


def below(path: str, runs: Iterable[Run]) -> list[Run]:
    """The runs with a path before their names, also where they name the space of each other."""
    runs = list(runs)
    names = {run.name for run in runs}
    return [
        run._with(
            name=f"{path}/{run.name}",
            space=f"{path}/{run.space}" if run.space in names else run.space,
        )
        for run in runs
    ]


def join_runs(parts: Mapping[str, Runs]) -> Runs:
    """The runs of several sources; one with a name that another has puts its path before all."""
    times = Counter(name for runs in parts.values() for name in runs.names)
    joined: list[Run] = []
    for path, runs in parts.items():
        joined += below(path, runs) if any(times[name] > 1 for name in runs.names) else runs
    notes = tuple(dict.fromkeys(note for runs in parts.values() for note in runs.notes))
    return Runs(tuple(joined), notes=notes)
