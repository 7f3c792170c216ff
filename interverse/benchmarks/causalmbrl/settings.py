"""Settings of a reproduction: what was printed, what is fitted, and how much work.

`interverse reproduce --table 3 --budget full` is made from this. A row of the tables is a model,
its loss and its world; its results lie in a file per seed.
"""

from __future__ import annotations

import math
import operator
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, final

from interverse.core.errors import InvalidValueError, check_name
from interverse.core.type_checks import named, one_of, validated, whole
from interverse.fit.settings import MOST_EPOCHS, MOST_SEEDS, Budget, BudgetName, budget
from interverse.models.steps import Precision
from interverse.models.world_model import Loss
from interverse.results.published import Number, published

# ------------------------------------------------------------------------------ what was printed

Kind = Literal["ranking", "planning", "zero_shot"]
_CHEMISTRY = ("chemistry/chain-v1", "chemistry/full-v1", "chemistry/collider-v1")
_BLOCKS = tuple(
    f"blocks/{mode}-{objects}-v1"
    for mode in ("observed", "unobserved", "fixed_unobserved")
    for objects in (3, 5)
)
TABLES: Mapping[int, tuple[Kind, tuple[str, ...]]] = {
    **{3 + i: ("ranking", (world,)) for i, world in enumerate(_BLOCKS)},
    **{9 + i: ("planning", (world,)) for i, world in enumerate(_BLOCKS)},
    15: ("zero_shot", ("blocks/observed-3-v1",)),
    16: ("zero_shot", ("blocks/observed-5-v1",)),
    17: ("ranking", _CHEMISTRY),
    18: ("planning", _CHEMISTRY),
}
"""What each table is about: the kind of score, in which worlds."""
FIGURES: Mapping[int, tuple[str, ...]] = {
    21: ("blocks/observed-3-v1",),
    22: ("blocks/observed-5-v1",),
    27: _CHEMISTRY,
}
"""The scatter figures, and the worlds they show."""


def printed(table: int) -> tuple[Number, ...]:
    """Returns the numbers of a table, by world, loss, model, steps and metric.

    >>> [entry.value for entry in printed(3) if entry["metric"] == "H@1"][:3]
    [97.23, 72.78, 40.46]
    """
    check_name("table", table, TABLES)
    return published(Path(__file__).with_name("published.csv"), str(table))


def spread_is(table: int) -> Literal["deviation", "variance"]:
    """Returns what a printed +- is taken for.

    One +- of Table 17 exceeds the largest deviation its mean allows. In Table 18 a success of 0.123
    is printed +- 0.000, but 1000 episodes alone scatter it by 0.010. So both tables are taken to
    print variances; the paper does not say so.
    """
    return "variance" if table in (17, 18) else "deviation"


def deviation(table: int, entry: Number) -> float | None:
    """Returns the standard deviation over seeds that a printed +- stands for; None: none does."""
    if entry.spread is None or spread_is(table) == "deviation":
        return entry.spread
    return math.sqrt(entry.spread)


# -------------------------------------------------------------------------------- what is fitted

MODELS = ("ae", "gnn", "modular", "vae")
LOSSES: tuple[Loss, ...] = ("contrastive", "nll")
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "contrastive": {"Contrastive": "contrastive"},
    "nll": {"NLL": "transition", "NLL Finetuned": "finetune"},
}
"""By loss: the printed name of each result, and the training stage whose weights it has."""


def world_name(world: str, cpt_seed: int = 0) -> str:
    """Returns a world's name in files and logs; chemistry's has the draw of its mechanisms.

    >>> world_name("chemistry/chain-v1", 2), world_name("blocks/observed-3-v1")
    ('chemistry-chain-v1.draw-2', 'blocks-observed-3-v1')
    """
    draw = f".draw-{cpt_seed}" if world.startswith("chemistry/") else ""
    return world.replace("/", "-") + draw


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbrlRow:
    """A model, its loss, its world, and in chemistry the draw of the world's mechanisms."""

    world: str
    model: str
    loss: Loss
    cpt_seed: int = 0

    @property
    def name(self) -> str:
        """For files and logs."""
        return f"{world_name(self.world, self.cpt_seed)}.{self.model}.{self.loss}"

    @property
    def options(self) -> dict[str, int]:
        """Options of its world."""
        return {"cpt_seed": self.cpt_seed} if self.world.startswith("chemistry/") else {}


_Epochs = Annotated[int, whole(MOST_EPOCHS)]
_Seeds = Annotated[int, whole(MOST_SEEDS)]
_Graph = Annotated[str, named("graph", one_of(("chain", "full", "collider")))]


