"""One optimiser step, replayed as a recorded CUDA graph where its shapes allow it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wellsep._checks.arrays import kernels_wanted


def copy_state(modules: dict[str, nn.Module]) -> dict[str, Tensor]:
    """Copies of all parameters and buffers, by `module name/key`."""
    return {
        f"{name}/{key}": value.detach().clone()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }


def restore_state(modules: dict[str, nn.Module], state: dict[str, Tensor]) -> None:
    """Put copies back in place."""
    with torch.no_grad():
        for name, module in modules.items():
            for key, value in module.state_dict().items():
                if f"{name}/{key}" in state:
                    value.copy_(state[f"{name}/{key}"])


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether the device had no memory left; its libraries say so in words of their own."""
    text = str(error).lower()
    return (
        isinstance(error, torch.OutOfMemoryError)
        or "out of memory" in text
        or ("alloc_failed" in text)
    )


# Threads may train at the same time; they record in turn.
_recording = threading.Lock()


class Step:
    """Loss, gradient and update for batches of rows, one after another; returns the losses.

    Small networks spend most of a step launching kernels. With `capture` the steps of a call are
    recorded when their number or the batch size is new, and replayed as one launch otherwise.
    Where recording fails the steps run as usual, with a warning; WELLSEP_KERNELS=0 turns it off.
    For capture the optimiser must keep its state on the device. Recording leaves the state of
    `modules`, of the optimiser and of `noise`, the source of random numbers, as it was.
    """

    def __init__(
        self,
        loss: Callable[[Tensor], Tensor],
        optimizer: torch.optim.Optimizer,
        modules: dict[str, nn.Module],
        *,
        clip: float | None,
        noise: torch.Generator,
        capture: bool,
    ) -> None:
        self.loss = loss
        self.optimizer = optimizer
        self.modules = modules
        self.clip = clip
        self.noise = noise
        self.capture = capture and kernels_wanted()
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.recorded: dict[torch.Size, tuple[Any, Tensor, Tensor]] = {}  # graph, rows, losses

    def __call__(self, rows: Tensor) -> Tensor:
        """Losses of some steps, given their rows as (steps, batch size)."""
        if self.capture and rows.shape not in self.recorded:
            try:
                with torch.cuda.device(rows.device), _recording:
                    self.recorded[rows.shape] = self._record(rows)
            except RuntimeError as error:
                if is_out_of_memory(error):
                    raise
                warnings.warn(
                    f"A training step could not be recorded and runs unrecorded: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
                self.capture = False
                self.optimizer.zero_grad(set_to_none=True)
        if not self.capture:
            return self._run_all(rows)
        graph, static_rows, losses = self.recorded[rows.shape]
        static_rows.copy_(rows)
        graph.replay()
        return losses.clone()

    def _run_all(self, rows: Tensor) -> Tensor:
        return torch.stack([self._run(batch) for batch in rows])

    def _run(self, rows: Tensor) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(rows)
        if loss.requires_grad:
            loss.backward()
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.parameters, self.clip)
            self.optimizer.step()
        return loss.detach()

    def _record(self, rows: Tensor) -> tuple[Any, Tensor, Tensor]:
        static_rows = rows.clone()
        before = copy_state(self.modules)
        optimizer_before = {
            (id(p), key): value.clone()
            for p, entries in self.optimizer.state.items()
            for key, value in entries.items()
            if torch.is_tensor(value)
        }
        noise_before = self.noise.get_state()
        # The first steps create the optimiser's state and choose kernels; then all is put back.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._run(static_rows[0])
        finally:
            torch.cuda.current_stream().wait_stream(side)
            self._put_back(before, optimizer_before)
            self.noise.set_state(noise_before)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.noise)
        self.optimizer.zero_grad(set_to_none=True)
        # What other threads do meanwhile must not end up in the recording, nor end it.
        with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            losses = self._run_all(static_rows)
        return graph, static_rows, losses

    def _put_back(
        self, before: dict[str, Tensor], optimizer_before: dict[tuple[int, str], Tensor]
    ) -> None:
        restore_state(self.modules, before)
        with torch.no_grad():
            for p, entries in self.optimizer.state.items():
                for key, value in entries.items():
                    if torch.is_tensor(value):
                        old = optimizer_before.get((id(p), key))
                        value.zero_() if old is None else value.copy_(old)
