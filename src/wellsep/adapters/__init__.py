"""Read and write runs in AnnData, MLflow and Optuna.

Each library is imported when it is needed, and named with its extra when it is missing.
"""

from wellsep.adapters.anndata import runs_from_anndata, write_anndata
from wellsep.adapters.mlflow import log_run, runs_from_mlflow
from wellsep.adapters.optuna import attach_run, runs_from_optuna
from wellsep.adapters.sources import load_any

__all__ = [
    "attach_run",
    "load_any",
    "log_run",
    "runs_from_anndata",
    "runs_from_mlflow",
    "runs_from_optuna",
    "write_anndata",
]
