"""Starts of episodes, drawn by the worlds themselves and kept as rows to load on a device.

A start is all that `World.save` holds after a reset and the interventions of a curriculum. Draws
are the worlds' own, with the same addresses (seed, episode).

A task's scripted baseline gives demonstrations: starts along its paths, and actions to imitate.
Where a reward is met only after a long way, episodes that begin on the way of one who knows it meet
it soon (Salimans and Chen, 2018), and a policy that begins with what was shown keeps to that way
(Rajeswaran et al., 2018). Episodes that the baseline did not solve show nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor
from interverse.actors.adaptive import Interpolation
from interverse.actors.curriculum import FOREVER, Curriculum, check_refusals
from interverse.core.errors import InvalidValueError
from interverse.envs import make, make_vec
from interverse.sim.elements import template
from interverse.worlds import trifinger

Rows = dict[str, NDArray[Any]]

_ROOM = ("constraints", "contacts")  # options of an engine on a device alone
_MODEL = "model/"  # prefix of model fields in a saved world
AT_A_TIME = 1024  # worlds in the batch that draws
_SOLVED = 0.8  # fractional success at the end of an episode worth showing
_APART = 40  # steps between two starts of a shown episode
_PAIRED = 8  # steps between two shown actions that are kept


def on_cpu(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a run's options as the worlds on the CPU take them that draw its starts."""
    given = {n: v for n, v in options.items() if v is not None and n not in _ROOM}
    return {"contact": "convex", **given}


@final
class Starts:
    """Episode starts, one row each, by the names of a saved world."""

    def __init__(self, rows: Mapping[str, NDArray[Any]]) -> None:
        self.rows = dict(rows)

    def __len__(self) -> int:
        return len(next(iter(self.rows.values())))

    def take(self, index: Any) -> Starts:
        """Returns some of them, as NumPy picks rows."""
        return Starts({name: rows[index] for name, rows in self.rows.items()})


def drawn(
    task: str,
    count: int,
    settings: Mapping[str, Any],
    begin: Callable[[Any, NDArray[np.int64]], Mapping[str, NDArray[Any]] | None],
) -> Starts:
    """Returns how so many worlds begin.

    Args:
        task: a world's id.
        count: how many.
        settings: of the worlds, as the CPU takes them.
        begin: starts the episodes of these numbers in a batch of worlds; may return more rows.
    """
    parts = []
    for first in range(0, count, AT_A_TIME):
        numbers = np.arange(first, min(first + AT_A_TIME, count))
        made: Any = make_vec(task, num_envs=len(numbers), autoreset_mode="disabled", **settings)
        with closing(made) as venv:
            more = begin(venv, numbers) or {}
            parts.append(Starts({**_saved(venv), **more}))
    return merge(parts, task, settings)


def _saved(venv: Any) -> Rows:
    state = venv.unwrapped.world.save(np.arange(venv.num_envs))
    return {name: np.asarray(rows) for name, rows in state.items()}


def curriculum_starts(
    task: str,
    curriculum: Curriculum,
    count: int,
    *,
    seed: int,
    options: Mapping[str, Any],
    placed: float = 0.0,
    plain: float = 0.0,
) -> Starts:
    """Returns the first episodes of `count` worlds under a curriculum.

    Args:
        task: a world's id.
        curriculum: what intervenes at the start of an episode.
        count: how many.
        seed: of the first; start i has seed + i.
        options: of the world; its space is A unless it says otherwise.
        placed: share of the starts at which the first block stands in its goal already.
        plain: share of those that the curriculum leaves as the task has them.
    """
    check_drawn_at_start(curriculum)

    def begin(venv: Any, numbers: NDArray[np.int64]) -> None:
        venv.reset(seed=seed + int(numbers[0]))
        driver, size = venv.unwrapped.driver, len(numbers)
        everyone = np.arange(size)
        curriculum.check(driver)
        changed = everyone[round(plain * size) :]
        if len(changed):
            refused = curriculum.intervene(driver, changed)
            if len(refused) == len(changed):
                check_refusals(len(refused), next(iter(refused.values())))
        if placed:  # where something is in the way a world stays as it is
            values, names = venv.unwrapped.values, ("cartesian_position", "orientation")
            there = {f"block_0/{name}": values[f"goal_0/{name}"] for name in names}
            venv.do(there, worlds=everyone[size - round(placed * size) :])

    return drawn(task, count, {"space": "A", **on_cpu(options)}, begin)


