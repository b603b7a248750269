"""Access to a store: its library, names that match a pattern, its database file, downloads."""

from __future__ import annotations

import atexit
import fnmatch
import http.client
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wellsep._checks.values import check_names
from wellsep._text.sentences import meant, need, quoted, shown

ANSWER_SECONDS = 10.0  # for a server's first answer
_INSTALLED_BY = {"mlflow": "mlflow-skinny sqlalchemy alembic", "h5py": "anndata"}


def require(module: str) -> Any:
    """Import the library of a store, or say how it is installed."""
    return need(module, "This source", _INSTALLED_BY.get(module, ""))


def patterns_of(wanted: str | Iterable[str], what: str) -> list[str]:
    """Patterns of names as a list; a text is split at commas."""
    patterns = wanted.split(",") if isinstance(wanted, str) else check_names(what, wanted)
    return [pattern.strip() for pattern in patterns]


def matching(wanted: str | Iterable[str], there: Iterable[str], what: str) -> list[str]:
    """Names that fit one of the patterns (``*``, ``?``, ``[…]``), in the order of ``there``.

    A text is split at commas. A name that is spelt exactly is taken before it is read as a
    pattern; a pattern without a match is refused.

    >>> matching("leiden_*,batch", ["batch", "leiden_1", "leiden_2", "n_genes"], "labels")
    ['batch', 'leiden_1', 'leiden_2']
    """
    there = list(there)
    found: set[str] = set()
    for pattern in patterns_of(wanted, what):
        fits = [pattern] if pattern in there else fnmatch.filter(there, pattern)
        if not fits:
            raise ValueError(
                f"{what} must match one of {quoted(there, 20)}, got {shown(pattern)}"
                f"{meant(pattern, there)}"
            )
        found.update(fits)
    if not found:
        raise ValueError(f"{what} must name at least one of {quoted(there, 20)}, got none.")
    return [name for name in there if name in found]


def sqlite_file(url: str) -> Path | None:
    """The file behind ``sqlite:///file.db``, which must exist; None for other databases.

    Opening an absent database would create it.
    """
    scheme, _, rest = url.partition(":///")
    if scheme.partition("+")[0] != "sqlite" or not rest or rest == ":memory:":
        return None
    path = Path(rest.partition("?")[0])
    if not path.is_file():
        raise FileNotFoundError(f"source must be an existing database, got no file {path}.")
    return path


def check_server(url: str, seconds: float | None = None) -> None:
    """Refuse a server that does not answer within some seconds; any answer will do."""
    seconds = ANSWER_SECONDS if seconds is None else seconds
    try:
        with urllib.request.urlopen(url, timeout=seconds):
            return
    except urllib.error.HTTPError:  # it answers, if only that this page is not there
        return
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise ConnectionError(
            f"source must be a server that answers within {seconds:g} seconds, got none at "
            f"{url}: {shown(str(why))}. Start the server or correct the address."
        ) from None


def scratch_folder(cache: str | os.PathLike[str] | None, key: str) -> Path:
    """Where downloads of one run go: under ``cache``, or in a folder removed at exit."""
    if cache is None:
        folder = Path(tempfile.mkdtemp(prefix="wellsep-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    else:
        folder = Path(cache) / key
        folder.mkdir(parents=True, exist_ok=True)
    return folder
