"""Each loss equals hand arithmetic on a tiny batch, and its gradient reaches what it should."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra deep")

import wellsep as ws
from wellsep.deep import losses

CENTERS = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 10.0]], dtype=torch.float64)
POINTS = torch.tensor([[1.0, 0.0], [3.0, 2.0], [0.0, 7.0]], dtype=torch.float64)


def kmeans_loss(z, centers):
    return losses.nearest_two(z, centers).own.mean()


def separation(z, centers):
    return losses.nearest_two(z, centers).margin.square().mean()


def test_reconstruction_is_a_mean_over_objects_and_features():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    # squared errors 1, 0, 0, 9
    assert losses.reconstruction(x, torch.tensor([[0.0, 2.0], [3.0, 1.0]])).item() == 2.5


def test_the_kmeans_loss_is_the_mean_squared_distance_to_the_nearest_centre():
    # 1² + 0², (3−4)² + 2², 3²
    assert kmeans_loss(POINTS, CENTERS).item() == pytest.approx((1 + 5 + 9) / 3)


def test_the_margin_is_the_distance_to_the_plane_between_the_two_nearest_centres():
    # to x = 2: 1 and 1; third point: nearest (0,10), second (0,0): the plane y = 5 is 2 away
    margin = losses.nearest_two(POINTS, CENTERS).margin
    np.testing.assert_allclose(margin, [1.0, 1.0, 2.0])
    assert separation(POINTS, CENTERS).item() == pytest.approx((1 + 1 + 4) / 3)


def test_separation_equals_the_index_on_the_same_latent_points():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(80, 6))
    centers = rng.normal(size=(2, 6))
    labels = ((Z[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    variation = ((Z - centers[labels]) ** 2).sum()
    total = 80 * separation(torch.tensor(Z), torch.tensor(centers)).item()
    assert total / variation == pytest.approx(ws.cfq_score(Z, labels, centers=centers), rel=1e-12)


def test_margins_equal_the_index_where_the_second_nearest_centre_is_the_nearest_plane():
    rng = np.random.default_rng(1)
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 2 * math.sqrt(3)]])  # equal sides
    Z = centers[rng.integers(3, size=60)] + rng.normal(size=(60, 2))
    labels = ((Z[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    found = losses.nearest_two(torch.tensor(Z), torch.tensor(centers)).margin
    np.testing.assert_allclose(found, ws.margins(Z, labels, centers=centers), rtol=1e-9)


def test_coinciding_centres_and_a_single_centre_have_no_margin():
    twin = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=torch.float64, requires_grad=True)
    value = separation(POINTS, twin)
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(twin.grad).all()
    assert separation(POINTS, CENTERS[:1]).item() == 0


@pytest.mark.parametrize("loss", [kmeans_loss, separation])
def test_gradients_reach_points_and_centres(loss):
    points = POINTS.clone().requires_grad_()
    centers = CENTERS.clone().requires_grad_()
    assert torch.autograd.gradcheck(loss, (points, centers))


def test_soft_assignments_follow_students_t():
    z = torch.zeros(1, 1, dtype=torch.float64)
    centers = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    # 1/(1+0), 1/(1+1), 1/(1+4) over their sum 1.7
    expected = [[1 / 1.7, 0.5 / 1.7, 0.2 / 1.7]]
    np.testing.assert_allclose(losses.soft_assignment(z, centers), expected)


def test_soft_assignments_have_gradients_for_points_and_centres():
    points = POINTS.clone().requires_grad_()
    centers = CENTERS.clone().requires_grad_()
    assert torch.autograd.gradcheck(losses.soft_assignment, (points, centers))


def test_sharpened_targets_square_and_divide_by_the_clusters_mass():
    p = torch.tensor([[0.8, 0.2], [0.4, 0.6]], dtype=torch.float64)
    # masses 1.2 and .8; rows (.64/1.2, .04/.8), (.16/1.2, .36/.8)
    first = np.array([0.64 / 1.2, 0.04 / 0.8])
    second = np.array([0.16 / 1.2, 0.36 / 0.8])
    expected = [first / first.sum(), second / second.sum()]
    np.testing.assert_allclose(losses.sharpened(p), expected)


def test_printed_targets_leave_memberships_of_equal_clusters_alone():
    p = torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.float64)
    np.testing.assert_allclose(losses.balanced(p), p)
    q = torch.tensor([[0.9, 0.1], [0.7, 0.3]], dtype=torch.float64)  # masses 1.6 and .4
    row = np.array([0.9 / math.sqrt(1.6), 0.1 / math.sqrt(0.4)])
    np.testing.assert_allclose(losses.balanced(q)[0], row / row.sum())


def test_the_divergence_is_kullback_leiblers_per_object():
    target = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    q = torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64)
    by_hand = (0.5 * math.log(2) + 0.5 * math.log(2 / 3) + math.log(2)) / 2
    assert losses.divergence(target, q).item() == pytest.approx(by_hand)


def test_cross_entropy_takes_labels_and_soft_targets():
    logits = torch.log(torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64))
    hard = -(math.log(0.75) + math.log(0.5)) / 2
    assert losses.cross_entropy(logits, torch.tensor([1, 0])).item() == pytest.approx(hard)
    soft = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    by_hand = -(0.5 * math.log(0.25) + 0.5 * math.log(0.75) + math.log(0.5)) / 2
    assert losses.cross_entropy(logits, soft).item() == pytest.approx(by_hand)


def test_layered_reconstruction_weighs_hidden_layers_by_a_tenth():
    clean = [torch.zeros(1, 2), torch.zeros(1, 1), torch.zeros(1, 4)]
    decoded = [torch.tensor([[1.0, 3.0]]), torch.tensor([[2.0]]), torch.ones(1, 4)]
    # means 5, 4, 1
    assert losses.layered_reconstruction(clean, decoded).item() == pytest.approx(5 + 0.4 + 0.1)


def test_the_triplet_loss_is_a_mean_hinge():
    z = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    triplets = losses.Triplets(torch.tensor([0, 0]), torch.tensor([1, 1]), torch.tensor([2, 3]))
    # 1 − 1 + .2 and max(0, 1 − 9 + .2)
    assert losses.triplet_loss(z, triplets, 0.2).item() == pytest.approx(0.1)


def test_with_anchors_only_nothing_else_is_moved():
    triplets = losses.Triplets(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    moved = {}
    for anchors_only in (False, True):
        z = torch.tensor([[0.0], [1.0], [1.2]], requires_grad=True)
        losses.triplet_loss(z, triplets, 2.0, anchors_only=anchors_only).backward()
        moved[anchors_only] = z.grad[:, 0].tolist()
    # d/da (a−p)² − (a−n)² = 2(n − p); d/dp = 2(p − a); d/dn = 2(a − n)
    np.testing.assert_allclose(moved[False], [0.4, 2.0, -2.4], rtol=1e-5)
    np.testing.assert_allclose(moved[True], [0.4, 0.0, 0.0], atol=1e-6)


def test_triplets_take_all_pairs_of_a_cluster_and_distinct_negatives_of_others():
    labels = torch.tensor([0, 1, 0, 2, 0, 1])
    found = losses.sample_triplets(labels, 2, torch.Generator().manual_seed(0))
    pairs = set(zip(found.anchor.tolist(), found.positive.tolist(), strict=True))
    assert pairs == {(0, 2), (0, 4), (2, 4), (1, 5)}
    assert len(found.anchor) == 8
    assert (labels[found.anchor] == labels[found.positive]).all()
    assert (labels[found.anchor] != labels[found.negative]).all()
    triples = set(zip(*(part.tolist() for part in found), strict=True))
    assert len(triples) == 8


def test_a_batch_without_pairs_or_negatives_gives_no_triplet_and_no_loss():
    generator = torch.Generator().manual_seed(0)
    z = torch.ones(3, 2, requires_grad=True)
    for labels in (torch.tensor([0, 1, 2]), torch.tensor([0, 0, 0])):
        triplets = losses.sample_triplets(labels, 20, generator)
        assert len(triplets.anchor) == 0
        assert losses.triplet_loss(z, triplets).item() == 0
