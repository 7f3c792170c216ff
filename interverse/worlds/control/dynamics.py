"""Dynamics as variables: masses, forces, gravity, air, and the walker's build and joints.

Every domain has three scales, one at the stock suite's values, and those of friction, gravity and
stiffness where they act; the air's viscosity and wind are zero there. The
walker has the nine quantities that its authors' later fork varies. Values go into the compiled
model by their bindings; what follows from them (inertia, contact bounds, constants) is derived
again. Stock values leave every bit as compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError
from interverse.scm import Binding, Box, Variable
from interverse.sim.elements import Slot, find_slot, template
from interverse.sim.inertia import capsule_inertia
from interverse.sim.single import derive_constants, put_field, scratch_data
from interverse.worlds.control.domains import DOMAINS

MASS, FRICTION = "dynamics/mass_scale", "dynamics/friction"
DAMPING, STRENGTH = "dynamics/damping", "dynamics/actuator_strength"
GRAVITY, STIFFNESS = "dynamics/gravity", "dynamics/stiffness"
VISCOSITY, WIND = "dynamics/viscosity", "dynamics/wind"
_DENSITY = 1000.0  # kg/m3, MuJoCo's own where a model names none, as the walker
_AIR_DENSITY = 1.2  # kg/m3
_TURN = math.pi / 180.0

_FOLLOW = ("body_mass", "body_inertia", "geom_aabb", "geom_rbound", "bvh_aabb")  # from sizes
_LEGS = ("right", "left")
_FEET = tuple(f"{leg}_foot" for leg in _LEGS)
_KNEES = tuple(f"{leg}_knee" for leg in _LEGS)
_ANKLES = tuple(f"{leg}_ankle" for leg in _LEGS)
_JOINTS = (*(f"{leg}_hip" for leg in _LEGS), *_KNEES, *_ANKLES)  # the walker's own, not its root's
_GEOMS = (
    "floor",
    "torso",
    *_FEET,
    *(f"{leg}_{part}" for leg in _LEGS for part in ("thigh", "leg")),
)


def _scale(name: str, doc: str, *fields: str) -> Variable:
    return Variable(
        name=name,
        kind="latent",
        default=np.array(1.0),
        domain=Box(0.1, 10.0),
        space_a=Box(0.8, 1.25),
        space_b=Box(1.25, 1.6, open_low=True),
        unit="1",
        doc=doc,
        bindings=tuple(Binding(field, relative=True) for field in fields),
    )


def _air(wind: NDArray[Any]) -> NDArray[Any]:
    """Returns the density of the air that blows: the suite has none, so nothing would push."""
    return np.where(wind == 0.0, 0.0, _AIR_DENSITY)


SCALES = (
    _scale(MASS, "Factor on every body's mass and inertia.", "body_mass", "body_inertia"),
    _scale(FRICTION, "Factor on every geom's friction.", "geom_friction"),
    _scale(DAMPING, "Factor on every joint's damping.", "dof_damping"),
    _scale(STRENGTH, "Factor on every actuator's force.", "actuator_gainprm", "actuator_biasprm"),
    _scale(GRAVITY, "Factor on gravity.", "opt.gravity"),
    _scale(
        STIFFNESS,
        "Factor on every spring of joints and tendons.",
        "jnt_stiffness",
        "tendon_stiffness",
    ),
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
        bindings=(Binding("opt.viscosity"),),
    ),
    Variable(
        name=WIND,
        kind="latent",
        default=np.array(0.0),
        domain=Box(-10.0, 10.0),
        space_a=Box(-2.0, 2.0),
        space_b=Box(2.0, 5.0, open_low=True),
        unit="m/s",
        doc="Along x, of air of 1.2 kg/m3; none is still and without air, as in the suite.",
        bindings=(Binding("opt.wind", index=0), Binding("opt.density", function=_air)),
    ),
)


def _walker(
    name: str, default: float, spaces: tuple[Box, Box], unit: str, *bindings: Binding
) -> Variable:
    a, b = spaces
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
        bindings=bindings,
    )


def _split(low: float, middle: float, high: float, *, times: float = 1.0) -> tuple[Box, Box]:
    """Returns A below and B above the middle."""
    low, middle, high = (times * edge for edge in (low, middle, high))
    return Box(low, middle), Box(middle, high, open_low=True)


WALKER = (
    _walker("torso/radius", 0.07, _split(0.05, 0.08, 0.1), "m", Binding("geom_size", "torso", 0)),
    _walker(
        "torso/length", 0.6, _split(0.4, 0.76, 1.0), "m", Binding("geom_size", "torso", 1, 0.5)
    ),
    _walker("foot/radius", 0.05, _split(0.03, 0.06, 0.08), "m", Binding("geom_size", _FEET, 0)),
    _walker("foot/length", 0.2, _split(0.12, 0.28, 0.4), "m", Binding("geom_size", _FEET, 1, 0.5)),
    _walker(
        "joint/damping", 0.1, _split(0.03, 0.4, 0.75), "N m s", Binding("dof_damping", _JOINTS)
    ),
    _walker(
        "joint/armature", 0.01, _split(0.002, 0.06, 0.1), "kg m2", Binding("dof_armature", _JOINTS)
    ),
    _walker(
        "floor/friction", 0.7, _split(0.15, 1.1, 1.75), "1", Binding("geom_friction", _GEOMS, 0)
    ),
    _walker(
        "knee/lower_limit",
        -150.0 * _TURN,
        (
            Box(-160.0 * _TURN, -125.0 * _TURN),
            Box(-175.0 * _TURN, -160.0 * _TURN, open_high=True),
        ),
        "rad",
        Binding("jnt_range", _KNEES, 0),
    ),
    _walker(
        "ankle/limit",
        45.0 * _TURN,
        _split(15.0, 55.0, 70.0, times=_TURN),
        "rad",
        Binding("jnt_range", _ANKLES, 0, -1.0),
        Binding("jnt_range", _ANKLES, 1),
    ),
)


def dynamics_variables(domain: str) -> tuple[Variable, ...]:
    """Returns the dynamics variables of a domain: those that act on something there."""
    has = DOMAINS[domain]
    acts = {FRICTION: has.contacts, GRAVITY: has.gravity, STIFFNESS: has.springs}
    acts[WIND] = not has.water
    shared = (v for v in (*SCALES, *AIR) if acts.get(v.name, True))
    return (*shared, *(WALKER if domain == "walker" else ()))


@final
class Dynamics:
    """Writes dynamics values into one model by their bindings, always from its stock values."""

    def __init__(self, physics: Any, domain: str) -> None:
        """Takes the model as its task left it after a first reset: that is the stock state."""
        self._model = physics.model.ptr
        variables = dynamics_variables(domain)
        for v in variables:
            if v.shape or any(binding.of for binding in v.bindings):
                problem = f"{v.name} is no single number, or is bound with others"
                raise InvalidValueError(problem, allowed="a number bound by itself")
        bound = [(v.name, b, find_slot(self._model, b)) for v in variables for b in v.bindings]
        self._bound = sorted(bound, key=lambda entry: entry[1].relative)  # factors come last
        names = dict.fromkeys((*_FOLLOW, *(binding.field for _, binding, _ in bound)))
        self._stock = {name: np.array(template(self._model, name)) for name in names}
        self._defaults = {v.name: float(v.default) for v in variables}
        self._scratch = scratch_data(self._model)
        unlike = {name for name, b, slot in self._bound if not self._is_stock(name, b, slot)}
        # Of the others a default leaves every bit as compiled.
        self._stock_values = {n: v for n, v in self._defaults.items() if n not in unlike}
        self._written: dict[str, float] = {} if unlike else dict(self._defaults)

    def _is_stock(self, name: str, binding: Binding, slot: Slot) -> bool:
        """Returns whether the model has a variable's default already, up to rounding."""
        field = np.array(self._stock[binding.field])
        _put(field, binding, slot, self._defaults[name])
        return np.allclose(field, self._stock[binding.field], rtol=1e-9, atol=1e-12)

    def write(self, values: Mapping[str, float]) -> bool:
        """Makes the model so; returns whether anything changed."""
        if self._written == values:
            return False
        fields = {name: np.array(stock) for name, stock in self._stock.items()}
        sized: dict[int, None] = {}
        for name, binding, slot in self._bound:
            if values[name] == self._stock_values.get(name):
                continue
            if binding.relative and sized:
                self._resize(fields, sized)
                sized = {}
            _put(fields[binding.field], binding, slot, values[name])
            if binding.field == "geom_size":
                sized |= dict.fromkeys(slot.elements)
        self._resize(fields, sized)
        for name, array in fields.items():
            put_field(self._model, name, array)
        derive_constants(self._model, self._scratch)
        self._written = dict(values)
        return True

    def rewrite_damping(self) -> None:
        """Puts the damping back that a task overwrote with its own at the start of an episode."""
        damping = np.array(self._stock["dof_damping"])
        for name, binding, slot in self._bound:
            stock = self._stock_values.get(name)
            if binding.field == "dof_damping" and self._written.get(name, stock) != stock:
                _put(damping, binding, slot, self._written[name])
        np.copyto(self._model.dof_damping, damping)

    def derive(self) -> None:
        """Derives the model's constants again."""
        derive_constants(self._model, self._scratch)

    def _resize(self, fields: dict[str, NDArray[Any]], geoms: Iterable[int]) -> None:
        """Gives bodies of one capsule the bounds, mass and inertia that follow from their size."""
        for geom in geoms:
            size = fields["geom_size"][geom]
            radius, half = size[:2]
            body = int(self._model.geom_bodyid[geom])
            mass = _DENSITY * (math.pi * (radius * radius * 2 * half + 4 * radius**3 / 3))
            fields["geom_aabb"][geom, 3:] = radius, radius, half + radius
            fields["geom_rbound"][geom] = half + radius
            fields["body_mass"][body] = mass
            fields["body_inertia"][body] = capsule_inertia(np.array(mass), size)
            box = int(self._model.body_bvhadr[body])
            fields["bvh_aabb"][box, 3:] = radius, radius, half + radius


def _put(field: NDArray[Any], binding: Binding, slot: Slot, value: float) -> None:
    """Writes a value into a field's array where its binding says."""
    given = value if binding.function is None else binding.function(np.array(value))
    flat = field.reshape(-1)
    flat[slot.columns] = binding.scale * given * (flat[slot.columns] if binding.relative else 1.0)
