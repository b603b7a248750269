"""On a CPU every method clusters the 1,797 digits in about two minutes with its small preset."""

from __future__ import annotations

import time

import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.deep import METHODS, path_integral

X, TRUTH = load_digits(return_X_y=True)
IMAGES = X.reshape(-1, 8, 8)
# k-means on the pixels has .74; the floors leave room for another seed or processor.
FLOORS = {
    "DeepKMeans": 0.70,
    "DeepCFMeans": 0.70,
    "DEC": 0.70,
    "IDEC": 0.70,
    "DEPICT": 0.80,
    "JULE": 0.80,
    "DeepCluster": 0.75,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_digits_are_clustered_in_two_minutes(name):
    start = time.process_time()
    model = METHODS[name](10, preset="small", device="cpu", random_state=0).fit(IMAGES)
    assert time.process_time() - start < 150
    assert normalized_mutual_info_score(TRUTH, model.labels_) > FLOORS[name]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_path_integral_agrees_with_the_partitions_depicts_authors_published(number, real_data):
    import numpy as np

    with np.load(real_data / "depict_mnist_test.npz") as file:
        embedding, published = file[f"Z{number}"], file[f"rho{number}"]
    found = path_integral(embedding, 10)
    assert normalized_mutual_info_score(published, found) > 0.96
