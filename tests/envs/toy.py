"""A world of one line of arithmetic, for tests of the driver: x' = x + gain * action + noise."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np

import interverse as iv
from interverse.scm import Box, CausalGraph, Integers, Variable, table, with_defaults
from interverse.worlds import WORLDS
from interverse.worlds.world import Score, World, WorldOptions

ID = "toy/walk-v1"


def ensure_registered() -> str:
    """Returns the toy's id, registering it on the first call."""
    if ID not in WORLDS:
        iv.register(ID, "tests.envs.toy:Walk")
    return ID


@dataclass(frozen=True, kw_only=True)
class WalkOptions(WorldOptions):
    """One option of its own."""

    spread: float = 0.1


class Walk(World):
    """Position follows the action; `fence` is how far it may be put by hand."""

    options_type = WalkOptions

    def __init__(self, *, num_worlds: int, options: WalkOptions) -> None:
        self.num_worlds, self.options = num_worlds, options
        gain = Variable(
            name="gain",
            kind="latent",
            default=np.array(1.0),
            domain=Box(-5.0, 5.0),
            space_a=Box(0.5, 1.5),
            space_b=Box(1.5, 2.0, open_low=True),
        )
        fence = Variable(
            name="fence", kind="latent", default=np.array(3), domain=Integers(1, 9), unit="m"
        )
        x = Variable(
            name="x",
            kind="state",
            default=np.zeros(2),
            domain=Box(-10, 10, (2,)),
            space_a=lambda v: Box(
                -np.asarray(v["fence"], dtype=float)[..., None] * np.ones(2),
                np.asarray(v["fence"], dtype=float)[..., None] * np.ones(2),
                (2,),
            ),
        )
        reach = Variable(
            name="reach", kind="state", default=np.array(0.0), domain=Box(0, 99), read_only=True
        )
        self.variables = with_defaults(table(gain, fence, x, reach), options.defaults)
        edges = [("gain", "x'"), ("x", "x'"), ("x", "reach"), ("x'", "reach'")]
        self.graph = CausalGraph.build(self.variables, edges)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.layout = MappingProxyType({"x": slice(0, 2), "gain": slice(2, 3)})
        self.max_steps = options.max_steps or 20
        self.reward_range = (-np.inf, 0.0)
        self._state = {
            name: np.array(np.broadcast_to(v.default, (num_worlds, *v.shape)))
            for name, v in self.variables.items()
            if name != "reach"
        }

    def reset(self, worlds, noise, given):
        for name in self._state:
            self._state[name][worlds] = self.variables[name].default
        if "x" not in self.options.defaults:
            self._state["x"][worlds] += self.options.spread * noise.normal("x", (2,))
        return self.intervene(given, worlds) if given else {}

    def intervene(self, values, worlds):
        refused = {}
        for row, world in enumerate(worlds.tolist()):
            if "x" in values and np.all(values["x"][row] == 1.25):
                refused[world] = "x may not be 1.25 (the toy's own rule)"
        keep = np.array([w not in refused for w in worlds.tolist()], dtype=bool)
        for name, rows in values.items():
            self._state[name][worlds[keep]] = rows[keep]
        return refused

    def read(self, name):
        if name == "reach":
            return np.abs(self._state["x"]).max(axis=1)
        return self._state[name].copy()

    def step(self, actions, worlds, noise):
        kick = self.options.spread * noise.normal("x", (2,))
        self._state["x"][worlds] += self._state["gain"][worlds, None] * actions + kick

    def observe(self):
        return np.concatenate([self._state["x"], self._state["gain"][:, None]], axis=1)

    def score(self):
        distance = np.abs(self._state["x"]).sum(axis=1)
        return Score(-distance, distance > 50.0, {"distance": distance})

    def save(self, worlds):
        return {name: array[worlds].copy() for name, array in self._state.items()}

    def load(self, state, worlds):
        for name, rows in state.items():
            self._state[name][worlds] = rows

    def render(self, world) -> Any:
        frame = np.zeros((*self.render_size, 3), dtype=np.uint8)
        frame[:120] = 200
        return frame
