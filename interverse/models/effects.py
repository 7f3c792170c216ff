"""Trials in blocks and chemistry, put to a world and to models: which object acts on which?

Act on one object, or act on one object in two scenes that differ in one other object. What each
object became is read as chances over its values, and compared by `interverse.metrics.recovery`. The
world itself, put in the model's place, recovers its own graph; a model that predicts no change
recovers the empty one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from interverse.core.rng import Noise, generator
from interverse.metrics import recovery
from interverse.metrics.recovery import Floats, RecoveryScores, total_variation
from interverse.models.heads import Probe
from interverse.models.source import to_float
from interverse.models.world_model import WorldModel
from interverse.worlds.world import World

Ints = NDArray[np.int64]
_ROWS = 1024
_GRID = 5
MOVES = np.array([(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)])
"""Row and column that each action of a block adds."""


@final
class Scenes:
    """A batch of worlds whose objects are put where a trial wants them."""

    def __init__(self, world: World, *, seed: int) -> None:
        self.world = world
        self.in_blocks = "block_0/position" in world.variables
        self._everyone = np.arange(world.num_worlds)
        zero = np.zeros(world.num_worlds, dtype=np.int64)
        self._start = Noise(zero + seed, self._everyone, zero)
        world.reset(self._everyone, self._start, {})
        kind, field = ("block_", "/position") if self.in_blocks else ("object_", "/color")
        self.names = [n for n in world.variables if n.startswith(kind) and n.endswith(field)]
        self.actions = int(world.action_space.n)  # type: ignore[attr-defined]
        self.values = _GRID**2 if self.in_blocks else self.actions // len(self.names)

    @cached_property
    def graph(self) -> Ints:
        """(objects, objects), [i, j] = 1 where j acts on i: a parent, or a heavier block."""
        if not self.in_blocks:
            return np.array(self.world.read("graph/adjacency"), dtype=np.int64)[0]
        weights = [self.world.read(f"block_{i}/weight") for i in range(len(self.names))]
        heavier = np.stack(weights, axis=1)[:, None, :] > np.stack(weights, axis=1)[:, :, None]
        return np.asarray(heavier.all(0), dtype=np.int64)

    def read(self) -> Ints:
        """Returns the states (N, objects): cells or colours."""
        rows = np.stack([np.asarray(self.world.read(name)) for name in self.names], axis=1)
        return rows[..., 0] * _GRID + rows[..., 1] if self.in_blocks else rows

    def show(self, states: Ints) -> None:
        """Puts every world in a state, or where there are fewer states, the first worlds."""
        values = {}
        for name, own in zip(self.names, states.T, strict=True):
            cells = np.stack([own // _GRID, own % _GRID], axis=1)
            values[name] = cells if self.in_blocks else own
        refused = self.world.intervene(values, self._everyone[: len(states)])
        assert not refused  # trials never put two objects in one cell

    def act(self, actions: Ints, *, step: int = 1) -> Ints:
        """Returns the states after one action each, with the noise of a step of each row."""
        self.world.step(actions, self._everyone, self._start.at(step))
        return self.read()

    def after(self, states: Ints, actions: Ints, *, step: int = 1) -> Ints:
        """Returns what states become by one action each; a row's noise is the same every time."""
        self.show(states)
        return self.act(actions, step=step)

    def images(self, states: Ints) -> NDArray[np.uint8]:
        """Returns pictures of any number of states."""
        parts = []
        for start in range(0, len(states), len(self._everyone)):
            some = states[start : start + len(self._everyone)]
            self.show(some)
            parts.append(np.asarray(self.world.observe()["image"])[: len(some)])
        return np.concatenate(parts)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Trials:
    """Scenes, actions, and the twins in which one object differs.

    Attributes:
        scenes: (N, objects) states, or whatever respondents understand.
        actions: (N,) what is done.
        acted: (N,) the object each action is about.
        twins: the same scenes with the value of object `altered` changed.
        twin_actions: (N,) the same actions, or where the altered object is the acted one, the
            same kind of action with another value.
        altered: (N,) the object that differs.
        worlds: to ask what becomes of scenes and twins.
    """

    scenes: NDArray[Any]
    actions: Ints
    acted: Ints
    twins: NDArray[Any]
    twin_actions: Ints
    altered: Ints
    worlds: Any = None

    @cached_property
    def outcomes(self) -> Ints:
        """What becomes of the scenes: the facts."""
        return self.worlds.after(self.scenes, self.actions)

    @cached_property
    def truth(self) -> Ints:
        """What becomes of the twins under the facts' noise: the counterfactuals."""
        return self.worlds.after(self.twins, self.twin_actions)

    @property
    def graph(self) -> Ints:
        """(objects, objects), [i, j] = 1 where j acts on i."""
        return self.worlds.graph


def grid_trials(world: World, *, seed: int) -> Trials:
    """Returns one trial per world of a batch of blocks or chemistry."""
    make = blocks_trials if "block_0/position" in world.variables else chemistry_trials
    return make(world, seed=seed)


