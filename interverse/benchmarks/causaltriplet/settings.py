"""Settings of `interverse reproduce --benchmark causaltriplet`: what was printed, what is trained.

A variant is a model to train: a row of a table or a point of a sweep, each named once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, final

from interverse.benchmarks.driver import rows_on_disk
from interverse.core.errors import InvalidValueError, check_name, explain
from interverse.core.type_checks import named, one_of, validated, whole
from interverse.models.pairs.config import (
    INDEPENDENCE,
    MIN_MASK,
    RECIPES,
    SPARSITY,
    EncoderName,
    PairFit,
    PairModelConfig,
    Recipe,
    Source,
    recipe,
)
from interverse.models.pairs.tensors import Crop
from interverse.models.steps import Precision, check_device
from interverse.results.published import Number, published

# ------------------------------------------------------------------------------ what was printed

TITLES = {
    2: "Table 2: regularisers, one object a picture",
    3: "Table 3: object-centric encoders, whole scenes",
    4: "Table 4: pretrained encoders, whole scenes",
}
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
_LOG_RULES = {"max": "best_each", "bestid": "best_id", "last": "last"}
_LOG_METHODS = {  # printed name -> name in the logs, by table
    (3, "slot-match"): "slot-match-max",
    (4, "clip"): "clip frozen",
    (4, "group-avg"): "group-avg frozen",
    (4, "group-dense"): "group-dense frozen",
    (4, "group-token"): "group-token-max frozen",
    (4, "resnet"): "resnet18 frozen",
}


def printed(table: int) -> tuple[Number, ...]:
    """Returns the printed numbers of a table, by shift, method and split.

    >>> [one.value for one in printed(2) if (one["method"], one["split"]) == ("SMS", "OOD")]
    [0.47, 0.54]
    """
    check_name("table", table, TITLES)
    return found_in(f"table{table}")


def found_in(table: str) -> tuple[Number, ...]:
    """Returns numbers of published.csv by its own name of a table, a figure's log or a text."""
    return published(Path(__file__).with_name("published.csv"), table)


def logged(table: int, entry: Number) -> dict[str, tuple[float, float | None]]:
    """Returns what the authors' logs give for a printed number, by our rule; may be empty."""
    method = _LOG_METHODS.get((table, entry["method"]), entry["method"])
    wanted = (entry["shift"], method, entry["split"])
    return {
        ours: (row.value, row.spread)
        for theirs, ours in _LOG_RULES.items()
        for row in found_in(f"table{table}_log_{theirs}")
        if (row["shift"], row["method"], row["split"]) == wanted
    }


# ------------------------------------------------------------------------------- what is trained

# figure -> crop, shift, recipe, the field that is swept, its value without effect
_SWEPT: Mapping[int, tuple[Crop, str, str, str, float]] = {
    6: ("single", "compositional", "icm", "independence", 0.0),
    7: ("single", "compositional", "sms", "sparsity", 0.0),
    10: ("multi", "systematic", "oracle-mask", "min_mask", 1.0),
}
_SEEDED = {  # Figure 13's models
    "group-avg": "group-avg",
    "group-dense": "group-dense",
    "group-token-max": "group-token",
    "group-token-mean": "group-token-mean",
}


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
        told = [f"{key}={value:g}" for key, value in sorted(self.changes.items())]
        cut = ["changed"] if self.pictures == "changed" else []
        return ".".join([self.crop, self.shift, self.recipe, *told, *cut])

    def settings(self, source: Source) -> Recipe:
        """Returns the model and how it trains."""
        found = recipe(self.recipe, source)
        return replace(found, model=replace(found.model, **self.changes))


def table_variants(table: int) -> dict[tuple[str, str], TripletVariant]:
    """Returns what the rows of a table need trained, by shift and printed name."""
    crop: Crop = "single" if table == 2 else "multi"
    return {
        (shift, method): TripletVariant(recipe=name, shift=shift, crop=crop)
        for shift in (SHIFTS if table == 2 else ("systematic",))
        for method, name in TABLES[table].items()
    }


