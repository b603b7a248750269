"""The simulation study: ACE agrees with the truth as well as the authors' ACE does."""

from __future__ import annotations

import numpy as np
import pytest
from golden import read_arrays, read_json
from scipy.stats import kendalltau, spearmanr

from wellsep.evaluate import Scores, ace

MEASURES = [("nmi", "spearman"), ("nmi", "kendall"), ("acc", "spearman"), ("acc", "kendall")]


@pytest.mark.parametrize(("truth", "kind"), MEASURES)
@pytest.mark.parametrize("index", ["euclidean", "cosine", "ch", "dav"])
@pytest.mark.parametrize("std", ["1.0", "2.0"])
def test_mean_rank_correlations_equal_the_authors(std, index, truth, kind):
    correlate = spearmanr if kind == "spearman" else kendalltau
    ours = []
    for seed in range(3):
        stored = read_arrays(f"ace/simulation/sim_sparse_{std}_seed{seed}.npz")
        result = ace(Scores.from_matrix(stored[f"S_{index}"], dip_pvalues=stored["dip_pvalue"]))
        ways = (result.scores, result.baselines["mean_admitted"], result.baselines["own_space"])
        rows = (*ways, stored[f"raw_{index}"])
        ours.append([correlate(row, stored[truth]).statistic for row in rows])
    targets = read_json("ace/simulation/targets.json")[f"sim_sparse_{std}"]["stable"]
    np.testing.assert_allclose(
        np.mean(ours, axis=0), np.mean(targets[truth][kind][index], axis=0), atol=0.01
    )
