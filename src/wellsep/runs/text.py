"""Text and HTML that describe runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wellsep._checks.labels import NOISE, merge_noise
from wellsep._text.sentences import count, html_box, html_table, printable

if TYPE_CHECKING:
    from wellsep.runs.collection import Runs
    from wellsep.runs.run import Run

_MOST_ROWS = 8  # a repr has at most ten lines
_MOST_OBJECTS = 200_000  # clusters are counted up to here: a repr must not take seconds


def describe_run(run: Run) -> str:
    return ", ".join([count(run.n_objects, "object"), *_pieces(run)])


def runs_as_text(runs: Runs) -> str:
    lines = [f"Runs({_summary(runs)})"]
    shown = runs.runs[:_MOST_ROWS]
    names = [printable(run.name, 40) for run in shown]
    width = max(map(len, names))
    lines += [
        f"  {name:<{width}}  {', '.join(_pieces(run))}"
        for name, run in zip(names, shown, strict=True)
    ]
    if len(runs) > _MOST_ROWS:
        lines.append(f"  … and {len(runs) - _MOST_ROWS} more")
    return "\n".join(lines)


def runs_as_html(runs: Runs) -> str:
    columns = {
        "run": [run.name for run in runs.runs],
        "space": [_space(run) or "–" for run in runs.runs],
        "partition": [_clusters(run) or "–" for run in runs.runs[:_MOST_ROWS]],
        "params": [_params(run) for run in runs.runs],
    }
    columns["partition"] += ["–"] * (len(runs) - len(columns["partition"]))
    return html_box(_summary(runs), table=html_table(columns, most=_MOST_ROWS))


def _summary(runs: Runs) -> str:
    spaces, partitions = len(runs.spaces), len(runs.partitions)
    known = int((runs.made_in >= 0).sum())
    if known == partitions:
        paired = "paired"
    elif known == 0:
        paired = "not paired"
    else:
        paired = f"{known} of {partitions} partitions paired with a space"
    size = f"{count(spaces, 'space')} × {count(partitions, 'partition')}"
    tail = f", {paired}" if spaces and partitions else ""
    return f"{size} of {count(runs.n_objects, 'object')}{tail}"


def _pieces(run: Run) -> list[str]:
    made = f"made in {run.space!r}" if run.space and not run.has_embedding else ""
    return [piece for piece in (_space(run), _clusters(run), made) if piece]


def _space(run: Run) -> str:
    part = run._part("embedding")
    if part is None:
        return ""
    what = count(part.shape[1], "feature") if part.coordinates else "distances"
    return f"space of {what} ({part.dtype})"


def _clusters(run: Run) -> str:
    if not run.has_labels:
        return ""
    if run.n_objects > _MOST_OBJECTS:
        return "labels"
    try:
        labels = run.labels
    except (OSError, TypeError, ValueError):  # a repr must not raise
        return "labels"
    labels = merge_noise(labels)
    noise = int((labels == NOISE).sum()) if labels.dtype.kind == "i" else 0
    clusters = count(len(np.unique(labels)) - (noise > 0), "cluster")
    return f"{clusters}, {noise:,} noise" if noise else clusters


def _params(run: Run) -> str:
    text = ", ".join(f"{key}={value}" for key, value in run.params.items())
    return printable(text, 80)