@dataclass(frozen=True, kw_only=True)
@validated
class Settings:
    """Fits the models of published tables, scores them, and compares.

    Writes summary.md, index.html, figures and table-NN.json (our numbers, the published ones, the
    differences) to OUT. Each model and seed has its own file under OUT/rows, so a run that was
    stopped goes on where it was when started again, and more seeds, models or tables can be added.

    To see everything run (a minute or two):

      interverse reproduce --table 3 --budget smoke --seeds 1

    One row at the reduced budget (some minutes on a CPU):

      interverse reproduce --table 3 --models modular --losses contrastive --seeds 1

    Prediction and planning at the paper's budget, in pieces of ten minutes on a GPU:

      interverse reproduce --table 3 9 --budget full --device cuda --time-limit 540
    """

    table: tuple[Annotated[int, one_of(TABLES)], ...] = (3,)
    """Tables 3 to 8 and 17: prediction; 9 to 14 and 18: planning; 15 and 16: colours never seen.
    Tables of one world share their models, so name them together."""
    budget: BudgetName = "reduced"
    """full: the paper's (1000 x 100 transitions, 100 epochs a stage, medium encoder), for a GPU.
    reduced: a small encoder and a fifth of the data, comparable with the original's code at that
    size and not with the paper. smoke: a minute in all, to see that everything runs."""
    seeds: _Seeds = 3
    """Seeds 1 to N; the paper has 3."""
    models: tuple[Annotated[str, named("model", one_of(MODELS))], ...] = ()
    """Some of ae, vae, gnn, modular; all that the tables have by default."""
    losses: tuple[Annotated[Loss, named("loss", one_of(LOSSES))], ...] = ()
    """Some of nll (both its NLL rows) and contrastive; all that the tables have by default."""
    graphs: tuple[_Graph, ...] = ()
    """Tables 17 and 18: some of chain, full, collider; all by default."""
    cpt_seeds: _Seeds = 1
    """Tables 17 and 18: draws 0 to N - 1 of each world's mechanisms, each with all seeds. One draw
    is one sample of difficulty."""
    epochs: _Epochs | None = None
    """Epochs per stage, if not the budget's."""
    pretrain_epochs: _Epochs | None = None
    """Epochs of the first stage of nll, by far the dearest, if not as many."""
    finetune: bool = True
    """Also train and score the NLL Finetuned models, two thirds of the work of the nll rows;
    Tables 17 and 18 do not print them."""
    device: str = "cpu"
    """cpu or cuda."""
    precision: Precision | None = None
    """Of training: float32, tf32 or bf16; by default bf16 on a GPU (convolutions alone)."""
    compile: bool = False
    """Fuse kernels with torch.compile: a minute per stage first, so for long runs on a GPU."""
    discovery: bool = False
    """Tables 17 and 18: also run PC and GES on true states (needs interverse[discovery])."""
    findings: bool = False
    """Train nothing: judge the paper's findings by its printed numbers, and by the runs under OUT
    (`--out results/causalmbrl` for those that the project keeps)."""
    time_limit: float | None = None
    """Stop cleanly after so many seconds (a few epochs more, to lose none); the same command then
    goes on."""
    out: Path = Path("runs/reproduce")
    """Folder for results; data sets and weights are kept under OUT/work."""

    def __post_init__(self) -> None:
        if not self.table:
            raise InvalidValueError("table is empty", allowed="at least one table")
        if not self.rows():
            raise InvalidValueError(
                f"tables {self.table} have no row of models {self.models}, losses"
                f" {self.losses}, graphs {self.graphs}",
                fix="vae has no contrastive loss, and Tables 17 and 18 have nll alone",
            )
        if self.pretrain_epochs is not None and all(row.loss != "nll" for row in self.rows()):
            raise InvalidValueError(
                "pretrain_epochs is given, but no row has a first stage", allowed="nll"
            )

    @property
    def training_precision(self) -> Precision:
        """The precision in force."""
        return self.precision or ("float32" if self.device == "cpu" else "bf16")

    def budget_of(self, row: MbrlRow) -> Budget:
        """Returns the sizes in force for a row."""
        return budget(self.budget, row.loss, epochs=self.epochs, pretrain=self.pretrain_epochs)

    def asked(self, row: MbrlRow) -> dict[str, Any]:
        """Returns what decides the numbers of a row."""
        return {
            "world": row.world,
            "model": row.model,
            "loss": row.loss,
            "budget": self.budget,
            "sizes": self.budget_of(row).record(),
            "precision": self.training_precision,
            **row.options,
        }

    def worlds(self, number: int) -> tuple[str, ...]:
        """Returns the worlds of a table that were asked for."""
        _, every = TABLES[number]
        if not self.graphs or number not in (17, 18):
            return every
        return tuple(w for w in every if w.split("/")[1].split("-")[0] in self.graphs)

    def rows(self) -> tuple[MbrlRow, ...]:
        """Returns what must be fitted, world by world, contrastive rows first."""
        found = {
            MbrlRow(world=entry["world"], loss=loss, model=entry["model"].lower())
            for number in self.table
            for entry in printed(number)
            for loss in LOSSES
            if entry["loss"] in VARIANTS[loss] and entry["world"] in self.worlds(number)
        }
        kept = [
            replace(row, cpt_seed=draw)
            for row in found
            if row.model in (self.models or MODELS) and row.loss in (self.losses or LOSSES)
            for draw in self.draws(row.world)
        ]
        key = operator.attrgetter("world", "cpt_seed", "loss", "model")
        return tuple(sorted(kept, key=key))

    def variants(self, row: MbrlRow) -> tuple[str, ...]:
        """Returns the printed names of a row's results that were asked for."""
        every = VARIANTS[row.loss]
        return tuple(name for name in every if self.finetune or name != "NLL Finetuned")

    def draws(self, world: str) -> range:
        """Returns the draws of a world's mechanisms; worlds without any have one."""
        return range(self.cpt_seeds if world.startswith("chemistry/") else 1)

    def command(self) -> str:
        """Returns the command line that asks for this, but for where it writes and its clock."""
        words = ["interverse", "reproduce", "--table", *map(str, self.table)]
        for field in fields(Settings):
            value = getattr(self, field.name)
            if value == field.default or field.name in ("table", "time_limit", "out"):
                continue
            flag = "--" + field.name.replace("_", "-")
            listed = value if isinstance(value, tuple) else (value,)
            if isinstance(value, bool):
                words.append(flag if value else f"--no-{field.name}")
            else:
                words += [flag, *map(str, listed)]
        return shlex.join(words)

    def kinds(self, world: str) -> tuple[str, ...]:
        """Returns the kinds of score that the tables need in a world."""
        return tuple(sorted({TABLES[n][0] for n in self.table if world in self.worlds(n)}))
