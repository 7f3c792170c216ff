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

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, explain
from interverse.worlds.trifinger.observation import ObservationLayout
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.scripted.grasp import GRIP, Grasp, choose
from interverse.worlds.trifinger.scripted.observer import (
    ArenaState,
    Boxes,
    Floats,
    Jobs,
    Memory,
    ObservationReader,
    Phase,
    wrap,
)

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
            some = ArenaState(
                sight.joints[rows],
                sight.tips[rows],
                sight.height[rows],
                sight.blocks.at(rows),
                sight.goals.at(rows),
                sight.obstacles.at(rows),
            )
            goal = Boxes(*jobs.goal.parts).at(rows)
            goal.yaw[:] = jobs.goal_yaw[rows]
            memory.grasp[rows] = choose(
                some,
                jobs.block.at(rows),
                goal,
                jobs.others.at(rows),
                rank=memory.blocked[rows] + memory.slips[rows] // 2,
            )

    def _steer(self, jobs: Jobs) -> None:
        """Moves on where the held block should be, and corrects for where it is."""
        memory, block, dt = self._memory, jobs.block, self._senses.step_time
        held, gripped = jobs.held, memory.phase >= Phase.LIFT
        path = memory.path + shorten(jobs.destination - memory.path, _pace(jobs, memory) * dt)
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


def _pace(jobs: Jobs, memory: Memory) -> Floats:
    """Returns how fast held blocks should move, (N,), m/s: those that lag or slipped, slowly."""
    pace = np.select([memory.phase == p for p in _PACE], list(_PACE.values()), default=0.0)
    lag = length(memory.path - jobs.block.position)
    ease = np.clip((_LAG[1] - lag) / (_LAG[1] - _LAG[0]), _LAG[2], 1.0)
    return pace * ease * np.where(memory.slips > 0, _CARE[0], 1.0)


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
        options: of the world; other action modes than joint_positions raise.
    """
    if options.task != "reaching" and options.task not in CARRYING:
        return None
    if options.action_mode != "joint_positions":
        raise InvalidValueError(
            explain(
                f"the scripted policy cannot act in action_mode {options.action_mode!r}",
                allowed="joint_positions",
                fix="Make the world with the default action_mode",
            )
        )
    if options.observation_mode == "pixel":
        raise InvalidValueError(
            explain(
                "the scripted policy cannot see pixels",
                allowed="observation_mode structured or mixed",
            )
        )
    senses = ObservationReader(layout, options)
    if options.task == "reaching":
        return Reacher(senses)
    return Carrier(senses, blocks=CARRYING[options.task])
