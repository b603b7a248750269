"""How benchmarks measure and report: ratios within one run, facts about code and machine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = (
    "wellsep", "numpy", "scipy", "scikit-learn", "numba", "torch", "triton", "dask",
    "diptest", "genieclust", "permetrics",
)  # fmt: skip
LONG_ENOUGH = 30.0  # seconds of a baseline, all its repeats together
RUN = f"{time.time_ns() // 1_000_000:x}-{os.getpid():x}"  # lines of one run belong together


@dataclass(frozen=True)
class Ratio:
    """Best times of two programs that took turns, and how many times faster ours is."""

    baseline_s: float
    ours_s: float
    repeats: int

    @property
    def ratio(self) -> float:
        return self.baseline_s / self.ours_s


def seconds(function: Callable[[], Any]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def processor_seconds(function: Callable[[], Any]) -> float:
    """Processor time of one call, of all threads together; what else runs here hardly matters."""
    start = time.process_time()
    function()
    return time.process_time() - start


def time_ratio(
    baseline: Callable[[], Any], ours: Callable[[], Any], repeats: int = 5, *, warm: bool = True
) -> Ratio:
    """Time two programs in turns and keep the best of each.

    Taking turns lets a slow spell of the machine hit both; the best is what the code needs
    when nothing interferes. With ``warm``, ours is called once before, so that compiling or
    importing is not counted; measure a cold start by itself. A baseline that has taken
    ``LONG_ENOUGH`` is not repeated any further.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}.")
    if warm:
        ours()
    pairs: list[tuple[float, float]] = []
    while len(pairs) < repeats and sum(taken for taken, _ in pairs) < LONG_ENOUGH:
        pairs.append((seconds(baseline), seconds(ours)))
    return Ratio(min(b for b, _ in pairs), min(o for _, o in pairs), len(pairs))


@dataclass(frozen=True)
class Child:
    """What a program run in its own process took and said."""

    seconds: float
    peak_mb: float
    output: str


def run_child(code: str, **environment: str) -> Child:
    """Run Python code in a fresh interpreter; measures wall-clock time and peak memory."""
    tail = (
        "\nimport sys as _s"
        "\nfrom benchmarks.harness import peak_memory_mb as _peak"
        "\n_s.stderr.write(f'peak {_peak()}')"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code + tail],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=ROOT,
    )
    taken = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"the child process failed:\n{done.stderr}")
    return Child(taken, float(done.stderr.rsplit("peak ", 1)[1]), done.stdout)


def peak_memory_mb() -> float:
    """Largest resident memory of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would begin at the size of the process that forked this one
        marks = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(marks[0].split()[1]) / 1024
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def report(
    question: str,
    measured: Ratio | float,
    *,
    baseline: str,
    target: float | None = None,
    unit: str = "×",
    smaller_is_better: bool = False,
    results: Path | None = None,
    **facts: Any,
) -> bool:
    """Print one line and append one JSON line; returns whether the target is met.

    ``measured`` is a `Ratio` (ours against the named baseline) or a number in ``unit``;
    ``facts`` (sizes, seeds, differences found by the correctness check) go into the JSON line.
    """
    value = measured.ratio if isinstance(measured, Ratio) else float(measured)
    met = target is None or (value <= target if smaller_is_better else value >= target)
    record = {
        "question": question,
        "value": value,
        "unit": unit,
        "target": target,
        "met": met,
        "smaller_is_better": smaller_is_better,
        "baseline": baseline,
        **(asdict(measured) if isinstance(measured, Ratio) else {}),
        **facts,
        "run": RUN,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
    }
    goal = (
        "" if target is None else f" (target {'≤' if smaller_is_better else '≥'} {target:g}{unit})"
    )
    times = ""
    if isinstance(measured, Ratio):
        times = f"; {baseline} {measured.baseline_s:.3g} s, wellsep {measured.ours_s:.3g} s"
    print(f"[{'ok' if met else 'MISSED'}] {question}: {value:.3g}{unit}{goal}{times}")
    path = results or RESULTS / f"{_program()}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")
    return met


def _program() -> str:
    return Path(sys.argv[0]).stem or "interactive"


def commit() -> str:
    """The commit of the checkout, marked where tracked files differ from it.

    A copy without its history, as on a borrowed card, is told by ``WELLSEP_COMMIT``.
    """
    if named := os.environ.get("WELLSEP_COMMIT"):
        return named
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return described.stdout.strip()


def versions() -> dict[str, str]:
    """Python and those of the packages that matter, as far as installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Cores this process may use, processor, graphics card, system, load, thread limits."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    limits = {k: os.environ[k] for k in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if k in os.environ}
    facts = {"cores": cores, "cpu": _cpu(), "system": platform.platform(terse=True), **limits}
    if hasattr(os, "getloadavg"):
        facts["load"] = round(os.getloadavg()[0], 1)  # above ``cores``, others were at work too
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
    return facts


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
