"""Agents to train: on a task, in a look, with hyper-parameters; and what needs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from interverse.agents.pixel import AUGMENTATIONS
from interverse.benchmarks.dmcr.budgets import DmcrBudget
from interverse.benchmarks.dmcr.published import AGENTS, METHODS, TASKS, all_rows

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
FIGURES = tuple(range(1, 14))
_ENDS = ("train", "all")
Hyper = tuple[tuple[str, float | str], ...]  # other hyper-parameters than the preset's
LOOK_AGENTS = ("SAC+AE", "CURL", "SAC+AUG", "DrQ")
"""Figure 2's agents; the first three are the tables'."""
_COMPARED = ("SAC+AUG", "CURL")  # its last panel: the default look against many, in Ball in Cup
# The README's second look; the paper names no other. Ours follow from 2000 on.
_WALKER_LOOKS = (0, 6985, 2000, 2001)
SWEPT = {
    5: ("Walker Walk", "Cartpole Balance"),
    6: ("Walker Walk",),
    7: ("Walker Walk",),
}
"""Figures 5 to 7: the tasks their captions name."""
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


def row_file(out: Path, variant: DmcrVariant, seed: int) -> Path:
    """Returns where the results of a variant and seed lie."""
    return out / "rows" / f"{variant.name}.seed-{seed}.json"


def table_variant(task: str, method: str) -> DmcrVariant:
    """Returns the agent of a table's row."""
    return DmcrVariant(task=task, method=method)


def look_variants(budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns Figure 2's agents: four in a few looks of one task, two in many of another."""
    first, second = budget.trained_looks
    main = "Walker Walk" if "Walker Walk" in budget.tasks else budget.tasks[0]
    agents = [m for m in LOOK_AGENTS if m in budget.methods or m not in METHODS]
    looks = [
        DmcrVariant(task=main, method=method, visual_seed=seed)
        for method in agents
        for seed in _WALKER_LOOKS[:first]
    ]
    return looks + [
        DmcrVariant(task="Ball in Cup Catch", method=method, visual_seed=seed)
        for method in _COMPARED
        for seed in range(second + 1)
        if second and "Ball in Cup Catch" in budget.tasks and method in budget.methods
    ]


def shown_variants(figure: int, budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns the agents whose encoders Figure 3 or 4 shows; in a small budget, of its task."""
    shown = {task: methods for task, methods in SHOWN[figure].items() if task in budget.tasks}
    shown = shown or {budget.tasks[0]: ("SAC+AUG", "SAC+CJ+AUG")}
    return [table_variant(task, method) for task, methods in shown.items() for method in methods]


def swept_tasks(figure: int, budget: DmcrBudget) -> tuple[str, ...]:
    """Returns the tasks of Figure 5, 6 or 7 that the budget has; its first, if it has none."""
    return tuple(t for t in SWEPT[figure] if t in budget.tasks) or (budget.tasks[0],)


def sweep_variants(figure: int, budget: DmcrBudget, task: str) -> dict[str, DmcrVariant]:
    """Returns a sweep's agents by the value each has: 5 beta, 6 lambda, 7 augmentation."""
    if figure == 7:
        names = budget.augmentations or paper_augmentations()
        fixed = (("beta", 0.9), ("invariance", 1.5e-3))
        settings: dict[str, Hyper] = {name: (("augmentation", name), *fixed) for name in names}
    elif figure == 5:
        settings = {f"{v:g}": (("beta", v),) for v in budget.sweeps[5]}
    else:
        settings = {f"{v:g}": (("beta", 1.0), ("invariance", v)) for v in budget.sweeps[6]}
    return {
        value: DmcrVariant(task=task, method="SAC+AUG", hyper=hyper)
        for value, hyper in settings.items()
    }


def paper_augmentations() -> tuple[str, ...]:
    """Returns the names of the eleven augmentations that the paper compares."""
    return tuple(name for name in AUGMENTATIONS if "paper" in AUGMENTATIONS[name].tags)


def wanted(tables: Iterable[int], figures: Iterable[int], budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns what must be trained, each once, with every protocol that something needs."""
    found: dict[DmcrVariant, set[str]] = {}
    for variant, protocols in _needs(tables, figures, budget):
        found.setdefault(variant, set()).update(protocols)
    return [
        DmcrVariant(
            task=v.task,
            method=v.method,
            visual_seed=v.visual_seed,
            hyper=v.hyper,
            protocols=frozenset(protocols),
        )
        for v, protocols in found.items()
    ]


def _needs(
    tables: Iterable[int], figures: Iterable[int], budget: DmcrBudget
) -> Iterator[tuple[DmcrVariant, tuple[str, ...]]]:
    for table in tables:
        for task, method in all_rows(table) if table != 3 else ():
            if task in budget.tasks and method in budget.methods:
                protocols = _ENDS if table == 1 else tuple(CONDITIONS.values())
                yield table_variant(task, method), protocols
    for figure in figures:
        if figure == 2:
            yield from ((variant, ()) for variant in look_variants(budget))
        elif figure in SHOWN:
            yield from ((variant, ()) for variant in shown_variants(figure, budget))
        elif figure in (5, 6, 7):
            for task in swept_tasks(figure, budget):
                yield from ((v, ()) for v in sweep_variants(figure, budget, task).values())
