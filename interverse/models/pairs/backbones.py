"""ResNet, CLIP and GroupViT of `transformers`, each mapping pictures to tokens.

Weights come from a folder or a hub's name; without either the networks are random.
"""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import FileFormatError, missing_extra
from interverse.models.layers import IMAGENET, Normalised
from interverse.models.pairs.config import EncoderConfig

try:
    from transformers import (
        CLIPVisionConfig,
        CLIPVisionModelWithProjection,
        GroupViTVisionConfig,
        GroupViTVisionModel,
        ResNetConfig,
        ResNetModel,
    )
except ImportError as error:
    raise missing_extra("transformers", "rooms") from error

_CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
_DEPTHS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


@final
class ResNetTokens(nn.Module):
    """Pictures (B, 3, S, S) in 0..1 to the cells of the last feature map, (B, h * w, width)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        bottleneck, tiny = config.name == "resnet50", config.scale == "tiny"
        widths = [256, 512, 1024, 2048] if bottleneck else [64, 128, 256, 512]
        shape = ResNetConfig(
            embedding_size=8 if tiny else 64,
            hidden_sizes=[8, 8, 16, 16] if tiny else widths,
            depths=[1, 1, 1, 1] if tiny else list(_DEPTHS[config.name]),
            layer_type="bottleneck" if bottleneck else "basic",
        )
        self.normalise = Normalised(*IMAGENET)
        self.network = _load(ResNetModel, shape, config.weights)
        self.network.to(memory_format=torch.channels_last)
        self.width: int = self.network.config.hidden_sizes[-1]

    def grid(self, size: int) -> int:
        """Returns the edge of the feature map for pictures of a size."""
        return -(-size // 32)

    def forward(self, images: Tensor) -> Tensor:
        """Returns the tokens, row by row."""
        ready = self.normalise(images).contiguous(memory_format=torch.channels_last)
        return self.network(ready).last_hidden_state.flatten(2).transpose(1, 2)


@final
class VisionTokens(nn.Module):
    """Pictures to tokens: CLIP's image embedding, or GroupViT's final groups.

    CLIP gives one token, which it compares with texts; the mean of the groups is GroupViT's pooled
    vector.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        tiny, self.single = config.scale == "tiny", config.name == "clip"
        self.normalise = Normalised(*(_CLIP if self.single else IMAGENET))
        if self.single:
            shape = CLIPVisionConfig(
                hidden_size=32 if tiny else 768,
                intermediate_size=64 if tiny else 3072,
                num_hidden_layers=2 if tiny else 12,
                num_attention_heads=2 if tiny else 12,
                image_size=64 if tiny else 224,
                patch_size=32,
                projection_dim=32 if tiny else 512,
            )
            self.network = _load(CLIPVisionModelWithProjection, shape, config.weights)
        else:
            fewer: dict[str, Any] = {
                "hidden_size": 32,
                "intermediate_size": 64,
                "depths": [1, 1, 1],
                "num_hidden_layers": 3,
                "num_group_tokens": [8, 4, 0],
                "num_output_groups": [8, 4, 0],
                "num_attention_heads": 2,
                "image_size": 64,
            }
            shape = GroupViTVisionConfig(**(fewer if tiny else {}))
            self.network = _load(GroupViTVisionModel, shape, config.weights)
        known = self.network.config
        self.width: int = known.projection_dim if self.single else known.hidden_size

    def forward(self, images: Tensor) -> Tensor:
        """Returns (B, tokens, width) of pictures, resized without keeping their aspect."""
        size = self.network.config.image_size
        if images.shape[-2:] != (size, size):
            images = functional.interpolate(images, (size, size), mode="bilinear", antialias=True)
        found = self.network(pixel_values=self.normalise(images))
        return found.image_embeds[:, None] if self.single else found.last_hidden_state


BACKBONES: dict[str, type[nn.Module]] = {
    "clip": VisionTokens,
    "groupvit": VisionTokens,
    "resnet18": ResNetTokens,
    "resnet50": ResNetTokens,
}


def _load(kind: type[nn.Module], shape: object, weights: str | None) -> Any:
    if weights is None:
        return kind(shape)
    try:
        return kind.from_pretrained(weights)  # type: ignore[attr-defined]
    except (OSError, ValueError) as error:
        told = str(error).splitlines()[0]
        raise FileFormatError(
            f"no weights for {kind.__name__} in {weights!r}: {told}",
            fix="Pass a folder that holds config.json and model.safetensors, or a hub's name",
        ) from error
