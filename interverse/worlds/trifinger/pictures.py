"""Pictures of TriFinger worlds: an engine of one world that follows the store and is drawn.

Looks reach this engine alone, by the variables' bindings, so colours, textures, lights and cameras
cost the physics nothing. Goal pictures are kept until something they show changes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, namespace, to_numpy
from interverse.scm import Binding
from interverse.scm.store import Index, Rows, Store, changed_keys
from interverse.sim import Engine, Scene, make_engine
from interverse.sim.engine import Picture
from interverse.sim.shapes import Shape
from interverse.worlds.trifinger.options import TriFingerOptions
from interverse.worlds.trifinger.robot import action_bounds
from interverse.worlds.trifinger.scene import OBSERVATION_CAMERAS, ArenaScene

_ONE = np.arange(1)
_GOAL_ALPHA = 0.3
_FINE_SHADOWS = 8192  # for people: no teeth at the edges of shadows
_QUICK_SHADOWS = 512  # texels along an edge: enough for pictures of 128 pixels
_TYPES: Mapping[str, Any] = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32}
# Starts of fields that no picture shows.
_UNSEEN = ("act", "body_mass", "dof_", "geom_friction", "jnt_", "opt.", "pair_", "qvel")


@final
class Photographer:
    """Draws one world at a time."""

    def __init__(
        self,
        model: Any,
        scene: ArenaScene,
        store: Store,
        *,
        quick: bool = False,
        shadows: bool = True,
    ) -> None:
        """Makes an engine for pictures of a model.

        Args:
            model: the compiled scene; it is copied.
            scene: what it was compiled from.
            store: whose bindings say what values look like.
            quick: whether to draw small pictures fast: coarse shadows, no smoothing of edges.
            shadows: whether lights cast shadows.
        """
        self._store = store
        model = copy.copy(model)
        if quick:
            model.vis.quality.shadowsize = _QUICK_SHADOWS
            model.vis.quality.offsamples = 0
            model.vis.global_.offwidth = model.vis.global_.offheight = 1
        else:
            model.vis.quality.shadowsize, model.vis.quality.offsamples = _FINE_SHADOWS, 8
        if not shadows:
            model.light_castshadow[:] = False
        self._engine: Engine = make_engine(Scene(model=model), num_worlds=1, threads=1)
        self._shown: Rows | None = None  # the rows drawn last
        self._opacity = _opacities(scene)

    def view(self, rows: Rows, size: tuple[int, int]) -> NDArray[np.uint8]:
        """Returns a picture for people: blocks and goals together."""
        self._show(rows, blocks=1.0, goals=_GOAL_ALPHA)
        return self._engine.picture(0, camera="viewer", size=size)

    def shapes(self, rows: Rows) -> tuple[Shape, ...]:
        """Returns the solids of that picture."""
        self._show(rows, blocks=1.0, goals=_GOAL_ALPHA)
        return self._engine.shapes(0)

    def live(
        self, rows: Rows, cameras: Sequence[int], size: int, kind: Picture = "rgb"
    ) -> NDArray[Any]:
        """Returns what the cameras see: robot and blocks, no goals, (cameras, size, size, ...)."""
        self._show(rows, blocks=1.0, goals=0.0)
        return self._pictures(cameras, size, kind)

    def goal(
        self, rows: Rows, cameras: Sequence[int], size: int, kind: Picture = "rgb"
    ) -> NDArray[Any]:
        """Returns pictures of the goal: goals as solids, robot out of the way, nothing else."""
        low, _ = action_bounds("joint_positions")
        rows = {**rows, "joint_positions": low[None]}
        self._show(rows, blocks=0.0, goals=1.0, obstacles=0.0)
        return self._pictures(cameras, size, kind)

    def goal_keys(self) -> list[str]:
        """Returns the rows that a picture of the goal depends on."""
        sources = self._store.sources(_is_seen)
        hidden = ("block_", "obstacle", "joint_positions")
        names = {name for name in sources if not name.startswith(hidden)}
        return sorted({self._store.slots[n].key for n in names} | {"goal/used"})

    def _pictures(self, cameras: Sequence[int], size: int, kind: Picture) -> NDArray[Any]:
        names = [OBSERVATION_CAMERAS[c].name for c in cameras]
        shots = [
            self._engine.picture(0, camera=name, size=(size, size), kind=kind) for name in names
        ]
        return np.stack(shots)

    def _show(self, rows: Rows, *, blocks: float, goals: float, obstacles: float = 1.0) -> None:
        """Brings the engine up to date with one world's rows, (1, ...) each; shares are opacity."""
        rows = {key: to_numpy(values) for key, values in rows.items()}
        names: set[str] = set(self._store.slots)
        if self._shown is not None:
            keys = changed_keys(rows, self._shown, rows)
            names = self._store.changed_names(rows, self._shown, keys)
        edits = [edit for edit in self._store.edits(rows, names) if _is_seen(edit[0])]
        for kind, alpha in (("block", blocks), ("goal", goals), ("obstacle", obstacles)):
            binding = self._opacity[kind]
            if binding is not None:
                edits.append((binding, alpha * rows[f"{kind}/used"]))
        self._engine.put(edits, _ONE)
        self._shown = rows

    def close(self) -> None:
        """Releases the GL contexts."""
        self._engine.close()


