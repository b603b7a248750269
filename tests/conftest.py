"""Fixtures every test may use: real data, a Dask client, and the hypothesis profiles."""

from __future__ import annotations

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


@pytest.fixture(scope="session")
def dask_client():
    """A client of a scheduler with two worker processes of one thread, all on loopback."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    )
    client = distributed.Client(cluster, set_as_default=False)
    yield client
    client.close()
    cluster.close()


@pytest.fixture(autouse=True)
def registry_as_it_was():
    """Take back the indices that a test registers, whatever test comes next."""
    from wellsep.indices.record import INDICES

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
