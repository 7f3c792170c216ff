"""Settings of a reproduction. `interverse reproduce --table 3 --budget full` is made from this."""

from __future__ import annotations

import operator
import shlex
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from interverse.benchmarks.causalmbrl.published import TABLES, printed, table
from interverse.benchmarks.causalmbrl.rows import LOSSES, MODELS, VARIANTS, MbrlRow
from interverse.core.errors import InvalidValueError, check_name, check_whole, explain
from interverse.fit.settings import MOST_EPOCHS, MOST_SEEDS, Budget, BudgetName, budget
from interverse.models.steps import Precision
from interverse.models.world_model import Loss


@dataclass(frozen=True, kw_only=True)
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

    table: tuple[int, ...] = (3,)
    """Tables 3 to 8 and 17: prediction; 9 to 14 and 18: planning; 15 and 16: colours never seen.
    Tables of one world share their models, so name them together."""
    budget: BudgetName = "reduced"
    """full: the paper's (1000 x 100 transitions, 100 epochs a stage, medium encoder), for a GPU.
    reduced: a small encoder and a fifth of the data, comparable with the original's code at that
    size and not with the paper. smoke: a minute in all, to see that everything runs."""
    seeds: int = 3
    """Seeds 1 to N; the paper has 3."""
    models: tuple[str, ...] = ()
    """Some of ae, vae, gnn, modular; all that the tables have by default."""
    losses: tuple[Loss, ...] = ()
    """Some of nll (both its NLL rows) and contrastive; all that the tables have by default."""
    graphs: tuple[str, ...] = ()
    """Tables 17 and 18: some of chain, full, collider; all by default."""
    cpt_seeds: int = 1
    """Tables 17 and 18: draws 0 to N - 1 of each world's mechanisms, each with all seeds. One draw
    is one sample of difficulty."""
    epochs: int | None = None
    """Epochs per stage, if not the budget's."""
    pretrain_epochs: int | None = None
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
        for number in self.table:
            table(number)
        for given, kind, names in (
            (self.models, "model", MODELS),
            (self.losses, "loss", LOSSES),
            (self.graphs, "graph", ("chain", "full", "collider")),
        ):
            for name in given:
                check_name(kind, name, names)
        counts = {"seeds": MOST_SEEDS, "cpt_seeds": MOST_SEEDS, "epochs": MOST_EPOCHS}
        counts["pretrain_epochs"] = MOST_EPOCHS
        for name, most in counts.items():
            if getattr(self, name) is not None:
                check_whole(getattr(self, name), name, most)
        if not self.table:
            raise InvalidValueError(explain("table is empty", allowed="at least one table"))
        if not self.rows():
            raise InvalidValueError(
                explain(
                    f"tables {self.table} have no row of models {self.models}, losses"
                    f" {self.losses}, graphs {self.graphs}",
                    fix="vae has no contrastive loss, and Tables 17 and 18 have nll alone",
                )
            )
        if self.pretrain_epochs is not None and all(row.loss != "nll" for row in self.rows()):
            raise InvalidValueError(
                explain("pretrain_epochs is given, but no row has a first stage", allowed="nll")
            )

    @property
    def training_precision(self) -> Precision:
        """The precision in force."""
        if self.precision is not None:
            return self.precision
        return "float32" if self.device == "cpu" else "bf16"

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
        every = TABLES[number].worlds
        if not self.graphs or number not in (17, 18):
            return every
        return tuple(w for w in every if w.split("/")[1].split("-")[0] in self.graphs)

    def rows(self) -> tuple[MbrlRow, ...]:
        """Returns what must be fitted, world by world, contrastive rows first."""
        found = {
            MbrlRow(world=entry.world, loss=_loss(entry.loss), model=entry.model.lower())
            for number in self.table
            for entry in printed(number)
            if entry.loss != "Baseline" and entry.world in self.worlds(number)
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
        return tuple(name for name in row.variants if self.finetune or name != "NLL Finetuned")

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
        needed = {TABLES[n].kind for n in self.table if world in self.worlds(n)}
        return tuple(sorted(needed))


def _loss(printed_name: str) -> Loss:
    """Returns the loss whose training gives a printed row."""
    return next(loss for loss in LOSSES if printed_name in VARIANTS[loss])
