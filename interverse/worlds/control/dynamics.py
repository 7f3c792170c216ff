"""Dynamics as variables: masses, forces, gravity, air, and the walker's build and joints.

Every domain has three scales, one at the stock suite's values, and those of friction, gravity and
stiffness where they act; the air's viscosity and wind are zero there. The
walker has the nine quantities that its authors' later fork varies. Values go into the compiled
model; what follows from them (inertia, contact bounds, constants) is derived again. Stock values
leave every bit as compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.scm import Box, Variable
from interverse.sim.inertia import capsule_inertia
from interverse.sim.single import derive_constants, scratch_data
from interverse.worlds.control.domains import DOMAINS

MASS, FRICTION = "dynamics/mass_scale", "dynamics/friction"
DAMPING, STRENGTH = "dynamics/damping", "dynamics/actuator_strength"
GRAVITY, STIFFNESS = "dynamics/gravity", "dynamics/stiffness"
VISCOSITY, WIND = "dynamics/viscosity", "dynamics/wind"
_DENSITY = 1000.0  # kg/m3, MuJoCo's own where a model names none, as the walker
_TURN = math.pi / 180.0

_FIELDS = (
    "body_mass",
    "body_inertia",
    "geom_friction",
    "geom_size",
    "geom_aabb",
    "geom_rbound",
    "dof_damping",
    "dof_armature",
    "jnt_range",
    "jnt_stiffness",
    "tendon_stiffness",
    "actuator_gainprm",
    "actuator_biasprm",
    "bvh_aabb",
)


def _scale(name: str, doc: str) -> Variable:
    return Variable(
        name=name,
        kind="latent",
        default=np.array(1.0),
        domain=Box(0.1, 10.0),
        space_a=Box(0.8, 1.25),
        space_b=Box(1.25, 1.6, open_low=True),
        unit="1",
        doc=doc,
    )


SCALES = (
    _scale(MASS, "Factor on every body's mass and inertia."),
    _scale(FRICTION, "Factor on every geom's friction."),
    _scale(DAMPING, "Factor on every joint's damping."),
    _scale(STRENGTH, "Factor on every actuator's force."),
    _scale(GRAVITY, "Factor on gravity."),
    _scale(STIFFNESS, "Factor on every spring of joints and tendons."),
)
AIR = (
    Variable(
        name=VISCOSITY,
        kind="latent",
        default=np.array(0.0),
        domain=Box(0.0, 10.0),
        space_a=Box(0.0, 0.1),
        space_b=Box(0.1, 0.5, open_low=True),
        unit="Pa s",
        doc="Of what surrounds the bodies.",
    ),
    Variable(
        name=WIND,
        kind="latent",
        default=np.array(0.0),
        domain=Box(-10.0, 10.0),
        space_a=Box(-2.0, 2.0),
        space_b=Box(2.0, 5.0, open_low=True),
        unit="m/s",
        doc="Along x; acts through viscosity.",
    ),
)


def _walker(name: str, default: float, a: Box, b: Box, unit: str) -> Variable:
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Variable(
        name=name,
        kind="latent",
        default=np.array(default),
        domain=Box(low - 0.5 * abs(low), high + 0.5 * abs(high)),
        space_a=a,
        space_b=b,
        unit=unit,
        doc="Together A and B are the range of the authors' fork; A holds the stock value.",
    )


def _split(low: float, middle: float, high: float, *, times: float = 1.0) -> tuple[Box, Box]:
    """Returns A below and B above the middle."""
    low, middle, high = (times * edge for edge in (low, middle, high))
    return Box(low, middle), Box(middle, high, open_low=True)


WALKER = (
    _walker("torso/radius", 0.07, *_split(0.05, 0.08, 0.1), "m"),
    _walker("torso/length", 0.6, *_split(0.4, 0.76, 1.0), "m"),
    _walker("foot/radius", 0.05, *_split(0.03, 0.06, 0.08), "m"),
    _walker("foot/length", 0.2, *_split(0.12, 0.28, 0.4), "m"),
    _walker("joint/damping", 0.1, *_split(0.03, 0.4, 0.75), "N m s"),
    _walker("joint/armature", 0.01, *_split(0.002, 0.06, 0.1), "kg m2"),
    _walker("floor/friction", 0.7, *_split(0.15, 1.1, 1.75), "1"),
    _walker(
        "knee/lower_limit",
        -150.0 * _TURN,
        Box(-160.0 * _TURN, -125.0 * _TURN),
        Box(-175.0 * _TURN, -160.0 * _TURN, open_high=True),
        "rad",
    ),
    _walker("ankle/limit", 45.0 * _TURN, *_split(15.0, 55.0, 70.0, times=_TURN), "rad"),
)
_LEGS = ("right", "left")
_ROOTS = ("rootx", "rooty", "rootz")


def dynamics_variables(domain: str) -> tuple[Variable, ...]:
    """Returns the dynamics variables of a domain: those that act on something there."""
    has = DOMAINS[domain]
    acts = {FRICTION: has.contacts, GRAVITY: has.gravity, STIFFNESS: has.springs}
    acts[WIND] = not has.water
    shared = (v for v in (*SCALES, *AIR) if acts.get(v.name, True))
    return (*shared, *(WALKER if domain == "walker" else ()))


@final
class Dynamics:
    """Writes dynamics values into one model, always from the values it was compiled with."""

    def __init__(self, physics: Any, domain: str) -> None:
        """Takes the model as its task left it after a first reset: that is the stock state."""
        self._model = physics.model.ptr
        self._names = physics.model
        self._stock = {name: np.array(getattr(self._model, name)) for name in _FIELDS}
        self._defaults = {v.name: float(v.default) for v in dynamics_variables(domain)}
        self._gravity = np.array(self._model.opt.gravity)
        self._scratch = scratch_data(self._model)
        self._written = dict(self._defaults)

    def write(self, values: Mapping[str, float]) -> bool:
        """Makes the model so; returns whether anything changed."""
        if self._written == values:
            return False
        fields = {name: array.copy() for name, array in self._stock.items()}
        stock = WALKER_STOCK
        if any(values.get(name) != value for name, value in stock.items() if name in values):
            self._shape(fields, values)
        scale = {v.name: values.get(v.name, 1.0) for v in SCALES}
        fields["body_mass"] *= scale[MASS]
        fields["body_inertia"] *= scale[MASS]
        fields["geom_friction"] *= scale[FRICTION]
        fields["dof_damping"] *= scale[DAMPING]
        fields["actuator_gainprm"] *= scale[STRENGTH]
        fields["actuator_biasprm"] *= scale[STRENGTH]
        fields["jnt_stiffness"] *= scale[STIFFNESS]
        fields["tendon_stiffness"] *= scale[STIFFNESS]
        for name, array in fields.items():
            np.copyto(getattr(self._model, name), array)
        self._model.opt.gravity[:] = self._gravity * scale[GRAVITY]
        self._model.opt.viscosity = values[VISCOSITY]
        self._model.opt.wind[0] = values.get(WIND, 0.0)
        derive_constants(self._model, self._scratch)
        self._written = dict(values)
        return True

    def rewrite_damping(self) -> None:
        """Puts the damping back that a task overwrote with its own at the start of an episode."""
        damping = self._stock["dof_damping"] * self._written[DAMPING]
        np.copyto(self._model.dof_damping, damping)

    def derive(self) -> None:
        """Derives the model's constants again."""
        derive_constants(self._model, self._scratch)

    def _shape(self, fields: dict[str, NDArray[Any]], values: Mapping[str, float]) -> None:
        """Gives the walker other limbs and joints."""
        given = {k: v for k, v in values.items() if WALKER_STOCK.get(k, v) != v}
        for part in ("torso", "foot"):
            if f"{part}/radius" in given or f"{part}/length" in given:
                names = ("torso",) if part == "torso" else tuple(f"{leg}_foot" for leg in _LEGS)
                for name in names:
                    self._capsule(
                        fields, name, values[f"{part}/radius"], values[f"{part}/length"] / 2
                    )
        joints = self._joints()
        if "joint/damping" in given:
            fields["dof_damping"][joints] = given["joint/damping"]
        if "joint/armature" in given:
            fields["dof_armature"][joints] = given["joint/armature"]
        if "floor/friction" in given:
            fields["geom_friction"][:, 0] = given["floor/friction"]
        for leg in _LEGS:
            knee = self._names.name2id(f"{leg}_knee", "joint")
            ankle = self._names.name2id(f"{leg}_ankle", "joint")
            if "knee/lower_limit" in given:
                fields["jnt_range"][knee, 0] = given["knee/lower_limit"]
            if "ankle/limit" in given:
                limit = given["ankle/limit"]
                fields["jnt_range"][ankle] = -limit, limit

    def _joints(self) -> list[int]:
        """Returns the degrees of freedom that are the walker's own, not its root's."""
        roots = {self._names.name2id(name, "joint") for name in _ROOTS}
        return [i for i in range(self._model.nv) if int(self._model.dof_jntid[i]) not in roots]

    def _capsule(
        self, fields: dict[str, NDArray[Any]], name: str, radius: float, half: float
    ) -> None:
        """Gives a body of one capsule another size, with the mass and inertia that follow."""
        geom = self._names.name2id(name, "geom")
        body = int(self._model.geom_bodyid[geom])
        size = np.array([radius, half, 0.0])
        mass = _DENSITY * (math.pi * (radius * radius * 2 * half + 4 * radius**3 / 3))
        fields["geom_size"][geom] = size
        fields["geom_aabb"][geom, 3:] = radius, radius, half + radius
        fields["geom_rbound"][geom] = half + radius
        fields["body_mass"][body] = mass
        fields["body_inertia"][body] = capsule_inertia(np.array(mass), size)
        box = int(self._model.body_bvhadr[body])
        fields["bvh_aabb"][box, 3:] = radius, radius, half + radius


WALKER_STOCK = {variable.name: float(variable.default) for variable in WALKER}
