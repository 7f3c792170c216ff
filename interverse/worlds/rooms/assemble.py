"""Items into a MuJoCo scene, and what to change there when an item's state changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interverse.art.rooms.item import Item, MixedTexture, Part, RoomTexture, Surface, surface_key
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
from interverse.worlds.rooms.grading import graded_mesh, graded_surface, is_there

TEXTURE_PIXELS = 128
GRADED = "graded"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeomMaterials:
    """The materials of one geom: by key of `Part.alternate`, '' for the part's own surface.

    One that is built for a state between others has that one material alone, under `GRADED`.
    """

    geom: str
    part: Part
    materials: Mapping[str, str]
    emissions: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """Names under which an item stands in a scene."""

    item: Item
    body: str
    geoms: tuple[str, ...]
    joints: Mapping[str, float]
    """Joint name to travel: a joint's position is openness times travel."""
    skins: tuple[GeomMaterials, ...]

    def positions(self, state: Mapping[str, float]) -> dict[str, float]:
        """Returns each joint's position in a state."""
        return {name: state.get("open", 0.0) * travel for name, travel in self.joints.items()}

    def looks(self, state: Mapping[str, float]) -> dict[str, RoomLook]:
        """Returns how each geom looks in a state."""
        return {skin.geom: _look(skin, state) for skin in self.skins}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomLook:
    """One geom in one state: gone, or seen in a material of its own that glows so much."""

    seen: bool
    material: str
    emission: float


@dataclass(slots=True)
class Palette:
    """Textures and materials a scene has already, so that equal ones are added once."""

    spec: MjSpec
    texture_size: int = TEXTURE_PIXELS
    textures: dict[RoomTexture | MixedTexture, str] = field(default_factory=dict)
    materials: dict[Surface, str] = field(default_factory=dict)

    def texture(self, texture: RoomTexture | MixedTexture) -> str:
        """Returns the name of a texture, added when it is new."""
        if texture not in self.textures:
            name = f"texture{len(self.textures)}"
            add_texture(self.spec, name, pixels(texture, self.texture_size))
            self.textures[texture] = name
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
            reflectance=surface.reflectance,
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
    grade: Mapping[str, float] | None = None,
) -> Assembled:
    """Adds an item at a pose of the world and returns the names it got, each under the prefix.

    Args:
        palette: the scene, with the textures it has.
        item: what to add.
        prefix: of all its names.
        pos: where it stands.
        quat: its turn.
        grade: a state between others that its surfaces are mixed for; None takes them as they are.
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
        skins.append(_skin(palette, part, name, body, grade))
    return Assembled(
        item=item,
        body=prefix,
        geoms=tuple(skin.geom for skin in skins),
        joints=joints,
        skins=tuple(skins),
    )


def _skin(
    palette: Palette, part: Part, name: str, body: MjsBody, grade: Mapping[str, float] | None
) -> GeomMaterials:
    add_mesh(palette.spec, name, part.mesh if grade is None else graded_mesh(part, grade))
    if grade is not None and (part.alternate or part.hidden_when):
        surface = graded_surface(part, grade)
        own = palette.material(surface, f"{name}/{GRADED}")
        add_sight(body, name, name, own)
        emissions = {GRADED: surface.emission}
        return GeomMaterials(geom=name, part=part, materials={GRADED: own}, emissions=emissions)
    surfaces = {"": part.surface, **part.alternate}
    materials = {
        key: palette.material(surface, f"{name}/{key}" if "on" in key.split("+") else None)
        for key, surface in surfaces.items()
    }
    add_sight(body, name, name, materials[""])
    emissions = {key: surface.emission for key, surface in surfaces.items()}
    return GeomMaterials(geom=name, part=part, materials=materials, emissions=emissions)


def _look(skin: GeomMaterials, state: Mapping[str, float]) -> RoomLook:
    key = GRADED if GRADED in skin.materials else surface_key(skin.part, state)
    emission = skin.emissions[key]
    if "on" in key.split("+"):
        emission *= state["on"]
    seen = is_there(skin.part, state)
    return RoomLook(seen=seen, material=skin.materials[key], emission=emission)
