"""Agents to train: on a task, in a look, with hyper-parameters; and what needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
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


def row_file(out: Path, variant: DmcrVariant, seed: int) -> Path:
    """Returns where the results of a variant and seed lie."""
    return out / "rows" / f"{variant.name}.seed-{seed}.json"


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


def look_variants(budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns the agents of both parts of Figure 2."""
    first, second = look_parts(budget)
    return first + second


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
    return {
        value: DmcrVariant(task=task, method=_SWEPT_METHOD, hyper=hyper)
        for value, hyper in _SETTINGS[figure](budget).items()
    }


def _swept_variants(figure: int, budget: DmcrBudget) -> list[DmcrVariant]:
    tasks = swept_tasks(figure, budget)
    return [v for task in tasks for v in sweep_variants(figure, budget, task).values()]


def _betas(budget: DmcrBudget) -> dict[str, Hyper]:
    return {f"{v:g}": (("beta", v),) for v in budget.sweeps[5]}


def _lambdas(budget: DmcrBudget) -> dict[str, Hyper]:
    return {f"{v:g}": (("beta", 1.0), ("invariance", v)) for v in budget.sweeps[6]}


def _augmented(budget: DmcrBudget) -> dict[str, Hyper]:
    fixed = (("beta", 0.9), ("invariance", 1.5e-3))
    names = budget.augmentations or paper_augmentations()
    return {name: (("augmentation", name), *fixed) for name in names}


_SETTINGS: Mapping[int, Callable[[DmcrBudget], dict[str, Hyper]]] = {
    5: _betas,
    6: _lambdas,
    7: _augmented,
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
    """Yields what tables and figures need; Table 3 and the other figures train nothing."""
    for table in (number for number in tables if number in _TESTED):
        for task, method in all_rows(table):
            if task in budget.tasks and method in budget.methods:
                yield table_variant(task, method), _TESTED[table]
    for figure in figures:
        for variant in figure_variants(figure, budget):
            yield variant, ()


def figure_variants(figure: int, budget: DmcrBudget) -> list[DmcrVariant]:
    """Returns the agents that a figure shows; none where it shows states and pictures alone."""
    return _TRAINED[figure](budget) if figure in _TRAINED else []


_TESTED = {1: ("train", "all"), 2: tuple(CONDITIONS.values())}  # table -> protocols
_TRAINED: Mapping[int, Callable[[DmcrBudget], list[DmcrVariant]]] = {
    2: look_variants,
    **{figure: partial(shown_variants, figure) for figure in SHOWN},
    **{figure: partial(_swept_variants, figure) for figure in SWEPT},
}
