"""What both Gymnasium forms share: a world, its seeds and counters, `do`, snapshots, the log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from interverse.envs.checks import check_actions, check_values, outside, select_worlds
from interverse.envs.snapshot import Snapshot
from interverse.envs.values import FirstWorld, Overlay, WorldValues, to_numpy
from interverse.errors import (
    InterventionError,
    InvalidValueError,
    ResetNeededError,
    explain,
)
from interverse.rng import Noise, check_seed, fresh_seed
from interverse.scm import CausalGraph, Intervention, Outcome, Variable, as_intervention
from interverse.worlds.world import Index, Observation, World, changed_options

_DRIVER = "driver/"  # prefix of the driver's own arrays in a snapshot
_NOT_SHAPING = ("threads", "device")  # options that change no result


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
@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """What one step gave, per world."""

    observation: Observation
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    info: dict[str, NDArray[Any]]


class Listener(Protocol):
    """Something that is told of every step and intervention, below any wrapper."""

    def stepped(self, actions: NDArray[Any], moment: Transition) -> None:
        """Hears of a step and what it gave."""

    def intervened(self, outcome: Outcome) -> None:
        """Hears of an intervention."""


class Meddler(Protocol):
    """Something that intervenes by itself when episodes start and after steps: a curriculum."""

    def started(self, driver: Driver, worlds: Index) -> None:
        """Acts on worlds that have just been reset."""

    def stepped(self, driver: Driver, moment: Transition) -> dict[str, NDArray[Any]]:
        """Acts after a step; returns entries for `info`, (N, ...) each."""


@final
class Driver:
    """Drives a world: resets, steps, interventions, snapshots. Single and vector envs wrap it."""

    def __init__(self, world_id: str, world: World) -> None:
        self.id = world_id
        self.world = world
        n = world.num_worlds
        self.seeds = np.zeros(n, dtype=np.int64)
        self.episodes = np.full(n, -1, dtype=np.int64)
        self.steps = np.zeros(n, dtype=np.int64)
        self.running = np.zeros(n, dtype=bool)
        self.values: Mapping[str, NDArray[Any]] = WorldValues(world)
        self.listeners: list[Listener] = []
        self.meddler: Meddler | None = None
        self._reach_graph: CausalGraph | None = None
        self._reached: dict[frozenset[str], frozenset[str]] = {}
        self._log: list[LogEntry] = []
        self._log_start = np.zeros(n, dtype=np.int64)  # first entry of each world's episode

    # ---------------------------------------------------------------- episodes

    def reset(
        self,
        index: Index,
        *,
        seeds: Sequence[int] | None = None,
        episode: int | Sequence[int] | None = None,
        do: Mapping[str, Any] | Intervention | None = None,
        check: bool = True,
    ) -> None:
        """Starts episodes. Seeds restart the episode count; without them it rises by one."""
        self._address(index, seeds, episode)
        self.running[index] = False
        noise = self._noise(index)
        self.world.reset(index, noise, {})
        given: dict[str, NDArray[Any]] = {}
        if do is not None:  # judged by the new episode's values, never by the last one's
            given = self._resolve(as_intervention(do), index, noise)
            differs = {name: _differs(r, self.values[name][index]) for name, r in given.items()}
            reasons = self._outside(given, index, check=check, differs=differs)
            self._raise_refused(reasons, given)
        if given:
            self._raise_refused(self.world.reset(index, noise, given), given)
        self.running[index] = True
        self._trim_log(index)
        if given:
            self._log.append(LogEntry(index, self.steps[index].copy(), given, {}, at_reset=True))
        if self.meddler is not None:
            self.meddler.started(self, index)

    def _address(
        self, index: Index, seeds: Sequence[int] | None, episode: int | Sequence[int] | None
    ) -> None:
        if seeds is not None:
            self.seeds[index] = [check_seed(seed) for seed in seeds]
            self.episodes[index] = 0
        else:
            never = index[self.episodes[index] < 0]
            self.seeds[never] = [fresh_seed() for _ in never]
            self.episodes[index] += 1
        if episode is not None:
            self.episodes[index] = _episodes(episode, len(index))
        self.steps[index] = 0

    def _noise(self, index: Index, *, ahead: int = 0) -> Noise:
        return Noise(self.seeds[index], self.episodes[index], self.steps[index] + ahead)

    def _raise_refused(self, reasons: Mapping[int, str], given: Mapping[str, Any]) -> None:
        if reasons:
            world, reason = next(iter(reasons.items()))
            where = f" (world {world}; {len(reasons)} refused)" if len(self.steps) > 1 else ""
            raise InterventionError(reason + where, given)

    def step(self, actions: object, index: Index) -> Transition:
        """Advances some worlds; every world's present observation and score comes back.

        `actions` has a row for every world; rows of worlds not in `index` are ignored.
        """
        if not np.all(self.running):
            raise ResetNeededError(explain("step before reset", fix="Call reset() first"))
        world = self.world
        checked = check_actions(
            actions, world.action_space, world.num_worlds, clip=world.clips_actions
        )
        if len(index):
            world.step(checked[index], index, self._noise(index, ahead=1))
        self.steps[index] += 1
        moment = self.transition()
        for listener in self.listeners:
            listener.stepped(checked, moment)
        if self.meddler is None:
            return moment
        extra = self.meddler.stepped(self, moment)  # the reward stays the step's own
        return replace(moment, observation=self.world.observe(), info=moment.info | extra)

    def transition(self) -> Transition:
        """Returns every world's observation, score and limits as they stand."""
        score = self.world.score()
        return Transition(
            self.world.observe(),
            to_numpy(score.reward, np.float64),
            to_numpy(score.terminated, np.bool_),
            self.steps >= self.world.max_steps,
            {name: to_numpy(value) for name, value in score.info.items()},
        )

    # ------------------------------------------------------------ interventions

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Every variable, its spaces evaluated at the present values."""
        single = len(self.steps) == 1
        now = FirstWorld(self.values) if single else self.values
        return {name: v.resolve(now) for name, v in self.world.variables.items()}

    def do(
        self, given: Mapping[str, Any] | Intervention, *, worlds: object = None, check: bool = True
    ) -> Outcome:
        """Intervenes; see the design's contract. Malformed input raises, infeasible is refused."""
        index = select_worlds(worlds, len(self.steps))
        if not np.all(self.running[index]):
            raise ResetNeededError(explain("do before reset", fix="Call reset() first"))
        rows = self._resolve(as_intervention(given), index, self._noise(index))
        before = {name: self.values[name] for name in self._reach(rows)}
        differs = {name: _differs(r, before[name][index]) for name, r in rows.items()}
        reasons = self._outside(rows, index, check=check, differs=differs)
        reasons |= self._apply(rows, index, differs, reasons)
        applied = np.zeros(len(self.steps), dtype=bool)
        applied[index] = True
        applied[list(reasons)] = False
        changed = frozenset(n for n, old in before.items() if np.any(_differs(old, self.values[n])))
        self._log.append(LogEntry(index, self.steps[index].copy(), rows, reasons, at_reset=False))
        outcome = Outcome(applied, reasons, changed, self.world.observe())
        for listener in self.listeners:
            listener.intervened(outcome)
        return outcome

    def _resolve(
        self, intervention: Intervention, index: Index, noise: Noise
    ) -> dict[str, NDArray[Any]]:
        variables, n = self.world.variables, len(self.steps)
        check_names = {name: 0 for name in intervention.variables if name not in variables}
        check_values(check_names, variables, index, n)  # a name Shift would read must exist
        given = intervention.resolve(lambda name: self.values[name][index], noise)
        out = {}
        for name, value in given.items():
            per_world = np.asarray(value).shape == (len(index), *variables[name].shape)
            size = len(index) if per_world and len(index) != n else n
            rows = np.arange(size) if size != n else index
            out |= check_values({name: value}, variables, rows, size)
        return out

    def _reach(self, rows: Mapping[str, Any]) -> frozenset[str]:
        graph = self.world.graph
        if graph is not self._reach_graph:  # a world may change its own graph
            self._reach_graph, self._reached = graph, {}
        key = frozenset(rows)
        if key not in self._reached:
            effects = {effect for name in rows for effect in graph.effects_now(name)}
            self._reached[key] = key | effects
        return self._reached[key]

    def _outside(
        self,
        rows: Mapping[str, NDArray[Any]],
        index: Index,
        *,
        check: bool,
        differs: Mapping[str, NDArray[np.bool_]],
    ) -> dict[int, str]:
        after = Overlay(self.values, rows, index)
        reasons: dict[int, str] = {}
        for name, values in rows.items():
            variable = self.world.variables[name].resolve(after)
            bad = outside(values, variable, self.world.options.space, check=check)
            for row, text in bad.items():
                if differs[name][row]:
                    reasons.setdefault(int(index[row]), text)
        return reasons

    def _apply(
        self,
        rows: Mapping[str, NDArray[Any]],
        index: Index,
        differs: Mapping[str, NDArray[np.bool_]],
        reasons: Mapping[int, str],
    ) -> dict[int, str]:
        """Hands the world what really changes: worlds with the same set of changes together."""
        names = sorted(rows)
        if not names:  # an empty intervention changes nothing
            return {}
        pattern = np.stack([self._held(name, differs) for name in names], axis=1)
        allowed = ~np.isin(index, list(reasons))
        refused: dict[int, str] = {}
        alike = bool(np.all(pattern == pattern[:1]))  # the usual case; np.unique sorts, slowly
        for key in pattern[:1] if alike else np.unique(pattern, axis=0):
            chosen = np.flatnonzero(allowed & np.all(pattern == key, axis=1))
            values = {name: rows[name][chosen] for name, on in zip(names, key, strict=True) if on}
            if values and len(chosen):
                refused |= self.world.intervene(values, index[chosen])
        return refused

    def _held(self, name: str, differs: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Returns where a value must be handed on: it changes, or a cause of it does."""
        graph = self.world.graph
        causes = [c for c in differs if c != name and name in graph.effects_now(c)]
        return np.any([differs[n] for n in (name, *causes)], axis=0)

    # ------------------------------------------------------------------- log

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
        options = changed_options(self.world.options)
        shaping = {k: v for k, v in options.items() if k not in _NOT_SHAPING}
        return json.dumps(shaping, sort_keys=True, default=_plain)

    def snapshot(self) -> Snapshot:
        """Returns everything that makes later steps what they are."""
        if not np.all(self.running):
            raise ResetNeededError(explain("snapshot before reset", fix="Call reset() first"))
        state = self.world.save(np.arange(len(self.steps)))
        arrays = {name: to_numpy(value) for name, value in state.items()}
        for name in ("seeds", "episodes", "steps"):
            arrays[_DRIVER + name] = np.array(getattr(self, name))
        return Snapshot(self.id, self.options_json, arrays)

    def restore(self, snapshot: Snapshot, index: Index) -> None:
        """Puts a snapshot of as many worlds, or of one, into the selected worlds."""
        if not isinstance(snapshot, Snapshot):
            raise InvalidValueError(
                explain(
                    f"a snapshot cannot be a {type(snapshot).__name__}",
                    allowed="what snapshot() or Snapshot.from_bytes returned",
                )
            )
        snapshot.check_fits(world_id=self.id, options=self.options_json)
        rows = self._snapshot_rows(snapshot, index)
        arrays = {name: np.asarray(value)[rows] for name, value in snapshot.arrays.items()}
        for name in ("seeds", "episodes", "steps"):
            getattr(self, name)[index] = arrays.pop(_DRIVER + name)
        self.world.load(arrays, index)
        self.running[index] = True
        self._trim_log(index)

    def _snapshot_rows(self, snapshot: Snapshot, index: Index) -> Index:
        held = snapshot.num_worlds
        if held == 1:
            return np.zeros(len(index), dtype=np.int64)
        if held == len(self.steps):
            return index
        if held == len(index):
            return np.arange(held)
        raise InvalidValueError(
            explain(
                f"the snapshot holds {held} worlds, {len(index)} are selected",
                allowed=f"1, {len(index)} or {len(self.steps)} worlds",
            )
        )


def _episodes(given: int | Sequence[int], worlds: int) -> list[int]:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return [check_seed(given, name="episode")] * worlds
    rows = np.asarray(given).ravel().tolist()
    if len(rows) != worlds:
        raise InvalidValueError(
            explain(f"episode has {len(rows)} entries", allowed=f"one, or one per world ({worlds})")
        )
    return [check_seed(row, name="episode") for row in rows]


def _differs(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    unequal = np.asarray(a != b)
    return unequal.reshape(len(unequal), -1).any(axis=1)


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if callable(value):
        return getattr(value, "__qualname__", repr(value))
    return str(value)
