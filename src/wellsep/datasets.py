"""Named real data sets: from a folder, from scikit-learn, from OpenML."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

from wellsep._checks.values import check_flag, check_path, check_text
from wellsep._text.sentences import Shown

FOLDER_VARIABLE = "WELLSEP_DATA"

_EMBEDDED = ("iris", "wine", "digits", "breast_cancer")

# name -> (OpenML data id, rows kept from the end or None for all)
_OPENML: dict[str, tuple[int, int | None]] = {
    "optdigits": (28, None),
    "pendigits": (32, None),
    "segment": (36, None),
    "ecoli": (39, None),
    "glass": (41, None),
    "vehicle": (54, None),
    "yeast": (181, None),
    "mnist": (554, None),
    "mnist_test": (554, 10_000),
    "wall_robot_navigation": (1497, None),
    "fashion_mnist": (40996, None),
    "fashion_mnist_test": (40996, 10_000),
}

_MNIST = ("mnist", "mnist_test", "fashion_mnist", "fashion_mnist_test")
_IMAGE_SHAPES = dict.fromkeys(("digits", "optdigits"), (8, 8)) | dict.fromkeys(_MNIST, (28, 28))

_ALIASES = {"mnist_784": "mnist", "wall": "wall_robot_navigation"}


@dataclass(frozen=True, repr=False)
class Dataset(Shown):
    """One named data set.

    Attributes
    ----------
    name : str
    X : ndarray
        ``(n, d)``, or ``(n, height, width[, channels])`` for images kept as such.
    y : ndarray of shape (n,)
        Reference classes from 0; −1 marks objects the reference leaves out.
    source : {"folder", "scikit-learn", "openml"}
    feature_names, class_names : tuple of str or None
    image_shape : tuple of int or None
        Shape of one image, whether or not ``X`` is flat.
    notes : str
        Where the set comes from, as far as known.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    source: str
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    image_shape: tuple[int, ...] | None = None
    notes: str = ""

    @property
    def n_classes(self) -> int:
        """Number of classes among the objects that have one."""
        return len(np.unique(self.y[self.y >= 0]))

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.X.shape))
        return f"Dataset({self.name!r}, {shape}, {self.n_classes} classes, from {self.source})"


