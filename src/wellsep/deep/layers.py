"""Small layers that torch does not have in this form."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Dropout whose noise comes from a generator of its own, not from the global one."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        keep = torch.empty_like(x).bernoulli_(1.0 - self.rate, generator=self.generator)
        return x * keep / (1.0 - self.rate)


class Sobel(nn.Module):
    """Grey image gradients in two channels, with fixed weights."""

    def __init__(self) -> None:
        super().__init__()
        across = torch.tensor([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
        self.register_buffer("kernel", torch.stack([across, across.T])[:, None])

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x.mean(dim=1, keepdim=True), self.kernel, padding=1)


class Normalise(nn.Module):
    """Rows of unit length."""

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=1)
