"""How a run's space lies in files: coordinates or distances, dense or sparse."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from wellsep._files.arrays import (
    Stored,
    digest,
    members,
    stored_member,
    stored_npy,
    write_npy,
    write_npz,
)
from wellsep._files.replace import sync_file
from wellsep._text.sentences import shown
from wellsep.distances.base import PairSpace, count_of
from wellsep.distances.matrix import Distances

# Files of a run's folder that hold its space; one of them.
SPACE_FILES = ("embedding.npy", "embedding.npz", "distances.npy", "distances.npz")


class StoredDistances(Stored):
    """A space of distances on disk; the shape is that of the square matrix."""


def space_file(folder: Path, what: str) -> str | None:
    """The one file that holds the space of a run."""
    there = [file for file in SPACE_FILES if (folder / file).exists()]
    if len(there) > 1:
        raise ValueError(
            f"{what} must be in one file, got {there[0]} and {there[1]}; a run has coordinates or "
            "distances."
        )
    return there[0] if there else None


def file_of(space: Any) -> str:
    """The file that a space is written to."""
    if isinstance(space, PairSpace):
        return "distances.npz" if getattr(space, "kind", "") == "graph" else "distances.npy"
    return "embedding.npz" if sp.issparse(space) else "embedding.npy"


def write_space(path: Path, space: Any) -> dict[str, Any]:
    """Write a space or a vector; returns what the manifest says of it."""
    if path.suffix == ".npz":
        graph = space.values if isinstance(space, Distances) else space
        arrays = {"data": graph.data, "indices": graph.indices, "indptr": graph.indptr}
        arrays |= {"shape": np.array(graph.shape), "format": np.array("csr")}
        if isinstance(space, Distances) and space.absent is not None:
            arrays["absent"] = np.array(space.absent)
        write_npz(path, iter(arrays.items()))
        written, sha256 = graph, digest_space(space)
    else:
        written = contiguous(space)
        with open(path, "xb") as stream:
            write_npy(stream, written)
        sha256 = digest(written)
    sync_file(path)
    about = {"file": path.name, "shape": list(written.shape), "dtype": written.dtype.str}
    return {**about, "sha256": sha256}


def contiguous(space: Any) -> np.ndarray:
    """A dense space or a vector as an array that lies in one block; whole distances as given."""
    whole = isinstance(space, Distances) and space.is_whole
    return np.ascontiguousarray(space.values if whole else space)


def digest_space(space: Any) -> str:
    """SHA-256 of what a space holds: type, shape and values."""
    if isinstance(space, PairSpace):
        return digest("distances", *space.contents())
    if sp.issparse(space):
        return digest("sparse", str(space.shape), space.data, space.indices, space.indptr)
    return digest(space)


def digest_stored(stored: Stored) -> str:
    """The digest that `write_space` gave."""
    space = stored.open()
    if isinstance(space, Distances) and space.kind != "graph":
        return digest(np.ascontiguousarray(space.values))
    return digest_space(space)


def condensed(promised: Any, shape: tuple[int, ...]) -> bool:
    """Whether a promised shape is that of a condensed list of a square matrix's distances."""
    n = shape[0] if len(shape) == 2 and shape[0] == shape[1] else 0
    return n > 0 and promised == [n * (n - 1) // 2]


def stored_space(path: Path, what: str) -> Stored:
    """The space in one of the files of a run's folder, opened when it is asked for."""
    if path.name.endswith("distances.npy"):
        return as_stored_distances(stored_npy(path, what), what)
    if path.suffix == ".npz":
        return _stored_sparse(path, what)
    return stored_npy(path, what)


def as_stored_distances(stored: Stored, what: str) -> Stored:
    """A square matrix or a condensed list of distances."""
    if len(stored.shape) not in (1, 2):
        raise ValueError(
            f"{what} must be a square matrix or a condensed list of distances, got shape "
            f"{stored.shape}."
        )
    n = count_of(stored.shape[0]) if len(stored.shape) == 1 else stored.shape[0]
    opener = partial(_open_distances, stored.opener, what)
    return StoredDistances((n, n), stored.dtype, opener, stored.version)


def _open_distances(opener: Any, what: str) -> Any:
    return Distances.of_matrix(opener(), what)


def _stored_sparse(path: Path, what: str) -> Stored:
    parts = {
        name.removesuffix(".npy"): stored_member(path, name, what) for name in members(path, what)
    }
    if not {"data", "indices", "indptr", "shape"} <= set(parts):
        if "distances" in parts:
            return as_stored_distances(parts["distances"], what)
        raise ValueError(
            f"{what} must be a sparse matrix as scipy.sparse.save_npz writes it, got the entries "
            f"{', '.join(sorted(parts))}."
        )
    shape = parts["shape"].open()
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise ValueError(f"{what} must have two sizes as its shape, got {shape.tolist()}.")
    kind = StoredDistances if path.name.endswith("distances.npz") else Stored
    opener = partial(_open_sparse, parts, what, kind is StoredDistances)
    return kind(tuple(shape.tolist()), parts["data"].dtype, opener, parts["data"].version)


def _open_sparse(stored: dict[str, Stored], what: str, distances: bool) -> Any:
    parts = {key: part.open() for key, part in stored.items()}
    shape = tuple(int(size) for size in parts["shape"])
    entries = (parts["data"], parts["indices"], parts["indptr"])
    kind = parts["format"].tobytes().decode("latin-1") if "format" in parts else "csr"
    kind = kind.replace("\0", "")  # text has four bytes per letter
    if kind not in ("csr", "csc"):
        raise ValueError(f"{what} must be in CSR or CSC format, got {shown(kind)}.")
    matrix = (sp.csc_array if kind == "csc" else sp.csr_array)(entries, shape=shape)
    matrix.check_format(full_check=True)
    if not distances:
        return sp.csr_array(matrix)
    return Distances(matrix, absent=float(parts["absent"]) if "absent" in parts else None)
