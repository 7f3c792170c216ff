"""The store of a TriFinger world: its arrays, and interventions on copies of its rows.

Objects of a kind share an array: `block_2/mass` is `rows["block/mass"][:, 2]`. A variable that is
named nowhere here has an array of its own name. An intervention is refused for what it makes worse:
a pair that was as deep before, or a goal that did not move, is no reason.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np

from interverse.core.arrays import Array, like, namespace, to_numpy
from interverse.core.errors import explain
from interverse.core.rng import Noise
from interverse.scm import Variable
from interverse.scm.store import Rows, Store, StoreSlot
from interverse.worlds.trifinger.objects import to_cartesian
from interverse.worlds.trifinger.penetration import BoxSet, Depths, penetrations
from interverse.worlds.trifinger.rewards import bounds, vertical_extent
from interverse.worlds.trifinger.scene import OBSERVATION_CAMERAS, ArenaScene
from interverse.worlds.trifinger.variables import DELAY_LIMIT, FINGERS, LINK_NAMES

if TYPE_CHECKING:
    from interverse.worlds.trifinger.tasks.task import Task


ADDRESS = "address"  # (N, 3): seed, episode and step of the noise in force
CLOCK = "clock"  # (N,): steps since the reset
COMMANDS = "commands"  # (N, DELAY_LIMIT + 1, 9): the last commands, the newest first
REWARD = "reward"  # (N,): of the last step
START_RATES = "start_rates"  # (N, 9): joint velocities at the start of the episode

_OBJECT = re.compile(r"(block|goal|obstacle|camera)_(\d+)/(\w+)")
_LINK = re.compile(rf"({'|'.join(FINGERS)})/({'|'.join(LINK_NAMES)})/(mass|color)")
_COMPUTED = ("end_effector_positions", "fractional_success")
_KEPT_AS = {
    "goal_tower/cylindrical_position": StoreSlot("goal_tower/place"),
    "obstacle/color": StoreSlot("obstacle/color", (0,)),
    "obstacle/size": StoreSlot("obstacle/size", (0,)),
    "robot/commands": StoreSlot(COMMANDS),
}


def slots_of(names: Iterable[str], start: Rows) -> dict[str, StoreSlot | None]:
    """Returns where values are kept that have no array of their own; None for computed ones.

    Args:
        names: the variables.
        start: one world's rows.
    """
    hidden = [
        f"{kind}_{i}/{key}"
        for kind, key in (("block", "used"), ("obstacle", "used"), ("obstacle", "position"))
        for i in range(start[f"{kind}/used"].shape[1])
    ]
    out: dict[str, StoreSlot | None] = {}
    for name in (*names, *hidden):
        slot = _shared_slot(name)
        if name in _COMPUTED or (name.endswith("/cylindrical_position") and name not in _KEPT_AS):
            out[name] = None
        elif slot is not None and (slot.key in start or name in _KEPT_AS):
            out[name] = slot
    return out


def _shared_slot(name: str) -> StoreSlot | None:
    if name in _KEPT_AS:
        return _KEPT_AS[name]
    if thing := _OBJECT.fullmatch(name):
        kind, number, key = thing.groups()
        return StoreSlot(f"{kind}/{key.removeprefix('cartesian_')}", (int(number),))
    if link := _LINK.fullmatch(name):
        finger, part, key = link.groups()
        return StoreSlot(f"link/{key}", (FINGERS.index(finger), LINK_NAMES.index(part)))
    return None


def starting_rows(scene: ArenaScene) -> Rows:
    """Returns the shared arrays of one world at the start of the default scene, (1, ...) each."""
    blocks, goals = scene.block_count, scene.goal_count
    rows: Rows = {
        ADDRESS: np.zeros((1, 3), dtype=np.int64),
        CLOCK: np.zeros(1, dtype=np.int64),
        COMMANDS: np.zeros((1, DELAY_LIMIT + 1, 9)),
        REWARD: np.zeros(1),
        START_RATES: np.zeros((1, 9)),
        "link/mass": np.array([scene.link_masses]),
        "link/color": np.array([[colors[1:] for colors in scene.link_colors]]),
        "camera/position": np.array([[camera.eye for camera in OBSERVATION_CAMERAS]]),
        "camera/rotation": np.zeros((1, len(OBSERVATION_CAMERAS), 3)),
        "block/mass": np.full((1, blocks), 0.08),
        "block/friction": np.ones((1, blocks)),
        "block/used": np.arange(blocks)[None] < len(scene.blocks),
        "block/linear_velocity": np.zeros((1, blocks, 3)),
        "block/angular_velocity": np.zeros((1, blocks, 3)),
        "goal/used": np.arange(goals)[None] < len(scene.goals),
        # those below the floor wait
        "obstacle/used": np.array([[o.position[2] > 0.0 for o in scene.obstacles]], dtype=bool),
    }
    kinds = (("block", blocks, scene.blocks), ("goal", goals, scene.goals))
    for kind, count, items in (*kinds, ("obstacle", len(scene.obstacles), scene.obstacles)):
        for key, spare in _SPARE.items():
            values = [getattr(item, key) for item in items]
            values += [spare] * (count - len(values))
            rows[f"{kind}/{key}"] = np.array(values, dtype=np.float64).reshape(1, count, len(spare))
    rows["goal/color"][:, len(scene.goals) :] = (0.0, 1.0, 0.0)
    for i, block in enumerate(scene.blocks):
        rows["block/mass"][:, i], rows["block/friction"][:, i] = block.mass, block.friction
    return rows


_SPARE = {  # of an object that is not in use
    "position": (0.0, 0.0, 0.0),
    "orientation": (0.0, 0.0, 0.0, 1.0),
    "size": (0.065, 0.065, 0.065),
    "color": (1.0, 0.0, 0.0),
}


def noise_of(address: Array) -> Noise:
    """Returns the noise at addresses, (n, 3)."""
    return Noise(address[:, 0], address[:, 1], address[:, 2])


def scene_noise(task: Task, address: Array) -> Noise:
    """Returns the noise that scenes are built with, given addresses (n, 3).

    It is that of the seed alone, so that a scene stays what it is from episode to episode.
    """
    seeds, episodes, steps = address[:, 0], address[:, 1], address[:, 2]
    return Noise(seeds, episodes if task.draws_scenes else 0 * episodes, 0 * steps)


ARENA: tuple[tuple[float, float, float], tuple[float, float, float]] = (
    (-0.15, -0.15, 0.0),
    (0.15, 0.15, 0.3),
)  # the box that goals must be in, m
GOAL_SHARE = 0.5  # of a goal's volume that must be in the arena
GOAL_FLOOR = -0.01  # the lowest point a goal may have, m
_WORSE = 1e-9  # m by which a depth must grow to count


def worse(after: Depths, before: Depths) -> dict[int, str]:
    """Returns, by row, the reason for each world that has a pair deeper than allowed and before."""
    deep, was, limit = (to_numpy(a) for a in (after.depth, before.depth, after.limit))
    bad = (deep > limit) & (deep > was + _WORSE)
    excess = np.where(bad, deep - limit, -np.inf)
    reasons = {}
    for row in np.flatnonzero(bad.any(axis=1)).tolist():
        k = int(np.argmax(excess[row]))
        a, b = after.pairs[k]
        reasons[row] = (
            f"{a} would stand {deep[row, k] * 1e3:.1f} mm deep in {b}. "
            f"Allowed: {limit[row, k] * 1e3:.1f} mm."
        )
    return reasons


def goal_place(
    position: Array, orientation: Array, size: Array, *, built: bool = False
) -> tuple[Array, Array]:
    """Returns the share of each goal in the arena and its lowest point, two arrays (N, G).

    The share compares the part of its bounding box in the arena with its own volume. What a task
    has `built` is one thing, its goals its pieces: all have the share of the whole. It may be as
    high as its variables say, so that for it the arena has no upper end.
    """
    xp = namespace(position)
    box = bounds(position, orientation, size)
    low, high = box[..., 0, :], box[..., 1, :]
    top = np.inf if built else ARENA[1][2]
    least, most = like(ARENA[0], position), like((*ARENA[1][:2], top), position)
    edges = (xp.minimum(high, most) - xp.maximum(low, least)).clip(0.0, None)
    inside = edges[..., 0] * edges[..., 1] * edges[..., 2]
    volume = size[..., 0] * size[..., 1] * size[..., 2]
    if built:  # goals that are not there have no size
        whole = xp.sum(volume, axis=1, keepdims=True)
        return inside.sum(axis=1)[:, None] / whole + xp.zeros_like(inside), low[..., 2]
    return inside / volume, low[..., 2]


def goal_reasons(
    names: tuple[str, ...], goals: tuple[Array, Array, Array], moved: Array, *, built: bool = False
) -> dict[int, str]:
    """Returns, by row, why a goal that moved may not be where it is.

    Args:
        names: of the goals.
        goals: positions (N, G, 3), orientations (N, G, 4) and sizes (N, G, 3).
        moved: (N, G), which ones to look at.
        built: whether they are pieces of one thing; those that are not there have size zero then.
    """
    share, lowest = goal_place(*goals, built=built)
    outside, sunk = moved & (share < GOAL_SHARE), moved & (lowest < GOAL_FLOOR)
    bad = np.flatnonzero(to_numpy((outside | sunk).any(axis=1))).tolist()
    if not bad:
        return {}
    share, lowest, outside, sunk = (to_numpy(a) for a in (share, lowest, outside, sunk))
    reasons = {}
    for row in bad:
        if outside[row].any():
            k = int(np.argmax(outside[row]))
            what = "the goals together" if built else names[k]
            reasons[row] = (
                f"{what} would be {share[row, k]:.0%} inside the arena. "
                f"Allowed: {GOAL_SHARE:.0%} or more of x, y in [-0.15, 0.15] m, z in [0, 0.3] m."
            )
        else:
            k = int(np.argmax(sunk[row]))
            reasons[row] = (
                f"{names[k]} would reach {-lowest[row, k] * 1e3:.1f} mm below the floor. "
                f"Allowed: {-GOAL_FLOOR * 1e3:.0f} mm."
            )
    return reasons


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
        late = {n for n in values.keys() & self._states if not n.endswith("orientation")}
        refused: dict[int, str] = {}
        for name in sorted(values.keys() - late):  # a turn before a size, which stands on its face
            self._put(rows, name, values[name])  # whether its object is there is seen below
        refused |= settle(self._task, rows, values.keys())
        if "joint_positions" in values:
            self._put(rows, "joint_positions", values["joint_positions"])
            self._hold(rows)
        for name in sorted(values):  # what is set follows from nothing else
            refused = self._put(rows, name, values[name]) | refused
        if "joint_velocities" in values:  # before the first step they are those of the start
            fresh, rates = rows[CLOCK][:, None] == 0, rows["joint_velocities"]
            rows[START_RATES] = namespace(rates).where(fresh, rates, rows[START_RATES])
        return refused

    def _put(self, rows: Rows, name: str, value: Array) -> dict[int, str]:
        owner = name.partition("/")[0]
        xp = namespace(value)
        if name not in self._store.slots:  # the other description of a position
            name, value = f"{owner}/cartesian_position", to_cartesian(value)
        elif name.endswith("orientation"):
            value = value / xp.sqrt(xp.sum(value * value, axis=-1, keepdims=True))
        if owner.startswith("block_") and name.endswith("/size"):
            keys = ("size", "cartesian_position", "orientation")
            held, place, turn = (self._store.part(rows, f"{owner}/{key}") for key in keys)
            # it stays on what it stands on
            place[:, 2] += (vertical_extent(turn, value) - vertical_extent(turn, held)) / 2
        self._store.part(rows, name)[...] = value
        kind, _, number = owner.partition("_")
        if kind not in ("block", "goal") or not number.isdigit():
            return {}
        absent = np.flatnonzero(to_numpy(~rows[f"{kind}/used"][:, int(number)])).tolist()
        if not absent:
            return {}
        causes = ", ".join(self._task.generators)
        fix = f"Leave it out, or set what decides how many there are: {causes}"
        return dict.fromkeys(absent, explain(f"{owner} is not in use in this world", fix=fix))

    def infeasible(self, rows: Rows, before: Rows, changed: Collection[str]) -> dict[int, str]:
        """Returns, by row, why a scene cannot be."""
        reasons: dict[int, str] = {}
        if _GOALS & set(changed):
            names = tuple(f"goal_{i}" for i in range(self._scene.goal_count))
            moved = rows["goal/used"] & _moved(rows, before)
            built = bool(set(self._task.generators) & set(changed) - {"blocks/mass"})
            edges = rows["goal/size"] * (rows["goal/used"][..., None] if built else 1.0)
            pose = rows["goal/position"], rows["goal/orientation"], edges
            reasons |= goal_reasons(names, pose, moved, built=built)
        if _BODIES & set(changed):
            after = self._depths(rows)
            deep = np.flatnonzero(to_numpy((after.depth > after.limit).any(axis=1)))
            if len(deep):
                then = self._depths({key: before[key][deep] for key in before})
                now = replace(after, depth=after.depth[deep], limit=after.limit[deep])
                deeper = worse(now, then)
                reasons |= {int(deep[k]): reason for k, reason in deeper.items()}
        return reasons

    def _depths(self, rows: Rows) -> Depths:
        names = {
            "block": tuple(f"block_{i}" for i in range(self._scene.block_count)),
            "obstacle": tuple(obstacle.name for obstacle in self._scene.obstacles),
        }
        keys = ("position", "orientation", "size", "used")
        boxes = (BoxSet(n, *(rows[f"{kind}/{key}"] for key in keys)) for kind, n in names.items())
        robot = rows["joint_positions"], rows["robot/height"]
        return penetrations(self._task.capsules, *robot, *boxes)


def settle(task: Task, rows: Rows, given: Collection[str]) -> Mapping[int, str]:
    """Lets a task change rows so that what follows from the given variables holds.

    Whole scenes are built on the host, piece by piece; all else stays on the rows' device.
    """
    if not set(given) & set(task.generators):
        return task.settle(rows, given, scene_noise(task, rows[ADDRESS]))
    host = {key: to_numpy(values) for key, values in rows.items()}
    refused = task.settle(host, given, scene_noise(task, host[ADDRESS]))
    for key, values in rows.items():
        if not isinstance(values, np.ndarray):
            values[...] = like(host[key], values)
    return refused


def _moved(rows: Rows, before: Rows) -> Array:
    """Returns which goals differ in anything, (n, K)."""
    unequal = [rows[key] != before[key] for key in sorted(_GOALS)]
    return functools.reduce(
        operator.or_, (part.any(axis=-1) if part.ndim > 2 else part for part in unequal)
    )
