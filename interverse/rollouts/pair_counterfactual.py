"""Counterfactuals of before/after pairs: the pair that would have been."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from interverse.core.errors import InterventionError, InvalidValueError, explain
from interverse.envs import make
from interverse.scm import Do, Intervention, as_intervention
from interverse.worlds.rooms import (
    ACTION,
    Draft,
    Origin,
    Pair,
    act_and_draw,
    generate_pairs,
    redrawn,
)

_ONE = np.array([0])


def counterfactual_pair(
    pair: Pair, do: Mapping[str, Any] | Intervention, at: int = 0, *, check: bool = True
) -> Pair:
    """Returns the pair that would have been, had `do` been done before or after the action.

    Noise and action are the fact's, unless `do` names `action/verb` or `action/object`. With an
    empty `do` the result is the fact, pixel for pixel. An action that the changed object cannot
    take leaves it as it is: both pictures are then alike.

    Args:
        pair: the fact, of a world of rooms.
        do: variables and their values, a `Do`, or a `Shift` of what they were before.
        at: 0: before the action; 1: after it.
        check: whether values must lie in the world's active space, as in `env.do`.
    """
    if at not in (0, 1):
        raise InvalidValueError(
            explain(f"at is {at}", allowed="0 (before) or 1 (after the action)")
        )
    origin = _complete(pair)
    action, change = _split(as_intervention(do))
    env: Any = make(origin.world_id, **origin.options)
    try:
        env.reset(seed=pair.address.seed)
        world = env.unwrapped.world
        world.load(dict(origin.state or {}), _ONE)
        if at == 0 and change.variables:
            env.do(change, check=check)
        draft = _draft(pair, origin, action, slots=world.options.objects)
        found = act_and_draw(world, draft, depth=pair.depth_before is not None)
        if at == 1 and change.variables:
            env.do(change, check=check)
            found = redrawn(world, found, draft)
        return found
    finally:
        env.close()


def _complete(pair: Pair) -> Origin:
    """Returns the origin of a pair with the state before, found again by its address if need be."""
    if pair.origin is None:
        raise InvalidValueError(
            explain(
                "the pair does not say in which world it was drawn",
                fix="Take a pair of rooms: generate_pairs, or PairDataset.pair of a collected set",
            )
        )
    if pair.origin.state is not None:
        return pair.origin
    seed, house, _, index = pair.address
    made = generate_pairs(pair.origin.world_id, seed, house, options=pair.origin.options)
    for found in made:
        if isinstance(found, Pair) and found.address.index == index and found.origin is not None:
            return found.origin
    raise InvalidValueError(
        explain(
            f"house {house} of seed {seed} has no pair {index} any more",
            fix="Collect the data set again with this version",
        )
    )


def _split(change: Intervention) -> tuple[dict[str, int], Intervention]:
    """Returns the parts of the action that an intervention sets, and the rest of it."""
    if not isinstance(change, Do):
        return {}, change
    action = {name: int(change.values[name]) for name in ACTION if name in change.values}
    return action, Do({k: v for k, v in change.values.items() if k not in action})


def _draft(pair: Pair, origin: Origin, action: Mapping[str, int], *, slots: int) -> Draft:
    fact = {name: int(pair.factors_after[name]) for name in ACTION}
    slot, verb = (action.get(name, fact[name]) for name in ACTION)
    for name, value, count in zip(ACTION, (slot, verb), (slots, 7), strict=True):
        if not 0 <= value < count:
            raise InterventionError(
                explain(f"{name} is {value}", allowed=f"0 to {count - 1}"), dict(action)
            )
    return Draft(verb, pair.address, origin, slot)
