"""Variants to train: the rows of the tables and the points of the sweeps, each named once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, final

from interverse.models.pairs.config import PairModelConfig
from interverse.models.pairs.recipes import Recipe, Source, recipe
from interverse.models.pairs.tensors import Crop

SHIFTS = {"compositional": "comp", "systematic": "noun"}
"""The paper's names of the shifts, and those of the splits."""
TABLES: Mapping[int, Mapping[str, str]] = {
    2: {"vanilla": "vanilla", "ICM": "icm", "SMS": "sms"},
    3: {
        "resnet": "vanilla",
        "oracle-mask": "oracle-mask",
        "slot-avg": "slot-avg",
        "slot-dense": "slot-dense",
        "slot-match": "slot-match",
    },
    4: {
        "resnet": "resnet-frozen",
        "clip": "clip",
        "group-avg": "group-avg",
        "group-dense": "group-dense",
        "group-token": "group-token",
    },
}
"""By table: the printed name of each row, and our recipe."""
FIGURES = {
    6: "weight of the independence regulariser",
    7: "weight of the sparsity regulariser",
    8: "change of features by group of actions",
    10: "least mask value",
    13: "group matching by seed",
}
_FIELDS = {6: ("vanilla", "independence"), 7: ("vanilla", "sparsity"), 10: ("vanilla", "min_mask")}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TripletVariant:
    """A model under a shift: a recipe, some fields of it changed, a shift, a crop.

    `pictures` may be cut to the pixels that changed.
    """

    recipe: str
    shift: str
    crop: Crop
    changes: Mapping[str, Any] = field(default_factory=dict)
    pictures: Literal["whole", "changed"] = "whole"

    @property
    def name(self) -> str:
        """For files and logs; equal for equal work."""
        told = [f"{key}={value:g}" for key, value in sorted(self.changes.items()) if key in _SHOWN]
        cut = ["changed"] if self.pictures == "changed" else []
        return ".".join([self.crop, self.shift, self.recipe, *told, *cut])

    def settings(self, source: Source) -> Recipe:
        """Returns the model and how it trains."""
        found = recipe(self.recipe, source)
        return replace(found, model=replace(found.model, **self.changes))


_SHOWN = ("independence", "min_mask", "sparsity")


def table_variant(table: int, method: str, shift: str) -> TripletVariant:
    """Returns what a printed row needs trained."""
    return TripletVariant(
        recipe=TABLES[table][method], shift=shift, crop="single" if table == 2 else "multi"
    )


def baseline_variants(table: int) -> dict[tuple[str, str], TripletVariant]:
    """Returns the trained baselines that stand beside a table, by shift and name."""
    if table == 4:
        return {}
    found = {}
    crop: Crop = "single" if table == 2 else "multi"
    for shift in SHIFTS if table == 2 else ("systematic",):
        cut = TripletVariant(recipe="vanilla", shift=shift, crop=crop, pictures="changed")
        found[shift, "changed-pixel crop"] = cut
        found[shift, "oracle mask"] = TripletVariant(recipe="oracle-mask", shift=shift, crop=crop)
    return found


def answers_file(out: Path, crop: str, shift: str, seed: int) -> Path:
    """Returns where the answers without looking lie, of a shift and seed."""
    return out / "rows" / f"{crop}.{shift}.answers.seed-{seed}.json"


def sweep_variant(figure: int, value: float) -> TripletVariant:
    """Returns one point of a sweep; where a table has the same model, the same variant."""
    crop: Crop = "multi" if figure == 10 else "single"
    shift = "systematic" if figure == 10 else "compositional"
    name, changed = _FIELDS[figure]
    neutral = 1.0 if changed == "min_mask" else 0.0
    if value == neutral:
        return TripletVariant(recipe=name, shift=shift, crop=crop)
    own = {6: "icm", 7: "sms", 10: "oracle-mask"}[figure]
    if getattr(recipe(own).model, changed) == value:
        return TripletVariant(recipe=own, shift=shift, crop=crop)
    return TripletVariant(recipe=own, shift=shift, crop=crop, changes={changed: value})


def seed_variants() -> dict[str, TripletVariant]:
    """Returns Figure 13's four models."""
    names = {
        "group-avg": "group-avg",
        "group-dense": "group-dense",
        "group-token-max": "group-token",
        "group-token-mean": "group-token-mean",
    }
    return {
        told: TripletVariant(recipe=name, shift="systematic", crop="multi")
        for told, name in names.items()
    }


def wanted(
    tables: Iterable[int], figures: Iterable[int], sweeps: Mapping[int, tuple[float, ...]]
) -> Iterator[TripletVariant]:
    """Yields every variant that tables and figures need; some may come more than once."""
    for table in tables:
        for shift in SHIFTS if table == 2 else ("systematic",):
            for method in TABLES[table]:
                yield table_variant(table, method, shift)
    for figure in figures:
        if figure in sweeps:
            yield from (sweep_variant(figure, value) for value in sweeps[figure])
        elif figure == 8:
            yield from (sweep_variant(7, value) for value in sweeps[7])
        else:
            yield from seed_variants().values()


def with_encoder(
    model: PairModelConfig,
    *,
    weights: Mapping[str, str],
    tiny: bool,
    resolution: Literal[32, 64, 128],
) -> PairModelConfig:
    """Returns the model with weights from a folder by encoder, or a tiny random encoder."""
    encoder = replace(
        model.encoder,
        weights=weights.get(model.encoder.name),
        scale="tiny" if tiny else "full",
        resolution=resolution,
    )
    if tiny and encoder.name == "slots":
        encoder = replace(encoder, slots=4, iterations=2)
    return replace(model, encoder=encoder)


def row_file(out: Path, variant: TripletVariant, seed: int) -> Path:
    """Returns where the results of a variant and seed lie."""
    return out / "rows" / f"{variant.name}.seed-{seed}.json"
