"""Settings of `interverse reproduce --benchmark causaltriplet`, and its budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, final

from interverse.benchmarks.causaltriplet.published import TITLES
from interverse.benchmarks.causaltriplet.variants import (
    FIGURES,
    SHIFTS,
    TripletVariant,
    baseline_variants,
    wanted,
    with_encoder,
)
from interverse.core.errors import InvalidValueError, check_name, check_whole, explain
from interverse.models.pairs.config import EncoderName, PairFit, PairModelConfig
from interverse.models.pairs.recipes import (
    INDEPENDENCE,
    MIN_MASK,
    RECIPES,
    SPARSITY,
    Recipe,
    Source,
    recipe,
)
from interverse.models.steps import Precision, check_device

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


BUDGETS: Mapping[str, TripletBudget] = MappingProxyType(
    {
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
)


_ENCODERS = ("clip", "groupvit", "resnet18", "resnet50", "slots")


@dataclass(frozen=True, kw_only=True)
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

    table: tuple[int, ...] = (2,)
    """2: regularisers on crops. 3: object-centric encoders on scenes. 4: pretrained encoders."""
    figures: tuple[int, ...] = ()
    """Sweeps and pictures to make too: 6, 7, 8, 10, 13. They train more models."""
    budget: BudgetName = "reduced"
    """full: the published sizes, for a GPU. reduced: 64 px, 15 epochs, 3 seeds. smoke: tiny."""
    source: Source = "code"
    """Hyper-parameters as in the authors' code, or as in the paper."""
    seeds: int | None = None
    """Seeds 1 to N, if not the budget's."""
    models: tuple[str, ...] = ()
    """Some of the recipes (vanilla, icm, sms, ...); all that is needed by default."""
    shifts: tuple[str, ...] = ()
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
    size: int | None = None
    """Edge of the pictures in pixels, if not the budget's; .npz files have their own."""
    epochs: int | None = None
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
        for given, kind, names in (
            (self.table, "table", TITLES),
            (self.figures, "figure", FIGURES),
            (self.models, "model", RECIPES),
            (self.shifts, "shift", SHIFTS),
        ):
            for name in given:
                check_name(kind, name, names)
        if len(self.epic) not in (0, 2):
            raise InvalidValueError(
                explain(
                    f"epic names {len(self.epic)} folders",
                    allowed="two: annotations, then frames",
                )
            )
        check_device(self.device)
        for name in ("seeds", "size", "epochs"):
            value = getattr(self, name)
            if value is not None:
                check_whole(value, name, 1_000_000)
        if not self.variants():
            raise InvalidValueError(
                explain(f"models {self.models} are in no table or figure asked for")
            )
        if self.encoder_weights() and self.sizes().tiny:
            raise InvalidValueError(
                explain("weights do not fit the tiny encoders of budget 'smoke'", fix="Drop them")
            )

    def sizes(self) -> TripletBudget:
        """Returns the budget in force."""
        found = BUDGETS[self.budget]
        if self.size is not None:
            found = replace(found, size=self.size)
        if self.seeds is not None:
            found = replace(found, seeds=self.seeds)
        if self.epochs is not None:
            found = replace(found, epochs=self.epochs, frozen_epochs=self.epochs)
        return found

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
                    explain(
                        f"weights {text!r}",
                        allowed=f"ENCODER=FOLDER, ENCODER one of {', '.join(_ENCODERS)}",
                    )
                )
            found[name] = where
        return found

    def variants(self) -> tuple[TripletVariant, ...]:
        """Returns what must be trained, each once."""
        asked = [*wanted(self.table, self.figures, self.sizes().sweeps)]
        if self.baselines:
            asked += [v for table in self.table for v in baseline_variants(table).values()]
        found = {v.name: v for v in asked}
        return tuple(
            variant
            for variant in found.values()
            if variant.recipe in (self.models or RECIPES)
            and variant.shift in (self.shifts or SHIFTS)
        )

    def answers(self) -> tuple[tuple[str, str], ...]:
        """Returns the crop and shift of every baseline that answers without looking."""
        tables = [table for table in self.table if self.baselines and table != 4]
        wanted_shifts = self.shifts or tuple(SHIFTS)
        return tuple(
            dict.fromkeys(
                (variant.crop, variant.shift)
                for table in tables
                for variant in baseline_variants(table).values()
                if variant.shift in wanted_shifts
            )
        )

    def model(self, variant: TripletVariant) -> PairModelConfig:
        """Returns a variant's model at this budget; slots still lack their weights."""
        sizes = self.sizes()
        weights = {} if sizes.tiny else self.encoder_weights()
        model = self._recipe(variant).model
        return with_encoder(model, weights=weights, tiny=sizes.tiny, resolution=sizes.resolution)

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
