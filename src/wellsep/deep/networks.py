"""Networks built from the shape of one object: autoencoders, JULE's and DeepCluster's convnets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Shape = tuple[int, ...]  # (d,) for vectors, (channels, height, width) for images

# The papers' choices by name; "auto" follows the image size.
_DEPICT = ((4, 0), (5, 2))  # (kernel, padding) of each stride-2 layer: USPS, MNIST
DEPICT_LAYERS = {
    "depict-faces": ((4, 2), (5, 2)),  # FRGC, CMU-PIE
    "depict-ytf": ((5, 2), (4, 0)),
}
JULE_BLOCKS = {
    "usps": {"pools": (True,), "padding": 0},
    "mnist": {"pools": (True, False), "padding": 0},
    "faces": {"pools": (True, True), "padding": 0},  # CMU-PIE, FRGC
    "coil": {"pools": (True, True, True, True), "padding": 0},
    "umist": {"pools": (True, True, True), "padding": 2},
}


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


class Autoencoder(nn.Module):
    """Encoder and mirrored decoder; `noise` is the dropout before each layer on the noisy path."""

    def __init__(
        self, encoder: Sequence[nn.Module], decoder: Sequence[nn.Module], noise: Sequence[float]
    ) -> None:
        super().__init__()
        self.encoder = nn.ModuleList(encoder)
        self.decoder = nn.ModuleList(decoder)
        self.noise = nn.ModuleList(Dropout(rate) for rate in noise)

    def encoded_layers(self, x: Tensor, *, noisy: bool = False) -> list[Tensor]:
        """Input, hidden layers and embedding; the input is free of noise."""
        layers = [x]
        for i, layer in enumerate(self.encoder):
            below = layers[-1]
            if noisy and i < len(self.noise):
                below = self.noise[i](below)
            layers.append(layer(below))
        return layers

    def decoded_layers(self, z: Tensor) -> list[Tensor]:
        """Reconstructions of the input and of the hidden layers, the input's first."""
        layers = []
        for layer in self.decoder:
            z = layer(z)
            layers.append(z)
        return layers[::-1]

    def encode(self, x: Tensor) -> Tensor:
        return self.encoded_layers(x)[-1]

    def decode(self, z: Tensor) -> Tensor:
        return self.decoded_layers(z)[0]

    def forward(self, x: Tensor) -> Tensor:
        return self.encode(x)


def _activated(module: nn.Module, last: nn.Module | None = None) -> nn.Module:
    return nn.Sequential(module, nn.LeakyReLU(0.01) if last is None else last)


def _latent_end(latent: str, n_latent: int) -> nn.Module:
    if latent == "batch-norm":
        return nn.BatchNorm1d(n_latent, affine=False)
    return nn.Tanh() if latent == "tanh" else nn.Identity()


def dense_autoencoder(
    shape: Shape,
    n_latent: int,
    *,
    hidden: Sequence[int] = (500, 500, 2000),
    latent: str = "batch-norm",
    noise: Sequence[float] = (),
) -> Autoencoder:
    """Fully connected d-500-500-2000-latent autoencoder with LeakyReLU .01; images are flattened.

    Batch-norm as the encoder's end keeps the embedding's scale from running to 0 or ∞.
    """
    widths = [math.prod(shape), *hidden, n_latent]
    last = _latent_end(latent, n_latent)
    pairs = list(pairwise(widths))
    encoder = [_activated(nn.Linear(a, b)) for a, b in pairs[:-1]]
    encoder.append(_activated(nn.Linear(*pairs[-1]), last))
    decoder = [_activated(nn.Linear(b, a)) for a, b in pairs[:0:-1]]
    decoder.append(nn.Linear(*pairs[0][::-1]))
    if len(shape) > 1:
        encoder[0] = nn.Sequential(nn.Flatten(), *encoder[0])
        decoder[-1] = nn.Sequential(decoder[-1], nn.Unflatten(1, shape))
    return Autoencoder(encoder, decoder, noise)


