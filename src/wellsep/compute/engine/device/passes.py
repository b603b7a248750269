"""The passes that the device makes in its own way; all others are those of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wellsep.compute.engine.device.batches import memberships
from wellsep.compute.engine.device.clusters import spectrum_on_device, sum_members, sweep_rows
from wellsep.compute.engine.device.density import density_on_device
from wellsep.compute.engine.device.neighbours import find_graph
from wellsep.compute.engine.device.representatives import represented_on_device
from wellsep.compute.engine.device.selection import select_rows
from wellsep.compute.engine.device.widths import provide_summed_widths, reduce_sums
from wellsep.compute.statistics import ball_counts as density
from wellsep.compute.statistics import centre_distances as clusters
from wellsep.compute.statistics import cluster_moments as moments
from wellsep.compute.statistics import cluster_representatives as representatives
from wellsep.compute.statistics import distance_sums as sums
from wellsep.compute.statistics import neighbour_graph as neighbours
from wellsep.compute.statistics import ranked_sums as selection

PASSES: dict[Callable[..., Any], Callable[..., Any]] = {
    clusters.provide_summed_widths: provide_summed_widths,
    clusters.sum_members: sum_members,
    clusters.sweep_rows: sweep_rows,
    density.provide_density: density_on_device,
    moments.provide_spectrum: spectrum_on_device,
    neighbours.find_graph: find_graph,
    representatives.provide_represented: represented_on_device,
    selection.select_rows: select_rows,
    sums.memberships: memberships,
    sums.reduce_sums: reduce_sums,
}
