"""The control worlds: tasks of the suite whose looks and dynamics are variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.art.pictures import COLOR_MODES, difficulty, first, folder_videos, procedural_videos
from interverse.core.arrays import Array
from interverse.core.errors import InvalidValueError, explain
from interverse.core.rng import Noise
from interverse.scm import Variable, refuse_bindings, table, with_defaults
from interverse.scm.store import Store
from interverse.sim import SimulationError
from interverse.sim.drawing import Kind
from interverse.sim.shapes import Shape
from interverse.sim.threads import DrawingPool, cores
from interverse.worlds.control.distraction import Distraction, episode_colors
from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.gallery import NO_PICTURE, Gallery, open_gallery
from interverse.worlds.control.looks import draw_look, drawn_names, factors, with_switches
from interverse.worlds.control.options import CONTROL_STEPS, ControlOptions
from interverse.worlds.control.original import original_draws, with_pictures
from interverse.worlds.control.paint import without_covered
from interverse.worlds.control.stage import ControlStage
from interverse.worlds.control.suite import PhysicsError, domain_model
from interverse.worlds.control.variables import (
    KIND_OF,
    LARGEST_DYNAMICS_SEED,
    STATE,
    control_graph,
    control_variables,
)
from interverse.worlds.world import (
    NONE_REFUSED,
    Index,
    Refusals,
    Scenario,
    Score,
    State,
    World,
    WorldOptions,
)

if TYPE_CHECKING:
    from interverse.worlds.control.device_pictures import ControlPhotographer

Values = dict[str, NDArray[Any]]
_VALUE = "value/"  # of the store's rows in a saved state
SEEDS = ("visual_seed", "dynamics_seed")
ELSEWHERE = (*STATE, *KIND_OF)  # not in the store: in the physics, or worked out
_FREE = -1  # dm_control's free camera, its default


@final
class ControlWorld(World):
    """A task of the control suite; worlds that are drawn are stepped and drawn side by side."""

    options_type: ClassVar[type[WorldOptions]] = ControlOptions
    reset_variables: ClassVar[tuple[str, ...]] = SEEDS
    start_variables: ClassVar[tuple[str, ...]] = ("dynamics_seed",)
    training_place: ClassVar[tuple[str, ...]] = (
        *SEEDS,
        "vary",
        "vary_dynamics",
        "pictures",
        "distraction",
        "distract",
        "dynamic",
    )

    options: ControlOptions

    def __init__(self, num_worlds: int, options: ControlOptions) -> None:
        self.num_worlds, self.options = num_worlds, options
        self.follow_image_size(max(options.size))
        textures = options.textures
        self._gallery = open_gallery(None if textures is None else os.fspath(textures))
        self.pictures = self._gallery.digest  # equal digests: the same numbers mean the same
        model = domain_model(options.domain, options.poles)
        self._distraction = _distraction(options, model)
        moving = () if self._distraction is None else self._distraction.variables()
        declared = _declared(options, self._gallery, moving)
        self._set_variables(declared, [variable.name for variable in moving])
        self._set_stages(declared)
        edges = Distraction.edges(declared)
        self.graph = control_graph(options.domain, declared, self._draws, edges)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (model.nu,), np.float32)
        self.layout = self._find_layout()
        self._photographer: ControlPhotographer | None = None  # draws all worlds at once
        if options.renderer != "mujoco":
            from interverse.worlds.control.device_pictures import ControlPhotographer

            self._photographer = ControlPhotographer(self._stages, options)
        self._is_state = bool(self.layout) and not self._is_dict
        self.observation_space = self._space()
        self.max_steps = options.steps
        self.reward_range = (0.0, float(options.frame_skip))

    def _set_variables(self, declared: Mapping[str, Variable], moving: Sequence[str]) -> None:
        """Makes the table of variables, and where episodes have their values from."""
        options, domain, poles = self.options, self.options.domain, self.options.poles
        seeds = {name: getattr(options, name) for name in SEEDS}
        given: dict[str, Any] = {n: s for n, s in seeds.items() if isinstance(s, int | np.integer)}
        given |= options.defaults
        self.variables = with_defaults(declared, given)
        self._moved = (*STATE, *moving)  # by time: the physics' own state, then the distraction's
        self._shown = (*SEEDS, *(factor.name for factor in factors(domain, poles)))
        started = STATE if DOMAINS[domain].moving_start else STATE[:1]
        self._draws = {  # what each seed draws, the state of the physics included
            "visual_seed": drawn_names(domain, options.vary, poles),
            "dynamics_seed": (*started, *options.vary_dynamics),
        }
        own = {name: self.variables[name].default for name in given}
        self._fixed = {name: value for name, value in own.items() if name not in self._moved}
        self._start_state = {name: value for name, value in own.items() if name in self._moved}
        somehow = {*self._shown, *options.dynamics_names, *moving, *ELSEWHERE}
        kept = (name for name in declared if name not in somehow)  # what nothing draws
        self._kept = {name: self.variables[name].default for name in kept}

    def _set_stages(self, declared: Mapping[str, Variable]) -> None:
        """Makes the worlds, and the store whose rows they see as their values."""
        options, count = self.options, self.num_worlds
        # Drawing is worth a thread; a step alone is shorter than handing it over.
        threads = min(options.threads or cores(), count) if options.is_drawn else 1
        looks = [v for name, v in declared.items() if name not in options.dynamics_names]
        self._pool, parts = DrawingPool(threads), (options, looks, self._distraction)
        self._stages = [ControlStage(*parts, self._pool.thread_of(i)) for i in range(count)]
        self._store = Store(self.variables, num_worlds=count, slots=dict.fromkeys(ELSEWHERE))
        for world, stage in enumerate(self._stages):
            stage.values = {name: rows[world, ...] for name, rows in self._store.rows.items()}

    @property
    def return_range(self) -> tuple[float, float]:
        """Each control step earns up to 1, and the last decision may have fewer of them."""
        return 0.0, float(min(CONTROL_STEPS, self.options.frame_skip * self.max_steps))

    # ---------------------------------------------------------------- episodes

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Starts episodes: seeds, look and dynamics, the task's own draws, then given state."""
        for row, world in enumerate(worlds.tolist()):
            chosen = {name: np.asarray(value)[row] for name, value in given.items()}
            self._put(self._episode_values(noise.take(np.array([row])), chosen), world)
            self._stages[world].start()
            state = {n: v for n, v in chosen.items() if n in self._moved}
            state = self._start_state | state
            if state:
                self._change(state, world)
        return NONE_REFUSED

    def _put(self, values: Values, world: int) -> None:
        """Puts values into the store; the world's stage sees them there."""
        self._store.update({n: v for n, v in values.items() if n not in STATE}, np.array([world]))

    def _change(self, values: Values, world: int) -> None:
        """Changes values of a world, and lets what follows from them follow."""
        self._put(values, world)
        self._stages[world].change({n: v for n, v in values.items() if n in STATE})

    def _episode_values(self, noise: Noise, given: Values) -> Values:
        """Returns every variable but the state for a new episode."""
        fixed = self._fixed | {n: v for n, v in given.items() if n not in self._moved}
        values: Values = self._kept | {
            "visual_seed": fixed.get("visual_seed", self._drawn(noise, "visual_seed")),
            "dynamics_seed": fixed.get("dynamics_seed", self._drawn(noise, "dynamics_seed")),
        }
        values |= self._look(int(values["visual_seed"]))
        values |= self._dynamics(int(values["dynamics_seed"]))
        if self.options.mode in COLOR_MODES:
            values |= episode_colors(self.options.mode, noise, self.options.domain)
        if self._distraction is not None:
            values |= self._distraction.start(noise)
        return values | fixed

    def _drawn(self, noise: Noise, name: str) -> NDArray[np.int64]:
        """Returns a seed of this episode from the option's ends."""
        ends = getattr(self.options, name)
        if ends is None:
            ends = 0, LARGEST_DYNAMICS_SEED
        low, high = ends if isinstance(ends, tuple | list) else (ends, ends)
        return low + noise.integers(name, high - low + 1)[0]

    def _look(self, seed: int) -> Values:
        options, gallery = self.options, self._gallery
        if options.legacy_draws and seed != 0:
            look = original_draws(seed, options.domain, poles=options.poles)
            look = with_pictures(look, {n: shelf.count for n, shelf in gallery.shelves.items()})
        else:
            which = options.pictures
            look = draw_look(options.domain, seed, gallery, options.poles, pictures=which)
        return with_switches(look, options.domain, options.vary, options.poles)

    def _dynamics(self, seed: int) -> Values:
        """Returns the dynamics of an episode: those that vary from the seed, else defaults."""
        values = {name: self.variables[name].default for name in self.options.dynamics_names}
        noise = Noise.single(seed=seed)
        for name in self.options.vary_dynamics:
            space = self.variables[name].space("A")
            assert space is not None, "every dynamics variable has a space A"
            values[name] = space.from_uniform(noise.uniforms([name], space.draws)[0, 0])
        return values

    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables; a visual seed redraws each of its factors that is not set beside it."""
        for row, world in enumerate(worlds.tolist()):
            chosen: Values = {name: np.asarray(value)[row] for name, value in values.items()}
            if "visual_seed" in chosen:
                look = self._look(int(chosen["visual_seed"]))
                redrawn = self._draws["visual_seed"]
                look = {n: look[n] for n in redrawn if n not in self._fixed}
                chosen = look | chosen
            self._change(chosen, world)
        return NONE_REFUSED

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape)."""
        if name in STATE:
            return np.stack([getattr(s.physics.data, name) for s in self._stages])
        if name in KIND_OF:  # what the pictures of a surface show
            kinds = self._gallery.shelves[name.partition("/")[0]].kinds
            numbers = self.read(KIND_OF[name]).tolist()
            return np.array([NO_PICTURE if i == NO_PICTURE else kinds[i] for i in numbers])
        return self._store.read(name)

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Advances worlds by one decision: frame_skip control steps."""
        order, given = worlds.tolist(), np.asarray(actions, np.float64)
        if self._stages[0].is_bare:
            failed = self._step_together(order, given)
        else:
            failed = self._step_and_draw(order, given, noise)
        if not failed:
            return
        for stepped in order:  # the step is taken back in all its worlds
            self._stages[stepped].undo()
        world = min(failed)
        problem = f"the physics of {self.options.domain} diverged in world {world}"
        fix = "Intervene less strongly on qpos, qvel or the dynamics, or reset"
        told = explain(f"{problem}: {failed[world]}", fix=fix)
        raise SimulationError(told, [world]) from failed[world]

    def _step_and_draw(
        self, order: list[int], actions: NDArray[np.float64], noise: Noise
    ) -> dict[int, PhysicsError]:
        """Steps and draws each world, several side by side; returns what failed."""
        failed: dict[int, PhysicsError] = {}
        if self._photographer is not None:
            self._draw_missing()  # pictures of this moment are among the next observation's

        def advance(world: int, row: int | None = None) -> None:
            stage, own = self._stages[world], noise
            row = order.index(world) if row is None else row
            if self._distraction is not None:
                own = noise.take(np.array([row]))
            stage.mark()
            try:
                stage.step(actions[row], own)
                if self._photographer is None:
                    stage.draw()
            except PhysicsError as error:
                failed[world] = error

        if self._pool.size == 1:
            for row, world in enumerate(order):
                advance(world, row)
        else:
            self._pool.each(advance, order)
        return failed

    def _step_together(
        self, order: list[int], actions: NDArray[np.float64]
    ) -> dict[int, PhysicsError]:
        """Makes each part of a step in all worlds before the next part; returns what failed.

        The code of a part stays in the processor's cache so, and takes half as long.
        """
        stages = [self._stages[world] for world in order]
        for stage in stages:
            stage.mark()
        repeats = [stage.begin() for stage in stages]
        failed: dict[int, PhysicsError] = {}
        for tick in range(max(repeats)):
            rows = [i for i, n in enumerate(repeats) if tick < n and order[i] not in failed]
            for row in rows:
                stages[row].push(actions[row])
            for row in rows:
                try:
                    stages[row].advance()
                except PhysicsError as error:
                    failed[order[row]] = error
            for row in rows:
                if order[row] not in failed:
                    stages[row].earn()
        return failed

    # ------------------------------------------------------------ observations

    def observe(self) -> Any:
        """Returns every world's observation."""
        if self._is_state:
            return self._states()
        kinds = self.options.kinds
        self._draw_missing()
        seen = {kind: np.stack([self._see(s, kind) for s in self._stages]) for kind in kinds}
        return seen if self._is_dict else seen[kinds[0]]

    def _draw_missing(self) -> None:
        """Draws the worlds of which a picture of this moment is missing."""
        waiting = [world for world, stage in enumerate(self._stages) if not stage.is_drawn]
        if self._photographer is None:
            self._pool.each(lambda world: self._stages[world].draw(), waiting)
        elif waiting:
            pictures = self._photographer.draw()
            for world in waiting:
                self._stages[world].put_frame(pictures[world])

    def _states(self) -> NDArray[np.float64]:
        """Returns every world's state, laid side by side as `layout` says."""
        if self._is_flat:
            seen = [part for stage in self._stages for part in stage.seen().values()]
            return np.concatenate(seen).reshape(self.num_worlds, -1)
        out = np.empty((self.num_worlds, *self.observation_space.shape))  # type: ignore[misc]
        for row, stage in zip(out, self._stages, strict=True):
            for part, place in zip(stage.seen().values(), self.layout.values(), strict=True):
                row[place] = part.ravel() if type(part) is np.ndarray else part
        return out

    @property
    def _is_dict(self) -> bool:
        return not isinstance(self.options.observation, str)

    def _see(self, stage: ControlStage, kind: str) -> NDArray[Any]:
        if kind == "state":
            return np.concatenate([part.ravel() for part in stage.state().values()])
        if kind != "pixels":
            return np.stack(stage.frames(kind))
        stacked = np.concatenate(stage.frames(kind), axis=-1)
        return stacked.transpose(2, 0, 1) if self.options.channels_first else stacked

    def _find_layout(self) -> Mapping[str, slice]:
        if self.options.kinds != ("state",):
            return MappingProxyType({})
        layout, start = {}, 0
        seen = self._stages[0].seen().values()
        self._is_flat = all(np.ndim(p) == 1 and p.dtype == np.float64 for p in seen)
        for name, part in self._stages[0].state().items():
            layout[name] = slice(start, start + part.size)
            start += part.size
        return MappingProxyType(layout)

    def _space(self) -> gym.spaces.Space[Any]:
        kinds = self.options.kinds
        spaces: dict[str, Any] = {kind: self._kind_space(kind) for kind in kinds}
        return gym.spaces.Dict(spaces) if self._is_dict else spaces[self.options.kinds[0]]

    def _kind_space(self, kind: str) -> gym.spaces.Box:
        options = self.options
        if kind == "state":
            width = sum(part.size for part in self._stages[0].state().values())
            return gym.spaces.Box(-np.inf, np.inf, (width,), np.float64)
        rows, columns = options.size
        if kind == "depth":
            shape = (options.frame_stack, rows, columns)
            return gym.spaces.Box(0.0, np.inf, shape, np.float32)
        if kind == "segmentation":
            last = self._stages[0].physics.model.ngeom - 1
            return gym.spaces.Box(-1, last, (options.frame_stack, rows, columns), np.int32)
        channels = 3 * options.frame_stack
        shape = (channels, rows, columns) if options.channels_first else (rows, columns, channels)
        return gym.spaces.Box(0, 255, shape, np.uint8)

    def score(self) -> Score:
        """Returns the reward of the last decision; `info` has the seeds and the whole look."""
        reward = np.array([stage.reward for stage in self._stages])

        def present() -> Mapping[str, NDArray[Any]]:
            return MappingProxyType({name: self.read(name) for name in self._shown})

        look = self._store.cached("look", self._shown, present)  # gathering it costs most of a step
        never = np.zeros(self.num_worlds, dtype=bool)
        return Score(reward, never, look, info_lasts=True)

    # --------------------------------------------------------------- snapshots

    def save(self, worlds: Index) -> State:
        """Returns everything of these worlds that later steps need."""
        if self._photographer is not None:
            self._draw_missing()
        rows = [self._stages[world].save() for world in worlds.tolist()]
        state = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        return state | {_VALUE + name: part for name, part in self._store.take(worlds).items()}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        saved = {name: np.asarray(rows) for name, rows in state.items()}
        self._store.update({name: saved.pop(_VALUE + name) for name in self._store.rows}, worlds)
        for row, world in enumerate(worlds.tolist()):
            self._stages[world].load({name: rows[row] for name, rows in saved.items()})

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a larger picture (rows, columns, 3) through the same camera."""
        return np.ascontiguousarray(self._stages[world].picture(self.render_size, "full"))

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns the solids that can be seen of one world."""
        return self._stages[world].shapes()

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns a body that has fallen or flies, and cameras that look elsewhere."""
        return (_fallen, _looking_around, _thrown, _in_oil)

    def stage(self, world: int) -> ControlStage:
        """Returns one of the worlds by itself."""
        return self._stages[world]

    @property
    def physics(self) -> DrawnPhysics:
        """dm_control's physics of the first world, for code written against dm_control."""
        return DrawnPhysics(self)

    def close(self) -> None:
        """Releases what the worlds draw with."""
        for stage in self._stages:
            stage.close()


