"""k-means of a latent space: the points leave the device once, the centres go back once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

torch = pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.deep.latent import INITS, kmeans, starting_centers

POINTS, TRUTH = make_blobs(300, 6, centers=5, cluster_std=0.5, random_state=0)
TO_THE_HOST = {
    "cpu", "item", "numpy", "tolist", "__array__", "__bool__", "__float__", "__int__", "__index__",
}  # fmt: skip


class OnCard(torch.Tensor):
    """A tensor in memory that says it lies on a card and notes what asks for its values."""

    is_cuda = property(lambda self: True)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in TO_THE_HOST:
            seen.append(name)
        return super().__torch_function__(function, types, args, kwargs or {})


seen: list[str] = []


@pytest.fixture
def latent():
    seen.clear()
    return torch.tensor(POINTS, dtype=torch.float32).as_subclass(OnCard)


@pytest.mark.parametrize("n_init", [1, 20])
def test_all_starts_together_read_the_device_once(latent, n_init):
    kmeans(latent, 5, n_init=n_init, seed=0)
    assert seen == ["cpu", "numpy"]


@pytest.mark.parametrize("init", INITS)
def test_centres_of_every_start_are_made_from_one_copy(latent, init):
    assert starting_centers(latent, 5, init, seed=0).shape == (5, 6)
    assert seen == ["cpu", "numpy"]


def test_the_device_does_not_change_the_clusters(latent):
    there, here = (kmeans(z, 5, n_init=3, seed=7) for z in (latent, torch.tensor(POINTS).float()))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)


def test_the_cost_is_scikit_learns():
    found = kmeans(torch.tensor(POINTS), 5, n_init=20, seed=0)
    cost = ((POINTS - found.cluster_centers_[found.labels_]) ** 2).sum()
    assert cost == pytest.approx(KMeans(5, n_init=20, random_state=0).fit(POINTS).inertia_)
