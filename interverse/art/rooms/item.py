"""An object of a room: parts of textured mesh, the joints they move on, their surfaces.

Lengths are metres, z is up, and an item faces -y. An item that stands has its footprint centred on
x = y = 0 and its foot on z = 0; an item that hangs on a wall has the centre of its back at the
origin and reaches to -y. Everything is given as it is while closed, off, clean and whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from interverse.art.meshes import Mesh, rotation

PROPERTIES = ("open", "on", "dirty", "broken")
"""The components of an object's state, in their order everywhere; each goes from 0 to 1."""

HELD_FROM = 0.5
"""A property holds from this value on."""

Floats = NDArray[np.float64]
Rgb = tuple[float, float, float]
Triple = tuple[float, float, float]
Stand = Literal["floor", "table", "wall", "counter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomTexture:
    """A description of a picture, hashable; `textures.pixels` draws it."""

    kind: str
    """Which pattern, a name of `textures.KINDS`."""
    colours: tuple[Rgb, ...]
    """Colours the pattern runs through, each channel 0 to 1; two or more."""
    seed: int = 0
    """Which of the pattern's variants; few of them, so that noise is drawn once a process."""
    scale: float = 1.0
    """Fineness: above one the pattern is finer."""
    overlays: tuple[str, ...] = ()
    """What lies on top, first the lowest: names of `textures.OVERLAYS`."""

    def over(self, *names: str) -> RoomTexture:
        """Returns the same texture under further overlays."""
        return replace(self, overlays=(*self.overlays, *names))

    def skin(self, specular: float = 0.3, shininess: float = 0.4) -> Surface:
        """Returns a surface that shows the texture."""
        return Surface(texture=self, specular=specular, shininess=shininess)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedTexture:
    """Two surfaces' pictures laid over each other; `textures.pixels` draws it."""

    first: Surface
    second: Surface
    share: float
    """How much of the second, 0 to 1."""
    kind: str = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """How a part takes light."""

    texture: RoomTexture | MixedTexture | None = None
    rgba: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """Multiplies the texture."""
    specular: float = 0.3
    shininess: float = 0.4
    emission: float = 0.0


@dataclass(frozen=True, slots=True)
class RoomJoint:
    """A hinge or slide; its position is openness times travel (radians or metres)."""

    kind: Literal["hinge", "slide"]
    origin: Triple
    """A point on the axis, in the item's frame."""
    axis: Triple
    travel: float
    """Position at openness one; the action `open` goes to 0.8 of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One mesh of one surface, in the item's frame."""

    name: str
    mesh: Mesh
    surface: Surface
    joint: RoomJoint | None = None
    """How it moves against its parent; without one it is fixed to it."""
    alternate: Mapping[str, Surface] = field(default_factory=dict)
    """Surface at a property's full value, `on+broken` at both; the longest key wins. Between 0 and
    1 surfaces are mixed."""
    shown_when: str | None = None
    """A property: the part is seen only while it holds (shards, a flame, a stream of water)."""
    hidden_when: str | None = None
    """A property: the part is gone while it holds."""
    parent: str | None = None
    """Name of the part it moves with; without one, the item itself."""
    outlook: bool = False
    """Whether it shows what is outside, which the time of day colours."""


@dataclass(frozen=True, slots=True)
class Item:
    """One instance of an object class."""

    cls: str
    parts: tuple[Part, ...]
    """Each of another name, a parent before its children."""
    size: Triple
    """Width, depth, height of what is seen while closed and whole."""
    stand: Stand
    properties: tuple[str, ...]
    light: Triple | None = None
    """Where its lamp sits, for real light; none for what is no lamp."""

    @property
    def faces(self) -> int:
        """Returns the number of triangles."""
        return sum(len(part.mesh.faces) for part in self.parts)

    def bounds(self, state: Mapping[str, float] | None = None) -> tuple[Floats, Floats]:
        """Returns the lowest and the highest corner of what is seen in a state (default: all 0)."""
        state = {} if state is None else state
        poses = self.poses(state.get("open", 0.0))
        points = [
            part.mesh.vertices @ poses[part.name][:3, :3].T + poses[part.name][:3, 3]
            for part in self.parts
            if is_seen(part, state)
        ]
        everything = np.concatenate(points)
        return everything.min(axis=0), everything.max(axis=0)

    def poses(self, openness: float) -> dict[str, Floats]:
        """Returns each part's displacement (4, 4) in the item's frame at an openness."""
        found: dict[str, Floats] = {}
        for part in self.parts:
            above = np.eye(4) if part.parent is None else found[part.parent]
            found[part.name] = above @ _moved(part.joint, openness)
        return found


Drawn = tuple[Sequence[Part], Stand, Triple | None]
"""What a builder draws: parts in a frame of its own, where it stands, and where its lamp sits."""


def is_seen(part: Part, state: Mapping[str, float]) -> bool:
    """Returns whether a part is seen in a state; a property that is not named is 0."""
    shown = part.shown_when is None or state.get(part.shown_when, 0.0) >= HELD_FROM
    return shown and not (
        part.hidden_when is not None and state.get(part.hidden_when, 0.0) >= HELD_FROM
    )


def surface_key(part: Part, state: Mapping[str, float]) -> str:
    """Returns the key of the alternate surface that holds in a state, or '' for the part's own."""
    held = {name for name in PROPERTIES if state.get(name, 0.0) >= HELD_FROM}
    fitting = [key for key in part.alternate if held.issuperset(key.split("+"))]
    return max(fitting, key=lambda key: key.count("+"), default="")


def _moved(joint: RoomJoint | None, openness: float) -> Floats:
    pose = np.eye(4)
    if joint is None:
        return pose
    if joint.kind == "slide":
        axis = np.asarray(joint.axis, dtype=float)
        pose[:3, 3] = axis / np.linalg.norm(axis) * (joint.travel * openness)
        return pose
    pose[:3, :3] = rotation(joint.axis, joint.travel * openness)
    pose[:3, 3] = np.asarray(joint.origin) - pose[:3, :3] @ np.asarray(joint.origin)
    return pose