def _opacity(names: Any) -> Binding | None:
    materials = tuple(names)
    return Binding("mat_rgba", materials, 3) if materials else None


def _is_seen(binding: Binding) -> bool:
    return not binding.field.startswith(_UNSEEN)


@final
class BatchPhotographer:
    """Draws every world at once on the device of their physics, from an engine of its own."""

    def __init__(
        self, physics: Engine, scene: ArenaScene, store: Store, options: TriFingerOptions
    ) -> None:
        """Makes an engine for pictures of the physics' model.

        Args:
            physics: where robot and blocks are.
            scene: what its model was compiled from.
            store: whose bindings say what values look like.
            options: which cameras, and how large.
        """
        self._physics, self._store = physics, store
        self._names = [OBSERVATION_CAMERAS[c].name for c in options.cameras]
        self._size, self._mirrored = options.image_size, options.mirrored_images
        model = copy.copy(physics.model)
        if not options.shadows:
            model.light_castshadow[:] = False
        only_drawn = Scene(model=model, contacts=1, constraints=1)
        self._engine: Any = make_engine(
            only_drawn, num_worlds=store.num_worlds, device=options.device
        )
        self._everyone = np.arange(store.num_worlds)
        self._opacity = _opacities(scene)
        low, _ = action_bounds("joint_positions")
        self._away = self._engine.asarray(low)
        self._looks = store.sources(lambda b: _is_seen(b) and b.field != "qpos")
        self._keys = sorted({store.slots[n].key for n in self._looks})
        self._used = [f"{kind}/used" for kind in self._opacity]

    def take(self) -> dict[str, Array]:
        """Returns "pixels", (N, 2k, S, S, 3): k live, k goal images."""
        store = self._store
        goal = store.cached("goal pictures", [*self._keys, *self._used], self._draw_goals)
        self._engine.live("qpos")[:] = self._physics.live("qpos")
        pixels = namespace(goal).concat([self._draw(), goal], axis=1)
        return {"pixels": namespace(goal).flip(pixels, axis=3) if self._mirrored else pixels}

    def _draw(self) -> Array:
        return self._engine.pictures(self._names, self._size)

    def _draw_goals(self) -> Array:
        """Brings looks up to date; draws goals as solids, with the robot out of the way."""
        self._engine.put(self._looks_now(), self._everyone)
        self._show(block=0.0, goal=1.0, obstacle=0.0)
        places = self._engine.live("qpos")
        places[:] = self._physics.live("qpos")
        places[:, : len(self._away)] = self._away
        drawn = self._draw()
        self._show(block=1.0, goal=0.0, obstacle=1.0)
        return drawn

    def _looks_now(self) -> list[Any]:
        edits = self._store.edits(self._store.rows, self._looks)
        return [edit for edit in edits if _is_seen(edit[0]) and edit[0].field != "qpos"]

    def _show(self, **shares: float) -> None:
        rows = self._store.rows
        edits = [
            (binding, shares[kind] * rows[f"{kind}/used"])
            for kind, binding in self._opacity.items()
            if binding is not None
        ]
        self._engine.put(edits, self._everyone)

    def close(self) -> None:
        """Releases the engine."""
        self._engine.close()


