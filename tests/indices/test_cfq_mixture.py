"""CFQ of Gaussian mixtures: distances to quadrics against an optimiser, and what it reduces to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import wellsep as ws
from wellsep.compute.statistics.gaussian_borders import equal_density, signed_distances


def _log_ratio(y, means, covariances, shares):
    """ln π_0 N(y; μ_0, Σ_0) − ln π_1 N(y; μ_1, Σ_1), from the definition of the densities."""
    value = np.log(shares[0] / shares[1])
    for sign, mean, covariance in zip((1, -1), means, covariances, strict=True):
        gap = y - mean
        value -= sign * (gap @ np.linalg.solve(covariance, gap)) / 2
        value -= sign * np.linalg.slogdet(covariance)[1] / 2
    return value


def _gradient(y, means, covariances):
    own, other = (np.linalg.solve(c, y - m) for m, c in zip(means, covariances, strict=True))
    return other - own


def _optimised_distance(x, means, covariances, shares, rng, max_iter=300):
    """A constrained optimiser, started from where many rays from x first meet the boundary."""
    starts = []
    for ray in rng.normal(size=(60, len(x))):
        ray = ray / np.linalg.norm(ray)
        # along a ray the log ratio is a quadratic: three values give it
        f = [_log_ratio(x + t * ray, means, covariances, shares) for t in (-1.0, 0.0, 1.0)]
        roots = np.roots([(f[0] + f[2]) / 2 - f[1], (f[2] - f[0]) / 2, f[1]])
        starts += [(abs(t.real), x + t.real * ray) for t in roots if abs(t.imag) < 1e-12]
    if not starts:
        return np.inf
    starts = [y for _, y in sorted(starts, key=lambda s: s[0])[:3]]
    found = [
        minimize(
            lambda y: ((y - x) ** 2).sum(),
            start,
            jac=lambda y: 2 * (y - x),
            constraints={
                "type": "eq",
                "fun": lambda y: _log_ratio(y, means, covariances, shares),
                "jac": lambda y: _gradient(y, means, covariances),
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": max_iter},
        )
        for start in starts
    ]
    return min(
        np.sqrt(r.fun) for r in found if abs(_log_ratio(r.x, means, covariances, shares)) < 1e-7
    )


def _random_pair(rng, d, full):
    means = 1.5 * rng.normal(size=(2, d))
    if full:
        roots = rng.normal(size=(2, d, d))
        return means, np.einsum("kij,klj->kil", roots, roots) + 0.2 * np.eye(d)
    return means, np.stack([np.diag(rng.uniform(0.2, 3, d)) for _ in range(2)])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_distances_are_what_an_optimiser_finds_point_by_point(d, full):
    rng = np.random.default_rng(10 * d + full)
    for _ in range(2):
        means, covariances = _random_pair(rng, d, full)
        shares = rng.uniform(0.2, 1, 2)
        X = means[0] + 1.5 * rng.normal(size=(3, d))
        ours = _ours(X, means, covariances, shares, full)
        expected = [_optimised_distance(x, means, covariances, shares, rng) for x in X]
        sides = [np.sign(_log_ratio(x, means, covariances, shares)) for x in X]
        assert np.abs(ours) == pytest.approx(expected, rel=1e-5, abs=1e-7)
        assert np.sign(ours).tolist() == sides


def _ours(X, means, covariances, shares, full):
    inverses = [np.linalg.inv(c) if full else 1 / np.diag(c) for c in covariances]
    volumes = [np.linalg.slogdet(c)[1] for c in covariances]
    ratio = np.log(shares[0] / shares[1]) - (volumes[0] - volumes[1]) / 2
    return signed_distances(X - means[0], equal_density(means[1] - means[0], inverses, ratio))


@pytest.mark.parametrize("d", [1, 2, 7])
def test_concentric_balls_are_parted_by_a_sphere_also_seen_from_its_centre(d):
    means, covariances = np.zeros((2, d)), np.stack([np.eye(d), 4 * np.eye(d)])
    radius = np.sqrt(d * np.log(4) / 0.75)
    X = np.vstack([np.zeros(d), 0.3 * radius * np.eye(d)[0], 3 * radius * np.eye(d)[0]])
    ours = _ours(X, means, covariances, [1, 1], full=False)
    assert ours == pytest.approx([radius, 0.7 * radius, -2 * radius], rel=1e-12)


def test_a_point_on_an_axis_of_an_ellipse_finds_the_nearest_point_off_the_axis():
    means, covariances = np.zeros((2, 2)), [np.diag([1.0, 0.25]), np.diag([4.0, 0.3])]
    height = _log_ratio(np.zeros(2), means, covariances, [1, 1])
    # on the boundary Σ y²(1/inner − 1/outer)/2 = height: an ellipse with these half axes
    half = np.sqrt(2 * height / (1 / np.diag(covariances[0]) - 1 / np.diag(covariances[1])))
    ours = _ours(np.zeros((1, 2)), means, covariances, [1, 1], full=False)
    assert ours[0] == pytest.approx(half.min(), rel=1e-12)
    # from a point near the centre on the long axis the nearest point lies off that axis
    long = int(half.argmax())
    x = 0.1 * half[long] * np.eye(2)[long]
    angle = np.linspace(0, np.pi, 200_001)
    ellipse = half * np.column_stack([np.cos(angle), np.sin(angle)])
    ours = _ours(x[None], means, covariances, [1, 1], full=False)
    assert ours[0] == pytest.approx(np.linalg.norm(ellipse - x, axis=1).min(), rel=1e-8)


def test_components_that_are_nowhere_equal_set_no_boundary():
    # one density is larger everywhere: equal covariances, equal means, unequal weights
    ours = _ours(np.ones((1, 2)), np.zeros((2, 2)), [np.eye(2)] * 2, [3, 1], full=False)
    assert ours[0] == np.inf


def _blobs(n=240, d=3, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, d)) * (0.5 + y[:, None] / 3) + 2.5 * rng.normal(size=(k, d))[y], y


@pytest.mark.parametrize("wrong_side", ["zero", "squared"])
@pytest.mark.parametrize("variance", [1.0, 0.01])
def test_equal_round_components_give_plain_cfq(wrong_side, variance):
    X, y = _blobs()
    plain = ws.cfq_score(X, y, wrong_side=wrong_side)
    for covariances in (np.full((4, 3), variance), variance * np.stack([np.eye(3)] * 4)):
        ours = ws.cfq_score(X, y, wrong_side=wrong_side, covariances=covariances)
        assert ours == pytest.approx(plain, rel=1e-10)


def test_diagonal_matrices_and_variances_are_the_same():
    X, y = _blobs()
    variances = np.random.default_rng(1).uniform(0.3, 3, (4, 3))
    matrices = np.stack([np.diag(v) for v in variances])
    assert ws.cfq_score(X, y, covariances=matrices) == pytest.approx(
        ws.cfq_score(X, y, covariances=variances), rel=1e-9
    )


def test_the_score_is_put_together_from_the_distances():
    X, y = _blobs(n=30, d=2, k=3, seed=3)
    rng = np.random.default_rng(4)
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    covariances = np.array([np.cov(X[y == k].T) for k in range(3)])
    shares = np.array([0.5, 0.3, 0.2])
    total = ((X - means[y]) ** 2).sum()
    separation = np.full((3, 3), np.inf)
    for j in range(3):
        for other in range(3):
            if j != other:
                pair = [j, other]
                inside = [
                    x
                    for x in X[y == j]
                    if _log_ratio(x, means[pair], covariances[pair], shares[pair]) > 0
                ]
                of_pair = means[pair], covariances[pair], shares[pair], rng
                separation[j, other] = sum(
                    _optimised_distance(x, *of_pair, max_iter=60) ** 2 for x in inside
                )
    expected = separation.min(axis=1).sum() / total
    ours = ws.cfq_score(X, y, covariances=covariances, weights=shares)
    assert ours == pytest.approx(expected, rel=1e-5)


def test_full_covariances_are_invariant_to_rotation():
    X, y = _blobs(seed=5)
    turn = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    assert ws.cfq_score(X @ turn, y, covariances="full") == pytest.approx(
        ws.cfq_score(X, y, covariances="full"), rel=1e-8
    )


def test_rules_take_variances_and_shares_from_the_clusters():
    X, y = _blobs(seed=7)
    variances = np.array([X[y == k].var(axis=0) for k in range(4)])
    shares = np.bincount(y)
    assert ws.cfq_score(X, y, covariances="diagonal") == pytest.approx(
        ws.cfq_score(X, y, covariances=variances, weights=shares), rel=1e-10
    )
    assert ws.cfq_score(X, y, covariances="authors") == pytest.approx(
        ws.cfq_score(X, y, covariances=variances), rel=1e-10
    )


def test_the_authors_rule_falls_back_to_ones_where_a_variance_is_zero():
    X, y = _blobs(seed=8, k=3)
    X[y == 1, 0] = 2.0
    variances = np.array([X[y == k].var(axis=0) if k != 1 else np.ones(3) for k in range(3)])
    assert ws.cfq_score(X, y, covariances="authors") == pytest.approx(
        ws.cfq_score(X, y, covariances=variances), rel=1e-10
    )


def test_integer_weights_count_as_repetitions():
    X, y = _blobs(seed=9)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    repeated = ws.cfq_score(np.repeat(X, weight, axis=0), np.repeat(y, weight), covariances="full")
    assert ws.cfq_score(X, y, covariances="full", sample_weight=weight) == pytest.approx(
        repeated, rel=1e-9
    )


def test_clusters_without_extent_have_no_density_of_their_own():
    X, y = _blobs(seed=8, k=3)
    X[y == 1, 0] = 2.0
    scores = ws.score_partitions(X, [y, (y > 0).astype(int)], ["cfq_mixture"])
    assert "cluster 1 has no extent" in scores.why(0, "cfq_mixture")
    assert np.isfinite(scores.values[1, 0])


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 11])
def test_rounding_gives_a_cluster_no_extent(size, dtype, offset):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 80)
    y[:size] = 4
    X = rng.normal(size=(80, 3))
    X[:size] = X[0]
    X = (X + offset).astype(dtype)
    for rule in ("diagonal", "full"):
        with pytest.raises(ws.UndefinedIndex, match="no extent in some direction"):
            ws.cfq_score(X, y, covariances=rule)
    ones = ws.cfq_score(X, y, covariances="authors")
    assert ones == pytest.approx(ws.cfq_score(X.astype(float), y, covariances="authors"), rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_does_not_fatten_a_line(dtype):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 3))
    assert ws.cfq_score((X * [1, 1e-3, 1e3]).astype(dtype), y, covariances="full") > 0
    X[y == 0] = rng.normal(size=((y == 0).sum(), 1)) * [0.1, 0.3, 0.7]
    with pytest.raises(ws.UndefinedIndex, match="cluster 0 has no extent in some direction"):
        ws.cfq_score((X + 1e3).astype(dtype), y, covariances="full")


def test_a_fitted_mixture_is_scored_as_it_is():
    from sklearn.mixture import GaussianMixture

    X, _ = _blobs(seed=10)
    model = GaussianMixture(3, random_state=0).fit(X)
    ours = ws.cfq_score(
        X,
        model.predict(X),
        centers=model.means_,
        covariances=model.covariances_,
        weights=model.weights_,
    )
    assert 0 < ours < np.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [0.5, 0.5]}, "weights must be None without covariances"),
        ({"covariances": "spherical"}, "covariances must be one of 'diagonal'"),
        ({"covariances": np.ones(2)}, r"covariances must have shape \(K, d\)"),
        ({"covariances": np.ones((3, 2))}, r"one entry per cluster \(2\), got 3"),
        ({"covariances": np.ones((2, 3))}, "must have X's 2 columns, got 3"),
        ({"covariances": np.zeros((2, 2))}, "positive definite, got a variance of 0 in"),
        ({"covariances": -np.stack([np.eye(2)] * 2)}, "positive definite, got an eigenvalue of -1"),
        ({"covariances": np.array([[[1, 2], [0, 1.0]]] * 2)}, "symmetric"),
        ({"covariances": np.full((2, 2), np.nan)}, "covariances must be finite"),
        ({"covariances": np.ones((2, 2)), "weights": [1, 0]}, "weights must be a vector of pos"),
        ({"covariances": np.ones((2, 2)), "weights": [1, 1, 1]}, r"per component \(2\), got 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_mixture_is_refused(options, message):
    X = np.array([[0.0, 0], [1, 1], [5, 5], [6, 4]])
    with pytest.raises(ValueError, match=message):
        ws.cfq_score(X, [0, 0, 1, 1], **options)


def test_sparse_data_are_refused():
    import scipy.sparse as sp

    with pytest.raises(TypeError, match="X must be dense"):
        ws.cfq_score(sp.csr_array(np.eye(4)), [0, 0, 1, 1], covariances="diagonal")
