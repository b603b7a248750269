"""AnnData: runs from ``obsm`` and ``obs``, a column or an embedding, the answer written back."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from wellsep._checks.values import check_path
from wellsep._files.arrays import Stored, to_json
from wellsep._files.maps import Version, map_file
from wellsep._files.replace import replace_file
from wellsep._text.sentences import listing, meant, printable, quoted, shown
from wellsep.adapters.columns import made_in, propose, why_no_clustering
from wellsep.adapters.stores import matching, patterns_of, require
from wellsep.distances.matrix import Distances
from wellsep.runs import Runs
from wellsep.runs.collection import Features


def runs_from_anndata(
    source: Any,
    spaces: str | Iterable[str] | None = None,
    labels: str | Iterable[str] | None = None,
    *,
    pairs: str | Mapping[str, str] | None = None,
) -> Runs:
    """Load the labelings and embeddings of an AnnData object as runs.

    From a file only what is asked for is read: label columns now, each space when it is opened. A
    space is memory-mapped where the file stores it in one piece. The expression matrix is read only
    if it is named. The names of the observations are the ids.

    Parameters
    ----------
    source : AnnData or path
        An object in memory, an ``.h5ad`` file or a ``.zarr`` folder.
    spaces : str or iterable of str, optional
        Keys of ``obsm``, as patterns (``"X_*"``); ``"X"`` is the matrix itself, and
        ``"obsp/distances"`` a matrix of distances. scanpy keeps a graph of neighbours there, whose
        absent pairs are unknown: it can be read, and no index takes it. By default all
        keys of ``obsm`` but those with two columns (UMAP, t-SNE), if there are wider ones: these
        are layouts, made for drawing. ``runs.layouts`` keeps them.
    labels : str or iterable of str
        Columns of ``obs``, as patterns (``"leiden_*"``). What a pattern with a star finds is left
        out where it is no clustering: measurements, or a class per object.
    pairs : str or mapping of label column to space, optional
        In which space a labeling was made. A text is a pattern with {space} where the name of the
        space stands, with or without its ``X_``: ``"leiden_{space}_*"`` pairs leiden_pca_0.5 with
        X_pca. The columns of a mapping may be patterns as well.

    Returns
    -------
    Runs
        A space for each key and a partition for each column. A key and a column of the same name
        are one run. Settings that scanpy left in ``uns[column]["params"]`` become its params.
        ``runs.notes`` says what was left out. The other columns of ``obs``, thirty at most, are in
        ``runs.objects``: the page colours the objects by them.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from wellsep.adapters import runs_from_anndata
    >>> cells = anndata.AnnData(
    ...     obs=pd.DataFrame({"leiden_1": list("0011"), "leiden_2": list("0012")},
    ...                      index=["c1", "c2", "c3", "c4"]),
    ...     obsm={"X_pca": np.eye(4), "X_umap": np.ones((4, 2))},
    ... )
    >>> runs = runs_from_anndata(cells, labels="leiden_*")
    >>> runs
    Runs(1 space × 2 partitions of 4 objects, not paired)
      X_pca     space of 4 features (float64)
      leiden_1  2 clusters
      leiden_2  3 clusters
    >>> list(runs.layouts)
    ['X_umap']
    """
    with opened_anndata(source) as parts:
        return _assemble(parts, spaces, labels, pairs)


MOST_COLUMNS = 30  # of obs that are kept to colour the objects by
_MISSING = ("nan", "<NA>", "NaT")
OBSP = "obsp/"  # before the key of a matrix of distances between the observations


def _distances(key: str, pairs: Mapping[str, Any], read: Callable[[str], Any]) -> Distances:
    """What obsp has under a key, read by its name there."""
    name = key.removeprefix(OBSP)
    if name not in pairs:
        raise ValueError(
            f"spaces must name a key of obsp, got {name!r}; there are {quoted(pairs)}."
        )
    if "connectivities" in name:
        raise ValueError(
            f"spaces must hold distances, got obsp[{name!r}], which holds similarities; name "
            f"{name.replace('connectivities', 'distances')!r}."
        )
    values = read(name)
    try:
        return Distances(values)
    except ValueError as error:
        raise ValueError(f"obsp[{name!r}]: {error}") from None


class Parts(NamedTuple):
    """What an AnnData object or file holds, and how to open it."""

    keys: list[str]  # of obsm
    columns: list[str]  # of obs
    open_space: Callable[[str], Any]
    open_labels: Callable[[str], Any]
    open_params: Callable[[str], Any]
    ids: np.ndarray
    features: Features | None  # the matrix before it was scaled, where AnnData kept that


@contextlib.contextmanager
def opened_anndata(source: Any) -> Iterator[Parts]:
    """Open AnnData in memory, an .h5ad file or a .zarr folder; parts are read when asked for."""
    if isinstance(source, str | os.PathLike):
        path = check_path("source", source)
        if not path.exists():
            raise FileNotFoundError(f"source must be an .h5ad file or .zarr folder, got {path}.")
        if path.is_file():
            with _naming(path), _opened_file(path) as parts:
                yield parts
            return
        anndata = require("anndata")
        with _sound(path):
            source = anndata.read_zarr(path)
    if not (hasattr(source, "obsm") and hasattr(source, "obs_names")):
        raise TypeError(f"source must be AnnData or a path, got {type(source).__name__}.")
    yield _parts_of(source)


def _parts_of(adata: Any) -> Parts:
    return Parts(
        keys=list(adata.obsm.keys()),
        columns=[str(column) for column in adata.obs.columns],
        open_space=lambda key: (
            adata.X
            if key == "X"
            else _distances(key, adata.obsp, adata.obsp.__getitem__)
            if key.startswith(OBSP)
            else adata.obsm[key]
        ),
        open_labels=lambda column: adata.obs[column],
        open_params=lambda column: adata.uns.get(column, {}).get("params"),
        ids=np.asarray(adata.obs_names, dtype=np.str_),
        features=_features_of(adata),
    )


def _features_of(adata: Any) -> Features | None:
    """The genes: of ``raw`` where it is kept, since X is often scaled; else of X."""
    matrix = adata if adata.raw is None else adata.raw
    if matrix.X is None:
        return None
    return Features(tuple(map(str, matrix.var_names)), lambda rows: _dense(matrix.X[rows]))


def _features_in(path: Path, file: Any) -> Features | None:
    """The same of a file, which is opened again when rows are asked for."""
    anndata = require("anndata")
    h5py = require("h5py")
    place = "raw/" if "raw/X" in file and "raw/var" in file else ""
    if f"{place}X" not in file or not isinstance(file.get(f"{place}var"), h5py.Group):
        return None

    def rows(objects: np.ndarray) -> np.ndarray:
        with _sound(path), h5py.File(path, "r") as again:
            matrix = again[f"{place}X"]
            sparse = isinstance(matrix, h5py.Group)
            return _dense((anndata.io.sparse_dataset(matrix) if sparse else matrix)[objects])

    with _sound(path):
        var = file[f"{place}var"]
        return Features(tuple(map(str, anndata.io.read_elem(var[var.attrs["_index"]]))), rows)


def _dense(rows: Any) -> np.ndarray:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


@contextlib.contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Say which file is damaged: h5py and anndata raise errors of any type over one."""
    try:
        yield
    except Exception as error:
        why = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        kind = "a readable .zarr folder" if path.is_dir() else "a readable .h5ad file"
        raise ValueError(
            f"source must be {kind}, got {path.name}: {printable(why.strip().rstrip('.'), 200)}. "
            "Copy or write it again."
        ) from None


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the name of the file to a refusal that does not have it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if path.name in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{error} The file is {path.name}.") from None


