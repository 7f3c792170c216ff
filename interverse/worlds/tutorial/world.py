"""The slider's world: variables, scene and dynamics put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import gymnasium as gym
import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from interverse.errors import explain
from interverse.rng import Noise
from interverse.scm import with_defaults
from interverse.sim import edits, make_engine
from interverse.sim.shapes import Shape
from interverse.worlds.world import (
    NONE_REFUSED,
    Array,
    Index,
    Refusals,
    Score,
    State,
    World,
    WorldOptions,
)

from . import dynamics
from .scene import CAMERA, SUBSTEPS, build_scene
from .variables import GRAPH, TABLE, VARIABLES

_JOINTS = ("x", "y", "z")
_OBSERVED = ("box/position", "box/velocity", "box/size", "goal/position")
_VALUE = "value/"  # prefix of variables' values in a saved state


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
        self._engine = make_engine(
            build_scene(self.variables),
            num_worlds=num_worlds,
            device=options.device,
            threads=options.threads,
        )
        # State lives in the engine; every other variable's values are kept here, (N, *shape).
        self._values: dict[str, Array] = {
            name: self._default(name, num_worlds)
            for name, variable in self.variables.items()
            if variable.kind != "state"
        }

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Array]) -> Refusals:
        """Starts episodes: defaults, given causes, a random place, then given state."""
        self._engine.reset(worlds)
        for name, values in self._values.items():
            values[worlds] = self._default(name, len(worlds))
        self._put({n: v for n, v in given.items() if n in self._values}, worlds)
        uniform = self._engine.asarray(noise.uniform("box/position", (2,)))
        default = self._default("box/position", len(worlds))
        place = dynamics.start(default, self._values["box/size"][worlds], uniform)
        velocity = self._default("box/velocity", len(worlds))
        self._put({"box/position": place, "box/velocity": velocity}, worlds)
        self._put({n: v for n, v in given.items() if n not in self._values}, worlds)
        refused = self._refusals(given, worlds)
        if refused:
            bad = np.isin(worlds, list(refused))
            self.reset(worlds[bad], noise.take(bad), {})
        return refused

    def intervene(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Sets variables and what follows at once; takes infeasible worlds back to before."""
        before = self.save(worlds)
        self._put(values, worlds)
        if "box/size" in values and "box/position" not in values:
            place, size = self.read("box/position")[worlds], self._values["box/size"][worlds]
            self._put({"box/position": dynamics.seat(place, size)}, worlds)
        refused = self._refusals(values, worlds)
        if refused:
            bad = np.isin(worlds, list(refused))
            self.load({name: rows[bad] for name, rows in before.items()}, worlds[bad])
        return refused

    def _put(self, values: Mapping[str, Array], worlds: Index) -> None:
        """Writes values where they live: model fields by their bindings, state by name."""
        engine = self._engine
        for name in values.keys() & self._values.keys():
            self._values[name][worlds] = engine.asarray(values[name])
        engine.write(edits(self.variables, values), worlds)
        place, velocity = values.get("box/position"), values.get("box/velocity")
        engine.set_joints(_JOINTS, worlds, position=place, velocity=velocity)

    def _refusals(self, values: Mapping[str, Array], worlds: Index) -> Refusals:
        """Returns the worlds whose box is now where no box can be."""
        if not values.keys() & {"box/position", "box/size"}:
            return NONE_REFUSED
        bad = dynamics.infeasible(self.read("box/position"), self._values["box/size"])
        reason = explain(
            "the box would hang over the table's edge or be sunk into it",
            allowed=f"|x|, |y| <= {TABLE} - edge / 2 and z >= height / 2",
        )
        chosen = zip(worlds.tolist(), bad[worlds].tolist(), strict=True)
        return {world: reason for world, is_bad in chosen if is_bad}

    def _default(self, name: str, count: int) -> Array:
        return self._engine.asarray(np.repeat(self.variables[name].default[None], count, axis=0))

    def read(self, name: str) -> Array:
        """Returns a variable's present values, (N, *shape)."""
        if name == "box/position":
            return self._engine.joint_positions(_JOINTS)
        if name == "box/velocity":
            return self._engine.joint_velocities(_JOINTS)
        values = self._values[name]
        return array_namespace(values).asarray(values, copy=True)

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Pushes the box for one step."""
        push = self._values["push"][worlds]
        force = dynamics.force(self._engine.asarray(actions), push)
        self._engine.set_forces(("box",), worlds, force=force[:, None, :])
        self._engine.step(worlds, SUBSTEPS)

    def observe(self) -> Array:
        """Returns every world's observation, (N, 11)."""
        return dynamics.observation(*(self.read(name) for name in _OBSERVED))

    def score(self) -> Score:
        """Returns minus the distance to the goal; an episode never ends before its time."""
        place, goal = self.read("box/position"), self._values["goal/position"]
        reward = dynamics.reward(place, goal)
        never = array_namespace(reward).zeros_like(reward) > 0.0
        return Score(reward, never, {"success": -reward < dynamics.REACHED})

    def save(self, worlds: Index) -> State:
        """Returns the engine's rows and the variables' values."""
        values = {_VALUE + name: values[worlds] for name, values in self._values.items()}
        return {**self._engine.save(worlds), **values}

    def load(self, state: State, worlds: Index) -> None:
        """Puts saved rows into these worlds."""
        self._engine.load(state, worlds)
        for name, values in self._values.items():
            values[worlds] = self._engine.asarray(state[_VALUE + name])

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a picture (rows, columns, 3) of one world."""
        return self._engine.picture(world, camera=CAMERA, size=self.render_size)

    def shapes(self, world: int) -> tuple[Shape, ...]:
        """Returns the solids that can be seen of one world."""
        return self._engine.shapes(world)

    def close(self) -> None:
        """Releases the engine."""
        self._engine.close()


def _layout(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, slice]:
    """Returns where each variable stands in the flat observation."""
    layout, start = {}, 0
    for name, (width,) in shapes.items():
        layout[name] = slice(start, start + width)
        start += width
    return layout
