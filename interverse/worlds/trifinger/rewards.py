"""Scores and rewards: an instant of N worlds, the filled share of the goals, dense reward terms.

A term is progress (a quantity before minus the same now) or a present cost, (N,). The reward of a
step is dt times the weighted terms plus the weighted fractional success, see `total`.
Formulas are those of the original's code, which its published results come from; where that code
slips, the caller chooses: see `Instant` and `total`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

from interverse.core.arrays import Array, device, matrix, namespace, sum_last, unit
from interverse.sim.boxes import BoxPoses, intersection_volume

PLACED = 0.02  # stacking2: the lower block counts as placed within this distance, m
ALIGNED = 0.005  # stacking2: the upper block needs no lift within this horizontal distance, m
CARRY_HEIGHT = 0.15  # pick_and_place: wanted height while the block is on the wrong side, m


@final
@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The goals. What is not there has size zero.

    Attributes:
        positions: (N, G, 3), m.
        orientations: (N, G, 4).
        sizes: full edges, (N, G, 3), m.
        bounds: lowest and highest corners, (N, G, 2, 3), m.
    """

    positions: Array
    orientations: Array
    sizes: Array
    bounds: Array = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Instant:
    """What rewards and scores are made of, for N worlds; heights from the datum.

    Attributes:
        tips: fingertips, (N, 9), m.
        rates: joint velocities, (N, 9), rad/s.
        positions, orientations, sizes, bounds: of the blocks, as in `Targets`.
        goals: the goals.
        torques: gives what the motors apply, (N, 9), N m.
        reference_rates: what pick_and_place compares later joint velocities with, (N, 9), rad/s:
            these ones, as the paper says; the original's code keeps those of the reset.
        fraction: the fractional success, (N,).
        own: values of the variables that the task names as its `own`.
    """

    tips: Array
    rates: Array
    positions: Array
    orientations: Array
    sizes: Array = None
    bounds: Array = None
    goals: Any = None
    torques: Callable[[], Array] = tuple  # none by default
    reference_rates: Array = None
    fraction: Array = None
    own: Any = None


# --- scores --------------------------------------------------------------------------------------


def bounds(position: Array, orientation: Array, size: Array) -> Array:
    """Returns the axis-aligned bounding boxes of boxes, (..., 2, 3): lowest and highest corner.

    Args:
        position: centres, (..., 3), m.
        orientation: quaternions, (..., 4).
        size: full edges, (..., 3), m.
    """
    half = sum_last(abs(matrix(orientation)) * size[..., None, :]) / 2
    return namespace(position).stack([position - half, position + half], axis=-2)


def vertical_extent(orientation: Array, size: Array) -> Array:
    """Returns how far boxes reach from their lowest to their highest point, (...), m."""
    return sum_last(abs(matrix(orientation)[..., 2, :]) * size)


def aabb_score(blocks: Array, goals: Array) -> Array:
    """Returns the filled fraction of the goals' bounding boxes, (N,); 1 where there is no goal.

    Blocks that overlap count twice, as in the original, so the score can exceed 1. A padded entry
    is a box of size zero. Sums run in a fixed order, so a batch equals single worlds bit for bit.

    Args:
        blocks: bounding boxes of the movable blocks, (N, B, 2, 3).
        goals: bounding boxes of the goals, (N, G, 2, 3).
    """
    edges = _overlap(blocks, goals).clip(0.0, None)
    return filled_share(product(edges), product(goals[..., 1, :] - goals[..., 0, :]))


def _overlap(blocks: Array, goals: Array) -> Array:
    """Returns how far blocks' and goals' bounding boxes overlap along x, y, z, (N, B, G, 3)."""
    xp, b, g = namespace(blocks, goals), blocks[:, :, None], goals[:, None]
    return xp.minimum(b[..., 1, :], g[..., 1, :]) - xp.maximum(b[..., 0, :], g[..., 0, :])


def filled_share(shared: Array, volumes: Array) -> Array:
    """Returns the sum of shared volumes (N, B, G) over that of the goals (N, G), (N,)."""
    xp = namespace(volumes)
    if volumes.shape[-1] == 0:
        return xp.ones(volumes.shape[0], dtype=volumes.dtype, device=device(volumes))
    filled = sum((shared[:, b] for b in range(shared.shape[1])), xp.zeros_like(volumes))
    whole = sum_last(volumes)
    none = whole == 0
    return xp.where(none, 1.0, sum_last(filled) / xp.where(none, 1.0, whole))


