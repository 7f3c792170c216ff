"""One recognition model from pairs to results. `interverse train --task rooms/...` is this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from torch.nn import functional

from interverse.core.errors import InvalidValueError
from interverse.core.files.atomic import write_json
from interverse.core.type_checks import Seed, number, one_of, validated, whole
from interverse.data.pairs import CollectPairs, Split, SplitConfig, collect_pairs, split_pairs
from interverse.data.pairs.load import load_pairs as load_folder
from interverse.models.pairs.config import (
    RECIPES,
    EncoderConfig,
    PairFit,
    PairModelConfig,
    Source,
    recipe,
)
from interverse.models.pairs.encoders import build_encoder
from interverse.models.pairs.fit import Listener, PairRun, fit_pairs
from interverse.models.pairs.readout import analyse
from interverse.models.pairs.slots import FILE, SlotTraining, train_slots
from interverse.models.pairs.tensors import Crop, PairTensors, from_dataset, load
from interverse.models.pairs.toy import toy_pairs
from interverse.models.steps import Precision, check_device

_MOST_WEIGHT = 1e6
_SIZE = 64  # pixels
_CROPS: dict[str, Crop] = {"rooms/single-v1": "single", "rooms/multi-v1": "multi"}


@dataclass(frozen=True, kw_only=True)
@validated
class TrainPairs:
    """Trains a model to tell the action between two pictures; goes on where it stopped."""

    task: Annotated[str, one_of(_CROPS)]
    """rooms/single-v1 (crops of one object) or rooms/multi-v1 (whole scenes)."""
    out: Path
    """A folder for progress, curves, weights and results."""
    data: Path | None = None
    """Pairs collected before: a folder of `interverse collect`, a folder in the official layout, or
    a .npz; or the word toy, for coloured shapes. Without any, rooms are drawn into OUT."""
    pairs: Annotated[int, whole(10_000_000)] = 2000
    """How many pairs to draw, where no data are given."""
    workers: Annotated[int, whole(10_000)] = 1
    """Processes that draw them."""
    model: Annotated[str, one_of(RECIPES)] = "lite0"
    """A recipe: lite0, lite0-icm, lite0-sms, lite0-mask (EfficientNet-Lite0, frozen), vanilla, icm,
    sms, oracle-mask, slot-avg, slot-dense, slot-match, resnet-frozen, clip, group-avg, group-dense,
    group-token, group-token-mean, slot-match-mean."""
    source: Source = "code"
    """Hyper-parameters as in the authors' code, or as in the paper."""
    shift: Literal["comp", "loca", "noun", "random", "verb"] = "comp"
    """What differs out of distribution: pairs of action and object, places, objects, nothing,
    actions."""
    split: Literal["mended", "reference"] = "mended"
    """Splits with the reference's defects mended, or exactly as its code draws them."""
    train_size: Annotated[int, whole(10_000_000)] = 5000
    """The most pairs to train on."""
    test_houses: Annotated[float, number(most=1.0, below=True)] = 0.0
    """Share of the houses whose pairs are for testing alone; at 0 houses are shared."""
    size: Annotated[int | None, whole(4096)] = None
    """Edge of the pictures in pixels: 64 if not given (the paper has 224), in a .npz its own."""
    epochs: Annotated[int | None, whole(1_000_000)] = None
    """If not the recipe's."""
    batch_size: Annotated[int | None, whole(1_000_000)] = None
    """If not the recipe's."""
    learning_rate: Annotated[float | None, number(most=_MOST_WEIGHT)] = None
    """If not the recipe's."""
    independence: Annotated[float | None, number(most=_MOST_WEIGHT)] = None
    """ICM's weight, if not the recipe's."""
    sparsity: Annotated[float | None, number(most=_MOST_WEIGHT)] = None
    """SMS's weight, if not the recipe's."""
    critic_state: Annotated[float | None, number(most=_MOST_WEIGHT)] = None
    """Weight of a second critic, on the features of each picture; 0 in every recipe."""
    translation: float | None = None
    """Training pictures are cut at random places, by up to this share of their area; for models
    that train their encoder."""
    linear: bool = False
    """Whether the action embedding is one layer on the change of features."""
    dim: Annotated[int | None, whole(65_536)] = None
    """Width of features and action embedding, 64 in every recipe."""
    encoder: Literal["resnet18", "resnet50"] | None = None
    """Another ResNet than the recipe's."""
    min_mask: float | None = None
    """oracle-mask: weight of what is not the object, if not the recipe's."""
    weights: str | None = None
    """The encoder's: a folder, a hub's name, or a file of slots; random without."""
    slot_steps: Annotated[int, whole(10**9)] = 2000
    """Slots without weights are pretrained for so many steps."""
    seed: Seed = 0
    """Of the split and of everything else."""
    device: Annotated[str, check_device] = "cpu"
    """cpu or cuda."""
    precision: Precision = "float32"
    """float32, tf32 or bf16; the last two are for a GPU."""

    def configs(self) -> tuple[PairModelConfig, PairFit]:
        """Returns the model and how it trains."""
        found = recipe(self.model, self.source)
        asked = {
            "independence": self.independence,
            "state_independence": self.critic_state,
            "sparsity": self.sparsity,
            "min_mask": self.min_mask,
            "translation": self.translation,
            "width": self.dim,
            "action": "linear" if self.linear else None,
        }
        changes: dict[str, Any] = {k: v for k, v in asked.items() if v is not None}
        encoder = replace(found.model.encoder, weights=self.weights)
        if self.encoder is not None:
            if not encoder.name.startswith("resnet"):
                raise InvalidValueError(
                    f"encoder is {self.encoder}, but {self.model} has {encoder.name}",
                    fix="Take a model with a ResNet, such as vanilla or resnet-frozen",
                )
            encoder = replace(encoder, name=self.encoder)
        encoder = _at_size(encoder, _SIZE if self.size is None else self.size)
        how = {
            name: getattr(self, name)
            for name in ("epochs", "batch_size", "learning_rate")
            if getattr(self, name) is not None
        }
        fit = replace(
            found.fit, **how, device=self.device, precision=self.precision, out=self.out / "fit"
        )
        return replace(found.model, encoder=encoder, **changes), fit


