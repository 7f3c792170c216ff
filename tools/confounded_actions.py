"""Actions by class and coin at each strength of the confounder, drawn as pairs are.

Usage: python tools/confounded_actions.py [HOUSES]; writes actions.json beside the curves
of results/causaltriplet/confounding. There are no pictures, so no pair is refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from interverse.fit.work import commit
from interverse.worlds import WORLDS
from interverse.worlds.rooms.actions import CLASS_NAMES, VERBS
from interverse.worlds.rooms.confounding import preferred_objects, preferred_verbs, puts_back
from interverse.worlds.rooms.options import RoomsOptions
from interverse.worlds.rooms.pairs import ROUND_PAIRS, class_and_verbs, noise_of
from interverse.worlds.rooms.world import Rooms
from interverse.worlds.world import parse_options

OUT = Path(__file__).parent.parent / "results" / "causaltriplet" / "confounding" / "actions.json"
STRENGTHS, FIRST_HOUSE, HOUSES, ROUNDS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0), 30_000, 48, 5
_ONE, _SHUFFLES = np.array([0]), 200
Counts = NDArray[np.float64]


class Draw(NamedTuple):
    """One action: its object's class, itself, the coin, and whether both sides were possible."""

    cls: int
    verb: int
    coin: int
    free: bool


def drawn(strength: float, houses: int) -> Iterator[Draw]:
    """Yields the actions of some houses, five a round; each leaves its object as it is."""
    options = {"confounder": True, "defaults": {"confounding": strength}}
    parsed = parse_options(RoomsOptions, {**WORLDS["rooms/single-v1"].options, **options})
    world = Rooms(num_worlds=1, options=parsed)
    for house in range(FIRST_HOUSE, FIRST_HOUSE + houses):
        for number in range(ROUNDS):
            world.reset(_ONE, noise_of(0, house, number), {"room/seed": np.array([house])})
            for attempt in range(ROUND_PAIRS):
                found = _act(world, house, number, attempt)
                if found is not None:
                    yield found


def _act(world: Rooms, house: int, number: int, attempt: int) -> Draw | None:
    """Returns an action, after doing it; None where the object allows none."""
    noise = noise_of(0, house, number).at(attempt + 1)
    rng, row = noise.generator("rooms/attempt"), world.hidden(0)
    items, order = world.present(0), world.read("order")[0].tolist()
    objects = [class_and_verbs(world, order.index(item)) for item in items]
    kept = preferred_objects(row, objects, float(rng.random()))
    world.focus(0, items[kept[int(rng.integers(len(kept)))]])
    cls, verbs = class_and_verbs(world, 0)
    if not verbs:
        return None
    chosen = preferred_verbs(row, verbs, float(rng.random()))
    verb = chosen[int(rng.integers(len(chosen)))]
    was = world.save(_ONE)
    world.act(np.array([[0, verb]]), _ONE, noise)
    if puts_back(row, float(rng.random())):
        world.load(was, _ONE)
    return Draw(cls, verb, int(row["confounder"]), len({VERBS[v].target > 0 for v in verbs}) == 2)


def counted(draws: list[Draw], cause: str = "cls") -> Counts:
    """Returns how often each class or coin (row) met each action (column)."""
    counts = np.zeros((len(CLASS_NAMES), len(VERBS)))
    np.add.at(counts, ([getattr(d, cause) for d in draws], [d.verb for d in draws]), 1)
    return counts


def information(counts: Counts) -> float:
    """Returns the mutual information of rows and columns, in bits."""
    joint = counts / counts.sum()
    apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log2(joint[seen] / apart[seen])).sum())


def variation(a: Counts, b: Counts) -> float:
    """Returns the total variation of P(action | class), averaged over draws of common classes."""
    both = (a.sum(1) > 0) & (b.sum(1) > 0)
    a, b = a[both], b[both]
    apart = 0.5 * np.abs(a / a.sum(1, keepdims=True) - b / b.sum(1, keepdims=True)).sum(1)
    return float(np.average(apart, weights=a.sum(1) + b.sum(1)))


def summary(draws: list[Draw]) -> dict[str, float]:
    """Returns what one strength gave."""
    return {
        "draws": len(draws),
        "class_bits": round(information(counted(draws)), 3),
        "coin_bits": round(information(counted(draws, "coin")), 3),
        "both_sides_possible": round(float(np.mean([d.free for d in draws])), 3),
        "action_on_the_coins_side": round(
            float(np.mean([(VERBS[d.verb].target > 0) == bool(d.coin) for d in draws])), 3
        ),
        "class_on_the_coins_side": round(float(np.mean([d.cls % 2 == d.coin for d in draws])), 3),
    }


def main(words: list[str]) -> None:
    """Draws at every strength and writes the comparison."""
    houses = int(words[0]) if words else HOUSES
    found = {strength: list(drawn(strength, houses)) for strength in STRENGTHS}
    weak, strong = found[STRENGTHS[0]], found[STRENGTHS[-1]]
    rng, every, chance = np.random.default_rng(0), [*weak, *strong], []
    for _ in range(_SHUFFLES):
        mixed = [every[i] for i in rng.permutation(len(every))]
        chance.append(variation(counted(mixed[: len(weak)]), counted(mixed[len(weak) :])))
    content = {
        "commit": commit(),
        "command": " ".join(["python tools/confounded_actions.py", *words]),
        "houses": houses,
        "strengths": {f"{strength:g}": summary(draws) for strength, draws in found.items()},
        "variation": round(variation(counted(weak), counted(strong)), 3),
        "variation_by_chance_95": round(float(np.quantile(chance, 0.95)), 3),
    }
    OUT.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
