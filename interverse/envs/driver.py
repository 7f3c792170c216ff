"""The driver of a world: seeds, counters, steps, snapshots and the log of interventions.

Single and vector environments both wrap one. Worlds on the CPU give NumPy arrays; worlds on another
device keep their tensors: nothing is copied to the host but which worlds have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, clipped
from interverse.core.errors import (
    ActionError,
    InterventionError,
    InvalidValueError,
    ResetNeededError,
)
from interverse.core.rng import Noise, check_seed, fresh_seed
from interverse.envs.build import check_episodes, select_worlds
from interverse.envs.interventions import InterventionRules, differs
from interverse.envs.snapshot import DRIVER_ARRAYS, DRIVER_PREFIX, Snapshot, shaping_options
from interverse.envs.values import FirstWorld, HostValues, PresentVariables, WorldValues, to_numpy
from interverse.scm import Intervention, Outcome, Variable
from interverse.sim.engine import SimulationError
from interverse.worlds.world import Index, Observation, World


@final
@dataclass(frozen=True, slots=True, eq=False)
class LogEntry:
    """One intervention: which worlds, at which of their steps, with which values or refusals."""

    worlds: Index
    steps: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]  # rows as in `worlds`
    reasons: Mapping[int, str]  # refused worlds
    at_reset: bool


@final
class Transition(NamedTuple):
    """The result of one step, per world.

    Arrays are NumPy's on the CPU and tensors of the world's device elsewhere; `ended` is on the
    host in any case, for whoever must reset worlds. Where `info_lasts`, the arrays of `info` are
    the world's own: whoever hands them out copies them.
    """

    observation: Observation
    reward: Array
    terminated: Array
    truncated: Array
    info: Mapping[str, Array]
    ended: NDArray[np.bool_]
    info_lasts: bool = False


class StepListener(Protocol):
    """Receives every step and intervention, below any wrapper."""

    def on_step(self, actions: Array, moment: Transition) -> None:
        """Receives a step and its result."""

    def on_intervention(self, outcome: Outcome) -> None:
        """Receives an intervention's outcome."""


class InterventionHook(Protocol):
    """Intervenes by itself when episodes start and after steps: a curriculum."""

    def on_reset(self, driver: Driver, worlds: Index) -> None:
        """Acts on worlds that have just been reset."""

    def on_step(self, driver: Driver, moment: Transition) -> dict[str, NDArray[Any]]:
        """Acts after a step; returns entries for `info`, (N, ...) each."""


_FEW = 8  # worlds, and numbers
_SAMPLE = "env.action_space.sample() shows a valid one"


def _broke_down(worlds: Sequence[int]) -> str:
    shown = ", ".join(map(str, worlds[:_FEW])) + (" and more" if len(worlds) > _FEW else "")
    return f"the physics of world {shown} broke down: a position or a velocity is not finite"


