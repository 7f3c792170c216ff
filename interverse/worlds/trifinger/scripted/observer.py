"""The state of a scripted policy: the observation in SI units, its memory, its present job."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.observation import ObservationLayout
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.robot import (
    HEIGHT,
    action_bounds,
    denormalise,
    inverse_kinematics,
    normalise,
    tip_positions,
)

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Objects of N worlds, (N, K, ...), as they stand.

    Attributes:
        position: of the middle, m above the datum.
        size: along a lying edge, the other lying edge, the upright edge, m.
        yaw: of the first lying edge, rad.
        lean: x and y of the upright edge's direction: (0, 0) for a box that stands straight.
    """

    position: Floats
    size: Floats
    yaw: Floats
    lean: Floats

    def of(self, index: NDArray[np.int64]) -> Boxes:
        """Returns one object of every world, without the object axis."""
        rows = np.arange(len(index))
        return Boxes(*(part[rows, index] for part in self.parts))

    def at(self, worlds: Any) -> Boxes:
        """Returns the objects of some worlds."""
        return Boxes(*(part[worlds] for part in self.parts))

    @property
    def parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The four arrays."""
        return self.position, self.size, self.yaw, self.lean


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArenaState:
    """What N worlds look like: joints (N, 9), tips (N, 3, 3), height (N,), and the objects."""

    joints: Floats
    tips: Floats
    height: Floats
    blocks: Boxes
    goals: Boxes
    obstacles: Boxes


@final
class ObservationReader:
    """Reads observations and writes actions of one world's options."""

    def __init__(self, layout: ObservationLayout, options: TriFingerOptions) -> None:
        self.layout = layout
        self.step_time = options.step_time
        self._normal_observations = options.normalize_observations
        self._normal_actions = options.normalize_actions
        names = dict.fromkeys(key.partition("/")[0] for key in layout.slices if "/" in key)
        self._names = {
            kind: [name for name in names if name.startswith(kind)]
            for kind in ("block", "goal", "obstacle")
        }

    def read(self, observations: Any) -> ArenaState:
        """Returns what the observations of N worlds show."""
        if isinstance(observations, dict):
            observations = observations["structured"]
        seen = np.asarray(observations, dtype=np.float64)
        layout = self.layout
        if self._normal_observations:
            seen = denormalise(seen, layout.low, layout.high)
        joints = seen[:, layout.slices["joint_positions"]]
        tips = seen[:, layout.slices["end_effector_positions"]].reshape(-1, 3, 3)
        nominal = tip_positions(joints).reshape(-1, 3, 3)
        # the hinges' height is a hidden variable, but joints and tips together show it
        height = HEIGHT + (tips - nominal)[..., 2].mean(axis=1)
        kinds = (self._boxes(seen, kind) for kind in ("block", "goal", "obstacle"))
        return ArenaState(joints, tips, height, *kinds)

    def _boxes(self, seen: Floats, kind: str) -> Boxes:
        names = self._names[kind]
        position = self._stack(seen, names, "cartesian_position", (0.0, 0.0, 0.0))
        size = self._stack(seen, names, "size", (0.0, 0.0, 0.0))
        quaternion = self._stack(seen, names, "orientation", (0.0, 0.0, 0.0, 1.0))
        return _standing(position, size, quaternion)

    def _stack(self, seen: Floats, names: list[str], key: str, default: Any) -> Floats:
        """Returns one key of some objects, (N, K, k); what is not observed has a default."""
        n, slices = len(seen), self.layout.slices
        if not names:
            return np.zeros((n, 0, len(default)))
        rows = [
            seen[:, slices[f"{name}/{key}"]]
            if f"{name}/{key}" in slices
            else np.broadcast_to(np.array(default), (n, len(default)))
            for name in names
        ]
        return np.stack(rows, axis=1)

    def action(self, tips: Floats, sight: ArenaState) -> NDArray[np.float32]:
        """Returns the joint command that brings the tips there, (N, 9)."""
        low, high = action_bounds("joint_positions")
        wanted = inverse_kinematics(tips.reshape(-1, 9), sight.joints, sight.height)
        wanted = np.clip(wanted, low, high)
        return (normalise(wanted, low, high) if self._normal_actions else wanted).astype(np.float32)


def _standing(position: Floats, size: Floats, quaternion: Floats) -> Boxes:
    """Returns boxes as they stand: a block that rolled over has a new yaw and new edges."""
    x, y, z, w = (quaternion[..., i] for i in range(4))
    edges = np.stack(  # directions in the world
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], -1),
            np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], -1),
            np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )
    rise = np.abs(edges[..., 2])
    upright = np.argmax(rise, axis=-1)
    lying = np.where(upright == 0, 1, 0)
    order = np.stack([lying, 3 - upright - lying, upright], axis=-1)
    along = np.take_along_axis(edges, lying[..., None, None], axis=-2)[..., 0, :]
    up = np.take_along_axis(edges, upright[..., None, None], axis=-2)[..., 0, :]
    lean = up[..., :2] * np.sign(up[..., 2:])
    yaw = np.arctan2(along[..., 1], along[..., 0])
    return Boxes(position, np.take_along_axis(size, order, axis=-1), yaw, lean)


