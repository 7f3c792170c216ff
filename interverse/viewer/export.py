"""Export of a session's interventions: JSON, or a curriculum in Python."""

from __future__ import annotations

import json
import pprint
from typing import Any

from interverse._version import __version__
from interverse.viewer.session import Session

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
    return _PYTHON.format(
        id=session.id,
        count=count,
        stages="\n".join(_stage(event.step, dict(event.values)) for event in events),
        make=f'"{session.id}"{options}',
        seed=session.seed,
    )


def _stage(step: int, values: dict[str, Any]) -> str:
    text = pprint.pformat(values, width=70, sort_dicts=False, compact=True)
    indented = text.replace("\n", "\n" + " " * 23)
    return f"        Stage(actor=SetValues({indented}), step={step}),"
