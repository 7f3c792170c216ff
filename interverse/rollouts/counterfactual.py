"""Counterfactuals and replays: the same noise and actions, in a world changed or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from types import MappingProxyType
from typing import Any, Literal, get_args, overload

import numpy as np

from interverse.core.errors import InterventionError, InvalidValueError, check_name
from interverse.core.type_checks import blames_types
from interverse.envs import Snapshot, WorldEnv, make
from interverse.rollouts.episode import Episode, Refusal
from interverse.rollouts.runner import Recorder
from interverse.scm import Do, Intervention, as_intervention
from interverse.worlds import rooms  # loads what it draws with when a name is used
from interverse.worlds.own_code import check_trusted
from interverse.worlds.rooms import Pair

_ONE = np.arange(1)
_NOTHING = as_intervention({})
Refused = Literal["raise", "skip", "stop"]


@overload
def counterfactual(
    episode: Episode,
    do: Mapping[str, Any] | Intervention,
    at: int = 0,
    *,
    check: bool = True,
    refused: Refused = "raise",
) -> Episode: ...


@overload
def counterfactual(
    episode: Pair, do: Mapping[str, Any] | Intervention, at: int = 0, *, check: bool = True
) -> Pair: ...


@blames_types
def counterfactual(
    episode: Episode | Pair,
    do: Mapping[str, Any] | Intervention,
    at: int = 0,
    *,
    check: bool = True,
    refused: Refused = "raise",
) -> Episode | Pair:
    """Returns the episode that would have been, had `do` been done before action `at`.

    The seed, hence all noise, and the actions are the fact's. The fact's own interventions replay,
    except on the variables of `do`, and other descriptions of the same things, from `at` on: there
    `do` wins. Of what was done before action `at`, `do` comes last. At the start it is in force
    before the initial draws, unless the fact intervened between its reset and its first action.
    Refused interventions stay refused. With an empty `do` the result is the fact, bit for bit.

    Args:
        episode: the fact; or a before/after pair of rooms, whose counterfactual is a pair.
        do: variables and their values, a `Do`, or a `Shift` of what they were.
        at: before which action; 0 is the start.
        check: whether values must lie in the world's active space, as in `env.do`.
        refused: what to do where the changed world refuses something that the fact did later: a
            block stands there now, say. "raise"; "skip" leaves that out and goes on; "stop" ends
            the twin before that action. Both note it in the twin's `refusals`. If `do` itself
            cannot be, there is no twin, and InterventionError is raised in any case.

    >>> from interverse.rollouts import rollout
    >>> fact = rollout("chemistry/chain-v1", "random", seed=0, max_steps=3)
    >>> twin = counterfactual(fact, {})
    >>> bool((twin.rewards == fact.rewards).all())
    True
    """
    check_name("refused", refused, get_args(Refused))
    if isinstance(episode, Pair):
        if refused != "raise":
            told = "a pair has no record of refusals"
            raise InvalidValueError(told, fix='Leave refused out (it is "raise")')
        return counterfactual_pair(episode, do, at, check=check)
    if not isinstance(at, Integral) or not 0 <= at <= len(episode):
        allowed = f"a whole number from 0 to {len(episode)}, the episode's actions"
        raise InvalidValueError(f"at is {at!r}", allowed=allowed)
    change = as_intervention(do)
    check_trusted("the episode", episode.id, episode.options)
    env = make(episode.id, **episode.options)
    try:
        # The fact without what was set of the same things, or refused, from `at` on.
        taken, done = env.graph.with_twins(change.variables), []
        for item in episode.interventions:
            rest = {n: v for n, v in item.values.items() if n not in taken}
            done.append(item if item.step < at else replace(item, values=rest))
        apart = [
            item for item in episode.refusals if item.step < at or not taken & set(item.variables)
        ]
        fact = replace(episode, interventions=tuple(done), refusals=tuple(apart))
        start = Snapshot.from_bytes(fact.start) if fact.start else None
        if start is not None:
            env.restore(start)
            return _play(env, fact, change, at, check, refused, start)
        acted = any(item.step == 0 and not item.at_reset for item in fact.interventions)
        is_early = at == 0 and change.fixed and not acted  # in force before the initial draws
        early = change.fixed if is_early and change.fixed else {}
        begin(env, fact.seed, fact.episode, _starting_do(fact), early, check=check)
        return _play(env, fact, _NOTHING if is_early else change, at, check, refused)
    finally:
        env.close()


def _play(
    env: WorldEnv,
    fact: Episode,
    change: Intervention,
    at: int,
    check: bool,
    refused: Refused,
    start: Snapshot | None = None,
) -> Episode:
    """Returns the fact's interventions and actions from here on, with the change before `at`."""
    left_out: list[Refusal] = []
    with Recorder(env, env.observe(), start) as recorder:
        for step in range(len(fact) + 1):
            for values in _done_before(fact, step):
                try:
                    env.do(values, check=False)
                except InterventionError as error:
                    if refused == "raise":
                        raise
                    left_out.append(Refusal(step, tuple(values), error.reason))
            if step == at and change.variables:
                env.do(change, check=check)
            if step == len(fact) or recorder.ended or (left_out and refused == "stop"):
                break
            env.step(fact.actions[step])
        told = [item for item in fact.refusals if item.step <= step]
        refusals = sorted([*told, *left_out], key=lambda item: item.step)
        return replace(recorder.episode(), refusals=tuple(refusals))