@final
class DrawnPhysics:
    """dm_control's `Physics` of one world; `render` draws the look, all else is passed on."""

    def __init__(self, world: ControlWorld) -> None:
        self._world = world

    def render(
        self, height: int = 240, width: int = 320, camera_id: int | str = _FREE, depth: bool = False
    ) -> NDArray[Any]:
        """Returns a picture as the stock suite draws it, (height, width[, 3]).

        Args:
            height: rows.
            width: columns.
            camera_id: a camera's number or name; the free camera (-1) is the task's own camera 0.
            depth: distances in metres instead of colours.
        """
        stage = self._world.stage(0)
        if not stage.has_started:  # dm_control's wrappers draw before the first episode
            self._world.reset(np.arange(1), Noise.single(seed=0), {})
        model = stage.physics.model
        known = [model.id2name(i, "camera") for i in range(model.ncam)]
        if camera_id in known:
            camera_id = known.index(str(camera_id))
        if not isinstance(camera_id, int | np.integer) or not _FREE <= camera_id < model.ncam:
            allowed = f"-1 to {model.ncam - 1}, {', '.join(known)}"
            raise InvalidValueError(f"camera_id is {camera_id!r}", allowed=allowed)
        camera = None if camera_id == _FREE else int(camera_id)
        kind: Kind = "depth" if depth else "rgb"
        return np.array(stage.picture((height, width), "full", kind, camera=camera))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.stage(0).physics, name)


