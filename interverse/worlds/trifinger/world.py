"""The TriFinger world: a robot of three fingers, a task, and every variable of both.

All values live in the store (`interverse.scm.store`). An intervention is worked out on copies of
its rows, checked, and only then committed: a refused world is never touched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, copy_of, namespace, to_numpy
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise
from interverse.scm import Variable, table
from interverse.scm.store import PREFIX, Rows, Store, StoreSlot, changed_keys
from interverse.scm.variable import SpaceName, lookup, with_defaults
from interverse.sim.shapes import Shape
from interverse.worlds.trifinger.contacts import ActiveEdges, contact_edges, force_between, touching
from interverse.worlds.trifinger.objects import causal_graph, to_cartesian, to_cylindrical
from interverse.worlds.trifinger.observation import Observer
from interverse.worlds.trifinger.options import TriFingerOptions, scene_of
from interverse.worlds.trifinger.physics import PHYSICAL, Physics
from interverse.worlds.trifinger.pictures import (
    BatchPhotographer,
    Photographer,
    PictureObservations,
)
from interverse.worlds.trifinger.rewards import Instant, Targets, bounds, sparse, total
from interverse.worlds.trifinger.robot import (
    RAISED,
    RobotControl,
    action_bounds,
    tip_positions,
)
from interverse.worlds.trifinger.scene import ArenaScene, remembered
from interverse.worlds.trifinger.scripted import scripted_policy
from interverse.worlds.trifinger.situations import situations
from interverse.worlds.trifinger.store import (
    ADDRESS,
    CLOCK,
    COMMANDS,
    REWARD,
    START_RATES,
    Editor,
    scene_noise,
    settle,
    slots_of,
    starting_rows,
)
from interverse.worlds.trifinger.tasks import load_task
from interverse.worlds.trifinger.tasks.task import ReadWhenAsked, Task, active_spaces
from interverse.worlds.trifinger.variables import arena_variables, robot_variables, success_variable
from interverse.worlds.world import Index, Refusals, Scenario, Score, State, World

_HELD = (  # while time passes: goals, and the sizes of blocks
    "goal/position",
    "goal/orientation",
    "goal/size",
    "goal/used",
    "block/size",
    "block/used",
)
_SEEN = {  # what the present moment is worked out from
    *_HELD,
    "block/orientation",
    "block/position",
    "joint_positions",
    "joint_velocities",
    "robot/height",
    START_RATES,
}
_WAIT = "robot/command_wait"
_COMMAND_KEYS = (
    COMMANDS,
    "joint_positions",
    "robot/height",
    "robot/action_delay",
    _WAIT,
    "robot/control_period",
)


@final
class TriFinger(World):
    """N TriFinger arenas with one task."""

    options: TriFingerOptions
    options_type = TriFingerOptions
    pixel_options = MappingProxyType(
        {"observation_mode": "pixel", "image_size": 32, "skip_frame": 1}
    )
    clips_actions = True
    raised_joints = RAISED
    """Joint angles of fingers that are out of the way, (9,), rad."""

    def __init__(self, *, num_worlds: int, options: TriFingerOptions) -> None:
        self.num_worlds = num_worlds
        self.follow_image_size(options.image_size)
        self.task: Task = load_task(options.task)()
        self.task.draws_scenes = options.draw_scenes
        self.scene_variables = self.task.generators if self.task.varies else ()
        mode, normalized = options.action_mode, options.normalize_actions
        self._control = RobotControl(mode=mode, normalized=normalized)
        kind: Any = type(self.task)
        self.scene = scene_of(kind, options, self._control)
        self.options = replace(options, contact=self.scene.contact)
        self._set_up_rewards()
        self._physics = Physics(self.scene, num_worlds=num_worlds, options=options)
        self.engine = self._physics.engine
        self.task.capsules = self._physics.capsules()
        self._everyone = np.arange(num_worlds)
        self._edges: ActiveEdges | None = None
        hints = {"state": options.info_state, "solution": options.info_solution}
        self.nested_info = tuple(name for name, asked in hints.items() if asked)
        if options.active_edges:
            self._edges = ActiveEdges(self._physics.engine, self.scene)
            self._physics.watch = self._edges
        self._instant: Instant | None = None
        self._photographer: Photographer | None = None
        begun = _beginning(kind, self.scene, options.score, options.device)
        self._declare_spaces(begun)
        self._set_up_start(begun)
        self._set_up_observation()

    # -------------------------------------------------------------------- set-up

    def _set_up_rewards(self) -> None:
        """Works out how long an episode lasts and what its steps earn."""
        options, task = self.options, self.task
        given, share = options.dense_reward_weights, options.fractional_reward_weight
        weights = task.weights if given is None else given
        if len(weights) != len(task.weights):
            raise InvalidValueError(
                f"dense_reward_weights has {len(weights)} entries",
                allowed=f"{len(task.weights)}, one for each dense term of {task.name}",
            )
        self._weights = tuple(float(w) for w in weights) if any(weights) else ()
        self._share = task.fractional_weight if share is None else float(share)
        self._step_time = options.step_time
        self._seconds, self.max_steps = episode_length(task, self.scene, options)
        self.reward_range, self._earned = (-np.inf, np.inf), self._dense_reward
        if options.sparse_reward:
            self.reward_range, self._earned = (0.0, options.step_time), self._sparse_reward

    def _rewarded(self) -> tuple[str, ...]:
        """Returns the variables that the reward follows from, with the weights in force."""
        options, found = self.options, set[str]()
        if options.sparse_reward:
            return ("fractional_success",)
        if self._share:
            found |= {*self.task.bonus_causes(corrected_reward=options.mended_reward)}
        for weight, causes in zip(self._weights, self.task.term_causes, strict=False):
            found |= {*causes} if weight else set()
        return tuple(sorted(found))

    def _declare_spaces(self, begun: _Beginning) -> None:
        options, scene = self.options, self.scene
        self.graph = causal_graph(
            tuple(begun.declared),
            blocks=scene.block_count,
            goals=scene.goal_count,
            tip_commands="end_effector" in options.action_mode,
            edges=begun.edges,
            constraints=begun.constraints,
            scored=begun.scored,
            rewarded=self._rewarded(),
        )
        low, high = action_bounds(options.action_mode)
        if options.normalize_actions:
            low, high = -np.ones(9), np.ones(9)
        self.action_space = gym.spaces.Box(low.astype(np.float32), high.astype(np.float32))

    def _set_up_start(self, begun: _Beginning) -> None:
        """Works out the rows every episode starts from, and the variables' defaults with them."""
        options, physics, declared = self.options, self._physics, begun.declared
        self._store = Store(
            declared,
            num_worlds=self.num_worlds,
            start=begun.rows,
            slots=begun.slots,
            asarray=physics.asarray,
        )
        self._store.follow(physics.engine.put, PHYSICAL)
        self._editor = Editor(self.task, self.scene, self._store, declared, self._hold)
        self._each_time: Rows = {}  # defaults to apply again after the draws of each reset
        self._latched: Rows = {}  # what `set_starting_state` was given
        if begun.known and not options.defaults:
            self._start, self.variables = begun.known
            self._begin(self._everyone)
            return
        edits = self._store.edits(self._store.rows, set(self._store.slots), PHYSICAL)
        physics.engine.put_missing(edits, self._everyone)
        self.variables = variables = with_defaults(declared, options.defaults)
        self._start = self.save(self._everyone[:1])
        given = {name: np.asarray(value)[None] for name, value in options.defaults.items()}
        if given:
            self._start_from(variables, given)
        self.variables = MappingProxyType(
            {n: replace(v, default=to_numpy(self.read(n))[0]) for n, v in variables.items()}
        )
        if not given and options.device in ("cpu", "torch"):
            begun.known = self._start, self.variables

    def _set_up_observation(self) -> None:
        self._observer = Observer(
            self.task,
            self.scene,
            self.options,
            store=self._store,
            seconds=self._seconds,
            values=ReadWhenAsked(self.variables, self.read),
            torques=self._torques,
            photographer=self._pictures,
            asarray=self._physics.asarray,
        )
        self.layout, self.observation_space = self._observer.slices, self._observer.space
        self.observation_bounds = self._observer.bounds

    def _start_from(self, variables: Mapping[str, Variable], given: Mapping[str, Array]) -> None:
        first = self._everyone[:1]
        rows = {name: np.array(value, dtype=variables[name].dtype) for name, value in given.items()}
        if self.task.draws or set(given) & set(self.task.generators):
            self._each_time = rows
            zeros = (self._everyone * 0 for _ in range(3))
            self.reset(self._everyone, Noise(*zeros), {})
            return
        refused = self.intervene(rows, first)
        if refused:
            raise InvalidValueError(explain(f"the defaults cannot be: {refused[0]}"))
        self._start = self.save(first)
        self._begin(self._everyone)

    def _hold(self, rows: Rows) -> None:
        """Makes the robot's standing command keep it where it is."""
        torques = self._control.torques
        rows[COMMANDS][:] = 0.0 if torques else rows["joint_positions"][:, None, :]

    # ----------------------------------------------------------- episodes, doing

    def _begin(self, worlds: Index) -> None:
        """Puts the start of an episode, before any draw, into some worlds."""
        n = len(worlds)
        start = {k: namespace(rows).repeat(rows, n, axis=0) for k, rows in self._start.items()}
        self.load(start, worlds)

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Starts episodes: defaults, given causes, the task's draws, then given state."""
        self._begin(worlds)
        store, where = self._store, self._store.index(worlds)
        address = np.stack([noise.seeds, noise.episodes, noise.steps], axis=1)
        store.rows[ADDRESS][where] = self._physics.asarray(address)
        if self.task.draws:
            rows = store.take(worlds)
            settle(self.task, rows, self.task.generators)
            store.commit(rows, worlds)
        refused: Refusals = {}
        for values in (self._each_time, given):
            if values and not refused:
                once = values is not given
                rows = {n: np.repeat(v, len(worlds), 0) if once else v for n, v in values.items()}
                refused = self.intervene(rows, worlds)
        self._instant = None
        self._forget_edges(worlds)
        return refused

    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables and what follows at once; infeasible worlds are never touched."""
        store = self._store
        where = store.index(worlds)
        before = {key: held[where] for key, held in store.rows.items()}
        rows = {key: copy_of(old) for key, old in before.items()}
        given = {name: self._physics.asarray(value) for name, value in values.items()}
        refused = self._editor.apply(rows, given)
        changed = changed_keys(rows, before, rows)
        if not (self.options.legacy_unchecked and values.keys() & set(self.task.unchecked)):
            refused = self._editor.infeasible(rows, before, changed) | refused
        if self.task.own or not _SEEN.isdisjoint(changed):
            self._instant = None
        if not refused:
            store.commit(rows, worlds, changed, before)
            return {}
        keep = np.array([k for k in range(len(worlds)) if k not in refused], dtype=np.int64)
        if len(keep):
            store.commit({key: rows[key][keep] for key in rows}, worlds[keep], changed)
        return {int(worlds[k]): reason for k, reason in refused.items()}

    # ------------------------------------------------------------------- reading

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape)."""
        if name in self._store.slots:
            return self._store.read(name)
        if name == "end_effector_positions":
            return copy_of(self._now().tips)
        if name == "fractional_success":
            return copy_of(self._now().fraction)
        owner = lookup(self.variables, name).name.partition("/")[0]
        return to_cylindrical(self._store.part(self._store.rows, f"{owner}/cartesian_position"))

    def _now(self) -> Instant:
        """Returns what rewards and scores are made of, worked out once between changes."""
        if self._instant is None:
            self._instant = self._gather()
        return self._instant

    def _gather(self) -> Instant:
        store, rows = self._store, self._store.rows
        goals, size = store.cached("held", _HELD, self._sizes)
        place, turn = copy_of(rows["block/position"]), copy_of(rows["block/orientation"])
        tips = tip_positions(rows["joint_positions"], rows["robot/height"])
        rates, box = copy_of(rows["joint_velocities"]), bounds(place, turn, size)
        start = rates if self.options.mended_reward else rows[START_RATES]
        now = Instant(tips, rates, place, turn, size, box, goals, self._torques, start)
        if self.task.own:
            now = replace(now, own={name: self.read(name) for name in self.task.own})
        return replace(now, fraction=self.task.fraction(now, self.options.score))

    def _sizes(self) -> tuple[Targets, Array]:
        """Returns the goals and the sizes of blocks; what is not there has size zero."""
        rows = self._store.rows
        pose = copy_of(rows["goal/position"]), copy_of(rows["goal/orientation"])
        where = namespace(pose[0]).where
        goals, blocks = (
            where(rows[f"{kind}/used"][..., None], rows[f"{kind}/size"], 0.0)
            for kind in ("goal", "block")
        )
        return Targets(*pose, goals, bounds(*pose, goals)), blocks

    def _torques(self) -> Array:
        return self._physics.torques(self._store.rows, self._store.rows[COMMANDS])

    # ---------------------------------------------------------------------- time

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Advances some worlds by one step of `skip_frame` substeps."""
        before, store, rows = self._now(), self._store, self._store.rows
        where, asarray = store.index(worlds), self._physics.asarray
        # both at first: a copy to a GPU waits for what is under way
        command, steps = self._command(asarray(actions), where), asarray(noise.steps)
        self._physics.step(store, command, worlds, self.options.skip_frame)
        rows[CLOCK][where] += 1
        rows[ADDRESS][where, 2] = steps
        self._instant = now = self._gather()
        rows[REWARD][where] = self._earned(before, now)[where]

    def _dense_reward(self, before: Instant, now: Instant) -> Array:
        """Returns what a step earned, (N,), given its two ends."""
        task, mended = self.task, self.options.mended_reward
        terms = task.terms(before, now, corrected_reward=mended) if self._weights else ()
        bonus = task.bonus(now, corrected_reward=mended) if self._share else 0.0 * now.fraction
        return total(terms, self._weights, bonus, self._share, self._step_time)

    def _sparse_reward(self, before: Instant, now: Instant) -> Array:
        return sparse(self.task.solved(now), self._step_time)

    def _command(self, actions: Array, where: Any) -> Array:
        """Returns what the motors are told, (n, 9): the action as it arrives, late or held."""
        rows = self._store.rows
        queue, joints, height, delay, wait, period = (rows[key][where] for key in _COMMAND_KEYS)
        fresh, xp = self._control.command(actions, joints, queue[:, 0], height), namespace(queue)
        newest = xp.where((wait > 0)[:, None], queue[:, 0], fresh)
        rows[_WAIT][where] = xp.where(wait > 0, wait - 1, period - 1)
        rows[COMMANDS][where] = queue = xp.concat([newest[:, None], queue[:, :-1]], axis=1)
        return xp.take_along_axis(queue, delay[:, None, None], axis=1)[:, 0]

    def observe(self) -> Any:
        """Returns every world's observation, as fresh arrays."""
        return self._observer.observe(self._now().tips)

    def score(self) -> Score:
        """Returns reward, success and goals as they stand; an episode ends by time alone."""
        now, rows = self._now(), self._store.rows
        info = {"success": self.task.solved(now), "fractional_success": copy_of(now.fraction)}
        info["achieved_goal"], info["desired_goal"] = self.task.goal_arrays(now)
        if self.options.info_state:
            info |= {f"state/{name}": self.read(name) for name in self.variables}
        if self.options.info_solution:
            info |= {f"solution/{n}": value for n, value in self.task.solution(rows).items()}
        if self._edges is not None:
            info["active_edges"] = self._physics.asarray(self._edges.active.copy())
        return Score(copy_of(rows[REWARD]), rows[CLOCK] < 0, info)

    # ------------------------------------------------------------------ contacts

    def contact(self, a: str, b: str) -> Array:
        """Returns whether two things touch, (N,): floor, stage, obstacles, fingers, blocks."""
        return touching(self._physics.engine, self.scene, a, b)

    def contact_force(self, a: str, b: str) -> Array:
        """Returns the force of one thing on another, (N, 3), world frame, N."""
        return force_between(self._physics.engine, self.scene, a, b)

    @property
    def contact_edges(self) -> tuple[tuple[str, str], ...]:
        """The edges (cause, effect) that `info["active_edges"]` has a column for."""
        return contact_edges(self.scene)

    @property
    def info_columns(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the active edges, such as `finger_0 -> block_0`, if they are asked for."""
        edges = self.contact_edges if self.options.active_edges else ()
        return {"active_edges": tuple(f"{a} -> {b}" for a, b in edges)} if edges else {}

    def _forget_edges(self, worlds: Index) -> None:
        if self._edges is not None:
            self._edges.clear(worlds)

    # --------------------------------------------------------------------- goals

    @property
    def goal_sizes(self) -> tuple[int, int]:
        """How many numbers `info` gives of the achieved and of the desired goal."""
        achieved, desired = self.task.goal_arrays(self._now())
        return achieved.shape[1], desired.shape[1]

    def goal_reward(self, achieved: Array, desired: Array) -> Array:
        """Returns what goals alone earn, (n,): the sparse reward, or that of fractional success.

        Args:
            achieved: as in `info["achieved_goal"]`, (n, k).
            desired: as in `info["desired_goal"]`, (n, k).
        """
        corrected_reward = self.options.mended_reward
        bonus, success = self.task.bonus_of(achieved, desired, corrected_reward=corrected_reward)
        if self.options.sparse_reward:
            return sparse(success, self.options.step_time)
        return self.options.step_time * self._share * bonus

    @property
    def beyond_goals(self) -> str:
        """What else than `goal_reward` a step earns, or is told by; empty where it is all."""
        if self.options.score != "aabb" and self.task.name != "reaching":
            return f"score={self.options.score!r}"
        dense = self._weights and not self.options.sparse_reward
        return f"dense_reward_weights={self._weights}" if dense else ""

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

    @property
    def starting_values(self) -> Mapping[str, Array]:
        """What `set_starting_state` was given: every later episode starts with it."""
        return self._latched

    def same_values(self, name: str, a: Array, b: Array) -> Array:
        """Returns in which rows two values mean the same; an angle at radius zero means nothing."""
        if name.endswith("cylindrical_position"):
            a, b = to_cartesian(a), to_cartesian(b)
        return super().same_values(name, a, b)

    def sample_goal(self, worlds: Index, noise: Noise, space: SpaceName) -> Mapping[str, Array]:
        """Returns a new goal per world, as values to intervene with; applies nothing."""
        values = ReadWhenAsked(self.variables, lambda name: self.read(name)[worlds])
        return self.task.sample_goal(values, active_spaces(self.variables, values, space), noise)

    def absent(self, values: Mapping[str, Array], worlds: Index) -> Mapping[str, NDArray[np.bool_]]:
        """Returns the blocks and goals that the scene would not have, and in which rows."""
        store, causes = self._store, self.scene_variables
        if not causes:
            return {}
        keys, where = (*causes, "block/used", "goal/used", ADDRESS), store.index(worlds)
        rows = {key: to_numpy(store.rows[key][where]) for key in keys}
        counts = [rows[f"{kind}/used"].sum(axis=1) for kind in ("block", "goal")]
        if given := {n: to_numpy(v) for n, v in values.items() if n in causes}:
            counts = list(self.task.pieces(rows | given, scene_noise(self.task, rows[ADDRESS])))
        return {
            f"{kind}_{i}": count <= i
            for kind, count in zip(("block", "goal"), counts, strict=True)
            for i in range(rows[f"{kind}/used"].shape[1])
            if (count <= i).any()
        }

    def scripted_policy(self) -> Callable[[Any], Any] | None:
        """Returns the hand-written baseline of five of the tasks."""
        return scripted_policy(self._observer.layout, self.options)

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns piles of blocks with fingers on them, and whatever else lets causes act."""
        return situations(self.options)

    # ------------------------------------------------------------ saving, looking

    def save(self, worlds: Index) -> State:
        """Returns the engine's rows and the store's."""
        return {**self._physics.engine.save(worlds), **self._store.save(worlds)}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        engine = {name: rows for name, rows in state.items() if not name.startswith(PREFIX)}
        self._physics.engine.load(engine, worlds)
        self._store.load(state, worlds)
        self._instant = None
        self._forget_edges(worlds)

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a picture (rows, columns, 3) of one world."""
        return self._own_photographer().view(self._store.take(np.array([world])), self.render_size)

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns the solids that can be seen of one world."""
        return self._own_photographer().shapes(self._store.take(np.array([world])))

    def _own_photographer(self) -> Photographer:
        if self._photographer is None:
            self._photographer = Photographer(self._physics.model, self.scene, self._store)
        return self._photographer

    def _pictures(self) -> PictureObservations | BatchPhotographer:
        """Returns what draws observations: all worlds at once on a device, else one by one."""
        options, physics, store = self.options, self._physics, self._store
        if options.device not in ("cpu", "torch") and set(options.picture_kinds) <= {"rgb"}:
            return BatchPhotographer(physics.engine, self.scene, store, options)
        return PictureObservations(physics.model, self.scene, store, options)

    def close(self) -> None:
        """Releases the engines."""
        self._observer.close()
        if self._photographer is not None:
            self._photographer.close()
            self._photographer = None
        self._physics.close()  # last: a device may say here what did not fit


@functools.lru_cache(maxsize=32)  # of hundreds of variables: built once, never changed
def declare_variables(kind: type[Task], scene: ArenaScene) -> Mapping[str, Variable]:
    """Returns every variable of a kind of task in a scene."""
    return table(
        *arena_variables(scene),
        *robot_variables(scene, kind.start),
        *kind().variables(scene),
        success_variable(scene.block_count),
    )


@dataclass(slots=True, eq=False)
class _Beginning:
    """What worlds of one kind begin with, without defaults of their own."""

    declared: Mapping[str, Variable]
    edges: tuple[tuple[str, str], ...]
    constraints: tuple[tuple[str, str], ...]
    scored: tuple[str, ...]
    rows: Rows
    slots: Mapping[str, StoreSlot | None]
    known: tuple[State, Mapping[str, Variable]] | None = None  # once the first is made


@remembered
def _beginning(kind: type[Task], scene: ArenaScene, score: str, device: str) -> _Beginning:
    """Returns what worlds begin with; what depends on a score and a device goes with them."""
    declared, rows, task = declare_variables(kind, scene), starting_rows(scene), kind()
    if not scene.torques:  # the standing command keeps the robot where it is
        rows[COMMANDS][:] = np.asarray(kind.start)
    edges, constraints = tuple(task.edges(scene)), tuple(task.constraints(scene))
    scored, slots = task.score_causes(scene), slots_of(declared, rows)
    return _Beginning(declared, edges, constraints, scored, rows, slots)


def episode_length(task: Task, scene: ArenaScene, options: TriFingerOptions) -> tuple[float, int]:
    """Returns the time left at the start of an episode, s, and the step that ends it."""
    seconds = task.seconds(scene)
    max_steps = int(seconds / options.step_time) + 1  # the original ends one step late
    if options.max_steps is not None and options.max_steps != max_steps:
        max_steps = options.max_steps
        seconds = max(options.max_steps - 1, 1) * options.step_time
    if options.legacy_time_left:
        seconds = float(max(max_steps - 1, 1))
    return seconds, max_steps
