"""The one training loop, in named steps: order, step, watch, checkpoint, stop."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wellsep.deep.checkpoints import Checkpoint, load_optimizer, optimizer_tensors, with_prefix
from wellsep.deep.cuda_graph import Step, copy_state, is_out_of_memory, restore_state
from wellsep.deep.data import Data
from wellsep.deep.networks import set_generator

_STEPS_TOGETHER = 16  # steps recorded as one launch on CUDA
_SAVE_SECONDS = 20.0  # a state is written at most this often between the asked-for checkpoints


class TrainingDiverged(FloatingPointError):
    """A loss stopped being finite; the message says where."""


class Outcome(NamedTuple):
    """Where a training stands: what a checkpoint keeps as a run, and what it ends with."""

    labels: np.ndarray
    embedding: np.ndarray
    centers: np.ndarray
    arrays: dict[str, np.ndarray] = {}  # noqa: RUF012  further fitted arrays by attribute name


@dataclass
class Stage:
    """One phase of a method's training."""

    name: str  # shown in progress, history and checkpoints; unique in a training
    epochs: int  # at most
    loss: Callable[[Tensor], Tensor]  # of a batch, given its row numbers on the device
    optimizer: torch.optim.Optimizer
    rows: Tensor | None = None  # that are trained on; None: all
    order: Callable[[int], Tensor] | None = None  # rows of an epoch; None: a fresh permutation
    before_epoch: Callable[[int], bool | None] | None = None  # True ends the stage
    watch: Callable[[], float] | None = None  # value to minimise, asked for after each epoch
    patience: int | None = None  # epochs without a lower one: then stop, and go back to the best
    # Learning rate of a step. Without it steps are recorded and replayed on CUDA: the loss has
    # fixed shapes then and reads nothing.
    rate: Callable[[int], float] | None = None
    clip: float | None = None  # greatest norm of the gradient
    outcome: Callable[[], Outcome] | None = None  # as it stands, for checkpoints as runs


@dataclass
class _Position:
    """How far a stage has come, and the weights to go back to when it has waited long enough."""

    stage: Stage
    epoch: int = 0  # that have ended
    best: float = float("inf")
    waited: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)


