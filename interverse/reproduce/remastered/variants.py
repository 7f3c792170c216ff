"""What is trained: an agent, on a task, in a look, with hyper-parameters; and what needs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from interverse.agents.pixel import AUGMENTATIONS
from interverse.reproduce.remastered.budgets import Budget
from interverse.reproduce.remastered.published import METHODS, TASKS, rows

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
FIGURES = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13)
_ENDS = ("train", "all")
# The README's second look; the paper names no other. Ours follow from 2000 on.
_WALKER_LOOKS = (0, 6985, 2000, 2001)
# Which task Figures 5 to 7 were made on is not recorded; this one is Figure 4's.
SWEPT_TASK = "Ball in Cup Catch"
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
class Variant:
    """One agent to train; `protocols` are those it is tested under."""

    task: str
    method: str
    visual_seed: int = 0
    hyper: tuple[tuple[str, float | str], ...] = ()
    protocols: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def name(self) -> str:
        """For files and logs."""
        parts = [TASKS[self.task].split("/")[1].removesuffix("-v1"), METHODS[self.method]]
        parts += [f"look={self.visual_seed}"] if self.visual_seed else []
        parts += [
            f"{name}={value:g}" if isinstance(value, float) else value for name, value in self.hyper
        ]
        return ".".join(parts)


def row_file(out: Path, variant: Variant, seed: int) -> Path:
    """Returns where the results of a variant and seed lie."""
    return out / "rows" / f"{variant.name}.seed-{seed}.json"


def table_variant(task: str, method: str) -> Variant:
    """Returns the agent of a table's row."""
    return Variant(task=task, method=method)


def look_variants(budget: Budget) -> list[Variant]:
    """Returns Figure 2's agents: one task in a few looks, another in many."""
    first, second = budget.trained_looks
    main = "Walker Walk" if "Walker Walk" in budget.tasks else budget.tasks[0]
    looks = [Variant(task=main, method="SAC+AUG", visual_seed=s) for s in _WALKER_LOOKS[:first]]
    return looks + [
        Variant(task="Ball in Cup Catch", method="SAC+AUG", visual_seed=seed)
        for seed in range(1, second + 1)
        if "Ball in Cup Catch" in budget.tasks
    ]


def shown_variants(figure: int, budget: Budget) -> list[Variant]:
    """Returns the agents whose encoders Figure 3 or 4 shows; in a small budget, of its task."""
    shown = {task: methods for task, methods in SHOWN[figure].items() if task in budget.tasks}
    shown = shown or {budget.tasks[0]: ("SAC+AUG", "SAC+CJ+AUG")}
    return [table_variant(task, method) for task, methods in shown.items() for method in methods]


def sweep_variants(figure: int, budget: Budget) -> dict[str, Variant]:
    """Returns a sweep's agents by the value each has: 5 beta, 6 lambda, 7 augmentation."""
    task = SWEPT_TASK if SWEPT_TASK in budget.tasks else budget.tasks[0]
    if figure == 7:
        names = budget.augmentations or paper_augmentations()
        fixed = (("beta", 0.9), ("invariance", 1.5e-3))
        settings = {name: (("augmentation", name), *fixed) for name in names}
    elif figure == 5:
        settings = {f"{v:g}": (("beta", v),) for v in budget.sweeps[5]}
    else:
        settings = {f"{v:g}": (("beta", 1.0), ("invariance", v)) for v in budget.sweeps[6]}
    return {
        value: Variant(task=task, method="SAC+AUG", hyper=hyper)
        for value, hyper in settings.items()
    }


def paper_augmentations() -> tuple[str, ...]:
    """Returns the names of the eleven augmentations that the paper compares."""
    return tuple(name for name in AUGMENTATIONS if "paper" in AUGMENTATIONS[name].tags)


def wanted(tables: Iterable[int], figures: Iterable[int], budget: Budget) -> list[Variant]:
    """Returns what must be trained, each once, with every protocol that something needs."""
    found: dict[Variant, set[str]] = {}
    for variant, protocols in _needs(tables, figures, budget):
        found.setdefault(variant, set()).update(protocols)
    return [
        Variant(
            task=v.task,
            method=v.method,
            visual_seed=v.visual_seed,
            hyper=v.hyper,
            protocols=frozenset(protocols),
        )
        for v, protocols in found.items()
    ]


def _needs(
    tables: Iterable[int], figures: Iterable[int], budget: Budget
) -> Iterator[tuple[Variant, tuple[str, ...]]]:
    for table in tables:
        for task, method in rows(table) if table != 3 else ():
            if task in budget.tasks and method in budget.methods:
                protocols = _ENDS if table == 1 else tuple(CONDITIONS.values())
                yield table_variant(task, method), protocols
    for figure in figures:
        if figure == 2:
            yield from ((variant, ()) for variant in look_variants(budget))
        elif figure in SHOWN:
            yield from ((variant, ()) for variant in shown_variants(figure, budget))
        elif figure in (5, 6, 7):
            yield from ((v, _ENDS) for v in sweep_variants(figure, budget).values())