def _depict_layers(shape: Shape, layers: str) -> Sequence[tuple[int, int]]:
    if layers != "auto":
        return DEPICT_LAYERS[layers]
    chosen = list(_DEPICT)
    size = ((min(shape[1:]) - 4) // 2) // 2 + 1
    while size > 16:  # each further layer halves the maps
        chosen.append((5, 2))
        size = (size - 1) // 2 + 1
    return chosen


def conv_autoencoder(
    shape: Shape,
    n_latent: int,
    *,
    layers: str = "auto",
    width: int = 50,
    latent: str = "tanh",
    noise: Sequence[float] = (0.1, 0.1),
) -> Autoencoder:
    """DEPICT's autoencoder: convolutions of `width` maps with stride 2, then a dense embedding.

    The decoder mirrors the encoder and ends in tanh, for inputs in [−1, 1].
    """
    _check_image(shape, 4)
    encoder: list[nn.Module] = []
    decoder: list[nn.Module] = []
    channels, size = shape[0], tuple(shape[1:])
    for i, (kernel, padding) in enumerate(_depict_layers(shape, layers)):
        encoder.append(_activated(nn.Conv2d(channels, width, kernel, 2, padding)))
        after = tuple((s + 2 * padding - kernel) // 2 + 1 for s in size)
        if min(after) < 1:
            raise ValueError(
                f"layers must leave something of the image, got {layers!r} for {shape[1:]}."
            )
        # Odd remainders that the stride skipped are put back, so sizes mirror exactly.
        extra = tuple(
            s - ((a - 1) * 2 - 2 * padding + kernel) for s, a in zip(size, after, strict=True)
        )
        back = nn.ConvTranspose2d(width, channels, kernel, 2, padding, output_padding=extra)
        decoder.append(_activated(back, nn.Tanh() if i == 0 else None))
        channels, size = width, after
    flat = channels * math.prod(size)
    encoder.append(
        nn.Sequential(nn.Flatten(), nn.Linear(flat, n_latent), _latent_end(latent, n_latent))
    )
    decoder.append(
        nn.Sequential(
            nn.Linear(n_latent, flat), nn.LeakyReLU(0.01), nn.Unflatten(1, (channels, *size))
        )
    )
    return Autoencoder(encoder, decoder[::-1], noise)


def _jule_blocks(shape: Shape, blocks: str) -> dict[str, Any]:
    if blocks not in ("auto", "conv"):
        return JULE_BLOCKS[blocks]
    side = min(shape[1:])
    if side == 28:
        return JULE_BLOCKS["mnist"]
    if tuple(shape[1:]) == (112, 92):
        return JULE_BLOCKS["umist"]
    pools = [True]
    side = -(-(side - 4) // 2)
    while (side := -(-(side - 4) // 2)) >= 4:  # a block that leaves less than 4×4 says little
        pools.append(True)
    return {"pools": tuple(pools), "padding": 0}


def jule_convnet(
    shape: Shape, *, blocks: str = "auto", width: int = 50, n_features: int = 160
) -> nn.Module:
    """JULE's network: 5×5 convolutions of `width` maps, then features of unit length."""
    if _is_dense(shape, blocks):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(math.prod(shape), 4 * width), nn.BatchNorm1d(4 * width),
            nn.ReLU(), nn.Linear(4 * width, n_features), Normalise(),
        )  # fmt: skip
    _check_image(shape, 6)
    plan = _jule_blocks(shape, blocks)
    layers: list[nn.Module] = []
    channels, size = shape[0], list(shape[1:])
    for pool in plan["pools"]:
        convolution = nn.Conv2d(channels, width, 5, padding=plan["padding"])
        layers += [convolution, nn.BatchNorm2d(width), nn.ReLU()]
        size = [s + 2 * plan["padding"] - 4 for s in size]
        if pool:
            layers.append(nn.MaxPool2d(2, ceil_mode=True))
            size = [-(-s // 2) for s in size]
        channels = width
    if min(size) < 1:
        raise ValueError(
            f"blocks must leave something of the image, got {blocks!r} for {tuple(shape[1:])}."
        )
    flat = channels * math.prod(size)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, n_features), Normalise())


# maps of each convolution; 0 is a pooling
_VGG16: tuple[int, ...] = (
    *(64, 64, 0, 128, 128, 0), *(256, 256, 256, 0), *(512, 512, 512, 0), *(512, 512, 512, 0),
)  # fmt: skip


def deepcluster_convnet(
    shape: Shape, *, blocks: str = "auto", width: int = 32, n_features: int = 256
) -> nn.Module:
    """DeepCluster's network: VGG16 with batch-norm behind a Sobel layer, or a small convnet.

    The small one halves the image down to 4 pixels; its `width` maps double up to eightfold.
    """
    if _is_dense(shape, blocks):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(math.prod(shape), 8 * width), nn.BatchNorm1d(8 * width),
            nn.ReLU(), nn.Linear(8 * width, n_features), nn.BatchNorm1d(n_features), nn.ReLU(),
        )  # fmt: skip
    layers: list[nn.Module] = []
    channels, size = shape[0], list(shape[1:])
    if blocks == "vgg16":
        _check_image(shape, 32)
        layers.append(Sobel())
        channels, plan = 2, _VGG16
    else:
        _check_image(shape, 4)
        count = max(1, int(math.log2(min(size) / 4)) + 1)
        plan = tuple(w for i in range(count) for w in (width * min(2**i, 8), 0))
    for maps in plan:
        if maps == 0:
            layers.append(nn.MaxPool2d(2))
            size = [s // 2 for s in size]
        else:
            convolution = nn.Conv2d(channels, maps, 3, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(maps), nn.ReLU()]
            channels = maps
    layers.append(nn.Flatten())
    flat = channels * math.prod(size)
    if blocks == "vgg16":
        layers += [nn.Linear(flat, 4096), nn.ReLU(), Dropout(0.5)]
        flat = 4096
    return nn.Sequential(
        *layers, nn.Linear(flat, n_features), nn.BatchNorm1d(n_features), nn.ReLU()
    )


def _is_dense(shape: Shape, blocks: str) -> bool:
    return blocks == "dense" or (blocks == "auto" and len(shape) == 1)


def _check_image(shape: Shape, side: int) -> None:
    if len(shape) != 3:
        raise ValueError(
            "X must hold images of shape (n, height, width[, channels]) for a convolutional "
            f"network, got vectors of {shape[0]} features; reshape X, or choose network='dense'."
        )
    if min(shape[1:]) < side:
        raise ValueError(
            f"X must hold images of at least {side}×{side} pixels for this network, "
            f"got {shape[1]}×{shape[2]}; choose network='dense'."
        )


BUILDERS: dict[str, Callable[..., nn.Module]] = {
    "dense-autoencoder": dense_autoencoder,
    "conv-autoencoder": conv_autoencoder,
    "jule": jule_convnet,
    "deepcluster": deepcluster_convnet,
}


class NetworkPlan(NamedTuple):
    """Which network to build; plain data, so that it can be saved."""

    kind: str
    options: dict[str, Any]
    init: str = "glorot"


def build_network(plan: NetworkPlan, shape: Shape, generator: torch.Generator) -> nn.Module:
    """Build a network on the CPU, with weights drawn from one generator."""
    with torch.device("meta"):
        network = BUILDERS[plan.kind](shape, **plan.options)
    network.to_empty(device="cpu")
    draw: dict[str, Callable[[Tensor], Tensor]] = {
        "glorot": lambda w: nn.init.xavier_uniform_(w, generator=generator),
        "he": lambda w: nn.init.kaiming_normal_(w, nonlinearity="relu", generator=generator),
        "small": lambda w: nn.init.normal_(w, 0.0, 0.01, generator=generator),
    }
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            draw[plan.init](module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.reset_parameters()
        elif isinstance(module, Sobel):
            module.kernel.copy_(Sobel().kernel)
    return network


def set_generator(network: nn.Module, generator: torch.Generator | None) -> None:
    for module in network.modules():
        if isinstance(module, Dropout):
            module.generator = generator
