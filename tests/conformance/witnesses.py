"""Witnesses of causal edges: the same world N times, one intervention in each, one fact beside.

All worlds have one seed, one noise and the same actions, so that whatever differs from world 0 at a
moment follows from the intervention. A set-up brings the worlds where an edge can act: fingers to a
block, a block to the wall.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from interverse.core.errors import InterventionError
from interverse.core.rng import generator
from interverse.envs.values import to_numpy
from interverse.scm import Box
from tests.conformance.cases import Case, some_action, some_value

CHUNK = 64  # worlds at a time
Setup = Callable[[Any], None]


@dataclass
class Found:
    """Edges and variables that were seen to act."""

    edges: set[tuple[str, str]] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)  # variables that moved what can be observed


def search(case: Case, names: list[str], *, tries: int, chunk: int = CHUNK) -> Found:
    """Returns what acted in some tries, each with its own seed, values, actions and set-up."""
    found = Found()
    venv = case.make_vec(min(chunk, len(names) + 1), threads=2)
    world = venv.unwrapped.world
    for number in range(tries):
        todo = [n for n in names if n not in found.seen or _open(world.graph, found, n)]
        if not todo:
            break
        per = venv.num_envs - 1
        for start in range(0, len(todo), per):
            _one_try(venv, case, todo[start : start + per], number, found)
    venv.close()
    return found


def missing(graph: Any, found: Found, names: list[str]) -> tuple[list[Any], list[str]]:
    """Returns the edges out of these variables, and the variables, without a witness."""
    wanted = set(names)
    edges = [
        (a, b)
        for a, b, data in graph.edges(data=True)
        if a.removesuffix("'") in wanted and not data.get("inert")
    ]
    return [e for e in edges if e not in found.edges], [n for n in names if n not in found.seen]


def _open(graph: Any, found: Found, name: str) -> bool:
    edges = [(a, b) for a in (name, name + "'") if a in graph for b in graph.successors(a)]
    return any(edge not in found.edges for edge in edges)


def _one_try(venv: Any, case: Case, names: list[str], number: int, found: Found) -> None:
    """Intervenes once in each world, at reset in every other try, and compares with world 0."""
    driver = venv.unwrapped.driver
    venv.reset(seed=[100 + number] * venv.num_envs)
    if number % 2:
        _start_under(venv, names, number)
    else:
        for setup in setups(case, number // 2):
            setup(venv)
        _intervene(venv, names, number)
    graph = venv.unwrapped.graph
    moved = _moved(dict(driver.host_values))
    for row, name in enumerate(names, start=1):
        if name in moved[row]:
            _note(graph, found, name, moved[row], later=False)
    _see(venv, found, names, drawn=number < 2)
    for step in range(case.steps):
        action = _action(venv, case, number, step)
        venv.step(np.stack([action] * venv.num_envs))
        if step == 0:
            moved = _moved(dict(driver.host_values))
            for row, name in enumerate(names, start=1):
                _note(graph, found, name, moved[row], later=True)
        _see(venv, found, names, drawn=False)


def _intervene(venv: Any, names: list[str], number: int) -> None:
    rng = generator(seed=number, name="witness")
    for row, name in enumerate(names, start=1):
        variable, present = venv.unwrapped.variables[name], venv.unwrapped.driver.host_values[name]
        one = _of_row(variable, row)
        for near in (number % 4 == 2, True, True):  # where a value is infeasible, one nearby
            rows = present.copy()
            rows[row] = (
                _near(one, present[row], rng) if near else some_value(one, present[row], rng)
            )
            if venv.unwrapped.do({name: rows}, worlds=[row], check=False).applied[row]:
                break


def _any(variable: Any, present: np.ndarray, rng: np.random.Generator) -> Any:
    """Returns a value of a space or the domain; of a wide domain often one near its low end."""
    if variable.name == "graph/adjacency":  # a whole drawn at random is no order of causes
        child = int(rng.integers(1, len(present)))
        out = present.copy()
        out[child, int(rng.integers(child))] ^= 1
        return out
    low, high = variable.domain.low, variable.domain.high
    wide = variable.space_a is None and isinstance(variable.domain, Box)
    if wide and np.isfinite(low).all() and np.isfinite(high).all() and rng.random() < 0.5:
        return low + (high - low) * rng.random(variable.shape) ** 6
    return some_value(variable, present, rng)


def _near(variable: Any, present: np.ndarray, rng: np.random.Generator) -> Any:
    """Returns a value near the present one, in the domain; another one of a few choices."""
    if variable.domain.integral or variable.domain.shape == (4,):
        return some_value(variable, present, rng)
    near = present + 0.004 * rng.standard_normal(variable.shape)
    return np.clip(near, variable.domain.low, variable.domain.high)


def _start_under(venv: Any, names: list[str], number: int) -> None:
    rng = generator(seed=number, name="witness")
    seeds = [100 + number] * venv.num_envs
    for row, name in enumerate(names, start=1):
        variable, present = venv.unwrapped.variables[name], venv.unwrapped.driver.host_values[name]
        value = _any(_of_row(variable, row), present[row], rng)
        chosen = {"reset_mask": np.arange(venv.num_envs) == row}
        try:
            venv.reset(seed=seeds, options=chosen | {"do": {name: value}})
        except InterventionError:
            venv.reset(seed=seeds, options=chosen)


def _note(graph: Any, found: Found, name: str, moved: set[str], *, later: bool) -> None:
    """Notes the edges that an intervention shows: from its variable, and between its effects."""
    if not later:
        found.edges |= {(name, c) for c in graph.successors(name) if c in moved}
        found.edges |= {(a, b) for a in moved for b in graph.successors(a) if b in moved}
        return
    found.edges |= {
        (name, c)
        for c in graph.successors(name)
        if c.removesuffix("'") in moved and c.endswith("'")
    }
    for a in moved:
        if a + "'" in graph:
            found.edges |= {
                (a + "'", b) for b in graph.successors(a + "'") if b.removesuffix("'") in moved
            }
        read_only = [c for c in graph.successors(a) if c.removesuffix("'") in moved]
        found.edges |= {(a, c) for c in read_only if _fixed(graph, a)}


def _fixed(graph: Any, name: str) -> bool:
    """Returns whether a variable has no next slice: it stays as it is within an episode."""
    return name + "'" not in graph


def _see(venv: Any, found: Found, names: list[str], *, drawn: bool) -> None:
    """Notes variables that moved observation, reward, info or, if `drawn`, the picture."""
    world = venv.unwrapped.world
    todo = [(row, name) for row, name in enumerate(names, start=1) if name not in found.seen]
    if not todo:
        return
    score = world.score()
    parts = [*_leaves(world.observe()), to_numpy(score.reward), *map(to_numpy, score.info.values())]
    for row, name in todo:
        if any(p[row].tobytes() != p[0].tobytes() for p in parts):
            found.seen.add(name)
    todo = [(row, name) for row, name in todo if name not in found.seen]
    if todo and drawn:
        fact = world.render(0)
        found.seen |= {name for row, name in todo if not np.array_equal(world.render(row), fact)}


def _leaves(tree: Any) -> Iterator[np.ndarray]:
    if isinstance(tree, dict):
        for part in tree.values():
            yield from _leaves(part)
    else:
        yield to_numpy(tree)


def _moved(values: dict[str, np.ndarray]) -> list[set[str]]:
    """Returns, by world, the variables whose values differ from world 0's."""
    count = len(next(iter(values.values())))
    out: list[set[str]] = [set() for _ in range(count)]
    for name, rows in values.items():
        unequal = (rows != rows[:1]).reshape(count, -1).any(axis=1)
        for row in np.flatnonzero(unequal).tolist():
            out[row].add(name)
    return out


