"""The networks of the DMCR paper (its Table 4): encoder, actor, twin critics."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from interverse.agents.pixel.augment import fused
from interverse.agents.pixel.half import ConvolveRelu, LongProduct, in_half
from interverse.core.errors import InvalidValueError
from interverse.rollouts.planned import squashed

_FIRST_STRIDE = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PixelSizes:
    """What decides the shapes of the networks.

    Attributes:
        pictures: (channels, side) of what the encoder sees.
        actions: how many numbers an action has.
        filters: of each convolution; `layers` of them, 3x3, the first with stride 2.
        features: what the encoder gives.
        hidden: width of both hidden layers of actor and critics.
    """

    pictures: tuple[int, int]
    actions: int
    filters: int = 32
    layers: int = 4
    features: int = 50
    hidden: int = 1024

    def __post_init__(self) -> None:
        if self.side < 1:
            raise InvalidValueError(
                f"pictures of {self.pictures[1]} pixels vanish in {self.layers} convolutions",
                allowed=f"at least {2 * self.layers + 1} pixels",
            )

    @property
    def side(self) -> int:
        """The side of the last convolution's maps."""
        return (self.pictures[1] - 3) // _FIRST_STRIDE + 1 - 2 * (self.layers - 1)

    @property
    def flat(self) -> int:
        """How many numbers the last convolution gives."""
        return self.filters * self.side**2


@final
class PixelEncoder(nn.Module):
    """Pictures (N, C, S, S) on 0..255 to features (N, 50), in [-1, 1] where they are squashed."""

    def __init__(
        self,
        sizes: PixelSizes,
        generator: torch.Generator,
        *,
        squash: bool = True,
        whole: bool = False,
    ) -> None:
        super().__init__()
        widths = [sizes.pictures[0], *[sizes.filters] * sizes.layers]
        self.convolutions = nn.ModuleList(
            orthogonal(
                skip_init(nn.Conv2d, *pair, 3, stride=1 if i else _FIRST_STRIDE), generator, whole
            )
            for i, pair in enumerate(pairwise(widths))
        )
        self.trunk = Trunk(sizes, generator, squash=squash)

    def forward(self, *pictures: Tensor) -> Tensor:
        """Returns the features of one batch, or of several in a row."""
        return self.trunk(self.convolve(*pictures))

    def convolve(self, *pictures: Tensor) -> Tensor:
        """Returns the last maps: what an actor with a trunk of its own reads."""
        return self.activations(ready(*pictures))[-1]

    def maps(self, pictures: Tensor, layers: nn.Module | None = None) -> list[Tensor]:
        """Returns the activations of every convolution, (N, filters, h, w) each.

        Args:
            pictures: (N, C, S, S) on 0..255.
            layers: other convolutions of the same shapes than its own.
        """
        return self.activations(ready(pictures), layers)

    def activations(self, x: Tensor, layers: nn.Module | None = None) -> list[Tensor]:
        """Returns the same for pictures that are `ready`."""
        maps = []
        for layer in (self.convolutions if layers is None else layers).children():
            assert isinstance(layer, nn.Conv2d)
            if in_half(x):
                x = ConvolveRelu.apply(x, layer.weight, layer.bias, layer.stride)  # type: ignore[no-untyped-call]
            else:
                spare = x.shape[1] - layer.in_channels
                weight = layer.weight
                if spare:
                    weight = functional.pad(weight, (0, 0, 0, 0, 0, spare))
                x = functional.relu(functional.conv2d(x, weight, layer.bias, layer.stride))
            maps.append(x)
        return maps


@final
class Trunk(nn.Module):
    """The last maps to features: linear, layer norm, and tanh if they are to be squashed."""

    def __init__(
        self, sizes: PixelSizes, generator: torch.Generator, *, squash: bool = True
    ) -> None:
        super().__init__()
        self.squash = squash
        self.linear = linear(sizes.flat, sizes.features, generator)
        self.norm = nn.LayerNorm(sizes.features)

    def forward(self, maps: Tensor) -> Tensor:
        """Returns the features."""
        if in_half(maps):
            x = LongProduct.apply(maps, self.linear.weight)  # type: ignore[no-untyped-call]
            x = x + self.linear.bias
        else:
            x = self.linear(maps.flatten(1))
        x = self.norm(x)
        return torch.tanh(x) if self.squash else x


class PixelChoice(NamedTuple):
    """What an actor does: actions in (-1, 1), their log density, and the mean action."""

    actions: Tensor  # (N, A)
    log_density: Tensor  # (N, 1)
    mean: Tensor  # (N, A)


