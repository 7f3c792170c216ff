"""Reproduction of Causal Triplet: train, measure, compare, write; finished rows are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch.nn import functional

from interverse.benchmarks.causaltriplet.compare import compare
from interverse.benchmarks.causaltriplet.materials import TripletMaterials
from interverse.benchmarks.causaltriplet.pages import write_pages
from interverse.benchmarks.causaltriplet.settings import TripletSettings
from interverse.benchmarks.causaltriplet.variants import (
    TripletVariant,
    answers_file,
    row_file,
)
from interverse.benchmarks.driver import reproduce_tables
from interverse.data.pairs import Split
from interverse.fit.work import (
    Clock,
    Failures,
    Record,
    device_name,
    run_stamp,
)
from interverse.models.checkpoint import write_json
from interverse.models.pairs.analysis import analyse, change_samples
from interverse.models.pairs.baselines import constant_answer, object_only
from interverse.models.pairs.config import EncoderConfig
from interverse.models.pairs.fit import PairRun, fingerprint, fit_pairs
from interverse.models.pairs.slot_training import FILE, SlotTraining, train_slots
from interverse.models.pairs.stacked import HeadJob, fit_heads, stacks
from interverse.models.pairs.tensors import PairTensors
from interverse.results.provenance import command

_SAVED_EVERY = 5


def reproduce(settings: TripletSettings) -> dict[str, Any]:
    """Returns our numbers beside the published ones, and writes them to `settings.out`."""
    return reproduce_tables(settings, _TripletWork, compare, write_pages)


@final
class _TripletWork:
    """Variants on their way, seed by seed: a stopped run has some of every model."""

    def __init__(self, settings: TripletSettings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.materials = TripletMaterials(settings, clock)
        self.stamp = run_stamp(command(), settings.device)
        self.failures = Failures(clock)

    def run_all(self) -> None:
        """Trains and measures all that is not done yet; data that do not fit raise at once."""
        self.clock.check()
        seeds = range(1, self.settings.sizes().seeds + 1)
        for variant in self.settings.variants():
            kind = self.materials.kind(variant)
            for seed in seeds:
                if not row_file(self.settings.out, variant, seed).exists():
                    self.materials.split(kind, variant.shift, seed)
        self._stacks(seeds)
        for seed in seeds:
            for variant in self.settings.variants():
                self._one(variant, seed)
            for crop, shift in self.settings.answers():
                self._answer(crop, shift, seed)

    def _answer(self, crop: str, shift: str, seed: int) -> None:
        """Writes what answers without looking give under a shift."""
        path = answers_file(self.settings.out, crop, shift, seed)
        record = Record(path, {"seed": seed, **self._data_key()})
        if path.exists():
            return
        pairs, split = self.materials.pairs(crop), self.materials.split(crop, shift, seed)
        record.made_by_run(self.stamp)
        record.content |= {
            "constant answer": constant_answer(pairs, split),
            "object only": object_only(pairs, split),
        }
        record.write()

    def _one(self, variant: TripletVariant, seed: int) -> None:
        path = row_file(self.settings.out, variant, seed)
        if path.exists():
            Record(path, self._row_key(variant, seed))  # raises if made otherwise
            self.clock.say(f"{variant.name} seed {seed}: done before")
            return
        self.clock.check()
        with self.failures.kept(f"{variant.name} seed {seed}"):
            self._train(variant, seed, path)

    def _stacks(self, seeds: Sequence[int]) -> None:
        """Trains at once all heads that share their features: seeds, shifts and regularisers."""
        groups: dict[str, list[tuple[TripletVariant, int]]] = {}
        for variant in self.settings.variants():
            model, kind = self.settings.model(variant), self.materials.kind(variant)
            if not stacks(model):
                continue
            shared = replace(model, independence=0.0, sparsity=0.0).record()
            for seed in seeds:
                if not row_file(self.settings.out, variant, seed).exists():
                    drawn = seed if model.encoder.scale == "tiny" else None  # random weights
                    groups.setdefault(f"{kind} {drawn} {shared}", []).append((variant, seed))
        for group in groups.values():
            self.clock.check()
            self._stack(group)

    def _stack(self, group: Sequence[tuple[TripletVariant, int]]) -> None:
        settings, variants = self.settings, [variant for variant, _ in group]
        kind, fit = self.materials.kind(variants[0]), settings.fit(variants[0])
        pairs = self.materials.pairs(kind)
        splits = [self.materials.split(kind, variant.shift, seed) for variant, seed in group]
        jobs = [
            HeadJob(config=settings.model(variant), split=split, seed=seed)
            for (variant, seed), split in zip(group, splits, strict=True)
        ]
        name = f"{len(jobs)} heads of {kind}"
        watch = self._watch(name, fit.epochs)
        with self.clock.timed(name):
            runs = fit_heads(jobs, pairs, fit=fit, listeners=[watch])
        for (variant, seed), run, split in zip(group, runs, splits, strict=True):
            record = Record(row_file(settings.out, variant, seed), self._row_key(variant, seed))
            self._keep(record, variant, run, split)

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
            "model": _plain(settings.model(variant).record()),
            "fit": settings.fit(variant).decides(),
        }

    def _train(self, variant: TripletVariant, seed: int, path: Path) -> None:
        settings = self.settings
        kind = self.materials.kind(variant)
        pairs = self.materials.pairs(kind)
        split = self.materials.split(kind, variant.shift, seed)
        record = Record(path, self._row_key(variant, seed))
        model = settings.model(variant)
        if model.encoder.name == "slots":
            model = replace(model, encoder=replace(model.encoder, weights=str(self._slots(pairs))))
        fit = replace(
            settings.fit(variant),
            out=settings.out / "work" / f"{variant.name}.seed-{seed}",
            checkpoint_every=_SAVED_EVERY,
        )
        watch = self._watch(f"{variant.name} seed {seed}", fit.epochs)
        with self.clock.timed(f"{variant.name} seed {seed}"):
            run = fit_pairs(model, pairs, split, fit=fit, seed=seed, listeners=[watch])
        self._keep(record, variant, run, split)

    def _keep(self, record: Record, variant: TripletVariant, run: PairRun, split: Split) -> None:
        """Writes the row of a trained model."""
        settings, pairs, seed = self.settings, run.work.data, run.work.seed
        content = run.record()
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
        self._pictures(variant, run, seed)
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
        sizes = self.settings.sizes()
        folder = self.settings.out / "work" / "slots"
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
        if not (folder / FILE).exists():
            with self.clock.timed(f"slots pretrained, {how.steps} steps"):
                images = _at(pairs, sizes.resolution)
                _, history = train_slots(images, how, listeners=[self._say_progress])
            write_json(folder / "slots.json", {"how": how.record(), "history": history})
        return folder / FILE

    def _say_progress(self, row: Mapping[str, Any]) -> None:
        self.clock.say(f"slots: step {row['step']}, loss {row['loss']:.4f}")
        self.clock.check()

    def _pictures(self, variant: TripletVariant, run: PairRun, seed: int) -> None:
        """Keeps what Figure 8 shows, for the models it shows."""
        if variant.recipe in ("vanilla", "sms") and variant.crop == "single" and seed == 1:
            change, groups = change_samples(run)
            path = self.settings.out / "rows" / f"{variant.name}.change.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, change=change.astype(np.float32), groups=np.array(groups))


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


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(record)))
