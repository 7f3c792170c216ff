"""Image encoders and decoders, in three sizes, per object slot or flat.

The convolution gives one map per object; an MLP turns maps into a state. Slot models share one
MLP over the maps, so a state is (B, objects, embedding); flat models see all maps at once and
give one wide slot, (B, 1, objects * embedding).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from torch import Tensor, nn

from interverse.core.errors import InvalidValueError, check_name, explain
from interverse.models.cell_maps import cell_maps, suits
from interverse.models.cells import CellConv2d, CellConvTranspose2d
from interverse.models.deconvolution import PatchDecoder, full_precision
from interverse.models.mlp import MLP
from interverse.models.patches import Patches, Seen, patch_maps

Size = Literal["small", "medium", "large"]

MAP_EDGE = {"small": 5, "medium": 10, "large": 50}
"""Edge of an object's map for a 50 x 50 image."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Vision:
    """The shape of an encoder and its decoder."""

    objects: int
    embedding: int = 32
    size: Size = "medium"
    flat: bool = False
    """One slot for the whole scene instead of one per object."""
    hidden: int = 512
    """Width of the encoder's MLP."""
    channels: int = 32
    """Width of the encoder's convolutions."""
    decoder_width: int = 256
    """Width of the decoder's MLP and convolutions."""
    layer_norm: bool = True
    norm_first: bool = True
    """Batch norm before the activation (the reference code) or after it (the paper's table)."""

    def __post_init__(self) -> None:
        check_name("encoder size", self.size, MAP_EDGE)
        for name in ("objects", "embedding", "hidden", "channels", "decoder_width"):
            if getattr(self, name) < 1:
                raise InvalidValueError(
                    explain(f"{name} must be at least 1, got {getattr(self, name)}")
                )

    @property
    def slots(self) -> int:
        """How many vectors a state has."""
        return 1 if self.flat else self.objects

    @property
    def slot_width(self) -> int:
        """The length of one of them."""
        return self.embedding * (self.objects if self.flat else 1)

    @property
    def pixels_per_slot(self) -> int:
        """Map values that belong to one slot."""
        return MAP_EDGE[self.size] ** 2 * (self.objects if self.flat else 1)


class PictureEncoder(nn.Module):
    """Images (B, 3, 50, 50) to states: the base of all encoders of world models."""

    maps: nn.Sequential

    @property
    def patchable(self) -> bool:
        """Whether it can look at distinct windows instead of whole frames."""
        return False


@final
class Encoder(PictureEncoder):
    """Images to states; with `parts=2` also a second number (log-variance) per state value."""

    def __init__(self, vision: Vision, *, parts: int = 1) -> None:
        super().__init__()
        self.vision = vision
        self.maps = _encoder_maps(vision)
        self.mlp = MLP(
            vision.pixels_per_slot,
            vision.hidden,
            parts * vision.slot_width,
            layer_norm=vision.layer_norm,
        )
        _draw_convolutions(self)

    def forward(self, images: Seen) -> Tensor:
        """Returns (B, slots, parts * slot_width) for images (B, 3, 50, 50) in [0, 1]."""
        if isinstance(images, Patches):
            maps = patch_maps(images, self.maps)
        elif suits(images, self.maps, self.vision.size):
            maps = cell_maps(images, self.maps)
        else:
            maps = self.maps(images)
        maps = maps.contiguous().reshape(len(maps), self.vision.slots, -1)
        with full_precision(maps):
            return self.mlp(maps.float())

    @property
    def patchable(self) -> bool:
        """Whether it can look at distinct windows instead of whole frames."""
        return self.vision.size == "medium" and self.vision.norm_first


@final
class Decoder(nn.Module):
    """States to image logits."""

    def __init__(self, vision: Vision) -> None:
        super().__init__()
        self.vision = vision
        self.mlp = MLP(
            vision.slot_width,
            vision.decoder_width,
            vision.pixels_per_slot,
            layer_norm=vision.layer_norm,
        )
        self.image = _decoder_image(vision)

    def forward(self, state: Tensor) -> Tensor:
        """Returns logits (B, 3, 50, 50) of states (B, slots, slot_width)."""
        edge = MAP_EDGE[self.vision.size]
        with full_precision(state):
            maps = self.mlp(state.float())
        return self.image(maps.reshape(len(state), self.vision.objects, edge, edge))


def _encoder_maps(vision: Vision) -> nn.Sequential:
    """Returns the convolutions up to one sigmoid map per object."""
    width, objects = vision.channels, vision.objects
    if vision.size == "small":
        return nn.Sequential(
            CellConv2d(3, width, 10),
            *_normed(width, nn.ReLU(), vision),
            CellConv2d(width, objects, 1),
            nn.Sigmoid(),
        )
    if vision.size == "medium":
        return nn.Sequential(
            nn.Conv2d(3, width, 9, padding=4),
            *_normed(width, nn.LeakyReLU(0.01), vision),
            CellConv2d(width, objects, 5),
            nn.Sigmoid(),
        )
    layers: list[nn.Module] = []
    for inputs in (3, width, width):
        layers += [nn.Conv2d(inputs, width, 3, padding=1), *_normed(width, nn.ReLU(), vision)]
    return nn.Sequential(*layers, nn.Conv2d(width, objects, 3, padding=1), nn.Sigmoid())


def _decoder_image(vision: Vision) -> nn.Module:
    """Returns the transposed convolutions from object maps to image logits."""
    width, objects = vision.decoder_width, vision.objects
    if vision.size == "small":
        return nn.Sequential(
            CellConvTranspose2d(objects, width, 1),
            nn.ReLU(),
            CellConvTranspose2d(width, 3, 10),
        )
    if vision.size == "medium":
        return PatchDecoder(objects, width, norm_first=vision.norm_first)
    layers: list[nn.Module] = []
    for inputs in (objects, width, width):
        layers += [
            nn.ConvTranspose2d(inputs, width, 3, padding=1),
            *_normed(width, nn.ReLU(), vision),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 3, padding=1))


def _normed(width: int, activation: nn.Module, vision: Vision) -> tuple[nn.Module, nn.Module]:
    norm = nn.BatchNorm2d(width)
    return (norm, activation) if vision.norm_first else (activation, norm)


def _draw_convolutions(module: nn.Module) -> None:
    """Draws convolution weights as the reference does: Xavier-uniform, bias zero."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
