"""An intervention worked out on copies of the store's rows: values, what follows, what refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from interverse.errors import explain
from interverse.worlds.trifinger import feasibility, store
from interverse.worlds.trifinger.objects import to_cartesian
from interverse.worlds.trifinger.penetration import Capsules, Depths, Solids, penetrations
from interverse.worlds.trifinger.scene import Scene
from interverse.worlds.trifinger.store import ADDRESS, Rows, part
from interverse.worlds.trifinger.tasks.task import Task
from interverse.worlds.trifinger.variables import Declared

Array = Any
_BODIES = {  # keys that decide whether things stand in each other
    "joint_positions",
    "robot/height",
    *(f"block/{key}" for key in ("position", "orientation", "size", "used")),
    *(f"obstacle/{key}" for key in ("position", "size", "used")),
}
_GOALS = {f"goal/{key}" for key in ("position", "orientation", "size", "used")}


@final
class Editor:
    """Edits rows of a task's store; touches neither the store nor the engine."""

    def __init__(
        self,
        task: Task,
        scene: Scene,
        declared: Collection[Declared],
        capsules: Capsules,
        hold: Callable[[Rows], None],
    ) -> None:
        """Makes an editor.

        Args:
            task: says what follows from its variables.
            scene: what there is.
            declared: every variable with its slot.
            capsules: the links' shapes.
            hold: makes the robot's standing command keep it where it is.
        """
        self._task, self._scene, self._capsules, self._hold = task, scene, capsules, hold
        self._slots = {d.variable.name: d.slot for d in declared}
        self._states = {d.variable.name for d in declared if d.variable.kind == "state"}

    def apply(self, rows: Rows, values: Mapping[str, Array]) -> Mapping[int, str]:
        """Writes values and what follows from them into rows; returns rows that cannot be."""
        late = values.keys() & self._states
        refused = {}
        for name in sorted(values.keys() - late):
            refused |= self._put(rows, name, values[name])
        noise = store.noise_of(rows[ADDRESS]).at(0)
        refused |= self._task.settle(rows, values.keys(), noise)
        for name in sorted(late):
            refused |= self._put(rows, name, values[name])
        if "joint_positions" in values:
            self._hold(rows)
        return refused

    def _put(self, rows: Rows, name: str, value: Array) -> dict[int, str]:
        slot = self._slots[name]
        owner = name.partition("/")[0]
        if name.endswith("cylindrical_position") and slot is None:
            slot, value = self._slots[f"{owner}/cartesian_position"], to_cartesian(value)
        elif name.endswith("orientation"):
            value = value / np.sqrt((value * value).sum(axis=-1, keepdims=True))
        part(rows, slot)[...] = value
        kind, _, number = owner.partition("_")
        if kind not in ("block", "goal") or not number.isdigit():
            return {}
        absent = ~rows[f"{kind}/used"][:, int(number)]
        return {int(k): _not_there(owner) for k in np.flatnonzero(absent)}

    def infeasible(self, rows: Rows, before: Rows, changed: Collection[str]) -> dict[int, str]:
        """Returns, by row, why a scene cannot be."""
        reasons: dict[int, str] = {}
        if _GOALS & set(changed):
            names = tuple(f"goal_{i}" for i in range(self._scene.goal_count))
            moved = rows["goal/used"] & _any_differs(rows, before, sorted(_GOALS))
            pose = tuple(rows[f"goal/{key}"] for key in ("position", "orientation", "size"))
            built = bool(set(self._task.generators) & set(changed) - {"blocks/mass"})
            reasons |= feasibility.goal_reasons(names, pose, moved, tall=built)  # type: ignore[arg-type]
        if _BODIES & set(changed):
            after = self._depths(rows)
            deep = np.flatnonzero((after.depth > after.limit).any(axis=1))
            if len(deep):
                then = self._depths({key: before[key][deep] for key in before})
                now = replace(after, depth=after.depth[deep], limit=after.limit[deep])
                worse = feasibility.worse(now, then)
                reasons |= {int(deep[k]): reason for k, reason in worse.items()}
        return reasons

    def _depths(self, rows: Rows) -> Depths:
        return penetrations(
            self._capsules,
            rows["joint_positions"],
            rows["robot/height"],
            _solids(rows, "block", self._scene.block_count),
            _solids(rows, "obstacle", [o.name for o in self._scene.obstacles]),
        )


def _solids(rows: Rows, kind: str, names: Any) -> Solids:
    labels = tuple(names) if isinstance(names, list) else tuple(f"{kind}_{i}" for i in range(names))
    return Solids(
        labels,
        rows[f"{kind}/position"],
        rows[f"{kind}/orientation"],
        rows[f"{kind}/size"],
        rows[f"{kind}/used"],
    )


def _any_differs(rows: Rows, before: Rows, keys: list[str]) -> Array:
    """Returns which objects differ in any of some keys, (n, K)."""
    out = None
    for key in keys:
        unequal = rows[key] != before[key]
        unequal = unequal.any(axis=-1) if unequal.ndim > 2 else unequal
        out = unequal if out is None else out | unequal
    return out


def _not_there(name: str) -> str:
    return explain(
        f"{name} is not in use in this world",
        fix="Ask for more blocks with the task's own variables first",
    )