class Phase(IntEnum):
    """What a world's fingers are doing."""

    RAISE = 0
    TRAVEL = 1
    DESCEND = 2
    CLOSE = 3
    LIFT = 4
    CARRY = 5
    LOWER = 6
    LOOSEN = 7
    OPEN = 8


@final
@dataclass(slots=True, eq=False)
class Memory:
    """What the machine remembers of N worlds."""

    phase: NDArray[np.int64]
    since: Floats  # seconds in this phase
    job: NDArray[np.int64]  # which block
    blocked: NDArray[np.int64]  # how often the fingers could not get beside the block
    slips: NDArray[np.int64]  # how often it slipped
    grasp: NDArray[np.int64]
    command: Floats  # tips, (N, 3, 3)
    path: Floats  # where the held block should be now, (N, 3)
    offset: Floats  # integral of its errors, (N, 3)
    level: Floats  # integral of how much it leans down at each tip, (N, 3)
    yaw: Floats  # of the held block as it should be now
    twist: Floats  # integral of its errors
    started: NDArray[np.bool_]

    @classmethod
    def of(cls, n: int) -> Memory:
        """Returns the memory of N worlds that have not started."""
        phase, job, blocked, slips, grasp = (np.zeros(n, dtype=np.int64) for _ in range(5))
        one, two, three = (np.zeros((n, 3)) for _ in range(3))
        return cls(
            phase,
            np.zeros(n),
            job,
            blocked,
            slips,
            grasp,
            np.zeros((n, 3, 3)),
            one,
            two,
            three,
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, dtype=bool),
        )

    def forget(self, mask: NDArray[np.bool_]) -> None:
        """Puts the worlds in the mask back to before their start."""
        for field in fields(self):
            getattr(self, field.name)[mask] = 0


TRAVEL = 0.11  # least height of tips that travel, m
ABOVE = 0.04  # of travelling tips over the tallest block, m
CARRY = 0.02  # of a carried block over everything else, m
PLACED = 0.012  # distance from the goal at which a block counts as placed, m


@final
@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """The present job of every world, worked out from what is seen and remembered.

    Attributes:
        sight: all that is seen.
        block, goal: those of the job, without an object axis.
        others: what the fingers and the held block must clear.
        goal_yaw: the goal's, or that of an equal pose of the block nearer to its present one.
        held: whether the block is in the fingers.
        destination: of the held block in this phase, (N, 3).
        travel: height at which tips travel.
        unplaced: the first block that is not in its goal, or else the last.
    """

    sight: ArenaState
    block: Boxes
    goal: Boxes
    others: Boxes
    goal_yaw: Floats
    held: NDArray[np.bool_]
    destination: Floats
    travel: Floats
    unplaced: NDArray[np.int64]

    @classmethod
    def of(cls, sight: ArenaState, memory: Memory, blocks: int) -> Jobs:
        """Returns the jobs of all worlds."""
        job, phase = memory.job, memory.phase
        block, goal = sight.blocks.of(job), sight.goals.of(job)
        others = _others(sight, job)
        square = np.abs(block.size[:, 0] - block.size[:, 1]) < 1e-3
        period = np.where(square, np.pi / 2, np.pi)
        goal_yaw = block.yaw + wrap(goal.yaw - block.yaw, period)
        tops = others.position[..., 2] + others.size[..., 2] / 2
        tallest = tops.max(axis=1, initial=0.0)
        high = np.maximum(goal.position[:, 2], tallest + block.size[:, 2] / 2 + CARRY)
        aloft = np.where(phase == Phase.LIFT, memory.path.T[:2], goal.position.T[:2]).T
        aloft = np.concatenate([aloft, high[:, None]], axis=1)
        pairs = sight.goals.position[:, :blocks] - sight.blocks.position[:, :blocks]
        placed = np.sqrt((pairs * pairs).sum(axis=-1)) < PLACED
        return cls(
            sight=sight,
            block=block,
            goal=goal,
            others=others,
            goal_yaw=goal_yaw,
            held=(phase >= Phase.LIFT) & (phase <= Phase.LOWER),
            destination=np.where((phase >= Phase.LOWER)[:, None], goal.position, aloft),
            travel=np.maximum(TRAVEL, np.maximum(tallest, block.size[:, 2]) + ABOVE),
            unplaced=np.where(placed.all(axis=1), blocks - 1, np.argmin(placed, axis=1)),
        )


def _others(sight: ArenaState, job: NDArray[np.int64]) -> Boxes:
    """Returns the blocks that are not the job's, and the obstacles."""
    count = sight.blocks.yaw.shape[1]
    rest = (job[:, None] + 1 + np.arange(count - 1)) % count
    rows = np.arange(len(job))[:, None]
    parts = zip(sight.blocks.parts, sight.obstacles.parts, strict=True)
    return Boxes(*(np.concatenate([b[rows, rest], o], axis=1) for b, o in parts))


def wrap(angle: Floats, period: Any = 2 * np.pi) -> Floats:
    """Returns the angle less whole periods, nearest to zero."""
    return angle - period * np.floor(angle / period + 0.5)
