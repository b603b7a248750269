"""Each paper's loss as a pure function of a batch; nothing here holds parameters."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


def reconstruction(x: Tensor, x_hat: Tensor) -> Tensor:
    """Mean squared error (1/nd)·Σ‖x − x̂‖²: a weight means the same for any number of features."""
    return F.mse_loss(x_hat, x)


def squared_distances(z: Tensor, centers: Tensor) -> Tensor:
    """Table of ‖z_i − μ_k‖², shape (n, k), as sums of squared differences."""
    return ((z[:, None, :] - centers[None, :, :]) ** 2).sum(dim=2)


def nearest_center(embedding: Tensor, centers: Tensor) -> Tensor:
    """Label of the nearest centre, block by block."""
    parts = [squared_distances(z, centers).argmin(dim=1) for z in embedding.split(4096)]
    return torch.cat(parts)


def directions(z: Tensor, labels: Tensor, n_clusters: int) -> Tensor:
    """Mean direction of each cluster, shape (k, d), of unit length."""
    members = F.one_hot(labels.long(), n_clusters).to(z.dtype)
    return F.normalize(members.T @ z, dim=1)


class NearestTwo(NamedTuple):
    """What deep k-means and deep cf-means need of a batch."""

    own: Tensor  # (n,) squared distance to the nearest centre
    margin: Tensor  # (n,) signed distance to the plane between the two nearest, d_ca(z)


def nearest_two(z: Tensor, centers: Tensor) -> NearestTwo:
    """Squared distance to the nearest centre and the counterfactual distance to the second.

    d_ca(z) = (‖z−μ_a‖² − ‖z−μ_c‖²) / (2‖μ_c−μ_a‖), c the nearest and a the second nearest centre;
    0 where both coincide or there is one centre: no plane lies between them.
    """
    table = squared_distances(z, centers)
    k = len(centers)
    order = torch.topk(table.detach(), min(2, k), dim=1, largest=False).indices
    # One-hot products instead of indexing: their gradients are deterministic on CUDA.
    chosen = (order[:, :, None] == torch.arange(k, device=z.device)).to(z.dtype)  # (n, 2, k)
    nearest = (table * chosen[:, 0]).sum(dim=1)
    if k == 1:
        return NearestTwo(nearest, torch.zeros_like(nearest))
    second = (table * chosen[:, 1]).sum(dim=1)
    gap = ((chosen[:, 0] - chosen[:, 1]) @ centers).square().sum(dim=1)
    floor = torch.finfo(z.dtype).eps * centers.detach().square().sum(dim=1).max()
    apart = gap > floor
    length = torch.where(apart, gap, torch.ones_like(gap)).sqrt()
    margin = torch.where(apart, (second - nearest) / (2 * length), torch.zeros_like(gap))
    return NearestTwo(nearest, margin)


def soft_assignment(z: Tensor, centers: Tensor, freedom: float = 1.0) -> Tensor:
    """DEC's Student-t memberships q_ik ∝ (1 + ‖z_i−μ_k‖²/α)^(−(α+1)/2), rows summing to 1."""
    power = -(freedom + 1.0) / 2.0
    logits = power * torch.log1p(squared_distances(z, centers) / freedom)
    return torch.softmax(logits, dim=1)


def sharpened(p: Tensor) -> Tensor:
    """Targets of DEC, and as DEPICT's authors run them: q_ik ∝ p_ik²/Σ_i p_ik, rows sum to 1."""
    weight = p**2 / p.sum(dim=0, keepdim=True)
    return weight / weight.sum(dim=1, keepdim=True)


def balanced(p: Tensor) -> Tensor:
    """Targets as DEPICT prints them, q_ik ∝ p_ik/√(Σ_i p_ik): with equal clusters q is p."""
    weight = p / p.sum(dim=0, keepdim=True).sqrt()
    return weight / weight.sum(dim=1, keepdim=True)


def divergence(target: Tensor, q: Tensor) -> Tensor:
    """Kullback-Leibler divergence of memberships from their targets, (1/n)·Σ t·log(t/q)."""
    return F.kl_div(q.clamp_min(torch.finfo(q.dtype).tiny).log(), target, reduction="batchmean")


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross-entropy −(1/n)·Σ_ik t_ik·log softmax(logits)_ik; targets are labels or rows."""
    return F.cross_entropy(logits, target)


def layered_reconstruction(
    clean: list[Tensor], decoded: list[Tensor], inner: float = 0.1
) -> Tensor:
    """DEPICT's rec₀ + .1·rec₁ + .1·rec₂: decoder against clean encoder, outermost layer first."""
    terms = [F.mse_loss(d, c) for c, d in zip(clean, decoded, strict=True)]
    return terms[0] + inner * sum(terms[1:], torch.zeros_like(terms[0]))


class Triplets(NamedTuple):
    """Positions in a batch: anchors, members of the same cluster, members of others."""

    anchor: Tensor
    positive: Tensor
    negative: Tensor


def sample_triplets(labels: Tensor, n_negatives: int, generator: torch.Generator) -> Triplets:
    """All same-cluster pairs of a batch, each with up to `n_negatives` distinct negatives.

    The one of a pair that comes first in the batch is the anchor; `generator` is the CPU's.
    """
    same = labels[:, None] == labels[None, :]
    anchor, positive = torch.nonzero(torch.triu(same, diagonal=1), as_tuple=True)
    # A random key per pair and object; an object of the anchor's own cluster never comes first.
    keys = torch.rand(len(anchor), len(labels), generator=generator).to(labels.device)
    keys = keys.masked_fill(same[anchor], -1.0)
    drawn = torch.topk(keys, min(n_negatives, len(labels)), dim=1)
    pair, place = torch.nonzero(drawn.values >= 0, as_tuple=True)
    return Triplets(anchor[pair], positive[pair], drawn.indices[pair, place])


def triplet_loss(
    z: Tensor, triplets: Triplets, margin: float = 0.2, *, anchors_only: bool = False
) -> Tensor:
    """JULE's mean hinge max(0, ‖a−p‖² − ‖a−n‖² + margin); 0 without any triplet."""
    others = z.detach() if anchors_only else z
    table = squared_distances(z, others)
    near = table[triplets.anchor, triplets.positive]
    far = table[triplets.anchor, triplets.negative]
    # The sum of nothing is 0, with a gradient of 0.
    return torch.relu(near - far + margin).sum() / max(1, len(near))
