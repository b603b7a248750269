"""Single entries of AnnData: a column or an embedding to read, the answer to write back."""

from __future__ import annotations

import os
import shutil
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._checks.values import check_path
from wellsep._files.replace import replace_file
from wellsep._text.sentences import meant, quoted, shown
from wellsep.adapters.anndata import layouts_of, opened_anndata
from wellsep.adapters.stores import require


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
