"""Image encoders and decoders, in three sizes, per object slot or flat.

The convolution gives one map per object; an MLP turns maps into a state. Slot models share one
MLP over the maps, so a state is (B, objects, embedding); flat models see all maps at once and
give one wide slot, (B, 1, objects * embedding).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.models.layers import (
    MLP,
    CellConv2d,
    CellConvTranspose2d,
    full_precision,
    norm_statistics,
    track,
)
from interverse.models.patches import Patches, Seen, cell_maps, patch_maps, suits

if TYPE_CHECKING:
    from interverse.models.world_model import WorldModelConfig

Size = Literal["small", "medium", "large"]

MAP_EDGE = {"small": 5, "medium": 10, "large": 50}
"""Edge of an object's map for a 50 x 50 image."""
_CPU_CHUNK = 4  # images whose features fit in cache together


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


# ---------------------------------------------------------------------- the medium decoder's head


@final
class PatchDecoder(nn.Module):
    """Object maps to image logits: cells of 5 x 5 pixels, then a 9 x 9 blur, a batch norm between.

    The first convolution does not overlap (kernel = stride), so each pixel's features are a linear
    map of one cell's few numbers. Their batch mean and variance therefore follow exactly from the
    mean and covariance of those numbers, and the normalisation folds into the kernel: no pass over
    the feature maps (256 x 50 x 50 per image), which otherwise dominate the cost of a likelihood
    update.

    The second has three output channels, a shape that matrix units are bad at. On the CPU it runs
    image by image in cache as a product and a fold, and features are recomputed in the backward
    pass rather than kept (10 GB for a batch of 512). On a GPU both layers run on cells of 5 x 5
    pixels: a linear map from objects to 25 x width features, then a 3 x 3 convolution to 25 x 3
    values.
    """

    def __init__(self, objects: int, width: int, *, norm_first: bool = True) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.in_cache = True  # allows the CPU path, which cannot be mapped over stacked weights
        self.cells = nn.ConvTranspose2d(objects, width, 5, stride=5)
        self.norm = nn.BatchNorm2d(width)
        self.image = nn.ConvTranspose2d(width, 3, 9, padding=4)
        # [tap, p, r]: whether it joins pixel r of the three cells around to pixel p of the middle.
        reach = torch.zeros(9, 5, 15)
        for p in range(5):
            for r in range(p + 1, p + 10):
                reach[p + 9 - r, p, r] = 1.0
        self.register_buffer("reach", reach, persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        """Returns logits (B, 3, 5 h, 5 w) of maps (B, objects, h, w)."""
        if not self.norm_first:
            return self.image(self.norm(functional.relu(self.cells(maps))))
        kernel, shift = self._folded(maps)
        if self.in_cache and maps.device.type == "cpu":
            with full_precision(maps):
                head: Tensor = _Head.apply(  # type: ignore[no-untyped-call]
                    maps, kernel, shift, self.image.weight, self.image.bias
                )
                return head
        # The logits by way of features (B, 25 width, h, w): a cell's pixels together.
        batch, objects, h, w = maps.shape
        width = kernel.shape[1]
        rows = maps.movedim(1, 3).reshape(-1, objects)
        features = functional.relu(functional.linear(rows, _by_cell(kernel).T, shift.repeat(25)))
        cells = features.reshape(batch, h, w, 25 * width).movedim(3, 1)
        with full_precision(maps):
            cell_kernel = self._cell_kernel()
        blocks = functional.conv2d(cells, cell_kernel, padding=1)  # (B, 25 x 3, h, w)
        pixels = blocks.movedim(1, 3).reshape(batch, h, w, 5, 5, 3).permute(0, 5, 1, 3, 2, 4)
        bias = self.image.bias
        assert bias is not None
        return pixels.reshape(batch, 3, 5 * h, 5 * w) + bias[:, None, None]

    def _cell_kernel(self) -> Tensor:
        """Returns the 9 x 9 kernel as (25 x 3, 25 width, 3, 3): from cells to cells."""
        width = self.image.weight.shape[0]
        taps = self.image.weight.movedim(0, 1).flatten(0, 1)  # (3 width, 9, 9)
        rows = torch.einsum("kyx,ypr->kxpr", taps, self.reach)
        both = torch.einsum("kxpr,xqs->pqkrs", rows, self.reach)
        split = both.reshape(5, 5, 3, width, 3, 5, 3, 5).permute(0, 1, 2, 5, 7, 3, 4, 6)
        return split.reshape(75, 25 * width, 3, 3)

    def _folded(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the kernel and shift of convolution and normalisation together."""
        weight, bias = self.cells.weight, self.cells.bias
        assert bias is not None
        if self.training:
            with full_precision(maps):
                moments = _feature_moments(maps.to(weight.dtype), weight)
            count = 25 * maps.numel() // maps.shape[1]
            track(self.norm, moments.mean + bias, moments.variance * (count / (count - 1)))
            mean, variance = moments.mean, moments.variance
        else:
            own = norm_statistics(self.norm)
            mean, variance = own.mean - bias, own.variance
        scale = self.norm.weight * torch.rsqrt(variance + self.norm.eps)
        return weight * scale[None, :, None, None], self.norm.bias - mean * scale


class Moments(NamedTuple):
    """Mean and variance of each feature over batch and pixels, each (width,)."""

    mean: Tensor
    variance: Tensor


def _feature_moments(maps: Tensor, weight: Tensor) -> Moments:
    """Returns the moments of `conv_transpose2d(maps, weight, stride=kernel)`, bias left out."""
    cells = maps.transpose(0, 1).flatten(1)  # (objects, B h w)
    centre = cells.mean(1, keepdim=True)
    spread = cells - centre
    covariance = spread @ spread.T / cells.shape[1]
    taps = weight.flatten(2)  # (objects, width, 25)
    tap_means = (taps * centre[:, :, None]).sum(0)
    within = (taps * torch.einsum("mn,ncp->mcp", covariance, taps)).sum(0)
    mean = tap_means.mean(1)
    variance = within.mean(1) + (tap_means - mean[:, None]).square().mean(1)
    return Moments(mean, variance)


class _Head(torch.autograd.Function):
    """Features, ReLU and the 9 x 9 transposed convolution, a few images at a time."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, kernel: Tensor, shift: Tensor, blur: Tensor, bias: Tensor
    ) -> Tensor:
        ctx.save_for_backward(maps, kernel, shift, blur)
        flat = blur.flatten(1)
        rows = []
        for part in maps.split(_CPU_CHUNK):
            size = (5 * part.shape[2], 5 * part.shape[3])
            columns = (_features(part, kernel, shift) @ flat).transpose(1, 2)
            rows.append(functional.fold(columns, size, 9, padding=4))
        return torch.cat(rows) + bias[:, None, None]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        maps, kernel, shift, blur = ctx.saved_tensors
        objects, width = kernel.shape[:2]
        flat, cells = blur.flatten(1), _by_cell(kernel)
        d_maps, d_cells = torch.empty_like(maps), torch.zeros_like(cells)
        d_shift, d_flat = torch.zeros_like(shift), torch.zeros_like(flat)
        for start in range(0, len(maps), _CPU_CHUNK):
            part = maps[start : start + _CPU_CHUNK]
            h, w = part.shape[2:]
            features = _features(part, kernel, shift).flatten(0, 1)
            columns = functional.unfold(grad[start : start + _CPU_CHUNK], 9, padding=4)
            columns = columns.transpose(1, 2).reshape(features.shape[0], -1)
            d_flat.addmm_(features.T, columns)
            d_features = (columns @ flat.T).mul_(features > 0)
            d_shift += d_features.sum(0)
            d_features = d_features.reshape(-1, h, 5, w, 5, width).transpose(2, 3)
            d_features = d_features.reshape(-1, 25 * width)
            d_cells.addmm_(part.movedim(1, 3).reshape(-1, objects).T, d_features)
            d_part = (d_features @ cells.T).reshape(-1, h, w, objects)
            d_maps[start : start + _CPU_CHUNK] = d_part.movedim(3, 1)
        d_kernel = d_cells.reshape(objects, 5, 5, width).movedim(3, 1)
        return d_maps, d_kernel, d_shift, d_flat.reshape(blur.shape), grad.sum((0, 2, 3))


def _by_cell(kernel: Tensor) -> Tensor:
    """Returns the kernel as (objects, 25 width), pixels first."""
    return kernel.movedim(1, 3).reshape(kernel.shape[0], -1)


def _features(maps: Tensor, kernel: Tensor, shift: Tensor) -> Tensor:
    """Returns (B, pixels, width) features after the ReLU."""
    batch, objects, h, w = maps.shape
    width = kernel.shape[1]
    values = maps.movedim(1, 3).reshape(-1, objects) @ _by_cell(kernel)
    pixels = values.reshape(batch, h, w, 5, 5, width).transpose(2, 3)
    return pixels.reshape(batch, -1, width).add_(shift).relu_()


# ------------------------------------------------------------------ slots that compete for cells

_CELL, _CELLS = 10, 25  # pixels along a cell's side, and cells of a picture
_PICTURE = 50
_WIDTH = 64
_ROUNDS = 3
# The first competition is sharp, and by look rather than by place: slots that share all cells
# evenly learn nothing for long.
_SHARPNESS, _PLACES = 8.0, 0.1


@final
class ObjectSlotEncoder(PictureEncoder):
    """Pictures to one state per object, by competition for the picture's cells.

    Slots start at learned queries, one per object and one for the background, so that a slot holds
    the same object in every frame, and compete for the cells of a picture (Locatello et al., 2020).
    What a slot takes from a cell is a product of what is seen there and where it is, summed over
    cells: with means, as published, a block is one part in twenty-five of what a slot sees at
    first, and training rests long on the mean picture. The background's slot is left out of the
    state.
    """

    def __init__(self, objects: int, embedding: int) -> None:
        super().__init__()
        self.objects = objects
        self.maps = nn.Sequential(CellConv2d(3, _WIDTH, _CELL), nn.ReLU())
        self.key_places = nn.Parameter(_PLACES * torch.randn(_CELLS, _WIDTH))
        self.value_places = nn.Parameter(torch.randn(_CELLS, _WIDTH))
        self.slots = nn.Parameter(torch.randn(objects + 1, _WIDTH))
        self.key = nn.Linear(_WIDTH, _WIDTH, bias=False)
        self.value = nn.Linear(_WIDTH, _WIDTH, bias=False)
        self.norm, self.query = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WIDTH, bias=False)
        with torch.no_grad():
            self.query.weight.mul_(_SHARPNESS)
        self.update = nn.GRUCell(_WIDTH, _WIDTH)
        self.settle = nn.Sequential(
            nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH)
        )
        self.read = nn.Linear(_WIDTH, embedding)

    def forward(self, images: Tensor) -> Tensor:
        """Returns (B, objects, embedding) for images (B, 3, 50, 50) in [0, 1]."""
        maps = self.maps(images)
        with full_precision(maps):
            seen = maps.float().flatten(2).transpose(1, 2)
            keys = self.key(seen + self.key_places) * _WIDTH**-0.5
            values = self.value(seen) * self.value_places
            slots = self.slots.expand(len(images), -1, -1)
            for _ in range(_ROUNDS):
                shares = torch.softmax(self.query(self.norm(slots)) @ keys.transpose(1, 2), dim=1)
                taken = (shares @ values).flatten(0, 1)
                slots = self.update(taken, slots.flatten(0, 1)).view_as(slots)
                slots = slots + self.settle(slots)
            return self.read(slots[:, : self.objects])


