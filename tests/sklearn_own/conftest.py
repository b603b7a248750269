"""The fixtures that scikit-learn's tests ask for, the list of departures, and the count."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path

import pytest
from sklearn.conftest import global_dtype  # noqa: F401
from sklearn_own.departures import why_left_out

import wellsep as ws

HERE = Path(__file__).parent
USED: set[str] = set()  # tests that made a KMeans of ours


@pytest.fixture
def global_random_seed() -> int:
    """The one seed of scikit-learn's own default runs."""
    return 42


@pytest.fixture(autouse=True)
def notes_use_of_kmeans(request, monkeypatch):
    """Note which tests make a KMeans of ours: others of the file are scikit-learn's affair."""
    made = ws.KMeans.__init__

    @functools.wraps(made)
    def noted(self, *args, **kwargs):
        USED.add(request.node.nodeid)
        made(self, *args, **kwargs)

    monkeypatch.setattr(ws.KMeans, "__init__", noted)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == HERE:
            reason = why_left_out(item.path.name, item.name)
            if reason is not None:
                item.add_marker(pytest.mark.xfail(strict=True, reason=reason))


def pytest_terminal_summary(terminalreporter):
    counts: dict[str, Counter] = {}
    for outcome in ("passed", "failed", "xfailed"):
        for report in terminalreporter.stats.get(outcome, []):
            file = Path(report.nodeid.split("::")[0])
            if report.when == "call" and file.parent.name == HERE.name:
                ours = file.name != "test_kmeans.py" or report.nodeid in USED
                counts.setdefault(file.name, Counter())[outcome if ours else "not ours"] += 1
    for file, found in sorted(counts.items()):
        n = found["passed"] + found["failed"] + found["xfailed"]
        terminalreporter.write_line(
            f"{file}: {found['passed']} of {n} hold, {found['xfailed']} left out with a reason "
            f"(tests/sklearn_own/departures.py), {found['failed']} failed."
        )