def train_pairs(config: TrainPairs, listeners: Sequence[Listener] = ()) -> PairRun:
    """Returns the trained model; its curves and results are in `config.out`."""
    model, fit = config.configs()
    if model.encoder.weights is not None and config.data is None:
        build_encoder(model.encoder)  # wrong weights raise now, not after hours of drawing
    pairs = load_pairs(config).to(config.device)
    split = split_of(config, pairs)
    encoder = _at_size(model.encoder, pairs.size)
    if encoder.name == "slots" and encoder.weights is None:
        size, images = encoder.resolution, pairs.images.flatten(0, 1)
        if images.shape[-1] != size:
            how: dict[str, Any] = {"size": (size, size), "mode": "bilinear", "antialias": True}
            parts = (functional.interpolate(some.float(), **how) for some in images.split(512))
            images = torch.cat([some.round().to(torch.uint8) for some in parts])
        training = SlotTraining(
            encoder=encoder,
            steps=config.slot_steps,
            warmup=max(1, config.slot_steps // 20),
            halve_every=max(1, config.slot_steps // 5),
            device=config.device,
            precision=config.precision,
            out=config.out / "slots",
            log_every=max(1, config.slot_steps // 10),
        )
        train_slots(images, training, seed=config.seed)
        encoder = replace(encoder, weights=str(config.out / "slots" / FILE))
    model = replace(model, encoder=encoder)
    run = fit_pairs(model, pairs, split, fit=fit, seed=config.seed, listeners=listeners)
    result: dict[str, Any] = {**run.record(), "analysis": analyse(run)}
    write_json(config.out / "result.json", result)
    return run


def split_of(config: TrainPairs, pairs: PairTensors) -> Split:
    """Returns the sets of a config; validation takes a quarter at most of what a shift leaves."""
    splits = SplitConfig(
        shift=config.shift,
        variant=config.split,
        train=config.train_size,
        valid=0,
        test_houses=config.test_houses,
    )
    told = str(config.data or config.out)
    left = len(split_pairs(pairs.labels, splits, config.seed, told).train)
    valid = max(1, min(500, len(pairs) // 20, left // 4))
    return split_pairs(pairs.labels, replace(splits, valid=valid), config.seed, told)


def load_pairs(config: TrainPairs) -> PairTensors:
    """Returns the pairs that a config names, drawing them where none are given."""
    crop, size = _CROPS[config.task], _SIZE if config.size is None else config.size
    if config.data == Path("toy"):
        return toy_pairs(config.pairs, size=size, seed=config.seed, crop=crop)
    if config.data is not None and config.data.suffix == ".npz":
        pairs = load(config.data)
        task = next(name for name, one in _CROPS.items() if one == pairs.crop)
        for asked, held, flag in ((config.task, task, "task"), (config.size, pairs.size, "size")):
            if asked not in (None, held):
                raise InvalidValueError(
                    f"{flag} is {asked}, but the pictures in {config.data} are of {flag} {held}",
                    fix=f"Pass --{flag} {held}, or other data",
                )
        return pairs
    folder = config.data
    if folder is not None and not folder.is_dir():
        raise InvalidValueError(
            f"{folder} is no folder", allowed="a folder of pairs, a .npz file, or toy"
        )
    if folder is None:
        folder = collect_pairs(
            CollectPairs(
                id=config.task,
                out=config.out / "pairs",
                pairs=config.pairs,
                workers=config.workers,
                seed=config.seed,
                progress=True,
            )
        )
    found = load_folder(str(folder))
    made_in = "" if found.header is None else found.header.id
    if crop == "multi" and _CROPS.get(made_in) == "single":
        raise InvalidValueError(
            f"{folder} holds pairs of {made_in}: pictures of one object, not of scenes",
            fix=f"Pass --task {made_in}, or other data",
        )
    return from_dataset(found, size=size, crop=crop)


def _at_size(encoder: EncoderConfig, size: int) -> EncoderConfig:
    """Returns the encoder for pictures of a size; slots are of one of three resolutions."""
    if encoder.name != "slots":
        return encoder
    return replace(encoder, resolution=128 if size >= 128 else 64 if size >= 64 else 32)
