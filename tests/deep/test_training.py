"""The one loop: it resumes exactly, stops on NaN, halves a batch once, and reports what it does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

torch = pytest.importorskip("torch", reason="needs the extra deep")
nn = torch.nn

from wellsep.deep import (
    DEPICT,
    IDEC,
    JULE,
    DeepCFMeans,
    DeepCluster,
    DeepKMeans,
    TrainingDiverged,
)
from wellsep.deep.checkpoints import Checkpoint, read_tensors
from wellsep.deep.data import Data, Scaling
from wellsep.deep.training import Stage, Trainer
from wellsep.runs import load_runs

X, _ = make_blobs(120, 8, centers=3, random_state=0)
CPU = torch.device("cpu")
SILENT = SimpleNamespace(stage=lambda *stage: None, epoch=lambda: False, end=lambda: None)


def trainer_for(folder=None, *, batch_size=32, **options):
    data = Data(X, Scaling.fitted(X, signed=False), CPU)
    checkpoint = Checkpoint(folder, {"method": "test"})
    return Trainer(
        data, batch_size=batch_size, seed=0, checkpoint=checkpoint, progress=SILENT, **options
    )


def linear_stage(trainer, loss=None, **options):
    net = trainer.add("net", nn.Linear(8, 1))
    with torch.no_grad():
        net.weight.fill_(0.1)
    options = {"epochs": 4, "name": "fit"} | options
    loss = loss or (lambda rows: (net(trainer.data[rows]) - 1.0).square().mean())
    return net, Stage(loss=loss, optimizer=torch.optim.Adam(net.parameters(), lr=0.05), **options)


class StopAt:
    """A callback that breaks off the training after some epochs, as a time limit would."""

    def __init__(self, epochs):
        self.left = epochs

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "epoch":
            self.left -= 1
            if self.left == 0:
                raise InterruptedError("no more time")


SHORT = {
    DeepKMeans: {"pretrain_epochs": 4, "epochs": 4, "hidden": (16,), "n_latent": 3},
    IDEC: {"pretrain_epochs": 4, "epochs": 4, "tol": 0.0, "hidden": (16,), "n_latent": 3},
    DEPICT: {"pretrain_epochs": 3, "start_epochs": 3, "epochs": 3, "hidden": (16,)},
    JULE: {"epochs": 3, "n_features": 8, "unfolding_rate": 0.6},
    DeepCluster: {"epochs": 6, "n_features": 8, "n_components": 3},
}


@pytest.mark.parametrize("epochs", [2, 5])
@pytest.mark.parametrize("method", SHORT, ids=lambda m: m.__name__)
def test_a_training_that_was_broken_off_ends_as_if_it_had_not_been(method, epochs, tmp_path):
    options = SHORT[method] | {"device": "cpu", "random_state": 3, "batch_size": 24}
    whole = method(3, **options).fit(X)
    model = method(3, **options, checkpoint_dir=tmp_path)
    with pytest.raises(InterruptedError):
        model.set_callbacks(StopAt(epochs)).fit(X)
    again = method(3, **options, checkpoint_dir=tmp_path).fit(X)
    np.testing.assert_array_equal(again.embedding_, whole.embedding_)
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert again.history_ == whole.history_


def test_a_finished_training_is_not_repeated(tmp_path):
    options = SHORT[DeepKMeans] | {"device": "cpu", "random_state": 0, "checkpoint_dir": tmp_path}
    first = DeepKMeans(3, **options).fit(X)
    again = DeepKMeans(3, **options).set_callbacks(StopAt(1)).fit(X)  # an epoch would raise
    np.testing.assert_array_equal(again.labels_, first.labels_)


def test_without_a_seed_a_resumed_training_keeps_the_first_ones(tmp_path):
    options = SHORT[DeepKMeans] | {"device": "cpu", "checkpoint_dir": tmp_path}
    first = DeepKMeans(3, **options).fit(X)
    assert DeepKMeans(3, **options).fit(X).seed_ == first.seed_


@pytest.mark.parametrize(
    ("change", "data", "named"),
    [
        ({"kmeans_weight": 2.0}, X, "params"),
        ({}, X + 1.0, "data"),
        ({"random_state": 1}, X, "rand"),
    ],
)
def test_another_training_in_the_same_folder_is_refused(tmp_path, change, data, named):
    options = SHORT[DeepKMeans] | {"device": "cpu", "random_state": 0, "checkpoint_dir": tmp_path}
    DeepKMeans(3, **options).fit(X)
    with pytest.raises(ValueError, match=f"differs in {named}.*resume=False"):
        DeepKMeans(3, **(options | change)).fit(data)
    DeepKMeans(3, **(options | change), resume=False).fit(data)


def test_a_loss_that_turns_nan_stops_with_its_step_and_keeps_the_last_good_state(tmp_path):
    trainer = trainer_for(tmp_path, save_every=1)
    calls = []

    def loss(rows):
        calls.append(1)
        value = net(trainer.data[rows]).square().mean()
        return value * float("nan") if len(calls) == 8 else value

    net, stage = linear_stage(trainer, loss, epochs=5)
    # 120 // 32 = 3 steps an epoch: step 8 is in the third
    with pytest.raises(TrainingDiverged, match="nan at step 8 .*epoch 3.*last good checkpoint"):
        trainer.run(stage)
    tensors, record = read_tensors(tmp_path / "state.safetensors")
    assert record["epoch"] == 2
    assert all(torch.isfinite(t).all() for t in tensors.values() if t.is_floating_point())


def test_a_learning_rate_that_is_far_too_great_is_named(tmp_path):
    options = SHORT[IDEC] | {"device": "cpu", "random_state": 0}
    with pytest.raises(TrainingDiverged, match="Use a smaller learning_rate"):
        IDEC(3, **options, learning_rate=1e30).fit(X)


def out_of_memory_above(limit, net, trainer, error=None):
    def loss(rows):
        if len(rows) > limit:
            raise error or torch.OutOfMemoryError("CUDA out of memory")
        return net(trainer.data[rows]).square().mean()

    return loss


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
    ],
    ids=["allocator", "driver", "library"],
)
def test_out_of_memory_halves_the_batch_once_and_says_so(error):
    trainer = trainer_for()
    net, stage = linear_stage(trainer)
    stage.loss = out_of_memory_above(20, net, trainer, error)
    with pytest.warns(RuntimeWarning, match="batch_size halved to 16"):
        trainer.run(stage)
    assert trainer.batch_size == 16
    assert len(trainer.history) == 4


def test_out_of_memory_after_halving_is_an_error_with_a_remedy():
    trainer = trainer_for()
    net, stage = linear_stage(trainer)
    stage.loss = out_of_memory_above(10, net, trainer)
    with (
        pytest.warns(RuntimeWarning, match="halved"),
        pytest.raises(
            MemoryError, match="Memory ran out on cpu with batch_size 16.*smaller batch_size"
        ),
    ):
        trainer.run(stage)


def test_patience_stops_and_goes_back_to_the_best_epoch():
    trainer = trainer_for()
    values = iter([3.0, 1.0, 2.0, 5.0, 4.0, 0.0])
    seen = []

    def watch():
        seen.append(net.weight.detach().clone())
        return next(values)

    net, stage = linear_stage(trainer, epochs=6, watch=watch, patience=3)
    trainer.run(stage)
    assert len(trainer.history) == 5
    assert torch.equal(net.weight, seen[1])
    assert [entry["watched"] for entry in trainer.history] == [3.0, 1.0, 2.0, 5.0, 4.0]


def test_every_object_has_its_turn_although_batches_are_whole():
    trainer = trainer_for(batch_size=50)
    seen = np.zeros(120, dtype=int)

    def loss(rows):
        np.add.at(seen, rows.numpy(), 1)
        return net(trainer.data[rows]).square().mean()

    net, stage = linear_stage(trainer, loss, epochs=10)
    trainer.run(stage)
    assert seen.sum() == 10 * 100
    assert seen.min() > 0


def test_fewer_objects_than_a_batch_are_one_batch():
    trainer = trainer_for(batch_size=1000)
    sizes = []

    def loss(rows):
        sizes.append(len(rows))
        return net(trainer.data[rows]).square().mean()

    net, stage = linear_stage(trainer, loss, epochs=2)
    trainer.run(stage)
    assert sizes == [120, 120]


@pytest.mark.parametrize("separation", ["repel", "attract"])
def test_network_and_centres_are_both_trained(separation):
    options = SHORT[DeepKMeans] | {"device": "cpu", "random_state": 0, "init": "random"}
    still = DeepCFMeans(3, **(options | {"epochs": 0})).fit(X)
    moved = DeepCFMeans(3, **options, separation=separation, learning_rate=1e-2).fit(X)
    assert np.abs(moved.cluster_centers_ - still.cluster_centers_).min() > 0
    weights = zip(still.network_.parameters(), moved.network_.parameters(), strict=True)
    assert all(not torch.equal(before, after) for before, after in weights)


class Watcher:
    """Notes what scikit-learn's callback protocol passes on."""

    def __init__(self, stop_after=None):
        self.stages, self.epochs, self.models, self.stop_after = [], 0, [], stop_after
        self.ended = False

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.ended = True

    def on_fit_task_begin(self, estimator, context):
        if context.parent is not None and context.max_subtasks:
            self.stages.append((context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context, *, metadata, fitted_estimator):
        if context.task_name != "epoch":
            return False
        self.epochs += 1
        self.models.append((metadata, fitted_estimator))
        return self.epochs == self.stop_after


def test_callbacks_see_stages_epochs_losses_and_a_model_that_predicts():
    watcher = Watcher()
    model = DeepKMeans(3, **SHORT[DeepKMeans], device="cpu", random_state=0)
    model.set_callbacks(watcher).fit(X)
    assert watcher.stages == [("pretrain", 4), ("cluster", 4)]
    assert watcher.epochs == model.n_iter_ == 8
    metadata, fitted = watcher.models[-1]
    assert metadata == model.history_[-1]
    np.testing.assert_array_equal(fitted.predict(X), model.labels_)
    assert watcher.ended


def test_a_callback_may_end_a_stage():
    model = DeepKMeans(3, **SHORT[DeepKMeans], device="cpu", random_state=0)
    model.set_callbacks(Watcher(stop_after=2)).fit(X)
    assert [e["stage"] for e in model.history_] == ["pretrain"] * 2 + ["cluster"] * 4


def test_scikit_learns_progress_bar_runs(capsys):
    ProgressBar = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9").ProgressBar

    model = DeepKMeans(3, **SHORT[DeepKMeans], device="cpu", random_state=0)
    model.set_callbacks(ProgressBar()).fit(X)
    assert "pretrain" in capsys.readouterr().out


def test_checkpoints_are_runs_of_every_nth_epoch(tmp_path):
    options = SHORT[DeepKMeans] | {"device": "cpu", "random_state": 0}
    model = DeepKMeans(3, **options, checkpoint_dir=tmp_path, checkpoint_every=2).fit(X)
    runs = load_runs(tmp_path / "runs")
    assert list(runs.names) == ["cluster-00002", "cluster-00004"]
    np.testing.assert_array_equal(runs.spaces["cluster-00004"], model.embedding_)
    np.testing.assert_array_equal(runs.partitions["cluster-00004"], model.labels_)


def test_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    DEPICT(3, **SHORT[DEPICT], device="cpu", random_state=0).fit(X)
    assert torch.equal(torch.get_rng_state(), before)


KILLED = """
import numpy as np, sys
from sklearn.datasets import make_blobs
from wellsep.deep import DeepKMeans
X, _ = make_blobs(120, 8, centers=3, random_state=0)
DeepKMeans(3, pretrain_epochs=100000, epochs=1, hidden=(16,), n_latent=3, device="cpu",
           random_state=0, checkpoint_dir=sys.argv[1], checkpoint_every=5).fit(X)
"""


@pytest.mark.slow
def test_a_killed_process_leaves_a_state_to_go_on_from(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    state = tmp_path / "state.safetensors"
    end = time.monotonic() + 60
    while not state.exists() and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, record = read_tensors(state)
    assert record["stage"] == "pretrain"
    assert record["epoch"] >= 5
    model = DeepKMeans(
        3, pretrain_epochs=100_000, epochs=1, hidden=(16,), n_latent=3, device="cpu",
        random_state=0, checkpoint_dir=tmp_path,
    )  # fmt: skip
    with pytest.raises(InterruptedError):
        model.set_callbacks(StopAt(1)).fit(X)
    assert read_tensors(state)[1]["epoch"] == record["epoch"] + 1
