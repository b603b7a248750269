"""How work is cut and shared: blocks of rows, rounds of pairs of blocks, threads, memory."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context, get_config
from threadpoolctl import ThreadpoolController

from wellsep._checks.values import check_jobs

ROWS = 500  # 2 MB of float64 stay in a core's cache; a power of two would transpose 6× slower
TENSOR_ROWS = 4096  # tensors are worked on by one caller, so fewer and larger blocks


def budget_bytes() -> float:
    """scikit-learn's ``working_memory``, in bytes."""
    return get_config()["working_memory"] * 2**20


def check_square(n_clusters: int) -> None:
    """Refuse tables of clusters × clusters where one of them exceeds the budget."""
    most = int((budget_bytes() / 8) ** 0.5)
    if n_clusters > most:
        raise ValueError(
            f"labels must have at most {most} clusters for this index, got {n_clusters}: one of "
            f"its tables of clusters × clusters would take {8 * n_clusters**2 / 2**30:.2g} GiB, "
            f"and scikit-learn's working_memory is {budget_bytes() / 2**20:.4g} MiB; raise that "
            "with sklearn.set_config, or merge clusters."
        )


@lru_cache(maxsize=1)
def _controller() -> Any:
    return ThreadpoolController()


@lru_cache(maxsize=1)
def _blas() -> Any:
    return _controller().select(user_api="blas")


class _Limit:
    """The one limit on BLAS in this program."""

    lock = threading.Lock()
    threads_before: int | None = None
    held = False


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, our own threads share out the blocks, so BLAS must not start its own.

    The number of BLAS threads belongs to the program, not to a thread of it: who finds it limited
    leaves it so, and only who limited it restores it.
    """
    with _Limit.lock:
        outermost = not _Limit.held
        if outermost:
            threads = _threads_of_each()
            _Limit.threads_before, _Limit.held = min(threads, default=None), True
    if not outermost:
        yield
        return
    try:
        if max(threads, default=1) == 1:  # the limit would change nothing, and takes 20 µs
            yield
            return
        with _blas().limit(limits=1):
            yield
    finally:
        _Limit.held = False


def _threads_of_each() -> list[int]:
    return [lib.num_threads for lib in _blas().lib_controllers]


@contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Inside, compiled loops of other libraries add up in one order."""
    with _controller().limit(limits=1, user_api="openmp"):
        yield


@contextmanager
def own_threads() -> Iterator[None]:
    """Inside, BLAS has one thread, and blocks are shared out over as many as it had before.

    Sums then do not depend on the number of threads. It also decorates functions.
    """
    token = _THREADS.set(effective_jobs(None))
    try:
        with one_blas_thread():
            yield
    finally:
        _THREADS.reset(token)


_THREADS: ContextVar[int | None] = ContextVar("threads", default=None)


def effective_jobs(n_jobs: int | None) -> int:
    """Threads to use: None asks what BLAS would use (OMP_NUM_THREADS and the like hold)."""
    if n_jobs is not None:
        return effective_n_jobs(check_jobs(n_jobs))
    threads = _THREADS.get()
    if threads is not None:
        return threads
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    blas = _Limit.threads_before if _Limit.held else min(_threads_of_each(), default=None)
    return max(1, min(cores or 1, blas or 1 << 20))


def in_threads(jobs: int, task: Callable[..., Any], items: Sequence) -> None:
    """Run ``task(item)`` of all items, which touch different rows, in so many threads."""
    in_rounds(jobs, task, [[(item,) for item in items]])


def in_rounds(jobs: int, task: Callable[..., Any], rounds: Iterable) -> None:
    """Run ``task(*item)`` of every round's items at once, one round after the other.

    Items of one round touch different rows, so sums do not depend on the number of threads.
    """

    with one_blas_thread():
        for items in rounds:
            if jobs > 1:
                share_blocks(jobs, lambda some: in_rounds(1, task, [some]), items)
                continue
            stopped = _STOPPED.get()
            for item in items:
                if stopped is not None and stopped.is_set():
                    raise CancelledError
                task(*item)


# Set in threads of `some_at_once` once their caller has been interrupted.
_STOPPED: ContextVar[threading.Event | None] = ContextVar("stopped", default=None)


