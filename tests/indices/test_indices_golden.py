"""The first indices give what R, scikit-learn and the authors' evaluator gave."""

from __future__ import annotations

import numpy as np
import pytest
from golden import labelled_cases, read_case, read_json

import wellsep as ws

# (group of stored values, software, our call, why some cases differ)
CLAIMS = {
    "sklearn.silhouette_euclidean.point": lambda X, y: ws.silhouette_score(X, y),
    "cluster.silhouette.point": lambda X, y: ws.silhouette_score(X, y),
    "fpc.cluster.stats.avg.silwidth": lambda X, y: ws.silhouette_score(X, y),
    "clusterSim.index.S": lambda X, y: ws.silhouette_score(X, y),
    "NbClust.silhouette": lambda X, y: ws.silhouette_score(X, y, singleton=1),
    "sklearn.silhouette_euclidean.cluster": lambda X, y: ws.silhouette_score(
        X, y, average="cluster"
    ),
    "cluster.silhouette.cluster": lambda X, y: ws.silhouette_score(X, y, average="cluster"),
    "sklearn.silhouette_cosine.point": lambda X, y: ws.silhouette_score(X, y, metric="cosine"),
    "cluster.silhouette_cosine.point": lambda X, y: ws.silhouette_score(X, y, metric="cosine"),
    "sklearn.silhouette_cosine.cluster": lambda X, y: ws.silhouette_score(
        X, y, metric="cosine", average="cluster"
    ),
    "sklearn.calinski_harabasz": lambda X, y: ws.calinski_harabasz_score(X, y),
    "clusterCrit.Calinski_Harabasz": lambda X, y: ws.calinski_harabasz_score(X, y),
    "clusterSim.index.G1": lambda X, y: ws.calinski_harabasz_score(X, y),
    "sklearn.davies_bouldin": lambda X, y: ws.davies_bouldin_score(X, y),
    "clusterCrit.Davies_Bouldin": lambda X, y: ws.davies_bouldin_score(X, y),
    "clusterSim.index.DB.p2q1": lambda X, y: ws.davies_bouldin_score(X, y),
    "clusterSim.index.DB.p2q2": lambda X, y: ws.davies_bouldin_score(X, y, q=2),
    "NbClust.db": lambda X, y: ws.davies_bouldin_score(X, y, q=2),
}


def _stored(name, labelling):
    """Every finite number a claimed software stored for one labelling."""
    for group in read_case(name).values[labelling].values():
        for software, value in group.items():
            if software in CLAIMS and isinstance(value, float) and np.isfinite(value):
                yield software, value


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_every_claimed_value_is_reproduced(name, labelling):
    case = read_case(name)
    X, y = case.X, case.labels[labelling]
    tolerance = 1e-8 if name.startswith("offset") or "singleton" in name else 1e-10
    wrong = {
        software: (ours, value)
        for software, value in _stored(name, labelling)
        if (ours := CLAIMS[software](X, y)) != pytest.approx(value, rel=tolerance, abs=1e-12)
    }
    assert wrong == {}


def test_the_claims_meet_stored_values_in_every_software():
    met = {
        software for name, labelling in labelled_cases() for software, _ in _stored(name, labelling)
    }
    assert met == set(CLAIMS)


CFQ_CASES = sorted(read_json("cfq.json")["values"]) if labelled_cases() else []


@pytest.mark.parametrize("case", CFQ_CASES)
def test_cfq_equals_the_authors_evaluator(case):
    stored = read_json("cfq.json")["values"][case]
    name, key = case.split("/")
    arrays = read_case(name)
    y = next(v for k, v in arrays.labels.items() if arrays.record["labelings"][k]["npz_key"] == key)
    ours = (ws.cfq_score(arrays.X, y, wrong_side="squared"), ws.cfq_score(arrays.X, y))
    expected = (float(stored["authors"]), float(stored["wrong_side_zero"]))
    assert ours == pytest.approx(expected, rel=1e-10)
    share = float((ws.margins(arrays.X, y) < 0).mean())
    assert share == pytest.approx(stored["wrong_side_share"], abs=1e-12)