def chemistry_trials(world: World, *, seed: int) -> Trials:
    """Returns one trial per world of the batch: paint an object; in the twin, another differs.

    All objects' colours are drawn evenly, so that every parent's influence has a chance to show.
    """
    scenes = Scenes(world, seed=seed)
    n, colors, rows = len(scenes.names), scenes.values, world.num_worlds
    rng = generator(seed=seed, name="trials/chemistry")
    states = rng.integers(colors, size=(rows, n))
    acted, altered = rng.integers(n, size=(2, rows))
    paint, step = rng.integers(colors, size=rows), rng.integers(1, colors, size=rows)
    return repainted(scenes, states, acted, altered, paint, step)


def repainted(
    scenes: Scenes, states: Ints, acted: Ints, altered: Ints, paint: Ints, step: Ints
) -> Trials:
    """Returns trials in whose twins `altered` has another colour, `step` further on.

    Where the acted object is altered, that is another colour of the paint.
    """
    colors, own, twins = scenes.values, acted == altered, states.copy()
    every = np.flatnonzero(~own)
    twins[every, altered[every]] = (states[every, altered[every]] + step[every]) % colors
    twin_paint = np.where(own, (paint + step) % colors, paint)
    return Trials(
        scenes=states,
        actions=acted * colors + paint,
        acted=acted,
        twins=twins,
        twin_actions=acted * colors + twin_paint,
        altered=altered,
        worlds=scenes,
    )


def blocks_trials(world: World, *, seed: int) -> Trials:
    """Returns one trial per world of the batch: a block pushes against another.

    A push reaches one block at most, so total effects are the edges: the twins are the scenes.
    Weights must be ordered by index, as they are in every published setting.
    """
    scenes = Scenes(world, seed=seed)
    n, rng = len(scenes.names), generator(seed=seed, name="trials/blocks")
    acted = rng.integers(n, size=world.num_worlds)
    states, direction = in_contact(rng, n, acted)
    actions = acted * 5 + direction
    same = {"twins": states, "twin_actions": actions, "altered": acted}
    return Trials(scenes=states, actions=actions, acted=acted, worlds=scenes, **same)


