"""An index, a metric and an adapter that wellsep finds by their entry points."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wellsep.extending import Metric, Prepared, make_index, root
from wellsep.runs import Runs


def ball_hall(clusters, within):
    """Mean over the clusters of their mean squared distance to the centre."""
    return float((within / clusters.mass).mean())


BALL_HALL = make_index(
    ball_hall,
    name="ball_hall",
    title="Ball-Hall",
    direction=-1,
    range=(0, np.inf),
    cost="n·d",
    laws=("labels", "order", "translation", "rotation"),
    sparse=True,
    citation="Ball & Hall, ISODATA, a novel method of data analysis and pattern classification "
    "(1965)",
    caution="Falls with every cluster that is added: compare partitions of the same K.",
)


def root_rows(space, wide):
    """Square roots of half the shares, in float64 if `wide`."""
    xp = space.xp
    X = xp.astype(space.X, xp.float64) if wide else space.X
    return Prepared(xp.sqrt(X / 2))


HELLINGER = Metric("hellinger", prepare=root_rows, finish=root)


def load_notes(source, *, name=None):
    """Read clusterings from a text file: on each line a name, a colon, and the labels."""
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    found = dict(line.split(":", 1) for line in lines if line.strip())
    partitions = {key.strip(): labels.split() for key, labels in found.items()}
    return Runs.from_parts(None, partitions)
