"""Tests of scikit-learn that do not hold for ours, each with the reason.

A key is the name of a test, or the beginning of its id with parameters. Such a test must fail: one
that holds after all is reported, so that the list stays true.
"""

from __future__ import annotations

UNDEFINED = "An index without a value raises UndefinedIndex; scikit-learn returns 1.0 or 0.0."
PRIVATE = "The test looks at private attributes or methods of scikit-learn's class."
LEFT_OUT: dict[str, dict[str, str]] = {
    "test_unsupervised_metrics.py": {
        "test_calinski_harabasz_score": UNDEFINED,
        "test_davies_bouldin_score": UNDEFINED,
        "test_silhouette_nonzero_diag": "A diagonal may hold what rounding leaves of distances "
        "from products: a share of the largest distance, not 100 eps.",
        "test_silhouette_samples_precomputed_sparse": "Absent pairs of a sparse matrix of "
        "distances are unknown, not 0; Distances(graph, absent=0.0) says that they are.",
        "test_silhouette_samples_euclidean_sparse": "Sparse float32 data are worked on in "
        "float64, dense ones in float32: a width of 0.003 differs by 8e-9.",
    },
    "test_supervised_metrics.py": {},
    "test_kmeans.py": {
        "test_kmeans_init_auto_with_initial_centroids[KMeans-": PRIVATE,
        "test_n_init_auto[KMeans-10]": PRIVATE,
        "test_sample_weight_init": PRIVATE,
        "test_sample_weight_zero": PRIVATE,
        "test_kmeans_verbose": "The library prints nothing; progress goes to callbacks.",
        "test_warning_n_init_precomputed_centers[KMeans]": "That n_init is not used for "
        "given centres is warned of in other words.",
        "test_warning_elkan_1_cluster": "One loop serves 'lloyd' and 'elkan', also for one "
        "cluster, so there is nothing to warn of.",
    },
}


def why_left_out(file: str, test: str) -> str | None:
    """Why a test does not hold; None if it must."""
    for key, reason in LEFT_OUT[file].items():
        if test == key or test.startswith(key if "[" in key else f"{key}["):
            return reason
    return None
