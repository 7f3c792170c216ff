"""Items into a MuJoCo scene, and what to change there when an item's state changes.

In states between 0 and 1 flames are smaller, streams thinner, dirt and cracks fainter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from interverse.art.meshes import Mesh, moved, scaled
from interverse.art.rooms.item import (
    HELD_FROM,
    PROPERTIES,
    Item,
    MixedTexture,
    Part,
    RoomTexture,
    Surface,
    surface_key,
)
from interverse.art.rooms.kit import covered
from interverse.art.rooms.textures import pixels
from interverse.sim.assets import (
    MjsBody,
    MjSpec,
    add_body,
    add_joint,
    add_material,
    add_mesh,
    add_sight,
    add_texture,
)

State = Mapping[str, float]
GRADED = "graded"
_LEAST = 0.15  # of a part's width when it just appears


@dataclass(frozen=True, slots=True)
class RoomLook:
    """One geom in one state: gone, or seen in a material of its own that glows so much."""

    seen: bool
    material: str
    emission: float


@dataclass(frozen=True, slots=True)
class GeomMaterials:
    """The materials of one geom and how they glow, by key of `Part.alternate`, '' for its own.

    One that is built for a state between others has that one material alone, under `GRADED`.
    """

    geom: str
    part: Part
    materials: Mapping[str, tuple[str, float]]

    def look(self, state: State) -> RoomLook:
        """Returns how it looks in a state: any flame is there, but shards from half broken on."""
        part = self.part
        key = GRADED if GRADED in self.materials else surface_key(part, state)
        material, emission = self.materials[key]
        if "on" in key.split("+"):
            emission *= state["on"]
        seen = part.hidden_when is None or state.get(part.hidden_when, 0.0) < HELD_FROM
        if part.shown_when is not None:
            value = state.get(part.shown_when, 0.0)
            seen &= value >= HELD_FROM if part.shown_when == "broken" else value > 0
        return RoomLook(seen, material, emission)


@dataclass(frozen=True, slots=True)
class Assembled:
    """Names under which an item stands in a scene."""

    item: Item
    body: str
    joints: Mapping[str, float]
    """Joint name to travel: a joint's position is openness times travel."""
    skins: tuple[GeomMaterials, ...]

    @property
    def geoms(self) -> tuple[str, ...]:
        """Names of its geoms, one a part."""
        return tuple(skin.geom for skin in self.skins)

    def positions(self, state: State) -> dict[str, float]:
        """Returns each joint's position in a state."""
        return {name: state.get("open", 0.0) * travel for name, travel in self.joints.items()}

    def looks(self, state: State) -> dict[str, RoomLook]:
        """Returns how each geom looks in a state."""
        return {skin.geom: skin.look(state) for skin in self.skins}


@dataclass(slots=True)
class Palette:
    """Textures and materials a scene has already, so that equal ones are added once."""

    spec: MjSpec
    textures: dict[RoomTexture | MixedTexture, str] = field(default_factory=dict)
    materials: dict[Surface, str] = field(default_factory=dict)

    def texture(self, texture: RoomTexture | MixedTexture) -> str:
        """Returns the name of a texture, added when it is new."""
        if texture not in self.textures:
            name = self.textures[texture] = f"texture{len(self.textures)}"
            add_texture(self.spec, name, pixels(texture))
        return self.textures[texture]

    def material(self, surface: Surface, own: str | None = None) -> str:
        """Returns the name of a surface's material; with `own`, one that nothing else shares."""
        if own is None and surface in self.materials:
            return self.materials[surface]
        name = own if own is not None else f"material{len(self.materials)}"
        add_material(
            self.spec,
            name,
            None if surface.texture is None else self.texture(surface.texture),
            rgba=surface.rgba,
            specular=surface.specular,
            shininess=surface.shininess,
            emission=surface.emission,
        )
        if own is None:
            self.materials[surface] = name
        return name


def item_spec(
    palette: Palette,
    item: Item,
    prefix: str,
    *,
    pos: Sequence[float] = (0.0, 0.0, 0.0),
    quat: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
    grade: State | None = None,
) -> Assembled:
    """Adds an item at a pose of the world and returns the names it got, each under the prefix.

    With a grade, a state between others, its surfaces are mixed for that state.
    """
    root = add_body(palette.spec.worldbody, prefix, pos, quat)
    bodies: dict[str | None, MjsBody] = {None: root}
    joints: dict[str, float] = {}
    skins = []
    for part in item.parts:
        name = f"{prefix}/{part.name}"
        body = bodies[part.parent]
        if part.joint is not None:
            body = add_body(body, name, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
            add_joint(body, name, part.joint.kind, part.joint.origin, part.joint.axis)
            joints[name] = part.joint.travel
        bodies[part.name] = body
        add_mesh(palette.spec, name, part.mesh if grade is None else _graded_mesh(part, grade))
        if grade is not None and (part.alternate or part.hidden_when):
            surface = graded_surface(part, grade)
            own = palette.material(surface, f"{name}/{GRADED}")
            materials = {GRADED: (own, surface.emission)}
        else:
            materials = {}
            for key, surface in {"": part.surface, **part.alternate}.items():
                own_name = f"{name}/{key}" if "on" in key.split("+") else None
                materials[key] = (palette.material(surface, own_name), surface.emission)
        add_sight(body, name, name, next(iter(materials.values()))[0])
        skins.append(GeomMaterials(name, part, materials))
    return Assembled(item, prefix, joints, tuple(skins))


def _graded_mesh(part: Part, state: State) -> Mesh:
    """Returns a part's mesh in a state: what comes with a property grows with it, sideways."""
    value = state.get(part.shown_when or "", 1.0)
    if value in (0.0, 1.0):
        return part.mesh
    share = _LEAST + (1 - _LEAST) * value
    middle = (part.mesh.vertices.min(axis=0) + part.mesh.vertices.max(axis=0)) / 2
    middle = middle * np.array([1.0, 1.0, 0.0])
    return moved(scaled(moved(part.mesh, -middle), (share, share, 1.0)), middle)


def graded_surface(part: Part, state: State) -> Surface:
    """Returns a part's surface in any state: between two states, their surfaces mixed."""
    for name in PROPERTIES:
        value = state.get(name, 0.0)
        if 0.0 < value < 1.0 and any(name in key.split("+") for key in part.alternate):
            ends = [graded_surface(part, {**state, name: end}) for end in (0.0, 1.0)]
            return _mixed(ends[0], ends[1], value)
    key = surface_key(part, state)
    found = part.alternate[key] if key else part.surface
    value = state.get("broken", 0.0)
    if part.hidden_when == "broken" and 0.0 < value < HELD_FROM:  # cracks before it falls apart
        return _mixed(found, covered(found, "cracks"), value / HELD_FROM)
    return found


def _mixed(first: Surface, second: Surface, share: float) -> Surface:
    """Returns the surface between two."""
    if first == second:
        return first

    def between(low: float, high: float) -> float:
        return float(low + share * (high - low))

    return replace(
        first,
        texture=MixedTexture(first=first, second=second, share=share),
        rgba=(1.0, 1.0, 1.0, first.rgba[3] + share * (second.rgba[3] - first.rgba[3])),
        specular=between(first.specular, second.specular),
        shininess=between(first.shininess, second.shininess),
        emission=between(first.emission, second.emission),
    )
