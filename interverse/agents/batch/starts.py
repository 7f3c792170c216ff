"""Starts of episodes, drawn by the worlds themselves and kept as rows to load on a device.

A start is all that `World.save` holds after a reset and the interventions of a curriculum. Draws
are the worlds' own, with the same addresses (seed, episode).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.actors.actor import Actor
from interverse.actors.adaptive import Interpolation
from interverse.actors.curriculum import FOREVER, Curriculum, check_refusals
from interverse.core.errors import InvalidValueError
from interverse.core.files.zip_archive import read_npz
from interverse.envs import make, make_vec
from interverse.sim.elements import template
from interverse.worlds import trifinger

Rows = dict[str, NDArray[Any]]

_ROOM = ("constraints", "contacts")  # options of an engine on a device alone
_MODEL = "model/"  # prefix of model fields in a saved world
AT_A_TIME = 1024  # worlds in the batch that draws


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

    def save(self, file: str) -> None:
        """Writes the rows as an uncompressed NumPy archive."""
        np.savez(file, **self.rows)  # type: ignore[arg-type]

    @classmethod
    def load(cls, file: str) -> Starts:
        """Returns the rows of an archive; nothing is unpickled."""
        return cls(read_npz(file))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StartShares:
    """Shares of starts that begin otherwise than the curriculum has them.

    Attributes:
        placed: those at which the first block stands in its goal already.
        plain: those that the curriculum leaves as the task has them.
    """

    placed: float = 0.0
    plain: float = 0.0


NO_SHARES = StartShares()


def curriculum_starts(
    task: str,
    curriculum: Curriculum,
    count: int,
    *,
    seed: int,
    options: Mapping[str, Any],
    shares: StartShares = NO_SHARES,
) -> Starts:
    """Returns the first episodes of `count` worlds under a curriculum.

    Args:
        task: a world's id.
        curriculum: what intervenes at the start of an episode.
        count: how many.
        seed: of the first; start i has seed + i.
        options: of the world; its space is A unless it says otherwise.
        shares: which of them begin otherwise.
    """
    check_drawn_at_start(curriculum)
    settings = {"space": "A", **on_cpu(options)}
    parts = []
    for first, size in pieces(count):
        venv = make_vec(task, num_envs=size, autoreset_mode="disabled", **settings)
        try:
            venv.reset(seed=seed + first)
            everyone = np.arange(size)
            curriculum.check(venv.unwrapped.driver)
            drawn = everyone[round(shares.plain * size) :]
            if len(drawn):
                refused = curriculum.intervene(venv.unwrapped.driver, drawn)
                if len(refused) == len(drawn):
                    check_refusals(len(refused), next(iter(refused.values())))
            if shares.placed:
                _place_first(venv, everyone[size - round(shares.placed * size) :])
            parts.append(plain_rows(venv.unwrapped.world.save(everyone)))
        finally:
            venv.close()
    return merge([Starts(part) for part in parts], task, settings)


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


def _place_first(venv: Any, worlds: NDArray[np.int64]) -> None:
    """Puts the first block into its goal; worlds where something is in the way stay as they are."""
    values = venv.unwrapped.values
    names = ("cartesian_position", "orientation")
    venv.do({f"block_0/{n}": values[f"goal_0/{n}"] for n in names}, worlds=worlds)


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
    env: Any = make(task, **on_cpu(options))
    try:
        return trifinger.DeviceArena(
            env.unwrapped.world,
            num_worlds=num_worlds,
            device=device,
            starts=starts.rows,
            groups=groups,
            room={name: options[name] for name in _ROOM if name in options},
        )
    finally:
        env.close()


def pieces(count: int) -> Iterator[tuple[int, int]]:
    """Yields first and size of the batches that draw so many starts."""
    for first in range(0, count, AT_A_TIME):
        yield first, min(AT_A_TIME, count - first)


def plain_rows(state: Mapping[str, Any]) -> Rows:
    """Returns the rows of saved worlds as NumPy arrays."""
    return {name: np.asarray(rows) for name, rows in state.items()}


def merge(parts: Sequence[Starts], task: str, options: Mapping[str, Any]) -> Starts:
    """Returns starts one after another; fields that some left alone get the scene's values.

    Args:
        parts: starts of the same task.
        task: a world's id.
        options: of the world.
    """
    env: Any = make(task, **on_cpu(options))
    try:
        model = env.unwrapped.world._physics.model
        return Starts(_joined([part.rows for part in parts], model))
    finally:
        env.close()


def _joined(parts: Sequence[Rows], model: Any = None) -> Rows:
    names = sorted({name for part in parts for name in part})
    out = {}
    for name in names:
        rows = []
        for part in parts:
            if name in part:
                rows.append(part[name])
                continue
            count = len(next(iter(part.values())))
            shared = template(model, name.removeprefix(_MODEL)).reshape(1, -1)
            rows.append(np.repeat(shared, count, axis=0))
        out[name] = np.concatenate(rows)
    return out
