"""A small studio that draws one item in any state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from interverse.art.rooms.item import PROPERTIES, Item
from interverse.art.rooms.objects import CLASSES, build_item
from interverse.sim.assets import add_material
from interverse.sim.studio import DrawingStage
from interverse.worlds.rooms.scene import Palette, item_spec, state_edits


@dataclass(frozen=True)
class Look:
    """From where the item is seen, and before what."""

    yaw: float = 0.45
    pitch: float = 0.4
    near: float = 2.7  # distance, in half diagonals of the item
    floor: tuple[float, float, float] = (0.55, 0.47, 0.4)
    wall: tuple[float, float, float] = (0.72, 0.74, 0.72)
    light: float = 0.75


class Studio:
    """One item on a floor before a wall, under a lamp."""

    def __init__(self, item: Item, look: Look | None = None) -> None:
        look = Look() if look is None else look
        spec = mujoco.MjSpec()
        spec.visual.headlight.ambient = (0.32,) * 3
        spec.visual.headlight.diffuse = spec.visual.headlight.specular = (0.0,) * 3
        spec.visual.quality.shadowsize = 1024
        low, high = item.bounds()
        reach = float(np.linalg.norm(high - low)) / 2
        spec.stat.extent = reach
        spec.visual.map.zfar = 60.0
        _room(spec, item, reach, look)
        _lamps(spec, (low + high) / 2, reach, look.light)
        _camera(spec, (low + high) / 2, reach, look)
        assembled = item_spec(Palette(spec), item, "item")
        model = spec.compile()
        self._own = [model.geom(name).id for name in (skin.geom for skin in assembled.skins)]
        self._model, self._item = model, assembled
        self._stage = DrawingStage(model)

    def draw(self, state: Mapping[str, float] | None = None, size: int = 128) -> np.ndarray:
        """Returns the picture of a state (default: all 0), uint8 (size, size, 3)."""
        edits, qpos = self._edits(state)
        return self._stage.draw(edits, qpos=qpos, size=size).rgb

    def mask(self, state: Mapping[str, float] | None = None, size: int = 128) -> np.ndarray:
        """Returns which pixels are the item's, bool (size, size)."""
        edits, qpos = self._edits(state)
        drawn = self._stage.draw(edits, qpos=qpos, size=size, parts=("geoms",))
        return np.isin(drawn.geoms, self._own)

    def _edits(self, state: Mapping[str, float] | None):
        row = [[(state or {}).get(name, 0.0) for name in PROPERTIES]]
        return state_edits(self._model, [self._item], np.array(row))


def shown(cls: str, prop: str) -> tuple[dict[str, float], dict[str, float]]:
    """Returns states before and after a property changes; a laptop shows its screen throughout."""
    before = {"open": 0.8} if cls == "Laptop" and prop != "open" else {}
    return before, {**before, prop: 0.8 if prop == "open" else 1.0}


def crop(cls: str, seed: int, size: int = 64) -> np.ndarray:
    """Returns a random instance in a random state, seen from anywhere, cut to its box."""
    from PIL import Image

    rng = np.random.default_rng([seed, 77])
    look = Look(
        yaw=rng.uniform(-0.9, 0.9),
        pitch=rng.uniform(0.15, 0.7),
        near=2.7,
        floor=tuple(rng.uniform(0.25, 0.8, 3)),
        wall=tuple(rng.uniform(0.3, 0.9, 3)),
        light=rng.uniform(0.5, 0.9),
    )
    studio = Studio(build_item(cls, rng), look)
    state = {prop: float(rng.random() < 0.5) for prop in CLASSES[cls][1]}
    state["open"] = 0.8 * state.get("open", 0.0)
    picture, mask = studio.draw(state, 2 * size), studio.mask(state, 2 * size)
    rows, columns = np.nonzero(mask)
    box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    return np.asarray(Image.fromarray(picture).resize((size, size), box=box))


def _room(spec: mujoco.MjSpec, item: Item, reach: float, look: Look) -> None:
    add_material(spec, "floor", None, rgba=(*look.floor, 1.0), specular=0.1)
    add_material(spec, "wall", None, rgba=(*look.wall, 1.0), specular=0.0)
    drop, back = (-1.0, 0.0) if item.stand == "wall" else (0.0, 3 * reach)
    plane = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": (9, 9, 1)}
    spec.worldbody.add_geom(pos=(0, 0, drop), material="floor", **plane)
    upright = (np.sqrt(0.5), np.sqrt(0.5), 0, 0)
    spec.worldbody.add_geom(pos=(0, back, 0), quat=upright, material="wall", **plane)


def _lamps(spec: mujoco.MjSpec, centre: np.ndarray, reach: float, light: float) -> None:
    for name, way, share, shadow in (
        ("key", (-2.0, -2.6, 3.4), 1.0, True),
        ("fill", (3.0, -2.0, 1.0), 0.4, False),
    ):
        spec.worldbody.add_light(
            name=name,
            pos=centre + np.array(way) * reach,
            dir=-np.array(way),
            cutoff=35 if shadow else 80,
            exponent=0,
            diffuse=(light * share,) * 3,
            specular=(0.4 if shadow else 0.1,) * 3,
            castshadow=shadow,
        )


def _camera(spec: mujoco.MjSpec, centre: np.ndarray, reach: float, look: Look) -> None:
    flat, up = np.cos(look.pitch), np.sin(look.pitch)
    away = np.array([np.sin(look.yaw) * flat, -np.cos(look.yaw) * flat, up])
    right = np.array([np.cos(look.yaw), np.sin(look.yaw), 0.0])
    frame = np.stack([right, np.cross(away, right), away], axis=1)
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, frame.ravel())
    spec.worldbody.add_camera(pos=centre + look.near * reach * away, quat=quat, fovy=45)