def begin(
    env: WorldEnv,
    seed: int,
    episode: int,
    facts: Mapping[str, Any],
    early: Mapping[str, Any] = MappingProxyType({}),
    *,
    check: bool = True,
) -> None:
    """Starts a recorded episode again, under what it started under and `early`, which wins.

    Facts were judged when they were recorded; `early` must lie in the active space with `check`.
    """
    judged = early.keys() if check else ()
    do = {**facts, **early} or None
    env.driver.reset(_ONE, seeds=[seed], episode=episode, do=do, check=judged)


def played(env: WorldEnv, episode: Episode) -> Iterator[int]:
    """Plays an episode again; yields how many actions were taken, from its start on."""
    if episode.start:
        env.restore(Snapshot.from_bytes(episode.start))
    else:
        begin(env, episode.seed, episode.episode, _starting_do(episode))
    for step in range(len(episode) + 1):
        for values in _done_before(episode, step):
            env.do(values, check=False)
        yield step
        if step < len(episode):
            env.step(episode.actions[step])


def _starting_do(episode: Episode) -> dict[str, Any]:
    begun = [item.values for item in episode.interventions if item.at_reset]
    return {name: value for values in begun for name, value in values.items()}


def _done_before(episode: Episode, step: int) -> Iterator[dict[str, Any]]:
    for item in episode.interventions:
        if item.step == step and not item.at_reset and item.values:
            yield dict(item.values)


def replay(episode: Episode) -> Episode:
    """Returns the episode played again from its record, or raises if it comes out otherwise.

    Seed, options, interventions and actions are taken from the record; observations, rewards and
    all variables are worked out anew.

    >>> from interverse.rollouts import rollout
    >>> fact = rollout("chemistry/chain-v1", "random", seed=0, max_steps=3)
    >>> replay(fact).fingerprint == fact.fingerprint
    True
    """
    again = counterfactual(episode, {})
    differing = differences(episode, again)
    if differing:
        raise InvalidValueError(
            f"the replay differs from the record in {', '.join(differing[:5])}",
            fix=f"Replay it with the version that recorded it, {episode.version}, "
            "on the same kind of machine",
        )
    return again


def differences(one: Episode, other: Episode) -> list[str]:
    """Returns the names of the arrays in which two episodes differ in any bit."""
    mine, theirs = (
        {n: (a.shape, a.tobytes()) for n, a in episode.arrays().items()} for episode in (one, other)
    )
    return [n for n in sorted(mine.keys() | theirs.keys()) if mine.get(n) != theirs.get(n)]


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
        raise InvalidValueError(f"at is {at}", allowed="0 (before) or 1 (after the action)")
    origin, change = _complete(pair), as_intervention(do)
    # The parts of the action that the change sets are no variables of the world.
    fixed = change.fixed or {}
    action = {name: value for name, value in fixed.items() if name in rooms.ACTION}
    for name, value in action.items():
        if value.shape or value.dtype.kind not in "iuf" or value % 1 != 0:
            told = f"{name} is {value.tolist()}"
            raise InterventionError(told, [name], allowed="a whole number")
    if action:
        change = Do({name: value for name, value in fixed.items() if name not in action})
    env: Any = make(origin.world_id, **origin.options)
    try:
        env.reset(seed=pair.address.seed)
        world = env.unwrapped.world
        world.load(dict(origin.state or {}), _ONE)
        if at == 0 and change.variables:
            env.do(change, check=check)
            origin = replace(origin, state=world.save(_ONE))
        fact = {name: int(pair.factors_after[name]) for name in rooms.ACTION}
        slot, verb = (int(action.get(name, fact[name])) for name in rooms.ACTION)
        counts = (world.options.objects, 7)
        for name, number, count in zip(rooms.ACTION, (slot, verb), counts, strict=True):
            if not 0 <= number < count:
                told = f"{name} is {number}"
                raise InterventionError(told, dict(action), allowed=f"0 to {count - 1}")
        draft = rooms.Draft(verb, pair.address, origin, slot)
        found = rooms.act_and_draw(world, draft, depth=pair.depth_before is not None)
        # After the action what the fact did, where the change does not win, then the change.
        names, before = env.graph.with_twins(change.variables), len(env.driver.log(0))
        kept = {name: value for name, value in origin.afterwards.items() if name not in names}
        for item, judged in ((Do(kept), False), (change if at == 1 else Do({}), check)):
            if item.variables:
                env.do(item, check=judged)
        entries = env.driver.log(0)[before:]
        afterwards = {name: rows[0] for entry in entries for name, rows in entry.values.items()}
        if not afterwards:
            return found
        done = draft._replace(origin=replace(origin, afterwards=afterwards))
        return rooms.redrawn(world, found, done)
    finally:
        env.close()


def _complete(pair: Pair) -> rooms.Origin:
    """Returns the origin of a pair with the state before, found again by its address if need be."""
    if pair.origin is None:
        raise InvalidValueError(
            "the pair does not say in which world it was drawn",
            fix="Take a pair of rooms: generate_pairs, or PairDataset.pair of a collected set",
        )
    check_trusted("the pair", pair.origin.world_id, pair.origin.options)
    if pair.origin.state is not None:
        return pair.origin
    seed, house, _, index = pair.address
    made = rooms.generate_pairs(pair.origin.world_id, seed, house, options=pair.origin.options)
    for found in made:
        if isinstance(found, Pair) and found.address.index == index and found.origin is not None:
            return found.origin
    raise InvalidValueError(
        f"house {house} of seed {seed} has no pair {index} any more",
        fix="Collect the data set again with this version",
    )
