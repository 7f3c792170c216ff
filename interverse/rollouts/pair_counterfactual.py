"""Counterfactuals of before/after pairs: the pair that would have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InterventionError, InvalidValueError, explain
from interverse.envs import make
from interverse.scm import Do, Intervention, as_intervention
from interverse.worlds.own_code import check_trusted
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
    take leaves it as it is: both pictures are then alike. A further counterfactual
    starts from this one.

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
            origin = replace(origin, state=world.save(_ONE))
        draft = _draft(pair, origin, action, slots=world.options.objects)
        found = act_and_draw(world, draft, depth=pair.depth_before is not None)
        late = change if at == 1 else Do({})
        afterwards = _intervene_after(env, origin.afterwards, change, late, check=check)
        if not afterwards:
            return found
        done = draft._replace(origin=replace(origin, afterwards=afterwards))
        return redrawn(world, found, done)
    finally:
        env.close()


def _intervene_after(
    env: Any,
    facts: Mapping[str, Any],
    change: Intervention,
    late: Intervention,
    *,
    check: bool,
) -> dict[str, NDArray[Any]]:
    """Does after the action what the fact did, where the change does not win, then `late`.

    Returns:
        The values that were set.
    """
    taken = env.graph.with_twins(change.variables)
    kept = {name: value for name, value in facts.items() if name not in taken}
    before = len(env.driver.log(0))
    for item, judged in ((Do(kept), False), (late, check)):
        if item.variables:
            env.do(item, check=judged)
    entries = env.driver.log(0)[before:]
    return {name: rows[0] for entry in entries for name, rows in entry.values.items()}


def _complete(pair: Pair) -> Origin:
    """Returns the origin of a pair with the state before, found again by its address if need be."""
    if pair.origin is None:
        raise InvalidValueError(
            explain(
                "the pair does not say in which world it was drawn",
                fix="Take a pair of rooms: generate_pairs, or PairDataset.pair of a collected set",
            )
        )
    check_trusted("the pair", pair.origin.world_id, pair.origin.options)
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
    if change.fixed is None:
        return {}, change
    action = {name: value for name, value in change.fixed.items() if name in ACTION}
    for name, value in action.items():
        if value.shape or value.dtype.kind not in "iuf" or value % 1 != 0:
            raise InterventionError(
                explain(f"{name} is {value.tolist()}", allowed="a whole number"), [name]
            )
    rest = {name: value for name, value in change.fixed.items() if name not in action}
    return {name: int(value) for name, value in action.items()}, Do(rest)


def _draft(pair: Pair, origin: Origin, action: Mapping[str, int], *, slots: int) -> Draft:
    fact = {name: int(pair.factors_after[name]) for name in ACTION}
    slot, verb = (action.get(name, fact[name]) for name in ACTION)
    for name, value, count in zip(ACTION, (slot, verb), (slots, 7), strict=True):
        if not 0 <= value < count:
            raise InterventionError(
                explain(f"{name} is {value}", allowed=f"0 to {count - 1}"), dict(action)
            )
    return Draft(verb, pair.address, origin, slot)
