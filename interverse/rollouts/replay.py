"""The same episode again: bit for bit, or not at all."""

from __future__ import annotations

from interverse.core.errors import InvalidValueError, explain
from interverse.rollouts.counterfactual import counterfactual
from interverse.rollouts.episode import Episode


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
            explain(
                f"the replay differs from the record in {', '.join(differing[:5])}",
                fix=f"Replay it with the version that recorded it, {episode.version}, "
                "on the same kind of machine",
            )
        )
    return again


def differences(one: Episode, other: Episode) -> list[str]:
    """Returns the names of the arrays in which two episodes differ in any bit."""
    mine, theirs = one.arrays(), other.arrays()
    names = sorted(mine.keys() | theirs.keys())
    return [
        name
        for name in names
        if name not in mine
        or name not in theirs
        or mine[name].shape != theirs[name].shape
        or mine[name].tobytes() != theirs[name].tobytes()
    ]
