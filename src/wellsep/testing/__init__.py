"""Check an index, a metric or an adapter of one's own against what wellsep expects of it.

Each function raises ``AssertionError`` with a sentence that names the promise that was broken. They
need no test framework. wellsep's own tests of its indices and metrics are these.
"""

from wellsep.testing.adapters import check_adapter
from wellsep.testing.indices import check_index
from wellsep.testing.metrics import check_metric

__all__ = ["check_adapter", "check_index", "check_metric"]
