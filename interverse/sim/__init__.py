"""Simulators: the only code that touches them. Worlds speak to the `Engine` interface."""

from interverse.sim.engine import (
    ENGINES,
    CapacityError,
    Edit,
    Engine,
    Scene,
    SimulationError,
    edits,
    make_engine,
)
from interverse.sim.inertia import ScaledInertia, Solid

__all__ = [
    "ENGINES",
    "CapacityError",
    "Edit",
    "Engine",
    "ScaledInertia",
    "Scene",
    "SimulationError",
    "Solid",
    "edits",
    "make_engine",
]
