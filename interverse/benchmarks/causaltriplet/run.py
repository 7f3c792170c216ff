"""Reproduction of Causal Triplet: train, measure, compare, write; finished rows are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch.nn import functional

from interverse.benchmarks import driver
from interverse.benchmarks.causaltriplet.compare import answers_file, compare, sections
from interverse.benchmarks.causaltriplet.settings import SHIFTS, TripletSettings, TripletVariant
from interverse.core.errors import InvalidValueError
from interverse.core.files.atomic import write_json
from interverse.core.files.json_text import plain
from interverse.data.pairs import Split, SplitConfig, split_pairs
from interverse.data.pairs.load import load_pairs
from interverse.fit.work import Clock, Record, device_name, run_stamp
from interverse.models.pairs.config import EncoderConfig
from interverse.models.pairs.fit import PairRun, fingerprint, fit_pairs
from interverse.models.pairs.readout import analyse, change_samples
from interverse.models.pairs.slots import FILE, SlotTraining, train_slots
from interverse.models.pairs.stacked import HeadJob, fit_heads, stacks
from interverse.models.pairs.tensors import Crop, PairTensors, from_dataset, load
from interverse.models.pairs.toy import toy_pairs
from interverse.models.pairs.yardsticks import changed_crop, constant_answer, object_only
from interverse.results.provenance import command

_SAVED_EVERY = 5  # epochs
_WORLDS = {"single": "rooms/single-v1", "multi": "rooms/multi-v1"}
_TOY = Path("toy")
_EPIC_TRAIN = 1000  # pairs in the published runs


def reproduce(settings: TripletSettings) -> dict[str, Any]:
    """Returns our numbers beside the published ones, and writes them to `settings.out`."""
    return driver.reproduce(_TripletWork, settings)


@final
class _TripletWork(driver.Work):
    """Variants on their way, seed by seed: a stopped run has some of every model."""

    paper, title = "causaltriplet", "Causal Triplet, made again"
    compare, sections = staticmethod(compare), staticmethod(sections)
    settings: TripletSettings

    def __init__(self, settings: TripletSettings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self.pairs = cache(self._pairs)  # on the device, made when first needed
        self.stamp = run_stamp(command(), settings.device)

    def kind(self, variant: TripletVariant) -> str:
        """Returns which data a variant trains on: "single", "multi" or "epic"."""
        frozen = variant.recipe in ("resnet-frozen", "clip") or variant.recipe.startswith("group")
        if frozen and self.settings.epic:
            return "epic"
        return f"{variant.crop}-changed" if variant.pictures == "changed" else variant.crop

    def split(self, kind: str, shift: str, seed: int) -> Split:
        """Returns the rows of each set under a shift, by the paper's name of it."""
        pairs, sizes = self.pairs(kind), self.settings.sizes()
        config = SplitConfig(
            shift=SHIFTS[shift],  # type: ignore[arg-type]
            variant=self.settings.split,
            train=min(sizes.train, _EPIC_TRAIN) if kind == "epic" else sizes.train,
            test=sizes.test,
            valid=min(sizes.valid, max(1, len(pairs) // 10)),
            test_houses=self.settings.test_houses,
        )
        return split_pairs(pairs.labels, config, seed, f"{kind} pairs")

    def _pairs(self, kind: str) -> PairTensors:
        if kind.endswith("-changed"):
            return changed_crop(self.pairs(kind.removesuffix("-changed")))
        with self.clock.timed(f"{kind} pairs ready"):
            if kind == "epic":
                from interverse.data.pairs.epic import load_epic

                annotations, frames = self.settings.epic
                dataset = load_epic(annotations, frames)
                found = from_dataset(dataset, size=self.settings.sizes().size, crop="multi")
            else:
                found = self._rooms(kind)  # type: ignore[arg-type]
        self.clock.say(f"{len(found)} {kind} pairs of {found.size} px")
        return found.to(self.settings.device)

    def _rooms(self, crop: Crop) -> PairTensors:
        settings, sizes = self.settings, self.settings.sizes()
        if settings.data == (_TOY,):
            return toy_pairs(sizes.pairs, size=sizes.size, crop=crop)
        for path in settings.data:
            if path.suffix == ".npz" and (pairs := load(path)).crop == crop:
                return pairs
        folders = [path for path in settings.data if path.suffix != ".npz"]
        if not settings.data:
            from interverse.data.pairs import CollectPairs, collect_pairs  # draws: needs mujoco

            folders = [settings.out / "work" / f"{crop}-{sizes.pairs}"]
            self.clock.say(f"drawing {sizes.pairs} {crop} pairs into {folders[0]}")
            asked = CollectPairs(id=_WORLDS[crop], out=folders[0], pairs=sizes.pairs, progress=True)
            collect_pairs(asked)
        for folder in folders:
            if not folder.is_dir():
                raise InvalidValueError(
                    f"{folder} is no folder",
                    allowed="a .npz file, a folder of `interverse collect`, the official release, "
                    "toy",
                )
        opened = [load_pairs(str(folder)) for folder in folders]
        worlds = ["" if one.header is None else one.header.id for one in opened]
        best = [d for d, w in zip(opened, worlds, strict=True) if w in ("", _WORLDS[crop])]
        if crop == "single":  # objects can be cut from scenes; pictures of one object are no scenes
            best = best or opened
        if not best:
            raise InvalidValueError(
                f"no pairs of crop {crop!r} in {', '.join(map(str, settings.data))}",
                fix="Name a .npz or a folder that has them with --data",
            )
        return from_dataset(best[0], size=sizes.size, crop=crop)

    def run_all(self) -> None:
        """Trains and measures all that is not done yet; data that do not fit raise at once."""
        self.clock.check()
        settings, seeds = self.settings, self.settings.every_seed
        # Heads that share their features train at once: seeds, shifts and regularisers.
        groups: dict[str, list[tuple[TripletVariant, int]]] = {}
        for variant in settings.variants():
            model, kind = settings.model(variant), self.kind(variant)
            shared = replace(model, independence=0.0, sparsity=0.0).record()
            for seed in seeds:
                if driver.row_file(settings.out, variant.name, seed).exists():
                    continue
                self.split(kind, variant.shift, seed)
                if stacks(model):
                    drawn = seed if model.encoder.scale == "tiny" else None  # random weights
                    groups.setdefault(f"{kind} {drawn} {shared}", []).append((variant, seed))
        for group in groups.values():
            self.clock.check()
            self._stack(group)
        for seed in seeds:
            for variant in settings.variants():
                told = f"{variant.name} seed {seed}"
                path = driver.row_file(settings.out, variant.name, seed)
                if path.exists():
                    Record(path, self._row_key(variant, seed))  # raises if made otherwise
                    self.clock.say(f"{told}: done before")
                    continue
                self.clock.check()
                with self.failures.kept(told):
                    self._train(variant, seed, told)
            for crop, shift in settings.answers():
                self._answer(crop, shift, seed)

    def _answer(self, crop: str, shift: str, seed: int) -> None:
        """Writes what answers without looking give under a shift."""
        path = answers_file(self.settings.out, crop, shift, seed)
        record = Record(path, {"seed": seed, **self._data_key()})
        if path.exists():
            return
        pairs, split = self.pairs(crop), self.split(crop, shift, seed)
        record.made_by_run(self.stamp)
        record.content |= {
            "constant answer": constant_answer(pairs, split),
            "object only": object_only(pairs, split),
        }
        record.write()

    def _data_key(self) -> dict[str, Any]:
        """Returns what decides which pictures are trained and tested on."""
        houses = self.settings.test_houses
        return {
            "split": self.settings.split,
            **({"test_houses": houses} if houses else {}),
            "budget": self.settings.sizes().record(),
        }

    def _row_key(self, variant: TripletVariant, seed: int) -> dict[str, Any]:
        """Returns what decides a row's numbers, but for the data."""
        settings = self.settings
        return {
            "variant": variant.name,
            "seed": seed,
            "source": settings.source,
            **self._data_key(),
            "model": plain(settings.model(variant).record()),
            "fit": settings.fit(variant).decides(),
        }

    def _stack(self, group: Sequence[tuple[TripletVariant, int]]) -> None:
        settings, first = self.settings, group[0][0]
        kind, fit = self.kind(first), settings.fit(first)
        splits = [self.split(kind, variant.shift, seed) for variant, seed in group]
        jobs = [
            HeadJob(config=settings.model(variant), split=split, seed=seed)
            for (variant, seed), split in zip(group, splits, strict=True)
        ]
        name = f"{len(jobs)} heads of {kind}"
        watch = self._watch(name, fit.epochs)
        with self.clock.timed(name):
            runs = fit_heads(jobs, self.pairs(kind), fit=fit, listeners=[watch])
        for (variant, _), run, split in zip(group, runs, splits, strict=True):
            self._keep(variant, run, split)

    def _train(self, variant: TripletVariant, seed: int, told: str) -> None:
        settings, kind = self.settings, self.kind(variant)
        pairs = self.pairs(kind)
        split, model = self.split(kind, variant.shift, seed), settings.model(variant)
        if model.encoder.name == "slots":
            model = replace(model, encoder=replace(model.encoder, weights=str(self._slots(pairs))))
        fit = replace(
            settings.fit(variant),
            out=settings.out / "work" / f"{variant.name}.seed-{seed}",
            checkpoint_every=_SAVED_EVERY,
        )
        watch = self._watch(told, fit.epochs)
        with self.clock.timed(told):
            run = fit_pairs(model, pairs, split, fit=fit, seed=seed, listeners=[watch])
        self._keep(variant, run, split)

    def _keep(self, variant: TripletVariant, run: PairRun, split: Split) -> None:
        """Writes the row of a trained model."""
        settings, pairs, seed = self.settings, run.work.data, run.work.seed
        path = driver.row_file(settings.out, variant.name, seed)
        record, content = Record(path, self._row_key(variant, seed)), run.record()
        record.made_by_run(self.stamp)
        record.content |= {
            "data": fingerprint(pairs, run.sets),
            "device": device_name(settings.device),
            "weights": content["weights"].removeprefix(f"{settings.out}/"),
            "sizes": content["sizes"],
            "held": [list(map(int, held)) for held in split.held],
            "selection": content["selection"],
            "history": content["history"],
        }
        if settings.analysis and not variant.changes and variant.pictures == "whole":
            with self.clock.timed(f"{variant.name} seed {seed}: what it holds"):
                record.content["analysis"] = analyse(run)
        if variant.recipe in ("vanilla", "sms") and variant.crop == "single" and seed == 1:
            change, groups = change_samples(run)  # what Figure 8 shows
            path = settings.out / "rows" / f"{variant.name}.change.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, change=change.astype(np.float32), groups=np.array(groups))
        record.write()

    def _watch(self, name: str, epochs: int) -> Any:
        def listener(row: Mapping[str, Any]) -> None:
            epoch = row["epoch"]
            if epoch % max(1, epochs // 4) == 0:
                self.clock.say(
                    f"{name}: {epoch}/{epochs}, loss {row['loss']:.3f}, train"
                    f" {row['train']:.3f}, ID {row['test_id']:.3f}, OOD {row['test_ood']:.3f}"
                )
            if epoch % _SAVED_EVERY == 0 and epoch < epochs:
                self.clock.check()

        return listener

    def _slots(self, pairs: PairTensors) -> Path:
        """Returns the file of slots pretrained on all pictures, training them now if need be."""
        given = self.settings.encoder_weights().get("slots")
        if given is not None:
            return Path(given)
        sizes, folder = self.settings.sizes(), self.settings.out / "work" / "slots"
        encoder = EncoderConfig(name="slots", resolution=sizes.resolution)
        if sizes.tiny:
            encoder = replace(encoder, scale="tiny", slots=4, iterations=2)
        how = SlotTraining(
            encoder=encoder,
            steps=sizes.slot_steps,
            batch_size=64 if not sizes.tiny else 8,
            warmup=max(1, min(10_000, sizes.slot_steps // 20)),
            halve_every=max(1, sizes.slot_steps // 5),
            device=self.settings.device,
            precision=self.settings.precision_used,
            out=folder,
            log_every=max(1, min(1000, sizes.slot_steps // 10)),
        )

        def say_progress(row: Mapping[str, Any]) -> None:
            self.clock.say(f"slots: step {row['step']}, loss {row['loss']:.4f}")
            self.clock.check()

        if not (folder / FILE).exists():
            with self.clock.timed(f"slots pretrained, {how.steps} steps"):
                images = _at(pairs, sizes.resolution)
                _, history = train_slots(images, how, listeners=[say_progress])
            made = {"how": how.record(), "history": history}
            write_json(folder / "slots.json", made, sort_keys=False)
        return folder / FILE


def _at(pairs: PairTensors, size: int) -> torch.Tensor:
    """Returns all pictures at a size, (2N, 3, size, size) uint8."""
    images = pairs.images.flatten(0, 1)
    if images.shape[-1] == size:
        return images
    parts = [
        functional.interpolate(some.float(), size=(size, size), mode="bilinear", antialias=True)
        for some in images.split(512)
    ]
    return torch.cat([part.round().clamp(0, 255).to(torch.uint8) for part in parts])
