"""Convolutions whose kernel equals their stride, as plain matrix products over cells.

Nothing overlaps, so a cell's pixels are one row and the kernel one matrix. The product is what
matrix units are made for; mapped over the stacked weights of several seeds it stays one, where a
grouped convolution would be slow.
"""

from __future__ import annotations

from typing import final

from torch import Tensor, nn
from torch.nn import functional

_VECTOR = 16  # channels that fill a CPU's vectors: with these its convolutions are the faster way


@final
class CellConv2d(nn.Module):
    """`nn.Conv2d(inputs, outputs, edge, stride=edge)`: cells of edge x edge pixels to numbers."""

    def __init__(self, inputs: int, outputs: int, edge: int) -> None:
        super().__init__()
        drawn = nn.Conv2d(inputs, outputs, edge, stride=edge)
        nn.init.xavier_uniform_(drawn.weight)
        assert drawn.bias is not None
        nn.init.zeros_(drawn.bias)
        self.edge = edge
        self.weight, self.bias = drawn.weight, drawn.bias

    def forward(self, images: Tensor) -> Tensor:
        """Returns (B, outputs, h, w) for images (B, inputs, edge h, edge w)."""
        batch, channels, height, width = images.shape
        if images.device.type == "cpu" and channels >= _VECTOR:
            return functional.conv2d(images, self.weight, self.bias, stride=self.edge)
        h, w, k = height // self.edge, width // self.edge, self.edge
        pixels = images.movedim(1, 3).reshape(batch, h, k, w, k, -1).transpose(2, 3)
        kernel = self.weight.permute(0, 2, 3, 1).flatten(1)
        cells = functional.linear(pixels.reshape(batch * h * w, -1), kernel, self.bias)
        return cells.reshape(batch, h, w, -1).movedim(3, 1)


@final
class CellConvTranspose2d(nn.Module):
    """`nn.ConvTranspose2d(inputs, outputs, edge, stride=edge)`: numbers to cells of pixels."""

    def __init__(self, inputs: int, outputs: int, edge: int) -> None:
        super().__init__()
        drawn = nn.ConvTranspose2d(inputs, outputs, edge, stride=edge)
        assert drawn.bias is not None
        self.edge = edge
        self.weight, self.bias = drawn.weight, drawn.bias

    def forward(self, maps: Tensor) -> Tensor:
        """Returns (B, outputs, edge h, edge w) for maps (B, inputs, h, w)."""
        batch, inputs, h, w = maps.shape
        k = self.edge
        kernel = self.weight.permute(2, 3, 1, 0).reshape(-1, inputs)
        rows = maps.movedim(1, 3).reshape(-1, inputs)
        cells = functional.linear(rows, kernel, self.bias.repeat(k * k))
        pixels = cells.reshape(batch, h, w, k, k, -1).permute(0, 1, 3, 2, 4, 5)
        return pixels.reshape(batch, h * k, w * k, -1).movedim(3, 1)
