"""The pairs that models train on: generated, collected before, official, or from `.npz` files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import final

from interverse.benchmarks.causaltriplet.settings import SHIFTS, TripletSettings, TripletVariant
from interverse.core.errors import InvalidValueError
from interverse.data.pairs import Split, SplitConfig, split_pairs
from interverse.data.pairs.load import load_pairs
from interverse.fit.work import Clock
from interverse.models.pairs.tensors import Crop, PairTensors, from_dataset, load
from interverse.models.pairs.toy import toy_pairs
from interverse.models.pairs.yardsticks import changed_crop

_WORLDS = {"single": "rooms/single-v1", "multi": "rooms/multi-v1"}
_TOY = Path("toy")
_EPIC_TRAIN = 1000  # pairs in the published runs


@final
class TripletMaterials:
    """Pairs on the device and their splits, made when first needed."""

    def __init__(self, settings: TripletSettings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.pairs = cache(self._pairs)

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
