"""`convention="ace"` gives what the authors of ACE computed, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from golden import labelled_cases, read_case

import wellsep as ws

pytestmark = pytest.mark.filterwarnings("ignore:.*no object within the counting radius")

# index -> (group, key) of the value made with the tool that the authors called
THEIRS = {
    "silhouette": ("silhouette_euclidean_point", "sklearn.silhouette_euclidean.point"),
    "silhouette_cosine": ("silhouette_cosine_point", "sklearn.silhouette_cosine.point"),
    "calinski_harabasz": ("calinski_harabasz", "sklearn.calinski_harabasz"),
    "davies_bouldin": ("davies_bouldin", "sklearn.davies_bouldin"),
    "dunn": ("dunn", "NbClust.dunn"),
    "c_index": ("c_index", "NbClust.cindex"),
    "s_dbw": ("s_dbw", "NbClust.sdbw"),
    "ccc": ("ccc", "NbClust.ccc"),
    "cdbw": ("cdbw", "fpc.cdbw.first_appearance"),
}


@pytest.mark.parametrize(("name", "labelling"), labelled_cases())
def test_all_nine_indices_give_what_the_authors_tools_gave(name, labelling):
    case = read_case(name)
    scores = ws.score_partitions(case.X, case.labels[labelling], list(THEIRS), convention="ace")
    ours = dict(zip(THEIRS, scores.values[0], strict=True))
    stored = {k: case.values[labelling][group][key] for k, (group, key) in THEIRS.items()}
    if name == "wide_a":  # the authors' tools fail on a singular W
        assert "error" in stored.pop("ccc")
        ours.pop("ccc")
    stored = {k: v[0] if isinstance(v, list) else v for k, v in stored.items()}
    offset = name.startswith(("offset", "singleton", "breast"))
    assert ours == pytest.approx(stored, rel=1e-8 if offset else 1e-10, abs=1e-12, nan_ok=True)


def _blobs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    return rng.normal(size=(120, 3)) + 2 * rng.normal(size=(3, 3))[y] + 1, y


def test_indices_on_which_the_authors_follow_the_definition_do_not_change():
    X, y = _blobs()
    same = ["silhouette", "silhouette_cosine", "calinski_harabasz", "davies_bouldin", "dunn", "cfq"]
    plain = ws.score_partitions(X, y, same)
    ace = ws.score_partitions(X, y, same, convention="ace")
    assert plain.indices == ace.indices
    assert np.array_equal(plain.values, ace.values)


def test_the_convention_is_spelled_out_in_the_names():
    X, y = _blobs()
    scores = ws.score_partitions(X, y, ["c_index", "s_dbw", "ccc", "cdbw"], convention="ace")
    assert scores.indices == (
        "c_index(variant=nbclust)",
        "s_dbw(density=own)",
        "ccc(variant=nbclust)",
        "cdbw(flavour=fpc, order=first)",
    )


def test_a_given_option_overrides_the_convention():
    X, y = _blobs()
    scores = ws.score_partitions(X, y, [("ccc", {"variant": "sarle"})], convention="ace")
    assert scores.indices == ("ccc",)
    assert scores.values[0, 0] == ws.ccc_score(X, y)


def test_an_unknown_convention_is_refused():
    X, y = _blobs()
    with pytest.raises(ValueError, match="convention must be one of None, 'ace'"):
        ws.score_partitions(X, y, ["ccc"], convention="nbclust")