class Reported:
    """Stages and epochs as tasks of scikit-learn's callbacks."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator = estimator
        self.root = context.call_on_fit_task_begin(estimator=estimator)

    def stage(self, name: str, epochs: int) -> None:
        task = self.root.subcontext(task_name=name, max_subtasks=epochs)
        self.task = task.call_on_fit_task_begin(estimator=self.estimator)

    def epoch(self) -> bool:
        leaf = self.task.subcontext(task_name="epoch")
        leaf.call_on_fit_task_begin(estimator=self.estimator)
        return leaf.call_on_fit_task_end(
            estimator=self.estimator,
            metadata=lambda: dict(self.estimator._trainer.history[-1]),
            reconstruction_attributes=self.estimator._as_if_stopped,
        )

    def end(self) -> None:
        self.task.call_on_fit_task_end(estimator=self.estimator)


class Trainer:
    """Runs stages over data on one device; a training that was interrupted goes on."""

    def __init__(
        self,
        data: Data,
        *,
        batch_size: int,
        seed: int,
        checkpoint: Checkpoint,
        progress: Reported,
        save_every: int | None = None,  # epochs
        save_outcome: Callable[[str, int, Outcome], None] | None = None,  # stage, epoch, outcome
    ) -> None:
        self.data = data
        self.device = data.device
        self.checkpoint = checkpoint
        record = checkpoint.record
        self.seed = int(record.get("seed", seed))
        self.batch_size = min(int(record.get("batch_size", batch_size)), len(data))
        self.halved = bool(record.get("halved", False))
        self.history: list[dict[str, Any]] = list(record.get("history", []))
        self.finished: list[str] = list(record.get("finished", []))
        self.n_steps = int(record.get("n_steps", 0))
        self.progress = progress
        self.save_every = save_every
        self.save_outcome = save_outcome
        self.modules: dict[str, nn.Module] = {}
        self.memory: dict[str, Tensor] = {
            name: tensor.to(self.device) for name, tensor in checkpoint.group("memory").items()
        }
        # One generator shuffles on the CPU, one makes noise on the device.
        self.shuffler = torch.Generator().manual_seed(self.seed_for("shuffle"))
        self.noise = torch.Generator(self.device).manual_seed(self.seed_for("noise"))
        for name, generator in (("shuffle", self.shuffler), ("noise", self.noise)):
            if (state := checkpoint.tensors.get(f"generator/{name}")) is not None:
                generator.set_state(state)
        self._last_save = time.monotonic()

    # -- what belongs to the training -------------------------------------------------------

    def seed_for(self, purpose: str) -> int:
        words = (self.seed, zlib.crc32(purpose.encode()))
        return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)

    def generator_for(self, purpose: str) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed_for(purpose))

    def add(self, name: str, module: nn.Module) -> Any:
        """Take a module into the training: on the device, and as it was if we resume."""
        module.to(self.device)
        if saved := self.checkpoint.group(f"module/{name}"):
            module.load_state_dict(saved)
        set_generator(module, self.noise)
        self.modules[name] = module
        return module

    def once(self, name: str, compute: Callable[[], Any]) -> Tensor:
        """A tensor computed between stages, remembered for a training that resumes."""
        if name not in self.memory:
            self.memory[name] = torch.as_tensor(compute()).to(self.device)
        return self.memory[name]

    def map(self, function: Callable[[Tensor], Tensor], rows: Tensor | None = None) -> Tensor:
        """`function` of every object's input (or of some rows') in evaluation mode."""
        modes = {module: module.training for module in self.modules.values()}
        for module in modes:
            module.eval()
        try:
            return self.data.map(function, rows)
        finally:
            for module, mode in modes.items():
                module.train(mode)

    def close(self) -> None:
        """Release what only training needs, so that networks can be saved and copied."""
        for module in self.modules.values():
            set_generator(module, None)
            module.eval()

    # -- the loop ----------------------------------------------------------------------------

    def run(self, stage: Stage) -> None:
        """Train one stage to its end, or go on where it was interrupted."""
        if stage.name in self.finished:
            return
        position = self._resume(stage)
        self.progress.stage(stage.name, stage.epochs)
        for module in self.modules.values():
            module.train()
        step = self._step(stage)
        for epoch in range(position.epoch, stage.epochs):
            if stage.before_epoch is not None and stage.before_epoch(epoch):
                break
            step, losses = self._epoch(stage, step, epoch)
            self._check_losses(stage, losses, epoch)
            position.epoch = epoch + 1
            record = {"stage": stage.name, "epoch": epoch + 1, "loss": float(losses.mean())}
            stop = self._watch(position, record)
            self.history.append(record)
            self._keep(position)
            try:
                stop = self.progress.epoch() or stop
            except BaseException:  # a callback that ends the training, at a time limit for example
                self.save(position)
                raise
            if stop:
                break
        if position.weights:
            restore_state(self.modules, position.weights)
        self.finished.append(stage.name)
        self.save()
        self.progress.end()

    def _step(self, stage: Stage) -> Step:
        return Step(
            stage.loss,
            stage.optimizer,
            self.modules,
            clip=stage.clip,
            noise=self.noise,
            capture=stage.rate is None and self.device.type == "cuda",
        )

    def _order(self, stage: Stage, epoch: int) -> Tensor:
        if stage.order is not None:
            return stage.order(epoch).to(self.device)
        count = len(self.data) if stage.rows is None else len(stage.rows)
        order = torch.randperm(count, generator=self.shuffler).to(self.device)
        return order if stage.rows is None else stage.rows[order]

    def _epoch(self, stage: Stage, step: Step, epoch: int) -> tuple[Step, np.ndarray]:
        """The losses of one epoch; out of memory, the batch is halved once and it starts anew."""
        order = self._order(stage, epoch)
        try:
            return step, self._steps(stage, step, order)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if self.halved or self.batch_size < 2:
                raise MemoryError(
                    f"Memory ran out on {self.device} with batch_size {self.batch_size}. "
                    f"{self._kept()}Use a smaller batch_size or network."
                ) from error
            del error
        self.halved = True
        self.batch_size //= 2
        warnings.warn(
            f"Out of memory on {self.device} in stage {stage.name!r}: "
            f"batch_size halved to {self.batch_size}.",
            RuntimeWarning,
            stacklevel=2,
        )
        stage.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return self._epoch(stage, self._step(stage), epoch)

    def _steps(self, stage: Stage, step: Step, order: Tensor) -> np.ndarray:
        size = min(self.batch_size, len(order))
        # Whole batches only: the rest of a permutation gets its turn in another epoch.
        count = len(order) // size
        batches = order[: count * size].view(count, size)
        # A rate that changes from step to step allows one at a time.
        together = 1 if stage.rate is not None else _STEPS_TOGETHER
        losses = []
        for part in batches.split(together):
            if stage.rate is not None:
                for group in stage.optimizer.param_groups:
                    group["lr"] = stage.rate(self.n_steps)
            losses.append(step(part))
            self.n_steps += len(part)
        return torch.cat(losses).cpu().numpy()

    def _check_losses(self, stage: Stage, losses: np.ndarray, epoch: int) -> None:
        bad = np.flatnonzero(~np.isfinite(losses))
        if not len(bad):
            return
        number = self.n_steps - len(losses) + int(bad[0]) + 1
        raise TrainingDiverged(
            f"The loss became {losses[bad[0]]} at step {number} (stage {stage.name!r}, epoch "
            f"{epoch + 1}). {self._kept()}Use a smaller learning_rate."
        )

    def _kept(self) -> str:
        """The sentence that says where the last checkpoint is; empty if there is none."""
        path = self.checkpoint.path
        return f"The last good checkpoint is in {path.parent}. " if path and path.exists() else ""

    def _watch(self, position: _Position, record: dict[str, Any]) -> bool:
        """Whether the watched value has not fallen for long enough; it goes into the record."""
        stage = position.stage
        if stage.watch is None or stage.patience is None:
            return False
        value = record["watched"] = float(stage.watch())
        if value < position.best:
            position.best, position.waited = value, 0
            position.weights = copy_state(self.modules)
        else:
            position.waited += 1
        return position.waited >= stage.patience

    # -- keeping and resuming ------------------------------------------------------------------

    def _keep(self, position: _Position) -> None:
        stage, epoch = position.stage, position.epoch
        due = self.save_every is not None and epoch % self.save_every == 0
        if due and self.save_outcome is not None and stage.outcome is not None:
            self.save_outcome(stage.name, epoch, stage.outcome())
        if due or time.monotonic() - self._last_save > _SAVE_SECONDS:
            self.save(position)

    def save(self, position: _Position | None = None) -> None:
        """Write where the training stands; unfinite weights are never written."""
        if self.checkpoint.path is None:
            return
        tensors = with_prefix("module", copy_state(self.modules))
        if not all(torch.isfinite(t).all() for t in tensors.values() if t.is_floating_point()):
            return
        tensors |= with_prefix("memory", self.memory)
        tensors["generator/shuffle"] = self.shuffler.get_state()
        tensors["generator/noise"] = self.noise.get_state()
        record: dict[str, Any] = {
            "seed": self.seed,
            "batch_size": self.batch_size,
            "halved": self.halved,
            "history": self.history,
            "finished": self.finished,
            "n_steps": self.n_steps,
        }
        if position is not None:
            best = position.best if np.isfinite(position.best) else None
            record |= {"stage": position.stage.name, "epoch": position.epoch, "best": best}
            record["waited"] = position.waited
            tensors |= with_prefix("best", position.weights)
            tensors |= with_prefix("optimizer", optimizer_tensors(position.stage.optimizer))
        self.checkpoint.write(tensors, record)
        self._last_save = time.monotonic()

    def _resume(self, stage: Stage) -> _Position:
        record = self.checkpoint.record
        if record.get("stage") != stage.name:
            return _Position(stage)
        load_optimizer(stage.optimizer, self.checkpoint.group("optimizer"))
        best = float("inf") if record["best"] is None else record["best"]
        weights = {n: t.to(self.device) for n, t in self.checkpoint.group("best").items()}
        return _Position(stage, int(record["epoch"]), best, record["waited"], weights)


def adam(
    parameters: Any, rate: float, device: torch.device, *, decay: float | None = None
) -> torch.optim.Optimizer:
    """Adam, or AdamW where a weight decay is given; recordable on CUDA."""
    options: dict[str, Any] = {"lr": rate}
    if device.type == "cuda":
        options |= {"capturable": True, "fused": True}
    if decay is None:
        return torch.optim.Adam(parameters, **options)
    return torch.optim.AdamW(parameters, weight_decay=decay, **options)
