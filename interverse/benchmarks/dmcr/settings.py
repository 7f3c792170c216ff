"""Settings of the reproduction; `interverse reproduce --benchmark dmcr` is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from interverse.agents.pixel.config import MOST_TOGETHER, PixelTrain
from interverse.agents.pixel.presets import schedule
from interverse.benchmarks.dmcr.budgets import BUDGETS, BudgetName, DmcrBudget
from interverse.benchmarks.dmcr.published import AGENTS, TASKS, TITLES
from interverse.benchmarks.dmcr.variants import FIGURES, DmcrVariant, wanted
from interverse.core.errors import check_name, check_whole
from interverse.models.steps import Precision
from interverse.protocols.protocol import Protocol
from interverse.protocols.remastered import REMASTERED


@dataclass(frozen=True, kw_only=True)
class RemasteredSettings:
    """Trains the pixel agents of DMC Remastered, tests them in new looks, compares with the paper.

    Writes summary.md, index.html, figures and table-N.json (our returns and E_G with intervals, the
    published ones, the differences) to OUT. Each agent and seed has its own file under OUT/rows, so
    a run that was stopped goes on where it was when started again, in the middle of training too.

    To see everything run:

      interverse reproduce --benchmark dmcr --table 1 --budget smoke

    Contact sheets of looks, without training:

      interverse reproduce --benchmark dmcr --figures 1 8 9 10 11 12 13

    With the original's photographs, where you have them:

      interverse reproduce --benchmark dmcr --textures dmc_remastered/assets

    One row as published, on a GPU, in pieces of ten minutes:

      interverse reproduce --benchmark dmcr --table 2 --budget full --tasks "Cartpole Balance"
        --methods SAC+AUG --device cuda --actors 8 --time-limit 540
    """

    table: tuple[int, ...] = ()
    """1: E_G in looks never seen. 2: one factor at a time. 3: training lengths (trains nothing).
    Without, 1, or none where figures are asked for."""
    figures: tuple[int, ...] = ()
    """1, 9-13: states in many looks. 2: training in other looks. 3: encoder variance. 4: attention.
    5, 6, 7: beta, lambda and augmentations. 8: what augmentations do. 2 to 7 train agents; the
    caption of 6 has eight trials, which is --runs 8."""
    budget: BudgetName = "reduced"
    """full: the published sizes, for a GPU. reduced: 64 px, 4000 decisions, 2 runs. smoke: tiny."""
    tasks: tuple[str, ...] = ()
    """Some of the paper's six, such as "Cartpole Balance"; the budget's by default."""
    methods: tuple[str, ...] = ()
    """Some of CURL, SAC+AE, SAC+AUG, SAC+CJ+AUG, SAC+NR+AUG; the budget's by default. Agents that
    the paper's tables have not: DrQ, DrQ-v2, RAD, SAC, SGQN, SODA, SVEA, TD-MPC2."""
    runs: int | None = None
    """Training runs per number, if not the budget's."""
    steps: int | None = None
    """Decisions of every training run, if not the budget's."""
    device: str = "cpu"
    """Where agents train: cpu or cuda."""
    precision: Precision = "float32"
    """float32, tf32 or bf16; the last two are for a GPU."""
    actors: int = 1
    """Environments that act together in training, in processes of their own if more than one."""
    together: int = 1
    """How many training runs, of any agents and seeds, this process trains side by side."""
    workers: int = 1
    """How many units of a test run at a time."""
    cluster: str | None = None
    """A Ray cluster to run tests on: local, auto or HOST:PORT; without, processes."""
    time_limit: float | None = None
    """Stop cleanly after so many seconds; the same command then goes on."""
    textures: Path | None = None
    """A folder of floors and skies, such as the original's assets; without, generated pictures."""
    out: Path = Path("runs/dmcr")
    """Folder for results."""

    def __post_init__(self) -> None:
        if not self.table and not self.figures:
            object.__setattr__(self, "table", (1,))
        for given, kind, names in (
            (self.table, "table", TITLES),
            (self.figures, "figure", FIGURES),
            (self.tasks, "task", TASKS),
            (self.methods, "method", AGENTS),
        ):
            for name in given:
                check_name(kind, name, names)
        for name in ("runs", "steps", "actors", "workers"):
            value = getattr(self, name)
            if value is not None:
                check_whole(value, name, 10**9)
        check_whole(self.together, "together", MOST_TOGETHER)

    def sizes(self) -> DmcrBudget:
        """Returns the budget in force."""
        given: dict[str, Any] = {
            "tasks": self.tasks or None,
            "methods": self.methods or None,
            "by_name": True if self.methods else None,
            "runs": self.runs,
            "steps": self.steps,
        }
        return replace(
            BUDGETS[self.budget], **{name: v for name, v in given.items() if v is not None}
        )

    @property
    def world_options(self) -> dict[str, Any]:
        """Options of every world: whose pictures it shows."""
        return {} if self.textures is None else {"textures": str(self.textures)}

    def variants(self) -> list[DmcrVariant]:
        """Returns what must be trained, each once."""
        return wanted(self.table, self.figures, self.sizes())

    def training(self, variant: DmcrVariant, seed: int) -> PixelTrain:
        """Returns how a variant trains at this budget."""
        sizes, algorithm = self.sizes(), AGENTS[variant.method]
        hyper: dict[str, Any] = {**sizes.hyper, **dict(variant.hyper)}
        if algorithm == "tdmpc2":  # its pictures, filters and features fit each other
            for name in ("image_size", "filters", "features"):
                hyper.pop(name, None)
        task = TASKS[variant.task]
        steps = schedule(task, sizes.preset).steps if sizes.steps is None else sizes.steps
        return PixelTrain(
            task=task,
            out=self.folder(variant, seed),
            algorithm=algorithm,
            preset=sizes.preset,
            steps=steps,
            evaluate_every=max(1, min(5_000, steps // 5)),
            seed=seed,
            actors=self.actors,
            device=self.device,
            precision=self.precision,
            options={**sizes.world, **self.world_options, "visual_seed": variant.visual_seed},
            hyper=hyper,
        )

    def folder(self, variant: DmcrVariant, seed: int) -> Path:
        """Returns where a variant and seed is trained and tested."""
        return self.out / "work" / f"{variant.name}.seed-{seed}"

    def protocols(self) -> Mapping[str, tuple[Protocol, int]]:
        """Returns the protocols of a test at this budget by name, with the episodes of each."""
        sizes = self.sizes()
        out = {}
        for protocol in REMASTERED:
            looks, starts = protocol.grid["visual_seed"], protocol.grid["dynamics_seed"]
            if protocol.name == "train":
                starts = starts[: sizes.train_episodes]
            else:
                looks, starts = looks[: sizes.looks], starts[: sizes.looks * sizes.starts]
            grid = {"visual_seed": looks, "dynamics_seed": starts}
            out[protocol.name] = replace(protocol, grid=grid), len(starts)
        return out
