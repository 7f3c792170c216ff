"""Pictures of rooms: a planned room as a MuJoCo model, what to change in it, and its frames.

In states between 0 and 1 flames are smaller, streams thinner, dirt and cracks fainter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.art.meshes import Mesh, merge, moved, rotated, scaled
from interverse.art.rooms.forms import Form
from interverse.art.rooms.item import (
    HELD_FROM,
    PROPERTIES,
    Item,
    MixedTexture,
    RoomTexture,
    Surface,
    surface_key,
)
from interverse.art.rooms.item import Part as ItemPart
from interverse.art.rooms.kit import covered
from interverse.art.rooms.textures import pixels
from interverse.sim import studio
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
from interverse.sim.studio import DrawingStage
from interverse.worlds.rooms.camera import RoomView
from interverse.worlds.rooms.lights import light_edits, sky_color
from interverse.worlds.rooms.room import Room, Thing, item_of, plan_room
from interverse.worlds.rooms.shell import Opening, shell

State = Mapping[str, float]
Grade = tuple[float, float, float]  # on, dirty, broken, where one is neither 0 nor 1
Cast = tuple[tuple[int, str, int, Grade | None, Form | None], ...]
"""Index, class, instance of each item, the state its surfaces are mixed for, a form not its own."""
Part = Literal["rgb", "items", "depth"]
CAMERA = "eye"
LIGHTS = ("ceiling", "fill", "window")
_CANDELA = {"ceiling": 300_000.0, "fill": 150_000.0, "window": 25_000.0}
_LAMP_CANDELA = 30_000.0
_HIDDEN = 5  # a group of geoms that renderers leave out
_SHADOW_PIXELS = 1024  # a side of the shadow map
_SAMPLES = 4  # of a pixel, against jagged edges
_ASKED: dict[Part, studio.Part] = {"rgb": "rgb", "items": "geoms", "depth": "depth"}
_LAMP = 0.9  # strength of an item's own light where lamps shine
_GRADED = "graded"
_LEAST = 0.15  # of a part's width when it just appears


# ------------------------------------------------------------------------------------ items


@dataclass(frozen=True, slots=True)
class RoomLook:
    """One geom in one state: gone, or seen in a material of its own that glows so much."""

    seen: bool
    material: str
    emission: float


@dataclass(frozen=True, slots=True)
class GeomMaterials:
    """The materials of one geom and how they glow, by key of `Part.alternate`, '' for its own.

    One that is built for a state between others has that one material alone, under `_GRADED`.
    """

    geom: str
    part: ItemPart
    materials: Mapping[str, tuple[str, float]]

    def look(self, state: State) -> RoomLook:
        """Returns how it looks in a state: any flame is there, but shards from half broken on."""
        part = self.part
        key = _GRADED if _GRADED in self.materials else surface_key(part, state)
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
    palette: Palette, item: Item, prefix: str, *, grade: State | None = None
) -> Assembled:
    """Adds an item to the world and returns the names it got, each under the prefix.

    With a grade, a state between others, its surfaces are mixed for that state.
    """
    still = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    root = add_body(palette.spec.worldbody, prefix, *still)
    bodies: dict[str | None, MjsBody] = {None: root}
    joints: dict[str, float] = {}
    skins = []
    for part in item.parts:
        name = f"{prefix}/{part.name}"
        body = bodies[part.parent]
        if part.joint is not None:
            body = add_body(body, name, *still)
            add_joint(body, name, part.joint.kind, part.joint.origin, part.joint.axis)
            joints[name] = part.joint.travel
        bodies[part.name] = body
        add_mesh(palette.spec, name, part.mesh if grade is None else _graded_mesh(part, grade))
        if grade is not None and (part.alternate or part.hidden_when):
            surface = graded_surface(part, grade)
            own = palette.material(surface, f"{name}/{_GRADED}")
            materials = {_GRADED: (own, surface.emission)}
        else:
            materials = {}
            for key, surface in {"": part.surface, **part.alternate}.items():
                own_name = f"{name}/{key}" if "on" in key.split("+") else None
                materials[key] = (palette.material(surface, own_name), surface.emission)
        add_sight(body, name, name, next(iter(materials.values()))[0])
        skins.append(GeomMaterials(name, part, materials))
    return Assembled(item, prefix, joints, tuple(skins))


def _graded_mesh(part: ItemPart, state: State) -> Mesh:
    """Returns a part's mesh in a state: what comes with a property grows with it, sideways."""
    value = state.get(part.shown_when or "", 1.0)
    if value in (0.0, 1.0):
        return part.mesh
    share = _LEAST + (1 - _LEAST) * value
    middle = (part.mesh.vertices.min(axis=0) + part.mesh.vertices.max(axis=0)) / 2
    middle = middle * np.array([1.0, 1.0, 0.0])
    return moved(scaled(moved(part.mesh, -middle), (share, share, 1.0)), middle)