def _opacities(scene: ArenaScene) -> dict[str, Binding | None]:
    """Returns what sets the opacity of all things of a kind."""
    return {
        "block": _opacity(f"block_{i}" for i in range(scene.block_count)),
        "goal": _opacity(f"goal_{i}" for i in range(scene.goal_count)),
        "obstacle": _opacity(obstacle.name for obstacle in scene.obstacles),
    }


# --- observations --------------------------------------------------------------------------------


def observation_space(flat: gym.spaces.Box, options: TriFingerOptions) -> gym.Space[Any]:
    """Returns the space of one world's observation in the chosen mode."""
    if options.observation_mode == "structured":
        return flat
    shape = (2 * len(tuple(options.cameras)), options.image_size, options.image_size)
    pixels = gym.spaces.Box(0, 255, (*shape, 3), np.uint8)
    if options.observation_mode == "pixel":
        return pixels
    spaces: dict[str, gym.Space[Any]] = {"structured": flat, "pixels": pixels}
    live = (shape[0] // 2, *shape[1:])
    if "depth" in options.picture_kinds:
        spaces["depth"] = gym.spaces.Box(0.0, np.inf, live, np.float32)
    if "segmentation" in options.picture_kinds:
        spaces["segmentation"] = gym.spaces.Box(-1, np.iinfo(np.int32).max, live, np.int32)
    return gym.spaces.Dict(spaces)


@final
class PictureObservations:
    """The picture observations of N worlds: live and goal images."""

    def __init__(self, photographer: Photographer, options: TriFingerOptions, store: Store) -> None:
        self._photographer, self._options, self._store = photographer, options, store
        self._cameras = tuple(options.cameras)
        self._keys = photographer.goal_keys()
        self._marks: list[tuple[bytes, ...] | None] = [None] * store.num_worlds
        self._goals: list[NDArray[np.uint8]] = [np.empty(0, np.uint8)] * store.num_worlds

    def take(self) -> dict[str, NDArray[Any]]:
        """Returns "pixels", (N, 2k, S, S, 3): k live, k goal images; and what else is asked for."""
        options, draw = self._options, self._photographer.live
        pixels: list[NDArray[Any]] = []
        mixed = options.observation_mode == "mixed"
        extra: dict[str, list[NDArray[Any]]] = {
            kind: [] for kind in options.picture_kinds if kind != "rgb" and mixed
        }
        for world in range(self._store.num_worlds):
            rows = self._rows(np.array([world]))
            live = draw(rows, self._cameras, options.image_size)
            pixels.append(np.concatenate([live, self._goal(world, rows)]))
            for kind, shots in extra.items():
                shots.append(draw(rows, self._cameras, options.image_size, cast(Picture, kind)))
        out = {"pixels": self._mirrored(np.stack(pixels))}
        for kind, shots in extra.items():
            out[kind] = self._mirrored(np.stack(shots).astype(_TYPES[kind]))
        return out

    def close(self) -> None:
        """Releases the GL contexts."""
        self._photographer.close()

    def _rows(self, world: Index) -> Rows:
        return {key: to_numpy(rows) for key, rows in self._store.take(world).items()}

    def _goal(self, world: int, rows: Rows) -> NDArray[np.uint8]:
        marks = tuple(rows[key].tobytes() for key in self._keys)
        if self._marks[world] != marks:
            size = self._options.image_size
            self._goals[world] = self._photographer.goal(rows, self._cameras, size)
            self._marks[world] = marks
        return self._goals[world]

    def _mirrored(self, pictures: NDArray[Any]) -> NDArray[Any]:
        """Returns the pictures, turned left to right where the original's are asked for."""
        if not self._options.mirrored_images:
            return pictures
        return np.ascontiguousarray(np.flip(pictures, 3))
