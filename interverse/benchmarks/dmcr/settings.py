"""Settings of `interverse reproduce --benchmark dmcr`: what was printed, what is trained, budgets.

A variant is an agent to train: on a task, in a look, with hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, final

from interverse.agents.pixel import AUGMENTATIONS
from interverse.agents.pixel.config import MOST_TOGETHER, PixelPreset, PixelTrain, schedule
from interverse.benchmarks.driver import rows_on_disk
from interverse.core.errors import check_name
from interverse.core.type_checks import named, one_of, validated, whole
from interverse.models.steps import Precision
from interverse.protocols.protocol import Protocol
from interverse.protocols.remastered import REMASTERED
from interverse.results.published import Number, published

# ------------------------------------------------------------------------------ what was printed

TITLES = {
    1: "Table 1: what is lost in looks never seen",
    2: "Table 2: what is lost when one factor of the look varies",
    3: "Table 3: how long each task is trained",
}
TASKS: Mapping[str, str] = {
    "Ball in Cup Catch": "control/ball_in_cup_catch-v1",
    "Cartpole Balance": "control/cartpole_balance-v1",
    "Cheetah Run": "control/cheetah_run-v1",
    "Finger Spin": "control/finger_spin-v1",
    "Hopper Stand": "control/hopper_stand-v1",
    "Walker Walk": "control/walker_walk-v1",
}
"""The paper's name of a task -> its id."""
METHODS: Mapping[str, str] = {
    "CURL": "curl",
    "SAC+AE": "sac_ae",
    "SAC+AUG": "sac_aug",
    "SAC+CJ+AUG": "sac_cj_aug",
    "SAC+NR+AUG": "sac_nr_aug",
}
"""The paper's name of a method -> the agent's."""
AGENTS: Mapping[str, str] = {
    **METHODS,
    "DrQ": "drq",
    "DrQ-v2": "drq_v2",
    "RAD": "rad",
    "SAC": "sac_pixels",
    "SGQN": "sgqn",
    "SODA": "soda",
    "SVEA": "svea",
    "TD-MPC2": "tdmpc2",
}
"""The same with agents that no table of the paper has; Figure 2 shows DrQ."""
CONDITIONS = {
    "None": "train",
    "Light": "light",
    "Camera": "camera",
    "Body": "body",
    "Floor": "floor",
    "Background": "background",
    "All": "all",
}
"""Table 2's columns -> the protocol of each; Table 1 has the first and the last."""


def printed(table: int) -> tuple[Number, ...]:
    """Returns the printed numbers of a table but those that our text of the paper has damaged.

    `condition` is train or test (Table 1), or the factor that varies (Table 2).

    >>> walker = {"task": "Walker Walk", "method": "SAC+AUG"}
    >>> [row.value for row in printed(1) if walker.items() <= row.at.items()]
    [919.3, 28.0, 97.0]
    """
    check_name("table", table, TITLES)
    return published(Path(__file__).with_name("published.csv"), str(table))


def rows(table: int) -> tuple[tuple[str, str], ...]:
    """Returns the (task, method) rows of Table 1 or 2, each once."""
    return tuple(dict.fromkeys((row["task"], row["method"]) for row in printed(table)))


def all_rows(table: int) -> tuple[tuple[str, str], ...]:
    """Returns the rows of Table 1 or 2, and after them those of agents that the paper has not."""
    own = ((task, method) for task in TASKS for method in AGENTS if method not in METHODS)
    return (*rows(table), *own)


# --------------------------------------------------------------------------------------- budgets

BudgetName = Literal["smoke", "reduced", "full"]
_SWEEPS = {5: (0.0, 0.25, 0.5, 0.75, 0.9, 1.0), 6: (0.0, 1e-5, 1e-4, 1.5e-3, 1e-2, 1e-1)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DmcrBudget:
    """Sizes of everything a number depends on.

    Attributes:
        preset: of the agents. steps: decisions, None: the preset's for each task.
        runs: training runs a number, seeds 0 to runs - 1. Figure 6's caption has eight trials: ask
            for that many.
        looks, starts: visual seeds of a test and dynamics seeds of each; their product is its
            episodes, and no two of them start from the same state.
        train_episodes: of the training score.
        renderings: looks of one state for Figure 3.
        trained_looks: Figure 2's: how many of the first task and of the second.
        sweeps: by figure, the values tried. augmentations: of Figure 7, None: all eleven.
        tasks, methods: what is done unless asked for by name.
        by_name: whether methods were asked for by name: figures then train no others.
        hyper, world: other hyper-parameters than the preset's, further options of the world.
    """

    preset: PixelPreset
    steps: int | None = None
    runs: int = 5
    looks: int = 100
    starts: int = 3
    train_episodes: int = 100
    renderings: int = 300
    trained_looks: tuple[int, int] = (4, 60)
    sweeps: Mapping[int, tuple[float, ...]] = field(default_factory=lambda: dict(_SWEEPS))
    augmentations: tuple[str, ...] | None = None
    tasks: tuple[str, ...] = tuple(TASKS)
    methods: tuple[str, ...] = tuple(METHODS)
    by_name: bool = False
    hyper: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)