def graded_surface(part: ItemPart, state: State) -> Surface:
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


# ------------------------------------------------------------------------------------ rooms


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Staged:
    """A room ready to be drawn."""

    model: Any
    stage: DrawingStage
    items: tuple[Assembled, ...]
    """How each item stands in the model."""
    indices: tuple[int, ...]
    """Which of the room's items each of those is."""
    owner: NDArray[np.int16]
    """(ngeom,) place of the item that a geom belongs to, -1 for the room's own."""
    sky: tuple[int, ...]
    """Geoms that show the sky."""
    lamps: bool
    """Whether lamps are lights of the model."""
    openings: tuple[Opening, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shot:
    """What a picture shows: things by index with their states, a camera and a light."""

    things: Sequence[Thing | None]
    states: NDArray[np.float64]
    view: RoomView
    light: tuple[NDArray[np.float64], float, float]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A picture: colours, the index of the item at each pixel (-1 for none), depth in metres."""

    rgb: NDArray[np.uint8] | None
    items: NDArray[np.int16] | None
    depth: NDArray[np.float32] | None


def cast_of(things: Sequence[Thing | None], states: NDArray[np.float64]) -> Cast:
    """Returns what a model is made of, whatever the places: things and states (items, 4)."""
    found = []
    for i, thing in enumerate(things):
        if thing is not None:
            grade = None  # on, dirty and broken in hundredths, unless each is 0 or 1
            if np.any((states[i][1:] != 0) & (states[i][1:] != 1)):
                on, dirty, broken = (
                    float(v) if v in (0.0, 1.0) else min(max(round(float(v), 2), 0.01), 0.99)
                    for v in states[i][1:]
                )
                grade = (on, dirty, broken)
            found.append((i, thing.cls, thing.instance, grade, thing.form))
    return tuple(found)


@functools.lru_cache(maxsize=12)
def staged(seed: int, objects: int, cast: Cast, *, spill: bool, high: bool) -> Staged:
    """Returns the room of a seed with a cast in it; the last few are kept.

    `spill` has lamps shine and moving parts cast shadows, `high` has Filament draw it.
    """
    room = plan_room(seed, objects)
    spec = _new_spec(room)
    palette = Palette(spec)
    skies = _add_room(palette, room)
    items = []
    for place, (_, cls, instance, grade, form) in enumerate(cast):
        state = None if grade is None else dict(zip(PROPERTIES[1:], grade, strict=True))
        what = item_of(cls, instance, form)
        items.append(item_spec(palette, what, f"item{place}", grade=state))
    for item in items if spill else ():
        if item.item.light is not None:
            spec.body(item.body).add_light(
                name=f"{item.body}/lamp",
                pos=item.item.light,
                dir=(0, 0, -1),
                cutoff=180.0,
                exponent=0.0,
                castshadow=False,
                attenuation=(1.0, 0.3, 0.6),
                diffuse=(0, 0, 0),
            )
    for light in spec.lights if high else ():  # Filament wants candela
        light.intensity = _CANDELA.get(light.name, _LAMP_CANDELA)
    model = spec.compile()
    owner = np.full(model.ngeom, -1, np.int16)
    loose = []  # what may move or vanish casts no shadow
    for place, item in enumerate(items):
        moving: set[str | None] = set()
        for skin in item.skins:
            part, geom = skin.part, model.geom(skin.geom).id
            owner[geom] = place
            if part.outlook:
                skies.append(skin.geom)
            if part.joint is not None or part.parent in moving:
                moving.add(part.name)
            if part.name in moving or part.shown_when is not None or part.hidden_when is not None:
                loose.append(geom)
    return Staged(
        model=model,
        stage=DrawingStage(model, shadowless=() if spill else tuple(loose), high=high),
        items=tuple(items),
        indices=tuple(entry[0] for entry in cast),
        owner=owner,
        sky=tuple(model.geom(name).id for name in skies),
        lamps=spill,
        openings=room.openings,
    )


def _new_spec(room: Room) -> Any:
    spec = mujoco.MjSpec()
    spec.modelname = "room"
    spec.visual.quality.shadowsize = _SHADOW_PIXELS
    spec.visual.quality.offsamples = _SAMPLES
    spec.visual.map.znear = 0.01
    spec.visual.map.zfar = 10.0
    spec.visual.map.shadowscale = 0.72
    spec.visual.headlight.ambient = (0.2, 0.2, 0.2)
    spec.visual.headlight.diffuse = (0.0, 0.0, 0.0)
    spec.visual.headlight.specular = (0.0, 0.0, 0.0)
    spec.stat.extent = 4.0
    spec.stat.center = (0.0, 0.0, 1.2)
    height = room.size[2]
    world = spec.worldbody
    world.add_camera(name=CAMERA, pos=(0, 0, 1.5), fovy=75)
    ceiling = {"pos": (0, 0, height - 0.12), "dir": (0, 0, -1), "cutoff": 85.0, "exponent": 1.0}
    world.add_light(name="ceiling", castshadow=True, attenuation=(1.0, 0.0, 0.02), **ceiling)
    fill = {"pos": (0, 0, 0.3), "dir": (0, 0, 1), "cutoff": 180.0, "exponent": 0.0}
    world.add_light(name="fill", castshadow=False, specular=(0, 0, 0), **fill)
    directional = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    side = {"pos": (0, 0, 1.8), "dir": (0, 0, -1), "specular": (0.05, 0.05, 0.05)}
    world.add_light(name="window", castshadow=False, type=directional, **side)
    return spec


def _add_room(palette: Palette, room: Room) -> list[str]:
    """Adds shell and props, all of one surface as one geom; returns the names of sky geoms."""
    by_surface: dict[Surface, list[Mesh]] = {}
    for _, mesh, surface in shell(room.size, room.style, room.openings):
        by_surface.setdefault(surface, []).append(mesh)
    for standing in room.standing:
        for mesh, surface in standing.prop.parts:
            upright = rotated(mesh, (0, 0, 1), standing.pose.yaw)
            by_surface.setdefault(surface, []).append(moved(upright, standing.pose.position))
    skies = []
    for number, (surface, meshes) in enumerate(by_surface.items()):
        name = f"room{number}"
        add_mesh(palette.spec, name, merge(meshes))
        add_sight(palette.spec.worldbody, name, name, palette.material(surface))
        if surface.texture is not None and surface.texture.kind == "sky":
            skies.append(name)
    return skies


def state_edits(
    model: Any, items: Sequence[Assembled], states: NDArray[np.float64]
) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """Returns the fields and joint positions of a model whose items are in states (items, 4)."""
    names = ("geom_matid", "geom_group", "geom_rgba", "mat_emission")
    fields = {name: getattr(model, name).copy() for name in names}
    qpos = np.zeros(model.nq)
    for item, values in zip(items, states, strict=True):
        state = dict(zip(PROPERTIES, values.tolist(), strict=True))
        for name, position in item.positions(state).items():
            qpos[model.joint(name).qposadr[0]] = position
        for name, look in item.looks(state).items():
            geom, material = model.geom(name).id, model.mat(look.material).id
            fields["geom_matid"][geom] = material
            fields["geom_group"][geom] = 0 if look.seen else _HIDDEN
            fields["geom_rgba"][geom, 3] = 1.0 if look.seen else 0.0  # Filament knows no groups
            fields["mat_emission"][material] = look.emission
    return fields, qpos


def draw(scene: Staged, shot: Shot, *, size: int, parts: Collection[Part], fast: bool) -> Frame:
    """Returns a picture; `fast` has the quick renderer draw the colours whatever the quality."""
    rows, model = list(scene.indices), scene.model
    edits, qpos = state_edits(model, scene.items, shot.states[rows])
    position, turn = model.body_pos.copy(), model.body_quat.copy()
    for row, item in zip(rows, scene.items, strict=True):
        thing = shot.things[row]
        if thing is not None:
            body = model.body(item.body).id
            position[body], turn[body] = thing.pose.position, thing.pose.quaternion
    lights = light_edits(*shot.light, scene.openings)
    diffuse, way = model.light_diffuse.copy(), model.light_dir.copy()
    for row, name in enumerate(LIGHTS):
        light = model.light(name).id
        diffuse[light], way[light] = lights["light_diffuse"][row], lights["light_dir"][row]
    for row, item in zip(rows, scene.items, strict=True):
        if scene.lamps and item.item.light is not None:
            lamp = model.light(f"{item.body}/lamp").id
            diffuse[lamp] = _LAMP * shot.states[row, 1] * np.array([1.0, 0.85, 0.6])
    edits |= {
        "body_pos": position,
        "body_quat": turn,
        "cam_pos": shot.view.position[None],
        "cam_quat": shot.view.quaternion[None],
        "cam_fovy": np.array([math.degrees(shot.view.fov)]),
        "light_diffuse": diffuse,
        "light_dir": way,
        "headlight_ambient": lights["headlight_ambient"],
    }
    edits["geom_rgba"][list(scene.sky), :3] = sky_color(shot.light[2])
    asked = [_ASKED[part] for part in parts]
    seen = scene.stage.draw(edits, qpos=qpos, size=size, parts=asked, fast=fast)
    if seen.geoms is None:
        return Frame(seen.rgb, None, seen.depth)
    owner = scene.owner
    table = np.full(len(owner) + 1, -1, np.int16)  # the last is for no geom at all
    table[:-1] = np.where(owner >= 0, np.array([*rows, -1], np.int16)[owner], -1)
    return Frame(seen.rgb, table[seen.geoms], seen.depth)
