"""The ten domains as data: tasks, what a look can change, and the original's ranges.

Positions are in metres in the frame of the body that owns the camera or the lamp. A range is a pair
of corners. Where the original differs from the stock suite for every seed, the entry says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

Triple = tuple[float, float, float]
Range = tuple[Triple, Triple]
Turn = Literal["none", "euler", "tilt"]

EULER_DEGREES: Range = ((85.0, -5.0, -5.0), (95.0, 5.0, 5.0))  # hopper's camera
TILT = (0.4, 0.6)  # pendulum's camera: its upward axis is (0, tilt, 1)
TILT_DEFAULT = 0.5
MULTI_POLES = {"two_poles": 2, "three_poles": 3}  # tasks of cartpole with more than one


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What is particular to one domain.

    Attributes:
        camera: the name of camera 0, `camera_at` its default place, `camera_range` where it moves.
        turn: how its orientation is drawn.
        lamp: the name of the scene's light; without `lamp_range` it stays in its place.
        lamp_colours: whether the lamp's own colours are drawn too.
        floor: the name of the floor's geom; `floor_half_width` replaces the stock one.
        background: whether it has the shared sky.
        contacts: whether anything touches; the suite switches contacts off in four domains.
        gravity: whether it pulls: not where the suite switches it off, nor across the reacher.
        springs: whether any joint or tendon has one.
        water: whether the suite fills it; a current of some metres a second breaks the physics.
        moving_start: whether the task draws velocities too where an episode starts.
        effector: whether a second part of the body has its own colour.
        target: whether there is a target to see in some task.
        hide_target: the tasks that do not show it.
    """

    tasks: tuple[str, ...]
    camera: str
    camera_at: Triple
    camera_range: Range
    turn: Turn = "none"
    lamp: str = "light"
    lamp_at: Triple = (0.0, 0.0, 2.0)
    lamp_range: Range | None = None
    lamp_colours: bool = False
    floor: str = "floor"
    floor_half_width: float | None = None
    background: bool = True
    contacts: bool = True
    gravity: bool = True
    springs: bool = False
    water: bool = False
    moving_start: bool = False
    effector: bool = False
    target: bool = False
    hide_target: tuple[str, ...] = ()


DOMAINS = {
    "ball_in_cup": Domain(
        tasks=("catch",),
        camera="cam0",
        camera_at=(0.0, -1.0, 0.9),
        camera_range=((-0.05, -1.1, 0.8), (0.05, -0.9, 1.0)),
        lamp_range=((-0.5, -0.5, 1.2), (0.5, 0.5, 2.7)),
        floor="ground",
        effector=True,
        springs=True,
    ),
    "cartpole": Domain(
        tasks=(
            "balance",
            "balance_sparse",
            "swingup",
            "swingup_sparse",
            "three_poles",
            "two_poles",
        ),
        camera="fixed",
        camera_at=(0.0, -4.0, 1.0),
        camera_range=((-0.15, -5.0, 0.8), (0.15, -3.0, 1.2)),
        lamp_at=(0.0, 0.0, 6.0),
        lamp_range=((-1.0, -1.0, 4.5), (1.0, 1.0, 7.5)),
        contacts=False,
        moving_start=True,
    ),
    "cheetah": Domain(
        tasks=("run",),
        camera="side",
        camera_at=(0.0, -3.0, 0.0),
        camera_range=((-0.25, -3.2, -0.25), (0.25, -2.8, 0.25)),
        lamp_range=((-2.0, -2.0, 1.0), (2.0, 2.0, 5.0)),
        floor="ground",
        floor_half_width=15.0,
        moving_start=True,
        springs=True,
    ),
    "finger": Domain(
        tasks=("spin", "turn_easy", "turn_hard"),
        camera="cam0",
        camera_at=(0.0, -1.0, 0.8),
        camera_range=((-0.02, -1.01, 0.7), (0.02, -0.99, 1.0)),
        lamp_range=((-0.8, -0.8, 1.0), (0.8, 0.8, 3.0)),
        lamp_colours=True,
        floor="ground",
        effector=True,
        target=True,
        hide_target=("spin",),
        gravity=False,
    ),
    "fish": Domain(
        tasks=("swim", "upright"),
        camera="tracking_top",
        camera_at=(0.0, 0.0, 1.0),
        camera_range=((-0.05, -0.05, 0.8), (0.05, 0.05, 1.2)),
        lamp_at=(0.0, 0.0, 0.5),
        lamp_range=((-0.3, -0.3, 0.0), (0.3, 0.3, 1.0)),
        floor="ground",
        background=False,
        effector=True,
        contacts=False,
        target=True,
        hide_target=("upright",),
        gravity=False,
        springs=True,
        water=True,
    ),
    "hopper": Domain(
        tasks=("hop", "stand"),
        camera="cam0",
        camera_at=(0.0, -2.8, 0.8),
        camera_range=((-0.15, -3.0, 0.6), (0.15, -2.6, 1.0)),
        turn="euler",
        lamp="top",
    ),
    "humanoid": Domain(
        tasks=("run", "stand", "walk"),
        camera="back",
        camera_at=(-3.0, 0.0, 1.0),
        camera_range=((-3.5, -0.5, 0.5), (-2.5, 0.5, 1.5)),
        lamp="top",
        lamp_range=((-0.7, -0.7, 1.2), (0.7, 0.7, 1.8)),
        springs=True,
    ),
    "pendulum": Domain(
        tasks=("swingup",),
        camera="fixed",
        camera_at=(0.1, -1.0, 1.5),
        camera_range=((0.0, -1.1, 1.3), (0.2, -0.97, 1.6)),
        turn="tilt",
        lamp_range=((-0.5, -0.2, 1.2), (0.5, 0.2, 2.8)),
        contacts=False,
        effector=True,
    ),
    "reacher": Domain(
        tasks=("easy", "hard"),
        camera="fixed",
        camera_at=(0.0, 0.0, 0.75),
        camera_range=((-0.05, -0.05, 0.7), (0.05, 0.05, 0.8)),
        lamp_at=(0.0, 0.0, 0.5),
        lamp_range=((-0.2, -0.2, 0.15), (0.2, 0.2, 0.75)),
        contacts=False,
        floor="ground",
        effector=True,
        target=True,
        gravity=False,
    ),
    "walker": Domain(
        tasks=("run", "stand", "walk"),
        camera="side",
        camera_at=(0.0, -2.0, 0.7),
        camera_range=((-0.3, -2.05, 0.6), (0.3, -1.95, 0.8)),
    ),
}
