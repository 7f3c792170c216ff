"""Which worlds the laws are checked on: every registered id, and some with other options.

A new registry row is checked at once. Heavy worlds get fewer hypothesis examples and shorter
episodes, never fewer laws.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import interverse as iv
from interverse.core.rng import generator
from interverse.envs.values import to_numpy
from interverse.scm import Variable
from interverse.worlds import WORLDS

_PATHS = ("textures", "videos")  # options that differ from machine to machine


@dataclass(frozen=True)
class Case:
    """A world to check: an id with options."""

    id: str
    options: dict[str, Any] = field(default_factory=dict)
    steps: int = 6

    def __str__(self) -> str:
        shown = {k: v for k, v in self.options.items() if k not in _PATHS}
        extra = "".join(f",{k}={v}" for k, v in shown.items())
        return self.id + extra

    def make(self, **more: Any) -> Any:
        return iv.make(self.id, **self.options, **more)

    def make_vec(self, num_envs: int, **more: Any) -> Any:
        return iv.make_vec(self.id, num_envs=num_envs, **self.options, **more)


_STEPS = {"rooms/multi-v1": 1, "rooms/single-v1": 1}  # an episode is over after one
_ROOM = {"image_size": 24, "objects": 2}  # every object is as good as another, and costs a model
_NEEDS = {
    "chemistry/custom-v1": {"graph": "0->1->2->4,{0-2}->3"},
    "rooms/multi-v1": _ROOM,
    "rooms/single-v1": _ROOM,
}
TEXTURES = Path(__file__).parents[1] / "worlds" / "control" / "textures"
VIDEO = TEXTURES / "backgrounds"
DRAWN_CONTROL = ("control/finger_turn_easy-v1", "control/pendulum_swingup-v1")
_HEAVY = ("stacked_blocks", "creative", "general", "towers", "control")
# Laws that need pixels are the same code in every task, so two tasks and two variations are drawn
# (small, with a folder of four pictures) and the others observe their state; their looks are
# variables all the same. That looks are painted right is tested for each domain in
# tests/worlds/control.
_DRAWN = {"image_size": 20, "quality": "fast", "frame_stack": 2, "textures": str(TEXTURES)}
_CONTROL = {
    name: _DRAWN if name in DRAWN_CONTROL else {"observation": "state", "textures": str(TEXTURES)}
    for name in WORLDS
    if name.startswith("control/")
}
_VARIATIONS = [
    Case("chemistry/full-v1", {"movement": "dynamic", "objects": 4, "colors": 3}),
    Case("chemistry/chain-v1", {"device": "torch"}),
    Case("chemistry/chain-v1", {"mode": "moving", "objects": 4}),
    Case("chemistry/collider-v1", {"cpt": "table", "objects": 3, "colors": 3}),
    Case("chemistry/collider-v1", {"mode": "delayed", "objects": 4}),
    Case("chemistry/chain-v1", {"meta": True, "observed": [0, 2, 3, 4]}),
    Case("chemistry/custom-v1", {"mode": "plain"}),
    Case("chemistry/custom-v1", {"objects": 1, "colors": 2, "graph": None}),
    Case("chemistry/chain-v1", {"mode": "delayed", "objects": 3, "legacy": True}),
    Case("chemistry/custom-v1", {"objects": 12, "colors": 8, "graph": "jungle", "cmap": "Set3"}),
    Case("trifinger/pushing-v1", {"action_mode": "delta_end_effector_positions"}),
    Case("trifinger/stacking2-v1", {"score": "oriented"}),
    Case("blocks/unobserved-3-v1", {"mode": "FewShot-v2"}),
    Case("blocks/observed-3-v1", {"device": "torch", "plain": True}),
    Case("control/hopper_hop-v1", _DRAWN | {"distraction": "hard", "videos": str(VIDEO)}, steps=3),
    Case(
        "control/reacher_hard-v1",
        _DRAWN | {"observation": ("pixels", "state", "depth", "segmentation"), "frame_skip": 3},
        steps=3,
    ),
]

CASES = [
    Case(
        name,
        _NEEDS.get(name, {}) | _CONTROL.get(name, {}),
        steps=_STEPS.get(name, 3 if any(h in name for h in _HEAVY) else 6),
    )
    for name in WORLDS
] + _VARIATIONS


def some_action(env: Any, seed: int, step: int) -> Any:
    """Returns an action drawn by address, the same for the same seed and step."""
    rng = generator(seed=seed, name="test/action", step=step)
    space = env.unwrapped.world.action_space
    if hasattr(space, "low"):
        return rng.uniform(space.low, space.high).astype(space.dtype)
    if hasattr(space, "nvec"):
        return rng.integers(space.nvec)
    return rng.integers(space.n)


def some_value(variable: Variable, present: Any, rng: np.random.Generator) -> Any:
    """Returns a value to set: from A or B, else from the domain, else near the present one.

    A domain that only excludes what no simulator can hold is no place to draw states from.
    """
    spaces = [s for s in (variable.space_a, variable.space_b) if s is not None]
    if spaces:
        return spaces[int(rng.integers(len(spaces)))].sample(rng)
    wide = variable.domain.high - variable.domain.low
    if variable.domain.integral or np.all(wide < 1e5):
        return variable.domain.sample(rng)
    return present + 0.01 * rng.standard_normal(variable.shape)


def writable(env: Any) -> list[str]:
    """Returns the names of the variables that can be set."""
    return [name for name, v in env.unwrapped.variables.items() if not v.read_only]


def chosen(names: list[str], *, most: int = 20) -> list[str]:
    """Returns all names; of many, two of each kind (block_0/mass and block_17/mass)."""
    if len(names) <= most:
        return names
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    return [name for alike in kinds.values() for name in {alike[0], alike[len(alike) // 2]}]


def leaves(tree: Any) -> list[np.ndarray]:
    """Returns copies of the arrays of an observation or a state, wherever they are."""
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    return [to_numpy(tree)]


def as_numpy(tree: Any) -> Any:
    """Returns an observation with NumPy arrays, wherever its world keeps them."""
    if isinstance(tree, dict):
        return {name: as_numpy(value) for name, value in tree.items()}
    return np.asarray(tree)


def same(a: Any, b: Any) -> bool:
    """Returns whether two trees of arrays are equal bit for bit."""
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(leaves(a), leaves(b), strict=True)
    )


def play(env: Any, seed: int, steps: int, start: int = 0) -> list[Any]:
    """Returns observations and rewards of a few steps with addressed actions."""
    out = []
    for t in range(start, start + steps):
        observation, reward, *_ = env.step(some_action(env, seed, t))
        out.append((observation, reward))
    return out


def same_play(a: list[Any], b: list[Any]) -> bool:
    """Returns whether two plays are equal bit for bit."""
    return len(a) == len(b) and all(
        same(x[0], y[0]) and x[1] == y[1] for x, y in zip(a, b, strict=True)
    )


def state(env: Any) -> dict[str, Any]:
    """Returns everything that makes later steps what they are."""
    return dict(env.unwrapped.snapshot().arrays)
