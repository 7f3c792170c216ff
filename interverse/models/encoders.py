"""Image encoders and decoders, in three sizes, per object slot or flat.

The convolution gives one map per object; an MLP turns maps into a state. Slot models share one
MLP over the maps, so a state is (B, objects, embedding); flat models see all maps at once and
give one wide slot, (B, 1, objects * embedding).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

from torch import Tensor, nn

from interverse.models.deconvolution import PatchDecoder
from interverse.models.layers import MLP, CellConv2d, CellConvTranspose2d, full_precision
from interverse.models.patches import Patches, Seen, cell_maps, patch_maps, suits

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

Size = Literal["small", "medium", "large"]

MAP_EDGE = {"small": 5, "medium": 10, "large": 50}
"""Edge of an object's map for a 50 x 50 image."""


class PictureEncoder(nn.Module):
    """Images (B, 3, 50, 50) to states: the base of all encoders of world models."""

    maps: nn.Sequential
    patchable = False
    """Whether it can look at distinct windows instead of whole frames."""


@final
class Encoder(PictureEncoder):
    """Images to states; a VAE's also to a second number (log-variance) per state value."""

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        self.size, self.slots = config.encoder, config.slots
        self.patchable = self.size == "medium" and config.norm_first
        self.maps = _encoder_maps(config)
        self.mlp = MLP(
            config.pixels_per_slot,
            config.hidden,
            config.slot_width * (2 if config.entry.samples else 1),
            layer_norm=config.layer_norm,
        )
        for part in self.modules():
            if isinstance(part, nn.Conv2d):  # drawn as the reference draws them
                nn.init.xavier_uniform_(part.weight)
                if part.bias is not None:
                    nn.init.zeros_(part.bias)

    def forward(self, images: Seen) -> Tensor:
        """Returns (B, slots, parts * slot_width) for images (B, 3, 50, 50) in [0, 1]."""
        if isinstance(images, Patches):
            maps = patch_maps(images, self.maps)
        elif suits(images, self.maps, self.size):
            maps = cell_maps(images, self.maps)
        else:
            maps = self.maps(images)
        maps = maps.contiguous().reshape(len(maps), self.slots, -1)
        with full_precision(maps):
            return self.mlp(maps.float())


@final
class Decoder(nn.Module):
    """States to image logits."""

    def __init__(self, config: WorldModelConfig) -> None:
        super().__init__()
        self.objects, self.edge = config.objects, MAP_EDGE[config.encoder]
        self.mlp = MLP(
            config.slot_width,
            config.decoder_width,
            config.pixels_per_slot,
            layer_norm=config.layer_norm,
        )
        self.image = _decoder_image(config)

    def forward(self, state: Tensor) -> Tensor:
        """Returns logits (B, 3, 50, 50) of states (B, slots, slot_width)."""
        with full_precision(state):
            maps = self.mlp(state.float())
        return self.image(maps.reshape(len(state), self.objects, self.edge, self.edge))


def _encoder_maps(config: WorldModelConfig) -> nn.Sequential:
    """Returns the convolutions up to one sigmoid map per object."""
    width, objects = config.encoder_channels, config.objects
    if config.encoder == "small":
        return nn.Sequential(
            CellConv2d(3, width, 10),
            *_normed(width, nn.ReLU(), config),
            CellConv2d(width, objects, 1),
            nn.Sigmoid(),
        )
    if config.encoder == "medium":
        return nn.Sequential(
            nn.Conv2d(3, width, 9, padding=4),
            *_normed(width, nn.LeakyReLU(0.01), config),
            CellConv2d(width, objects, 5),
            nn.Sigmoid(),
        )
    layers: list[nn.Module] = []
    for inputs in (3, width, width):
        layers += [nn.Conv2d(inputs, width, 3, padding=1), *_normed(width, nn.ReLU(), config)]
    return nn.Sequential(*layers, nn.Conv2d(width, objects, 3, padding=1), nn.Sigmoid())


def _decoder_image(config: WorldModelConfig) -> nn.Module:
    """Returns the transposed convolutions from object maps to image logits."""
    width, objects = config.decoder_width, config.objects
    if config.encoder == "small":
        first, last = CellConvTranspose2d(objects, width, 1), CellConvTranspose2d(width, 3, 10)
        return nn.Sequential(first, nn.ReLU(), last)
    if config.encoder == "medium":
        return PatchDecoder(objects, width, norm_first=config.norm_first)
    layers: list[nn.Module] = []
    for inputs in (objects, width, width):
        grown = nn.ConvTranspose2d(inputs, width, 3, padding=1)
        layers += [grown, *_normed(width, nn.ReLU(), config)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 3, padding=1))


def _normed(
    width: int, activation: nn.Module, config: WorldModelConfig
) -> tuple[nn.Module, nn.Module]:
    norm = nn.BatchNorm2d(width)
    return (norm, activation) if config.norm_first else (activation, norm)
