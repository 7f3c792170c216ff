"""Who touches whom, and how hard: questions to the contact sensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from interverse.errors import InvalidValueError, UnknownNameError, explain, unknown
from interverse.sim import Engine
from interverse.worlds.trifinger.contacts import touch_sensors
from interverse.worlds.trifinger.scene import Scene

Array = Any


def touching(engine: Engine, scene: Scene, a: str, b: str) -> Array:
    """Returns whether two things touch, (N,)."""
    return np.asarray(engine.sensor(_sensor(scene, "touch", a, b)))[:, 0] > 0


def force_between(engine: Engine, scene: Scene, a: str, b: str) -> Array:
    """Returns the force of `a` on `b`, (N, 3), world frame, N."""
    name = _sensor(scene, "force", a, b)
    sign = 1.0 if name == f"force:{a}:{b}" else -1.0
    return sign * np.asarray(engine.sensor(name))


def _sensor(scene: Scene, kind: str, a: str, b: str) -> str:
    if not scene.sensors:
        raise InvalidValueError(
            explain("this world has no contact sensors", fix="Make it with contact_sensors=True")
        )
    pairs = touch_sensors(scene)
    for one, other in ((a, b), (b, a)):
        if (one, other) in pairs:
            return f"{kind}:{one}:{other}"
    known = (f"{one}, {other}" for one, other in pairs)
    raise UnknownNameError(unknown("pair of objects", f"{a}, {b}", known))
