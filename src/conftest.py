"""Skips the examples of modules whose optional packages are absent, with the extra to install."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent
# package → where it comes from; any other import that fails is an error
OPTIONAL = {
    "numba": "the extra fast",
    "torch": "the extra deep",
    "safetensors": "the extra deep",
    "triton": "torch for CUDA",
    "dask": "the extra dask",
    "distributed": "the extra dask",
    "matplotlib": "the extra plot",
    "anndata": "the extra anndata",
    "optuna": "the extra optuna",
    "mlflow": "the extra mlflow",
}
# Modules that can be imported without the package, but whose examples use it.
USED = {
    "wellsep.adapters.anndata": "anndata",
    "wellsep.adapters.mlflow": "mlflow",
    "wellsep.adapters.optuna": "optuna",
    "wellsep.plot": "matplotlib",
    "wellsep.runs.tables_on_disk": "dask",
}


def absent_package(module: str) -> str | None:
    """Return the optional package that a module's examples need and that is not installed."""
    for name, package in USED.items():
        if f"{module}.".startswith(f"{name}.") and not find_spec(package):
            return package
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        return package if package in OPTIONAL else None  # pytest reports the others as errors
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport | None:
    """Report the module of a package that is absent as skipped; leave the others to pytest."""
    path = collector.path
    if path.suffix != ".py" or not path.is_relative_to(SOURCE / "wellsep"):
        return None
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    package = absent_package(module)
    if package is None:
        return None
    reason = f"Skipped: {module} needs {package}, which comes with {OPTIONAL[package]}"
    return pytest.CollectReport(collector.nodeid, "skipped", (str(path), 1, reason), [])
