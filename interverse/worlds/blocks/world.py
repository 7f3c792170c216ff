"""Weighted blocks on a 5 x 5 grid: the heavier push the lighter; colour may tell which is which.

What follows from what at once: an observed block's colour follows its weight; an unobserved block's
weight and colour follow its palette index. An intervention on a follower cuts it loose until the
next reset. Positions follow from the positions, weights and action of the step before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, namespace, to_numpy
from interverse.core.errors import explain
from interverse.core.rng import Noise
from interverse.scm import with_defaults
from interverse.scm.variable import SpaceName
from interverse.sim import raster
from interverse.worlds.blocks import appearance, dynamics
from interverse.worlds.blocks.options import BlocksOptions
from interverse.worlds.blocks.variables import causal_graph, declare, name_of
from interverse.worlds.grid import GridWorld, Reasons, clashes, fresh, place
from interverse.worlds.palette import shade, to_bytes
from interverse.worlds.world import Index, Observation, Scenario, Score, State

_LOOKS = ("palette_index", "weight", "shape", "color")
_FIELDS = (*_LOOKS, "target", "position")
_PICTURES = {"image": "position", "target": "target"}  # observation key -> where blocks lie

Scene = tuple[Array, Array, Array]  # positions, shapes, uint8 colours: what `raster.draw` takes


@final
class Blocks(GridWorld):
    """N worlds of n blocks; state arrays have a world axis and a block axis."""

    options_type = BlocksOptions
    training_place = ("mode", "palette_seed")
    render_size = (raster.PEOPLE_SIZE, raster.PEOPLE_SIZE)

    options: BlocksOptions

    def __init__(self, *, num_worlds: int, options: BlocksOptions) -> None:
        super().__init__(num_worlds, options, with_defaults(declare(options), options.defaults))
        self.graph = causal_graph(self.variables, options)
        picture = gym.spaces.Box(0, 255, (raster.SIZE, raster.SIZE, 3), np.uint8)
        cells = gym.spaces.Box(0, raster.GRID - 1, (options.objects, 2), np.int64)
        parts: dict[str, gym.Space[Any]] = {"image": picture, "state": cells}
        self.observation_space = gym.spaces.Dict(
            parts if options.plain else {**parts, "target": picture}
        )
        self.moves = 4 if options.plain else len(dynamics.OFFSETS)
        self.action_space = gym.spaces.Discrete(self.moves * options.objects)
        furthest = 2.0 * (raster.GRID - 1)
        self.reward_range = (0.0 if options.plain else -furthest, 0.0)
        self._names = {f: [name_of(i, f) for i in range(options.objects)] for f in _FIELDS}
        slots = range(options.objects)
        self._where = {name_of(i, field): (field, (i,)) for field in _FIELDS for i in slots}
        if not options.observed:
            self._candidates = self._array(
                appearance.candidates(
                    options.colormap,
                    options.new_colors,
                    seed=options.palette_seed,
                    by_weight=not options.legacy,
                )
            )
            colors, weights = appearance.entries(options.colormap)
            self._palette_colors, self._palette_weights = self._array(colors), self._array(weights)
        zero = np.zeros(num_worlds, dtype=np.int64)
        self._state = self._draw(self._noise(Noise(zero, zero, zero)), {})
        # The target's picture changes at resets and interventions alone.
        self._goal_image = self._array(
            np.zeros((num_worlds, raster.SIZE, raster.SIZE, 3), np.uint8)
        )
        self._stale = np.ones(num_worlds, dtype=bool)

    # ------------------------------------------------------------------ episodes

    def _start(self, noise: Noise, given: Mapping[str, Array]) -> tuple[State, Reasons]:
        """Draws looks, places and targets; positions that are given come last."""
        usual = {name: self.variables[name].default for name in self.options.defaults}
        spread = {name: self._repeated(value, len(noise)) for name, value in usual.items()}
        rows = self._draw(self._noise(noise), {**spread, **given})
        return rows, _clashes(rows)

    def _draw(self, noise: Noise, given: Mapping[str, Array]) -> State:
        """Returns rows of a new episode: looks, then places, then the target, then given places."""
        options = self.options
        rows = self._draw_looks(noise)
        self._put(rows, given, _LOOKS)
        self._follow(rows)
        rows["position"] = place(noise.uniforms(self._names["position"])[:, :, 0])
        if not options.plain:
            rows["target"] = self._random_play(rows["position"], rows["weight"], noise, "target")
        self._put(rows, given, ("target", "position"))
        rows["invalid_push"] = self._array(np.zeros(len(noise), dtype=bool))
        return rows

    def _random_play(self, positions: Array, weights: Array, noise: Noise, name: str) -> Array:
        count = len(dynamics.OFFSETS) * self.options.objects
        actions = noise.integers(name, count, (self.options.target_steps,))
        return dynamics.play(positions, weights, actions)

    def _draw_looks(self, noise: Noise) -> State:
        options, count = self.options, len(noise)
        size = (count, options.objects)
        rows: State = {"color": self._array(np.zeros((*size, 3)))}
        rows["color_is_cut"] = self._array(np.zeros(size, dtype=bool))
        if options.random_shapes:
            drawn = noise.uniforms(self._names["shape"])[:, :, 0] * options.random_shapes
            rows["shape"] = namespace(drawn).astype(drawn, namespace(drawn).int64)
        else:
            by_index = np.arange(options.objects) % len(raster.SHAPES)
            rows["shape"] = self._array(np.tile(by_index, (count, 1)))
        if options.observed:
            heaviest_first = np.arange(options.objects, 0, -1, dtype=np.float64)
            rows["weight"] = self._array(np.tile(heaviest_first, (count, 1)))
            rows["color_noise"] = noise.uniforms(self._names["color"])[:, :, 0]
        else:
            numbers = noise.uniform("palette", (len(self._candidates),))
            chosen = appearance.choose(numbers, options.objects)
            rows["palette_index"] = self._candidates[chosen]
            rows["weight"] = self._palette_weights[rows["palette_index"]]
            rows["weight_is_cut"] = self._array(np.zeros(size, dtype=bool))
        return rows

    def step(self, actions: Array, worlds: Index, noise: Noise) -> None:
        """Moves one block in each world."""
        chosen = self._array(actions)
        directions = chosen % self.moves + (len(dynamics.OFFSETS) - self.moves)
        here = self._array(worlds)
        state = self._state
        state["position"][here], state["invalid_push"][here] = dynamics.push(
            state["position"][here], state["weight"][here], chosen // self.moves, directions
        )

    def pushes(self) -> NDArray[np.bool_]:
        """Returns (N, actions): whether an action would move a second block."""
        places, weights = (to_numpy(self._state[name]) for name in ("position", "weight"))
        count = self.moves * self.options.objects
        actions = np.tile(np.arange(count), len(places))
        directions = actions % self.moves + (len(dynamics.OFFSETS) - self.moves)
        before, heavy = np.repeat(places, count, axis=0), np.repeat(weights, count, axis=0)
        after, _ = dynamics.push(before, heavy, actions // self.moves, directions)
        moved = np.any(after != before, axis=-1).sum(-1)
        return np.asarray(moved > 1).reshape(len(places), count)

    def score(self) -> Score:
        """Returns minus the mean distance to the targets, and whether all are reached."""
        state = self._state
        xp = namespace(state["position"])
        never = xp.zeros_like(state["invalid_push"])
        info = {"invalid_push": fresh(state["invalid_push"])}
        if self.options.plain:
            return Score(xp.astype(never, xp.float64), never, info)
        reward = dynamics.reward(state["position"], state["target"])
        return Score(reward, never, {"success": reward == 0.0, **info})

    def sample_goal(self, worlds: Index, noise: Noise, space: SpaceName) -> Mapping[str, Array]:
        """Returns targets that random play leads to from the present positions."""
        if self.options.plain:
            return super().sample_goal(worlds, noise, space)
        here, state = self._array(worlds), self._state
        positions, weights = state["position"][here], state["weight"][here]
        goals = self._random_play(positions, weights, self._noise(noise), "sample_goal/target")
        return {name: goals[:, i] for i, name in enumerate(self._names["target"])}

    def scripted_policy(self) -> Callable[[Any], Any] | None:
        """Returns the greedy policy: the first action of the greatest reward after one step."""
        if self.options.plain:
            return None

        def greedy(observations: Any) -> NDArray[np.int64]:
            parts = (self._state[name] for name in ("position", "weight", "target"))
            return np.argmax(to_numpy(dynamics.look_ahead(*parts)), axis=1)

        return greedy

    # ------------------------------------------------------------- interventions

    def _set(self, rows: State, values: Mapping[str, Array]) -> Reasons:
        """Sets variables and what follows them; two blocks (or targets) in one cell are refused."""
        self._put(rows, values, _FIELDS)
        self._follow(rows)
        return _clashes(rows)

    def _put(self, rows: State, values: Mapping[str, Array], fields: Collection[str]) -> None:
        for name, value in values.items():
            field, (block,) = self._where[name]
            if field in fields:
                rows[field][:, block] = self._array(value)
                if f"{field}_is_cut" in rows:
                    rows[f"{field}_is_cut"][:, block] = True

    def _follow(self, rows: State) -> None:
        """Brings weights and colours in line with what they follow, unless cut loose."""
        xp = namespace(rows["weight"])
        options = self.options
        if options.observed:
            shades = appearance.intensity(rows["weight"], rows["color_noise"], options.spread)
            colors = shade(shades, options.colormap)
        else:
            colors = self._palette_colors[rows["palette_index"]]
            weights = self._palette_weights[rows["palette_index"]]
            rows["weight"] = xp.where(rows["weight_is_cut"], rows["weight"], weights)
        rows["color"] = xp.where(rows["color_is_cut"][:, :, None], rows["color"], colors)

    # ----------------------------------------------------------------- reading

    def observe(self) -> Observation:
        """Returns pictures of now and of the target, and the positions."""
        seen = {"image": raster.draw(*self._scene("position")), "state": self.state()}
        if not self.options.plain:
            if self._stale.any():
                stale = np.flatnonzero(self._stale)
                drawn = raster.draw(*self._scene("target", stale))
                self._goal_image[self._array(stale)] = drawn
                self._stale[:] = False
            seen["target"] = fresh(self._goal_image)
        return seen

    def state(self) -> Array:
        """Returns the observation's `state`, (N, n, 2) positions, as a fresh array."""
        return fresh(self._state["position"])

    def scenes(self) -> dict[str, Scene]:
        """Returns what the observation's pictures are drawn from, by its keys."""
        shown = {"image": "position"} if self.options.plain else _PICTURES
        return {key: self._scene(field) for key, field in shown.items()}

    def _scene(self, field: str, worlds: Index | None = None) -> Scene:
        here = slice(None) if worlds is None else self._array(worlds)
        state = self._state
        colors = to_bytes(state["color"][here])
        return state[field][here], state["shape"][here], colors

    def action_names(self, world: int) -> tuple[tuple[str, ...], ...]:
        """Returns a name per action: the block that moves, and where to."""
        ways = dynamics.DIRECTIONS[-self.moves :]
        return (tuple(f"block_{i} {way}" for i in range(self.options.objects) for way in ways),)

    def render(self, world: int) -> NDArray[np.uint8]:
        """Returns a larger picture of one world, with the blocks' weights."""
        scene = [to_numpy(part)[0] for part in self._scene("position", np.array([world]))]
        weights = to_numpy(self._state["weight"][self._array(np.array([world]))])[0]
        return raster.portrait(*scene, numbers=weights)

    def scenarios(self) -> tuple[Scenario, ...]:
        """Returns blocks side by side of which the first is pushed against the next."""
        return (self._in_a_row,)

    def _in_a_row(self, values: object, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
        order = rng.permutation(self.options.objects).tolist()
        place = self._names["position"]
        # Against the way of the offset (0, 1), to the right: the first block is pushed on.
        yield "do", {place[block]: [2, column] for column, block in enumerate(order)}
        yield "action", order[0] * self.moves + dynamics.OFFSETS.index((0, 1)) - self.options.plain

    def _write(self, rows: State, worlds: Index) -> None:
        super()._write(rows, worlds)
        self._stale[worlds] = True


def _clashes(rows: State) -> Reasons:
    """Returns, for each row where two blocks or targets share a cell, which and where."""
    refused: Reasons = {}
    for field in ("position", "target"):
        for row, first, second, cell in clashes(to_numpy(rows[field])) if field in rows else ():
            both = f"{name_of(first, field)} and {name_of(second, field)}"
            reason = explain(
                f"{both} would both be row {cell[0]}, column {cell[1]}",
                allowed="one block a cell",
                fix="Set both at once, or choose a free cell",
            )
            refused.setdefault(row, reason)
    return refused
