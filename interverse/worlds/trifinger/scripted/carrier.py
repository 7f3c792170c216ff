"""Carrying blocks to goals: a state machine in fingertip space, one state per world.

The tips go above the block, down beside it, close, lift, carry, lower. The last block is held in
its goal to the end; an earlier one is let go, and looked at again before the next is fetched. A
block that slips is fetched anew, with another grasp.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.scripted.grasp import GRIP, Grasp, choose
from interverse.worlds.trifinger.scripted.reacher import shorten
from interverse.worlds.trifinger.scripted.senses import Boxes, Floats, Senses, Sight

_OPEN = 0.03  # gap between tips and block before closing and after letting go, m
_SQUEEZE = (0.012, 0.007)  # how far into the block the lone tip and each of the pair is told to be
_TRAVEL = 0.11  # least height of tips that travel, m
_ABOVE = 0.04  # of travelling tips over the tallest block, m
_CARRY = 0.02  # of a carried block over everything else, m
_SPIN = 1.0  # rad/s
_UP = 0.5  # how much of a lean is corrected at once; above 1 it swings
_LAG = (0.004, 0.01, 0.1)
_CARE = (0.25, 1.5)
_GAIN = 2.0  # of the integrals that bring the held block where it should be, 1/s
_SLIPPED = 0.04  # distance of a held block from where it should be that means it is lost, m
_PLACED = 0.012  # distance from the goal at which a block counts as placed, m


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


_SPEED = np.array([0.35, 0.35, 0.21, 0.1, 1.0, 1.0, 1.0, 1.0, 0.1])  # of the tips, m/s, by phase
_PATIENCE = np.array([0.6, 1.5, 1.0, 0.45, 6.0, 8.0, 1.5, 0.4, 0.6])  # s, by phase
_PACE = {Phase.LIFT: 0.15, Phase.CARRY: 0.15, Phase.LOWER: 0.09}  # of the held block, m/s


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
        three = [np.zeros((n, 3)) for _ in range(3)]
        return cls(
            phase,
            np.zeros(n),
            job,
            blocked,
            slips,
            grasp,
            np.zeros((n, 3, 3)),
            *three,
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, dtype=bool),
        )


@final
class Carrier:
    """Carries block i to goal i, for the first few blocks in turn."""

    def __init__(self, senses: Senses, *, blocks: int) -> None:
        self._senses, self._blocks = senses, blocks
        self._memory = Memory.of(0)

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Forgets the past of the worlds in the mask."""
        if len(mask) != len(self._memory.phase):
            self._memory = Memory.of(len(mask))
        for field in fields(Memory):
            getattr(self._memory, field.name)[mask] = 0

    def __call__(self, observations: Any) -> NDArray[np.float32]:
        """Returns one action per world."""
        sight, memory = self._senses.read(observations), self._memory
        if len(sight.tips) != len(memory.phase):
            everyone = np.ones(len(sight.tips), dtype=bool)
            self.reset(everyone, np.arange(len(everyone)))
            memory = self._memory
        memory.command[~memory.started] = sight.tips[~memory.started]
        memory.started[:] = True
        scene = Scene.of(sight, memory, self._blocks)
        self._plan(scene)
        self._steer(scene)
        target = _targets(scene, memory)
        step = _SPEED[memory.phase] * self._senses.step_time
        arrived = np.sqrt(((target - memory.command) ** 2).sum(axis=-1)).max(axis=1) < 1e-3
        memory.command += shorten(target - memory.command, step[:, None])
        self._advance(scene, target, arrived)
        return self._senses.action(memory.command, sight)

    def _plan(self, scene: Scene) -> None:
        """Chooses a grasp where the fingers are still on their way up."""
        memory = self._memory
        rows = np.flatnonzero(memory.phase == Phase.RAISE)
        if len(rows):
            sight = scene.sight
            some = Sight(
                *(a[rows] for a in (sight.joints, sight.tips, sight.height)),
                *(a.at(rows) for a in (sight.blocks, sight.goals, sight.obstacles)),
            )
            goal = Boxes(*scene.goal.parts).at(rows)
            goal.yaw[:] = scene.goal_yaw[rows]
            memory.grasp[rows] = choose(
                some,
                scene.block.at(rows),
                goal,
                scene.others.at(rows),
                rank=memory.blocked[rows] + memory.slips[rows] // 2,
            )

    def _steer(self, scene: Scene) -> None:
        """Moves on where the held block should be, and corrects for where it is."""
        memory, block, dt = self._memory, scene.block, self._senses.step_time
        held, gripped = scene.held, memory.phase >= Phase.LIFT
        pace = np.select([memory.phase == p for p in _PACE], list(_PACE.values())) * dt
        lag = memory.path - block.position
        lag = np.sqrt((lag * lag).sum(axis=-1))
        pace = pace * np.clip((_LAG[1] - lag) / (_LAG[1] - _LAG[0]), _LAG[2], 1.0)
        pace = pace * np.where(memory.slips > 0, _CARE[0], 1.0)
        path = memory.path + shorten(scene.destination - memory.path, pace)
        memory.path = np.where(gripped[:, None], path, block.position)
        error = np.clip(memory.path - block.position, -0.01, 0.01)
        memory.offset = _integrate(memory.offset, error, memory.phase, dt, most=0.03)
        sunk = _sunk(scene)
        memory.level = _integrate(memory.level, sunk, memory.phase, dt, most=0.02)
        turning = held & (memory.phase >= Phase.CARRY)
        ahead = np.clip(_wrap(scene.goal_yaw - memory.yaw), -_SPIN * dt, _SPIN * dt)
        memory.yaw = np.where(gripped, memory.yaw + np.where(turning, ahead, 0.0), block.yaw)
        quarter = _wrap(memory.yaw - block.yaw, np.pi / 2)
        memory.twist = _integrate(memory.twist, quarter, memory.phase, dt, most=0.3)

    def _advance(self, scene: Scene, target: Floats, arrived: NDArray[np.bool_]) -> None:
        """Goes on to the next phase where the present one is done, back where it failed."""
        memory, sight = self._memory, scene.sight
        memory.since += self._senses.step_time
        phase, late = memory.phase, memory.since > _PATIENCE[memory.phase]
        lag = np.sqrt(((sight.tips - target) ** 2).sum(axis=-1)).max(axis=1)
        apart = np.sqrt(((memory.path - scene.block.position) ** 2).sum(axis=-1))
        there = np.sqrt(((scene.destination - memory.path) ** 2).sum(axis=-1)) < 1e-4
        last = memory.job == self._blocks - 1
        done = np.select(
            [phase == p for p in Phase],
            [
                (sight.tips[..., 2].min(axis=1) > scene.travel - 0.02) | late,
                (arrived & (lag < 0.012)) | late,
                (arrived & (lag < 0.008)) | late,
                late,
                there | late,
                (there & (apart < 0.006)) | late,
                ~last & there & ((apart < 0.003) | late),
                late,
                arrived | late,
            ],
            default=False,
        )
        blocked = (phase == Phase.DESCEND) & late & (lag > 0.02)
        slipped = scene.held & (apart > _SLIPPED)
        memory.blocked[blocked] += 1
        memory.slips[slipped] += 1
        memory.command[slipped] = sight.tips[slipped]
        memory.path[slipped], memory.offset[slipped] = scene.block.position[slipped], 0.0
        opened = done & (phase == Phase.OPEN)
        memory.job[opened] = scene.unplaced[opened]
        memory.phase = np.select(
            [slipped, blocked | opened, done], [Phase.OPEN, Phase.RAISE, phase + 1], phase
        )
        memory.since[slipped | done] = 0.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scene:
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

    sight: Sight
    block: Boxes
    goal: Boxes
    others: Boxes
    goal_yaw: Floats
    held: NDArray[np.bool_]
    destination: Floats
    travel: Floats
    unplaced: NDArray[np.int64]

    @classmethod
    def of(cls, sight: Sight, memory: Memory, blocks: int) -> Scene:
        """Returns the jobs of all worlds."""
        job, phase = memory.job, memory.phase
        block, goal = sight.blocks.of(job), sight.goals.of(job)
        others = _others(sight, job)
        square = np.abs(block.size[:, 0] - block.size[:, 1]) < 1e-3
        period = np.where(square, np.pi / 2, np.pi)
        goal_yaw = block.yaw + _wrap(goal.yaw - block.yaw, period)
        tops = others.position[..., 2] + others.size[..., 2] / 2
        tallest = tops.max(axis=1, initial=0.0)
        high = np.maximum(goal.position[:, 2], tallest + block.size[:, 2] / 2 + _CARRY)
        aloft = np.where(phase == Phase.LIFT, memory.path.T[:2], goal.position.T[:2]).T
        aloft = np.concatenate([aloft, high[:, None]], axis=1)
        pairs = sight.goals.position[:, :blocks] - sight.blocks.position[:, :blocks]
        placed = np.sqrt((pairs * pairs).sum(axis=-1)) < _PLACED
        return cls(
            sight=sight,
            block=block,
            goal=goal,
            others=others,
            goal_yaw=goal_yaw,
            held=(phase >= Phase.LIFT) & (phase <= Phase.LOWER),
            destination=np.where((phase >= Phase.LOWER)[:, None], goal.position, aloft),
            travel=np.maximum(_TRAVEL, np.maximum(tallest, block.size[:, 2]) + _ABOVE),
            unplaced=np.where(placed.all(axis=1), blocks - 1, np.argmin(placed, axis=1)),
        )