@final
class ActionChecker:
    """Checks actions for a space and a number of worlds; the usual case takes no detour."""

    def __init__(self, space: gym.Space[Any], num_worlds: int, *, clip: bool) -> None:
        self._space, self._clip = space, clip
        self._box = space if isinstance(space, gym.spaces.Box) else None
        self._shape = (num_worlds, *(space.shape or ()))
        self._ends: tuple[NDArray[Any], NDArray[Any]] | None = None
        few = num_worlds <= _FEW and self._box is not None
        ends = (np.ravel(getattr(space, name)).tolist() if few else [] for name in ("low", "high"))
        self._low, self._high = (end * num_worlds for end in ends)

    def __call__(self, actions: Any) -> Any:
        """Returns actions as (N, ...) in the space's type, or raises ActionError.

        A tensor stays a tensor on its device.
        """
        box, real = self._box, type(actions) is np.ndarray and actions.dtype.kind == "f"
        if box is not None and real and actions.shape == self._shape:
            if self._clip and np.isfinite(actions).all():
                return clipped(actions, box.low, box.high)
            few, low, high = actions.size <= _FEW, box.low, box.high
            if self._within(actions) if few else ((actions >= low) & (actions <= high)).all():
                return actions
        tensor = hasattr(actions, "detach")
        array: Any = actions if tensor else _as_array(actions)
        if tuple(array.shape) != self._shape:
            told = f"actions have shape {tuple(array.shape)}"
            raise ActionError(told, allowed=f"{self._shape}", fix=_SAMPLE)
        if tensor:
            return self._tensor(array)
        return self._discrete(array) if box is None else self._in_box(array, box)

    def _within(self, actions: NDArray[Any]) -> bool:
        """Returns whether a few actions lie in their box: faster one by one."""
        for low, x, high in zip(self._low, actions.ravel().tolist(), self._high):  # noqa: B905
            if not low <= x <= high:
                return False
        return True

    def _tensor(self, tensor: Any) -> Any:
        """Returns a tensor of actions where it is; one answer is read back from its device."""
        if self._box is None:
            return tensor.new_tensor(self._discrete(_as_array(tensor.detach().cpu())))
        if not tensor.is_floating_point():
            _as_array(tensor.detach().cpu())  # raises for what is no number
            tensor = tensor.float()
        low, high = tensor.new_tensor(self._box.low), tensor.new_tensor(self._box.high)
        fits = tensor.isfinite() if self._clip else (tensor >= low) & (tensor <= high)
        if not bool(fits.all()):
            return self._in_box(tensor.detach().cpu().numpy(), self._box)  # raises, saying why
        return tensor.clamp(low, high) if self._clip else tensor

    def _in_box(self, array: NDArray[Any], box: gym.spaces.Box) -> NDArray[Any]:
        array = array if array.dtype.kind == "f" else array.astype(box.dtype)
        if not np.all(np.isfinite(array)):
            raise ActionError("actions hold NaN or infinity", allowed="finite numbers")
        if self._clip:
            return clipped(array, box.low, box.high)
        if np.any(array < box.low) or np.any(array > box.high):
            raise ActionError(
                f"actions reach from {array.min()} to {array.max()}",
                allowed=f"{box.low.min()} to {box.high.max()}",
                fix="Clip them to env.action_space",
            )
        return array

    def _discrete(self, array: NDArray[Any]) -> NDArray[Any]:
        if array.dtype.kind not in "iu":
            told = f"actions have type {array.dtype}"
            raise ActionError(told, allowed="whole numbers", fix=_SAMPLE)
        if self._ends is None:
            space = self._space
            if isinstance(space, gym.spaces.Discrete):
                self._ends = np.asarray(space.start), np.asarray(space.start + space.n - 1)
            elif isinstance(space, gym.spaces.MultiDiscrete):
                self._ends = space.start, space.start + space.nvec - 1
            else:
                raise ActionError(f"no check for a {type(space).__name__} action space")
        low, high = self._ends
        if ((array < low) | (array > high)).any():
            raise ActionError(
                f"actions reach from {array.min()} to {array.max()}",
                allowed=f"{low.tolist()} to {high.tolist()}",
                fix=_SAMPLE,
            )
        return array.astype(np.int64)


def _as_array(value: object) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as problem:
        raise ActionError(f"actions is no array: {problem}") from problem
    if array.dtype.kind not in "iuf":
        told = "bool" if array.dtype.kind == "b" else array.dtype
        raise ActionError(f"actions has type {told}", allowed="numbers")
    return array