def _declared(
    options: ControlOptions, gallery: Gallery, moving: Sequence[Variable]
) -> Mapping[str, Variable]:
    """Returns the table of a world's variables, those of its distraction last."""
    own = control_variables(options.domain, options.poles, gallery).values()
    unseen = ("target/color",) if options.task in DOMAINS[options.domain].hide_target else ()
    why = "this task hides the target"
    shown = [replace(v, inert=why) if v.name in unseen else v for v in own]
    declared = table(*without_covered(shown, moving), *moving)
    refuse_bindings(variable for name, variable in declared.items() if name in ELSEWHERE)
    return declared


def _distraction(options: ControlOptions, model: Any) -> Distraction | None:
    """Returns the mechanisms of the options' distraction, where there is one."""
    folder = None if options.videos is None else folder_videos(os.fspath(options.videos))
    if not options.distractions or options.distraction is None:
        return None  # the folder is read all the same: a wrong one raises
    level = difficulty(options.distraction)
    shown = first(folder or procedural_videos(), level.videos)
    return Distraction(model, options.domain, level, options.distractions, shown, options.dynamic)


def _fallen(values: object, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Lets time pass, so that what falls lies on the ground and slides."""
    yield "play", int(rng.integers(20, 60))


def _looking_around(
    values: Mapping[str, NDArray[Any]], rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Turns, moves and lowers the camera, so that sky, floor and what it mirrors are in view."""
    yield "do", {"camera/rotation": rng.uniform(-0.5, 0.5, 3) * (1.0, 0.3, 0.3)}
    yield "do", {"camera/position": values["camera/position"] * rng.uniform(0.5, (1.0, 2.0, 1.0))}


def _thrown(
    values: Mapping[str, NDArray[Any]], rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Sets everything moving fast, so that weak damping shows."""
    yield "do", {"qvel": 5.0 * rng.standard_normal(values["qvel"].shape)}


def _in_oil(
    values: Mapping[str, NDArray[Any]], rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Fills the scene with something thick, so that wind shows."""
    yield "do", {"dynamics/viscosity": rng.uniform(0.1, 1.0)}
