"""Names in a MuJoCo model: the columns of the field that a binding means."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import mujoco
import numpy as np
from mujoco.batch import MODEL_FIELDS
from numpy.typing import NDArray

from interverse.core.errors import InvalidValueError, UnknownNameError, unknown
from interverse.scm.variable import Binding
from interverse.sim.inertia import SOLIDS, ScaledInertia, Solid, scaled_inertia

Columns = NDArray[np.int64]

# The start of a field's name tells whose rows it holds.
_OWNERS = {
    "act": "actuator",
    "actuator": "actuator",
    "body": "body",
    "cam": "camera",
    "dof": "joint",
    "eq": "equality",
    "geom": "geom",
    "jnt": "joint",
    "light": "light",
    "mat": "material",
    "mocap": "body",
    "pair": "pair",
    "qpos": "joint",
    "qpos0": "joint",
    "qvel": "joint",
    "site": "site",
    "tendon": "tendon",
}
_JOINT_SIZES = {  # of one joint of each type: positions, degrees of freedom
    mujoco.mjtJoint.mjJNT_FREE: (7, 6),
    mujoco.mjtJoint.mjJNT_BALL: (4, 3),
    mujoco.mjtJoint.mjJNT_SLIDE: (1, 1),
    mujoco.mjtJoint.mjJNT_HINGE: (1, 1),
}
# Options that no derived constant depends on; any other is taken to need re-deriving.
_FREE_OPTIONS = frozenset({"opt.gravity", "opt.timestep", "opt.wind", "opt.density"})
_CONSTANT_INPUTS = frozenset(mujoco.MjModel._setconst_inputs)
# State that bindings may name too, and where the model shows its shape.
STATE_FIELDS: dict[str, Callable[[Any], Any]] = {
    "act": lambda model: np.zeros(model.na),
    "mocap_pos": lambda model: np.zeros((model.nmocap, 3)),
    "mocap_quat": lambda model: np.zeros((model.nmocap, 4)),
    "qpos": lambda model: model.qpos0,
    "qvel": lambda model: np.zeros(model.nv),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """The place a binding means."""

    field: str
    elements: tuple[int, ...]  # empty for a whole field
    columns: Columns  # of the field's rows laid flat


def find_slot(model: mujoco.MjModel, binding: Binding, *, visual: bool = False) -> Slot:
    """Returns where a binding writes, or raises naming the field or element that is wrong.

    Args:
        model: where the elements are.
        binding: what is looked for.
        visual: whether "vis.headlight.ambient" and the like count too: worlds of one batch share
            them.
    """
    name = binding.field
    known = name in MODEL_FIELDS or name in STATE_FIELDS
    if not known and not (visual and name.startswith("vis.")):
        raise UnknownNameError(unknown("model field", name, (*MODEL_FIELDS, *STATE_FIELDS)))
    if binding.element is None:
        whole = np.arange(math.prod(template(model, name).shape))
        return Slot(name, (), _picked(whole, binding))
    names = (binding.element,) if isinstance(binding.element, str) else binding.element
    owner, width = _OWNERS.get(name.partition("_")[0]), template(model, name).shape[1:]
    if owner is None:
        problem = f"field {name} has no named elements"
        raise InvalidValueError(problem, fix="Bind it with element=None")
    elements = tuple(element_id(model, owner, element) for element in names)
    within, columns = np.arange(math.prod(width)), []
    for element in elements:
        flat = _rows(model, name, element)[:, None] * len(within) + within
        columns.append(_picked(flat.ravel(), binding))
    return Slot(name, elements, np.concatenate(columns))


def _picked(columns: Columns, binding: Binding) -> Columns:
    """Returns the columns that a binding's index chooses."""
    if binding.index is None:
        return columns
    picked = np.atleast_1d(np.asarray(binding.index))
    if picked.min() < 0 or picked.max() >= len(columns):
        raise InvalidValueError(
            f"index {binding.index} of {binding.field} of {binding.element!r}",
            allowed=f"0 to {len(columns) - 1}",
        )
    return columns[picked]


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """An inertia rule resolved to indices: what it reads, which edits set it off, its formula."""

    body: int
    arguments: tuple[tuple[str, int], ...]  # edits of these set it off
    inertia: Callable[..., Any]


