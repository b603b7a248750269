"""A numba that is installed and cannot be used changes no result and stops no run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WORK = {
    "dips": "[dip_statistic(X[:, c]) for c in range(4)]",
    "null dips": "null.null_dips(50, 30, random_state=0)",
    "sums": "ws.score_partitions(X, parts, 'silhouette').values",
    "half-samples": "ws.judge(ws.Runs.from_parts({'s': X}, parts), n_draws=4).confidence.ranks",
    "assignment": "host_labels(X, X[:40], np.zeros(12))",
    "search": "ws.CFMeans(8, random_state=0).fit(X).labels_",
}
STUBS = {  # what numba does, and the work that is done with it
    "not importable": ("raise ImportError('built for another NumPy')", WORK),
    "without its library": ("raise OSError('libllvm.so is not there')", ["dips"]),
    "nowhere to write": (
        "def njit(*args, **options):\n"
        "    raise RuntimeError('cannot cache function: no locator available')",
        ["dips"],
    ),
}
CODE = """
import json, sys, warnings
import numpy as np
import wellsep as ws
from wellsep.spaces import dip_statistic
from wellsep.compute.engine import kernel_choice as twins
from wellsep.cluster.cf_means import centre_search as moved
from wellsep.compute.kmeans.nearest_centres import host_labels
from wellsep.spaces import dip_null as null
twins.PAYS_FROM = moved.COMPILED_FROM = 0
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 12))
parts = {str(m): rng.integers(0, 3, 300) for m in range(20)}
results = {}
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    for name, work in json.loads(sys.argv[1]).items():
        try:
            results[name] = np.asarray(eval(work)).tolist()
        except Exception as error:
            results[name] = repr(error)
sentences = [str(w.message) for w in heard if "numba" in str(w.message)]
print(json.dumps({"results": results, "sentences": sentences}))
"""


def _run(names: Iterable[str], **more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps({name: WORK[name] for name in names})],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def without_kernels() -> dict[str, Any]:
    return _run(WORK, WELLSEP_KERNELS="0")["results"]


@pytest.mark.parametrize("stub", STUBS)
def test_a_numba_that_fails_is_replaced_by_numpy_with_one_warning(stub, tmp_path, without_kernels):
    code, names = STUBS[stub]
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text(code)
    source = str(Path(__file__).parents[2] / "src")
    run = _run(names, PYTHONPATH=os.pathsep.join([str(tmp_path), source]), WELLSEP_KERNELS="1")
    for name in names:
        assert not isinstance(run["results"][name], str), run["results"][name]
        np.testing.assert_allclose(run["results"][name], without_kernels[name], rtol=1e-12)
    assert len(run["sentences"]) == 1
    assert "numba is installed but cannot be used" in run["sentences"][0]


def test_one_module_says_whether_numba_can_be_used():
    modules = (Path(__file__).parents[2] / "src").rglob("*.py")
    asking = [path.stem for path in modules if 'find_spec("numba")' in path.read_text()]
    assert asking == ["kernel_choice"]
