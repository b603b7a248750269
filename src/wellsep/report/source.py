"""What a page rests on: result, runs or data, what is known of the objects; where it comes from."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep import __version__
from wellsep._checks.arrays import check_data, is_frame, to_numpy
from wellsep._files.arrays import digest
from wellsep.distances.base import PairSpace
from wellsep.evaluate import (
    AceResult,
    ClusterDescription,
    Judgement,
    PartitionDetails,
    Ranking,
)
from wellsep.evaluate.clusters.describing import describe_best
from wellsep.evaluate.clusters.objects import object_details
from wellsep.evaluate.kept_codes import KeptCodes
from wellsep.partitions import Partitions, encode
from wellsep.report.sections.objects import known_columns
from wellsep.report.sections.scatter import MOST_DRAWN
from wellsep.runs import Runs
from wellsep.spaces.drawing_planes import drawn_objects

DATA = "the data"
_LOOK = 16  # rows of each embedding that the digest reads


class Labels(NamedTuple):
    """The clusters of the drawn objects in one partition."""

    codes: np.ndarray  # (s,) -1 = noise
    clusters: tuple[str, ...]
    sizes: np.ndarray  # (K,) of all objects


@dataclass(frozen=True, eq=False)
class Evidence:
    """A judgement and what else the page knows; None where it was not given."""

    judgement: Judgement
    ace: AceResult | None  # whoever decides; None without embeddings, or if all runs are equal
    spaces: tuple[str, ...]
    made_in: np.ndarray  # (M,) the space each partition was made in, -1 where none is known
    drawn: np.ndarray  # (s,) positions of the objects whose clusters are known
    labels: Mapping[str, Labels]  # of the first run of each distinct partition, best first
    details: PartitionDetails | None
    described: Mapping[str, ClusterDescription]  # best first
    runs: Runs | None
    n_objects: int
    ids: np.ndarray | None
    params: Mapping[str, Mapping[str, Any]]
    truth: np.ndarray | None
    known: Mapping[str, Any]  # columns about the objects


def collect_evidence(
    judgement: Judgement, *, runs: Any, truth: Any, objects: Any = None
) -> Evidence:
    """Bring together what was given, and refuse what does not fit together."""
    ranking, scores, ace = judgement.ranking, judgement.scores, judgement.by_ace
    details = judgement.details
    described = {} if judgement.clusters is None else judgement.clusters.descriptions
    codes, n, ids, params = judgement.codes, scores.n_objects, scores.ids, scores.params
    if runs is not None:
        _check_runs(ranking, runs)
        n, params = runs.n_objects, runs.params
        ids = ids if runs.ids is None else runs.ids
        if codes is None:
            codes = _codes(ranking, runs, scores.plot_coordinates)
        if details is None and ace is not None:
            noise = "exclude" if scores.settings is None else scores.settings.noise  # as judged
            space = ace.heaviest_spaces[0][0]
            best = encode(runs.partitions[ranking.best], noise=noise, name=ranking.best)
            details = object_details(runs.spaces[space], best, space)
            pair = [(ranking.best, space)]
            described = describe_best(
                runs.spaces, best, pair, X=runs.features, ids=runs.ids, details=details
            )
    if truth is not None:
        if runs is None:
            raise ValueError("truth must come with runs, got none; pass runs=load_runs(folder).")
        truth = to_numpy(truth, "truth").reshape(-1)
        if len(truth) != n:
            raise ValueError(f"truth must have one class per object ({n}), got {len(truth)}.")
    if objects is None:  # what came with the runs
        objects = {} if runs is None else runs.objects
    return Evidence(
        judgement=judgement,
        ace=ace,
        spaces=tuple(scores.spaces),
        made_in=np.asarray(scores.made_in),
        drawn=np.arange(0) if codes is None else codes.objects,
        labels={} if codes is None else _labels(ranking, codes),
        details=details,
        described=described,
        runs=runs,
        n_objects=n,
        ids=ids,
        params=params,
        truth=truth,
        known=known_columns(objects, n, ids),
    )


def _codes(ranking: Ranking, runs: Runs, planes: Any) -> KeptCodes | None:
    """The clusters of some objects, where the judgement kept none."""
    first = [ranking.names[i] for i in ranking.classes.first]
    distinct = Partitions.from_labels({name: runs.partitions[name] for name in first})
    objects = drawn_objects(runs.n_objects, MOST_DRAWN) if planes is None else planes.objects
    return KeptCodes.keep(distinct, objects, [])


def _labels(ranking: Ranking, codes: KeptCodes) -> dict[str, Labels]:
    found = {}
    for i in ranking.first_of_each:
        m = int(ranking.classes.of[i])
        found[ranking.names[i]] = Labels(codes.drawn[m], codes.labels_of(m), codes.sizes_of(m))
    return found


def _check_runs(ranking: Ranking, runs: Any) -> None:
    if not isinstance(runs, Runs):
        raise TypeError(
            f"runs must be Runs, got {type(runs).__name__}; load a folder with load_runs."
        )
    for what, names, there in (
        ("partition", ranking.names, runs.partitions),
        ("space", () if ranking.by_ace is None else ranking.by_ace.spaces, runs.spaces),
    ):
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(
                f"runs must hold every {what} that was ranked, got none called {missing[0]!r}."
            )


class Given(NamedTuple):
    """One data set: as it was clustered, the names of the objects, what clusters are told by."""

    X: Any
    ids: Any
    table: Any  # a frame where there is one


def given_data(
    runs: Any, least: int, which: str, *, features: Any = None, more: bool = False
) -> Given:
    """The data of a page about one data set.

    ``runs`` are a matrix, a sparse one, a frame, distances, or runs of one space; ``features``
    other columns of the same objects. With ``more`` there may be further objects.

    Examples
    --------
    >>> data = given_data([[0.0], [1.0]], 2, "that were clustered")
    >>> data.X.shape, data.ids
    ((2, 1), None)
    """
    X: Any
    ids: Any = None
    if isinstance(runs, Runs):
        spaces = list(runs.spaces)
        if len(spaces) != 1:
            raise ValueError(f"runs must hold one space for this result, got {len(spaces)}.")
        X, ids = runs.spaces[spaces[0]], runs.ids
    elif isinstance(runs, PairSpace):
        X, ids = runs, runs.names
    else:
        if hasattr(runs, "iloc"):
            ids = [str(name) for name in runs.index]
        X = check_data(runs, name="runs", sparse=True)
    n = X.shape[0]
    if n < least or (n > least and not more):
        raise ValueError(f"runs must hold the {least} objects {which}, got {n}.")
    if sp.issparse(X):
        X = sp.csr_array(X)
    elif not isinstance(X, PairSpace):
        X = to_numpy(X)
    table = runs if is_frame(runs) else X
    if features is not None:
        table = features
        if not is_frame(features):
            table = check_data(features, name="features", sparse=True)
        if table.shape[0] != n:
            raise ValueError(f"features must have one row per object ({n}), got {table.shape[0]}.")
    return Given(X, ids, table)


def provenance(result: Any, *, runs: Any, command: str | None) -> tuple[tuple[str, str], ...]:
    """Pairs of a word and a text; the first, where it is known, makes the page again.

    Examples
    --------
    >>> import wellsep as ws
    >>> result = ws.ace(ws.Scores.from_matrix([[0.1, 0.5], [0.2, 0.6]]), dip=False)
    >>> [word for word, _ in provenance(result, runs=None, command="wellsep rank runs/")]
    ['Reproduce', 'Version', 'Date']
    """
    found = {}
    again = command or _call(result)
    if again:
        found["Reproduce"] = again
    options = result.options if isinstance(result, Judgement) else {}
    if options:
        found["Options"] = ", ".join(f"{name}={value!r}" for name, value in options.items())
        found["Seed"] = str(options.get("random_state"))
    found["Version"] = f"wellsep {__version__}"
    found["Date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    if isinstance(runs, Runs):
        found["Data"] = (
            f"SHA-256 {data_digest(runs.partitions, runs.spaces)[:16]} of all labels and of "
            f"{_LOOK} rows of each embedding"
        )
    return tuple(found.items())


def data_digest(partitions: Mapping[str, Any], spaces: Mapping[str, Any]) -> str:
    """A digest of all labels, and of names, shapes and a few rows of the embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> one = data_digest({"a": [0, 1]}, {"s": np.eye(2)})
    >>> one == data_digest({"a": [0, 1]}, {"s": np.eye(2)}) != data_digest({"a": [1, 1]}, {})
    True
    """
    parts: list[Any] = []
    for name, labels in partitions.items():
        values = np.asarray(labels)
        plain = values.dtype.kind in "biuf"
        parts += [str(name), values if plain else "\n".join(map(str, values.tolist()))]
    for name, space in spaces.items():
        rows = np.unique(np.linspace(0, max(space.shape[0] - 1, 0), _LOOK).astype(np.intp))
        parts += [str(name), str(tuple(space.shape)), *_some(space, rows)]
    return digest(*parts)


def _some(space: Any, rows: np.ndarray) -> list[Any]:
    """What a few objects of a space are: rows, entries of sparse rows, or distances."""
    if isinstance(space, PairSpace):
        return [space.block(rows, rows)] if space.complete else space.contents()
    if sp.issparse(space):
        part = space[rows]
        return [part.data, part.indices, part.indptr]
    return [np.asarray(space[rows])]


def _call(result: Any) -> str:
    if not isinstance(result, Judgement) or not result.call:
        return ""
    return f'judgement = {result.call}\nwellsep.render_report(judgement, "page.html", runs=runs)'