BUDGETS: Mapping[str, DmcrBudget] = {
    "full": DmcrBudget(preset="paper"),
    "reduced": DmcrBudget(
        preset="small",
        runs=2,
        looks=25,
        starts=2,
        train_episodes=50,
        renderings=100,
        trained_looks=(3, 0),
        sweeps={5: (0.0, 0.5, 1.0), 6: (0.0, 1e-4, 1e-2)},
    ),
    "smoke": DmcrBudget(
        preset="small",
        steps=24,
        runs=1,
        looks=3,
        starts=1,
        train_episodes=3,
        renderings=3,
        trained_looks=(2, 0),
        sweeps={5: (0.0, 1.0), 6: (0.0, 1e-2)},
        augmentations=("drq", "rotate"),
        tasks=("Cartpole Balance",),
        methods=("CURL", "SAC+AUG"),
        hyper={
            "image_size": 32,
            "filters": 4,
            "features": 8,
            "hidden": 16,
            "batch": 8,
            "capacity": 100,
            "warm_up": 8,
        },
        world={"max_steps": 4, "quality": "fast"},
    ),
}

# -------------------------------------------------------------------------------- what is trained

FIGURES = tuple(range(1, 14))
SHEETS = {
    1: "walker/walk",
    10: "cartpole/swingup",
    11: "walker/walk",
    12: "reacher/easy",
    13: "finger/spin",
}
"""The figures that show one state in many looks, and the task their captions name."""
TRAJECTORY = "hopper/hop"  # Figure 9: six moments of one trajectory, in four looks
AUGMENTED = "walker/walk"  # Figure 8: one picture under alterations and augmentations
Hyper = tuple[tuple[str, float | str], ...]  # other hyper-parameters than the preset's
LOOK_AGENTS = ("SAC+AE", "CURL", "SAC+AUG", "DrQ")
"""Figure 2's agents; the first three are the tables'."""
_COMPARED = ("SAC+AUG", "CURL")  # its second part: the default look against many
_FEW_LOOKS, _MANY_LOOKS = "Walker Walk", "Ball in Cup Catch"  # the tasks of its parts
# The README's second look; the paper names no other. Ours follow from 2000 on.
_WALKER_LOOKS = (0, 6985, 2000, 2001)
SWEPT = {
    5: ("Walker Walk", "Cartpole Balance"),
    6: ("Walker Walk",),
    7: ("Walker Walk",),
}
"""Figures 5 to 7: the tasks their captions name."""
_SWEPT_METHOD = "SAC+AUG"
SHOWN = {
    3: {
        "Ball in Cup Catch": ("SAC+AUG", "SAC+NR+AUG"),
        "Cartpole Balance": ("SAC+AUG", "SAC+CJ+AUG"),
    },
    4: {"Ball in Cup Catch": ("SAC+AUG", "SAC+CJ+AUG")},
}
"""Figures 3 and 4: task -> the methods compared."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DmcrVariant:
    """One agent to train; `protocols` are those it is tested under."""

    task: str
    method: str
    visual_seed: int = 0
    hyper: Hyper = ()
    protocols: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def name(self) -> str:
        """For files and logs."""
        parts = [TASKS[self.task].split("/")[1].removesuffix("-v1"), AGENTS[self.method]]
        parts += [f"look={self.visual_seed}"] if self.visual_seed else []
        parts += [
            f"{name}={value:g}" if isinstance(value, float) else value for name, value in self.hyper
        ]
        return ".".join(parts)


def table_variant(task: str, method: str) -> DmcrVariant:
    """Returns the agent of a table's row."""
    return DmcrVariant(task=task, method=method)


def look_parts(budget: DmcrBudget) -> tuple[list[DmcrVariant], list[DmcrVariant]]:
    """Returns Figure 2's agents by part: some in a few looks of a task, two in many of another.

    A part is of the task that the caption names. Where the budget has neither task, the first part
    is of the budget's first.
    """
    few, many = budget.trained_looks
    compared = [m for m in _COMPARED if _is_shown(m, budget)] if many else []
    second = [
        DmcrVariant(task=_MANY_LOOKS, method=method, visual_seed=seed)
        for method in compared
        for seed in range(many + 1)
        if _MANY_LOOKS in budget.tasks
    ]
    main = _FEW_LOOKS if _FEW_LOOKS in budget.tasks else budget.tasks[0]
    first = [
        DmcrVariant(task=main, method=method, visual_seed=seed)
        for method in LOOK_AGENTS
        for seed in _WALKER_LOOKS[:few]
        if _is_shown(method, budget) and (main == _FEW_LOOKS or not second)
    ]
    return first, second


def _is_shown(method: str, budget: DmcrBudget) -> bool:
    """Returns whether Figure 2 has a method: one asked for, or else the budget's and DrQ."""
    return method in budget.methods or (method not in METHODS and not budget.by_name)