def _of_row(variable: Any, row: int) -> Any:
    """Returns a variable whose spaces are those of one world."""

    def cut(space: Any) -> Any:
        if isinstance(space, Box) and np.ndim(space.low) > len(variable.shape):
            low, high = space.low[row], space.high[row]
            return Box(low, high, space.shape, space.open_low, space.open_high)
        return space

    return replace(variable, space_a=cut(variable.space_a), space_b=cut(variable.space_b))


# ---------------------------------------------------------------------------------- set-ups


def setups(case: Case, number: int) -> list[Setup]:
    """Returns what to do before the interventions of a try: nothing first, then by family."""
    if case.id.startswith("trifinger/"):
        kinds: list[list[Setup]] = [
            [],
            [_delayed, _at_goal],
            [_scripted(41)],
            [_touch],
            [_scripted(71), _at_goal],
            [_touch, _to_wall],
            [_crowd],
        ]
        return kinds[number % len(kinds)]
    if case.id.startswith("blocks/"):
        return [_in_a_row(number)]
    return [] if number == 0 else [_play(number % 4)]


def _action(venv: Any, case: Case, number: int, step: int) -> Any:
    """Returns an action: any one, or the push of the first block of a row."""
    if not case.id.startswith("blocks/") or number % 2:
        return some_action(venv, number, step)
    space = venv.unwrapped.world.action_space
    count = sum(n.endswith("/position") for n in venv.unwrapped.variables)
    per_block = int(space.n) // count
    return np.int64(_order(number // 2, count)[0] * per_block + number // 2 % per_block)


def _order(number: int, count: int) -> list[int]:
    return generator(seed=number, name="row").permutation(count).tolist()


def _in_a_row(number: int) -> Setup:
    """Puts blocks side by side in the middle, in another order each time."""

    def put(venv: Any) -> None:
        names = [n for n in venv.unwrapped.variables if n.endswith("/position")]
        order = _order(number, len(names))
        away = {name: [4, i] for i, name in enumerate(names)}
        line = {names[o]: [1, i] if number % 2 else [i, 2] for i, o in enumerate(order)}
        for places in (away, line):
            for name, place in places.items():
                venv.unwrapped.do({name: place}, check=False)

    return put


def _scripted(steps: int) -> Setup:
    """Lets the world's own policy act for a while, so that fingers are at work."""

    def play(venv: Any) -> None:
        policy = venv.unwrapped.world.scripted_policy()
        if policy is None:
            return
        seen = venv.unwrapped.world.observe()
        for _ in range(steps):
            seen, *_ = venv.step(np.asarray(policy(seen)))

    return play


def _delayed(venv: Any) -> None:
    """Lets commands arrive late, so that those that are pending matter."""
    _put(venv, {"robot/action_delay": 2})


def _at_goal(venv: Any) -> None:
    """Puts goals a little beside their blocks, so that there is an overlap to change."""
    values = venv.unwrapped.driver.host_values
    for block in _blocks(venv):
        goal = block.replace("block", "goal")
        if f"{goal}/cartesian_position" in venv.unwrapped.variables:
            here = values[f"{block}/cartesian_position"][0]
            beside = here + np.array([0.004, 0.003, 0.0])
            _put(venv, {f"{goal}/cartesian_position": beside})


def _play(steps: int) -> Setup:
    def play(venv: Any) -> None:
        for step in range(min(steps, venv.unwrapped.world.max_steps - 2)):
            venv.step(np.stack([some_action(venv, 7, step)] * venv.num_envs))

    return play


def _put(venv: Any, values: dict[str, Any]) -> None:
    """Sets what can be set; a place in something else stays as it was."""
    for name, value in values.items():
        venv.unwrapped.do({name: value}, check=False)


def _blocks(venv: Any) -> list[str]:
    names = venv.unwrapped.variables
    return [n.split("/")[0] for n in names if re.fullmatch(r"block_\d+/mass", n)]


def _touch(venv: Any) -> None:
    """Puts each block under a fingertip and sets it moving, so that fingers and floor rub on it."""
    tips = venv.unwrapped.driver.host_values["end_effector_positions"][0].reshape(3, 3)
    for i, block in enumerate(_blocks(venv)[:3]):
        half = venv.unwrapped.driver.host_values[f"{block}/size"][0, 2] / 2
        for gap in np.linspace(0.0, 0.03, 13):
            place = [tips[i, 0] * 0.9, tips[i, 1] * 0.9, max(half, tips[i, 2] - half - 0.014 - gap)]
            if venv.unwrapped.do({f"{block}/cartesian_position": place}, check=False).applied.all():
                break
        _put(venv, {f"{block}/linear_velocity": [0.2, 0.1, 0.1]})


def _to_wall(venv: Any) -> None:
    """Puts the first blocks at the wall, moving along and into it."""
    for i, block in enumerate(_blocks(venv)[:2]):
        angle = 0.3 + 2.0 * i
        half = venv.unwrapped.driver.host_values[f"{block}/size"][0, 2] / 2
        for radius in np.linspace(0.2, 0.12, 17):
            place = [radius * np.cos(angle), radius * np.sin(angle), half]
            if venv.unwrapped.do({f"{block}/cartesian_position": place}, check=False).applied.all():
                break
        push = [np.cos(angle) - 0.5 * np.sin(angle), np.sin(angle) + 0.5 * np.cos(angle), 0.0]
        _put(venv, {f"{block}/linear_velocity": push})


def _crowd(venv: Any) -> None:
    """Puts neighbouring blocks side by side, moving against each other."""
    blocks = _blocks(venv)
    for one, other in zip(blocks[::2], blocks[1::2], strict=False):
        here = venv.unwrapped.driver.host_values[f"{one}/cartesian_position"][0]
        size = venv.unwrapped.driver.host_values[f"{one}/size"][0, 0]
        for gap in np.linspace(0.0, 0.02, 11):
            place = here + np.array([size + gap, 0.0, 0.0])
            if venv.unwrapped.do({f"{other}/cartesian_position": place}, check=False).applied.all():
                break
        _put(
            venv,
            {
                f"{other}/linear_velocity": [-0.5, 0.1, 0.0],
                f"{other}/angular_velocity": [0, 0, 3.0],
            },
        )
