"""Runs from AnnData: embeddings in ``obsm``, partitions in ``obs``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wellsep._arguments import check_mapping, check_names, check_path
from wellsep._display import quoted
from wellsep._files import Stored, to_json
from wellsep.adapters.stores import matching, require
from wellsep.runs import Runs


def runs_from_anndata(
    source: Any,
    spaces: str | Iterable[str] | None = None,
    labels: str | Iterable[str] | None = None,
    *,
    pairs: Mapping[str, str] | None = None,
) -> Runs:
    """Load the labelings and embeddings of an AnnData object as runs.

    From a file only what is asked for is read: label columns now, each space when it is opened
    (memory-mapped where the file stores it in one piece), the expression matrix never unless it
    is named. The names of the observations are the ids.

    Parameters
    ----------
    source : AnnData or path
        An object in memory, an ``.h5ad`` file or a ``.zarr`` folder.
    spaces : str or iterable of str, optional
        Keys of ``obsm``, as patterns (``"X_*"``); ``"X"`` is the matrix itself. By default all
        keys of ``obsm``.
    labels : str or iterable of str
        Columns of ``obs``, as patterns (``"leiden_*"``).
    pairs : mapping of label column to space, optional
        In which space a labeling was made.

    Returns
    -------
    Runs
        A space for each key and a partition for each column. A key and a column of the same name
        are one run. Settings that scanpy left in ``uns[column]["params"]`` become its params.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from wellsep.adapters import runs_from_anndata
    >>> cells = anndata.AnnData(
    ...     obs=pd.DataFrame({"leiden_1": ["0", "0", "1"], "leiden_2": ["0", "1", "2"]},
    ...                      index=["c1", "c2", "c3"]),
    ...     obsm={"X_pca": np.eye(3), "X_umap": np.ones((3, 2))},
    ... )
    >>> runs_from_anndata(cells, spaces="X_pca", labels="leiden_*")
    Runs(1 space × 2 partitions of 3 objects, not paired)
      X_pca     space of 3 features (float64)
      leiden_1  2 clusters
      leiden_2  3 clusters
    """
    if pairs is not None:
        check_mapping("pairs", pairs)
    if isinstance(source, str | os.PathLike):
        path = check_path("source", source)
        if not path.exists():
            raise FileNotFoundError(f"source must be an .h5ad file or .zarr folder, got {path}.")
        if path.is_file():
            return _from_file(path, spaces, labels, pairs)
        source = require("anndata", "anndata").read_zarr(path)
    if not (hasattr(source, "obsm") and hasattr(source, "obs_names")):
        raise TypeError(f"source must be AnnData or a path, got {type(source).__name__}.")
    columns = [str(column) for column in source.obs.columns]
    return _assemble(
        keys=list(source.obsm.keys()),
        columns=columns,
        open_space=lambda key: source.X if key == "X" else source.obsm[key],
        open_labels=lambda column: source.obs[column],
        open_params=lambda column: source.uns.get(column, {}).get("params"),
        ids=np.asarray(source.obs_names, dtype=np.str_),
        asked=(spaces, labels, pairs),
    )


def _from_file(path: Path, spaces: Any, labels: Any, pairs: Any) -> Runs:
    anndata = require("anndata", "anndata")
    h5py = require("h5py", "anndata")
    read = anndata.io.read_elem
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(
            f"source must be a readable .h5ad file, got {path.name}: {error}."
        ) from None
    with file:
        refuse_links(file, path)
        if "obs" not in file or isinstance(file["obs"], h5py.Dataset):
            if "obs" not in file:
                raise ValueError(f"source must hold AnnData, got {quoted(file)} in {path.name}.")
            # Files of anndata before 0.7 keep obs as one table.
            return runs_from_anndata(anndata.read_h5ad(path), spaces, labels, pairs=pairs)
        obs, obsm = file["obs"], file.get("obsm", {})
        uns = file.get("uns", {})

        def open_space(key: str) -> Any:
            element = file["X"] if key == "X" else obsm[key]
            return _stored(path, element) if isinstance(element, h5py.Dataset) else read(element)

        def open_params(column: str) -> Any:
            place = f"{column}/params"
            return read(uns[place]) if place in uns else None

        return _assemble(
            keys=list(obsm),
            columns=[str(column) for column in obs.attrs["column-order"]],
            open_space=open_space,
            open_labels=lambda column: read(obs[column]),
            open_params=open_params,
            ids=np.asarray(read(obs[obs.attrs["_index"]]), dtype=np.str_),
            asked=(spaces, labels, pairs),
        )


def refuse_links(group: Any, path: Path, seen: set[Any] | None = None) -> None:
    """Refuse a file that takes its values from other files: it could show any file's bytes."""
    import h5py

    seen = set() if seen is None else seen
    for key in group:
        name = f"{group.name.rstrip('/')}/{key}"
        if isinstance(group.get(key, getlink=True), h5py.ExternalLink):
            raise ValueError(
                f"source must hold its own data, got a link to another file at {name!r} in "
                f"{path.name}."
            )
        item = group.get(key)
        if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            raise ValueError(
                f"source must hold its own data, got values of another file at {name!r} in "
                f"{path.name}."
            )
        if isinstance(item, h5py.Group) and item.id not in seen:
            seen.add(item.id)
            refuse_links(item, path, seen)


def _assemble(
    *,
    keys: list[str],
    columns: list[str],
    open_space: Any,
    open_labels: Any,
    open_params: Any,
    ids: np.ndarray,
    asked: tuple[Any, Any, Any],
) -> Runs:
    spaces, labels, pairs = asked
    if labels is None:
        raise ValueError(
            f"labels must name columns of obs, got None; there are {quoted(columns, 20)}."
        )
    # The matrix itself is a space only when it is named: "*" means the embeddings.
    if spaces is not None and not isinstance(spaces, str):
        spaces = check_names("spaces", spaces)
    named = [] if spaces is None else spaces.split(",") if isinstance(spaces, str) else spaces
    matrix = ["X"] if "X" in [name.strip() for name in named] else []
    chosen = keys if spaces is None else matching(spaces, keys + matrix, "spaces")
    if not chosen:
        raise ValueError("spaces must name a key of obsm, got none: obsm is empty.")
    partitions = matching(labels, columns, "labels")
    base = Runs.from_parts(
        {key: open_space(key) for key in chosen},
        {column: open_labels(column) for column in partitions},
        pairs=pairs,
        ids=ids,
    )
    params = {column: _usable_params(open_params(column)) for column in partitions}
    return Runs(tuple(run._with(params=params.get(run.name, {})) for run in base))


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
    opener = partial(_map, place, dataset.dtype, dataset.shape, offset)
    return Stored(dataset.shape, dataset.dtype, opener)


def _map(path: str, dtype: Any, shape: tuple[int, ...], offset: int) -> np.ndarray:
    return np.memmap(path, dtype=dtype, shape=shape, mode="r", offset=offset)


def _read(path: str, name: str) -> np.ndarray:
    import h5py

    with h5py.File(path, "r") as file:
        return file[name][...]
