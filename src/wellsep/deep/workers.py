"""Trainings side by side: processes, or threads that share a CUDA device."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from typing import Any

import torch

from wellsep._checks import check_choice
from wellsep.deep.data import choose_device

WORKERS = ("auto", "threads", "processes")


class Stopped(BaseException):
    """A training was told to end because its sweep did."""


class StopWhenTold:
    """A scikit-learn callback that ends a fit once an event is set."""

    def __init__(self) -> None:
        self.told = threading.Event()

    def setup(self, estimator: Any, context: Any) -> None:
        """A fit begins."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """A fit has ended."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """A stage or an epoch begins."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """A stage or an epoch has ended."""
        if self.told.is_set():
            raise Stopped


def choose_workers(workers: str, estimator: Any) -> str:
    """Threads or processes for trainings of one estimator.

    Processes take turns on a CUDA device; threads of one process use it at the same time, each
    in its own stream. That pays where steps are recorded, so that Python has little to do.
    """
    check_choice("workers", workers, WORKERS)
    if workers != "auto":
        return workers
    on_cuda = choose_device(estimator.device).type == "cuda"
    return "threads" if on_cuda and estimator._recorded else "processes"


def side_by_side(
    run: Callable[..., Any],
    settings: Sequence[Mapping[str, Any]],
    n_jobs: int,
    workers: str,
    device: str,
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Settings and what `run` gives for them, as they end; an exception in place of a result.

    In threads `run` is also given a callback, which it should set on its estimator so that
    the training ends when the caller does.
    """
    if n_jobs == 1 or len(settings) < 2:
        for params in settings:
            yield params, run(params)
    elif workers == "threads":
        yield from _in_threads(run, settings, n_jobs, choose_device(device))
    else:
        yield from _in_processes(run, settings, n_jobs)


def _in_threads(
    run: Callable[..., Any],
    settings: Sequence[Mapping[str, Any]],
    n_jobs: int,
    device: torch.device,
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    stop = StopWhenTold()

    def task(params: Mapping[str, Any]) -> Any:
        cuda = device.type == "cuda"
        with torch.cuda.stream(torch.cuda.Stream(device)) if cuda else nullcontext():
            return run(params, callback=stop)

    pool = ThreadPoolExecutor(min(n_jobs, len(settings)))
    try:
        yield from _as_they_end(pool, task, settings)
    finally:
        stop.told.set()  # only an interruption finds any still at work
        pool.shutdown(cancel_futures=True)


_run: Callable[..., Any] | None = None


def _start_process(run: Callable[..., Any]) -> None:
    global _run
    _run = run
    # Processes share the cores; each training gets one, and CUDA work needs no more.
    torch.set_num_threads(1)


def _run_in_process(params: Mapping[str, Any]) -> Any:
    if _run is None:
        raise RuntimeError("the process was not started with a job")
    return _run(params)


def _in_processes(
    run: Callable[..., Any], settings: Sequence[Mapping[str, Any]], n_jobs: int
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    # Fresh processes: CUDA does not survive a fork.
    context = multiprocessing.get_context("spawn")
    count = min(n_jobs, len(settings))
    with ProcessPoolExecutor(count, context, initializer=_start_process, initargs=(run,)) as pool:
        yield from _as_they_end(pool, _run_in_process, settings)


def _as_they_end(
    pool: Executor, task: Callable[..., Any], settings: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], Any]]:
    waiting = {pool.submit(task, params): params for params in settings}
    for future in as_completed(waiting):
        try:
            yield waiting[future], future.result()
        except Exception as error:  # the process died, of memory for example
            yield waiting[future], error
