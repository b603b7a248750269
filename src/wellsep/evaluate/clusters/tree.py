"""The resolution tree: partitions from few clusters to many, linked by the objects they share."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from wellsep._checks.values import check_names
from wellsep.compute.statistics.contingency import table_cells
from wellsep.evaluate.clusters.tree_record import ResolutionTree
from wellsep.evaluate.vote.ballot import labels_of
from wellsep.partitions import Partitions, is_noise


def resolution_tree(runs: Any, labels: str | Iterable[str] | None = None) -> ResolutionTree:
    """Find which clusters split into which as the number of clusters grows.

    Partitions are put in the order of their number of clusters; equal numbers stay in the order
    they come in. Each cluster is linked with the clusters of the next partition that it has
    objects in common with. Noise (-1, -2, -3) is a node of its own.

    Parameters
    ----------
    runs : ChosenK, Runs, AnnData, mapping of names to label vectors, data frame or array (M, n)
        The partitions, of the same objects. Each column of a frame and each row of an array is
        one. Of a ``ChosenK`` the partitions of every K.
    labels : str or iterable of str, optional
        Which partitions to take, by patterns such as ``"leiden_*"``; a text is split at commas.
        AnnData needs it.

    Returns
    -------
    ResolutionTree
        ``explain()``, ``to_frame()``, ``parents``, ``parent_shares``, ``save()``; drawn by
        ``wellsep.plot.ResolutionTreeDisplay``.

    References
    ----------
    Zappia and Oshlack (2018), Clustering trees: a visualization for evaluating clusterings at
    multiple resolutions, GigaScience 7.

    Examples
    --------
    >>> import wellsep as ws
    >>> tree = ws.resolution_tree({"k2": [0, 0, 0, 1, 1, 1], "k3": [0, 0, 2, 1, 1, 1]})
    >>> print(tree.explain().splitlines()[0])
    k2 → k3: cluster 0 splits into 0 (67%) and 2 (33%).
    >>> tree.parents.tolist()
    [-1, -1, 0, 1, 0]
    """
    partitions = _opened(runs, labels).noise_as_cluster()
    if len(partitions) < 2:
        raise ValueError(
            f"runs must hold at least 2 partitions, got {len(partitions)}; a tree links partitions."
        )
    noisy = [is_noise(classes) for classes in partitions.classes]
    order = np.argsort([int((~no).sum()) for no in noisy], kind="stable")
    widths = np.array([len(partitions.classes[m]) for m in order])
    starts = np.concatenate([[0], np.cumsum(widths)])
    links, counts = [], []
    for step, (m, after) in enumerate(pairwise(order)):
        n, width = int(widths[step]), int(widths[step + 1])
        cells, found = table_cells(partitions.codes[m], partitions.codes[after], n, width)
        source, target = np.divmod(cells, width)
        links.append(np.stack([starts[step] + source, starts[step + 1] + target], axis=1))
        counts.append(found)
    return ResolutionTree(
        levels=tuple(partitions.names[m] for m in order),
        clusters=tuple(
            "noise" if alone else str(label)
            for m in order
            for label, alone in zip(partitions.classes[m].tolist(), noisy[m], strict=True)
        ),
        level=np.repeat(np.arange(len(order)), widths),
        sizes=np.concatenate([np.bincount(partitions.codes[m]) for m in order]),
        is_noise=np.concatenate([noisy[m] for m in order]),
        links=np.concatenate(links),
        counts=np.concatenate(counts),
    )


def _opened(runs: Any, labels: str | Iterable[str] | None) -> Partitions:
    """The partitions that were chosen, of whatever holds them."""
    if labels is not None and not isinstance(labels, str):
        labels = check_names("labels", labels)
    if type(runs).__module__.partition(".")[0] == "anndata":
        from wellsep.adapters.anndata import clusterings_of

        return Partitions.from_labels(dict(clusterings_of(runs, labels).partitions))
    if hasattr(runs, "labels_for") and hasattr(runs, "k"):  # ChosenK, which is not imported here
        named = dict(zip((f"K = {k}" for k in runs.k), runs.labels, strict=True))
        found = Partitions.from_labels(named)
    else:
        found = Partitions.from_labels(labels_of(runs))
    if labels is None:
        return found
    from wellsep.adapters.stores import matching

    chosen = matching(labels, found.names, "labels")
    return found.subset([found.names.index(name) for name in chosen])