def some_at_once(
    threads: int, task: Callable[..., Any], items: Iterable[tuple], *, first_alone: bool = False
) -> Generator[Any, None, None]:
    """``task(*item)`` of every item, in their order, computed in so many threads.

    BLAS has one thread, also where there is one here, so that results are the same to the bit.
    With ``first_alone`` the others wait for the first item: it compiles what all of them need.
    """
    items = iter(items)
    with one_blas_thread():
        if threads == 1:
            for item in items:
                yield task(*item)
            return
        if first_alone:
            for item in items:
                yield task(*item)
                break
        stopped = threading.Event()
        run = _as_here(task, stopped)
        waiting: deque[Future] = deque()
        pool = ThreadPoolExecutor(threads)
        try:
            for item in items:
                waiting.append(pool.submit(run, *item))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


def _as_here(task: Callable[..., Any], stopped: threading.Event) -> Callable[..., Any]:
    """The task with what belongs to the calling thread: scikit-learn's settings, the CUDA card."""
    settings = get_config()
    torch = sys.modules.get("torch")
    card = None
    if torch is not None and torch.cuda.is_initialized():
        card = torch.cuda.current_device()

    def run(*item: Any) -> Any:
        _STOPPED.set(stopped)
        with ExitStack() as stack:
            stack.enter_context(config_context(**settings))
            if card is not None:
                stack.enter_context(torch.cuda.device(card))  # type: ignore[union-attr]
            return task(*item)

    return run


class _IdleThreads:
    """Threads that wait for short work: a new one takes as long as half a million products."""

    pool: ThreadPoolExecutor | None = None

    @classmethod
    def forget(cls) -> None:
        cls.pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IdleThreads.forget)  # the child has none of the threads


def share_blocks(jobs: int, scan: Callable[[Iterable], None], blocks: Sequence) -> None:
    """Call ``scan`` with the blocks in so many threads, of which the caller is one.

    Whoever is free takes the next block. After an error or Ctrl-C nothing new is begun.
    """
    jobs = min(jobs, len(blocks))
    if jobs <= 1:
        scan(blocks)
        return
    if _IdleThreads.pool is None:  # one that starts the threads it needs
        _IdleThreads.pool = ThreadPoolExecutor(max(32, os.cpu_count() or 1))
    stopped, left = threading.Event(), iter(blocks)

    def work() -> None:
        try:
            scan(takewhile(lambda block: not stopped.is_set(), left))
        except BaseException:
            stopped.set()
            raise

    with one_blas_thread():
        others = [_IdleThreads.pool.submit(work) for _ in range(jobs - 1)]
        try:
            work()
        finally:
            begun = [other for other in others if not other.cancel()]
            wait(begun)
    for other in begun:
        other.result()


def pair_rounds(n_blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair i < j of blocks once, in rounds of disjoint pairs; first the blocks themselves."""
    yield [(i, i) for i in range(n_blocks)]
    players = list(range(n_blocks + n_blocks % 2))
    for _ in range(len(players) - 1):
        pairs = zip(players[: len(players) // 2], reversed(players), strict=False)
        yield [(min(p), max(p)) for p in pairs if max(p) < n_blocks]
        players = [players[0], players[-1], *players[1:-1]]


def cut_rows(n: int, rows: int, groups: np.ndarray | None = None) -> list[slice]:
    """Consecutive blocks of at most ``rows``; none straddles two of the (sorted) groups."""
    if groups is None and 0 < n <= rows:
        return [slice(0, n)]
    edges = [0, n] if groups is None else [0, *(np.flatnonzero(np.diff(groups)) + 1), n]
    blocks = []
    for a, b in pairwise(edges):
        pieces = -(-(b - a) // rows)
        marks = np.linspace(a, b, pieces + 1).astype(int)
        blocks += [slice(int(i), int(j)) for i, j in pairwise(marks)]
    return blocks


def row_blocks(n: int, width: float, budget: float, least: int = 64) -> Iterator[slice]:
    """Slices over n rows whose blocks hold about ``budget`` entries at ``width`` per row."""
    step = max(least, int(budget / max(width, 1)))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def merge(parts: Sequence[Any]) -> Any:
    """Parts as one: arrays and numbers added entry by entry, through records, lists and dicts.

    A record that does not simply add has a method ``merged``.
    """
    first = parts[0]
    if first is None or len(parts) == 1:
        return first
    if hasattr(first, "merged"):
        return type(first).merged(parts)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(merge(column) for column in zip(*parts, strict=True)))
    if isinstance(first, tuple | list):
        return [merge(column) for column in zip(*parts, strict=True)]
    if isinstance(first, dict):
        return {key: merge([p[key] for p in parts]) for key in first}
    total = first
    for part in parts[1:]:
        total = total + part
    return total
