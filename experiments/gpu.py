"""Trainings within a time limit, and several of them on one GPU."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator


class OutOfTime(BaseException):
    """The time limit was met; the state on disk lets the training go on."""


class Deadline:
    """A scikit-learn callback that ends a fit at a moment, in seconds of `time.time`."""

    def __init__(self, end: float) -> None:
        self.end = end

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if time.time() > self.end:
            raise OutOfTime


@contextlib.contextmanager
def multi_process_service() -> Iterator[bool]:
    """NVIDIA's service that lets processes use a GPU at the same time, where it is installed."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield control is not None  # not there, or at work already
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = folder
        os.environ["CUDA_MPS_LOG_DIRECTORY"] = folder
        started = subprocess.run([control, "-d"], check=False).returncode == 0
        if not started:
            del os.environ["CUDA_MPS_PIPE_DIRECTORY"]
        try:
            yield started
        finally:
            if started:
                subprocess.run([control], input="quit\n", text=True, check=False, timeout=20)