@final
class PixelActor(nn.Module):
    """Features to a Gaussian squashed by tanh."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        self.layers = perceptron(sizes.features, 2 * sizes.actions, sizes.hidden, generator)

    def forward(self, features: Tensor, noise: Tensor) -> PixelChoice:
        """Returns the actions that standard normal noise (N, A) picks."""
        with full_precision(features):
            mean, raw = self.layers(features.float()).chunk(2, dim=1)
        return PixelChoice(*squashed(mean, raw, noise), torch.tanh(mean))


@final
class Critics(nn.Module):
    """Features and actions to two values."""

    def __init__(self, sizes: PixelSizes, generator: torch.Generator) -> None:
        super().__init__()
        width = sizes.features + sizes.actions
        self.first = perceptron(width, 1, sizes.hidden, generator)
        self.second = perceptron(width, 1, sizes.hidden, generator)

    def forward(self, features: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both values, (N, 1) each."""
        with full_precision(features):
            x = torch.cat([features.float(), actions], dim=1)
            return self.first(x), self.second(x)


@final
class SoftNetworks(nn.Module):
    """Encoder, critics, actor, targets and temperature.

    With `own_trunk` the actor shares the convolutions only and reads them through a linear layer
    and norm of its own, as in SAC+AE, CURL, DBC, DrQ and RAD; without, it shares the whole encoder.
    `squash` and `whole` are the encoder's.
    """

    def __init__(
        self,
        sizes: PixelSizes,
        seed: int,
        *,
        alpha: float,
        own_trunk: bool,
        squash: bool,
        whole: bool,
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.encoder = PixelEncoder(sizes, generator, squash=squash, whole=whole)
        self.critics = Critics(sizes, generator)
        self.actor = PixelActor(sizes, generator)
        self.actor_trunk = Trunk(sizes, generator, squash=squash) if own_trunk else None
        self.target_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.tensor(math.log(alpha)))

    def acting(self, maps: Tensor) -> Tensor:
        """Returns what the actor reads in the last maps; its losses never reach the encoder."""
        if self.actor_trunk is None:
            return self.encoder.trunk(maps.detach()).detach()
        return self.actor_trunk(maps.detach())

    @torch.no_grad()
    def soft_value(self, noise: Tensor, *successors: Tensor) -> Tensor:
        """Returns the targets' value of the online actor's next action, with its entropy.

        An actor that shares the whole encoder reads the target encoder here.
        """
        x = ready(*successors)
        features = self.target_encoder.trunk(self.target_encoder.activations(x)[-1])
        read = features
        if self.actor_trunk is not None:
            read = self.actor_trunk(self.encoder.activations(x)[-1])
        choice = self.actor(read, noise)
        values = torch.minimum(*self.target_critics(features, choice.actions))
        return values - self.log_alpha.exp() * choice.log_density


def ready(*pictures: Tensor) -> Tensor:
    """Returns batches of pictures in a row, on 0..1, laid out for the first convolution.

    One batch in half precision is that already.
    """
    if pictures[0].dtype == torch.bfloat16:
        (there,) = pictures
        return there
    return (fused(scaled) if pictures[0].is_cuda else scaled)(*pictures)


def scaled(*pictures: Tensor) -> Tensor:
    """Returns batches of pictures in a row, on 0..1.

    In half precision on a GPU they lie colour by colour, in a multiple of eight channels (the last
    ones black): other layouts keep convolutions from the tensor cores.
    """
    joined = torch.cat(pictures) if len(pictures) > 1 else pictures[0]
    if not (joined.is_cuda and torch.is_autocast_enabled("cuda")):
        return joined / 255.0
    x = joined.to(torch.get_autocast_dtype("cuda")) / 255.0
    x = functional.pad(x, (0, 0, 0, 0, 0, -x.shape[1] % 8))
    return x.contiguous(memory_format=torch.channels_last)


def full_precision(like: Tensor) -> torch.autocast:
    """Returns a context in which small layers are not cast: that costs more than it saves."""
    return torch.autocast(like.device.type, enabled=False)


def perceptron(given: int, made: int, hidden: int, generator: torch.Generator) -> nn.Sequential:
    """Returns two hidden layers with ReLU."""
    return nn.Sequential(
        linear(given, hidden, generator),
        nn.ReLU(),
        linear(hidden, hidden, generator),
        nn.ReLU(),
        linear(hidden, made, generator),
    )


def linear(given: int, made: int, generator: torch.Generator) -> nn.Linear:
    """Returns a linear layer: orthogonal, no bias at first."""
    layer = skip_init(nn.Linear, given, made)
    nn.init.orthogonal_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def orthogonal(layer: nn.Module, generator: torch.Generator, whole: bool = False) -> nn.Module:
    """Returns a 3x3 convolution made orthogonal with the gain of ReLU, without a bias at first.

    Delta-orthogonal, zero but for the kernels' centres, unless `whole` kernels are drawn.
    """
    weight, bias = layer.parameters()
    drawn = weight if whole else torch.empty(weight.shape[:2])
    nn.init.orthogonal_(drawn, gain=nn.init.calculate_gain("relu"), generator=generator)
    with torch.no_grad():
        if not whole:
            weight.zero_()
            weight[:, :, 1, 1] = drawn
        bias.zero_()
    return layer
