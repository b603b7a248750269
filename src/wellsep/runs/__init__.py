"""Runs: spaces and partitions of the same objects, as frozen records and as folders on disk.

A leaf that any room may import.
"""

from wellsep.runs.load import load_runs
from wellsep.runs.record import NoRuns, Runs
from wellsep.runs.run import Run
from wellsep.runs.store import save_run

__all__ = ["NoRuns", "Run", "Runs", "load_runs", "save_run"]