def _others(sight: Sight, job: NDArray[np.int64]) -> Boxes:
    """Returns the blocks that are not the job's, and the obstacles."""
    count = sight.blocks.yaw.shape[1]
    rest = (job[:, None] + 1 + np.arange(count - 1)) % count
    rows = np.arange(len(job))[:, None]
    parts = zip(sight.blocks.parts, sight.obstacles.parts, strict=True)
    return Boxes(*(np.concatenate([b[rows, rest], o], axis=1) for b, o in parts))


def _targets(scene: Scene, memory: Memory) -> Floats:
    """Returns where the tips should be in the end of their present phase, (N, 3, 3)."""
    block, grasp = scene.block, Grasp.of(memory.grasp)
    squeeze = np.where(grasp.alone, *_SQUEEZE) * np.where(memory.slips > 0, _CARE[1], 1.0)[:, None]
    grip = block.position[:, 2] + GRIP
    beside = grasp.ring(block.position, block.yaw, block.size, _OPEN)
    around = grasp.ring(block.position, block.yaw, block.size, -squeeze)
    loose = (memory.phase == Phase.LOOSEN) * np.minimum(memory.since / _PATIENCE[Phase.LOOSEN], 1.0)
    firm = 1.0 - loose[:, None]
    led, yaw = memory.path + memory.offset, memory.yaw + memory.twist
    holding = grasp.ring(led, yaw, block.size, -squeeze * firm)
    at_hold = (led[:, 2] + GRIP)[:, None] + memory.level + _UP * _sunk(scene)
    apart = grasp.ring(led, yaw, block.size, _OPEN)
    here = memory.command
    at = {
        Phase.RAISE: (here[..., :2], np.maximum(scene.travel[:, None], scene.sight.tips[..., 2])),
        Phase.TRAVEL: (beside, scene.travel),
        Phase.DESCEND: (beside, grip),
        Phase.CLOSE: (around, grip),
        Phase.LIFT: (holding, at_hold),
        Phase.CARRY: (holding, at_hold),
        Phase.LOWER: (holding, at_hold),
        Phase.LOOSEN: (holding, at_hold),
        Phase.OPEN: (apart, here[..., 2]),
    }
    places = np.stack([_raised(*at[phase]) for phase in Phase])
    return places[memory.phase, np.arange(len(memory.phase))]


