"""The slider's world: variables, scene and dynamics put together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, namespace, to_numpy
from interverse.core.errors import explain
from interverse.core.rng import Noise
from interverse.scm import with_defaults
from interverse.scm.store import PREFIX, Rows, Store
from interverse.sim import make_engine
from interverse.sim.shapes import Shape
from interverse.worlds.world import Index, Refusals, Score, State, World, WorldOptions

from . import dynamics
from .scene import CAMERA, SUBSTEPS, build_scene
from .variables import GRAPH, JOINTS, TABLE, VARIABLES

_OBSERVED = ("box/position", "box/velocity", "box/size", "goal/position")


@final
class Slider(World):
    """A box on a table; an action pushes it, the reward is how near it is to the goal."""

    def __init__(self, num_worlds: int, options: WorldOptions) -> None:
        self.num_worlds, self.options = num_worlds, options
        self.variables = with_defaults(VARIABLES, options.defaults)
        self.graph = GRAPH
        self.layout = _layout({name: self.variables[name].shape for name in _OBSERVED})
        width = max(part.stop for part in self.layout.values())
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (width,), np.float64)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.max_steps = 100 if options.max_steps is None else options.max_steps
        self.reward_range = (-np.inf, 0.0)
        self.engine = self._engine = make_engine(
            build_scene(self.variables),
            num_worlds=num_worlds,
            device=options.device,
            threads=options.threads,
        )
        # Every value stands in the store; what a commit changes goes to the engine by bindings.
        self._store = Store(self.variables, num_worlds=num_worlds, asarray=self._engine.asarray)
        self._store.follow(self._engine.put)

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Starts episodes: defaults, given causes, a random place, then the state that is set."""
        self._engine.reset(worlds)
        self._store.restart(worlds)
        rows = self._store.take(worlds)
        # The engine starts from the scene; a default that the scene does not have is sent.
        self._engine.put_missing(self._store.edits(rows, self.variables), worlds)
        causes = {n: v for n, v in given.items() if self.variables[n].kind != "state"}
        self._set(rows, causes)
        uniform = self._engine.asarray(noise.uniform("box/position", (2,)))
        rows["box/position"] = dynamics.start(rows["box/position"], rows["box/size"], uniform)
        state = {n: v.default for n, v in self.variables.items() if n in self.options.defaults}
        state |= given
        self._set(rows, {n: v for n, v in state.items() if self.variables[n].kind == "state"})
        bad = self._infeasible(rows, state)
        self._store.commit(rows, worlds)
        if given and bad.any():
            self.reset(worlds[bad], noise.take(bad), {})
        return _refusals(worlds[bad])

    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables and what follows at once; infeasible worlds are never touched."""
        rows = self._store.take(worlds)
        self._set(rows, values)
        if "box/size" in values and "box/position" not in values:
            rows["box/position"] = dynamics.seat(rows["box/position"], rows["box/size"])
        bad = self._infeasible(rows, values)
        keep = np.flatnonzero(~bad)
        if len(keep):
            self._store.commit({name: part[keep] for name, part in rows.items()}, worlds[keep])
        return _refusals(worlds[bad])

    def _set(self, rows: Rows, values: Mapping[str, Array]) -> None:
        """Writes values into copies of rows."""
        for name, value in values.items():
            rows[name][...] = self._engine.asarray(value)

    def _infeasible(self, rows: Rows, values: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Returns the rows whose box would be where no box can be."""
        if not values.keys() & {"box/position", "box/size"}:
            return np.zeros(len(rows["push"]), dtype=bool)
        return to_numpy(dynamics.infeasible(rows["box/position"], rows["box/size"]))

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape)."""
        return self._store.read(name)

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Pushes the box for one step."""
        push = self._store.rows["push"][worlds]
        force = dynamics.force(self._engine.asarray(actions), push)
        self._engine.set_forces(("box",), worlds, force=force[:, None, :])
        self._engine.step(worlds, SUBSTEPS)
        place = self._engine.joint_positions(JOINTS)[worlds]
        speed = self._engine.joint_velocities(JOINTS)[worlds]
        if (beyond := to_numpy(dynamics.beyond(place, speed))).any():
            place, speed = dynamics.held(place, speed)
            there = {"position": place[beyond], "velocity": speed[beyond]}
            self._engine.set_joints(JOINTS, worlds[beyond], **there)
        self._store.update({"box/position": place, "box/velocity": speed}, worlds)

    def observe(self) -> Array:
        """Returns every world's observation, (N, 11)."""
        return dynamics.observation(*(self.read(name) for name in _OBSERVED))

    def score(self) -> Score:
        """Returns minus the distance to the goal; an episode never ends before its time."""
        rows = self._store.rows
        reward = dynamics.reward(rows["box/position"], rows["goal/position"])
        never = namespace(reward).zeros_like(reward) > 0.0
        return Score(reward, never, {"success": -reward < dynamics.REACHED})

    def save(self, worlds: Index) -> State:
        """Returns the engine's rows and the variables' values."""
        return {**self._engine.save(worlds), **self._store.save(worlds)}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        engine = {name: rows for name, rows in state.items() if not name.startswith(PREFIX)}
        self._engine.load(engine, worlds)
        self._store.load(state, worlds)

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a picture (rows, columns, 3) of one world."""
        return self._engine.picture(world, camera=CAMERA, size=self.render_size)

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns the solids that can be seen of one world."""
        return self._engine.shapes(world)

    def close(self) -> None:
        """Releases the engine."""
        self._engine.close()


def _layout(shapes: Mapping[str, tuple[int, ...]]) -> Mapping[str, slice]:
    """Returns where each variable stands in the flat observation."""
    layout, start = {}, 0
    for name, (width,) in shapes.items():
        layout[name] = slice(start, start + width)
        start += width
    return MappingProxyType(layout)


def _refusals(worlds: Index) -> Refusals:
    """Returns why these worlds are refused."""
    reason = explain(
        "the box would hang over the table's edge or be sunk into it",
        allowed=f"|x|, |y| <= {TABLE} - edge / 2 and z >= height / 2",
    )
    return dict.fromkeys(worlds.tolist(), reason)
