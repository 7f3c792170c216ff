"""Hand-written policies for five tasks: the baselines that learning has to beat.

They read the structured observation alone, think in fingertip space for all worlds at once, and
command joint positions through the closed-form inverse kinematics.
"""

from __future__ import annotations

from typing import Any

from interverse.core.errors import InvalidValueError, explain
from interverse.worlds.trifinger.observation import ObservationLayout
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.scripted.observer import ObservationReader
from interverse.worlds.trifinger.scripted.policies import Carrier, Reacher

CARRYING = {"pushing": 1, "picking": 1, "pick_and_place": 1, "stacking2": 2}  # blocks to carry


def scripted_policy(layout: ObservationLayout, options: TriFingerOptions) -> Any:
    """Returns the baseline of a task, or None where there is none.

    Args:
        layout: of the structured observation.
        options: of the world; other action modes than joint_positions raise.
    """
    if options.task != "reaching" and options.task not in CARRYING:
        return None
    if options.action_mode != "joint_positions":
        raise InvalidValueError(
            explain(
                f"the scripted policy cannot act in action_mode {options.action_mode!r}",
                allowed="joint_positions",
                fix="Make the world with the default action_mode",
            )
        )
    if options.observation_mode == "pixel":
        raise InvalidValueError(
            explain(
                "the scripted policy cannot see pixels",
                allowed="observation_mode structured or mixed",
            )
        )
    senses = ObservationReader(layout, options)
    if options.task == "reaching":
        return Reacher(senses)
    return Carrier(senses, blocks=CARRYING[options.task])
