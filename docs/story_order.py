"""The order of the examples in the gallery: what newcomers ask first comes first."""

from __future__ import annotations

ORDER = (
    "customers.py",
    "how_many_clusters.py",
    "mixed_table.py",
    "topics_with_noise.py",
    "single_cells.py",
    "sentence_embeddings.py",
    "time_series.py",
    "shapes_and_indices.py",
    "deep_sweep.py",
    "forty_deep_runs.py",
    "settled_digits.py",
    "simulation_study.py",
)


class StoryOrder:
    """Key by which sphinx-gallery sorts the files of the gallery."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> int:
        """Return the place of a file; what is not in the list comes last."""
        return ORDER.index(filename) if filename in ORDER else len(ORDER)
