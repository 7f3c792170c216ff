"""Pictures of TriFinger worlds: an engine that follows the looks of a store and is drawn.

Looks reach this engine alone, by the variables' bindings, so colours, textures, lights and cameras
cost the physics nothing. Goal pictures are kept until something they show changes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, cast, final

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from interverse.core.arrays import Array, namespace, to_numpy
from interverse.scm import Binding
from interverse.scm.store import Rows, Store, changed_keys
from interverse.sim import Edit, Engine, Scene, make_engine
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
_AWAY, _ = action_bounds("joint_positions")  # where the robot is in pictures of the goal


def _is_seen(binding: Binding) -> bool:
    return not binding.field.startswith(_UNSEEN)


class _Looks:
    """An engine for pictures alone, and what things look like in it."""

    def __init__(self, engine: Any, scene: ArenaScene, store: Store) -> None:
        self._engine, self._store = engine, store
        kinds = {
            "block": tuple(f"block_{i}" for i in range(scene.block_count)),
            "goal": tuple(f"goal_{i}" for i in range(scene.goal_count)),
            "obstacle": tuple(obstacle.name for obstacle in scene.obstacles),
        }
        self._opacity = {k: Binding("mat_rgba", names, 3) for k, names in kinds.items() if names}

    def _shares(self, rows: Rows, **shares: float) -> list[Edit]:
        """Returns what gives all things of a kind that are there some opacity."""
        return [(b, shares[kind] * rows[f"{kind}/used"]) for kind, b in self._opacity.items()]

    def close(self) -> None:
        """Releases the engine."""
        self._engine.close()


class Photographer(_Looks):
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
        model = copy.copy(model)
        shadow, samples = (_QUICK_SHADOWS, 0) if quick else (_FINE_SHADOWS, 8)
        model.vis.quality.shadowsize, model.vis.quality.offsamples = shadow, samples
        if quick:
            model.vis.global_.offwidth = model.vis.global_.offheight = 1
        if not shadows:
            model.light_castshadow[:] = False
        engine: Engine = make_engine(Scene(model=model), num_worlds=1, threads=1)
        super().__init__(engine, scene, store)
        self._drawn: Rows | None = None  # the rows drawn last

    def view(self, rows: Rows, size: tuple[int, int]) -> NDArray[np.uint8]:
        """Returns a picture for people: blocks and goals together."""
        self._show(rows, block=1.0, goal=_GOAL_ALPHA, obstacle=1.0)
        return self._engine.picture(0, camera="viewer", size=size)

    def shapes(self, rows: Rows) -> tuple[Shape, ...]:
        """Returns the solids of that picture."""
        self._show(rows, block=1.0, goal=_GOAL_ALPHA, obstacle=1.0)
        return self._engine.shapes(0)

    def _show(self, rows: Rows, **shares: float) -> None:
        """Brings the engine up to date with one world's rows, (1, ...) each; shares are opacity."""
        rows = {key: to_numpy(values) for key, values in rows.items()}
        names: set[str] = set(self._store.slots)
        if self._drawn is not None:
            keys = changed_keys(rows, self._drawn, rows)
            names = self._store.changed_names(rows, self._drawn, keys)
        edits = [edit for edit in self._store.edits(rows, names) if _is_seen(edit[0])]
        self._engine.put(edits + self._shares(rows, **shares), _ONE)
        self._drawn = rows