def reaching_score(tips: Array, goals: Array) -> tuple[Array, Array]:
    """Returns the fractional success and the mean distance m of reaching, each (N,).

    m is the mean over the nine coordinates of |tip - goal|; success is m < 0.01, and the fraction
    falls from 1 at 0.01 to 0 at 0.03.

    Args:
        tips: the fingertips, (N, 9), m.
        goals: where they belong, (N, 9), m.
    """
    mean = sum_last(abs(tips - goals)) / 9
    return 1.0 - (mean.clip(0.01, 0.03) - 0.01) / 0.02, mean


def product(v: Array) -> Array:
    """Returns the product of three coordinates, (...)."""
    return v[..., 0] * v[..., 1] * v[..., 2]


# --- dense terms ---------------------------------------------------------------------------------


def pushing(before: Instant, now: Instant) -> tuple[Array, ...]:
    """Returns progress of the tips to the block, of the block to the goal, and of its angle."""
    place, turn = now.goals.positions[:, 0], now.goals.orientations[:, 0]

    def distances(m: Instant) -> tuple[Array, ...]:
        to_goal = _norm(place - m.positions[:, 0]), angle_to(turn, m.orientations[:, 0])
        return tip_distance(m), *to_goal

    return _progress(distances(before), distances(now))


def picking(before: Instant, now: Instant) -> tuple[Array, ...]:
    """Returns progress and cost of height, of distance to the centre, of the tips; spread; jerk."""
    goal = now.goals.positions[:, 0, 2]

    def distances(m: Instant) -> tuple[Array, ...]:
        block = m.positions[:, 0]
        return abs(block[:, 2] - goal), _norm(block[:, :2]), tip_distance(m)

    height, centre, tips = left = distances(now)
    rise, shift, reach = _progress(distances(before), left)
    ends = -_spread(now), -_norm(now.rates - before.rates)
    return rise, -height, shift, -centre, reach, -tips, *ends


def pick_and_place(before: Instant, now: Instant) -> tuple[Array, ...]:
    """Returns progress of the tips, of the block across, of its height, of its angle; and jerk."""
    xp, goal, turn = namespace(now.tips), now.goals.positions[:, 0], now.goals.orientations[:, 0]
    across = xp.sign(now.positions[:, 0, 1]) != xp.sign(goal[:, 1])
    wanted = xp.where(across, CARRY_HEIGHT, now.goals.sizes[:, 0, 2] / 2)

    def distances(m: Instant) -> tuple[Array, ...]:
        block = m.positions[:, 0]
        aside, height = _norm((goal - block)[:, :2]), abs(block[:, 2] - wanted)
        return tip_distance(m), aside, height, angle_to(turn, m.orientations[:, 0])

    jerk = _norm(now.rates - before.reference_rates)
    return *_progress(distances(before), distances(now)), -jerk


def stacking2(before: Instant, now: Instant) -> tuple[Array, ...]:
    """Returns the five terms of stacking: first the lower block's, once placed the upper one's."""
    xp, goals = namespace(now.tips), now.goals.positions

    def distances(m: Instant) -> tuple[Array, ...]:
        low, high = m.positions[:, 0], m.positions[:, 1]
        to_goals = _norm(low - goals[:, 0]), abs(high[:, 2] - goals[:, 1, 2])
        return tip_distance(m), tip_distance(m, 1), *to_goals, _norm((low - high)[:, :2])

    left = distances(now)
    lower, upper, push, lift, align = _progress(distances(before), left)
    placed, apart = left[2] < PLACED, left[4] >= ALIGNED
    above = now.positions[:, 1, 2] > goals[:, 1, 2]
    reach, push = xp.where(placed, upper, lower), xp.where(placed, 0.0, push)
    lift, align = xp.where(placed & apart, lift, 0.0), xp.where(placed & above, align, 0.0)
    return reach, push, lift, align, -_norm(now.rates - before.rates)