def load_dataset(
    name: str,
    *,
    return_X_y: bool = False,
    flatten: bool = False,
    folder: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Any:
    """Load a real data set by name.

    The set is looked up in ``folder``, then among the sets scikit-learn ships, then on OpenML. The
    default of ``folder`` is what the environment variable ``WELLSEP_DATA`` names.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`, upper or lower case, ``-`` or ``_``.
    return_X_y : bool
        Return ``(X, y)`` instead of the record.
    flatten : bool
        Return images as rows of a matrix.
    folder : path-like, optional
        Folder of ``<name>.npz`` files with arrays ``X`` and ``y``; ``""`` for none.
    download : bool
        Whether the set may be downloaded from OpenML.

    Returns
    -------
    Dataset, or (X, y)

    Examples
    --------
    >>> from wellsep import load_dataset
    >>> load_dataset("iris")
    Dataset('iris', 150×4, 3 classes, from scikit-learn)
    >>> X, y = load_dataset("digits", return_X_y=True)
    >>> X.shape, y.shape
    ((1797, 64), (1797,))
    """
    check_text("name", name)
    check_flag("return_X_y", return_X_y)
    check_flag("flatten", flatten)
    check_flag("download", download)
    key = name.strip().lower().replace("-", "_").removesuffix(".npz")
    key = _ALIASES.get(key, key)
    dataset = (
        _from_folder(key, _data_folder(folder))
        or _from_scikit_learn(key)
        or (_from_openml(key) if download else None)
    )
    if dataset is None:
        raise _not_found(name, key, folder, download)
    if flatten and dataset.X.ndim > 2:
        dataset = replace(dataset, X=dataset.X.reshape(len(dataset.X), -1))
    return (dataset.X, dataset.y) if return_X_y else dataset


def list_datasets(folder: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Return the names that :func:`load_dataset` takes, each with the source it is read from.

    Parameters
    ----------
    folder : path, optional
        Folder of ``<name>.npz`` files; by default that of the environment variable WELLSEP_DATA.

    Returns
    -------
    dict of name → "folder", "scikit-learn" or "openml"

    Examples
    --------
    >>> from wellsep import list_datasets
    >>> list_datasets()["iris"]
    'scikit-learn'
    """
    known = {name: "openml" for name in _OPENML} | {name: "scikit-learn" for name in _EMBEDDED}
    if (place := _data_folder(folder)) is not None:
        known |= {path.stem: "folder" for path in place.glob("*.npz") if _is_set(path)}
    return dict(sorted(known.items()))


def _data_folder(folder: str | os.PathLike[str] | None) -> Path | None:
    named = os.environ.get(FOLDER_VARIABLE) if folder is None else folder
    if isinstance(named, str | None) and not named:
        return None
    path = check_path("folder", named).expanduser()
    if not path.is_dir():
        origin = f"the folder in {FOLDER_VARIABLE}" if folder is None else "folder"
        raise FileNotFoundError(f"{origin} must be an existing folder, got {str(path)!r}.")
    return path


def _is_set(path: Path) -> bool:
    with np.load(path, allow_pickle=False) as arrays:
        return {"X", "y"} <= set(arrays.files)


def _from_folder(key: str, folder: Path | None) -> Dataset | None:
    if folder is None:
        return None
    path = folder / f"{key}.npz"
    if path.parent != folder or not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        if not {"X", "y"} <= set(arrays.files):
            raise ValueError(
                f"name must be a file with arrays X and y, got {path.name} without them."
            )
        X, y = arrays["X"], arrays["y"].astype(np.int64)
    shape = X.shape[1:] if X.ndim > 2 else _IMAGE_SHAPES.get(key)
    return Dataset(name=key, X=X, y=y, source="folder", image_shape=shape)


def _from_scikit_learn(key: str) -> Dataset | None:
    if key not in _EMBEDDED:
        return None
    bunch = getattr(sklearn.datasets, f"load_{key}")()
    return Dataset(
        name=key,
        X=bunch.data,
        y=bunch.target.astype(np.int64),
        source="scikit-learn",
        feature_names=tuple(map(str, bunch.feature_names)),
        class_names=tuple(map(str, bunch.target_names)),
        image_shape=_IMAGE_SHAPES.get(key),
        notes="Shipped with scikit-learn.",
    )


def _from_openml(key: str) -> Dataset | None:
    if key not in _OPENML:
        return None
    data_id, last = _OPENML[key]
    try:
        # This parser needs no pandas.
        bunch = sklearn.datasets.fetch_openml(
            data_id=data_id, as_frame=False, parser="liac-arff", n_retries=1, delay=0.5
        )
    except Exception as error:
        raise OSError(
            f"{key} could not be fetched from OpenML (data id {data_id}): {error}."
            f" Go online, or put {key}.npz with arrays X and y into a folder"
            f" and name that folder in {FOLDER_VARIABLE}."
        ) from error
    kept = slice(None) if last is None else slice(-last, None)
    classes, codes = np.unique(np.asarray(bunch.target).astype(str), return_inverse=True)
    X = np.asarray(bunch.data)[kept]
    if key in _MNIST:
        X = X.reshape(-1, *_IMAGE_SHAPES[key]).astype(np.uint8)
    return Dataset(
        name=key,
        X=X,
        y=codes.astype(np.int64)[kept],
        source="openml",
        feature_names=tuple(map(str, bunch.feature_names)),
        class_names=tuple(map(str, classes)),
        image_shape=_IMAGE_SHAPES.get(key),
        notes=f"OpenML data id {data_id}.",
    )


def _not_found(name: str, key: str, folder: Any, download: bool) -> Exception:
    remedy = (
        f"put {key}.npz with arrays X and y into a folder and name that folder in {FOLDER_VARIABLE}"
    )
    if key in _OPENML and not download:
        return FileNotFoundError(
            f"download must be True to fetch {name!r} from OpenML, got False; or {remedy}."
        )
    near = difflib.get_close_matches(key, list_datasets(folder), n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"or {remedy}."
    return ValueError(f"name must be one of list_datasets(), got {name!r}; {hint}")
