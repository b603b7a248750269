"""Members of collections are read as the papers use them; other sets as wellsep reads them."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.datasets import load_dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    members = {"fcps/target/X": np.eye(3), "fcps/target/labels0": np.array([1, 2, 0])}
    np.savez(tmp_path / "many.npz", **members)
    np.savez(tmp_path / "tiny.npz", X=np.zeros((2, 3, 4)), y=np.array([0, 1]))
    monkeypatch.setenv("WELLSEP_DATA", str(tmp_path))


def test_members_of_a_collection_count_from_zero_with_noise_minus_one(folder):
    data = load_dataset("fcps/target")
    np.testing.assert_array_equal(data.X, np.eye(3))
    np.testing.assert_array_equal(data.y, [0, 1, -1])
    assert data.n_classes == 2


def test_other_sets_are_rows(folder):
    assert load_dataset("tiny").X.shape == (2, 12)
    assert load_dataset("wine").source == "scikit-learn"


def test_a_member_that_no_collection_has_is_named(folder):
    with pytest.raises(FileNotFoundError, match="WELLSEP_DATA .*'fcps/hepta'"):
        load_dataset("fcps/hepta")


def test_a_member_of_the_real_folder_has_its_published_size(real_data):
    data = load_dataset("fcps/target")
    assert data.X.shape == (770, 2)
    assert data.n_classes == 6