def reaching(before: Instant, now: Instant, goals: Array, torques: Array) -> tuple[Array, ...]:
    """Returns progress and cost of the tips' distance, the cost of torque, and of jerk.

    Args:
        before: the moment before the step.
        now: the moment after it.
        goals: the three goals, (N, 9), m.
        torques: applied joint torques, (N, 9), N m; the original always reads zeros.
    """

    def distance(m: Instant) -> Array:
        return _norm(goals - m.tips)

    left = distance(now)
    return distance(before) - left, -left, -_norm(torques), -_norm(now.rates - before.rates)


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
    weighed = [weight * term for term, weight in zip(terms, weights, strict=True) if weight != 0]
    return dt * sum(weighed, bonus_weight * bonus)


def sparse(success: Array, dt: float) -> Array:
    """Returns dt where the step succeeded, else 0, (N,)."""
    xp = namespace(success)
    return dt * xp.where(success, 1.0, 0.0)


def tip_distance(m: Instant, block: int = 0) -> Array:
    """Returns the root of the summed squares of the three tips' distances to a block, (N,)."""
    gaps = m.tips.reshape(-1, 3, 3) - m.positions[:, block, None]
    return _norm(gaps.reshape(m.tips.shape))


def angle_to(goal: Array, block: Array) -> Array:
    """Returns twice the arc cosine of the scalar part of goal * conj(block): 0 to 2 pi, (N,)."""
    same = goal * block
    scalar = same[..., 3] + same[..., 0] + same[..., 1] + same[..., 2]
    return 2.0 * namespace(goal).acos(scalar.clip(-1.0, 1.0))


def _spread(m: Instant) -> Array:
    """Returns the two nearest fingers' mean distances beyond the block's size, summed, (N,)."""
    gap = abs(m.tips.reshape(-1, 3, 3) - m.positions[:, :1])
    mean = sum_last(namespace(gap).where(gap < m.sizes[:, :1], 0.0, gap)) / 3
    return sum_last(mean) - namespace(mean).max(mean, axis=-1)


def _progress(before: Sequence[Array], now: Sequence[Array]) -> tuple[Array, ...]:
    """Returns how much shorter distances have become."""
    return tuple(old - new for old, new in zip(before, now, strict=True))


def _norm(v: Array) -> Array:
    """Returns the Euclidean norm over the last axis, summed term by term."""
    return namespace(v).sqrt(sum_last(v * v))


_CHUNK = 128  # pairs of boxes at a time, so that the work fits the processor's cache


def oriented_score(block_pose: BoxPoses, goal_pose: BoxPoses) -> Array:
    """Returns the filled fraction of the goals by exact volumes, at most 1, (N,); 1 without goals.

    The published score replaces boxes by their axis-aligned bounding boxes, so an error of yaw
    costs nothing; here it costs what it should.

    Args:
        block_pose: position (N, B, 3), orientation (N, B, 4) and size (N, B, 3) of the blocks.
        goal_pose: the same of the goals, (N, G, ...).
    """
    xp, kind = namespace(block_pose[0], goal_pose[0]), block_pose[0].dtype
    block_pose, goal_pose = _exactly(xp, block_pose), _exactly(xp, goal_pose)
    gap = _overlap(bounds(*block_pose), bounds(*goal_pose))
    world, block, goal = xp.nonzero((gap[..., 0] > 0) & (gap[..., 1] > 0) & (gap[..., 2] > 0))
    shared = xp.zeros(gap.shape[:-1], dtype=xp.float64, device=device(block_pose[0]))
    for start in range(0, world.shape[0], _CHUNK):
        w, b, g = (i[start : start + _CHUNK] for i in (world, block, goal))
        shared[w, b, g] = intersection_volume(
            cast(BoxPoses, tuple(part[w, g] for part in goal_pose)),
            cast(BoxPoses, tuple(part[w, b] for part in block_pose)),
        )
    score = filled_share(shared, product(goal_pose[2]))
    return xp.astype(score.clip(None, 1.0), kind)


def _exactly(xp: Any, pose: BoxPoses) -> BoxPoses:
    """Returns boxes as `intersection_volume` wants them: in float64, with unit quaternions."""
    position, turn, size = (xp.astype(part, xp.float64) for part in pose)
    return position, unit(turn), size