def check_drawn_at_start(curriculum: Curriculum) -> None:
    """Raises for a curriculum that starts drawn beforehand cannot follow."""
    for stage in curriculum.stages:
        name = type(stage.actor).__name__
        always = (stage.first, stage.last, stage.period, stage.step) == (0, FOREVER, 1, 0)
        if not always or isinstance(stage.actor, Interpolation):
            raise InvalidValueError(
                f"{name} acts by the number of an episode or of a step, and on a device starts "
                "of episodes are drawn beforehand",
                allowed="actors that act at the start of every episode alike",
                fix="Leave out what stands after @, or use --algorithm sb3_ppo",
            )
        if type(stage.actor).on_episode_end is not Actor.on_episode_end:
            raise InvalidValueError(
                f"{name} waits for how episodes end, and on a device starts of episodes are "
                "drawn beforehand",
                fix="Choose another actor, or use --algorithm sb3_ppo",
            )


def merge(parts: Sequence[Starts], task: str, options: Mapping[str, Any]) -> Starts:
    """Returns starts of a task one after another; fields that some left alone get the scene's."""
    rows: dict[str, list[NDArray[Any]]] = {}
    made: Any = make(task, **on_cpu(options))
    with closing(made) as env:
        for name in sorted({name for part in parts for name in part.rows}):
            field = name.removeprefix(_MODEL)
            rows[name] = [
                part.rows[name]
                if name in part.rows
                else np.repeat(
                    template(env.unwrapped.world._physics.model, field).reshape(1, -1),
                    len(part),
                    axis=0,
                )
                for part in parts
            ]
    return Starts({name: np.concatenate(found) for name, found in rows.items()})


def make_arena(
    task: str,
    starts: Starts,
    *,
    num_worlds: int,
    device: str,
    groups: int | Sequence[float] = 16,
    options: Mapping[str, Any] | None = None,
) -> trifinger.DeviceArena:
    """Returns worlds of a task on a device.

    Args:
        task: a world's id, such as trifinger/pushing-v1.
        starts: where episodes begin.
        num_worlds: how many.
        device: "cuda", "warp", or "torch" for MuJoCo on the CPU.
        groups: how many groups of worlds start one after the other, or what share of a whole
            episode each plays.
        options: of the world, as for `make`.
    """
    options = options or {}
    made: Any = make(task, **on_cpu(options))
    with closing(made) as env:
        return trifinger.DeviceArena(
            env.unwrapped.world,
            num_worlds=num_worlds,
            device=device,
            starts=starts.rows,
            groups=groups,
            room={name: options[name] for name in _ROOM if name in options},
        )


# --------------------------------------------------------------------------------- demonstrations


@final
@dataclass(frozen=True, slots=True, eq=False)
class Demonstrations:
    """What solved episodes showed.

    Attributes:
        starts: states along them.
        observations, actions: some of their steps, (n, k) and (n, 9), float32.
    """

    starts: Starts
    observations: NDArray[np.float32]
    actions: NDArray[np.float32]


def demonstrate(
    task: str,
    curriculum: Curriculum,
    episodes: int,
    *,
    seed: int,
    options: Mapping[str, Any],
    plain: float = 0.1,
) -> Demonstrations:
    """Plays episodes of the scripted baseline on the CPU engine; it takes seconds for each.

    The arguments are those of `curriculum_starts`, and `episodes` are played side by side.
    """
    settings = {"space": "A", **on_cpu(options)}
    made: Any = make_vec(task, num_envs=episodes, autoreset_mode="disabled", **settings)
    with closing(made) as venv:
        world = venv.unwrapped.world
        policy = world.scripted_policy()
        if policy is None:
            raise InvalidValueError(
                f"{task} has no scripted baseline to learn from", fix="Leave out shown"
            )
        venv.reset(seed=seed)
        curriculum.check(venv.unwrapped.driver)
        curriculum.intervene(venv.unwrapped.driver, np.arange(episodes)[round(plain * episodes) :])
        seen, saved, pairs, info = world.observe(), [], [], {}
        for step in range(world.max_steps - 1):
            if step % _APART == 0:
                saved.append(Starts(_saved(venv)))
            action = policy(seen)
            if step % _PAIRED == 0:
                pairs.append((np.array(seen, np.float32), np.array(action, np.float32)))
            seen, _, _, _, info = venv.step(action)
    good = np.flatnonzero(np.asarray(info["fractional_success"]) > _SOLVED)
    if not len(good):
        raise InvalidValueError(
            f"the scripted baseline solved none of {episodes} episodes of {task}",
            fix="Show more episodes",
        )
    observations, actions = (np.concatenate([p[k][good] for p in pairs]) for k in range(2))
    starts = merge([part.take(good) for part in saved], task, settings)
    return Demonstrations(starts, observations, actions)
