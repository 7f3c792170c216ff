"""Trials in blocks and chemistry: scenes, actions and twins, as states and as pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from interverse.core.rng import Noise, generator
from interverse.metrics.recovery import Floats
from interverse.models.effects import ProbedModel, Trials
from interverse.worlds.world import World

_GRID = 5
_MOVES = np.array([(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridTrials:
    """The same trials for the world and for a model, and the edges that are true.

    Attributes:
        states: scenes as states (N, objects), for `WorldRespondent`.
        images: scenes as uint8 images (N, 50, 50, 3), for `ModelRespondent`.
        graph: (objects, objects), [i, j] = 1 where j acts on i.
        values: how many values an object has.
    """

    states: Trials
    images: Trials
    graph: NDArray[np.int64]
    values: int


@final
class WorldRespondent:
    """The world itself, asked what an action does; each row has its own noise, always the same."""

    def __init__(self, scenes: Scenes, values: int) -> None:
        self.scenes, self._values = scenes, values

    def now(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns the states as certainties."""
        return np.eye(self._values)[scenes]

    def after(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns the states after the actions, as certainties."""
        return np.eye(self._values)[self.scenes.after(scenes, actions)]


@final
class ReadOutcomes:
    """The world, its true pictures read by a model's encoder and probe.

    It scores what perfect predictions would score: what is missing is the reading's fault.
    """

    def __init__(self, scenes: Scenes, model: ProbedModel) -> None:
        self._scenes, self._model = scenes, model

    def now(self, scenes: NDArray[np.generic]) -> Floats:
        """Returns what is read in pictures of the states."""
        return self._model.now(self._scenes.images(scenes))

    def after(self, scenes: NDArray[np.generic], actions: NDArray[np.int64]) -> Floats:
        """Returns what is read in pictures of the states after the actions."""
        return self.now(self._scenes.after(scenes, actions))


@final
class Scenes:
    """A batch of worlds whose objects are put where a trial wants them."""

    def __init__(self, world: World, *, seed: int) -> None:
        self.world = world
        self.field = "position" if "block_0/position" in world.variables else "color"
        self._everyone = np.arange(world.num_worlds)
        zero = np.zeros(world.num_worlds, dtype=np.int64)
        self._start = Noise(zero + seed, self._everyone, zero)
        world.reset(self._everyone, self._start, {})
        self.names = [n for n in world.variables if n.endswith(f"/{self.field}")]
        self.names = [n for n in self.names if n.startswith(("block_", "object_"))]
        self.actions = int(world.action_space.n)  # type: ignore[attr-defined]
        self.values = _GRID**2 if self.field == "position" else self.actions // len(self.names)

    def read(self) -> NDArray[np.int64]:
        """Returns the states (N, objects)."""
        rows = np.stack([np.asarray(self.world.read(name)) for name in self.names], axis=1)
        return rows[..., 0] * _GRID + rows[..., 1] if self.field == "position" else rows

    def show(self, states: NDArray[np.generic]) -> None:
        """Puts every world in a state."""
        values = {}
        for i, name in enumerate(self.names):
            own = states[:, i]
            values[name] = (
                np.stack([own // _GRID, own % _GRID], axis=1) if self.field == "position" else own
            )
        refused = self.world.intervene(values, self._everyone)
        assert not refused  # trials never put two objects in one cell

    def act(self, actions: NDArray[np.int64], *, step: int = 1) -> NDArray[np.int64]:
        """Returns the states after one action each, with the noise of a step of each row."""
        self.world.step(actions, self._everyone, self._start.at(step))
        return self.read()

    def after(self, states: NDArray[np.generic], actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns what states become by one action each; a row's noise is the same every time."""
        self.show(states)
        return self.act(actions)

    def images(self, states: NDArray[np.generic]) -> NDArray[np.uint8]:
        """Returns pictures of states."""
        self.show(states)
        return np.asarray(self.world.observe()["image"])


def grid_trials(world: World, *, seed: int) -> tuple[GridTrials, WorldRespondent]:
    """Returns one trial per world of a batch of blocks or chemistry."""
    make = blocks_trials if "block_0/position" in world.variables else chemistry_trials
    return make(world, seed=seed)


def chemistry_trials(world: World, *, seed: int) -> tuple[GridTrials, WorldRespondent]:
    """Returns one trial per world of the batch: paint an object; in the twin, another differs.

    All objects' colours are drawn evenly, so that every parent's influence has a chance to show.
    """
    scenes = Scenes(world, seed=seed)
    n = len(scenes.names)
    colors = scenes.values
    rng = generator(seed=seed, name="trials/chemistry")
    rows = world.num_worlds
    states = rng.integers(colors, size=(rows, n))
    acted, altered = rng.integers(n, size=(2, rows))
    paint, step = rng.integers(colors, size=rows), rng.integers(1, colors, size=rows)
    made, twins, twin_actions = repainted(states, acted, altered, paint, step, colors)
    return _both(
        scenes,
        Trials(
            scenes=states,
            actions=made,
            acted=acted,
            twins=twins,
            twin_actions=twin_actions,
            altered=altered,
        ),
        graph=np.array(world.read("graph/adjacency"), dtype=np.int64)[0],
        values=colors,
    )


def repainted(
    states: NDArray[np.int64],
    acted: NDArray[np.int64],
    altered: NDArray[np.int64],
    paint: NDArray[np.int64],
    step: NDArray[np.int64],
    colors: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Returns actions, twins and their actions: `altered` has another colour, `step` further on.

    Where the acted object is altered, that is another colour of the paint.
    """
    twins, own = states.copy(), acted == altered
    every = np.flatnonzero(~own)
    twins[every, altered[every]] = (states[every, altered[every]] + step[every]) % colors
    twin_paint = np.where(own, (paint + step) % colors, paint)
    return acted * colors + paint, twins, acted * colors + twin_paint


def blocks_trials(world: World, *, seed: int) -> tuple[GridTrials, WorldRespondent]:
    """Returns one trial per world of the batch: a block pushes against another.

    A push reaches one block at most, so total effects are the edges: the twins are the scenes.
    Weights must be ordered by index, as they are in every published setting.
    """
    scenes = Scenes(world, seed=seed)
    n, rows = len(scenes.names), world.num_worlds
    rng = generator(seed=seed, name="trials/blocks")
    acted = rng.integers(n, size=rows)
    pushed = (acted + rng.integers(1, n, size=rows)) % n
    direction = rng.integers(1, 5, size=rows)
    states = in_contact(rng, n, acted, pushed, direction)
    actions = acted * 5 + direction
    weights = np.stack([world.read(f"block_{i}/weight") for i in range(n)], axis=1)
    heavier = np.asarray((weights[:, None, :] > weights[:, :, None]).all(0))
    trials = Trials(
        scenes=states,
        actions=actions,
        acted=acted,
        twins=states,
        twin_actions=actions,
        altered=acted,
    )
    return _both(scenes, trials, graph=np.array(heavier, dtype=np.int64), values=_GRID**2)


def in_contact(
    rng: np.random.Generator,
    n: int,
    acted: NDArray[np.int64],
    pushed: NDArray[np.int64],
    direction: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Returns cells (N, n), all distinct, with block `pushed` just ahead of block `acted`."""
    rows = len(acted)
    order = np.argsort(rng.random((rows, _GRID**2)), axis=1)  # every cell, in any order
    moves = _MOVES[direction]
    ahead = np.stack([order // _GRID, order % _GRID], axis=-1) + moves[:, None]
    inside = ((ahead >= 0) & (ahead < _GRID)).all(-1)
    start = order[np.arange(rows), inside.argmax(1)]
    front = start + moves[:, 0] * _GRID + moves[:, 1]
    taken = (order == start[:, None]) | (order == front[:, None])
    free = np.take_along_axis(order, np.argsort(taken, axis=1, kind="stable"), axis=1)
    states = free[:, :n].copy()
    states[np.arange(rows), acted] = start
    states[np.arange(rows), pushed] = front
    return states


def _both(
    scenes: Scenes, trials: Trials, *, graph: NDArray[np.int64], values: int
) -> tuple[GridTrials, WorldRespondent]:
    shown = scenes.images(trials.scenes), scenes.images(trials.twins)
    pictures = replace(trials, scenes=shown[0], twins=shown[1])
    found = GridTrials(states=trials, images=pictures, graph=graph, values=values)
    return found, WorldRespondent(scenes, values)
