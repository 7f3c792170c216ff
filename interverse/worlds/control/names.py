"""Names of a control world's variables by where their values come from, from its options."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from interverse.worlds.control.domains import DOMAINS
from interverse.worlds.control.looks import drawn_names, factors
from interverse.worlds.control.options import ControlOptions
from interverse.worlds.control.variables import KIND_OF, STATE

SEEDS = ("visual_seed", "dynamics_seed")
ELSEWHERE = (*STATE, *KIND_OF)  # not in the store: in the physics, or worked out


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ControlNames:
    """Names of one world's variables by where an episode has their values from.

    Attributes:
        state: what time moves: the physics' own, then the distraction's.
        look: the seeds and every factor of the look.
        kept: what nothing draws: as declared in every episode.
        drawn: seed -> what it draws, the state of the physics included.
    """

    state: tuple[str, ...]
    look: tuple[str, ...]
    kept: tuple[str, ...]
    drawn: Mapping[str, tuple[str, ...]]


def control_names(
    options: ControlOptions, declared: Collection[str], moving: Collection[str]
) -> ControlNames:
    """Returns the names of a world; `moving` are those of its distraction."""
    domain, poles = options.domain, options.poles
    look = (*SEEDS, *(factor.name for factor in factors(domain, poles)))
    somehow = {*look, *options.dynamics_names, *moving, *ELSEWHERE}
    started = STATE if DOMAINS[domain].moving_start else STATE[:1]
    return ControlNames(
        state=(*STATE, *moving),
        look=look,
        kept=tuple(name for name in declared if name not in somehow),
        drawn={
            "visual_seed": drawn_names(domain, options.vary, poles),
            "dynamics_seed": (*started, *options.vary_dynamics),
        },
    )


def given_values(options: ControlOptions) -> dict[str, Any]:
    """Returns the values that hold in every episode: defaults, and seeds that are one number."""
    seeds = {name: getattr(options, name) for name in SEEDS}
    numbers = {name: seed for name, seed in seeds.items() if isinstance(seed, int | np.integer)}
    return numbers | dict(options.defaults)
