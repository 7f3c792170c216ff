"""Every variable of the TriFinger worlds, declared once: name, bounds, A and B, and its slot.

A slot says which array of the world's store holds the variable: `block_2/mass` is
`store["block/mass"][:, 2]`. This file holds arena and robot; `objects` blocks, goals and walls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from interverse.scm import Binding, Box, Integers, Space, Variable
from interverse.scm.variable import Bounds, Kind
from interverse.worlds.trifinger.robot import HINGED, REST
from interverse.worlds.trifinger.scene import FLOOR_TEXTURES, LIGHTS, OBSERVATION_CAMERAS, Scene

Array = Any  # a NumPy array or a Torch tensor

FINGERS = ("finger_0", "finger_1", "finger_2")
LINK_NAMES = tuple(link.name for link in HINGED)
DELAY_LIMIT = 5  # steps that a command can wait

SHADES = (Box(0.5, 1.0, (3,)), Box(0.0, 0.5, (3,), open_high=True))  # light is A, dark is B
TINTS = (Box(0.0, 0.5, (3,)), Box(0.5, 1.0, (3,), open_low=True))  # dark is A, light is B
MASSES = (Box(0.015, 0.045), Box(0.045, 0.1, open_low=True))
FRICTIONS = (Box(0.3, 0.6), Box(0.6, 0.8, open_low=True))
GENERATOR_MASSES = (Box(0.02, 0.06), Box(0.06, 0.08, open_low=True))
UNBOUNDED: tuple[None, None] = (None, None)

COLOR_DOMAIN = Box(0.0, 1.0, (3,))
MASS_DOMAIN = Box(0.001, 2.0)
_FRICTION = Box(0.0, 2.0)

Spaces = tuple[Bounds | None, Bounds | None]


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """Where a variable's values are kept: an array of the store, an index after the world axis."""

    key: str
    index: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Declared:
    """A variable and where it is kept; None for one that is computed when read."""

    variable: Variable
    slot: Slot | None


def declare(
    name: str,
    kind: Kind,
    default: Any,
    domain: Space,
    *,
    slot: Slot | None,
    spaces: Spaces = UNBOUNDED,
    **more: Any,
) -> Declared:
    """Returns a declared variable; `spaces` is the pair A, B."""
    a, b = spaces
    variable = Variable(
        name=name, kind=kind, default=default, domain=domain, space_a=a, space_b=b, **more
    )
    return Declared(variable, slot)


# --- arena and robot -----------------------------------------------------------------------------


def arena_variables(scene: Scene) -> list[Declared]:
    """Returns gravity, floor, stage, light and cameras."""
    key = LIGHTS[0]
    out = [
        declare(
            "gravity",
            "latent",
            scene.gravity,
            Box(-20.0, 0.0),
            slot=Slot("gravity"),
            spaces=(Box(-10.0, -7.0), Box(-7.0, -4.0, open_low=True)),
            unit="m/s2",
            doc="Vertical acceleration of free fall; negative is down.",
            bindings=(Binding("opt.gravity", None, 2),),
        ),
        friction("floor/friction", scene.floor_friction, Slot("floor/friction"), FRICTIONS),
        friction("stage/friction", scene.stage_friction, Slot("stage/friction"), FRICTIONS),
        color("floor/color", scene.floor_color, Slot("floor/color"), SHADES, "floor"),
        color("stage/color", scene.stage_color, Slot("stage/color"), TINTS, "stage"),
        declare(
            "floor/texture",
            "appearance",
            FLOOR_TEXTURES.index(scene.floor_texture),
            Integers(0, len(FLOOR_TEXTURES) - 1),
            slot=Slot("floor/texture"),
            doc=f"Pattern of the floor: {', '.join(FLOOR_TEXTURES)}.",
        ),
        declare(
            "light/direction",
            "appearance",
            key.direction,
            Box((-1.0, -1.0, -1.0), (1.0, 1.0, -0.1), (3,)),
            slot=Slot("light/direction"),
            doc="The way the rays of the main light travel.",
            bindings=(Binding("light_dir", key.name),),
        ),
        declare(
            "light/color",
            "appearance",
            key.color,
            COLOR_DOMAIN,
            slot=Slot("light/color"),
            doc="Colour and strength of the main light.",
            bindings=(Binding("light_diffuse", key.name),),
        ),
    ]
    for i, camera in enumerate(OBSERVATION_CAMERAS):
        low, high = np.array(camera.eye) - 0.2, np.array(camera.eye) + 0.2
        out += [
            declare(
                f"{camera.name}/position",
                "appearance",
                camera.eye,
                Box(low, high, (3,)),
                slot=Slot("camera/position", (i,)),
                unit="m",
                doc="Place of the camera in the world.",
            ),
            declare(
                f"{camera.name}/rotation",
                "appearance",
                (0.0, 0.0, 0.0),
                Box(-0.5, 0.5, (3,)),
                slot=Slot("camera/rotation", (i,)),
                unit="rad",
                doc="Rotation vector by which the camera is turned from its default.",
            ),
        ]
    return out


