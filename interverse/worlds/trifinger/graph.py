"""The causal graph of a TriFinger world, declared once for any number of blocks and goals.

Velocities of the next moment follow from everything physical now (contact lets anything push
anything), positions from positions and the new velocities, the score from where blocks and goals
are. Looks cause nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from interverse.scm import CausalGraph
from interverse.worlds.trifinger.variables import ARENA_CAUSES, ROBOT_CAUSES

Edge = tuple[str, str]

_BLOCK = (
    "mass",
    "size",
    "friction",
    "cartesian_position",
    "orientation",
    "linear_velocity",
    "angular_velocity",
)


@functools.lru_cache(maxsize=32)  # of hundreds of variables: built once, never changed
def causal_graph(
    names: tuple[str, ...],
    *,
    blocks: int,
    goals: int,
    edges: tuple[Edge, ...] = (),
    constraints: tuple[Edge, ...] = (),
) -> CausalGraph:
    """Returns the graph over a world's variables.

    Args:
        names: the variables.
        blocks: how many blocks there are.
        goals: how many goals.
        edges: what the task adds within a moment; they hold in the next one too.
        constraints: pairs of variables that describe one thing.
    """
    block_names, goal_names = (
        [f"block_{i}" for i in range(blocks)],
        [f"goal_{i}" for i in range(goals)],
    )
    obstacle = [n for n in names if n in ("obstacle/size", "obstacles/count")]
    causes = [
        *ARENA_CAUSES,
        *ROBOT_CAUSES,
        *(f"{b}/{q}" for b in block_names for q in _BLOCK),
        *obstacle,
    ]
    out = [(cause, "joint_velocities'") for cause in causes]
    out += _command_edges()
    out += [("joint_positions", "joint_positions'"), ("joint_velocities'", "joint_positions'")]
    for block in block_names:
        for turn, place in (("linear", "cartesian_position"), ("angular", "orientation")):
            out += [(cause, f"{block}/{turn}_velocity'") for cause in causes]
            out += [(f"{block}/{turn}_velocity'", f"{block}/{place}'")]
            out += [(f"{block}/{place}", f"{block}/{place}'")]
        out.append((f"{block}/cartesian_position'", f"{block}/cylindrical_position'"))
    out += [*_score_edges(block_names, goal_names), *edges]
    twins = [
        (f"{o}/cartesian_position", f"{o}/cylindrical_position")
        for o in (*block_names, *goal_names)
    ]
    return CausalGraph.build(names, out, [*twins, *constraints])


def _command_edges() -> list[Edge]:
    """Returns what commands follow from: a robot that is placed holds still."""
    next_ones = "robot/commands'"
    causes = ("robot/commands", "robot/control_period", "joint_positions", "robot/height")
    return [("joint_positions", "robot/commands"), *((cause, next_ones) for cause in causes)]


def _score_edges(blocks: Sequence[str], goals: Sequence[str]) -> list[Edge]:
    """Returns what fingertips and score follow from, now and in the next moment."""
    out = []
    for mark in ("", "'"):
        out.append((f"joint_positions{mark}", f"end_effector_positions{mark}"))
        out.append(("robot/height", f"end_effector_positions{mark}"))
        score = f"fractional_success{mark}"
        if not blocks:
            out.append((f"end_effector_positions{mark}", score))
        for block in blocks:
            out += [(f"{block}/{q}{mark}", score) for q in ("cartesian_position", "orientation")]
            out.append((f"{block}/size", score))
        for goal in goals:
            out += [(f"{goal}/{q}", score) for q in ("cartesian_position", "orientation", "size")]
    return out
