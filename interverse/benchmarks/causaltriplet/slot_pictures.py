"""Figure 12: pairs of pictures, drawn again from their slots, and which slot drew what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from interverse.metrics.segmentation import foreground_ari, mean_iou
from interverse.models.checkpoint import write_json
from interverse.models.pairs.encoders import slot_noise
from interverse.models.pairs.slots import SlotAutoencoder
from interverse.models.pairs.tensors import PairTensors

_SHOWN = 6
_SCORED = 128


@torch.no_grad()
def slot_pictures(model: SlotAutoencoder, pairs: PairTensors, out: Path) -> dict[str, Any]:
    """Returns how well slots follow the objects acted on; writes it, and arrays for the figure.

    Scores compare with the mask of the object acted on, the one segment all data sets have.
    """
    model.eval()
    count, size = min(_SCORED, len(pairs)), model.encoder.resolution
    images = pairs.images[:count].float() / 255
    small = functional.interpolate(
        images.flatten(0, 1), size=(size, size), mode="bilinear", antialias=True
    )
    noise = slot_noise(model.encoder, torch.arange(count, device=small.device), 0)
    slots = model.encoder.pairs(small.unflatten(0, (-1, 2)), noise)
    drawn, share = zip(*(model.decode(some) for some in slots.flatten(0, 1).split(16)), strict=True)
    again, segments = torch.cat(drawn), torch.cat(share).argmax(1)
    scores: dict[str, Any] = {"mse": float(functional.mse_loss(again, small))}
    if pairs.masks is not None:
        masks = functional.interpolate(
            pairs.masks[:count].flatten(0, 1)[:, None].float(), size=(size, size)
        )[:, 0]
        scores |= _segment_scores(segments.cpu().numpy(), (masks > 0.5).long().cpu().numpy())
    folder = out / "work" / "slots"
    write_json(folder / "scores.json", scores)
    shown = 2 * _SHOWN
    np.savez_compressed(
        folder / "pictures.npz",
        images=_bytes(small[:shown]),
        again=_bytes(again[:shown]),
        segments=segments[:shown].cpu().numpy().astype(np.int16),
    )
    return scores


def _segment_scores(found: Any, given: Any) -> dict[str, float]:
    seen = [i for i in range(len(given)) if given[i].any()]
    overlap = [mean_iou(found[i], given[i]) for i in seen]
    together = [foreground_ari(found[i], given[i]) for i in seen]
    return {
        "object_iou": round(float(np.mean(overlap)), 6) if seen else float("nan"),
        "object_in_one_slot": round(float(np.mean(together)), 6) if seen else float("nan"),
    }


def _bytes(images: torch.Tensor) -> Any:
    return (images.clamp(0, 1) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