def in_contact(rng: np.random.Generator, n: int, acted: Ints) -> tuple[Ints, Ints]:
    """Returns cells (N, n), all distinct, with a block just ahead of block `acted`; and where."""
    rows, every = len(acted), np.arange(len(acted))
    pushed = (acted + rng.integers(1, max(n, 2), size=rows)) % n
    direction = rng.integers(1, 5, size=rows)
    order = np.argsort(rng.random((rows, _GRID**2)), axis=1)  # every cell, in any order
    moves = MOVES[direction]
    ahead = np.stack([order // _GRID, order % _GRID], axis=-1) + moves[:, None]
    inside = ((ahead >= 0) & (ahead < _GRID)).all(-1)
    start = order[every, inside.argmax(1)]
    front = start + moves[:, 0] * _GRID + moves[:, 1]
    taken = (order == start[:, None]) | (order == front[:, None])
    free = np.take_along_axis(order, np.argsort(taken, axis=1, kind="stable"), axis=1)
    states = free[:, :n].copy()
    states[every, acted] = start
    states[every, pushed] = front
    return states, direction


# ------------------------------------------------------------------------------------- respondents


class Respondent(ABC):
    """A world, a model or a rule that says what becomes of states."""

    def show(self, states: NDArray[Any]) -> NDArray[Any]:
        """Returns states as it sees them: pictures, for most models."""
        return states

    @abstractmethod
    def encode(self, states: NDArray[Any]) -> Floats:
        """Returns (N, width) features of states, in which predictions are compared."""

    @abstractmethod
    def predict(self, states: NDArray[Any], actions: Ints) -> Floats:
        """Returns (N, width) features of what it expects the states to become.

        Row n must not depend on the other rows, and a world must use the same noise for row n at
        every call, so that a twin differs by its intervention alone.
        """

    @abstractmethod
    def read(self, features: Floats) -> Floats:
        """Returns (N, objects, values): chances that are read in features."""

    def now(self, states: NDArray[Any]) -> Floats:
        """Returns (N, objects, values): what it takes each object to be."""
        return self.read(self.encode(states))

    def after(self, states: NDArray[Any], actions: Ints) -> Floats:
        """Returns (N, objects, values): what it expects each object to become."""
        return self.read(self.predict(states, actions))

    def twin(self, trials: Trials) -> Floats:
        """Returns (N, width) features of what it expects of the altered scenes."""
        return self.predict(trials.twins, trials.twin_actions)

    def effects(self, trials: Trials) -> Floats:
        """Returns (N, objects) in [0, 1]: how far the alteration moves each object's outcome."""
        fact = self.after(trials.scenes, trials.actions)
        return total_variation(fact, self.after(trials.twins, trials.twin_actions))


class TrueWorld(Respondent):
    """The world itself, which answers with certainty; with the facts' noise it is the ceiling.

    Args:
        trials: whose worlds to ask.
        noise: 1: the facts' own. Another number: noise that is independent of it, so that the
            answer is that of a model with perfect mechanisms that cannot know the noise.
    """

    def __init__(self, trials: Trials, *, noise: int = 1) -> None:
        self.worlds, self.noise = trials.worlds, noise

    def encode(self, states: NDArray[Any]) -> Floats:
        """Returns one-hot states."""
        return np.eye(self.worlds.values)[states].reshape(len(states), -1)

    def predict(self, states: NDArray[Any], actions: Ints) -> Floats:
        """Returns what the states become."""
        return self.encode(self.worlds.after(states, actions, step=self.noise))

    def read(self, features: Floats) -> Floats:
        """Returns one-hot states by object."""
        return features.reshape(len(features), -1, self.worlds.values)


class ModelRespondent(Respondent):
    """A world model, asked in its latent space and read through a probe.

    Args:
        model: the model. probe: reads its states.
        show: draws states as pictures; None where trials hold pictures.
    """

    def __init__(
        self, model: WorldModel, probe: Probe, show: Callable[[Ints], NDArray[Any]] | None = None
    ) -> None:
        self.model, self.probe, self._show = model.eval(), probe.eval(), show
        self._device = next(model.parameters()).device

    def show(self, states: NDArray[Any]) -> NDArray[Any]:
        """Returns pictures of states."""
        return states if self._show is None else self._show(states)

    def encode(self, states: NDArray[Any]) -> Floats:
        """Returns the model's states of pictures."""
        return self._by_parts(self._encode, self.show(states))

    def predict(self, states: NDArray[Any], actions: Ints) -> Floats:
        """Returns the states it predicts."""
        shown = self.show(states)
        return self._by_parts(lambda s, a: self.model.predict(self._encode(s), a), shown, actions)

    def read(self, features: Floats) -> Floats:
        """Returns what the probe reads."""
        found = self._by_parts(self.probe, features)
        return found.reshape(len(found), self.probe.objects, self.probe.values)

    def _encode(self, images: torch.Tensor) -> torch.Tensor:
        return self.model.encode(to_float(images))

    @torch.no_grad()
    def _by_parts(self, of: Callable[..., torch.Tensor], *arrays: NDArray[Any]) -> Floats:
        """Returns (N, width) what a function gives, some rows at a time on the model's device."""
        parts = []
        for start in range(0, len(arrays[0]), _ROWS):
            rows = (array[start : start + _ROWS] for array in arrays)
            parts.append(of(*(torch.as_tensor(part).to(self._device) for part in rows)))
        return torch.cat(parts).flatten(1).cpu().numpy()


@final
class ReadTruth(Respondent):
    """The world, its pictures read by a model's encoder and probe: perfect predictions.

    What is missing from the true world's scores is the reading's fault.
    """

    def __init__(self, model: Respondent, trials: Trials) -> None:
        self._model, self._worlds = model, trials.worlds

    def show(self, states: NDArray[Any]) -> NDArray[Any]:
        """Returns what the model sees."""
        return self._model.show(states)

    def encode(self, states: NDArray[Any]) -> Floats:
        """Returns the model's encodings."""
        return self._model.encode(states)

    def predict(self, states: NDArray[Any], actions: Ints) -> Floats:
        """Returns encodings of what the states become."""
        return self.encode(self._worlds.after(states, actions))

    def read(self, features: Floats) -> Floats:
        """Returns what the model's probe reads."""
        return self._model.read(features)


# ----------------------------------------------------------------------------------------- effects


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effects:
    """A respondent's effect matrices (n, n); entry [i, j] is what j does to i."""

    total: Floats
    direct: Floats


def effects(respondent: Any, trials: Trials, *, floor: float = 0.0) -> Effects:
    """Returns the effect matrices that a respondent's answers amount to.

    Args:
        respondent: a `Respondent`, or anything with `now` and `after`.
        trials: what it is asked.
        floor: total effects up to this count as none when paths are told apart; a trained model
            needs some, its answers are never exactly unchanged.
    """
    outcome = respondent.after(trials.scenes, trials.actions)
    twin = respondent.after(trials.twins, trials.twin_actions)
    total = recovery.total_effects(respondent.now(trials.scenes), outcome, trials.acted)
    depends = recovery.dependences(outcome, twin, trials.altered, trials.acted)
    return Effects(total=total, direct=recovery.direct_effects(depends, total, floor=floor))


def score_effects(
    graph: NDArray[np.generic],
    *,
    truth: Effects,
    found: Effects,
    one_step: bool = False,
    threshold: float = 0.1,
) -> RecoveryScores:
    """Returns how well a model's effects match the world's.

    Args:
        graph: (n, n) true edges, [i, j] = 1 for j -> i.
        truth: the world's own effects, on the same trials.
        found: the model's.
        one_step: effects do not travel within a step (blocks), so total effects are the edges.
        threshold: of the score that does not choose its own.
    """
    return recovery.recovery(
        graph,
        true_totals=truth.total,
        found_totals=found.total,
        found_direct=found.total if one_step else found.direct,
        threshold=threshold,
    )
