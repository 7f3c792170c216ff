"""Settings of all fits: a world, how much work, and the sizes that this means."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from json import dumps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, final

import tyro

from interverse.core.type_checks import validated, whole
from interverse.models.encoders import Size
from interverse.models.world_model import Loss
from interverse.worlds import WORLDS

BudgetName = Literal["smoke", "reduced", "full"]
ScoreBudget = Literal["small", "full"]
MOST_SEEDS, MOST_EPOCHS = 1000, 1_000_000
Count = Annotated[int, whole(MOST_EPOCHS)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Sizes of everything that a score depends on.

    Attributes:
        train, valid: episodes of 100 steps.
        test, zero_shot: episodes of 10 steps; each is one reference of the ranking.
        encoder: of the world models, whose embedding is `embedding` numbers an object.
        epochs: per stage.
        pretrain_epochs: of the first stage of nll, if not as many.
        batch_size: transitions per update, in every training.
        reward_epochs, probe_epochs: of the reward predictor, and of the probe that reads states.
        episodes: planned per horizon.
        trials: interventions by which graph recovery is judged.
    """

    train: int
    valid: int
    test: int = 10_000
    zero_shot: int = 10_000
    encoder: Size = "medium"
    embedding: int = 32
    epochs: int = 100
    pretrain_epochs: int | None = None
    batch_size: int = 512
    reward_epochs: int = 50
    probe_epochs: int = 10
    episodes: int = 1000
    trials: int = 6000

    def record(self) -> dict[str, Any]:
        """Returns the fields as JSON values; what is not set is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


_REDUCED = Budget(train=200, valid=40, zero_shot=2000, encoder="small", epochs=20)
_SMOKE = Budget(
    train=4,
    valid=2,
    test=100,
    zero_shot=100,
    encoder="small",
    epochs=1,
    batch_size=128,
    reward_epochs=1,
    probe_epochs=1,
    episodes=20,
    trials=300,
)
_BUDGETS: Mapping[tuple[str, str], Budget] = MappingProxyType(
    {
        ("full", "contrastive"): Budget(train=1000, valid=200),
        ("full", "nll"): Budget(train=1000, valid=200),
        # The sizes of the reference runs that the original's code was measured at.
        ("reduced", "contrastive"): _REDUCED,
        ("reduced", "nll"): replace(_REDUCED, train=100, epochs=10),
        ("smoke", "contrastive"): _SMOKE,
        ("smoke", "nll"): _SMOKE,
    }
)


def budget(
    name: BudgetName, loss: Loss, *, epochs: int | None = None, pretrain: int | None = None
) -> Budget:
    """Returns the sizes for a loss; `epochs` and `pretrain` change the numbers per stage.

    >>> budget("full", "nll").epochs, budget("reduced", "nll", epochs=3).epochs
    (100, 3)
    """
    found = _BUDGETS[name, loss]
    if loss == "nll" and pretrain is not None:
        found = replace(found, pretrain_epochs=pretrain)
    return found if epochs is None else replace(found, epochs=epochs)


def score_budget(name: BudgetName) -> ScoreBudget:
    """Returns how much is played to score what was fitted at a budget."""
    return "full" if name == "full" else "small"


@dataclass(frozen=True, kw_only=True)
@validated
class FitRequest:
    """A world to fit a model to, and how much work to put into it."""

    id: str
    """A world's id."""
    budget: BudgetName = "smoke"
    """smoke: a minute or two on two cores. reduced: a fifth of the published data, a small encoder.
    full: the published sizes, for a GPU."""
    seeds: Annotated[int, whole(MOST_SEEDS)] = 1
    """Seeds 1 to N."""
    epochs: Count | None = None
    """Epochs per stage, if not the budget's."""
    time_limit: float | None = None
    """Stop cleanly after so many seconds; asked again, it goes on."""
    out: Path | None = None
    """Folder for everything; by default runs/fit/ID.MODEL.LOSS.BUDGET (states:
    runs/fit/ID.network.BUDGET)."""
    options: Annotated[Mapping[str, Any], tyro.conf.Suppress] = field(default_factory=dict)
    """Options of the world, as for `make`."""

    def __post_init__(self) -> None:
        WORLDS[self.id]

    def flags(self) -> dict[str, Any]:
        """Returns what else is asked for, by flag, but for where it writes and its clock."""
        return {"budget": self.budget, "seeds": self.seeds, "epochs": self.epochs}

    def command(self) -> str:
        """Returns the command line that asks for this; flags that are None are left out."""
        words = ["interverse", "fit", self.id]
        for name, value in self.flags().items():
            if value is not None:
                words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        for name, value in self.options.items():
            words += ["--option", f"{name}={value if isinstance(value, str) else dumps(value)}"]
        return shlex.join(words)

    def folder_named(self, *model: str) -> Path:
        """Returns where everything is kept; a model's name is part of the usual folder's."""
        name = ".".join([self.id.replace("/", "-"), *model, self.budget])
        return Path("runs/fit") / name if self.out is None else self.out


@dataclass(frozen=True, kw_only=True)
@validated
class ModelRequest(FitRequest):
    """A model of pictures and its training, as `FitWorld` and the flags of the verb share them.

    What is None is the budget's or the model's usual value.
    """

    model: str | None = None
    """Of pictures: modular by default, or ae, vae, gnn, action_gnn, transformer, slot_transformer,
    learned_graph, lstm, rim, rssm or scoff; MODULE:BUILD for a Torch module of your own."""
    loss: str | None = None
    """Of pictures: contrastive, jepa or nll. By default contrastive in blocks and nll in chemistry,
    where contrastive models plan no better than doing nothing."""
    pretrain_epochs: Count | None = None
    """nll: epochs of its first stage, by far the dearest, if not as many."""
    finetune: bool = True
    """nll: whether encoder, decoder and transition train on together at the end."""
    encoder: Size | None = None
    """Size of the encoder: small, medium or large."""
    embedding: int | None = None
    """Numbers per object."""
    hidden: int | None = None
    """Width of the networks."""
    width: int | None = None
    """modular, learned_graph: multiplies the hidden width of each object's network."""
    sigma: float | None = None
    """Contrastive: the scale of distances. Smaller: states are kept further apart."""
    hinge: float | None = None
    """Contrastive: energy beyond which a negative is far enough."""
    batch_size: Count | None = None
    """Transitions per update."""
    learning_rate: float | None = None
    """Of Adam."""
    device: str = "cpu"
    """cpu or cuda."""

    def chosen(self, *names: str) -> dict[str, Any]:
        """Returns those of the named settings that are not left to their usual values."""
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}