def _sunk(scene: Scene) -> Floats:
    """Returns how much too low the block is at each tip because it leans, (N, 3), m."""
    away = scene.sight.tips[..., :2] - scene.block.position[:, None, :2]
    return (away * scene.block.lean[:, None]).sum(axis=-1)


def _raised(xy: Floats, z: Floats) -> Floats:
    """Returns points (N, 3, 3) from x and y (N, 3, 2) and heights (N,) or (N, 3)."""
    heights = z[:, None] if z.ndim == 1 else z
    return np.concatenate([xy, np.broadcast_to(heights, xy.shape[:2])[..., None]], axis=-1)


def _integrate(
    value: Floats, error: Floats, phase: NDArray[np.int64], dt: float, *, most: float
) -> Floats:
    """Returns the integral while the block is held, what it was while it is let go, else 0."""
    phase = phase.reshape(-1, *(1,) * (value.ndim - 1))
    held = np.where(phase <= Phase.LOWER, np.clip(value + _GAIN * dt * error, -most, most), value)
    return np.where(phase >= Phase.LIFT, held, 0.0)


def _wrap(angle: Floats, period: Any = 2 * np.pi) -> Floats:
    """Returns the angle less whole periods, nearest to zero."""
    return angle - period * np.floor(angle / period + 0.5)
