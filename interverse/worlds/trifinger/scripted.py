"""Hand-written policies for five tasks: the baselines that learning has to beat.

They read the structured observation alone, think in fingertip space for all worlds at once, and
command joint positions through the closed-form inverse kinematics.

Reaching: each tip heads for its own point, and an integral takes away the sag. Carrying is a state
machine in fingertip space, one state per world: the tips go above the block, down beside it,
close, lift, carry, lower. The last block is held in its goal to the end; an earlier one is let go,
and looked at again before the next is fetched. A block that slips is fetched anew, more slowly and
held more tightly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.worlds.trifinger.grasps import (
    GRIP,
    ArenaState,
    Boxes,
    Floats,
    Grasp,
    ObservationReader,
    choose,
)
from interverse.worlds.trifinger.observation import ObservationLayout
from interverse.worlds.trifinger.options import TriFingerOptions


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
        whole = dict.fromkeys(("phase", "job", "blocked", "slips", "grasp"), np.int64)
        kinds = {**whole, "started": np.bool_}
        shapes = {"command": (3, 3), **dict.fromkeys(("path", "offset", "level"), (3,))}
        names = [field.name for field in fields(cls)]
        return cls(*(np.zeros((n, *shapes.get(k, ())), kinds.get(k, float)) for k in names))

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
        count, rows = sight.blocks.yaw.shape[1], np.arange(len(job))[:, None]
        rest = (job[:, None] + 1 + np.arange(count - 1)) % count  # blocks that are not the job's
        parts = zip(sight.blocks.parts, sight.obstacles.parts, strict=True)
        others = Boxes(*(np.concatenate([b[rows, rest], o], axis=1) for b, o in parts))
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


def wrap(angle: Floats, period: Any = 2 * np.pi) -> Floats:
    """Returns the angle less whole periods, nearest to zero."""
    return angle - period * np.floor(angle / period + 0.5)


CARRYING = {"pushing": 1, "picking": 1, "pick_and_place": 1, "stacking2": 2}  # blocks to carry
_REACH_SPEED = 0.5  # of the commanded tips, m/s
_REACH_GAIN = 3.0  # of the integral, 1/s
_REACH_NEAR = 0.01  # errors beyond this count as this much, m
_MOST = 0.03  # of the integral, m


@final
class Reacher:
    """Brings three tips to three goals."""

    def __init__(self, senses: ObservationReader) -> None:
        self._senses = senses
        self._started = np.zeros(0, dtype=bool)

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Forgets the commands of the worlds in the mask."""
        if len(mask) != len(self._started):
            self._started = np.zeros(len(mask), dtype=bool)
            self._command, self._integral = np.zeros((2, len(mask), 3, 3))
        self._started[mask] = False
        self._integral[mask] = 0.0

    def __call__(self, observations: Any) -> NDArray[np.float32]:
        """Returns one action per world."""
        sight = self._senses.read(observations)
        if len(sight.tips) != len(self._started):
            self.reset(np.ones(len(sight.tips), dtype=bool), np.arange(len(sight.tips)))
        step, goal = self._senses.step_time, sight.goals.position
        command = np.where(self._started[:, None, None], self._command, sight.tips)
        self._command = command + shorten(goal - command, _REACH_SPEED * step)
        error = np.clip(goal - sight.tips, -_REACH_NEAR, _REACH_NEAR)
        self._integral = np.clip(self._integral + _REACH_GAIN * step * error, -_MOST, _MOST)
        self._started[:] = True
        return self._senses.action(self._command + self._integral, sight)


def shorten(vector: Any, most: Any) -> Any:
    """Returns vectors, (..., 3), no longer than `most`, a number or (...)."""
    return vector * np.minimum(1.0, most / np.maximum(length(vector), 1e-9))[..., None]


def length(vector: Any) -> Any:
    """Returns the lengths of vectors, (..., 3)."""
    return np.sqrt((vector * vector).sum(axis=-1))


