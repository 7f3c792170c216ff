"""A camera on a sphere about the robot, as in Distracting Control."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from interverse.sim.single import scratch_data, settle
from interverse.worlds.control.gallery import by_world
from interverse.worlds.control.looks import CameraPose

FloatArray = NDArray[np.float64]
_FIXED = 0  # MuJoCo's mode of a camera that follows nothing


@final
class Orbit(NamedTuple):
    """The sphere of a model's camera; places are in the frame of the camera's owner.

    Attributes:
        centre: the origin of the world, or the centre of mass that the camera follows.
        robot: the robot's centre of mass.
        radius: of the camera's own place, metres.
        elevation: of that place above the horizon of the centre, radians.
    """

    centre: FloatArray
    robot: FloatArray
    radius: float
    elevation: float

    def elevations(self, angle: float) -> tuple[float, float]:
        """Returns the least and the greatest turn: not below the horizon nor over the top.

        >>> orbit = Orbit(np.zeros(3), np.zeros(3), radius=4.0, elevation=0.05)
        >>> orbit.elevations(0.157)
        (-0.05, 0.157)
        """
        high = min(angle, math.pi / 2 - self.elevation)
        return min(max(-angle, -self.elevation), high), high


def orbit_of(model: Any, camera: str) -> Orbit:
    """Returns the sphere of a camera where the model starts."""
    data, number = scratch_data(model), model.camera(camera).id
    settle(model, data)
    owner, robot = model.cam_bodyid[number], data.subtree_com[1]
    centre = np.zeros(3) if model.cam_mode[number] == _FIXED else robot
    axes, origin = data.xmat[owner].reshape(3, 3), data.xpos[owner]
    arm = data.cam_xpos[number] - centre
    return Orbit(
        centre=axes.T @ (centre - origin),
        robot=axes.T @ (robot - origin),
        radius=float(np.linalg.norm(arm)),
        elevation=math.atan2(arm[2], math.hypot(arm[0], arm[1])),
    )


def moved_camera(
    moved: FloatArray, place: FloatArray, orientation: Rotation, orbit: Orbit
) -> tuple[FloatArray, Rotation]:
    """Returns a camera elsewhere on its sphere, still looking at what it looked at.

    Args:
        moved: azimuth, elevation and roll in radians, and the distance over its own.
        place: its own, which need not be the one that the orbit was made from.
        orientation: its own; it looks at the point ahead that is as far away as the robot.
        orbit: the sphere.
    """
    azimuth, elevation, roll, distance = moved
    axes = orientation.as_matrix()
    right, ahead = axes[:, 0], -axes[:, 2]
    target = place + ahead * float(np.linalg.norm(place - orbit.robot))
    turn = Rotation.from_rotvec([0.0, 0.0, azimuth]) * Rotation.from_rotvec(-elevation * right)
    stands = orbit.centre + distance * turn.apply(place - orbit.centre)
    aim = _shortest_turn(turn.apply(ahead), target - stands)
    own = Rotation.from_rotvec([0.0, 0.0, roll])
    return stands, aim * turn * orientation * own


def _shortest_turn(start: FloatArray, end: FloatArray) -> Rotation:
    """Returns the rotation that takes one direction to another."""
    axis = np.cross(start, end)
    length = float(np.linalg.norm(axis))
    if length == 0.0:
        return Rotation.identity()
    return Rotation.from_rotvec(axis / length * math.atan2(length, float(np.dot(start, end))))


@final
class MovedCamera:
    """Poses of a camera on its sphere: functions for bindings.

    Each takes a look's positions (n, 3) and rotations (n, 3), and what is added to them (n, 4).
    """

    def __init__(self, pose: CameraPose, orbit: Orbit) -> None:
        self._pose, self._orbit = pose, orbit
        self._latest: tuple[bytes, FloatArray] = b"", np.empty((0, 7))

    def place(self, *values: FloatArray) -> FloatArray:
        """Returns the places, (n, 3)."""
        return self._moved(*values)[:, :3]

    def orientation(self, *values: FloatArray) -> FloatArray:
        """Returns the orientations (w, x, y, z), (n, 4)."""
        return self._moved(*values)[:, 3:]

    def _moved(self, *values: FloatArray) -> FloatArray:
        """Returns places and orientations, worked out once for both; worlds in threads share it."""
        key, latest = b"".join(value.tobytes() for value in values), self._latest
        if latest[0] != key:
            latest = self._latest = key, by_world(self._one, *values)
        return latest[1]

    def _one(self, place: FloatArray, rotation: FloatArray, moved: FloatArray) -> FloatArray:
        own = self._pose.orientation(rotation)
        place, turned = moved_camera(moved, place, own, self._orbit)
        return np.append(place, turned.as_quat(scalar_first=True))
