"""The dense reward terms of the five tasks that have them, as functions of two moments.

A term is progress (a quantity before minus the same now) or a present cost, (N,). The reward of a
step is dt times the weighted terms plus the weighted fractional success, see `total`.
Formulas are those of the original's code, which its published results come from; where that code
slips, the caller chooses: see `pick_and_place` and `total`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from interverse.sim.arrays import namespace

Array = Any  # a NumPy array or a Torch tensor

PLACED = 0.02  # stacking2: the lower block counts as placed within this distance, m
ALIGNED = 0.005  # stacking2: the upper block needs no lift within this horizontal distance, m
CARRY_HEIGHT = 0.15  # pick_and_place: wanted height while the block is on the wrong side, m


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """What the rewards look at, at one moment; heights from the datum."""

    tips: Array  # fingertips, (N, 9), m
    rates: Array  # joint velocities, (N, 9), rad/s
    positions: Array  # of the blocks, (N, B, 3), m
    orientations: Array  # of the blocks, (N, B, 4)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The goals the rewards look at."""

    positions: Array  # (N, G, 3), m
    orientations: Array  # (N, G, 4)
    sizes: Array  # (N, G, 3), m


def pushing(before: Moment, now: Moment, goal: Targets) -> tuple[Array, ...]:
    """Returns progress of the tips to the block, of the block to the goal, and of its angle."""
    return (
        _progress(tip_distance, before, now),
        _progress(lambda m: _norm(goal.positions[:, 0] - m.positions[:, 0]), before, now),
        _progress(lambda m: angle_to(goal.orientations[:, 0], m.orientations[:, 0]), before, now),
    )


def picking(before: Moment, now: Moment, goal: Targets, size: Array) -> tuple[Array, ...]:
    """Returns progress and cost of height, of distance to the centre, of the tips; spread; jerk.

    Args:
        before: the moment before the step.
        now: the moment after it.
        goal: the goal.
        size: the block's edges, (N, 3), m.
    """
    xp = namespace(now.tips)

    def height(m: Moment) -> Array:
        return xp.abs(m.positions[:, 0, 2] - goal.positions[:, 0, 2])

    def radius(m: Moment) -> Array:
        return _norm(m.positions[:, 0, :2])

    return (
        _progress(height, before, now),
        -height(now),
        _progress(radius, before, now),
        -radius(now),
        _progress(tip_distance, before, now),
        -tip_distance(now),
        -_spread(xp, now, size),
        -_norm(now.rates - before.rates),
    )


def pick_and_place(
    before: Moment, now: Moment, goal: Targets, reference_rates: Array
) -> tuple[Array, ...]:
    """Returns progress of the tips, of the block across, of its height, of its angle; and jerk.

    Args:
        before: the moment before the step.
        now: the moment after it.
        goal: the goal.
        reference_rates: the joint velocities that the present ones are compared with, (N, 9):
            `before.rates` as the paper says; the original's code keeps those of the reset.
    """
    xp = namespace(now.tips)
    across = xp.sign(now.positions[:, 0, 1]) != xp.sign(goal.positions[:, 0, 1])
    wanted = xp.where(across, CARRY_HEIGHT, goal.sizes[:, 0, 2] / 2)
    return (
        _progress(tip_distance, before, now),
        _progress(lambda m: _norm((goal.positions - m.positions[:, :1])[:, 0, :2]), before, now),
        _progress(lambda m: xp.abs(m.positions[:, 0, 2] - wanted), before, now),
        _progress(lambda m: angle_to(goal.orientations[:, 0], m.orientations[:, 0]), before, now),
        -_norm(now.rates - reference_rates),
    )


