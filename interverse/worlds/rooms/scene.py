"""A planned room as a MuJoCo model, and where each item's parts are in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import mujoco
import numpy as np
from numpy.typing import NDArray

from interverse.art.meshes import Mesh, merge, moved, rotated
from interverse.art.rooms.item import PROPERTIES, Surface
from interverse.sim.assets import add_mesh, add_sight
from interverse.worlds.rooms.assemble import Assembled, Palette, item_spec
from interverse.worlds.rooms.placing import Pose
from interverse.worlds.rooms.room import Room, Thing
from interverse.worlds.rooms.shell import shell

CAMERA = "eye"
LIGHTS = ("ceiling", "fill", "window")
_CANDELA = {"ceiling": 300_000.0, "fill": 150_000.0, "window": 25_000.0}
_LAMP_CANDELA = 30_000.0
_HIDDEN = 5  # a group of geoms that renderers leave out
_SHADOW_PIXELS = 1024  # a side of the shadow map
_SAMPLES = 4  # of a pixel, against jagged edges


@final
@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A compiled room.

    Attributes:
        model: of MuJoCo. items: how each item stands in it, by its index in the room.
        owner: (ngeom,) index of the item a geom belongs to, -1 for the room's own.
        shadowless: geoms that may move or vanish and therefore cast no shadow.
        sky: geoms that show the sky. lamps: whether lamps are lights of the model.
    """

    model: Any
    items: tuple[Assembled, ...]
    owner: NDArray[np.int16]
    shadowless: tuple[int, ...]
    sky: tuple[int, ...]
    lamps: bool = False


def build_model(
    room: Room,
    things: Sequence[Thing],
    *,
    lamps: bool,
    high: bool = False,
    grades: Mapping[int, Mapping[str, float]] | None = None,
) -> Model:
    """Returns the room with these things in it, in their places by the plan.

    Args:
        room: the plan.
        things: items, one an index of the room; they may be others than the plan's own.
        lamps: whether lamps are lights of the model, that shine on their surroundings.
        high: whether it is for Filament, which wants lights in candela.
        grades: by place in `things`, a state between others that surfaces are mixed for.
    """
    graded = grades or {}
    spec = _new_spec(room)
    palette = Palette(spec)
    skies = _add_room(palette, room)
    items = tuple(
        item_spec(
            palette,
            thing.item,
            f"item{i}",
            pos=thing.pose.position.tolist(),
            quat=thing.pose.quaternion,
            grade=graded.get(i),
        )
        for i, thing in enumerate(things)
    )
    for item in items if lamps else ():
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
    for light in spec.lights if high else ():
        light.intensity = _CANDELA.get(light.name, _LAMP_CANDELA)
    skies += [skin.geom for item in items for skin in item.skins if skin.part.outlook]
    model = spec.compile()
    owner = np.full(model.ngeom, -1, np.int16)
    shadowless = []
    for i, item in enumerate(items):
        moving: set[str | None] = set()
        for skin in item.skins:
            part, geom = skin.part, model.geom(skin.geom).id
            owner[geom] = i
            if part.joint is not None or part.parent in moving:
                moving.add(part.name)
            if part.name in moving or part.shown_when is not None or part.hidden_when is not None:
                shadowless.append(geom)
    sky = tuple(model.geom(name).id for name in skies)
    return Model(model, items, owner, tuple(shadowless), sky, lamps)


def state_edits(
    built: Model, states: NDArray[np.float64]
) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """Returns the fields and joint positions of a model whose items are in states (items, 4)."""
    model = built.model
    names = ("geom_matid", "geom_group", "geom_rgba", "mat_emission")
    fields = {name: getattr(model, name).copy() for name in names}
    qpos = np.zeros(model.nq)
    for item, values in zip(built.items, states, strict=True):
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
            by_surface.setdefault(surface, []).append(posed(mesh, standing.pose))
    skies = []
    for number, (surface, meshes) in enumerate(by_surface.items()):
        name = f"room{number}"
        add_mesh(palette.spec, name, merge(meshes))
        add_sight(palette.spec.worldbody, name, name, palette.material(surface))
        if surface.texture is not None and surface.texture.kind == "sky":
            skies.append(name)
    return skies


def posed(mesh: Mesh, pose: Pose) -> Mesh:
    """Returns a mesh where its thing stands."""
    return moved(rotated(mesh, (0, 0, 1), pose.yaw), pose.position)
