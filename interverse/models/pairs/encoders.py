"""From pairs of pictures to the tokens a head takes: encode both at once, then pool."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise
from interverse.models.checkpoint import read_tensors
from interverse.models.pairs.config import EncoderConfig, PairModelConfig
from interverse.models.pairs.lite0 import Lite0Tokens
from interverse.models.pairs.slots import SlotEncoder

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

        Args:
            images: (B, 2, 3, S, S) uint8.
            masks: (B, 2, S, S) bool; used by pairing "mask" alone.
            noise: first slots' random numbers; used by slots alone.
        """
        pictures = images.float() / 255
        if isinstance(self.network, SlotEncoder):
            assert noise is not None  # `noise` gave it
            tokens = self.network.pairs(_at(pictures, self.network.resolution), noise)
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
        if not isinstance(self.network, SlotEncoder):
            return None
        return slot_noise(self.network, rows, seed)


def build_encoder(config: EncoderConfig) -> Any:
    """Returns the network of one picture's tokens; random weights come from torch's generator."""
    if config.name == "slots":
        network = SlotEncoder(config)
        if config.weights is not None:
            _load_slots(network, Path(config.weights))
        return network
    if config.name in ("lite0", "rooms"):
        return Lite0Tokens(config)
    from interverse.models.pairs.backbones import BACKBONES  # transformers, only where used

    return BACKBONES[config.name](config)


def slot_noise(network: SlotEncoder, rows: Tensor, seed: int) -> Tensor:
    """Returns (B, slots, width) standard normal numbers, a function of row and seed alone."""
    noise = Noise(torch.full_like(rows, seed), rows, torch.zeros_like(rows))
    return noise.normal("pairs/slots", (network.slots, network.width)).float()


def mask_weights(masks: Tensor | None, grid: int, minimum: float) -> Tensor:
    """Returns (B, 2, grid * grid) weights: 1 where the object is, `minimum` elsewhere."""
    if masks is None:
        raise InvalidValueError(
            explain("pairing 'mask' needs masks, and these pairs have none", fix="Use 'avg'")
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


def _at(pictures: Tensor, size: int) -> Tensor:
    if pictures.shape[-1] == size:
        return pictures
    flat = pictures.flatten(0, 1)
    small = functional.interpolate(flat, size=(size, size), mode="bilinear", antialias=True)
    return small.unflatten(0, (-1, 2))


def _load_slots(network: SlotEncoder, path: Path) -> None:
    file = path / "slots.safetensors" if path.is_dir() else path
    held = read_tensors(file)
    own = {k.removeprefix("encoder."): v for k, v in held.items() if k.startswith("encoder.")}
    try:
        network.load_state_dict(own)
    except RuntimeError as error:
        raise InvalidValueError(
            explain(f"{file} was trained with another slot encoder: {error}".replace("\n", " "))
        ) from error
