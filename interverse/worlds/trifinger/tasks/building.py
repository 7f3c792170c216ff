"""Shared parts of the construction tasks: variables of pieces, filling a scene, scattering."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from interverse.core.arrays import from_yaw
from interverse.core.errors import explain
from interverse.scm import Box, Variable
from interverse.scm.store import Rows
from interverse.worlds.trifinger.objects import block_variables, goal_variables
from interverse.worlds.trifinger.penetration import BoxSet, Capsules, box_depth, robot_depth
from interverse.worlds.trifinger.scene import ArenaScene, Block, Goal
from interverse.worlds.trifinger.shapes import Construction
from interverse.worlds.trifinger.variables import (
    GENERATOR_MASSES,
    UNBOUNDED,
    declare,
)

Array = Any
Edge = tuple[str, str]

MASS = "blocks/mass"
_TRIES = 24  # places drawn for each block before the next best is taken
_DISC = 0.15  # m
_CLEAR = 0.002  # depth up to which a place counts as free, m


def scene_of(shape: Construction, turns: Array | None = None) -> ArenaScene:
    """Returns the scene of a shape's blocks and goals; `turns` are the goals' quaternions."""
    upright = np.tile([0.0, 0.0, 0.0, 1.0], (len(shape.goals), 1))
    turned = (upright if turns is None else turns).tolist()
    blocks = [
        Block(position=tuple(start), size=tuple(size), mass=0.08)
        for start, size in zip(shape.starts.tolist(), shape.sizes.tolist(), strict=True)
    ]
    goals = [
        Goal(position=tuple(goal), orientation=tuple(turn), size=tuple(size))
        for goal, turn, size, wanted in zip(
            shape.goals.tolist(), turned, shape.sizes.tolist(), shape.wanted, strict=True
        )
        if wanted
    ]
    return ArenaScene(blocks=tuple(blocks), goals=tuple(goals))


def piece_variables(scene: ArenaScene) -> list[Variable]:
    """Returns the variables of all pieces, and the mass they share."""
    out = []
    for i in range(scene.block_count):
        out += block_variables(scene, i, sizes=UNBOUNDED)
    for i in range(scene.goal_count):
        out += goal_variables(scene, i, bounded=False, sizes=UNBOUNDED)
    mass = declare(
        MASS,
        "latent",
        0.08,
        Box(0.001, 2.0),
        spaces=GENERATOR_MASSES,
        unit="kg",
        doc="Mass of every block.",
    )
    return [*out, mass]


def building_edges(
    scene: ArenaScene, causes: Collection[str], *, colors: bool = False
) -> list[Edge]:
    """Returns the edges from what a scene is built from to all its pieces."""
    blocks, goals = range(scene.block_count), range(scene.goal_count)
    pose = ("size", "cartesian_position", "orientation")
    moving = (*pose, "linear_velocity", "angular_velocity", *(("color",) if colors else ()))
    out = [(cause, f"block_{i}/{key}") for cause in causes for i in blocks for key in moving]
    out += [(cause, f"goal_{i}/{key}") for cause in causes for i in goals for key in pose]
    out += [(MASS, f"block_{i}/mass") for i in blocks]
    return out + [(f"block_{i}/size", f"block_{i}/cartesian_position") for i in blocks]


def follow(rows: Rows, given: Collection[str]) -> None:
    """Gives every block the shared mass."""
    if MASS in given:
        rows["block/mass"][:] = rows[MASS][:, None]


def fill(rows: Rows, row: int, shape: Construction, turns: Array | None = None) -> str | None:
    """Puts a shape into one row; returns why it cannot be, or None.

    Args:
        rows: of the store; changed in place.
        row: which world.
        shape: what to build.
        turns: the goals' quaternions, (K, 4); None for upright ones.
    """
    count, goals = len(shape.sizes), int(shape.wanted.sum())
    room, goal_room = rows["block/used"].shape[1], rows["goal/used"].shape[1]
    if count > room or goals > goal_room:
        return explain(
            f"this scene needs {count} blocks and {goals} goals, "
            f"there is room for {room} and {goal_room}",
            fix=f"Make the environment with max_blocks={max(count, goals)} or more",
        )
    clear(rows, row)
    rows["block/used"][row, :count], rows["goal/used"][row, :goals] = True, True
    rows["block/size"][row, :count] = shape.sizes
    rows["block/position"][row, :count] = shape.starts
    rows["block/orientation"][row, :count] = from_yaw(shape.yaws)
    rows["goal/size"][row, :goals] = shape.sizes[shape.wanted]
    rows["goal/position"][row, :goals] = shape.goals[shape.wanted]
    if turns is not None:
        rows["goal/orientation"][row, :goals] = turns[shape.wanted]
    return None


def clear(rows: Rows, row: int) -> None:
    """Takes every block and goal out of one row."""
    for kind in ("block", "goal"):
        rows[f"{kind}/used"][row] = False
        rows[f"{kind}/position"][row] = 0.0
        rows[f"{kind}/orientation"][row] = (0.0, 0.0, 0.0, 1.0)
        rows[f"{kind}/size"][row] = 0.065
    for key in ("block/linear_velocity", "block/angular_velocity"):
        rows[key][row] = 0.0


def scatter(
    rng: np.random.Generator, sizes: Array, robot: tuple[Capsules, Array, Array]
) -> tuple[Array, Array]:
    """Returns places (K, 3) and yaws (K,) on the floor where blocks hardly touch anything.

    Each block gets the first free one of some places even over a disc; if none is free on the
    floor, one in the air above it, as the original does.

    Args:
        rng: draws the places.
        sizes: full edges, (K, 3), m.
        robot: link capsules, joint angles (9,) and hinge height.
    """
    placed = _solids(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)))
    places, yaws = [], []
    for size in sizes:
        radius = _DISC * np.sqrt(rng.random(2 * _TRIES))
        angle, yaw = rng.uniform(-np.pi, np.pi, (2, 2 * _TRIES))
        lift = np.where(np.arange(2 * _TRIES) < _TRIES, 0.0, rng.uniform(0.0, 0.15, 2 * _TRIES))
        place = np.stack(
            [radius * np.cos(angle), radius * np.sin(angle), size[2] / 2 + lift], axis=1
        )
        turn = from_yaw(yaw)
        tried = _solids(place, turn, np.broadcast_to(size, place.shape))
        depth = np.maximum(box_depth(tried, placed), robot_depth(*robot, tried))
        best = int(np.argmax(depth < _CLEAR)) if (depth < _CLEAR).any() else int(np.argmin(depth))
        places.append(place[best])
        yaws.append(yaw[best])
        placed = _solids(np.array(places), from_yaw(np.array(yaws)), sizes[: len(places)])
    return np.array(places), np.array(yaws)


def _solids(place: Array, turn: Array, size: Array) -> BoxSet:
    names = tuple(str(k) for k in range(len(place)))
    return BoxSet(names, place[None], turn[None], size[None], np.ones((1, len(place)), dtype=bool))


def changed_generators(given: Collection[str], causes: Sequence[str]) -> bool:
    """Returns whether an intervention asks for another scene."""
    return any(name in given for name in causes)