@final
class PictureObservations(Photographer):
    """The picture observations of N worlds, one by one: live and goal images."""

    def __init__(
        self, model: Any, scene: ArenaScene, store: Store, options: TriFingerOptions
    ) -> None:
        super().__init__(model, scene, store, quick=True, shadows=options.shadows)
        self._options = options
        self._cameras = [OBSERVATION_CAMERAS[c].name for c in options.cameras]
        hidden = ("block_", "obstacle", "joint_positions")
        shown = {name for name in store.sources(_is_seen) if not name.startswith(hidden)}
        self._keys = sorted({store.slots[n].key for n in shown} | {"goal/used"})  # of a goal's
        self._marks: list[tuple[bytes, ...] | None] = [None] * store.num_worlds
        self._goals: list[NDArray[Any]] = [np.empty(0, np.uint8)] * store.num_worlds

    def take(self) -> dict[str, NDArray[Any]]:
        """Returns "pixels", (N, 2k, S, S, 3): k live, k goal images; and what else is asked for."""
        mixed = self._options.observation_mode == "mixed"
        kinds = [kind for kind in self._options.picture_kinds if kind != "rgb" and mixed]
        shots: dict[str, list[NDArray[Any]]] = {kind: [] for kind in ("rgb", *kinds)}
        for world in range(self._store.num_worlds):
            taken = self._store.take(np.array([world]))
            rows = {key: to_numpy(values) for key, values in taken.items()}
            self._show(rows, block=1.0, goal=0.0, obstacle=1.0)
            for kind, each in shots.items():
                each.append(self._shot(cast(Picture, kind)))
            marks = tuple(rows[key].tobytes() for key in self._keys)
            if self._marks[world] != marks:  # goals as solids, and nothing in front of them
                away = {**rows, "joint_positions": _AWAY[None]}
                self._show(away, block=0.0, goal=1.0, obstacle=0.0)
                self._goals[world], self._marks[world] = self._shot("rgb"), marks
        pixels = np.concatenate([np.stack(shots.pop("rgb")), np.stack(self._goals)], axis=1)
        out = {"pixels": pixels}
        out |= {kind: np.stack(each).astype(_TYPES[kind]) for kind, each in shots.items()}
        if not self._options.mirrored_images:
            return out
        return {kind: np.ascontiguousarray(np.flip(each, 3)) for kind, each in out.items()}

    def _shot(self, kind: Picture) -> NDArray[Any]:
        """Returns what the cameras see now, (cameras, size, size, ...)."""
        size = self._options.image_size, self._options.image_size
        each = (self._engine.picture(0, camera=n, size=size, kind=kind) for n in self._cameras)
        return np.stack([*each])


@final
class BatchPhotographer(_Looks):
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
        self._physics, self._options = physics, options
        self._cameras = [OBSERVATION_CAMERAS[c].name for c in options.cameras]
        model = copy.copy(physics.model)
        if not options.shadows:
            model.light_castshadow[:] = False
        only_drawn = Scene(model=model, contacts=1, constraints=1)
        engine = make_engine(only_drawn, num_worlds=store.num_worlds, device=options.device)
        super().__init__(engine, scene, store)
        self._everyone = np.arange(store.num_worlds)
        self._looks = store.sources(lambda b: _is_seen(b) and b.field != "qpos")
        self._keys = sorted({store.slots[n].key for n in self._looks})
        self._keys += [f"{kind}/used" for kind in ("block", "goal", "obstacle")]

    def take(self) -> dict[str, Array]:
        """Returns "pixels", (N, 2k, S, S, 3): k live, k goal images."""
        goal = self._store.cached("goal pictures", self._keys, self._draw_goals)
        self._engine.live("qpos")[:] = self._physics.live("qpos")
        pixels = namespace(goal).concat([self._draw(), goal], axis=1)
        mirrored = self._options.mirrored_images
        return {"pixels": namespace(goal).flip(pixels, axis=3) if mirrored else pixels}

    def _draw(self) -> Array:
        return self._engine.pictures(self._cameras, self._options.image_size)

    def _draw_goals(self) -> Array:
        """Brings looks up to date; draws goals as solids, with the robot out of the way."""
        rows, everyone = self._store.rows, self._everyone
        looks = self._store.edits(rows, self._looks)
        looks = [edit for edit in looks if _is_seen(edit[0]) and edit[0].field != "qpos"]
        self._engine.put(looks, everyone)
        self._engine.put(self._shares(rows, block=0.0, goal=1.0, obstacle=0.0), everyone)
        places = self._engine.live("qpos")
        places[:] = self._physics.live("qpos")
        places[:, : len(_AWAY)] = self._engine.asarray(_AWAY)
        drawn = self._draw()
        self._engine.put(self._shares(rows, block=1.0, goal=0.0, obstacle=1.0), everyone)
        return drawn


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
