"""Sets what bench_dask_scaling measured in docs/guides/dask.md, and multiplies it for a cluster.

`tabulate` writes both parts between their marks; no figure of them is typed in.
"""

from __future__ import annotations

import re
from typing import Any

FILE = "bench_dask_scaling"
END = "<!-- end -->"
MARK = "<!-- {}: made by benchmarks/dask_tables.py -->"

# The cluster on paper.
ROWS, WORKERS, CHUNK_ROWS, ITEM = 10**9, 100, 500_000, 4
FIT, EXTRA_PASSES, ROUNDS = 25, 3, 4  # iterations, passes a fit adds, draws of k-means‖
SAMPLED = 2000
LABEL = 4  # bytes
ARITY = 8  # partial results that a task adds up
SMALL = 16_000_000  # bytes of a chunk that is too small
_WHAT = ("iteration", "indices")

Facts = dict[str, Any]


def with_tables(text: str, records: list[Facts]) -> str:
    """The guide with both parts between their marks replaced; as it was without measurements."""
    mine = [record for record in records if record["file"] == FILE]
    if not mine:
        return text
    for name, part in (("measured", measured(mine)), ("on paper", on_paper(mine[0]))):
        begin = MARK.format(name)
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(END), re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"dask.md must hold one part between {begin!r} and {END!r}.")
        whole = f"{begin}\n\n{part}\n\n{END}"
        text = pattern.sub(lambda _, whole=whole: whole, text)  # type: ignore[misc]
    return text


def measured(records: list[Facts]) -> str:
    facts = records[0]
    slopes = {(r["what"], r["workers"]): r["value"] for r in records if r["unit"] == ""}
    rows, times = facts["rows"], facts["seed"]
    lines = [
        _row("", f"{rows[0]:,} rows", *(f"{n:,}" for n in rows[1:]), "exponent"),
        _row(*["---"] * (len(rows) + 2)),
    ]
    for what, title in (
        ("iteration", "a k-means iteration"),
        ("indices", "six centroid indices together (two passes)"),
    ):
        for workers in (1, 2):
            spent = [duration(_cost(facts, what, workers, t)["busiest"]) for t in times]
            name = f"{title}, 1 worker" if workers == 1 else "2 workers"
            lines.append(_row(name, *spent, f"{slopes[what, workers]:.2f}"))
        sent = [size(_cost(facts, what, 2, t)["traffic"]) for t in times]
        lines.append(_row("sent between processes, 2 workers", *sent, ""))
    d, one, both = facts["features"], *(_cost(facts, w, 1, times[-1])["traffic"] for w in _WHAT)
    return "\n".join(lines) + (
        "\n\nTimes are processor seconds of the busiest worker, which tell more than the clock "
        "where other programs run. Exponents are fitted to those of all workers. Only sums are "
        f"sent between processes: {size(one)} a chunk for an iteration, {size(both)} for the "
        f"indices. Most of the latter are the {d} × {d} products that `ccc` needs. Sums are not "
        "sent if the next step is done where they are. Labels that a worker keeps are sent too if "
        "another worker takes the chunk, 4 bytes an object. A chunk of X is never sent."
    )


