"""Runs: spaces and partitions of the same objects, as frozen records and as folders on disk.

A leaf that any room may import.
"""

from wellsep.runs.collection import NoRuns, Runs
from wellsep.runs.folder import save_run
from wellsep.runs.loading import load_runs
from wellsep.runs.run import Run

__all__ = ["NoRuns", "Run", "Runs", "load_runs", "save_run"]
