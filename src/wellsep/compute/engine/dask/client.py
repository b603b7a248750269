"""Which Dask cluster computes: an address, a client, the one that is active, or none."""

from __future__ import annotations

import contextlib
import gc
import platform
import re
import sys
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

SECONDS = 10  # to wait for a scheduler, and again for its first worker
# Tasks are pickled code: these must be the same on both sides.
ALIKE = ("python", "dask", "distributed", "wellsep")
_ADDRESS = re.compile(r"inproc://\S+|([a-z]+://)?([^\s/:]+|\[[^\s\]]+\]):\d+")
_CHECKED: weakref.WeakSet = weakref.WeakSet()


def active_client() -> Any:
    """The program's own ``distributed.Client``, or None; never makes one."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


@contextlib.contextmanager
def open_client(scheduler: Any = None) -> Iterator[Any]:
    """A client for an address, the given or the active client, or None where there is none.

    Only what was opened here is closed at the end. No cluster is ever started.
    """
    opened = isinstance(scheduler, str)
    client = active_client() if scheduler is None else scheduler
    if opened:
        client = connect(scheduler)
    elif client is not None and not (hasattr(client, "submit") and hasattr(client, "get_versions")):
        raise TypeError(
            "scheduler must be an address like 'tcp://host:8786' or a distributed.Client, "
            f"got {type(scheduler).__name__}."
        )
    try:
        if client is not None:
            check_versions(client)
        yield client
    finally:
        if opened:
            client.close()


def connect(address: str) -> Any:
    """A client of the scheduler at ``address`` that has at least one worker."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "scheduler must be None without the package distributed, "
            f"got {address!r}; install it with: pip install 'dask[array,dataframe]' distributed."
        ) from None
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            f"scheduler must be an address like 'tcp://host:8786', got {address!r}; "
            "dask scheduler prints its own."
        )
    try:
        client = Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        # The client that did not start closes when it is collected. If that happens while another
        # one starts, both wait for the same lock without end: so it happens here.
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = error.__cause__ = error.__context__ = None
        gc.collect()
        raise ConnectionError(
            f"No Dask scheduler answered at {address} within {SECONDS} s: {why}. Nothing was "
            "computed. Start one with: dask scheduler."
        ) from None
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except TimeoutError:
        client.close()
        raise ConnectionError(
            f"The Dask scheduler at {address} had no worker within {SECONDS} s. Nothing was "
            f"computed. Start one with: dask worker {address}."
        ) from None
    return client


def check_versions(client: Any) -> None:
    """Refuse workers whose Python, dask, distributed or wellsep is another than here."""
    if client in _CHECKED:
        return
    versions = client.get_versions(packages=["wellsep"])
    here = _packages(versions["client"])
    for address, facts in versions["workers"].items():
        theirs = _packages(facts)
        for package in ALIKE:
            if theirs.get(package) != here.get(package):
                got = theirs.get(package) or "no"
                raise ValueError(
                    f"workers must have the same {package} as the client "
                    f"({here.get(package)}), got {got} {package} on {address}; install the same "
                    "version on every machine."
                )
    _CHECKED.add(client)


def _packages(facts: dict[str, Any]) -> dict[str, Any]:
    packages = dict(facts["packages"])
    python = str(packages.get("python", platform.python_version()))
    packages["python"] = ".".join(python.split(".")[:2])
    return packages


def describe(client: Any) -> str:
    """One line: where it computes, with how much, and where to watch it."""
    workers = client.nthreads()
    link = client.dashboard_link
    watch = f"; dashboard: {link}" if link else "; no dashboard"
    return (
        f"Dask scheduler {client.scheduler.address}: {len(workers)} worker(s), "
        f"{sum(workers.values())} thread(s){watch}"
    )