def on_paper(facts: Facts) -> str:
    d, k, last = facts["features"], facts["clusters"], facts["seed"][-1]
    n_chunks = ROWS // CHUNK_ROWS
    parts = n_chunks * ARITY / (ARITY - 1)  # partial results, sums of them, sums of sums
    per_row = {w: _cost(facts, w, 2, last)["processor"] / facts["rows"][-1] for w in _WHAT}
    sent = {w: _cost(facts, w, 1, last)["traffic"] * parts for w in _WHAT}
    wall = {w: per_row[w] * ROWS / WORKERS for w in _WHAT}
    # Draws see 1, 1 + K, 1 + 2K … candidates, and a last pass all of them.
    start = sum(1 + i * k for i in range(ROUNDS + 1)) / k
    fit_s = (start + FIT + EXTRA_PASSES) * wall["iteration"]
    fit_sent = (ROUNDS + FIT + EXTRA_PASSES) * sent["iteration"]
    once = facts["once"]
    sampled, exact = (once[w]["processor"] / once[w]["distances"] for w in ("estimate", "exact"))
    estimate_s = sampled * SAMPLED * ROWS / WORKERS
    pairs = ROWS * (ROWS - 1) / 2
    lines = [
        _row("", "processor time", f"on {WORKERS} workers", "sent"),
        _row(*["---"] * 4),
        _row(
            "a k-means iteration",
            f"{1e6 * per_row['iteration']:.1f} µs a row",
            duration(wall["iteration"]),
            size(sent["iteration"]),
        ),
        _row(
            "k-means‖ start",
            f"as {start:.0f} iterations, in {ROUNDS + 1} passes",
            duration(start * wall["iteration"]),
            size(ROUNDS * sent["iteration"]),
        ),
        _row(
            f"fit: start, {FIT} iterations and {EXTRA_PASSES} passes",
            "",
            duration(fit_s),
            size(fit_sent),
        ),
        _row(
            "six centroid indices",
            f"{1e6 * per_row['indices']:.0f} µs a row",
            duration(wall["indices"]),
            f"{size(sent['indices'])}, and at most {size(2 * LABEL * ROWS)} of labels",
        ),
        _row(
            f"`silhouette_estimate`, {SAMPLED:,} sampled",
            f"{1e9 * sampled:.1f} ns a distance",
            duration(estimate_s),
            f"{size(8 * k * SAMPLED * parts)}, and at most {size(LABEL * ROWS)} of labels",
        ),
        _row(
            "exact silhouette",
            f"{1e9 * exact:.1f} ns a distance, 5 · 10¹⁷ of them",
            f"{duration(exact * pairs / WORKERS)}: take the estimate",
            "",
        ),
    ]
    chunk, whole, task = CHUNK_ROWS * d * ITEM, ROWS * d * ITEM, once["seconds_a_task"]
    share, scheduled = whole / WORKERS, task * parts
    return (
        f"Nothing here was run; it is the table above multiplied. {size(whole)} of float32, "
        f"{WORKERS} workers of one thread, K = {k}, chunks of {size(chunk)} ({CHUNK_ROWS:,} rows, "
        f"{n_chunks:,} chunks, {n_chunks // WORKERS} a worker). A pass sends each chunk's partial "
        f"result, and sums of {ARITY} of them again: {ARITY}/{ARITY - 1} of them in all.\n\n"
        + "\n".join(lines)
        + f"\n\nReading comes on top. Each worker reads {size(share)} in a pass. That takes "
        f"{duration(share / 5e8)} from a local disk at 500 MB/s, and {duration(share / 1e8)} from "
        "a file server that gives each worker 100 MB/s. It takes no time once `X.persist()` holds "
        f"the {size(whole)} in the workers' memory. The scheduler took {1e3 * task:.1f} ms a task "
        f"here, on the same two cores as the workers. That is {duration(scheduled)} a pass, during "
        f"most of which the workers work. With chunks of {size(SMALL)} it is "
        f"{duration(scheduled * chunk / SMALL)}."
    )


def _cost(facts: Facts, what: str, workers: int, times: int) -> dict[str, float]:
    return facts["costs"][f"{what}, {workers} worker(s), × {times}"]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def duration(seconds: float) -> str:
    """Two or three digits in the unit that suits."""
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 3 * length:
            return f"{_digits(seconds / length)} {unit}"
    return f"{seconds:.2f} s" if seconds < 10 else f"{_digits(seconds)} s"


def size(n_bytes: float) -> str:
    for unit, length in (("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= length:
            return f"{_digits(n_bytes / length)} {unit}"
    return f"{_digits(n_bytes / 1e3)} kB"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
