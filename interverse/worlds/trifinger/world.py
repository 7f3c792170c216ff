"""The TriFinger world: a robot of three fingers, a task, and every variable of both.

All values live in the store (`interverse.worlds.trifinger.store`). An intervention is worked out
on copies of its rows, checked, and only then written: a refused world is never touched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.errors import InvalidValueError, explain
from interverse.rng import Noise
from interverse.scm import Variable, table
from interverse.scm.variable import SpaceName, lookup, with_defaults
from interverse.sim.shapes import Shape
from interverse.worlds.trifinger import store
from interverse.worlds.trifinger.editing import Editor
from interverse.worlds.trifinger.goals import ActiveSpaces, ValuesOf
from interverse.worlds.trifinger.graph import causal_graph
from interverse.worlds.trifinger.instant import goals_of, instant_of
from interverse.worlds.trifinger.objects import to_cylindrical
from interverse.worlds.trifinger.options import TriFingerOptions, defaults_as_arrays, scene_of
from interverse.worlds.trifinger.physics import STATE, Physics
from interverse.worlds.trifinger.rewards import Targets
from interverse.worlds.trifinger.robot import Control, action_bounds
from interverse.worlds.trifinger.rules import rules_of
from interverse.worlds.trifinger.scene import Scene
from interverse.worlds.trifinger.scripted import scripted_policy
from interverse.worlds.trifinger.senses import Senses
from interverse.worlds.trifinger.store import (
    ADDRESS,
    CLOCK,
    COMMANDS,
    REWARD,
    START_RATES,
    Rows,
    part,
)
from interverse.worlds.trifinger.studio import Studio
from interverse.worlds.trifinger.tasks import load_task
from interverse.worlds.trifinger.tasks.task import Instant, Task
from interverse.worlds.trifinger.touch import force_between, touching
from interverse.worlds.trifinger.variables import (
    Declared,
    arena_variables,
    robot_variables,
    success_variable,
)
from interverse.worlds.world import Array, Index, Refusals, Score, State, World

_VALUE = "store/"  # prefix of the store's rows in a saved state


@final
class TriFinger(World):
    """N TriFinger arenas with one task."""

    options_type = TriFingerOptions
    clips_actions = True

    def __init__(self, *, num_worlds: int, options: TriFingerOptions) -> None:
        self.num_worlds = num_worlds
        self.task: Task = load_task(options.task)()
        self._control = Control(mode=options.action_mode, normalized=options.normalize_actions)
        self.scene = scene_of(self.task, options, self._control)
        self.options = replace(options, contact=self.scene.contact)
        self._rules = rules_of(self.task, self.scene, options)
        self.max_steps, self.reward_range = self._rules.max_steps, self._rules.reward_range
        declared = _declare(self.task, self.scene)
        self._slots = {d.variable.name: d.slot for d in declared}
        self._declare_spaces(declared)
        self._physics = Physics(
            self.scene, num_worlds=num_worlds, device=options.device, threads=options.threads
        )
        self.task.capsules = self._physics.capsules()
        self._editor = Editor(self.task, self.scene, declared, self.task.capsules, self._hold)
        self._studio: Studio | None = None
        self._give = self._physics.engine.asarray
        self._instant: Instant | None = None
        self._goal: tuple[Targets, Array] | None = None  # kept while no goal changes
        self._fraction: Array | None = None
        self._set_up_start(declared)
        values, studio = ValuesOf(self, np.arange(num_worlds)), self._quick_studio
        self._senses = Senses(self._rules, self.scene, self._store, values, studio)
        self.layout, self.observation_space = self._senses.slices, self._senses.space

    # -------------------------------------------------------------------- set-up

    def _declare_spaces(self, declared: list[Declared]) -> None:
        options, task, scene = self.options, self.task, self.scene
        self.graph = causal_graph(
            tuple(d.variable.name for d in declared),
            blocks=scene.block_count,
            goals=scene.goal_count,
            edges=tuple(task.edges(scene)),
            constraints=tuple(task.constraints(scene)),
        )
        low, high = action_bounds(options.action_mode)
        if options.normalize_actions:
            low, high = -np.ones(9), np.ones(9)
        self.action_space = gym.spaces.Box(low.astype(np.float32), high.astype(np.float32))

    def _set_up_start(self, declared: list[Declared]) -> None:
        """Works out the rows every episode starts from, and the variables' defaults with them."""
        options = self.options
        variables = with_defaults(table(*(d.variable for d in declared)), options.defaults)
        rows = store.starting_rows(self.scene, declared)
        self._hold(rows)
        self._store = store.repeat(rows, self.num_worlds)
        worlds = np.arange(self.num_worlds)
        self._physics.write(self._store, STATE, worlds)  # the model has the rest already
        self.variables = variables
        self._start, self._start_physics = rows, self._physics.save(worlds[:1])
        self._each_time: Rows = {}  # defaults to apply again after the draws of each reset
        self._latched: Rows = {}  # what `set_starting_state` was given
        given = defaults_as_arrays(options.defaults)
        if given:
            self._start_from(variables, given)
        self.variables = MappingProxyType(
            {name: replace(v, default=self.read(name)[0]) for name, v in variables.items()}
        )

    def _start_from(self, variables: Mapping[str, Variable], given: Mapping[str, Array]) -> None:
        first, everyone = np.arange(1), np.arange(self.num_worlds)
        rows = {name: np.array(value, dtype=variables[name].dtype) for name, value in given.items()}
        if self.task.draws or set(given) & set(self.task.generators):
            self._each_time = rows
            self.reset(everyone, Noise(*(everyone * 0 for _ in range(3))), {})
            return
        refused = self.intervene(rows, first)
        if refused:
            raise InvalidValueError(explain(f"the defaults cannot be: {refused[0]}"))
        self._start, self._start_physics = store.take(self._store, first), self._physics.save(first)
        self._begin(everyone)

    def _hold(self, rows: Rows) -> None:
        """Makes the robot's standing command keep it where it is."""
        torques = self._control.torques
        rows[COMMANDS][:] = 0.0 if torques else rows["joint_positions"][:, None, :]

    # ----------------------------------------------------------- episodes, doing

    def _begin(self, worlds: Index) -> None:
        """Puts the start of an episode, before any draw, into some worlds."""
        n = len(worlds)
        for key, values in self._start.items():
            self._store[key][worlds] = values
        start = {name: np.repeat(rows, n, axis=0) for name, rows in self._start_physics.items()}
        self._physics.load(start, worlds)
        self._instant = self._goal = None

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Starts episodes: defaults, given causes, the task's draws, then given state."""
        self._begin(worlds)
        address = np.stack([noise.seeds, noise.episodes, noise.steps], axis=1)
        self._store[ADDRESS][worlds] = address
        if self.task.draws:
            self._draw(worlds)
        refused: Refusals = {}
        for values in (self._each_time, self._latched, given):
            if values and not refused:
                rows = values if values is given else store.repeat(values, len(worlds))
                refused = self.intervene(rows, worlds)
        self._store[START_RATES][worlds] = self._store["joint_velocities"][worlds]
        return refused

    def _draw(self, worlds: Index) -> None:
        """Draws what an episode of this task starts with."""
        rows = store.take(self._store, worlds)
        self.task.settle(rows, self.task.generators, store.noise_of(rows[ADDRESS]).at(0))
        self._commit(rows, store.changed_keys(rows, store.take(self._store, worlds)), worlds)

    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables and what follows at once; infeasible worlds are never touched."""
        before = store.take(self._store, worlds)
        rows = store.take(self._store, worlds)
        refused = dict(self._editor.apply(rows, values))
        changed = store.changed_keys(rows, before)
        if not (self.options.legacy_unchecked and values.keys() & set(self.task.unchecked)):
            refused = self._editor.infeasible(rows, before, changed) | refused
        keep = np.array([k not in refused for k in range(len(worlds))], dtype=bool)
        if keep.all():
            self._commit(rows, changed, worlds)
        elif keep.any():
            self._commit({key: rows[key][keep] for key in rows}, changed, worlds[keep])
        return {int(worlds[k]): reason for k, reason in refused.items()}

    def _commit(self, rows: Rows, changed: Collection[str], worlds: Index) -> None:
        before = {key: self._store[key][worlds] for key in changed}
        for key in changed:
            self._store[key][worlds] = rows[key]
        self._physics.write(self._store, changed, worlds, before)
        self._instant = self._goal = None

    # ------------------------------------------------------------------- reading

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape)."""
        slot = self._slots[name]
        if slot is not None:
            return np.array(part(self._store, slot))
        if name == "end_effector_positions":
            return self._now().moment.tips.copy()
        if name == "fractional_success":
            return self._success().copy()
        owner = name.partition("/")[0]
        return to_cylindrical(part(self._store, self._slots[f"{owner}/cartesian_position"]))

    def _now(self) -> Instant:
        if self._instant is None:
            if self._goal is None:
                self._goal = goals_of(self._store)
            torques = functools.partial(self._physics.torques, self._store)
            self._instant = instant_of(self._store, self._goal, torques)
            self._fraction = None
        return self._instant

    def _success(self) -> Array:
        now = self._now()
        if self._fraction is None:
            self._fraction = self.task.fraction(now, self.options.score)
        return self._fraction

    # ---------------------------------------------------------------------- time

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Advances some worlds by one step of `skip_frame` substeps."""
        before = self._now()
        data, count = self._store, self.options.skip_frame
        self._physics.step(data, self._command(np.asarray(actions), worlds), worlds, count)
        self._physics.read_back(data, worlds)
        data[CLOCK][worlds] += 1
        data[ADDRESS][worlds, 2] = noise.steps
        self._instant = None
        reward = self._rules.reward(before, self._now(), self._success())
        data[REWARD][worlds] = reward[worlds]

    def _command(self, actions: Array, worlds: Index) -> Array:
        """Returns what the motors are told, (n, 9): the action as it arrives, late or held."""
        data = self._store
        queue = data[COMMANDS][worlds]
        joints, height = data["joint_positions"][worlds], data["robot/height"][worlds]
        fresh = self._control.command(actions, joints, queue[:, 0], height)
        held = data[CLOCK][worlds] % data["robot/control_period"][worlds] != 0
        newest = np.where(held[:, None], queue[:, 0], fresh)
        queue = np.concatenate([newest[:, None], queue[:, :-1]], axis=1)
        data[COMMANDS][worlds] = queue
        return queue[np.arange(len(worlds)), data["robot/action_delay"][worlds]]

    def observe(self) -> Any:
        """Returns every world's observation, as fresh arrays."""
        seen = self._senses.observe(self._now().moment.tips)
        given = {name: self._give(part) for name, part in seen.items()}
        return given if self.options.observation_mode == "mixed" else next(iter(given.values()))

    def score(self) -> Score:
        """Returns reward, success and goals as they stand; an episode ends by time alone."""
        now, fraction = self._now(), self._success()
        achieved, desired = self.task.goal_arrays(now)
        info = {
            "success": self.task.solved(now, fraction),
            "fractional_success": fraction.copy(),
            "achieved_goal": achieved,
            "desired_goal": desired,
        }
        if self.options.info_state:
            info |= {f"state/{name}": self.read(name) for name in self.variables}
        if self.options.info_solution:
            solution = self.task.solution(self._store)
            info |= {f"solution/{name}": value for name, value in solution.items()}
        ended = np.zeros(self.num_worlds, dtype=bool)
        return Score(self._store[REWARD].copy(), ended, info)

    # ------------------------------------------------------------------ contacts

    def contact(self, a: str, b: str) -> Array:
        """Returns whether two things touch, (N,): floor, stage, obstacles, fingers, blocks."""
        return touching(self._physics.engine, self.scene, a, b)

    def contact_force(self, a: str, b: str) -> Array:
        """Returns the force of one thing on another, (N, 3), world frame, N."""
        return force_between(self._physics.engine, self.scene, a, b)

    # --------------------------------------------------------------------- goals

    @property
    def goal_sizes(self) -> tuple[int, int]:
        """How many numbers `info` gives of the achieved and of the desired goal."""
        achieved, desired = self.task.goal_arrays(self._now())
        return achieved.shape[1], desired.shape[1]

    def goal_reward(self, achieved: Array, desired: Array) -> Array:
        """Returns what goals alone earn, (n,): the sparse reward, or the fractional part of it.

        Args:
            achieved: as in `info["achieved_goal"]`, (n, k).
            desired: as in `info["desired_goal"]`, (n, k).
        """
        return self._rules.goal_reward(achieved, desired)

    def set_starting_state(self, values: Mapping[str, Any] | None) -> None:
        """Adds to what every later episode starts with; None goes back to the defaults."""
        if values is None:
            self._latched = {}
            return
        given = {
            name: np.array(value, dtype=lookup(self.variables, name).dtype)[None]
            for name, value in values.items()
        }
        self._latched = self.graph.updated(self._latched, given)

    def sample_goal(self, worlds: Index, noise: Noise, space: SpaceName) -> Mapping[str, Array]:
        """Returns a new goal per world, as values to intervene with; applies nothing."""
        values = ValuesOf(self, worlds)
        return self.task.sample_goal(values, ActiveSpaces(self.variables, values, space), noise)

    def scripted_policy(self) -> Callable[[Any], Any] | None:
        """Returns the hand-written baseline of five of the tasks."""
        return scripted_policy(self._senses.layout, self.options)

    # ------------------------------------------------------------ saving, looking

    def save(self, worlds: Index) -> State:
        """Returns the engine's rows and the store's."""
        rows = {_VALUE + key: values[worlds] for key, values in self._store.items()}
        return {**self._physics.save(worlds), **rows}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        self._physics.load({k: v for k, v in state.items() if not k.startswith(_VALUE)}, worlds)
        for key in self._store:
            self._store[key][worlds] = state[_VALUE + key]
        self._instant = self._goal = None

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a picture (rows, columns, 3) of one world."""
        rows = store.take(self._store, np.array([world]))
        return self._in_studio().view(rows, self.render_size)

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns the solids that can be seen of one world."""
        return self._in_studio().shapes(store.take(self._store, np.array([world])))

    def _in_studio(self) -> Studio:
        if self._studio is None:
            self._studio = Studio(self._physics.model, self.scene)
        return self._studio

    def _quick_studio(self) -> Studio:
        model, shadows = self._physics.model, self.options.shadows
        return Studio(model, self.scene, quick=True, shadows=shadows)

    def close(self) -> None:
        """Releases the engines."""
        self._physics.close()
        self._senses.close()
        if self._studio is not None:
            self._studio.close()
            self._studio = None


def _declare(task: Task, scene: Scene) -> list[Declared]:
    return [
        *arena_variables(scene),
        *robot_variables(scene, task.start),
        *task.variables(scene),
        success_variable(),
    ]
