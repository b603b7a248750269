"""What the paper ran: its sets, methods, indices, ways of scoring, and the numbers it printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.bookkeeping import read

HERE = Path(__file__).resolve().parent
SCORES = HERE / "scores.zip"  # one folder per experiment, see scoring.py
EXPECTED = HERE / "expected.csv"
RESULTS = HERE / "results.csv"

TASKS = {
    "tuning": "Hyper-parameters",
    "clusters": "Number of clusters",
    "checkpoints": "Checkpoints",
}
METHODS = {"jule": "JULE", "depict": "DEPICT", "deepcluster": "DeepCluster"}
# our name -> (the paper's name, true number of clusters)
SETS = {
    "usps_11000": ("USPS", 10),
    "mnist_test": ("MNIST-test", 10),
    "cmu_pie_pose27": ("CMU-PIE", 68),
    "umist_112x92": ("UMist", 20),
    "coil20_128": ("COIL-20", 20),
    "coil20_32": ("COIL-20 at 32 px", 20),
    "coil100_32": ("COIL-100", 100),
    "fashion_mnist_test": ("FashionMNIST-test", 10),
    "digits": ("digits", 10),  # of --quick alone
}
# The paper's columns in its order; FRGC and YTF are not to be had.
COLUMNS = ("USPS", "YTF", "FRGC", "MNIST-test", "CMU-PIE", "UMist", "COIL-20", "COIL-100")
NOT_TO_BE_HAD = ("YTF", "FRGC")
DEPICT_COLUMNS = COLUMNS[:5]

INDICES = {
    "calinski_harabasz": "Calinski-Harabasz index",
    "davies_bouldin": "Davies-Bouldin index",
    "silhouette_cosine": "Silhouette score (cosine distance)",
    "silhouette": "Silhouette score (euclidean distance)",
    "ccc": "Cubic clustering criterion",
    "dunn": "Dunn index",
    "c_index": "Cindex",
    "s_dbw": "SDbw index",
    "cdbw": "CDbw index",
    "cfq": "Counterfactual quality (CFQ, not in the paper)",
}
MAIN = tuple(INDICES)[:4]  # tables 1, 2, 10 and the ablations
OTHERS = tuple(INDICES)[4:9]  # tables 4 and 7

APPROACHES = {"raw": "Raw score", "paired": "Paired score", "pooled": "Pooled score", "ace": "ACE"}
# What the ablations change in `wellsep.ace`.
ABLATIONS: dict[str, dict[str, Any]] = {
    "ace, no dip": {"dip": False},
    "ace, alpha .05": {"alpha": 0.05},
    "ace, all edges": {"alpha": None},
    "ace, dbscan .1": {"grouping": "dbscan", "eps": 0.1},
    "ace, dbscan .2": {"grouping": "dbscan", "eps": 0.2},
    "ace, hits": {"links": "hits"},
    "ace, outliers compete": {"outliers": "compete"},
}
# Which rows stand together, and the paper's tables (tuning NMI, ACC; clusters NMI, ACC).
ABLATION_TABLES = {
    "Dip test": (("pooled", "pooled, no dip", "ace", "ace, no dip"), (11, 12, 13, 14)),
    "Level of the edge test": (("ace", "ace, alpha .05", "ace, all edges"), (15, 17, 16, 18)),
    "DBSCAN": (("ace", "ace, dbscan .1", "ace, dbscan .2"), (19, 20, 21, 22)),
    "HITS": (("ace", "ace, hits"), (23, 24, 25, 26)),
    "Outliers": (("ace", "ace, outliers compete"), (27, 28, 29, 30)),
}
ROW_TITLES = {
    **APPROACHES,
    "pooled, no dip": "Pooled score, no dip test",
    "ace, no dip": "ACE, no dip test",
    "ace, alpha .05": "ACE, α = .05",
    "ace, all edges": "ACE, all edges",
    "ace, dbscan .1": "ACE, DBSCAN eps .1",
    "ace, dbscan .2": "ACE, DBSCAN eps .2",
    "ace, hits": "ACE, HITS",
    "ace, outliers compete": "ACE, outliers compete",
}


def split(experiment: str) -> tuple[str, str, str]:
    """Task, method and set of an experiment's folder.

    >>> split("tuning-depict-usps_11000")
    ('tuning', 'depict', 'usps_11000')
    """
    task, method, name = experiment.split("-", 2)
    if task not in TASKS or method not in METHODS or name not in SETS:
        raise ValueError(
            f"experiment must be <task>-<method>-<set> with a task of {list(TASKS)}, a method of "
            f"{list(METHODS)} and a set of {list(SETS)}, got {experiment!r}."
        )
    return task, method, name


def is_experiment(name: str) -> bool:
    """Whether a folder name is that of an experiment."""
    try:
        split(name)
    except ValueError:
        return False
    return True


def index_of(label: str) -> str:
    """The index behind a column of Scores: ``ccc(variant=nbclust)`` is ccc."""
    return label.split("(")[0]


def published() -> dict[tuple[str, ...], dict[str, Any]]:
    """Printed cells by (task, method, index, approach, set, measure)."""
    keys = ("task", "method", "index", "approach", "set", "measure")
    return {tuple(row[key] for key in keys): row for row in read(EXPECTED)}
