"""What a fit on a device holds: no table larger than the data, a block, or a value per draw."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from sklearn import config_context

torch = pytest.importorskip("torch", reason="needs torch")

import wellsep as ws
from wellsep.compute.data import device_rows as tensors
from wellsep.compute.kmeans import nearest_centres as nearest
from wellsep.compute.kmeans import prepared_points as points

N, D, K = 12_000, 4, 200
BLOCK = 1 << 17  # entries, in place of DEVICE_BLOCK
BUDGET = 2 << 20  # bytes of working memory


class Largest(torch.utils._python_dispatch.TorchDispatchMode):
    """Keeps the size of the largest storage that an operation returned."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.shape, self.name = 0, (), ""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, tuple | list) else (found,):
            if isinstance(tensor, torch.Tensor):
                size = tensor.untyped_storage().nbytes()
                if size > self.bytes:
                    self.bytes, self.shape, self.name = size, tuple(tensor.shape), str(function)
        return found


def largest_of(fit) -> Largest:
    from wellsep._checks.arrays import is_torch

    modules = (nearest, points, tensors)
    with (
        config_context(working_memory=BUDGET / 2**20),
        mock.patch("wellsep._checks.arrays.on_device", is_torch),
        mock.patch.multiple(modules[0], DEVICE_BLOCK=BLOCK),
        mock.patch.multiple(modules[1], DEVICE_BLOCK=BLOCK),
        mock.patch.multiple(modules[2], DEVICE_BLOCK=BLOCK),
        Largest() as seen,
    ):
        fit()
    return seen


@pytest.mark.parametrize("estimator", [ws.KMeans, ws.CFMeans])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_table_of_a_fit_outgrows_its_budget(estimator, weighted):
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=(N, D)) + rng.normal(size=(1, D)), dtype=torch.float32)
    weights = rng.uniform(1, 2, N) if weighted else None
    options = {"max_moves": 2} if estimator is ws.CFMeans else {}
    model = estimator(K, random_state=0, max_iter=3, **options)

    seen = largest_of(lambda: model.fit(X, sample_weight=weights))

    drawn = 4 * N * (2 + int(np.log(K)))  # seeding: distances to a few candidates
    allowed = max(X.nbytes, 8 * BLOCK, BUDGET, drawn)
    assert 0 < seen.bytes <= allowed, (seen.name, seen.shape)
    assert allowed < N * K  # a table with one byte for each point and centre would not pass
    assert model.labels_.shape == (N,)


def test_equal_weights_are_not_sent_to_the_device(monkeypatch):
    X = torch.as_tensor(np.random.default_rng(1).normal(size=(1000, 3)))
    expected = float(X.var(dim=0, correction=0).mean())
    monkeypatch.setattr(tensors.DeviceSpace, "asarray", lambda *sent: pytest.fail("was sent"))
    assert points.mean_variance(X) == pytest.approx(expected, rel=1e-12)
