"""Situations of the TriFinger arena in which causes act that seldom do, for the witness search.

Everything hangs in the air; blocks stand on each other, in the middle or at the wall, and fingers
press on the lowest one; goals lie a little beside their blocks; pieces are not as they were built;
commands wait in the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.robot import REST, action_bounds, inverse_kinematics
from interverse.worlds.world import Scenario

_Values = Mapping[str, NDArray[Any]]
_Moves = Iterator[tuple[str, Any]]
_TIP = 0.008  # of a fingertip's ball, m
_FINGERS = 3
_LEVEL = np.array([0.0, 0.0, 0.0, 1.0])
_GAPS = (0.0005, 0.002, 0.005, 0.01, 0.02)
_NEAR = 0.02  # a block that overlaps with its goal, m
_OUTWARDS = (0.0, 1.3, -1.2)  # joint angles of a finger that is out of the blocks' way
_ASIDE = np.array([0.1, 0.0, 0.2])
_LARGE = 0.065  # edge of a block, m
_HIGH = 5  # blocks on each other at most
_SPREADS = (0.03, 0.03, 0.06, 0.08, 0.1, 0.12, 0.12, 0.14)  # from the middle, m
_WALL = np.linspace(0.19, 0.12, 36)  # distances from the middle to try, m


def situations(options: TriFingerOptions) -> tuple[Scenario, ...]:
    """Returns the situations of a world with these options."""
    return (
        _late_commands,
        _weightless,
        _pile_with(options, _in_the_middle),
        _at_work,
        _rearranged,
        _pile_with(options, _at_the_wall),
    )


def _late_commands(values: _Values, rng: np.random.Generator) -> _Moves:
    yield "do", {"robot/action_delay": 2}
    yield "play", 2
    yield from _goals_beside_blocks(values, rng)


def _weightless(values: _Values, rng: np.random.Generator) -> _Moves:
    """Lets everything hang in the air, apart and still: what one change moves then moves alone."""
    yield "do", {"gravity": 0.0, "robot/action_delay": 2}
    yield "do", {"joint_positions": np.array(_OUTWARDS * _FINGERS)}
    names = _blocks(values)
    wider = (0.1, 0.03, 0.01)
    yield "try", [_spread(values, names, w, s) for s in (0.6, 1.0) for w in wider]
    still = ("linear_velocity", "angular_velocity")
    yield "do", {f"{name}/{part}": np.zeros(3) for name in names for part in still}
    yield from _goals_beside_blocks(values, rng)
    for block in names:
        place = values[f"{block}/cartesian_position"]
        goal = values.get(f"{_goal_of(block)}/cartesian_position")
        # A goal that must hang high did not come to its block.
        if goal is not None and np.linalg.norm(place - goal) > _NEAR:
            yield "do", {f"{block}/cartesian_position": goal + rng.uniform(0.002, 0.006, 3)}


def _spread(values: _Values, names: list[str], wider: float, scale: float) -> dict[str, Any]:
    """Returns values that move blocks apart and up, and make them smaller."""
    out: dict[str, Any] = {}
    for name in names:
        place = values[f"{name}/cartesian_position"]
        out[f"{name}/cartesian_position"] = (1 + wider) * place + wider * _ASIDE
        out[f"{name}/size"] = scale * values[f"{name}/size"]
    return out


def _at_work(values: _Values, rng: np.random.Generator) -> _Moves:
    yield "scripted", int(rng.choice([41, 71]))
    yield from _goals_beside_blocks(values, rng)


def _rearranged(values: _Values, rng: np.random.Generator) -> _Moves:
    """Lifts, turns and shrinks every piece: whatever builds the scene anew then changes it."""
    for size in [n for n in values if re.fullmatch(r"(block|goal)_\d+/size", n)]:
        piece = size.rpartition("/")[0]
        yield "do", {size: 0.95 * values[size]}
        place = values[f"{piece}/cartesian_position"] + rng.uniform(0.001, 0.002, 3)
        yield "do", {f"{piece}/cartesian_position": place}
        yield "do", {f"{piece}/orientation": np.array([0.0, 0.0, 0.02, 0.9998])}
        if piece.startswith("block"):
            yield "do", {f"{piece}/linear_velocity": rng.uniform(-0.1, 0.1, 3)}
            yield "do", {f"{piece}/angular_velocity": rng.uniform(-1.0, 1.0, 3)}


def _pile_with(options: TriFingerOptions, stand: Callable[..., _Moves]) -> Scenario:
    """Returns blocks on each other somewhere, moving, with the fingers pressing on them."""

    def pile(values: _Values, rng: np.random.Generator) -> _Moves:
        names = _blocks(values)
        yield from stand(values, rng, rng.permutation(names)[:_HIGH].tolist())
        yield "do", {"joint_positions": np.array(REST)}  # raised fingers are in each other's way
        yield "do", {"robot/action_delay": int(rng.integers(2))}
        yield "do", {"robot/control_period": int(rng.integers(1, 4))}
        for name in names:
            outwards = 4.0 * values[f"{name}/cartesian_position"] * (1.0, 1.0, 0.0)
            yield "do", {f"{name}/linear_velocity": outwards + rng.uniform(-0.1, 0.1, 3)}
            yield "do", {f"{name}/angular_velocity": rng.uniform(-1.0, 1.0, 3)}
        yield from _goals_beside_blocks(values, rng)
        held = min(names, key=lambda n: values[f"{n}/cartesian_position"][2], default=None)
        if held is not None:
            yield from _press(values, held, options)

    return pile


def _in_the_middle(values: _Values, rng: np.random.Generator, names: list[str]) -> _Moves:
    yield "try", [_tower(values, names, spread * rng.uniform(-1, 1, 2)) for spread in _SPREADS]


def _at_the_wall(values: _Values, rng: np.random.Generator, names: list[str]) -> _Moves:
    if len(names) > 1:  # small ones are out of the fingers' reach there
        yield "do", {f"{names[0]}/size": np.full(3, _LARGE)}
    angle = rng.uniform(-np.pi, np.pi)
    way = np.array([np.cos(angle), np.sin(angle)])
    yield "try", [_tower(values, names, radius * way) for radius in _WALL]


def _tower(values: _Values, names: list[str], place: NDArray[Any]) -> dict[str, Any]:
    """Returns values that put blocks on each other, the first one lowest."""
    out: dict[str, Any] = {}
    top = 0.0
    for name in names:
        height = float(values[f"{name}/size"][2])
        out[f"{name}/cartesian_position"] = np.array([*place, top + height / 2])
        out[f"{name}/orientation"] = _LEVEL
        top += height + 1e-5
    return out


def _press(values: _Values, block: str, options: TriFingerOptions) -> _Moves:
    """Puts each fingertip at a side of a block, and commands it into the block."""
    deep = values["joint_positions"].copy()
    for finger in range(_FINGERS):
        own = slice(3 * finger, 3 * finger + 3)
        choices = []
        for gap in _GAPS:
            joints = values["joint_positions"].copy()
            joints[own] = _reach(values, block, finger, gap)[own]
            choices.append({"joint_positions": joints})
        yield "try", choices
        deep[own] = _reach(values, block, finger, -0.01)[own]
    if options.action_mode == "joint_positions":
        low, high = action_bounds(options.action_mode)
        yield "action", 2 * (deep - low) / (high - low) - 1 if options.normalize_actions else deep


def _reach(values: _Values, block: str, finger: int, gap: float) -> NDArray[Any]:
    """Returns joint angles for which a fingertip is at this distance from a block's side."""
    centre, half = values[f"{block}/cartesian_position"], values[f"{block}/size"] / 2
    tips = values["end_effector_positions"].reshape(_FINGERS, 3).copy()
    way = tips[finger, :2] - centre[:2]
    way = way / np.linalg.norm(way)
    inside = float(np.min(half[:2] / np.maximum(np.abs(way), 1e-9)))
    tips[finger] = [*(centre[:2] + (inside + _TIP + gap) * way), centre[2]]
    height = np.asarray(values["robot/height"])
    angles = inverse_kinematics(tips.reshape(1, 9), values["joint_positions"][None], height[None])
    out: NDArray[Any] = np.asarray(angles)[0]
    return out


def _goals_beside_blocks(values: _Values, rng: np.random.Generator) -> _Moves:
    """Puts goals a little beside their blocks, so that there is an overlap to change."""
    for block in _blocks(values):
        goal = f"{_goal_of(block)}/cartesian_position"
        if goal in values:
            yield "do", {goal: values[f"{block}/cartesian_position"] + rng.uniform(0.002, 0.006, 3)}


def _goal_of(block: str) -> str:
    return block.replace("block", "goal")


def _blocks(values: _Values) -> list[str]:
    return [n.split("/")[0] for n in values if re.fullmatch(r"block_\d+/mass", n)]