@final
class Driver:
    """Drives a world: resets, steps, interventions, snapshots.

    Attributes:
        starting_values: an intervention that every reset starts under; its own `do` wins over it.
        skips_diverged: whether worlds whose physics broke down are left out until their reset
            while the others go on; otherwise the step raises SimulationError.
        diverged: the reason for each world that was left out.
        rules: what judges and applies interventions.
        ended: in which worlds the last step ended the episode.
    """

    def __init__(self, world_id: str, world: World) -> None:
        self.id = world_id
        self.world = world
        n = world.num_worlds
        self.seeds = np.zeros(n, dtype=np.int64)
        self.episodes = np.full(n, -1, dtype=np.int64)
        self.steps = np.zeros(n, dtype=np.int64)
        self.running = np.zeros(n, dtype=bool)
        self.ended = np.zeros(n, dtype=bool)
        self.on_cpu = world.options.device == "cpu"
        self.host_values: Mapping[str, NDArray[Any]] = HostValues(world)
        self.values: Mapping[str, Any] = self.host_values if self.on_cpu else WorldValues(world)
        self.listeners: list[StepListener] = []
        self.hook: InterventionHook | None = None
        self.starting_values: Mapping[str, Any] = {}
        self.skips_diverged = False
        self.diverged: dict[int, str] = {}
        self.rules = InterventionRules(world, self.host_values)
        self._edits = 0  # interventions and resets so far: whether a hook changed anything
        self._log: list[LogEntry] = []
        self._log_start = np.zeros(n, dtype=np.int64)  # first entry of each world's episode
        self._checked = ActionChecker(world.action_space, n, clip=world.clips_actions)

    # ---------------------------------------------------------------- episodes

    def reset(
        self,
        index: Index,
        *,
        seeds: Sequence[int | None] | None = None,
        episode: int | Sequence[int] | None = None,
        do: Mapping[str, Any] | Intervention | None = None,
        check: bool | Collection[str] = True,
    ) -> None:
        """Starts episodes. A seed restarts the episode count; without one it rises by one.

        A refused `do` raises: the episodes before are over, and the count is as it was. `check`
        says whether values must lie in the active space, or which variables' must.
        """
        before = self.seeds[index], self.episodes[index]
        # Malformed seeds and numbers raise before anything changes.
        numbers = None if episode is None else check_episodes(episode, len(index))
        given_seeds = [None] * len(index) if seeds is None else seeds
        checked = [None if seed is None else check_seed(seed) for seed in given_seeds]
        seeded = np.array([seed is not None for seed in checked], dtype=bool)
        self.seeds[index[seeded]] = [seed for seed in checked if seed is not None]
        self.episodes[index[seeded]] = 0
        others = index[~seeded]
        never = others[self.episodes[others] < 0]
        self.seeds[never] = [fresh_seed() for _ in never]
        self.episodes[others] += 1
        if numbers is not None:
            self.episodes[index] = numbers
        self.steps[index] = 0
        if not len(index):
            return
        self.running[index] = self.ended[index] = False
        self._edits += 1
        for world in index.tolist():
            self.diverged.pop(world, None)
        try:
            given = self._begin(index, do, check=check)
        except InvalidValueError:
            self.seeds[index], self.episodes[index] = before
            raise
        self.running[index] = True
        self._trim_log(index)
        if given:
            self._log.append(LogEntry(index, self.steps[index].copy(), given, {}, at_reset=True))
        if self.hook is not None:
            self.hook.on_reset(self, index)

    def _begin(
        self,
        index: Index,
        do: Mapping[str, Any] | Intervention | None,
        *,
        check: bool | Collection[str],
    ) -> dict[str, NDArray[Any]]:
        """Puts worlds at the start of an episode; returns the values that they start under."""
        # Values are judged by the new episode's, never by the last one's.
        noise, graph = self._noise(index), self.world.graph
        refused = dict(self.world.reset(index, noise, {}))
        given = {} if do is None else self.rules.resolve(do, index, noise)
        if self.starting_values:
            given = graph.updated(self.rules.resolve(self.starting_values, index, noise), given)
        if given:
            changed = {n: differs(r, self.rules.read(n)[index]) for n, r in given.items()}
            self._raise_refused(self.rules.outside(given, index, changed, check=check), given)
        if always := self.world.starting_values:
            rows = {name: np.repeat(row, len(index), axis=0) for name, row in always.items()}
            given = graph.updated(rows, given)
        if given:
            refused = dict(self.world.reset(index, noise, given))
            refused |= self.rules.hold(given, index, refused)
        elif refused:
            told = "the defaults cannot be in this episode"
            refused = {world: f"{told}: {reason}" for world, reason in refused.items()}
        self._raise_refused(refused, given or self.world.options.defaults)
        return given

    def _noise(self, index: Index) -> Noise:
        return Noise(self.seeds[index], self.episodes[index], self.steps[index])

    def _raise_refused(self, reasons: Mapping[int, str], given: Mapping[str, Any]) -> None:
        if reasons:
            world, reason = next(iter(reasons.items()))
            where = f" (world {world}; {len(reasons)} refused)" if len(self.steps) > 1 else ""
            raise InterventionError(reason + where, given)

    def step(self, actions: Any, index: Index) -> Transition:
        """Advances some worlds; every world's present observation and score comes back.

        `actions` has a row for every world; rows of worlds not in `index` are ignored.
        """
        if 0 in self.running.tobytes():  # faster than all()
            stopped = {*np.flatnonzero(~self.running)}
            if not (self.skips_diverged and stopped <= self.diverged.keys()):
                raise ResetNeededError("step before reset", fix="Call reset() first")
        self._advance(checked := self._checked(actions), index)
        moment = self.transition()
        self.ended[index] = moment.ended[index]
        for listener in self.listeners:
            listener.on_step(checked, moment)
        if self.hook is None:
            return moment
        edits = self._edits
        extra = self.hook.on_step(self, moment)  # the reward stays the step's own
        seen = moment.observation if edits == self._edits else self.world.observe()
        return moment._replace(observation=seen, info={**moment.info, **extra})

    def _advance(self, actions: Any, index: Index) -> None:
        """Steps worlds and counts their steps; one that breaks down needs a reset."""
        index = index[self.running[index]] if self.diverged else index
        while len(index):
            which: Any = slice(None) if len(index) == len(self.steps) else index
            noise = Noise(self.seeds[which], self.episodes[which], self.steps[which] + 1)
            try:
                self.world.step(actions[which], index, noise)
                self.steps[which] = noise.steps
                return
            except SimulationError as error:
                broken = list(error.worlds)
                self.running[broken] = False
                if not self.skips_diverged:
                    raise
                self.diverged |= dict.fromkeys(broken, f"diverged: {error}".rstrip("."))
                index = index[~np.isin(index, broken)]

    def transition(self) -> Transition:
        """Returns every world's observation, score and limits as they stand."""
        score, seen = self.world.score(), self.world.observe()
        truncated = self.steps >= self.world.max_steps
        if self.on_cpu:
            terminated, reward = np.array(score.terminated, bool), np.array(score.reward, float)
            if self.diverged:
                terminated[list(self.diverged)] = True
            ended, lasts = terminated | truncated, score.info_lasts
            info = score.info if lasts else {n: np.array(v) for n, v in score.info.items()}
            return Transition(seen, reward, terminated, truncated, info, ended, lasts)
        terminated, ended = self._over_on_device(score.terminated, truncated)
        limits = score.reward.new_tensor(truncated, dtype=terminated.dtype)
        return Transition(seen, score.reward, terminated, limits, dict(score.info), ended)

    def _over_on_device(
        self, terminated: Any, truncated: NDArray[np.bool_]
    ) -> tuple[Any, NDArray[np.bool_]]:
        """Returns which worlds have terminated, on their device, and which have ended, on the host.

        What broke down is brought to the host with what ended, in one piece, and looked at, like
        what did not fit, only when an episode ends: a step waits for the device once.
        """
        engine = self.world.engine
        broke = None if engine is None or not self.skips_diverged else engine.broken()
        if broke is not None:
            terminated = terminated | broke
        if self.diverged:
            terminated[list(self.diverged)] = True
        ended = to_numpy(terminated) | truncated
        if engine is not None and (ended & ~self.ended).any():
            engine.check_capacity()
            if broke is not None:
                # Leaves out worlds that an engine says broke down, as if it had raised.
                worlds = np.flatnonzero(to_numpy(broke))
                self.running[worlds] = False
                for world in worlds.tolist():
                    self.diverged.setdefault(world, f"diverged: {_broke_down([world])}")
        return terminated, ended

    def check_engine(self) -> None:
        """Raises for what an engine on a device has noted and not raised; for records of worlds."""
        engine = self.world.engine
        noted = None if engine is None else engine.broken()
        if engine is None or noted is None:
            return
        engine.check_capacity()
        if broke := np.flatnonzero(to_numpy(noted)).tolist():
            raise SimulationError(_broke_down(broke), broke)

    # ------------------------------------------------------------ interventions

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Every variable, its spaces evaluated at the present values."""
        single = len(self.steps) == 1
        now = FirstWorld(self.host_values) if single else self.host_values
        return PresentVariables(self.world.variables, now)

    def do(
        self, given: Mapping[str, Any] | Intervention, *, worlds: object = None, check: bool = True
    ) -> Outcome:
        """Intervenes; see the design's contract. Malformed input raises, infeasible is refused."""
        everyone = np.arange(len(self.steps))
        index = everyone if worlds is None else select_worlds(worlds, len(everyone))
        if not self.running[index].all():
            raise ResetNeededError("do before reset", fix="Call reset() first")
        rows = self.rules.resolve(given, index, self._noise(index))
        if not len(index):
            return Outcome(np.zeros(len(self.steps), bool), {}, frozenset(), self.world.observe())
        before = {name: self.rules.read(name) for name in self.rules.reach(rows)}
        changed = {name: differs(r, before[name][index]) for name, r in rows.items()}
        reasons = self.rules.outside(rows, index, changed, check=check)
        reasons |= self.rules.apply(rows, index, changed, reasons)
        applied = np.zeros(len(self.steps), dtype=bool)
        applied[index] = True
        applied[list(reasons)] = False
        moved = frozenset(n for n, old in before.items() if differs(old, self.rules.read(n)).any())
        self._edits += 1
        self._log.append(LogEntry(index, self.steps[index].copy(), rows, reasons, at_reset=False))
        outcome = Outcome(applied, reasons, moved, self.world.observe())
        for listener in self.listeners:
            listener.on_intervention(outcome)
        return outcome

    # ------------------------------------------------------------------- log

    @property
    def entries(self) -> list[LogEntry]:
        """The interventions of all worlds' present episodes, in order."""
        return self._log

    def log(self, world: int) -> list[LogEntry]:
        """Returns the interventions of a world's present episode, in order."""
        return [e for e in self._log[self._log_start[world] :] if world in e.worlds]

    def _trim_log(self, index: Index) -> None:
        self._log_start[index] = len(self._log)
        done = int(self._log_start.min())
        if done:
            del self._log[:done]
            self._log_start -= done

    # -------------------------------------------------------------- snapshots

    @property
    def options_json(self) -> str:
        """The options that shape the world, as JSON."""
        return shaping_options(self.world.options)

    def snapshot(self) -> Snapshot:
        """Returns everything that makes later steps what they are."""
        if not np.all(self.running):
            raise ResetNeededError("snapshot before reset", fix="Call reset() first")
        state = self.world.save(np.arange(len(self.steps)))
        arrays = {name: to_numpy(value) for name, value in state.items()}
        for name in DRIVER_ARRAYS:
            arrays[DRIVER_PREFIX + name] = np.array(getattr(self, name))
        return Snapshot(self.id, self.options_json, arrays)

    def restore(self, snapshot: Snapshot, index: Index) -> None:
        """Puts a snapshot of as many worlds, or of one, into the selected worlds.

        A snapshot that does not fit raises and leaves every world as it was.
        """
        Snapshot.check(snapshot, world_id=self.id, options=self.world.options)
        if not len(index):
            return
        before = self.world.save(index) if self.running[index].all() else None
        arrays = snapshot.rows_for(index, len(self.steps), like=before)
        own = {name: arrays.pop(DRIVER_PREFIX + name) for name in DRIVER_ARRAYS}
        try:
            self.world.load(arrays, index)
        except (KeyError, IndexError, ValueError, TypeError, RuntimeError) as error:
            if before is not None:
                self.world.load(before, index)
            raise Snapshot.misfit(error) from error
        for name, rows in own.items():
            getattr(self, name)[index] = rows
        self.running[index] = True
        for world in index.tolist():
            self.diverged.pop(world, None)
        self._edits += 1
        self._trim_log(index)
