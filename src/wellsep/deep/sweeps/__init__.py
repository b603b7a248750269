"""Sweeps over settings: trials, their processes, Optuna's studies."""