@contextlib.contextmanager
def _opened_file(path: Path) -> Iterator[Parts]:
    anndata = require("anndata")
    h5py = require("h5py")

    def read(place: str) -> Any:
        with _sound(path):
            return anndata.io.read_elem(file[place])

    def open_space(key: str) -> Any:
        if key.startswith(OBSP):
            return _distances(key, pairs, lambda name: read(OBSP + name))
        place = key if key == "X" else f"obsm/{key}"
        with _sound(path):
            element = file[place]
            if isinstance(element, h5py.Dataset):
                return _stored(path, element)
        return read(place)

    def open_params(column: str) -> Any:
        place = f"uns/{column}/params"
        with _sound(path):
            present = place in file
        return read(place) if present else None

    with contextlib.ExitStack() as stack:
        with _sound(path):
            file = stack.enter_context(h5py.File(path, "r"))
            foreign, names = next(_foreign(file, set()), None), list(file)
        if foreign is not None:
            raise ValueError(f"source must hold its own data, got {foreign} in {path.name}.")
        if "obs" not in names:
            raise ValueError(f"source must hold AnnData, got {quoted(names)} in {path.name}.")
        with _sound(path):
            obs, obsm, pairs = (file.get(name, {}) for name in ("obs", "obsm", "obsp"))
            if isinstance(obs, h5py.Dataset):
                # Files of anndata before 0.7 keep obs as one table.
                parts = _parts_of(anndata.read_h5ad(path))
            else:
                ids = anndata.io.read_elem(obs[obs.attrs["_index"]])
                parts = Parts(
                    keys=list(obsm),
                    columns=[str(column) for column in obs.attrs["column-order"]],
                    open_space=open_space,
                    open_labels=lambda column: read(f"obs/{column}"),
                    open_params=open_params,
                    ids=np.asarray(ids, dtype=np.str_),
                    features=_features_in(path, file),
                )
        yield parts


