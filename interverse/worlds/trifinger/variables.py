"""The variables of arena and robot, declared once: bounds, spaces A and B, bindings, effects.

A variable with a binding acts: the store writes it to the simulator or the renderer. What it causes
stands beside it, in `ARENA_CAUSES` and `ROBOT_CAUSES`. Blocks, goals and walls are in `objects`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from interverse.core.arrays import Array, from_rotation_vector, like, multiply, to_mujoco
from interverse.scm import Binding, Box, Integers, Space, Variable
from interverse.scm.variable import Bounds, Kind
from interverse.worlds.trifinger.contacts import friction_bindings
from interverse.worlds.trifinger.robot import HINGED, REST
from interverse.worlds.trifinger.scene import (
    FLOOR_TEXTURES,
    LIGHTS,
    OBSERVATION_CAMERAS,
    ArenaScene,
    camera_orientation,
)

FINGERS = ("finger_0", "finger_1", "finger_2")
LINK_NAMES = tuple(link.name for link in HINGED)
JOINTS = tuple(f"{finger}_{link}" for finger in FINGERS for link in LINK_NAMES)
DELAY_LIMIT = 5  # steps that a command can wait
PERIOD_LIMIT = 10  # steps that a command can be held

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
_LESS_ONE = functools.partial(operator.add, -1)


ARENA_CAUSES = ("gravity", "floor/friction", "stage/friction")
"""Variables of the arena that act on every velocity of the next moment."""
ROBOT_CAUSES = (
    "joint_positions",
    "joint_velocities",
    "robot/height",
    "robot/joint_damping",
    "robot/action_delay",
    "robot/command_wait",
    "robot/commands",
    *(f"{finger}/{link}/mass" for finger in FINGERS for link in LINK_NAMES),
)
"""The same of the robot."""


def declare(
    name: str,
    kind: Kind,
    default: Any,
    domain: Space,
    *,
    spaces: Spaces = UNBOUNDED,
    **more: Any,
) -> Variable:
    """Returns a variable; `spaces` is the pair A, B."""
    a, b = spaces
    return Variable(
        name=name, kind=kind, default=default, domain=domain, space_a=a, space_b=b, **more
    )


# --- arena and robot -----------------------------------------------------------------------------


def arena_variables(scene: ArenaScene) -> list[Variable]:
    """Returns gravity, floor, stage, light and cameras."""
    key, bound = LIGHTS[0], friction_bindings(scene)
    out = [
        declare(
            "gravity",
            "latent",
            scene.gravity,
            Box(-20.0, 0.0),
            spaces=(Box(-10.0, -7.0), Box(-7.0, -4.0, open_low=True)),
            unit="m/s2",
            doc="Vertical acceleration of free fall; negative is down.",
            drawn=False,  # nor are joints: the original never draws them
            bindings=(Binding("opt.gravity", None, 2),),
        ),
        friction("floor/friction", scene.floor_friction, bound, FRICTIONS),
        friction("stage/friction", scene.stage_friction, bound, FRICTIONS),
        color("floor/color", scene.floor_color, SHADES, "floor"),
        color("stage/color", scene.stage_color, TINTS, "stage"),
        declare(
            "floor/texture",
            "appearance",
            FLOOR_TEXTURES.index(scene.floor_texture),
            Integers(0, len(FLOOR_TEXTURES) - 1),
            doc=f"Pattern of the floor: {', '.join(FLOOR_TEXTURES)}.",
            # the model holds the patterns in order; "plain" is none, -1
            bindings=(Binding("mat_texid", "floor", 1, function=_LESS_ONE),),
        ),
        declare(
            "light/direction",
            "appearance",
            key.direction,
            Box((-1.0, -1.0, -1.0), (1.0, 1.0, -0.1), (3,)),
            doc="The way the rays of the main light travel.",
            bindings=(
                Binding("light_dir", key.name, function=_unit),
                Binding("light_pos", key.name, scale=-1.2, function=_unit),
            ),
        ),
        declare(
            "light/color",
            "appearance",
            key.color,
            COLOR_DOMAIN,
            doc="Colour and strength of the main light.",
            bindings=(Binding("light_diffuse", key.name),),
        ),
    ]
    for camera in OBSERVATION_CAMERAS:
        low, high = np.array(camera.eye) - 0.2, np.array(camera.eye) + 0.2
        turned = functools.partial(_turned, tuple(camera_orientation(camera)))
        out += [
            declare(
                f"{camera.name}/position",
                "appearance",
                camera.eye,
                Box(low, high, (3,)),
                unit="m",
                doc="Place of the camera in the world.",
                bindings=(Binding("cam_pos", camera.name),),
            ),
            declare(
                f"{camera.name}/rotation",
                "appearance",
                (0.0, 0.0, 0.0),
                Box(-0.5, 0.5, (3,)),
                unit="rad",
                doc="Rotation vector by which the camera is turned from its default.",
                bindings=(Binding("cam_quat", camera.name, function=turned),),
            ),
        ]
    return out


def robot_variables(scene: ArenaScene, start: tuple[float, ...] = REST) -> list[Variable]:
    """Returns joints, fingertips, links, and how commands reach the robot."""
    low, high = np.array([link.limits for link in HINGED] * 3).T
    least, most = np.array([link.action_limits for link in HINGED] * 3).T
    middle = np.array((-0.69, 0.0, 0.0) * 3)
    damping = tuple(
        Binding(
            "dof_damping",
            tuple(f"{finger}_{link}" for finger in FINGERS),
            function=functools.partial(operator.add, extra),
        )
        for link, extra in zip(LINK_NAMES, scene.drag_damping, strict=True)
    )
    out = [
        declare(
            "joint_positions",
            "state",
            start,
            Box(low, high, (9,)),
            spaces=(Box(least, middle, (9,)), Box(middle, most, (9,), open_low=True)),
            unit="rad",
            doc="Angles of upper, middle and lower hinge, finger by finger.",
            drawn=False,
            bindings=(
                Binding("qpos", JOINTS),
                *((Binding("act", JOINTS),) if scene.servo_lag > 0 else ()),  # the servos' targets
            ),
        ),
        declare(
            "joint_velocities",
            "state",
            np.zeros(9),
            Box(-20.0, 20.0, (9,)),
            unit="rad/s",
            bindings=(Binding("qvel", JOINTS),),
        ),
        declare(
            "end_effector_positions",
            "state",
            np.zeros(9),
            Box(-1.0, 1.0, (9,)),
            unit="m",
            read_only=True,
            doc="Fingertips, finger by finger; heights from the datum.",
        ),
        declare(
            "robot/height",
            "robot",
            scene.robot_height,
            Box(0.25, 0.45),
            unit="m",
            doc="World height of the first hinges.",
            bindings=(Binding("body_pos", "robot", 2),),
        ),
        declare(
            "robot/joint_damping",
            "robot",
            scene.joint_damping,
            Box(0.0, 0.1),
            unit="N m s/rad",
            doc="Viscous damping of every hinge, beside that of the controller.",
            bindings=damping,
        ),
        # what a real robot adds: late commands, a slower controller, noisy sensors
        declare(
            "robot/action_delay",
            "robot",
            0,
            Integers(0, DELAY_LIMIT),
            unit="steps",
            doc="Steps that pass before a command reaches the motors.",
        ),
        declare(
            "robot/commands",
            "state",
            np.tile(start, (DELAY_LIMIT + 1, 1)),
            Box(-np.pi, np.pi, (DELAY_LIMIT + 1, 9)),
            unit="rad or N m",
            doc="The last commands, the newest first; a delay of k steps applies the one at k.",
        ),
        declare(
            "robot/control_period",
            "robot",
            1,
            Integers(1, PERIOD_LIMIT),
            unit="steps",
            doc="Steps for which a command is held: the control rate is 1 / (period x step time).",
        ),
        declare(
            "robot/command_wait",
            "state",
            0,
            Integers(0, PERIOD_LIMIT - 1),
            unit="steps",
            doc="Steps until the motors take a new command; until then the last one is held.",
        ),
        declare(
            "robot/observation_noise",
            "robot",
            0.0,
            Box(0.0, 0.5),
            doc="Standard deviation of sensor noise, as a share of half an observation's range.",
        ),
    ]
    for f, finger in enumerate(FINGERS):
        out.append(color(f"{finger}/base/color", scene.link_colors[f][0], TINTS, f"{finger}_base"))
        for j, link in enumerate(LINK_NAMES):
            name, element = f"{finger}/{link}", f"{finger}_{link}"
            out += [
                declare(
                    f"{name}/mass",
                    "latent",
                    scene.link_masses[f][j],
                    MASS_DOMAIN,
                    spaces=MASSES,
                    unit="kg",
                    doc="The inertia scales along.",
                    bindings=(Binding("body_mass", element),),
                ),
                color(f"{name}/color", scene.link_colors[f][j + 1], TINTS, element),
            ]
    return out


def success_variable(blocks: int) -> Variable:
    """Returns the read-only share of the goal that is filled; blocks that overlap count twice."""
    return declare(
        "fractional_success",
        "goal",
        0.0,
        Box(0.0, max(1, blocks)),
        read_only=True,
        doc="Share of the goal's volume that blocks fill.",
    )


def friction(
    name: str,
    default: float,
    bound: Mapping[str, Sequence[Binding]],
    spaces: Spaces = UNBOUNDED,
) -> Variable:
    """Returns a surface's friction; `bound` is what `friction_bindings` returned."""
    return declare(
        name,
        "latent",
        default,
        _FRICTION,
        spaces=spaces,
        doc="Sliding friction; that of two surfaces is the product of theirs.",
        bindings=tuple(bound.get(name, ())),
    )


def color(name: str, default: Any, spaces: Spaces, material: str) -> Variable:
    """Returns a material's colour."""
    return declare(
        name,
        "appearance",
        default,
        COLOR_DOMAIN,
        spaces=spaces,
        doc="Red, green, blue.",
        bindings=(Binding("mat_rgba", material, (0, 1, 2)),),
    )


# --- functions of bindings -----------------------------------------------------------------------


def _unit(vector: Array) -> Array:
    square = vector[..., 0] ** 2 + vector[..., 1] ** 2 + vector[..., 2] ** 2
    return vector / (square**0.5)[..., None]


def _turned(default: tuple[float, ...], rotation: Array) -> Array:
    """Returns a camera's orientation from its default one and a rotation vector."""
    turn = from_rotation_vector(rotation)
    return to_mujoco(multiply(turn, like(default, turn) + 0.0 * turn))
