"""Fixtures every test may use: real data, a Dask client, and the hypothesis profiles."""

from __future__ import annotations

import multiprocessing
import os

import pytest
from datafolder import real_data  # noqa: F401
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast",
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", parent=settings.get_profile("fast"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


# What a cluster does while nothing is asked of it took 15 % of a core, and its start most of the
# time of its tests. Workers are forked from a process that has imported what they need.
QUIET_DASK = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.worker.profile.enabled": False,
    "distributed.worker.multiprocessing-method": "spawn" if os.name == "nt" else "forkserver",
}
IMPORTED_BEFORE_FORKING = ["distributed", "sklearn.metrics", "wellsep.evaluate", "wellsep.cluster"]


@pytest.fixture(scope="module")
def dask_client():
    """A client of a scheduler with two worker processes of one thread, all on loopback."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    import dask

    with dask.config.set(QUIET_DASK):
        if hasattr(distributed.utils, "get_mp_context"):
            distributed.utils.get_mp_context()  # names its own imports the first time
        multiprocessing.set_forkserver_preload(IMPORTED_BEFORE_FORKING)
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=":0",
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client


@pytest.fixture(autouse=True)
def registry_as_it_was():
    """Take back the indices that a test registers, whatever test comes next."""
    from wellsep.indices.registry import INDICES

    before = dict(INDICES._entries)
    yield
    INDICES._entries.clear()
    INDICES._entries.update(before)


@pytest.fixture(scope="module")
def browser():
    """Chromium, open while the tests of a file run."""
    from browsing import open_browser, sync_api

    with sync_api.sync_playwright() as driver:
        opened = open_browser(driver)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, pages):
    """Opens one of the test file's pages by name; at the end none may have complained."""
    from browsing import Visit

    opened = []

    def go(name: str = "full", **context) -> Visit:
        opened.append(Visit(browser, pages[name], **context))
        return opened[-1]

    yield go
    for one in opened:
        one.close()
    assert [problem for one in opened for problem in one.problems] == []