_OPEN = 0.03  # gap between tips and block before closing and after letting go, m
_SQUEEZE = (0.012, 0.007)  # how far into the block the lone tip and each of the pair is told to be
_CARE = (0.15, 2.0)  # after a slip, the pace and the squeeze change by these factors
_LAG = (0.01, 0.03, 0.2)  # m behind its path at which a held block slows down, m, and to what share
_SLIPPED = 0.03  # distance of a held block from its path that means it is lost, m
_SPIN = 1.0  # of a held block, rad/s
_UP = 0.5  # share of a lean that is corrected at once; above 1 it swings
_GAIN = 2.0  # of the integrals that bring the held block where it should be, 1/s
_NEAR = 0.01  # errors beyond this count as this much in them, m
_SPEED = np.array([0.35, 0.35, 0.21, 0.1, 1.0, 1.0, 1.0, 1.0, 0.1])  # of the tips, m/s, by phase
_PATIENCE = np.array([0.6, 1.5, 1.0, 0.45, 6.0, 8.0, 1.5, 0.4, 0.6])  # s, by phase
_PACE = {Phase.LIFT: 0.15, Phase.CARRY: 0.15, Phase.LOWER: 0.09}  # of the held block, m/s


@final
class Carrier:
    """Carries block i to goal i, for the first few blocks in turn."""

    def __init__(self, senses: ObservationReader, *, blocks: int) -> None:
        self._senses, self._blocks = senses, blocks
        self._memory = Memory.of(0)

    def reset(self, mask: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
        """Forgets the past of the worlds in the mask."""
        if len(mask) != len(self._memory.phase):
            self._memory = Memory.of(len(mask))
        self._memory.forget(mask)

    def __call__(self, observations: Any) -> NDArray[np.float32]:
        """Returns one action per world."""
        sight, memory = self._senses.read(observations), self._memory
        if len(sight.tips) != len(memory.phase):
            everyone = np.ones(len(sight.tips), dtype=bool)
            self.reset(everyone, np.arange(len(everyone)))
            memory = self._memory
        memory.command[~memory.started] = sight.tips[~memory.started]
        memory.started[:] = True
        jobs = Jobs.of(sight, memory, self._blocks)
        self._plan(jobs)
        self._steer(jobs)
        target = _targets(jobs, memory)
        step = _SPEED[memory.phase] * self._senses.step_time
        arrived = length(target - memory.command).max(axis=1) < 1e-3
        memory.command += shorten(target - memory.command, step[:, None])
        self._advance(jobs, target, arrived)
        return self._senses.action(memory.command, sight)

    def _plan(self, jobs: Jobs) -> None:
        """Chooses a grasp where the fingers are still on their way up."""
        memory = self._memory
        rows = np.flatnonzero(memory.phase == Phase.RAISE)
        if len(rows):
            sight = jobs.sight
            goal = jobs.goal.at(rows)
            goal.yaw[:] = jobs.goal_yaw[rows]
            objects = jobs.block.at(rows), goal, jobs.others.at(rows)
            rank = memory.blocked[rows] + memory.slips[rows] // 2
            hinges = sight.joints[rows], sight.height[rows]
            memory.grasp[rows] = choose(*hinges, *objects, rank=rank)

    def _steer(self, jobs: Jobs) -> None:
        """Moves on where the held block should be, and corrects for where it is."""
        memory, block, dt = self._memory, jobs.block, self._senses.step_time
        held, gripped = jobs.held, memory.phase >= Phase.LIFT
        # held blocks that lag or slipped go slowly
        pace = np.select([memory.phase == p for p in _PACE], list(_PACE.values()), default=0.0)
        lag = length(memory.path - block.position)
        ease = np.clip((_LAG[1] - lag) / (_LAG[1] - _LAG[0]), _LAG[2], 1.0)
        pace = pace * ease * np.where(memory.slips > 0, _CARE[0], 1.0)
        path = memory.path + shorten(jobs.destination - memory.path, pace * dt)
        memory.path = np.where(gripped[:, None], path, block.position)
        error = np.clip(memory.path - block.position, -_NEAR, _NEAR)
        memory.offset = _integrate(memory.offset, error, memory.phase, dt, most=0.03)
        sunk = _sunk(jobs)
        memory.level = _integrate(memory.level, sunk, memory.phase, dt, most=0.02)
        turning = held & (memory.phase >= Phase.CARRY)
        ahead = np.clip(wrap(jobs.goal_yaw - memory.yaw), -_SPIN * dt, _SPIN * dt)
        memory.yaw = np.where(gripped, memory.yaw + np.where(turning, ahead, 0.0), block.yaw)
        quarter = wrap(memory.yaw - block.yaw, np.pi / 2)
        memory.twist = _integrate(memory.twist, quarter, memory.phase, dt, most=0.3)

    def _advance(self, jobs: Jobs, target: Floats, arrived: NDArray[np.bool_]) -> None:
        """Goes on to the next phase where the present one is done, back where it failed."""
        memory, sight = self._memory, jobs.sight
        memory.since += self._senses.step_time
        phase, late = memory.phase, memory.since > _PATIENCE[memory.phase]
        lag = length(sight.tips - target).max(axis=1)
        apart = length(memory.path - jobs.block.position)
        there = length(jobs.destination - memory.path) < 1e-4
        last = memory.job == self._blocks - 1
        done = np.select(
            [phase == p for p in Phase],
            [
                (sight.tips[..., 2].min(axis=1) > jobs.travel - 0.02) | late,
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
        slipped = jobs.held & (apart > _SLIPPED)
        memory.blocked[blocked] += 1
        memory.slips[slipped] += 1
        memory.command[slipped] = sight.tips[slipped]
        memory.path[slipped], memory.offset[slipped] = jobs.block.position[slipped], 0.0
        opened = done & (phase == Phase.OPEN)
        memory.job[opened] = jobs.unplaced[opened]
        memory.phase = np.select(
            [slipped, blocked | opened, done], [Phase.OPEN, Phase.RAISE, phase + 1], phase
        )
        memory.since[slipped | done] = 0.0


def _targets(jobs: Jobs, memory: Memory) -> Floats:
    """Returns where the tips should be in the end of their present phase, (N, 3, 3)."""
    block, grasp = jobs.block, Grasp.of(memory.grasp)
    squeeze = np.where(grasp.alone, *_SQUEEZE) * np.where(memory.slips > 0, _CARE[1], 1.0)[:, None]
    grip = block.position[:, 2] + GRIP
    beside = grasp.ring(block.position, block.yaw, block.size, _OPEN)
    around = grasp.ring(block.position, block.yaw, block.size, -squeeze)
    loose = (memory.phase == Phase.LOOSEN) * np.minimum(memory.since / _PATIENCE[Phase.LOOSEN], 1.0)
    firm = 1.0 - loose[:, None]
    led, yaw = memory.path + memory.offset, memory.yaw + memory.twist
    holding = grasp.ring(led, yaw, block.size, -squeeze * firm)
    at_hold = (led[:, 2] + GRIP)[:, None] + memory.level + _UP * _sunk(jobs)
    apart = grasp.ring(led, yaw, block.size, _OPEN)
    here = memory.command
    at = {
        Phase.RAISE: (here[..., :2], np.maximum(jobs.travel[:, None], jobs.sight.tips[..., 2])),
        Phase.TRAVEL: (beside, jobs.travel),
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


def _sunk(jobs: Jobs) -> Floats:
    """Returns how much too low the block is at each tip because it leans, (N, 3), m."""
    away = jobs.sight.tips[..., :2] - jobs.block.position[:, None, :2]
    return (away * jobs.block.lean[:, None]).sum(axis=-1)


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


def scripted_policy(layout: ObservationLayout, options: TriFingerOptions) -> Any:
    """Returns the baseline of a task, or None where there is none.

    Args:
        layout: of the structured observation.
        options: of the world; modes of torques and of offsets raise.
    """
    if options.task != "reaching" and options.task not in CARRYING:
        return None
    if options.action_mode not in ("joint_positions", "end_effector_positions"):
        raise InvalidValueError(
            f"the scripted policy cannot act in action_mode {options.action_mode!r}",
            allowed="joint_positions, end_effector_positions",
            fix="Make the world with the default action_mode",
        )
    if options.observation_mode == "pixel":
        raise InvalidValueError(
            "the scripted policy cannot see pixels", allowed="observation_mode structured or mixed"
        )
    senses = ObservationReader(layout, options)
    if options.task == "reaching":
        return Reacher(senses)
    return Carrier(senses, blocks=CARRYING[options.task])
