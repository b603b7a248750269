"""What a package imports that brings indices or metrics of its own; see the guide "Extending"."""

from wellsep.compute.metrics.row_preparation import Prepared, Sums
from wellsep.compute.metrics.squares import Rows
from wellsep.compute.metrics.table import Metric, root, whole
from wellsep.indices.registry import Index, make_index

__all__ = ["Index", "Metric", "Prepared", "Rows", "Sums", "make_index", "root", "whole"]
