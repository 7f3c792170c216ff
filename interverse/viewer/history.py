"""The record of a session: its interventions, actions and values since the start of the episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.envs import Snapshot, WorldEnv
from interverse.rollouts import AppliedDo


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """An intervention that took effect.

    Attributes:
        step: before which action. values: name -> number or nested lists.
        changed: every variable that changed, those that follow included.
        source: "do", the protocol that drew it, or "script".
        before: the moment it was done in; None for one that the script made itself.
    """

    step: int
    values: Mapping[str, Any]
    changed: tuple[str, ...]
    source: str
    before: ViewerMoment | None


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """An intervention that was refused before action `step`, and why."""

    step: int
    values: Mapping[str, Any]
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpisodeStart:
    """The start of an episode, from which it can be played again.

    Attributes:
        seed, episode: of the reset. do: the intervention it started under.
        snapshot: the moment to start from instead of a reset.
    """

    seed: int
    episode: int
    do: Mapping[str, Any]
    snapshot: Snapshot | None

    @classmethod
    def of(cls, env: WorldEnv, snapshot: Snapshot | None) -> EpisodeStart:
        """Returns the start of an environment that is at the start of its episode."""
        driver = env.driver
        given = {n: rows[0] for e in driver.log(0) if e.at_reset for n, rows in e.values.items()}
        seed, episode = int(driver.seeds[0]), int(driver.episodes[0])
        return cls(seed=seed, episode=episode, do=given, snapshot=snapshot)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """The events since the start of the episode.

    `trace[t]` holds the values that action t met, the last entry those of now.
    """

    start: EpisodeStart
    trace: tuple[Mapping[str, NDArray[Any]], ...]
    events: tuple[Event, ...] = ()
    actions: tuple[Any, ...] = ()
    earned: float = 0.0
    ended: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> tuple[AppliedDo, ...]:
        """The interventions, as an `Episode` holds them."""
        return tuple(AppliedDo(event.step, event.values) for event in self.events)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ViewerMoment:
    """A place to come back to: the world, and what had happened until then."""

    snapshot: Snapshot
    history: History


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values as numbers and nested lists."""
    return {name: np.asarray(value).tolist() for name, value in values.items()}