@final
class ObjectSlotDecoder(nn.Module):
    """States to image logits, with the mask of every slot at hand.

    Every slot has one colour and a mask; masks sum to one over the slots and a learned background.
    A slot of two colours cannot be drawn, which favours one object to a slot but does not ensure
    it: after 600 steps two blocks had a slot each in one of the seeds 0, 1 and 2; in the others,
    after 1200 steps too, one slot has the largest share of both.
    """

    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.paint = nn.Sequential(
            nn.Linear(embedding, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 3 + _PICTURE**2)
        )
        self.background = nn.Parameter(torch.zeros(1, 1, 3 + _PICTURE**2))

    def layers(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Returns colours (B, slots + 1, 3) as logits and masks (B, slots + 1, 50, 50)."""
        background = self.background.expand(len(state), -1, -1)
        painted = torch.cat([self.paint(state), background], dim=1)
        masks = torch.softmax(painted[..., 3:], dim=1)
        return painted[..., :3], masks.unflatten(-1, (_PICTURE, _PICTURE))

    def forward(self, state: Tensor) -> Tensor:
        """Returns logits (B, 3, 50, 50) of states (B, slots, embedding)."""
        with full_precision(state):
            colours, masks = self.layers(state.float())
            return torch.einsum("bkc,bkhw->bchw", colours, masks)


def vision(config: WorldModelConfig) -> tuple[PictureEncoder, nn.Module]:
    """Returns the encoder and the decoder of a config."""
    return ObjectSlotEncoder(config.objects, config.embedding), ObjectSlotDecoder(config.embedding)
