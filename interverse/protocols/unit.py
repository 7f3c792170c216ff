"""One unit of an evaluation: fifty episodes of one protocol and seed, always in the same rows.

A score depends on (task, protocol, seed, episode) alone. What a policy sees never varies in shape:
a network's output may depend on its batch size in the last bit, so the policy's batch has fifty
rows also where fewer episodes are wanted. Worlds do not depend on their number, so only the wanted
ones are stepped and drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, final
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from interverse.envs import make_vec
from interverse.envs.build import options_of
from interverse.protocols.measures import Metric
from interverse.protocols.protocol import Protocol
from interverse.protocols.scorer import EpisodeScorer
from interverse.protocols.twin import Course, check_twin
from interverse.results.settings import settings_of
from interverse.rollouts.executors import gpus_of
from interverse.rollouts.fixed_batch import FixedBatchPolicy
from interverse.rollouts.policy import PolicyLike, as_policy
from interverse.rollouts.policy_files import unpacked_policy
from interverse.worlds.world import World, engine_of

ROWS = 50
_PLAIN = " !#$&'()+,;=@[]{}~"  # characters of file names, as they are


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Which episodes: `number` counts blocks of fifty; `episodes` of them are wanted."""

    task: str
    options: Mapping[str, Any]
    protocol: Protocol
    seed: int
    number: int
    episodes: int
    metrics: tuple[Metric, ...] = ()
    again: float = 0.0
    """Which share of its last episode is played again, among other neighbours; 0 for none."""

    @property
    def name(self) -> str:
        """A file name for its results, also where the protocol is named like a variable."""
        return unit_name(self.protocol.name, self.seed, self.number)

    @property
    def gpus(self) -> int:
        """How many GPUs of a cluster it takes."""
        return gpus_of(self.options.get("device"))


def unit_name(protocol: str, seed: int, number: int) -> str:
    """Returns a unit's file name without its ending.

    >>> unit_name("box/mass", 0, 2)
    'box%2Fmass-seed0-unit0002'
    """
    return f"{quote(protocol, safe=_PLAIN)}-seed{seed}-unit{number:04d}"


def run_unit(unit: Unit, policy: PolicyLike) -> list[dict[str, Any]]:
    """Returns one results row per wanted episode.

    Raises:
        InvalidValueError: `again` is asked for, and the episode goes another way.
    """
    numbers = np.arange(unit.episodes) + unit.number * ROWS
    with unpacked_policy(policy) as actor:
        if not unit.again:
            return play(unit, actor, numbers)
        first, again = Course(unit.again), Course(unit.again)
        rows = play(unit, actor, numbers, course=first)
        # The twin's neighbours in the policy's batch show the twin itself; where the episode was
        # the only one, and they did so already, the next one.
        twin = numbers[-1:] if len(numbers) > 1 else numbers[0] // ROWS * ROWS + np.array(
            [(numbers[0] + 1) % ROWS, numbers[0] % ROWS]
        )  # fmt: skip
        play(replace(unit, metrics=()), actor, twin, course=again, only_course=True)
    exact = str(unit.options.get("device", "cpu")) == "cpu"
    # Pictures of high quality never repeat to the bit; a refused row says itself what went wrong.
    if unit.options.get("quality") != "high" and not rows[-1]["refused"]:
        check_twin(first, again, int(numbers[-1]), exact=exact)
    return rows


def play(
    unit: Unit,
    policy: PolicyLike,
    numbers: NDArray[np.int64],
    look: Callable[[World, int], None] | None = None,
    *,
    course: Course | None = None,
    only_course: bool = False,
) -> list[dict[str, Any]]:
    """Returns the results rows of the episodes with these numbers, played side by side.

    Args:
        unit: task, options, protocol, seed and metrics.
        policy: what acts.
        numbers: of the episodes, all of one block of fifty.
        look: called with the world and the step before each action and after the last.
        course: takes in the way of the last row.
        only_course: stop where the course has all its steps.
    """
    count = len(numbers)
    options = {"threads": 1, **unit.options, **unit.protocol.options}
    picture = {} if look is None else {"render_mode": "rgb_array"}
    venv = make_vec(unit.task, num_envs=count, autoreset_mode="disabled", **options, **picture)
    try:
        world, driver = venv.unwrapped.world, venv.unwrapped.driver
        driver.skips_diverged = True  # its row says so; the others go on
        unit.protocol.check(driver)
        given = unit.protocol.start(numbers)
        begin = {"episode": numbers.tolist(), **({"do": given} if given else {})}
        observation, _ = venv.reset(seed=[unit.seed] * count, options=begin)
        actor = FixedBatchPolicy(as_policy(policy, world), numbers, ROWS)
        actor.start(unit.seed)
        scorer = EpisodeScorer(driver, unit.metrics, given)
        everyone = np.arange(count)
        for step in range(world.max_steps):
            follows = course is not None and course.wants(world.max_steps)
            if only_course and not follows:
                break
            if step in unit.protocol.at:
                scorer.intervened(unit.protocol.apply(driver, everyone[~scorer.done]), step)
                observation = world.observe()
            if look is not None:
                look(world, step)
            action = actor(observation)
            scorer.before(observation, action)
            if course is not None and follows:
                course.meets(count - 1, observation, action)
            observation, *result = venv.step(action)
            scorer.after(*result)
            if course is not None and follows:
                course.gets(count - 1, *result[:3])
            if scorer.done.all():
                break
        scorer.before(observation, None)
        if look is not None:
            look(world, step + 1)
        settings = settings_of(options_of(unit.task, world), engine_of(world))
        rows = scorer.rows(unit.task, unit.protocol, unit.seed, numbers)
        return [{**row, "settings": settings} for row in rows]
    finally:
        venv.close()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Pictures of an episode and its row of the results, as it came out this time."""

    frames: NDArray[np.uint8]  # (frame, height, width, 3)
    row: dict[str, Any]


def watch(unit: Unit, policy: PolicyLike, *, episode: int, most: int = 60) -> Watched:
    """Returns pictures of one episode, played by itself from its address.

    Args:
        unit: task, options, protocol and seed; its own numbers do not matter.
        policy: what acts.
        episode: the episode's number.
        most: about how many pictures, evenly spaced, the first and the last moment among them.
    """
    frames: list[NDArray[np.uint8]] = []

    def look(world: World, step: int) -> None:
        world.use_film_size()
        every = -(-world.max_steps // most)
        if step % every == 0 or step == world.max_steps:
            frames.append(np.asarray(world.render(0)))

    rows = play(unit, policy, np.array([episode]), look)
    return Watched(np.stack(frames), rows[0])