def baseline_variants(table: int) -> dict[tuple[str, str], TripletVariant]:
    """Returns the trained baselines that stand beside a table, by shift and name."""
    found = {}
    for shift, _ in table_variants(table) if table != 4 else ():
        cut = TripletVariant(
            recipe="vanilla",
            shift=shift,
            crop="single" if table == 2 else "multi",
            pictures="changed",
        )
        found[shift, "changed-pixel crop"] = cut
        found[shift, "oracle mask"] = replace(cut, recipe="oracle-mask", pictures="whole")
    return found


def sweep_variant(figure: int, value: float) -> TripletVariant:
    """Returns one point of a sweep; where a table has the same model, the same variant."""
    crop, shift, own, changed, neutral = _SWEPT[figure]
    if value == neutral:
        return TripletVariant(recipe="vanilla", shift=shift, crop=crop)
    usual = getattr(recipe(own).model, changed) == value
    changes = {} if usual else {changed: value}
    return TripletVariant(recipe=own, shift=shift, crop=crop, changes=changes)


def seed_variants() -> dict[str, TripletVariant]:
    """Returns Figure 13's four models."""
    return {
        told: TripletVariant(recipe=name, shift="systematic", crop="multi")
        for told, name in _SEEDED.items()
    }


def wanted(
    tables: Iterable[int], figures: Iterable[int], sweeps: Mapping[int, tuple[float, ...]]
) -> Iterator[TripletVariant]:
    """Yields every variant that tables and figures need; some may come more than once."""
    for table in tables:
        yield from table_variants(table).values()
    for figure in figures:
        swept = 7 if figure == 8 else figure  # Figure 8 shows the models of Figure 7
        if swept in sweeps:
            yield from (sweep_variant(swept, value) for value in sweeps[swept])
        else:
            yield from seed_variants().values()


# --------------------------------------------------------------------------- budgets and settings

