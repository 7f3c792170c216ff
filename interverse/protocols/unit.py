"""One unit of an evaluation: fifty episodes of one protocol and seed, always in the same rows.

A score depends on (task, protocol, seed, episode) alone. What a policy sees never varies in shape:
a network's output may depend on its batch size in the last bit, so the policy's batch has fifty
rows also where fewer episodes are wanted. Worlds do not depend on their number, so only the wanted
ones are stepped and drawn.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, final
from urllib.parse import quote

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import leaves, mapped, to_numpy
from interverse.core.errors import InvalidValueError
from interverse.envs.build import build_world, options_of
from interverse.envs.driver import Driver
from interverse.metrics import METRICS
from interverse.protocols.measures import FRACTION, Metric, Steps, is_registered
from interverse.protocols.protocol import Protocol
from interverse.results.provenance import settings_of
from interverse.results.schema import SCORES
from interverse.rollouts.executors import gpus_of
from interverse.rollouts.policy import FixedBatchPolicy, PolicyLike, as_policy
from interverse.rollouts.saved import unpacked_policy
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
        first, again = Course(unit.again), Course(unit.again, alone=True)
        rows = play(unit, actor, numbers, course=first)
        # The twin's neighbours in the policy's batch show the twin itself; where the episode was
        # the only one, and they did so already, the next one.
        start, last = int(numbers[0]) // ROWS * ROWS, int(numbers[-1])
        twin = [last] if len(numbers) > 1 else [start + (last + 1) % ROWS, last]
        play(replace(unit, metrics=()), actor, np.array(twin), course=again)
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
    course: Course | None = None,
) -> list[dict[str, Any]]:
    """Returns the results rows of the episodes with these numbers, played side by side.

    The numbers are of one block of fifty. `look` is called with the world and the step before each
    action and after the last; `course` takes in the way of the last row.
    """
    count, course = len(numbers), course or Course(0.0)
    options = {"threads": 1, **unit.options, **unit.protocol.options}
    world, everyone = build_world(unit.task, count, options), np.arange(count)
    try:
        driver = Driver(unit.task, world)
        driver.skips_diverged = True  # its row says so; the others go on
        unit.protocol.check(driver)
        given, seeds = unit.protocol.start(numbers), [unit.seed] * count
        driver.reset(everyone, seeds=seeds, episode=numbers.tolist(), do=given or None)
        observation = driver.transition().observation
        actor = FixedBatchPolicy(as_policy(policy, world), numbers, ROWS)
        actor.start(unit.seed)
        scorer = EpisodeScorer(driver, unit.metrics, given)
        for step in range(world.max_steps):
            follows = course.wants(world.max_steps)
            if course.alone and not follows:
                break
            if step in unit.protocol.at:
                scorer.intervened(unit.protocol.apply(driver, everyone[~scorer.done]), step)
                observation = world.observe()
            if look is not None:
                look(world, step)
            action = actor(observation)
            scorer.before(observation, action)
            if follows:
                course.meets(observation, action)
            observation, *result = driver.step(action, everyone)[:5]
            scorer.after(*result)
            if follows:
                course.gets(*result[:3])
            if scorer.done.all():
                break
        scorer.before(observation, None)
        if look is not None:
            look(world, step + 1)
        settings = settings_of(options_of(unit.task, world), engine_of(world))
        rows = scorer.rows(unit.task, unit.protocol, unit.seed, numbers)
        return [{**row, "settings": settings} for row in rows]
    finally:
        world.close()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Pictures of an episode and its row of the results, as it came out this time."""

    frames: NDArray[np.uint8]  # (frame, height, width, 3)
    row: dict[str, Any]