def stacking2(before: Moment, now: Moment, goal: Targets) -> tuple[Array, ...]:
    """Returns the five terms of stacking: first the lower block's, once placed the upper one's."""
    xp = namespace(now.tips)

    def apart(m: Moment) -> Array:
        return _norm((m.positions[:, 0] - m.positions[:, 1])[:, :2])

    def to_goal(m: Moment) -> Array:
        return _norm(m.positions[:, 0] - goal.positions[:, 0])

    def to_height(m: Moment) -> Array:
        return xp.abs(m.positions[:, 1, 2] - goal.positions[:, 1, 2])

    placed = to_goal(now) < PLACED
    lower = _progress(lambda m: tip_distance(m, 0), before, now)
    upper = _progress(lambda m: tip_distance(m, 1), before, now)
    lift = placed & (apart(now) >= ALIGNED)
    align = placed & (now.positions[:, 1, 2] > goal.positions[:, 1, 2])
    return (
        xp.where(placed, upper, lower),
        xp.where(placed, 0.0, _progress(to_goal, before, now)),
        xp.where(lift, _progress(to_height, before, now), 0.0),
        xp.where(align, _progress(apart, before, now), 0.0),
        -_norm(now.rates - before.rates),
    )


def reaching(before: Moment, now: Moment, goals: Array, torques: Array) -> tuple[Array, ...]:
    """Returns progress and cost of the tips' distance, the cost of torque, and of jerk.

    Args:
        before: the moment before the step.
        now: the moment after it.
        goals: the three goals, (N, 9), m.
        torques: applied joint torques, (N, 9), N m; the original always reads zeros.
    """

    def distance(m: Moment) -> Array:
        return _norm(goals - m.tips)

    return (
        _progress(distance, before, now),
        -distance(now),
        -_norm(torques),
        -_norm(now.rates - before.rates),
    )


def total(
    terms: Sequence[Array],
    weights: Sequence[float],
    bonus: Array,
    bonus_weight: float,
    dt: float,
) -> Array:
    """Returns the dense reward of a step, (N,).

    Args:
        terms: the task's terms; none for the tasks without dense terms.
        weights: one for each term.
        bonus: the fractional success, (N,). (The original's reaching puts the mean distance here,
            so that distance is rewarded.)
        bonus_weight: its weight.
        dt: seconds a step takes.
    """
    reward = bonus_weight * bonus
    for term, weight in zip(terms, weights, strict=True):
        if weight != 0:
            reward = reward + weight * term
    return dt * reward


def sparse(success: Array, dt: float) -> Array:
    """Returns dt where the step succeeded, else 0, (N,)."""
    xp = namespace(success)
    return dt * xp.where(success, 1.0, 0.0)


def tip_distance(m: Moment, block: int = 0) -> Array:
    """Returns the root of the summed squares of the three tips' distances to a block, (N,)."""
    xp = namespace(m.tips)
    tips = xp.reshape(m.tips, (m.tips.shape[0], 3, 3))
    return _norm(xp.reshape(tips - m.positions[:, block, None], m.tips.shape))


def angle_to(goal: Array, block: Array) -> Array:
    """Returns twice the arc cosine of the scalar part of goal * conj(block): 0 to 2 pi, (N,)."""
    xp = namespace(goal)
    scalar = (
        goal[..., 3] * block[..., 3]
        + goal[..., 0] * block[..., 0]
        + goal[..., 1] * block[..., 1]
        + goal[..., 2] * block[..., 2]
    )
    return 2.0 * xp.acos(scalar.clip(-1.0, 1.0))


def _spread(xp: Any, m: Moment, size: Array) -> Array:
    """Returns the two nearest fingers' mean distances beyond the block's size, summed, (N,)."""
    tips = xp.reshape(m.tips, (m.tips.shape[0], 3, 3))
    gap = xp.abs(tips - m.positions[:, :1])
    gap = xp.where(gap < size[:, None], 0.0, gap)
    mean = (gap[..., 0] + gap[..., 1] + gap[..., 2]) / 3
    one, two, three = mean[:, 0], mean[:, 1], mean[:, 2]
    return one + two + three - xp.maximum(xp.maximum(one, two), three)


def _progress(quantity: Any, before: Moment, now: Moment) -> Array:
    return quantity(before) - quantity(now)


def _norm(v: Array) -> Array:
    """Returns the Euclidean norm over the last axis, summed term by term."""
    xp = namespace(v)
    square = v[..., 0] * v[..., 0]
    for i in range(1, v.shape[-1]):
        square = square + v[..., i] * v[..., i]
    return xp.sqrt(square)