BudgetName = Literal["smoke", "reduced", "full"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TripletBudget:
    """Sizes of everything a number depends on.

    Attributes:
        pairs: to generate, where no data are given.
        size: edge of the pictures in pixels.
        train, valid, test: the most pairs of each set.
        epochs: of models that train their encoder, None: the recipe's. frozen_epochs: of others.
        slot_steps: of slot pretraining. resolution: of its pictures.
        seeds: seeds 1 to N.
        tiny: whether encoders are small stand-ins.
        sweeps: by figure, the values tried.
    """

    pairs: int
    size: int
    train: int = 5000
    valid: int = 500
    test: int = 5000
    epochs: int | None = None
    frozen_epochs: int | None = None
    slot_steps: int = 500_000
    resolution: Literal[32, 64, 128] = 128
    seeds: int = 10
    tiny: bool = False
    sweeps: Mapping[int, tuple[float, ...]] = field(
        default_factory=lambda: {6: INDEPENDENCE, 7: SPARSITY, 10: MIN_MASK}
    )

    def record(self) -> dict[str, Any]:
        """Returns what decides a model's numbers, as JSON values."""
        names = ("size", "train", "valid", "test", "slot_steps", "resolution", "tiny")
        found = asdict(self)
        return {name: found[name] for name in names}


BUDGETS: Mapping[str, TripletBudget] = {
    "full": TripletBudget(pairs=20_000, size=224),
    "reduced": TripletBudget(
        pairs=9000,
        size=64,
        test=1500,
        epochs=15,
        frozen_epochs=50,
        slot_steps=3000,
        resolution=64,
        seeds=3,
        sweeps={6: INDEPENDENCE, 7: (0.0, 0.01, 0.1, 1.0, 10.0), 10: (1.0, 0.1, 0.01, 0.001)},
    ),
    "smoke": TripletBudget(
        pairs=400,
        size=64,
        train=160,
        valid=30,
        test=60,
        epochs=2,
        frozen_epochs=2,
        slot_steps=6,
        resolution=32,
        seeds=1,
        tiny=True,
        sweeps={6: (0.0, 0.1), 7: (0.0, 1.0), 10: (1.0, 0.01)},
    ),
}
_ENCODERS = ("clip", "groupvit", "resnet18", "resnet50", "slots")
_Count = Annotated[int, whole(1_000_000)]


@dataclass(frozen=True, kw_only=True)
@validated
class TripletSettings:
    """Trains the recognition models of Causal Triplet's tables and compares with the paper.

    Writes summary.md, index.html, figures and table-N.json (our numbers under four rules of epoch
    selection, the published ones, the differences) to OUT. Each model and seed has its own file
    under OUT/rows, so a run that was stopped goes on where it was when started again.

    To see everything run:

      interverse reproduce --benchmark causaltriplet --table 2 --budget smoke

    Table 2 on pairs collected before, on a GPU, in pieces of ten minutes:

      interverse reproduce --benchmark causaltriplet --table 2 --data single.npz
        --device cuda --time-limit 540
    """

    table: tuple[Annotated[int, one_of(TITLES)], ...] = (2,)
    """2: regularisers on crops. 3: object-centric encoders on scenes. 4: pretrained encoders."""
    figures: tuple[Annotated[int, named("figure", one_of(FIGURES))], ...] = ()
    """Sweeps and pictures to make too: 6, 7, 8, 10, 13. They train more models."""
    budget: BudgetName = "reduced"
    """full: the published sizes, for a GPU. reduced: 64 px, 15 epochs, 3 seeds. smoke: tiny."""
    source: Source = "code"
    """Hyper-parameters as in the authors' code, or as in the paper."""
    seeds: _Count | None = None
    """Seeds 1 to N, if not the budget's."""
    models: tuple[Annotated[str, named("model", one_of(RECIPES))], ...] = ()
    """Some of the recipes (vanilla, icm, sms, ...); all that is needed by default."""
    shifts: tuple[Annotated[str, named("shift", one_of(SHIFTS))], ...] = ()
    """Table 2: compositional, systematic; both by default."""
    data: tuple[Path, ...] = ()
    """Where the pairs are: .npz files (one per crop), folders of `interverse collect`, or the
    official release; or the word toy, for coloured shapes. Without any, rooms are generated into
    OUT/work."""
    epic: tuple[Path, ...] = ()
    """Table 4 on EPIC-KITCHENS-100: the folder of annotations, then the folder of frames."""
    weights: tuple[str, ...] = ()
    """Pretrained encoders as ENCODER=FOLDER, such as resnet18=weights/resnet-18; random without."""
    split: Literal["mended", "reference"] = "mended"
    """Splits with the reference's defects mended, or exactly as its code draws them."""
    encoder: Literal["resnet18", "lite0", "lite0-tuned", "rooms"] = "resnet18"
    """Of the recipes that the paper gives a ResNet-18: that, trained; EfficientNet-Lite0 with its
    ImageNet weights, frozen or (lite0-tuned) trained on; or the small frozen encoder that taught
    itself on generated rooms. Features of frozen ones are computed once."""
    baselines: bool = True
    """Also answers without looking, pictures cut to what changed, and the oracle mask."""
    test_houses: float = 0.0
    """Share of the houses whose pairs are for testing alone; at 0 houses are shared."""
    size: _Count | None = None
    """Edge of the pictures in pixels, if not the budget's; .npz files have their own."""
    epochs: _Count | None = None
    """Epochs of every model, if not the budget's."""
    analysis: bool = True
    """Also measure what each representation of a table holds (a few seconds a model)."""
    device: str = "cpu"
    """cpu or cuda."""
    precision: Precision | None = None
    """float32, tf32 or bf16; by default bf16 on a GPU (encoders alone)."""
    time_limit: float | None = None
    """Stop cleanly after so many seconds; the same command then goes on."""
    out: Path = Path("runs/causaltriplet")
    """Folder for results."""

    def __post_init__(self) -> None:
        if len(self.epic) not in (0, 2):
            raise InvalidValueError(
                f"epic names {len(self.epic)} folders", allowed="two: annotations, then frames"
            )
        check_device(self.device)
        if not self.variants():
            raise InvalidValueError(
                explain(f"models {self.models} are in no table or figure asked for")
            )
        if self.encoder_weights() and self.sizes().tiny:
            raise InvalidValueError(
                "weights do not fit the tiny encoders of budget 'smoke'", fix="Drop them"
            )

    def sizes(self) -> TripletBudget:
        """Returns the budget in force."""
        given = {"size": self.size, "seeds": self.seeds}
        given |= {"epochs": self.epochs, "frozen_epochs": self.epochs}
        told: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return replace(BUDGETS[self.budget], **told)

    @property
    def every_seed(self) -> range:
        """The seeds of every model."""
        return range(1, self.sizes().seeds + 1)

    def records(self, variant: TripletVariant) -> list[dict[str, Any]]:
        """Returns the records on disk of a variant, by seed."""
        return rows_on_disk(self.out, variant.name, self.every_seed)

    @property
    def precision_used(self) -> Precision:
        """The precision in force."""
        return self.precision or ("float32" if self.device == "cpu" else "bf16")

    def encoder_weights(self) -> dict[str, str]:
        """Returns the given weights by encoder."""
        found = {}
        for text in self.weights:
            name, mark, where = text.partition("=")
            if name not in _ENCODERS or not mark or not where:
                raise InvalidValueError(
                    f"weights {text!r}",
                    allowed=f"ENCODER=FOLDER, ENCODER one of {', '.join(_ENCODERS)}",
                )
            found[name] = where
        return found

    def variants(self) -> tuple[TripletVariant, ...]:
        """Returns what must be trained, each once."""
        asked = [*wanted(self.table, self.figures, self.sizes().sweeps)]
        if self.baselines:
            asked += [v for table in self.table for v in baseline_variants(table).values()]
        return tuple(
            variant
            for variant in {variant.name: variant for variant in asked}.values()
            if variant.recipe in (self.models or RECIPES)
            and variant.shift in (self.shifts or SHIFTS)
        )

    def answers(self) -> tuple[tuple[str, str], ...]:
        """Returns the crop and shift of every baseline that answers without looking."""
        tables = self.table if self.baselines else ()
        beside = (v for table in tables for v in baseline_variants(table).values())
        places = ((v.crop, v.shift) for v in beside if v.shift in (self.shifts or SHIFTS))
        return tuple(dict.fromkeys(places))

    def model(self, variant: TripletVariant) -> PairModelConfig:
        """Returns a variant's model at this budget; slots still lack their weights."""
        sizes, model = self.sizes(), self._recipe(variant).model
        weights = {} if sizes.tiny else self.encoder_weights()
        encoder = replace(
            model.encoder,
            weights=weights.get(model.encoder.name),
            scale="tiny" if sizes.tiny else "full",
            resolution=sizes.resolution,
        )
        if sizes.tiny and encoder.name == "slots":
            encoder = replace(encoder, slots=4, iterations=2)
        return replace(model, encoder=encoder)

    def fit(self, variant: TripletVariant) -> PairFit:
        """Returns how a variant trains at this budget."""
        sizes, found = self.sizes(), self._recipe(variant)
        epochs = sizes.frozen_epochs if found.model.frozen else sizes.epochs
        return replace(
            found.fit,
            epochs=found.fit.epochs if epochs is None else epochs,
            device=self.device,
            precision=self.precision_used,
            features=self.out / "work" / "features",
            keep_weights=False,
        )

    def _recipe(self, variant: TripletVariant) -> Recipe:
        """Returns a variant's recipe with the encoder that was asked for."""
        found = variant.settings(self.source)
        if self.encoder == "resnet18" or found.model.encoder.name != "resnet18":
            return found
        name: EncoderName = "rooms" if self.encoder == "rooms" else "lite0"
        encoder, frozen = replace(found.model.encoder, name=name), self.encoder != "lite0-tuned"
        model = replace(found.model, encoder=encoder, frozen=frozen)
        return Recipe(model=model, fit=recipe("lite0", self.source).fit if frozen else found.fit)


def scores(found: Sequence[Mapping[str, Any]], rule: str, name: str) -> dict[str, float]:
    """Returns the accuracy of records by seed under a rule; name is test_id or test_ood."""
    return {str(record["seed"]): record["selection"][rule][name] for record in found}