def robot_variables(scene: Scene, start: tuple[float, ...] = REST) -> list[Declared]:
    """Returns joints, fingertips, links, and how commands reach the robot."""
    low, high = np.array([link.limits for link in HINGED] * 3).T
    least, most = np.array([link.action_limits for link in HINGED] * 3).T
    middle = np.array((-0.69, 0.0, 0.0) * 3)
    out = [
        declare(
            "joint_positions",
            "state",
            start,
            Box(low, high, (9,)),
            slot=Slot("joint_positions"),
            spaces=(Box(least, middle, (9,)), Box(middle, most, (9,), open_low=True)),
            unit="rad",
            doc="Angles of upper, middle and lower hinge, finger by finger.",
        ),
        declare(
            "joint_velocities",
            "state",
            np.zeros(9),
            Box(-20.0, 20.0, (9,)),
            slot=Slot("joint_velocities"),
            unit="rad/s",
        ),
        declare(
            "end_effector_positions",
            "state",
            np.zeros(9),
            Box(-1.0, 1.0, (9,)),
            slot=None,
            unit="m",
            read_only=True,
            doc="Fingertips, finger by finger; heights from the datum.",
        ),
        declare(
            "robot/height",
            "robot",
            scene.robot_height,
            Box(0.25, 0.45),
            slot=Slot("robot/height"),
            unit="m",
            doc="World height of the first hinges.",
            bindings=(Binding("body_pos", "robot", 2),),
        ),
        declare(
            "robot/joint_damping",
            "robot",
            scene.joint_damping,
            Box(0.0, 0.1),
            slot=Slot("robot/joint_damping"),
            unit="N m s/rad",
            doc="Viscous damping of every hinge, beside that of the controller.",
        ),
        *_hook_variables(),
    ]
    for f, finger in enumerate(FINGERS):
        for j, link in enumerate(LINK_NAMES):
            out += _link_variables(scene, finger, f, link, j)
    return out


def _hook_variables() -> list[Declared]:
    """Returns what a real robot adds: late commands, a slower controller, noisy sensors."""
    return [
        declare(
            "robot/action_delay",
            "robot",
            0,
            Integers(0, DELAY_LIMIT),
            slot=Slot("robot/action_delay"),
            unit="steps",
            doc="Steps that pass before a command reaches the motors.",
        ),
        declare(
            "robot/control_period",
            "robot",
            1,
            Integers(1, 10),
            slot=Slot("robot/control_period"),
            unit="steps",
            doc="Steps for which a command is held: the control rate is 1 / (period x step time).",
        ),
        declare(
            "robot/observation_noise",
            "robot",
            0.0,
            Box(0.0, 0.5),
            slot=Slot("robot/observation_noise"),
            doc="Standard deviation of sensor noise, as a share of half an observation's range.",
        ),
    ]


def _link_variables(scene: Scene, finger: str, f: int, link: str, j: int) -> list[Declared]:
    name = f"{finger}/{link}"
    return [
        declare(
            f"{name}/mass",
            "latent",
            scene.link_masses[f][j],
            MASS_DOMAIN,
            slot=Slot("link/mass", (f, j)),
            spaces=MASSES,
            unit="kg",
            doc="The inertia scales along.",
            bindings=(Binding("body_mass", f"{finger}_{link}"),),
        ),
        color(
            f"{name}/color",
            scene.link_colors[f][j + 1],
            Slot("link/color", (f, j)),
            TINTS,
            f"{finger}_{link}",
        ),
    ]


def success_variable() -> Declared:
    """Returns the read-only share of the goal that is filled."""
    return declare(
        "fractional_success",
        "goal",
        0.0,
        Box(0.0, np.inf),
        slot=None,
        read_only=True,
        doc="Share of the goal's volume that blocks fill.",
    )


def friction(name: str, default: float, slot: Slot, spaces: Spaces = UNBOUNDED) -> Declared:
    """Returns a surface's friction."""
    return declare(
        name,
        "latent",
        default,
        _FRICTION,
        slot=slot,
        spaces=spaces,
        doc="Sliding friction; that of two surfaces is the product of theirs.",
    )


def color(name: str, default: Any, slot: Slot, spaces: Spaces, material: str) -> Declared:
    """Returns a material's colour."""
    return declare(
        name,
        "appearance",
        default,
        COLOR_DOMAIN,
        slot=slot,
        spaces=spaces,
        doc="Red, green, blue.",
        bindings=(Binding("mat_rgba", material, (0, 1, 2)),),
    )