def _foreign(group: Any, seen: set[Any]) -> Iterator[str]:
    """What a file takes from other files, by which it could show any file's bytes."""
    import h5py

    for key in group:
        name = f"{group.name.rstrip('/')}/{key}"
        if isinstance(group.get(key, getlink=True), h5py.ExternalLink):
            yield f"a link to another file at {name!r}"
            continue
        item = group.get(key)
        if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            yield f"values of another file at {name!r}"
        if isinstance(item, h5py.Group) and item.id not in seen:
            seen.add(item.id)
            yield from _foreign(item, seen)


def _assemble(parts: Parts, spaces: Any, labels: Any, pairs: Any) -> Runs:
    keys = parts.keys
    values, notes = _clusterings(parts, labels)
    # The matrix itself is a space only when it is named: "*" means the embeddings.
    words = [] if spaces is None else patterns_of(spaces, "spaces")
    matrix = [word for word in words if word == "X" or word.startswith(OBSP)]
    chosen = keys if spaces is None else matching(words, keys + matrix, "spaces")
    if not chosen:
        raise ValueError("spaces must name a key of obsm, got none: obsm is empty.")
    opened = {key: parts.open_space(key) for key in dict.fromkeys([*keys, *chosen])}
    layouts = layouts_of({key: opened[key] for key in keys})
    if spaces is None and len(layouts) < len(chosen):
        chosen = [key for key in keys if key not in layouts]
        notes = [_about_layouts(layouts), *notes] if layouts else notes
    base = Runs.from_parts(
        {key: opened[key] for key in chosen},
        values,
        pairs=None if pairs is None else made_in(pairs, values, chosen),
        ids=parts.ids,
    )
    params = {column: _usable_params(parts.open_params(column)) for column in values}
    return Runs(
        tuple(run._with(params=params.get(run.name, {})) for run in base),
        layouts={key: opened[key] for key in layouts},
        notes=tuple(notes),
        objects=_about_objects(parts, values),
        features=parts.features,
    )


