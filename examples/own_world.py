"""A world of one's own in one file: a tank that fills by the action and drains by its leak.

python examples/own_world.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

import interverse as iv
from interverse.core.rng import Noise
from interverse.scm import Box, CausalGraph, Variable, table, with_defaults
from interverse.scm.store import Store
from interverse.worlds.world import Index, Score, World, WorldOptions

VARIABLES = table(
    Variable(
        name="tank/leak",
        kind="latent",
        default=np.array(0.1),
        domain=Box(0.0, 0.5),
        space_a=Box(0.05, 0.15),
        space_b=Box(0.15, 0.3, open_low=True),
        doc="Share of the water that is lost in a step.",
    ),
    Variable(
        name="goal/level",
        kind="goal",
        default=np.array(0.5),
        domain=Box(0.0, 1.0),
        space_a=Box(0.3, 0.6),
        space_b=Box(0.6, 0.9, open_low=True),
        doc="Level to hold.",
    ),
    Variable(
        name="tank/level",
        kind="state",
        default=np.array(0.2),
        domain=Box(0.0, 1.0),
        doc="Water in the tank.",
    ),
)
GRAPH = CausalGraph.build(VARIABLES, [("tank/leak", "tank/level'"), ("tank/level", "tank/level'")])


class Tank(World):
    """A tank with a leak; the action lets water in, the reward is how near the level is."""

    def __init__(self, num_worlds: int, options: WorldOptions) -> None:
        self.num_worlds, self.options, self.graph = num_worlds, options, GRAPH
        self.variables = with_defaults(VARIABLES, options.defaults)
        self.observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float64)
        self.action_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
        self.layout = {"tank/level": slice(0, 1), "goal/level": slice(1, 2)}
        self.max_steps, self.reward_range = options.max_steps or 50, (-1.0, 0.0)
        self._store = Store(self.variables, num_worlds=num_worlds)

    def reset(self, worlds: Index, noise: Noise, given: Mapping[str, Any]) -> dict[int, str]:
        """Starts with the defaults, a random level, and what is given."""
        self._store.restart(worlds)
        rows = self._store.take(worlds)
        rows["tank/level"] += 0.2 * noise.uniform("tank/level")
        self._store.commit(rows | dict(given), worlds)
        return {}

    def intervene(self, values: Mapping[str, Any], worlds: Index) -> dict[int, str]:
        """Sets variables; nothing else follows at once."""
        self._store.commit({**self._store.take(worlds), **values}, worlds)
        return {}

    def step(self, actions: Any, worlds: Index, noise: Noise) -> None:
        """Lets water in and out."""
        rows = self._store.take(worlds)
        level = rows["tank/level"] * (1.0 - rows["tank/leak"]) + 0.2 * actions[:, 0]
        self._store.update({"tank/level": np.clip(level, 0.0, 1.0)}, worlds)

    def read(self, name: str) -> Any:
        """Returns a variable's present values."""
        return self._store.read(name)

    def observe(self) -> Any:
        """Returns level and goal."""
        return np.stack([self.read(name) for name in self.layout], axis=1)

    def score(self) -> Score:
        """Returns minus the distance to the goal."""
        far = np.abs(self.read("tank/level") - self.read("goal/level"))
        return Score(-far, np.zeros(self.num_worlds, bool), {"success": far < 0.05})

    def save(self, worlds: Index) -> Any:
        """Returns the values, which are all there is."""
        return self._store.save(worlds)

    def load(self, state: Any, worlds: Index) -> None:
        """Puts saved values into these worlds."""
        self._store.load(state, worlds)

    def render(self, world: int) -> Any:
        """Returns a picture: water in blue up to the level, a red line at the goal."""
        picture = np.full((*self.render_size, 3), 255, dtype=np.uint8)
        top, goal = (
            round((1 - float(self.read(name)[world])) * (len(picture) - 1)) for name in self.layout
        )
        picture[top:] = (60, 120, 220)
        picture[goal : goal + 2] = (200, 40, 40)
        return picture


iv.register("lab/leaky_tank-v1", f"{__name__}:Tank")

if __name__ == "__main__":
    fact = iv.rollout("lab/leaky_tank-v1", "random", seed=0)
    twin = iv.counterfactual(fact, do={"tank/leak": 0.15})
    print("levels at the end:", fact.values["tank/level"][-1], twin.values["tank/level"][-1])