def shown_variants(figure: int, budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns the agents whose encoders Figure 3 or 4 shows; in a small budget, of its task."""
    shown = {task: methods for task, methods in SHOWN[figure].items() if task in budget.tasks}
    shown = shown or {budget.tasks[0]: ("SAC+AUG", "SAC+CJ+AUG")}
    return [
        table_variant(task, method)
        for task, methods in shown.items()
        for method in methods
        if method in budget.methods or not budget.by_name
    ]


def swept_tasks(figure: int, budget: DmcrBudget) -> tuple[str, ...]:
    """Returns the tasks of Figure 5, 6 or 7 that the budget has; its first, if it has none."""
    return tuple(t for t in SWEPT[figure] if t in budget.tasks) or (budget.tasks[0],)


def sweep_variants(figure: int, budget: DmcrBudget, task: str) -> dict[str, DmcrVariant]:
    """Returns a sweep's agents by the value each has: 5 beta, 6 lambda, 7 augmentation."""
    if budget.by_name and _SWEPT_METHOD not in budget.methods:
        return {}
    settings: dict[str, Hyper]
    if figure == 5:
        settings = {f"{v:g}": (("beta", v),) for v in budget.sweeps[5]}
    elif figure == 6:
        settings = {f"{v:g}": (("beta", 1.0), ("invariance", v)) for v in budget.sweeps[6]}
    else:
        fixed = (("beta", 0.9), ("invariance", 1.5e-3))
        names = budget.augmentations or paper_augmentations()
        settings = {name: (("augmentation", name), *fixed) for name in names}
    return {
        value: DmcrVariant(task=task, method=_SWEPT_METHOD, hyper=hyper)
        for value, hyper in settings.items()
    }


def paper_augmentations() -> tuple[str, ...]:
    """Returns the names of the eleven augmentations that the paper compares."""
    return tuple(name for name in AUGMENTATIONS if "paper" in AUGMENTATIONS[name].tags)


def figure_variants(figure: int, budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns the agents that a figure shows; none where it shows states and pictures alone."""
    if figure == 2:
        return [variant for part in look_parts(budget) for variant in part]
    if figure in SHOWN:
        return shown_variants(figure, budget)
    tasks = swept_tasks(figure, budget) if figure in SWEPT else ()
    return [v for task in tasks for v in sweep_variants(figure, budget, task).values()]


def wanted(tables: Iterable[int], figures: Iterable[int], budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns what must be trained, each once, with every protocol that something needs.

    Table 3 and the figures of states train nothing.
    """
    tested = {1: ("train", "all"), 2: tuple(CONDITIONS.values())}  # table -> protocols
    found: dict[DmcrVariant, set[str]] = {}
    for table in (number for number in tables if number in tested):
        for task, method in all_rows(table):
            if task in budget.tasks and method in budget.methods:
                found.setdefault(table_variant(task, method), set()).update(tested[table])
    for figure in figures:
        for variant in figure_variants(figure, budget):
            found.setdefault(variant, set())
    return [replace(v, protocols=frozenset(protocols)) for v, protocols in found.items()]


# --------------------------------------------------------------------------------- the settings

_Count = Annotated[int, whole(10**9)]


@dataclass(frozen=True, kw_only=True)
@validated
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

    table: tuple[Annotated[int, one_of(TITLES)], ...] = ()
    """1: E_G in looks never seen. 2: one factor at a time. 3: training lengths (trains nothing).
    Without, 1, or none where figures are asked for."""
    figures: tuple[Annotated[int, named("figure", one_of(FIGURES))], ...] = ()
    """1, 9-13: states in many looks. 2: training in other looks. 3: encoder variance. 4: attention.
    5, 6, 7: beta, lambda and augmentations. 8: what augmentations do. 2 to 7 train agents; the
    caption of 6 has eight trials, which is --runs 8."""
    budget: BudgetName = "reduced"
    """full: the published sizes, for a GPU. reduced: 64 px, 4000 decisions, 2 runs. smoke: tiny."""
    tasks: tuple[Annotated[str, named("task", one_of(TASKS))], ...] = ()
    """Some of the paper's six, such as "Cartpole Balance"; the budget's by default."""
    methods: tuple[Annotated[str, named("method", one_of(AGENTS))], ...] = ()
    """Some of CURL, SAC+AE, SAC+AUG, SAC+CJ+AUG, SAC+NR+AUG; the budget's by default. Agents that
    the paper's tables have not: DrQ, DrQ-v2, RAD, SAC, SGQN, SODA, SVEA, TD-MPC2."""
    runs: _Count | None = None
    """Training runs per number, if not the budget's."""
    steps: _Count | None = None
    """Decisions of every training run, if not the budget's."""
    device: str = "cpu"
    """Where agents train: cpu or cuda."""
    precision: Precision = "float32"
    """float32, tf32 or bf16; the last two are for a GPU."""
    actors: _Count = 1
    """Environments that act together in training, in processes of their own if more than one."""
    together: Annotated[int, whole(MOST_TOGETHER)] = 1
    """How many training runs, of any agents and seeds, this process trains side by side."""
    workers: _Count = 1
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

    def records(self, variant: DmcrVariant) -> list[dict[str, Any]]:
        """Returns the records on disk of a variant, by run."""
        return rows_on_disk(self.out, variant.name, range(self.sizes().runs))

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