def _about_objects(parts: Parts, ranked: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The columns that are no clustering to rank, as numbers or texts; a missing text is empty."""
    found = {}
    for column in [name for name in parts.columns if name not in ranked][:MOST_COLUMNS]:
        values = np.asarray(parts.open_labels(column))
        if values.dtype.kind not in "iuf":
            texts = ["" if one is None else str(one) for one in values]
            values = np.array(["" if text in _MISSING else text for text in texts])
        found[column] = values
    return found


def clusterings_of(source: Any, labels: Any) -> Runs:
    """The chosen columns of obs as runs without embeddings; AnnData may have none."""
    with opened_anndata(source) as parts:
        values, notes = _clusterings(parts, labels)
        return Runs(tuple(Runs.from_parts(None, values, ids=parts.ids)), notes=tuple(notes))


def _clusterings(parts: Parts, labels: Any) -> tuple[dict[str, Any], list[str]]:
    """The chosen columns, and a note on those that a star found and that are no clusterings."""
    columns = parts.columns
    if labels is None:
        found = propose({column: parts.open_labels(column) for column in columns})
        got, there = "labels must name columns of obs, got None", quoted(columns, 20)
        if not found:
            raise ValueError(f"{got}; there are {there}.")
        raise ValueError(
            f"{got}; these look like clusterings: labels={found!r} "
            f"(in the shell: --labels '{found}'). There are {there}."
        )
    named = patterns_of(labels, "labels")
    values = {column: parts.open_labels(column) for column in matching(named, columns, "labels")}
    reasons = {c: why_no_clustering(values[c]) for c in values if c not in named}
    left_out = {column: why for column, why in reasons.items() if why is not None}
    if not left_out:
        return values, []
    what = listing(f"{name!r} ({why})" for name, why in left_out.items())
    if len(left_out) == len(values):
        raise ValueError(f"labels must name clusterings, got {what}.")
    kept = {column: values[column] for column in values if column not in left_out}
    return kept, [f"Left out, because they are no clusterings: {what}."]


def layouts_of(opened: Mapping[str, Any]) -> list[str]:
    """Embeddings of two columns, made for drawing."""
    return [key for key, X in opened.items() if X.shape[1:] == (2,)]


def _about_layouts(layouts: list[str]) -> str:
    one = len(layouts) == 1
    names, first = listing(map(repr, layouts)), layouts[0]
    return (
        f"{names} {'has' if one else 'have'} two columns. {'It is' if one else 'They are'} taken "
        f"for {'a layout' if one else 'layouts'} and not judged. Judge by naming all embeddings "
        f"(spaces, --spaces); draw with layout={first!r} (wellsep report --layout {first})."
    )


def _usable_params(params: Any) -> dict[str, Any]:
    """Keep the entries of uns that are plain data."""
    if not isinstance(params, Mapping):
        return {}
    kept: dict[str, Any] = {}
    for key, value in params.items():
        try:
            kept[str(key)] = to_json(value, nan="text")
        except TypeError:
            continue
    return kept


def _stored(path: Path, dataset: Any) -> Stored:
    """A dataset to be mapped where it lies in one piece, or else read when opened."""
    offset = dataset.id.get_offset() if dataset.chunks is None and dataset.size else None
    place = str(path.absolute())
    if offset is None:
        return Stored(dataset.shape, dataset.dtype, partial(_read, place, dataset.name))
    version = Version.of(place)
    opener = partial(map_file, version, dataset.dtype, dataset.shape, "C", offset)
    return Stored(dataset.shape, dataset.dtype, opener, version)


def _read(path: str, name: str) -> np.ndarray:
    import h5py

    with _sound(Path(path)), h5py.File(path, "r") as file:
        return file[name][...]


def read_column(source: Any, column: str) -> np.ndarray:
    """Read one column of ``obs``, such as the true classes.

    >>> import anndata, pandas as pd
    >>> cells = anndata.AnnData(obs=pd.DataFrame({"type": ["a", "b"]}, index=["c1", "c2"]))
    >>> read_column(cells, "type").tolist()
    ['a', 'b']
    """
    with opened_anndata(source) as parts:
        if column not in parts.columns:
            raise ValueError(
                f"column must be one of obs, got {shown(column)}; there are "
                f"{quoted(parts.columns, 20)}{meant(column, parts.columns)}"
            )
        return np.asarray(parts.open_labels(column))


def read_space(source: Any, space: str | None = None) -> Any:
    """Read one embedding of ``obsm``, or X; without a name the only one that is no layout.

    >>> import anndata
    >>> cells = anndata.AnnData(obsm={"X_pca": np.eye(4), "X_umap": np.ones((4, 2))})
    >>> read_space(cells).shape
    (4, 4)
    """
    with opened_anndata(source) as parts:
        keys = [*parts.keys, "X"]
        if space is not None and space not in keys:
            raise ValueError(
                f"space must be an embedding (a key of obsm) or X, got {shown(space)}; there are "
                f"{quoted(parts.keys)}{meant(space, keys)}"
            )
        if space is None:
            opened = {key: parts.open_space(key) for key in parts.keys}
            layouts = layouts_of(opened)
            wider = [key for key in opened if key not in layouts] or list(opened)
            if len(wider) != 1:
                raise ValueError(
                    f"space must name one embedding, got None; there are {quoted(wider)} "
                    f"(in the shell: --space {wider[0] if wider else 'X'})."
                )
            space = wider[0]
        found = parts.open_space(space)
        matrix = found.open() if hasattr(found, "open") else found
        return matrix if sp.issparse(matrix) else np.asarray(matrix)


def write_anndata(judgement: Any, target: Any) -> None:
    """Write the best clustering to ``obs["wellsep_best"]`` and the ranking to ``uns["wellsep"]``.

    The column holds the labels of the best partition, which is a column of ``obs``. The entry
    holds its name, the judge, the index, the ranking by columns and the explanation.

    Parameters
    ----------
    judgement : Judgement
        From :func:`wellsep.judge`.
    target : AnnData or path
        What was judged: an object in memory or an ``.h5ad`` file. The file is replaced whole, by
        a copy with both entries.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd, wellsep as ws
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) + 6 * np.eye(3)[truth]
    >>> obs = pd.DataFrame({"leiden_1": truth > 0, "leiden_2": truth}, [f"c{i}" for i in range(60)])
    >>> cells = anndata.AnnData(obs=obs, obsm={"X_pca": X})
    >>> ws.adapters.write_anndata(ws.judge(cells, labels="leiden_*", n_draws=0), cells)
    >>> cells.uns["wellsep"]["best"], cells.obs["wellsep_best"].nunique()
    ('leiden_2', 3)
    """
    for fact in ("ranking", "to_dict"):
        if not hasattr(judgement, fact):
            raise TypeError(
                f"judgement must be Judgement, got {shown(judgement)}; make it with judge."
            )
    if not isinstance(target, str | os.PathLike) and not hasattr(target, "uns"):
        raise TypeError(f"target must be AnnData or a path, got {shown(target)}.")
    found = judgement.to_dict()
    columns = judgement.ranking.columns()
    columns.pop("params", None)
    best = judgement.ranking.best
    entry = {
        "best": best,
        "judge": found["judge"],
        "index": found["index"],
        "ranking": {name: np.asarray(values) for name, values in columns.items()},
        "explanation": np.asarray(found["explanation"], dtype=object),
    }
    if not isinstance(target, str | os.PathLike):
        if best not in target.obs:
            raise ValueError(_no_column(best, target.obs))
        target.obs["wellsep_best"] = target.obs[best].to_numpy()
        target.uns["wellsep"] = entry
        return
    path = check_path("target", target)
    if not path.is_file():
        raise FileNotFoundError(f"target must be an existing .h5ad file, got {str(path)!r}.")
    anndata = require("anndata")
    h5py = require("h5py")
    with replace_file(path) as temporary:
        shutil.copyfile(path, temporary)
        with h5py.File(temporary, "r+") as file:
            obs = file["obs"]
            order = [str(name) for name in obs.attrs["column-order"]]
            if best not in order:
                raise ValueError(_no_column(best, order))
            anndata.io.write_elem(obs, "wellsep_best", anndata.io.read_elem(obs[best]))
            if "wellsep_best" not in order:
                obs.attrs["column-order"] = [*order, "wellsep_best"]
            anndata.io.write_elem(file.require_group("uns"), "wellsep", entry)


def _no_column(best: str, columns: Any) -> str:
    return (
        f"target must hold the best partition {best!r} as a column of obs, got "
        f"{quoted(map(str, columns), 20)}; give what was judged."
    )
