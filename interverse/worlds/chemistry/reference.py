"""Chemistry as a textbook structural causal model: one world, plain Python, no arrays.

The batched dynamics are tested against this, with the same noise addresses. It is slow and meant to
be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from interverse.scm import SCM, Do, Mechanism
from interverse.worlds.chemistry.cpt import Mechanisms
from interverse.worlds.chemistry.variables import name_of

Parents = Any  # Mapping of names to values, as a mechanism gets it


def start_model(mechanisms: Mechanisms, world: int = 0) -> SCM:
    """Returns the model of an episode's first colours in one world."""
    network = _networks(mechanisms, world)
    out = {}
    for i, parents in enumerate(_parents(mechanisms, world)):
        names = [name_of(j, "color") for j in parents]
        out[name_of(i, "color")] = Mechanism(tuple(names), _drawn(i, parents, network))
    return SCM(out)


def step_model(mechanisms: Mechanisms, world: int = 0) -> SCM:
    """Returns the model of one step in one world.

    `object_i/color` is the colour after the step, `object_i/before` the one before it,
    `object_i/reached` whether the paint on `action/object` reaches it. `causes` sets what is given.
    """
    network = _networks(mechanisms, world)
    out = {name: _given() for name in ("action/object", "action/color")}
    for i, parents in enumerate(_parents(mechanisms, world)):
        out[name_of(i, "before")] = _given()
        reach = tuple(name_of(j, "reached") for j in parents)
        out[name_of(i, "reached")] = Mechanism(("action/object", *reach), _reached(i, parents))
        own = (name_of(i, "before"), name_of(i, "reached"), "action/object", "action/color")
        causes = (*own, *(name_of(j, "color") for j in parents))
        out[name_of(i, "color")] = Mechanism(causes, _stepped(i, _drawn(i, parents, network)))
    return SCM(out)


def causes(colors: Sequence[int], action: int, palette_size: int) -> Do:
    """Returns the intervention that sets a step's causes: the colours before it and the action."""
    before = {name_of(i, "before"): int(color) for i, color in enumerate(colors)}
    chosen = {"action/object": action // palette_size, "action/color": action % palette_size}
    return Do(before | chosen)


def _given() -> Mechanism:
    return Mechanism((), lambda parents, noise: 0)


def _parents(mechanisms: Mechanisms, world: int) -> list[list[int]]:
    rows = mechanisms.adjacency[world].tolist()
    return [[j for j, is_parent in enumerate(row) if is_parent] for row in rows]


def _reached(i: int, parents: Sequence[int]) -> Callable[[Parents, float], int]:
    def mechanism(values: Parents, noise: float) -> int:
        by_parent = [values[name_of(j, "reached")] for j in parents]
        return int(values["action/object"] == i or any(by_parent))

    return mechanism


def _stepped(i: int, drawn: Callable[[Parents, float], int]) -> Callable[[Parents, float], int]:
    def mechanism(values: Parents, noise: float) -> int:
        if values["action/object"] == i:
            return int(values["action/color"])
        if values[name_of(i, "reached")]:
            return drawn(values, noise)
        return int(values[name_of(i, "before")])

    return mechanism


def _drawn(
    i: int, parents: Sequence[int], network: Callable[[int, dict[int, int]], list[float]]
) -> Callable[[Parents, float], int]:
    """A colour drawn by the inverse of its cumulative chances; object 0 at reset evenly."""

    def mechanism(values: Parents, noise: float) -> int:
        shown = {j: int(values[name_of(j, "color")]) for j in parents}
        chances = network(i, shown)
        if i == 0:
            chances = [1.0 / len(chances)] * len(chances)
        below = 0.0
        for color, chance in enumerate(chances):
            below += chance
            if noise < below:
                return color
        return len(chances) - 1

    return mechanism


def _networks(mechanisms: Mechanisms, world: int) -> Callable[[int, dict[int, int]], list[float]]:
    """Returns the function from an object and its parents' colours to its colours' chances."""
    own = world % len(mechanisms.weights.first)  # the shared ones, or its own
    first, second, first_bias, second_bias = (
        getattr(mechanisms.weights, part)[own].tolist()
        for part in ("first", "second", "first_bias", "second_bias")
    )
    gain, bias = float(mechanisms.gain[world]), float(mechanisms.bias[world])

    def table(i: int, shown: dict[int, int]) -> list[float]:
        """The object's own table; the first parent counts fastest."""
        count = len(second_bias[i])
        row = sum(count**place * color for place, color in enumerate(shown.values()))
        own: Any = mechanisms.own[i]
        return [float(chance) for chance in own[world][row]]

    def chances(i: int, shown: dict[int, int]) -> list[float]:
        if mechanisms.own and mechanisms.own[i] is not None:
            return table(i, shown)
        units = range(len(first_bias[i]))
        sums = [bias * first_bias[i][h] for h in units]
        for j, color in shown.items():
            sums = [sums[h] + gain * first[i][j][color][h] for h in units]
        scores = [
            bias * second_bias[i][c]
            + sum(max(0.0, sums[h]) * gain * second[i][h][c] for h in units)
            for c in range(len(second_bias[i]))
        ]
        weights = [math.exp(score - max(scores)) for score in scores]
        return [weight / sum(weights) for weight in weights]

    return chances
