"""Interventions on copies of a store's rows: setting values, what follows, refusals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np

from interverse.core.arrays import like, namespace, to_numpy
from interverse.core.errors import explain
from interverse.scm import Variable
from interverse.scm.store import Rows, Store
from interverse.worlds.trifinger import feasibility
from interverse.worlds.trifinger.objects import to_cartesian
from interverse.worlds.trifinger.penetration import BoxSet, Depths, penetrations
from interverse.worlds.trifinger.scene import ArenaScene
from interverse.worlds.trifinger.store import ADDRESS, noise_of
from interverse.worlds.trifinger.tasks.task import Task

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
        scene: ArenaScene,
        store: Store,
        variables: Mapping[str, Variable],
        hold: Callable[[Rows], None],
    ) -> None:
        """Makes an editor.

        Args:
            task: says what follows from its variables.
            scene: what there is.
            store: where values are kept.
            variables: every variable.
            hold: makes the robot's standing command keep it where it is.
        """
        self._task, self._scene, self._store, self._hold = task, scene, store, hold
        self._states = {name for name, v in variables.items() if v.kind == "state"}

    def apply(self, rows: Rows, values: Mapping[str, Array]) -> dict[int, str]:
        """Writes values and what follows from them into rows; returns rows that cannot be."""
        late = values.keys() & self._states
        refused: dict[int, str] = {}
        for name in sorted(values.keys() - late):
            refused |= self._put(rows, name, values[name])
        refused |= settle(self._task, rows, values.keys())
        if "joint_positions" in values:
            self._put(rows, "joint_positions", values["joint_positions"])
            self._hold(rows)
        for name in sorted(values):  # what is set follows from nothing else
            refused |= self._put(rows, name, values[name])
        return refused

    def _put(self, rows: Rows, name: str, value: Array) -> dict[int, str]:
        owner = name.partition("/")[0]
        xp = namespace(value)
        if name not in self._store.slots:  # the other description of a position
            name, value = f"{owner}/cartesian_position", to_cartesian(value)
        elif name.endswith("orientation"):
            value = value / xp.sqrt(xp.sum(value * value, axis=-1, keepdims=True))
        if owner.startswith("block_") and name.endswith("/size"):
            self._keep_lower_face(rows, owner, value)
        self._store.part(rows, name)[...] = value
        kind, _, number = owner.partition("_")
        if kind not in ("block", "goal") or not number.isdigit():
            return {}
        absent = to_numpy(~rows[f"{kind}/used"][:, int(number)])
        return {int(k): _not_there(owner) for k in np.flatnonzero(absent)}

    def _keep_lower_face(self, rows: Rows, block: str, size: Array) -> None:
        """Lifts a block that is to have another size, so that it stays on what it stands on."""
        height, place = (
            self._store.part(rows, f"{block}/{k}") for k in ("size", "cartesian_position")
        )
        place[:, 2] += (size[:, 2] - height[:, 2]) / 2

    def infeasible(self, rows: Rows, before: Rows, changed: Collection[str]) -> dict[int, str]:
        """Returns, by row, why a scene cannot be."""
        reasons: dict[int, str] = {}
        if _GOALS & set(changed):
            names = tuple(f"goal_{i}" for i in range(self._scene.goal_count))
            moved = rows["goal/used"] & _any_differs(rows, before, sorted(_GOALS))
            pose = rows["goal/position"], rows["goal/orientation"], rows["goal/size"]
            built = bool(set(self._task.generators) & set(changed) - {"blocks/mass"})
            reasons |= feasibility.goal_reasons(names, pose, moved, tall=built)
        if _BODIES & set(changed):
            after = self._depths(rows)
            deep = np.flatnonzero(to_numpy((after.depth > after.limit).any(axis=1)))
            if len(deep):
                then = self._depths({key: before[key][deep] for key in before})
                now = replace(after, depth=after.depth[deep], limit=after.limit[deep])
                worse = feasibility.worse(now, then)
                reasons |= {int(deep[k]): reason for k, reason in worse.items()}
        return reasons

    def _depths(self, rows: Rows) -> Depths:
        return penetrations(
            self._task.capsules,
            rows["joint_positions"],
            rows["robot/height"],
            _solids(rows, "block", self._scene.block_count),
            _solids(rows, "obstacle", [o.name for o in self._scene.obstacles]),
        )


def settle(task: Task, rows: Rows, given: Collection[str]) -> Mapping[int, str]:
    """Lets a task change rows so that what follows from the given variables holds.

    Whole scenes are built on the host, piece by piece; all else stays on the rows' device.
    """
    if not set(given) & set(task.generators):
        return task.settle(rows, given, noise_of(rows[ADDRESS]).at(0))
    host = {key: to_numpy(values) for key, values in rows.items()}
    refused = task.settle(host, given, noise_of(host[ADDRESS]).at(0))
    for key, values in rows.items():
        if not isinstance(values, np.ndarray):
            values[...] = like(host[key], values)
    return refused


def _solids(rows: Rows, kind: str, names: Any) -> BoxSet:
    labels = tuple(names) if isinstance(names, list) else tuple(f"{kind}_{i}" for i in range(names))
    return BoxSet(
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
