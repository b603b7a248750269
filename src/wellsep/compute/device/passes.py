"""The passes that the device makes in its own way; all others are those of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wellsep.compute import clusters, density, moments, neighbours, representatives, selection, sums
from wellsep.compute.device.batches import memberships
from wellsep.compute.device.clusters import spectrum_on_device, sum_members, sweep_rows
from wellsep.compute.device.density import density_on_device
from wellsep.compute.device.neighbours import find_graph
from wellsep.compute.device.representatives import represented_on_device
from wellsep.compute.device.selection import select_rows
from wellsep.compute.device.widths import provide_summed_widths, reduce_sums

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
