"""The TriFinger arena as data: what stands where, what it weighs, how it looks.

An `ArenaScene` is plain values; `interverse.worlds.trifinger.mjcf` turns it into a MuJoCo model.
Positions are measured from the datum (world z 0.011, the top of the floor), sizes are full edges,
quaternions are x, y, z, w, colours red, green, blue in 0..1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from interverse.core.arrays import Array
from interverse.core.errors import InvalidValueError
from interverse.core.type_checks import named, one_of, validated
from interverse.sim.inertia import box_inertia as half_box_inertia
from interverse.worlds.trifinger.drag import JOINT_DAMPING, Drag
from interverse.worlds.trifinger.robot import HEIGHT, HINGED

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

WALL_RADIUS = 0.242  # inner radius of the stage, m
WALL_THICKNESS = 0.003
WALL_BOX = 0.02  # thickness of what fingers touch: a fast tip must not tunnel, m
WALL_HEIGHT = 0.25
FLOOR_EDGES = (0.71, 0.76)  # of the visible table; the floor one can touch has no end
FINGER_FRICTION = 0.5
FINGER_COLORS: tuple[Vector, ...] = ((0.6, 0.0, 0.0), (0.0, 0.6, 0.0), (0.0, 0.0, 0.6))
FLOOR_TEXTURES = ("plain", "checker", "wood", "felt", "tiles")
# Base, upper, middle and lower link of the grey robot: light enough for its edges to be seen.
METAL: tuple[Vector, ...] = (
    (0.30, 0.30, 0.30),
    (0.46, 0.46, 0.46),
    (0.38, 0.38, 0.38),
    (0.54, 0.54, 0.54),
)
LOOKS = ("default", "realistic")
ContactMode = Literal["exact", "convex"]
_IDENTITY: Quaternion = (0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMesh:
    """A triangle mesh, centred and scaled to a unit box; it collides as its convex hull."""

    vertices: tuple[Vector, ...]
    faces: tuple[tuple[int, int, int], ...]

    @property
    def centroid(self) -> Vector:
        """The centre of the enclosed volume, in units of the box's edges, from its centre."""
        corners = np.array(self.vertices)[np.array(self.faces)]
        volumes = np.linalg.det(corners)
        whole = volumes.sum()
        if abs(whole) < 1e-9:
            raise InvalidValueError(
                "the mesh encloses no volume", fix="Give it closed, evenly wound faces"
            )
        x, y, z = (volumes[:, None] * corners.sum(axis=1)).sum(axis=0) / (4 * whole)
        return float(x), float(y), float(z)

    @staticmethod
    def from_points(vertices: Any, faces: Any) -> BlockMesh:
        """Returns the mesh of vertices (n, 3) and triangles (m, 3), moved into the unit box."""
        points = np.asarray(vertices, float)
        if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4:
            raise InvalidValueError(
                f"mesh vertices have shape {points.shape}", allowed="(n, 3) with n >= 4"
            )
        low, high = points.min(axis=0), points.max(axis=0)
        if (high <= low).any():
            raise InvalidValueError(
                "the mesh is flat: its bounding box has no volume", fix="Give it thickness"
            )
        unit = (points - (low + high) / 2) / (high - low)
        return BlockMesh(
            vertices=tuple((float(x), float(y), float(z)) for x, y, z in unit),
            faces=tuple((int(a), int(b), int(c)) for a, b, c in np.asarray(faces)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A movable solid: a box, or a mesh whose bounding box is `size`."""

    position: Vector = (0.0, 0.0, 0.0325)
    orientation: Quaternion = _IDENTITY
    size: Vector = (0.065, 0.065, 0.065)
    mass: float = 0.08
    friction: float = 1.0
    color: Vector = (1.0, 0.0, 0.0)
    mesh: BlockMesh | None = None

    def __post_init__(self) -> None:
        _positive("a block's size", *self.size)
        _positive("a block's mass", self.mass)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A translucent target that nothing can touch."""

    position: Vector = (0.0, 0.0, 0.0325)
    orientation: Quaternion = _IDENTITY
    size: Vector = (0.065, 0.065, 0.065)
    color: Vector = (0.0, 1.0, 0.0)
    alpha: float = 0.3
    shape: Literal["box", "sphere"] = "box"
    mesh: BlockMesh | None = None

    def __post_init__(self) -> None:
        _positive("a goal's size", *self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A box that does not move."""

    name: str = "obstacle"
    position: Vector = (0.0, 0.0, 0.0325)
    orientation: Quaternion = _IDENTITY
    size: Vector = (0.5, 0.015, 0.065)
    friction: float = 1.0
    color: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _positive("an obstacle's size", *self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaCamera:
    """A camera fixed in the world; `eye` in world coordinates (z not from the datum)."""

    name: str
    eye: Vector
    forward: Vector
    up: Vector
    fovy: float  # vertical field of view, degrees


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """A distant light; `direction` is the way its rays travel."""

    name: str
    direction: Vector
    color: Vector
    shadow: bool = False


# The original mirrors its images left to right; these are proper cameras with the same view.
OBSERVATION_CAMERAS = (
    ArenaCamera(
        name="camera_0",
        eye=(0.2496, 0.2458, 0.58),
        forward=(-0.420528, -0.388747, -0.819776),
        up=(-0.593994, -0.565020, 0.572646),
        fovy=52.0,
    ),
    ArenaCamera(
        name="camera_1",
        eye=(0.0047, -0.2834, 0.58),
        forward=(-0.007387, 0.478004, -0.878327),
        up=(0.022104, 0.878214, 0.477757),
        fovy=52.0,
    ),
    ArenaCamera(
        name="camera_2",
        eye=(-0.2470, 0.2513, 0.50),
        forward=(0.426638, -0.439767, -0.790307),
        up=(0.566574, -0.551158, 0.612551),
        fovy=52.0,
    ),
)
VIEWER_CAMERAS = (
    ArenaCamera(
        name="viewer",  # the original's: 0.6 m from the origin, 60 degrees above the floor
        eye=(0.0, -0.3, 0.5196152),
        forward=(0.0, 0.5, -0.8660254),
        up=(0.0, 0.8660254, 0.5),
        fovy=60.0,
    ),
    ArenaCamera(
        name="showcase",
        eye=(0.40, -0.52, 0.92),
        forward=(-0.3672, 0.4774, -0.7983),
        up=(-0.4867, 0.6327, 0.6023),
        fovy=38.0,
    ),
)
LIGHTS = (
    Light(name="key", direction=(-0.30, 0.24, -0.92), color=(0.60, 0.59, 0.56), shadow=True),
    Light(name="fill", direction=(0.75, -0.35, -0.56), color=(0.24, 0.25, 0.28)),
    Light(name="rim", direction=(0.05, 0.92, -0.38), color=(0.22, 0.22, 0.24)),
)
AMBIENT = 0.40


@dataclass(frozen=True, slots=True, kw_only=True)
@validated
class ArenaScene:
    """Everything a TriFinger model is built from."""

    blocks: tuple[Block, ...] = ()
    goals: tuple[Goal, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    max_blocks: int | None = None
    """Room for this many blocks; those beyond `blocks` are parked high above the arena, where they
    touch nothing and do not fall. None: exactly `blocks`."""
    max_goals: int | None = None
    """Room for this many goals; spare ones are invisible. None: exactly `goals`."""
    torques: bool = False
    """Whether commands are torques (motors) or joint targets (servos)."""
    servo_lag: float = 0.0
    """Time constant with which servo targets follow the controls, s; see `RobotControl.servo_lag`.
    Above 0 the targets are the state `act`, (9,), which a reset must set to the joint angles."""
    drag: Drag = "exact"
    """`exact` leaves the drag to `drag.add_drag`, substep by substep; `joint_damping` puts a
    stand-in into the model."""
    contact: ContactMode = "convex"
    """`exact` is Coulomb friction; `convex` is MuJoCo's own, by which sliding things hop."""
    gravity: float = -9.81
    robot_height: float = HEIGHT
    joint_damping: float = 0.0
    link_masses: tuple[Vector, Vector, Vector] = (tuple(link.mass for link in HINGED),) * 3  # type: ignore[assignment]
    """Of upper, middle and lower, finger by finger, kg; the inertias scale along."""
    link_colors: tuple[tuple[Vector, ...], ...] = tuple((c,) * 4 for c in FINGER_COLORS)
    """Of base, upper, middle and lower, finger by finger."""
    floor_friction: float = 0.5
    floor_color: Vector = (0.31, 0.27, 0.25)
    floor_texture: Annotated[str, named("floor texture", one_of(FLOOR_TEXTURES))] = "plain"
    stage_friction: float = 0.5
    stage_color: Vector = (0.95, 0.95, 0.95)
    look: Annotated[str, one_of(LOOKS)] = "default"
    cameras: tuple[ArenaCamera, ...] = OBSERVATION_CAMERAS + VIEWER_CAMERAS
    lights: tuple[Light, ...] = LIGHTS
    shadow_size: int = 2048
    """Edge of the shadow map, pixels; its drawing costs half of a small image's time."""
    samples: int = 4
    """Colour samples a pixel; 0 draws jagged edges, in half the time."""
    sensors: bool = False
    """Whether to sense contact between each two objects: see `touch_sensors`."""

    def __post_init__(self) -> None:
        for name, held in (("max_blocks", self.blocks), ("max_goals", self.goals)):
            room = getattr(self, name)
            if room is not None and room < len(held):
                raise InvalidValueError(
                    f"{name}={room} is less than the {len(held)} given", fix=f"Raise {name}"
                )

    @property
    def block_count(self) -> int:
        """How many blocks the model has, parked ones included."""
        return len(self.blocks) if self.max_blocks is None else self.max_blocks

    @property
    def goal_count(self) -> int:
        """How many goals the model has, invisible ones included."""
        return len(self.goals) if self.max_goals is None else self.max_goals

    @property
    def drag_damping(self) -> tuple[float, float, float]:
        """What stands in for the drag in the damping of a finger's three joints, N m s/rad."""
        return JOINT_DAMPING if self.drag == "joint_damping" else (0.0, 0.0, 0.0)


def camera_orientation(camera: ArenaCamera) -> Quaternion:
    """Returns the turn of a camera that looks along its own -z, with y up: x, y, z, w."""
    right = np.cross(camera.forward, camera.up)
    axes = np.stack([right / np.linalg.norm(right), camera.up, -np.asarray(camera.forward)], axis=1)
    w = np.sqrt(max(0.0, 1.0 + axes[0, 0] + axes[1, 1] + axes[2, 2])) / 2
    x, y, z = (axes[2, 1] - axes[1, 2], axes[0, 2] - axes[2, 0], axes[1, 0] - axes[0, 1])
    turn = np.array([x, y, z, 4 * w * w])
    x, y, z, w = (turn / np.linalg.norm(turn)).tolist()
    return x, y, z, w


def box_inertia(mass: Array, size: Array) -> Array:
    """Returns the principal inertias of a solid box about its centre, (..., 3), kg m2.

    Every inertia of a block comes from here, built or edited, so both agree to the last bit.

    Args:
        mass: (...), kg.
        size: full edges, (..., 3), m.
    """
    return half_box_inertia(mass, size / 2)


def parking_position(index: int) -> Vector:
    """Returns where block `index` waits when it is not in use, m above the datum."""
    return (0.0, 0.0, 2.0 + 0.25 * index)


def _positive(what: str, *values: float) -> None:
    if not all(v > 0 for v in values):
        raise InvalidValueError(f"{what} must be > 0, got {values}", allowed="> 0")


def remembered(function: Any) -> Any:
    """Returns a function of a kind of task that works each answer out once.

    Tasks of somebody's own are asked every time: they may say something else.
    """
    kept: Any = functools.lru_cache(maxsize=64)(function)

    @functools.wraps(function)
    def ask(kind: type[Any], *args: Any) -> Any:
        return (kept if kind.__module__.startswith("interverse.") else function)(kind, *args)

    return ask


# The names under which tasks outside the package know these classes.
Scene, Mesh = ArenaScene, BlockMesh
