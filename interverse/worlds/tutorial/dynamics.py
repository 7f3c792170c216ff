"""Start, control, observation and reward of the slider: pure functions over the world axis.

They run on NumPy and Torch alike: take the namespace from the arrays, work elementwise.
"""

from __future__ import annotations

from interverse.core.arrays import Array, namespace

from .variables import FARTHEST, FASTEST, START_SPREAD, TABLE

REACHED = 0.05  # a box this near to the goal has reached it, m
_GIVE = 1e-3  # how deep a resting box may be in the table, for contacts are soft, m


def seat(position: Array, size: Array) -> Array:
    """Returns places (..., 3) with the box on the table; depends on x, y and on its size."""
    xp = namespace(position)
    return xp.concat([position[..., :2], size[..., 2:] / 2], axis=-1)


def start(default: Array, size: Array, uniform: Array) -> Array:
    """Returns starting positions (..., 3) around the default, for uniform numbers (..., 2)."""
    return seat(default[..., :2] + START_SPREAD * (2.0 * uniform - 1.0), size)


def infeasible(position: Array, size: Array) -> Array:
    """Returns whether a box hangs over the table's edge or is sunk into it, (...)."""
    xp = namespace(position)
    over = xp.any(xp.abs(position[..., :2]) + size[..., :2] / 2 > TABLE, axis=-1)
    return over | (position[..., 2] < size[..., 2] / 2 - _GIVE)


def beyond(position: Array, velocity: Array) -> Array:
    """Returns whether a box is outside its domain, (...): a light one under a strong push is."""
    xp = namespace(position)
    far, fast = xp.abs(position) > FARTHEST, xp.abs(velocity) > FASTEST
    return xp.any(far | fast, axis=-1)


def held(position: Array, velocity: Array) -> tuple[Array, Array]:
    """Returns places and velocities (..., 3) at the edge of the domain that they left."""
    return position.clip(-FARTHEST, FARTHEST), velocity.clip(-FASTEST, FASTEST)


def force(action: Array, push: Array) -> Array:
    """Returns the force on the box (..., 3), N; depends on the action (..., 2) and on push."""
    xp = namespace(push)
    flat = xp.astype(action, push.dtype) * push[..., None]
    return xp.concat([flat, xp.zeros_like(flat[..., :1])], axis=-1)


def observation(*parts: Array) -> Array:
    """Returns the flat observation: the observed variables side by side."""
    return namespace(*parts).concat(parts, axis=-1)


def distance(position: Array, goal: Array) -> Array:
    """Returns how far the box is from the goal, along the table, (...)."""
    x, y = position[..., 0] - goal[..., 0], position[..., 1] - goal[..., 1]
    return namespace(position).sqrt(x * x + y * y)


def reward(position: Array, goal: Array) -> Array:
    """Returns minus the distance to the goal, (...)."""
    return -distance(position, goal)
