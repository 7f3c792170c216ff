"""The record of a session since the start of the episode, and its export as JSON or Python."""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from interverse._version import __version__
from interverse.envs import Snapshot, WorldEnv

if TYPE_CHECKING:
    from interverse.viewer.session import Session


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


@final
@dataclass(frozen=True, slots=True, eq=False)
class ViewerMoment:
    """A place to come back to: the world, and what had happened until then."""

    snapshot: Snapshot
    history: History


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values as numbers and nested lists."""
    return {name: np.asarray(value).tolist() for name, value in values.items()}


# ------------------------------------------------------------------------------------------- export

FORMAT = "interverse-session-1"

_PYTHON = '''"""Made with `interverse view {id}`: {count} by hand."""

import numpy as np

import interverse as iv
from interverse.actors.actor import Actor
from interverse.actors.curriculum import Curriculum, Stage
from interverse.actors.wrappers import CurriculumEnv


class SetValues(Actor):
    """Sets variables to values."""

    def __init__(self, values):
        self.values = values

    def act(self, moment):
        """Returns the same values for every world."""
        count = len(moment.worlds)
        return {{name: np.array([value] * count) for name, value in self.values.items()}}


# Before which action of every episode, and what is set there.
curriculum = Curriculum(
    stages=(
{stages}
    )
)
env = CurriculumEnv(iv.make({make}), curriculum)
observation, info = env.reset(seed={seed})
'''


def as_json(session: Session) -> str:
    """Returns the episode's interventions, actions and the session's refusals as JSON.

    Interventions and actions, in this order, make the episode again: reset with the seed, and
    before action t do what has `step` t.
    """
    document = {
        "format": FORMAT,
        "version": __version__,
        "id": session.id,
        "options": session.options,
        "seed": session.seed,
        "interventions": [
            {"step": e.step, "do": dict(e.values), "source": e.source, "changed": list(e.changed)}
            for e in session.history.events
        ],
        "refusals": [
            {"step": r.step, "do": dict(r.values), "reason": r.reason} for r in session.refused
        ],
        "policy": session.policy,
        "actions": [action.tolist() for action in session.history.actions],
    }
    return json.dumps(document, indent=1)


def as_python(session: Session) -> str:
    """Returns a script whose curriculum makes the session's interventions in every episode."""
    events = session.history.events
    options = "".join(f", {name}={value!r}" for name, value in session.options.items())
    count = f"{len(events)} intervention{'' if len(events) == 1 else 's'}"
    stages = []
    for event in events:
        text = pprint.pformat(dict(event.values), width=70, sort_dicts=False, compact=True)
        indented = text.replace("\n", "\n" + " " * 23)
        stages.append(f"        Stage(actor=SetValues({indented}), step={event.step}),")
    return _PYTHON.format(
        id=session.id,
        count=count,
        stages="\n".join(stages),
        make=f'"{session.id}"{options}',
        seed=session.seed,
    )
