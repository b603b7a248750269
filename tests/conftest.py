"""Fixtures every test may use: golden values, real data, and the hypothesis profiles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from golden import SHARED, WHY_ABSENT, read_case
from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast",
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", parent=settings.get_profile("fast"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with `reference/` and `data/`; the test is skipped where it is absent."""
    if SHARED is None:
        pytest.skip(WHY_ABSENT)
    return SHARED


@pytest.fixture(scope="session")
def golden(shared):
    """A function from the name of a reference case, such as "iris", to its `golden.Case`."""
    return read_case


@pytest.fixture
def real_data(shared, monkeypatch) -> Path:
    """Let `load_dataset` find the real sets; returns their folder."""
    folder = shared / "data"
    monkeypatch.setenv("WELLSEP_DATA", str(folder))
    return folder


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