def watch(unit: Unit, policy: PolicyLike, *, episode: int, most: int = 60) -> Watched:
    """Returns about so many pictures of one episode, evenly spaced, the first and last included.

    It is played by itself from its address; the unit's own numbers do not matter.
    """
    frames: list[NDArray[np.uint8]] = []

    def look(world: World, step: int) -> None:
        world.use_film_size()
        every = -(-world.max_steps // most)
        if step % every == 0 or step == world.max_steps:
            frames.append(np.asarray(world.render(0)))

    rows = play(unit, policy, np.array([episode]), look)
    return Watched(np.stack(frames), rows[0])


@final
class EpisodeScorer:
    """Scores, refusals, drawn values and, for metrics, the steps themselves.

    A row's trace is one word: equal words, the same episode again, whatever its seeds are called.
    It is made of every variable but the seeds and of the observation where the episode starts, of
    what is set later, and of every action and reward.
    """

    def __init__(
        self, driver: Driver, metrics: tuple[Metric, ...], given: Mapping[str, NDArray[Any]]
    ) -> None:
        n = len(driver.steps)
        self.done = np.zeros(n, dtype=bool)
        self._driver = driver
        self._length = np.zeros(n, dtype=np.int64)
        self._reward: list[NDArray[np.float64]] = []
        self._fraction: list[NDArray[np.float64]] = []
        self._success = np.full(n, np.nan)
        self._reasons: dict[int, str] = {}
        self._drawn: list[dict[str, Any]] = [
            {name: rows[row] for name, rows in given.items()} for row in range(n)
        ]
        self._traces = [hashlib.blake2b(digest_size=8) for _ in range(n)]
        self._metrics = metrics  # the steps themselves are kept for them alone
        space = driver.world.observation_space
        flat = isinstance(space, gym.spaces.Box) and len(space.shape) == 1
        self._sees = flat or any(metric.observations for metric in metrics)
        names = dict.fromkeys(name for metric in metrics for name in metric.values)
        self._values: dict[str, list[Any]] = {name: [] for name in names}
        self._seen: list[Any] = []
        self._actions: list[Any] = []
        self._info: list[Mapping[str, Any]] = []

    def intervened(self, reasons: Mapping[int, str], step: int) -> None:
        """Notes refused episodes, and the values that this step set in the others."""
        self._reasons |= reasons
        now = {}
        for row in np.flatnonzero(~self.done).tolist():
            for entry in self._driver.log(row)[-1:]:
                at = int(entry.steps[np.flatnonzero(entry.worlds == row)[0]])
                if at != step or entry.at_reset or row in entry.reasons:
                    continue
                for name in entry.values:
                    if name not in now:
                        now[name] = self._driver.values[name]
                    self._drawn[row][f"{name}@{step}"] = now[name][row]
                    self._traces[row].update(_bytes(now[name][row]))

    def before(self, observation: Any, action: Any) -> None:
        """Takes what the policy sees and does; at the end, what is seen last and no action."""
        if action is not None:
            if not self._length.any():
                world, values = self._driver.world, self._driver.values
                starts = [values[n] for n in world.variables if n not in world.reset_variables]
                for part in (*starts, *leaves(observation)):
                    self._trace(part, range(len(self.done)))
            self._trace(action, np.flatnonzero(~self.done).tolist())
        if not self._metrics:
            return
        if self._sees:
            self._seen.append(mapped(to_numpy, observation))
        for name, rows in self._values.items():
            rows.append(self._driver.values[name])
        if action is not None:
            self._actions.append(np.array(action))

    def _trace(self, rows: Any, worlds: Iterable[int]) -> None:
        given = to_numpy(rows)
        for row in worlds:
            self._traces[row].update(_bytes(given[row]))

    def after(
        self,
        reward: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: Mapping[str, Any],
    ) -> None:
        """Takes one step of every row; rows that have ended count no more."""
        alive = ~self.done
        self._reasons |= self._driver.diverged
        reward, terminated, truncated = (to_numpy(x) for x in (reward, terminated, truncated))
        info = {name: to_numpy(value) for name, value in info.items()}
        if not np.all(np.isfinite(reward[alive])):
            row = int(np.flatnonzero(alive & ~np.isfinite(reward))[0])
            raise InvalidValueError(
                f"the world's reward is {reward[row]} at step {int(self._length[row]) + 1}",
                allowed="finite numbers: a mean without this episode would be of the others",
            )
        self._length += alive
        self._reward.append(np.where(alive, reward, 0.0))
        self._trace(reward, np.flatnonzero(alive).tolist())
        if FRACTION in info:
            self._fraction.append(np.where(alive, info[FRACTION], np.nan))
        if "success" in info:
            self._success = np.where(alive, info["success"], self._success)
        if self._metrics:
            self._info.append({k: np.array(v) for k, v in info.items() if k[0] != "_"})
        self.done = self.done | terminated | truncated

    def rows(
        self, task: str, protocol: Protocol, seed: int, numbers: NDArray[np.int64]
    ) -> list[dict[str, Any]]:
        """Returns one results row per episode."""
        total, fractions = np.sum(self._reward, axis=0), dict[str, NDArray[np.float64]]()
        if self._fraction:
            steps = np.nan_to_num(np.stack(self._fraction, axis=1))
            names = [name for name in SCORES if "success" in METRICS[name].tags]
            fractions = {name: METRICS.load(name)(steps, self._length) for name in names}
        out = []
        for row, number in enumerate(numbers.tolist()):
            base = {"task": task, "protocol": protocol.name, "seed": seed, "episode": number}
            base["length"] = int(self._length[row])
            if row in self._reasons:
                out.append(base | {"refused": True, "reason": self._reasons[row]})
                continue
            scored: dict[str, Any] = {name: float(v[row]) for name, v in fractions.items()}
            scored |= {"return": float(total[row]), "trace": self._traces[row].hexdigest()}
            if not np.isnan(self._success[row]):
                scored["score:success"] = float(self._success[row])
            if self._metrics:
                scored |= self._measured(row, base)
            for name, value in self._drawn[row].items():
                # A protocol that acts more than once has a column for each time.
                told = name if len(protocol.at) > 1 else name.partition("@")[0]
                numbers_set = to_numpy(value).astype(float)
                scored[f"value:{told}"] = (
                    numbers_set.ravel().tolist() if numbers_set.ndim else float(numbers_set)
                )
            out.append(base | {"refused": False} | scored)
        return out

    def _measured(self, row: int, base: dict[str, Any]) -> dict[str, float]:
        """Returns the metrics' columns of one episode."""
        length = base["length"]
        kept = {n: [v[row] for v in rows[: length + 1]] for n, rows in self._values.items()}
        seen = [mapped(lambda part: part[row], item) for item in self._seen[: length + 1]]
        steps = Steps(
            **{name: base[name] for name in ("task", "protocol", "seed", "episode")},
            rewards=np.array([r[row] for r in self._reward[:length]]),
            actions=np.stack([a[row] for a in self._actions[:length]]),
            info={n: np.stack([i[n][row] for i in self._info[:length]]) for n in self._info[0]},
            observations=mapped(lambda *parts: np.stack(parts), *seen) if self._sees else None,
            values={name: np.stack(rows) for name, rows in kept.items()},
        )
        return {  # a row of the table changes nothing of the steps; others might
            f"score:{m.name}": m(steps if is_registered(m) else copy.deepcopy(steps))
            for m in self._metrics
        }


def _bytes(value: Any) -> bytes:
    return np.ascontiguousarray(to_numpy(value)).tobytes()


_LEAST = 3  # steps, however small the share is
_NEAR = {"rtol": 1e-3, "atol": 1e-4}  # of actions, where physics do not repeat to the last bit


@final
class Course:
    """What the last row of a unit sees, does and gets, for a share of its episode's steps.

    A share costs little whatever it is a twin of. `alone`: nothing is played beyond it.
    """

    def __init__(self, share: float, *, alone: bool = False) -> None:
        self._share, self.alone = share, alone
        self.seen: list[list[bytes]] = []
        self.actions: list[NDArray[Any]] = []
        self.gains: list[tuple[float, bool]] = []  # a step's reward, and whether it was the last

    def wants(self, length: int) -> bool:
        """Returns whether it takes another step of an episode that may have so many."""
        over = not self._share or (self.gains and self.gains[-1][1])
        return not over and len(self.actions) < max(_LEAST, math.ceil(self._share * length))

    def meets(self, observation: Any, actions: Any) -> None:
        """Takes in what the row sees and does."""
        shown = [hashlib.blake2b(_bytes(part[-1])).digest() for part in leaves(observation)]
        self.seen.append(shown)
        self.actions.append(np.array(to_numpy(actions)[-1]))

    def gets(self, reward: Any, terminated: Any, truncated: Any) -> None:
        """Takes in what the row's action gave."""
        self.gains.append((float(reward[-1]), bool(terminated[-1]) or bool(truncated[-1])))


def check_twin(first: Course, again: Course, episode: int, *, exact: bool) -> None:
    """Raises unless a twin went the course of its episode, which was played among others.

    Where the world does not repeat to the last bit (`exact`), the first action alone is compared.
    """
    for step, (one, other) in enumerate(zip(first.actions, again.actions, strict=False)):
        if exact and first.seen[step] != again.seen[step]:
            _refuse_world(f"its observation before action {step} is another one", episode)
        alike = one.shape == other.shape and (
            np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
            if exact
            else np.allclose(one, other, **_NEAR, equal_nan=True)
        )
        if not alike:
            raise InvalidValueError(
                f"the policy acts otherwise when episode {episode} is played again among other"
                f" worlds: its action {step} is {_shown(one)} and then {_shown(other)}, for"
                " the same observation",
                allowed="actions that follow from the world's own row of the observations and"
                " from what its episode showed before",
                fix="Act for each row apart (no mean over rows, no row that stands for all),"
                " and give a policy that remembers or draws a reset(mask, seeds): it forgets"
                " there, and draws from the seeds",
            )
        if not exact:
            return
        if first.gains[step] != again.gains[step]:
            gains = first.gains[step], again.gains[step]
            told = [f"reward {reward!r}{', its last' * ended}" for reward, ended in gains]
            _refuse_world(f"action {step} gives {told[0]} and then {told[1]}", episode)


def _refuse_world(what: str, episode: int) -> None:
    raise InvalidValueError(
        f"the world goes another way when episode {episode} is played again with the same"
        f" actions, among other worlds: {what}",
        allowed="a course that follows from seed, episode and actions",
        fix="Keep all state in the world, one row each, write all of it in `reset`, and draw"
        " from the noise that is passed. `interverse check ID` finds where it is not so",
    )


def _shown(action: NDArray[Any]) -> str:
    return np.array2string(action.ravel()[:4], precision=4, separator=", ")
