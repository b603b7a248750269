"""On CUDA recorded steps equal plain ones, fits repeat themselves, and memory may run out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

torch = pytest.importorskip("torch", reason="needs the extra deep")

from wellsep.deep import METHODS, DeepKMeans, load

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
X, TRUTH = make_blobs(400, 16, centers=4, random_state=0)
IMAGES = np.random.default_rng(0).integers(0, 256, size=(300, 16, 16), dtype=np.uint8)
EVERY = pytest.mark.parametrize("name", METHODS)


def brief(name, **options):
    return METHODS[name](4, preset="small", device="cuda", random_state=0, epochs=3, **options)


@EVERY
def test_the_same_seed_gives_the_same_result_twice(name):
    first, second = (brief(name).fit(IMAGES) for _ in range(2))
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    np.testing.assert_array_equal(first.labels_, second.labels_)


@EVERY
def test_recorded_steps_train_like_plain_ones(name, monkeypatch, recwarn):
    recorded = brief(name).fit(IMAGES)
    assert not [w for w in recwarn if "could not be recorded" in str(w.message)]
    monkeypatch.setenv("WELLSEP_KERNELS", "0")
    plain = brief(name).fit(IMAGES)
    losses = [[entry["loss"] for entry in model.history_] for model in (recorded, plain)]
    assert len(losses[0]) == len(losses[1])
    np.testing.assert_allclose(losses[0][:5], losses[1][:5], rtol=1e-3)


def test_a_model_from_cuda_is_used_on_the_cpu(tmp_path):
    model = brief("DeepKMeans").fit(X)
    again = load(model.save(tmp_path), device="cpu")
    np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-2)


def test_a_batch_that_does_not_fit_is_halved_once():
    wide = np.random.default_rng(0).normal(size=(60_000, 2000)).astype(np.float32)
    model = DeepKMeans(
        2, preset="paper", device="cuda", random_state=0, batch_size=60_000,
        hidden=(6000, 2000), pretrain_epochs=1, epochs=1,
    )  # fmt: skip
    brief("DeepKMeans").fit(X)  # libraries take their workspaces first
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    taken = torch.empty(free - 3_000_000_000, dtype=torch.uint8, device="cuda")
    try:
        with pytest.warns(RuntimeWarning, match="halved"), pytest.raises(MemoryError):
            model.fit(wide)
    finally:
        del taken
        torch.cuda.empty_cache()