def find_rule(model: mujoco.MjModel, rule: Solid | ScaledInertia) -> Rule:
    """Returns a scene's inertia rule resolved to indices, or raises if it cannot hold."""
    body = element_id(model, "body", rule.body)
    if isinstance(rule, ScaledInertia):
        return Rule(body, (("body_mass", body),), functools.partial(scaled_inertia, rule))
    geom = element_id(model, "geom", rule.geom)
    kind = mujoco.mjtGeom(int(model.geom_type[geom])).name.removeprefix("mjGEOM_").lower()
    if kind not in SOLIDS or model.body_geomnum[body] != 1 or model.geom_bodyid[geom] != body:
        raise InvalidValueError(
            f"the inertia of body {rule.body!r} does not follow from geom {rule.geom!r}",
            allowed=f"a body of one geom, a {', a '.join(sorted(SOLIDS))}",
        )
    return Rule(body, (("body_mass", body), ("geom_size", geom)), SOLIDS[kind])


def find_joints(
    model: mujoco.MjModel, ids: Columns, names: Sequence[str]
) -> tuple[Columns, Columns]:
    """Returns the columns of hinges and slides among positions and among velocities."""
    many = np.isin(model.jnt_type[ids], (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL))
    if np.any(many):
        raise InvalidValueError(
            f"joint {names[int(np.argmax(many))]!r} has several coordinates",
            allowed="hinges and slides",
            fix="Read its body with positions, its state with live",
        )
    return model.jnt_qposadr[ids], model.jnt_dofadr[ids]


def compiled(model: Any) -> mujoco.MjModel:
    """Returns the model of a scene: given as XML, as a specification, or compiled."""
    if isinstance(model, mujoco.MjModel):
        return model
    if isinstance(model, mujoco.MjSpec):
        return model.compile()
    return mujoco.MjModel.from_xml_string(model)


def template(model: mujoco.MjModel, field: str) -> NDArray[Any]:
    """Returns a field's values in the model, as an array."""
    if field in STATE_FIELDS:
        return np.asarray(STATE_FIELDS[field](model))
    return np.asarray(operator.attrgetter(field)(model))


@functools.cache
def needs_constants(field: str) -> bool:
    """Returns whether constants that the compiler derives depend on a field."""
    if field.startswith("opt."):
        return field not in _FREE_OPTIONS
    return field in _CONSTANT_INPUTS


def element_id(model: mujoco.MjModel, kind: str, name: str) -> int:
    """Returns an element's index, or raises with the nearest name."""
    code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    index = mujoco.mj_name2id(model, code, name)
    if index < 0:
        raise UnknownNameError(unknown(kind, name, element_names(model, kind)))
    return int(index)


def element_ids(model: mujoco.MjModel, kind: str, names: Sequence[str]) -> Columns:
    """Returns the indices of several elements of one kind."""
    return np.array([element_id(model, kind, name) for name in names], dtype=np.int64)


def element_names(model: mujoco.MjModel, kind: str) -> tuple[str, ...]:
    """Returns the names of all elements of a kind, in order; "" where one has none."""
    code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    short = {"actuator": "u", "camera": "cam", "joint": "jnt", "material": "mat", "equality": "eq"}
    count = int(getattr(model, "n" + short.get(kind, kind)))
    return tuple(mujoco.mj_id2name(model, code, index) or "" for index in range(count))


def _rows(model: mujoco.MjModel, field: str, element: int) -> Columns:
    if field == "act":
        return np.array([model.actuator_actadr[element]])
    if field.startswith("mocap_"):
        return np.array([model.body_mocapid[element]])
    if field.startswith(("dof_", "qpos", "qvel")):
        sizes = _JOINT_SIZES[mujoco.mjtJoint(int(model.jnt_type[element]))]
        positions = field.startswith("qpos")
        start = model.jnt_qposadr[element] if positions else model.jnt_dofadr[element]
        return start + np.arange(sizes[0] if positions else sizes[1])
    return np.array([element])
