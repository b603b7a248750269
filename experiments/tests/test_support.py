"""The study of support: the table of the package comes from its clusters, and its parts add up."""

import json

import numpy as np
import pandas as pd
import pytest

from experiments.support import calibrate
from experiments.support.collect import expected_best


def test_the_table_of_the_package_is_the_one_that_the_study_makes():
    made = calibrate.shipped(calibrate.clusters())
    assert json.loads(calibrate.SHIPPED.read_text(encoding="utf-8")) == made


def test_a_rising_map_is_fitted_to_shares_by_hand():
    support = np.array([0.11, 0.11, 0.52, 0.52, 0.91, 0.91])
    is_class = np.array([0.0, 1, 0, 0, 1, 1])
    middle, share = calibrate.fit_bins(support, is_class, np.ones(6))
    assert middle == pytest.approx([0.11, 0.52, 0.91])
    assert share == pytest.approx([0.25, 0.25, 0.99])  # 1/2 and 0 fall, so both get their mean


def test_every_set_weighs_the_same():
    rows = pd.DataFrame({"unit": ["a", "a", "a", "b"], "support": 0.5})
    assert calibrate.weigh(rows) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])


def test_the_similarity_expected_by_chance_is_that_of_mean_overlaps():
    # 4 of 8 objects against clusters of 4 and 4: overlap 2, 2 / (4 + 4 - 2).
    found = expected_best(np.array([4]), np.array([[0, 0, 0, 0, 1, 1, 1, 1]]), np.ones(1))
    assert found == pytest.approx([1 / 3])
